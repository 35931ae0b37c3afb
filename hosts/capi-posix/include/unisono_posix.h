/*
 * Unisono for C programs whose processes `unisono run -n N -- PROGRAM` starts: unisono.h, and a
 * call that makes the segment, places and maps it, and watches the other processes.
 *
 *   cc program.c -lunisono_posix_c && unisono run -n 4 -- ./a.out
 *
 * The library is all of libunisono and this call: link one of the two.
 */
#ifndef UNISONO_POSIX_H
#define UNISONO_POSIX_H

#include <unisono.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Joins the job whose launcher started this process, once, and writes the handle to `comm` (null on
 * an error); unisono_free ends it and unmaps. Collective: one rank's failure is ERR_HOST on every
 * other rank, and unisono_last_error names the rank and the cause; on the rank itself it is ERR_ARGUMENT (a setting of
 * the environment), ERR_MEMORY (no room), ERR_SEGMENT (what is no segment) or ERR_HOST. Waits then end with ERR_DIED within
 * milliseconds when a rank is gone. UNISONO_PAGES=huge and UNISONO_MBIND=preferred or bind in the environment ask for huge
 * pages and a memory policy; where they are not to be had, rank 0 says so in one line on stderr, and goes on.
 */
int unisono_join(unisono_comm **comm);

#ifdef __cplusplus
}
#endif

#endif
