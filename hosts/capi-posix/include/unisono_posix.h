/*
 * Unisono for C programs whose processes `unisono run -n N -- PROGRAM` starts: unisono.h, and a
 * call that makes the segment, places and maps it, and watches the other processes; and communicators of some of them.
 *
 *   cc program.c -lunisono_posix && unisono run -n 4 -- ./a.out
 *
 * The library is all of libunisono and these calls: link one of the two.
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
 * milliseconds when a rank is gone. UNISONO_TIMEOUT=SECONDS in the environment is a first unisono_set_timeout. UNISONO_PAGES=huge and UNISONO_MBIND=preferred or bind in the environment ask for huge
 * pages and a memory policy; where they are not to be had, rank 0 says so in one line on stderr, and goes on.
 */
int unisono_join(unisono_comm **comm);

/*
 * Communicators of communicators (MPI 4.1, 7.4), each on memory of one of its members' arenas, which is mapped already
 * and goes from one to the next. A new one is the library's until unisono_comm_free; it is written to the last argument, which is
 * null on an error. UNISONO_ERR_MEMORY: no arena has room (UNISONO_ARENA=BYTES, 256M by default, bounds each process's);
 * `comm` is as good as before. UNISONO_ERR_HOST: `comm` does not come from unisono_join. unisono_comm_dup and
 * unisono_comm_split complete the active requests of `comm` first, as blocking collectives do.
 */

/* The same processes in the same order. Collective. */
int unisono_comm_dup(unisono_comm *comm, unisono_comm **dup);

/* Says no color. */
#define UNISONO_UNDEFINED UINT32_MAX

/* Those who say the same color, in the order of their keys, then of their ranks in `comm`; null for who says
 * UNISONO_UNDEFINED. Collective. */
int unisono_comm_split(unisono_comm *comm, uint32_t color, int64_t key, unisono_comm **part);

/* `count` ranks of `comm`, in this order. They alone call, each with the same ranks and tag; groups without a common
 * process, or with other tags, may be made at the same time. Works on a communicator that failed, among those who live.
 * UNISONO_ERR_ARGUMENT: a rank that is none, or one twice, or the caller's is not there. */
int unisono_comm_create_group(unisono_comm *comm, const uint32_t *ranks, uint32_t count, uint32_t tag,
                              unisono_comm **group);

/* Puts a communicator of the same processes in the same order in the place of one that is over because a rank refused an
 * argument (UNISONO_ERR_ARGUMENT there, UNISONO_ERR_PEER on the others), ranks disagreed (UNISONO_ERR_MISMATCH) or one was late
 * (UNISONO_ERR_LATE). All ranks call, each once it has its error: who has finished the operation in which it happened has one at
 * its next operation. It waits for no operation, and works at once.
 * UNISONO_ERR_ARGUMENT: `comm` is not over. UNISONO_ERR_DIED: a rank is gone; unisono_comm_create_group makes a communicator of the
 * others. UNISONO_ERR_REQUEST: `comm` has requests that were not freed. UNISONO_ERR_MEMORY as above. Then it stays as it is. */
int unisono_comm_renew(unisono_comm **comm);

/* This process is done with the communicator, which becomes null; waits for nobody. All members free it sometime. The
 * same as unisono_free. UNISONO_ERR_BUSY: a call is using it. UNISONO_ERR_REQUEST: it has requests
 * that were not freed; it stays. */
int unisono_comm_free(unisono_comm **comm);

#ifdef __cplusplus
}
#endif

#endif
