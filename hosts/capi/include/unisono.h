/*
 * Unisono: collective operations between processes that share memory.
 *
 * The caller maps the memory (mmap, shm_open, memfd ...), the library runs broadcast, barrier and
 * small allreduce in it. It starts no threads, installs no signal handlers, opens no files, prints
 * nothing and never ends the process.
 *
 *   one process:    unisono_params_init, unisono_bytes, map that many zeroed bytes, unisono_create
 *   every process:  unisono_attach, collectives, unisono_free, unmap
 *
 * Units.      Sizes and counts of bytes are bytes. A rank is 0 .. ranks - 1.
 * Ownership.  Memory, buffers and contexts are the caller's. A unisono_comm is the library's, from
 *             unisono_attach to unisono_free; a child of fork must not use its parent's.
 * Threads.    One call at a time on one unisono_comm; a second one gets UNISONO_ERR_BUSY and changes
 *             nothing. Different ones are independent.
 * Collective. All ranks call the same collectives in the same order, with the same root, bytes, count,
 *             datatype and op (MPI 4.1, 7.1). A call blocks until this rank's part is complete.
 * Errors.     0 is success, errors are negative and keep their numbers for good. When a collective
 *             fails on one rank, every rank gets an error at this or its next call, none is left
 *             waiting, and the communicator stays unusable: only unisono_free is left to do. Not so
 *             for UNISONO_ERR_NULL and UNISONO_ERR_BUSY, which nobody else learns of.
 * Trust.      Whatever other processes write into the memory, this library stays within it and the
 *             buffers: the outcome is an error or wrong data.
 */
#ifndef UNISONO_H
#define UNISONO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Version: major * 10000 + minor * 100 + patch ------------------------------------------- */

#define UNISONO_VERSION 100

/* The version of the library that runs; compare it with UNISONO_VERSION. */
uint32_t unisono_version(void);

/* ---- Errors ----------------------------------------------------------------------------------- */

#define UNISONO_OK (0)
#define UNISONO_ERR_NULL (-1)       /* a pointer that must not be null is null */
#define UNISONO_ERR_ARGUMENT (-2)   /* an argument of this call was refused */
#define UNISONO_ERR_BUSY (-3)       /* another call is using the communicator */
#define UNISONO_ERR_NOT_READY (-4)  /* attach: no segment was created here yet; try again */
#define UNISONO_ERR_SEGMENT (-5)    /* not a segment, or one of another version or layout */
#define UNISONO_ERR_MISMATCH (-6)   /* this rank's arguments do not fit those of another */
#define UNISONO_ERR_PEER (-7)       /* another rank refused its arguments */
#define UNISONO_ERR_DIED (-8)       /* a rank is gone (see unisono_report_death) */
#define UNISONO_ERR_LATE (-9)       /* a rank was waited for longer than its bound of time */
#define UNISONO_ERR_CORRUPT (-10)   /* the segment holds words that no rank writes */
#define UNISONO_ERR_MEMORY (-11)    /* no memory for the communicator */
#define UNISONO_ERR_OTHER (-12)     /* none of the above */
#define UNISONO_ERR_HOST (-13)      /* a start-up between processes failed (see unisono_posix.h) */

/* A short text for an error number, and its name as above. Never null, never to be freed. */
const char *unisono_strerror(int code);
const char *unisono_error_name(int code);

/*
 * Writes the text of the calling thread's last error into the `len` bytes at `buf`, cut to fit and
 * ended by a zero; it names the argument, its value and the bound, or the rank and the operation.
 * Answers the bytes of the whole text without the zero, as snprintf; 0 if no call has failed.
 */
size_t unisono_last_error(char *buf, size_t len);

/* ---- Segments --------------------------------------------------------------------------------- */

