/*
 * Unisono for C programs whose processes `unisono run -n N -- PROGRAM` starts: all of unisono.h, a call that makes,
 * places and maps the segment and watches the other processes, and calls that make further communicators.
 *
 *   cc program.c -lunisono_posix && unisono run -n 4 -- ./a.out
 *
 * This library contains libunisono: link one of the two.
 */
#ifndef UNISONO_POSIX_H
#define UNISONO_POSIX_H

#include <stddef.h>
#include <unisono.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Joins the job whose launcher started this process, and writes the handle to `comm` (null on an error). A process
 * calls it once; unisono_free ends the use and unmaps the segment. Collective. If one rank fails, every other rank gets
 * ERR_HOST, and unisono_last_error names the rank and the cause. The rank that failed gets ERR_ARGUMENT (an environment
 * variable), ERR_MEMORY (too little memory), ERR_SEGMENT (the file is not the segment) or ERR_HOST. Afterwards, when a
 * rank dies, calls that wait for it return ERR_DIED within milliseconds. Environment: UNISONO_TIMEOUT=SECONDS sets the
 * first timeout, as unisono_set_timeout. UNISONO_PAGES=huge asks for huge pages, UNISONO_MBIND=preferred or bind for a
 * memory policy; if they are not available, rank 0 says so in one line on stderr, and the start-up continues.
 */
int unisono_join(unisono_comm **comm);

/*
 * MPI_Alloc_mem, MPI_Free_mem (MPI 4.1, 9.2): `bytes` bytes, at least one, that are zero, on a page's start, on the
 * caller's NUMA node. The other processes of the job can read this memory: collectives on any communicator of the job copy
 * messages of 1536 bytes and more in it once, from where they lie, where they would be copied twice else. One rank may use such
 * memory, and another one not. A child of fork has a copy. UNISONO_ERR_MEMORY: the machine has not so much memory. After
 * unisono_release, pages of up to 64 MiB are kept for the next call; null is allowed, and UNISONO_ERR_ARGUMENT: it is no
 * such memory. No operation in flight may use it. Local calls.
 */
int unisono_alloc(unisono_comm *comm, size_t bytes, void **memory);
int unisono_release(void *memory);

/*
 * These make communicators from communicators (MPI 4.1, 7.4). The memory of each is a part of the arena of one of its
 * members. Arenas are mapped already, and their memory is reused. A new communicator is the library's until
 * unisono_comm_free; its handle is written to the last argument, null on an error. UNISONO_ERR_MEMORY: no arena has
 * room (UNISONO_ARENA=BYTES in the environment, 512M by default, is the size of each process's arena); `comm` can be
 * used as before. UNISONO_ERR_HOST: `comm` does not come from unisono_join. unisono_comm_dup and unisono_comm_split
 * complete the active requests of `comm` first, as blocking collectives do.
 */

/* MPI_Comm_dup: the same processes in the same order. Collective. */
int unisono_comm_dup(unisono_comm *comm, unisono_comm **dup);

/* As MPI_UNDEFINED: no color. */
#define UNISONO_UNDEFINED UINT32_MAX

/* MPI_Comm_split: the ranks that pass the same color, in the order of their keys, then of their ranks in `comm`. A rank
 * that passes UNISONO_UNDEFINED gets null. Collective. */
int unisono_comm_split(unisono_comm *comm, uint32_t color, int64_t key, unisono_comm **part);

/* MPI_Comm_create_group: these `count` ranks of `comm`, in this order. Only they call, with the same ranks and tag.
 * Groups without a common process, or with different tags, may be made at the same time. It works on a communicator
 * that failed too, among ranks that live. UNISONO_ERR_ARGUMENT: a rank out of range, one named twice, or the caller's
 * missing. */
int unisono_comm_create_group(unisono_comm *comm, const uint32_t *ranks, uint32_t count, uint32_t tag,
                              unisono_comm **group);

/* Replaces a communicator that failed by one of the same processes in the same order. It may have failed because a rank
 * refused an argument (UNISONO_ERR_ARGUMENT there, UNISONO_ERR_PEER on the others), ranks disagreed
 * (UNISONO_ERR_MISMATCH) or one was late (UNISONO_ERR_LATE). All ranks call, each after a call has returned the error
 * to it; a rank that had completed the failed operation gets the error from its next one. It waits for no operation in
 * flight. UNISONO_ERR_ARGUMENT: `comm` has not failed. UNISONO_ERR_DIED: a rank has died; unisono_comm_create_group
 * makes a communicator of the others. UNISONO_ERR_REQUEST: `comm` has requests that were not freed. UNISONO_ERR_MEMORY
 * as above. On an error `comm` is unchanged. */
int unisono_comm_renew(unisono_comm **comm);

/* Frees the communicator, as unisono_free, and writes null to `comm`. It does not wait for the other ranks, which also
 * free it at some time. UNISONO_ERR_BUSY: a call is using it. UNISONO_ERR_REQUEST: it has requests that were not freed.
 * On an error it is not freed. */
int unisono_comm_free(unisono_comm **comm);

#ifdef __cplusplus
}
#endif

#endif