/* What a segment is made for. Start with unisono_params_init; new fields come at the end only. */
typedef struct unisono_params {
    uint32_t size;           /* sizeof(unisono_params); set by unisono_params_init */
    uint32_t ranks;          /* number of processes, 1 .. 2^20 */
    uint64_t page;           /* bytes of a page, a power of two */
    uint64_t queue_fragment; /* bytes of a large message that travel at once, a multiple of 64 */
    uint32_t queue_slots;    /* fragments under way per rank, a power of two */
    uint32_t lines;          /* small messages under way per rank, a power of two, 2 at least */
} unisono_params;

/* Fills `params` with good values for `ranks` processes. `size` is sizeof(unisono_params). */
int unisono_params_init(unisono_params *params, size_t size, uint32_t ranks);

/* Writes to `bytes` the number of bytes that a segment for `params` takes. */
int unisono_bytes(const unisono_params *params, uint64_t *bytes);

/*
 * Makes the `bytes` bytes at `memory` a segment. They are zero, aligned to a page (64 bytes at
 * least), and shared by all processes. Called once, by one process. ERR_ARGUMENT: too few bytes, a
 * parameter out of bounds, memory that is in use.
 */
int unisono_create(void *memory, size_t bytes, const unisono_params *params);

/* A process's handle on a segment. */
typedef struct unisono_comm unisono_comm;

/*
 * Joins the segment at `memory` as `rank`, and writes the handle to `comm` (null on an error). The
 * address may differ between processes. ERR_NOT_READY: not created yet, try again. ERR_SEGMENT:
 * something else. ERR_ARGUMENT: fewer bytes than the segment has, or a rank that it was not made for.
 */
int unisono_attach(void *memory, size_t bytes, uint32_t rank, unisono_comm **comm);

/* Frees the handle; null is no error. The memory stays mapped, it is the caller's. */
int unisono_free(unisono_comm *comm);

/* This process's rank, the number of processes; or a negative error number. */
int unisono_rank(const unisono_comm *comm);
int unisono_size(const unisono_comm *comm);

/*
 * Tells all ranks that process `rank` is gone: calls that wait, and all later ones, end with
 * ERR_DIED. For who sees a process end (waitpid, pidfd); may be called while another call uses `comm`.
 */
int unisono_report_death(const unisono_comm *comm, uint32_t rank);

/* ---- Collectives (MPI 4.1, chapter 7) ----------------------------------------------------------- */

/* MPI_Bcast (7.4): `bytes` bytes at the root's `buffer` go to everyone's. */
int unisono_bcast(unisono_comm *comm, void *buffer, uint64_t bytes, uint32_t root);

/* MPI_Barrier (7.3). What any rank wrote to memory before is visible to every rank after. */
int unisono_barrier(unisono_comm *comm);

/* Datatypes. */
#define UNISONO_F64 (1) /* double */
#define UNISONO_I64 (2) /* int64_t */

/* Operations. */
#define UNISONO_SUM (1) /* integers wrap */

/* Most bytes that one allreduce takes: count times the bytes of an element. */
#define UNISONO_ALLREDUCE_MOST (48)

/* In place of `send`: the operand is in `receive`. */
#define UNISONO_IN_PLACE ((const void *)-1)

/*
 * MPI_Allreduce (7.9.6): `receive` becomes the sum of everyone's `send`, in rank order: the same bits
 * on all ranks, whatever the operation. `send` is UNISONO_IN_PLACE, or equal to `receive`, or apart.
 */
int unisono_allreduce(unisono_comm *comm, const void *send, void *receive, uint64_t count, int datatype, int op);

/*
 * An operation of the caller's, as MPI_User_function: right[i] = left[i] op right[i] for `count`
 * elements, both aligned to 16 bytes. It must return normally (no longjmp, no C++ exception).
 */
typedef void unisono_function(const void *left, void *right, uint64_t count, void *context);

/* The same with an operation of the caller's on elements of `element` bytes. It need not be commutative. */
int unisono_allreduce_user(unisono_comm *comm, const void *send, void *receive, uint64_t count, uint64_t element,
                           unisono_function *function, void *context, int commutative);

#ifdef __cplusplus
}
#endif

#endif
