/*
 * Unisono: collective operations between processes that share memory.
 *
 * The caller maps the memory (mmap, shm_open, memfd ...), the library runs MPI's collectives in it, blocking,
 * nonblocking or persistent. It starts no threads, installs no signal handlers, opens no files, prints nothing and
 * never ends the process.
 *
 *   one process:    unisono_params_init, unisono_bytes, map that many zeroed bytes, unisono_create
 *   every process:  unisono_attach, collectives, unisono_free, unmap
 *
 * Units.      Sizes and counts of bytes are bytes. A rank is 0 .. ranks - 1.
 * Ownership.  Memory, buffers, counts, operations and contexts are the caller's. A unisono_comm is the library's, from
 *             unisono_attach to unisono_free; a child of fork must not use its parent's. A unisono_type and a
 *             unisono_request are the library's from the function that makes them to the one that frees them.
 * Threads.    One call at a time on one unisono_comm; a second one gets UNISONO_ERR_BUSY and changes
 *             nothing. Different ones are independent. A unisono_type is never changed: any number of calls may use it.
 * Collective. All ranks call the same collectives in the same order, with the same root, bytes, count,
 *             datatype and op (MPI 4.1, 7.1). A blocking call returns when this rank's part is complete.
 * Errors.     0 is success, errors are negative and keep their numbers for good. When a collective
 *             fails on one rank, every rank gets an error at this or its next call, none is left
 *             waiting, and the communicator stays unusable: requests and handle are left to be freed. Not so
 *             for UNISONO_ERR_NULL, UNISONO_ERR_BUSY, UNISONO_ERR_REQUEST, and UNISONO_ERR_MEMORY of a request,
 *             which nobody else learns of.
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
#define UNISONO_ERR_PEER (-7)       /* another rank refused its arguments (see unisono_comm_renew, unisono_posix.h) */
#define UNISONO_ERR_DIED (-8)       /* a rank is gone (see unisono_report_death) */
#define UNISONO_ERR_LATE (-9)       /* a rank was waited for longer than its bound of time */
#define UNISONO_ERR_CORRUPT (-10)   /* the segment holds words that no rank writes */
#define UNISONO_ERR_MEMORY (-11)    /* no memory for a communicator, a type, a request or a segment */
#define UNISONO_ERR_OTHER (-12)     /* none of the above */
#define UNISONO_ERR_HOST (-13)      /* a start-up between processes failed (see unisono_posix.h) */
#define UNISONO_ERR_REQUEST (-14)   /* a request is active, or can't be started */

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
 * parameter out of bounds. ERR_SEGMENT: memory that is in use: its first eight bytes are not zero, because a segment is
 * there already, or something else.
 */
int unisono_create(void *memory, size_t bytes, const unisono_params *params);

/* A process's handle on a segment. */
typedef struct unisono_comm unisono_comm;

/*
 * Joins the segment at `memory` as `rank`, and writes the handle to `comm` (null on an error). The
 * address may differ between processes. ERR_NOT_READY: not created yet, try again. ERR_SEGMENT:
 * something else. ERR_ARGUMENT: fewer bytes than the segment has, or a rank that it was not made for. ERR_MEMORY: the
 * other ranks are told (ERR_DIED).
 */
int unisono_attach(void *memory, size_t bytes, uint32_t rank, unisono_comm **comm);

/*
 * Frees the handle; null is no error. The memory stays mapped, it is the caller's. ERR_REQUEST: the communicator has
 * requests that were not freed; nothing has changed.
 */
int unisono_free(unisono_comm *comm);

/* This process's rank, the number of processes; or a negative error number. */
int unisono_rank(const unisono_comm *comm);
int unisono_size(const unisono_comm *comm);

/* What ran a call (docs/reference/algorithms.md). */
enum unisono_algorithm {
    UNISONO_ALGORITHM_NONE = 0,
    UNISONO_ALGORITHM_POSTED = 1,
    UNISONO_ALGORITHM_QUEUE = 2,
    UNISONO_ALGORITHM_EXCHANGE = 3,
    UNISONO_ALGORITHM_SLICES = 4,
    UNISONO_ALGORITHM_CICO = 5,
    UNISONO_ALGORITHM_DISSEMINATION = 6,
    UNISONO_ALGORITHM_CENTRAL = 7,
    UNISONO_ALGORITHM_COMBINING = 8,
};

/*
 * The algorithm that ran the last blocking collective on `comm` that succeeded, NONE before the first; or a negative error
 * number. And its name, as decision tables have it; never null, never to be freed.
 */
int unisono_ran(const unisono_comm *comm);
const char *unisono_algorithm_name(int algorithm);

/*
 * Tells all ranks that process `rank` is gone: calls that wait, and all later ones, end with
 * ERR_DIED. For who sees a process end (waitpid, pidfd); may be called while another call uses `comm`.
 */
int unisono_report_death(const unisono_comm *comm, uint32_t rank);

/*
 * Bounds each wait inside a call on `comm`, and what is looked for again and again by unisono_test: whoever is late for
 * longer is named in ERR_LATE, on all ranks. 0, as at first: no bound, as a rank may compute for hours. The time between
 * two calls of unisono_test counts for half a bound at most. Communicators that are made from `comm` inherit it.
 */
int unisono_set_timeout(unisono_comm *comm, uint64_t milliseconds);

/* ---- Collectives (MPI 4.1, chapter 7) ----------------------------------------------------------- */

/*
 * Passed for `send`, where a collective allows it: what is sent lies in `receive` already, where it
 * would go to. Bytes, counts and displacements of `send` are ignored then.
 */
#define UNISONO_IN_PLACE ((void *)-1)

/* MPI_Barrier (7.3). What any rank wrote to memory before is visible to every rank after. */
int unisono_barrier(unisono_comm *comm);

/*
 * What moves: blocks of bytes. `bytes` are those of one block. A buffer of all ranks' blocks holds them
 * one behind the other, in rank order; with counts[r] and displacements[r], both in bytes, rank
 * r's block begins displacements[r] from the buffer's start. Blocks that are received must not
 * overlap. What MPI calls not significant at a rank is ignored, and may be null. For data with holes: see
 * Datatypes, below.
 */

/* MPI_Bcast (7.4): `bytes` bytes at the root's `buffer` go to everyone's. */
int unisono_bcast(unisono_comm *comm, void *buffer, uint64_t bytes, uint32_t root);

/* MPI_Gather, MPI_Gatherv (7.5): everyone's `send` goes to its block of the root's `receive`. In place: the root. */
int unisono_gather(unisono_comm *comm, const void *send, void *receive, uint64_t bytes, uint32_t root);
int unisono_gatherv(unisono_comm *comm, const void *send, uint64_t bytes, void *receive, const uint64_t *counts,
                    const uint64_t *displacements, uint32_t root);

/*
 * MPI_Scatter, MPI_Scatterv (7.6): each block of the root's `send` goes to its rank's `receive`. In place:
 * UNISONO_IN_PLACE for the root's `receive`.
 */
int unisono_scatter(unisono_comm *comm, const void *send, void *receive, uint64_t bytes, uint32_t root);
int unisono_scatterv(unisono_comm *comm, const void *send, const uint64_t *counts, const uint64_t *displacements,
                     void *receive, uint64_t bytes, uint32_t root);

/* MPI_Allgather, MPI_Allgatherv (7.7): everyone's `send` goes to its block of everyone's `receive`. In place: all. */
int unisono_allgather(unisono_comm *comm, const void *send, void *receive, uint64_t bytes);
int unisono_allgatherv(unisono_comm *comm, const void *send, uint64_t bytes, void *receive, const uint64_t *counts,
                       const uint64_t *displacements);

/* MPI_Alltoall, MPI_Alltoallv (7.8): block r of everyone's `send` goes to rank r's `receive`. In place: all. */
int unisono_alltoall(unisono_comm *comm, const void *send, void *receive, uint64_t bytes);
int unisono_alltoallv(unisono_comm *comm, const void *send, const uint64_t *send_counts,
                      const uint64_t *send_displacements, void *receive, const uint64_t *counts,
                      const uint64_t *displacements);

/* ---- Datatypes (MPI 4.1, chapter 5) ------------------------------------------------------------- */

/*
 * How the bytes of one element lie in memory: blocks of bytes in an order, the packed order, with holes
 * between them that are neither sent nor written. The size of a type is its bytes without the holes, the
 * extent its bytes with them: element i of a buffer begins i extents from its start. All lengths,
 * strides, displacements and extents are bytes, and at most PTRDIFF_MAX. (What is folded is of the predefined
 * types of Reductions, below.)
 */
typedef struct unisono_type unisono_type;

/*
 * These make a type and write its handle to `type`, null on an error. Any process may, at any time; a type is
 * the process's own, for all its communicators, and no memory that is passed here is needed later.
 * ERR_NULL: `type`, or a list that has items, is null. ERR_ARGUMENT: as each says; or the type is larger
 * than memory can be. ERR_MEMORY: no memory for it.
 */

/* MPI_Type_contiguous of bytes: `bytes` bytes in a row. */
int unisono_type_contiguous(uint64_t bytes, unisono_type **type);

/*
 * MPI_Type_create_hvector of bytes: `blocks` blocks of `block` bytes, `stride` bytes from start to start. The
 * extent ends with the last block. ERR_ARGUMENT: the blocks overlap, `stride` is below `block`.
 */
int unisono_type_vector(uint64_t blocks, uint64_t block, uint64_t stride, unisono_type **type);

/*
 * MPI_Type_create_hindexed_block of bytes: `blocks` blocks of `block` bytes, the i-th one displacements[i] from
 * the element's start. The extent ends with the block that lies furthest. Blocks that are received
 * must not overlap, which is not checked.
 */
int unisono_type_indexed(uint64_t blocks, uint64_t block, const uint64_t *displacements, unisono_type **type);

/*
 * MPI_Type_create_struct of bytes, with the extent given (MPI_Type_create_resized): field i has bytes[i] bytes,
 * displacements[i] from the element's start; in C, its sizeof and offsetof, and `extent` is the
 * struct's sizeof. Fields that are received must not overlap, which is not checked. ERR_ARGUMENT:
 * a field ends behind the extent.
 */
int unisono_type_struct(uint64_t fields, const uint64_t *bytes, const uint64_t *displacements, uint64_t extent,
                        unisono_type **type);

/* Frees a type that no call is using; null is no error. */
int unisono_type_free(unisono_type *type);

/*
 * MPI_Alltoallw (7.8): block r of everyone's `send` goes to rank r's `receive`. The block for rank r is
 * send_counts[r] elements of send_types[r], and begins send_displacements[r] bytes from `send`; likewise
 * counts[r], types[r], displacements[r] for what comes from rank r. The two sides of a block may differ in type and
 * count, but not in packed bytes. In place: all; what rank r sends to s has the count and type of what it
 * receives from s. Blocks that are received must not overlap, but may lie in each other's holes. ERR_ARGUMENT:
 * blocks without holes overlap (others are not checked); a list or a type is null; a block ends beyond
 * PTRDIFF_MAX. ERR_MISMATCH: packed bytes of two ranks differ.
 */
int unisono_alltoallw(unisono_comm *comm, const void *send, const uint64_t *send_counts,
                      const uint64_t *send_displacements, const unisono_type *const *send_types, void *receive,
                      const uint64_t *counts, const uint64_t *displacements, const unisono_type *const *types);

/*
 * The collectives above whose blocks are equal, with a count and a type on each side: `send_count` elements of
 * `send_type` in each block of `send`, `count` of `type` in each block of `receive`. Blocks of all ranks lie
 * one behind the other, `count` extents apart. The packed bytes of a block are the same on both sides and all
 * ranks, types and counts need not be. In place as above: the count and type of that side are ignored.
 */
int unisono_bcast_typed(unisono_comm *comm, void *buffer, uint64_t count, const unisono_type *type, uint32_t root);
int unisono_gather_typed(unisono_comm *comm, const void *send, uint64_t send_count, const unisono_type *send_type,
                         void *receive, uint64_t count, const unisono_type *type, uint32_t root);
int unisono_scatter_typed(unisono_comm *comm, const void *send, uint64_t send_count, const unisono_type *send_type,
                          void *receive, uint64_t count, const unisono_type *type, uint32_t root);
int unisono_allgather_typed(unisono_comm *comm, const void *send, uint64_t send_count, const unisono_type *send_type,
                            void *receive, uint64_t count, const unisono_type *type);
int unisono_alltoall_typed(unisono_comm *comm, const void *send, uint64_t send_count, const unisono_type *send_type,
                           void *receive, uint64_t count, const unisono_type *type);

/* ---- Reductions --------------------------------------------------------------------------------- */

/* Datatypes. Pairs are structs of a value and its index. */
#define UNISONO_BOOL (1)         /* _Bool */
#define UNISONO_I8 (2)           /* int8_t */
#define UNISONO_I16 (3)          /* int16_t */
#define UNISONO_I32 (4)          /* int32_t */
#define UNISONO_I64 (5)          /* int64_t */
#define UNISONO_U8 (6)           /* uint8_t */
#define UNISONO_U16 (7)          /* uint16_t */
#define UNISONO_U32 (8)          /* uint32_t */
#define UNISONO_U64 (9)          /* uint64_t */
#define UNISONO_F32 (10)         /* float */
#define UNISONO_F64 (11)         /* double */
#define UNISONO_COMPLEX_F32 (12) /* float _Complex */
#define UNISONO_COMPLEX_F64 (13) /* double _Complex */
#define UNISONO_FLOAT_INT (14)   /* float, int32_t */
#define UNISONO_DOUBLE_INT (15)  /* double, int32_t */
#define UNISONO_LONG_INT (16)    /* int64_t, int32_t */
#define UNISONO_2INT (17)        /* int32_t, int32_t */
#define UNISONO_SHORT_INT (18)   /* int16_t, int32_t */
#define UNISONO_2I64 (19)        /* int64_t, int64_t */

/* Elements of `bytes` bytes, 1 .. 4096 and at most a slot (`queue_fragment`), that only an operation of the caller's understands. */
#define UNISONO_OPAQUE(bytes) (-(int)(bytes))

/*
 * right[i] = left[i] op right[i] for `count` elements, as MPI_User_function; both aligned to 16
 * bytes. A call may get a part of the elements. It must return normally (no longjmp, no C++ exception).
 */
typedef void unisono_function(const void *left, void *right, uint64_t count, void *context);

/* An operation of the caller's, to be passed by address; it is read during the call only. */
typedef struct unisono_op {
    unisono_function *function;
    void *context;   /* the function gets it */
    int commutative; /* 0: the order of operands counts */
} unisono_op;

/* Predefined operations, and the datatypes that they are defined for (MPI 4.1, 7.9.2 to 7.9.4). */
#define UNISONO_SUM ((const unisono_op *)1)     /* numbers; integers wrap */
#define UNISONO_PROD ((const unisono_op *)2)    /* numbers; integers wrap */
#define UNISONO_MIN ((const unisono_op *)3)     /* integers, floats; NaN if any is */
#define UNISONO_MAX ((const unisono_op *)4)     /* integers, floats; NaN if any is */
#define UNISONO_LAND ((const unisono_op *)5)    /* bool, integers; 1 or 0 */
#define UNISONO_LOR ((const unisono_op *)6)     /* bool, integers; 1 or 0 */
#define UNISONO_LXOR ((const unisono_op *)7)    /* bool, integers; 1 or 0 */
#define UNISONO_BAND ((const unisono_op *)8)    /* integers */
#define UNISONO_BOR ((const unisono_op *)9)     /* integers */
#define UNISONO_BXOR ((const unisono_op *)10)   /* integers */
#define UNISONO_MINLOC ((const unisono_op *)11) /* pairs; of equal values the lowest index */
#define UNISONO_MAXLOC ((const unisono_op *)12) /* pairs; of equal values the lowest index */

/*
 * In all of these `send` is UNISONO_IN_PLACE, or equal to `receive`, or apart from it; `count` and
 * `counts` are elements of `datatype`. Operands are folded in rank order, unless the operation is
 * commutative.
 */

/* MPI_Reduce (7.9.1): the fold of everyone's `send` goes to the root's `receive`. In place: the root. */
int unisono_reduce(unisono_comm *comm, const void *send, void *receive, uint64_t count, int datatype,
                   const unisono_op *op, uint32_t root);

/* MPI_Allreduce (7.9.6): it goes to everyone's `receive`, the same bits on all ranks. */
int unisono_allreduce(unisono_comm *comm, const void *send, void *receive, uint64_t count, int datatype,
                      const unisono_op *op);

/*
 * MPI_Reduce_scatter_block, MPI_Reduce_scatter (7.10): `send` holds a block for each rank, of `count`
 * elements, or of counts[r]; the fold of everyone's block r goes to rank r's `receive`. In place: all
 * blocks lie in `receive`, and the result comes to its start; the rest of it is undefined then.
 */
int unisono_reduce_scatter_block(unisono_comm *comm, const void *send, void *receive, uint64_t count, int datatype,
                                 const unisono_op *op);
int unisono_reduce_scatter(unisono_comm *comm, const void *send, void *receive, const uint64_t *counts, int datatype,
                           const unisono_op *op);

/*
 * MPI_Scan, MPI_Exscan (7.11): the fold of the `send` of ranks 0 .. r, or 0 .. r - 1, goes to rank
 * r's `receive`. Exscan leaves rank 0's alone.
 */
int unisono_scan(unisono_comm *comm, const void *send, void *receive, uint64_t count, int datatype,
                 const unisono_op *op);
int unisono_exscan(unisono_comm *comm, const void *send, void *receive, uint64_t count, int datatype,
                   const unisono_op *op);

/* ---- Nonblocking and persistent operations (MPI 4.1, 7.12, 7.13, 3.9) -------------------------------- */

/*
 * A request is an operation that was started, or that may be started again and again. It belongs to one communicator,
 * which completes its requests in the order of their start: all ranks start the same ones in the same order, blocking
 * calls among them. Any call on a communicator moves what is in flight there: a program that computes calls
 * unisono_test now and then. A call that waits, and a unisono_test that is called again and again, also moves what the
 * same thread has started on other communicators: ranks may make the operations of several in different orders.
 *
 * Buffers are left alone from start to completion (what is sent may be read). Lists of counts, displacements and types,
 * the types in them, and the context of an operation of the caller's stay as they are until the request is freed. A
 * request is the library's until it is freed, and is used by one thread at a time.
 *
 * ERR_REQUEST: a request's state does not allow the call, which has changed nothing. ERR_MEMORY: nothing was started.
 */
typedef struct unisono_request unisono_request;

/* Starts a persistent request that is not active (MPI_Start). */
int unisono_start(unisono_request *request);

/*
 * Moves what is in flight, and writes to `done` 1 if the request is complete, else 0 (MPI_Test). When complete, or
 * failed, a nonblocking request is freed and null is written to `request`; a persistent one is inactive, and may be
 * started again. Null, and a request that is not active, are complete.
 */
int unisono_test(unisono_request **request, int *done);

/* Waits until the request is complete; then as unisono_test (MPI_Wait). */
int unisono_wait(unisono_request **request);

/*
 * Waits for all of `count` requests, in their order, and moves the communicators of all meanwhile, whichever thread
 * started them (MPI_Waitall). Answers the first failure; all are complete or failed then.
 */
int unisono_wait_all(size_t count, unisono_request **requests);

/*
 * Frees a request, and writes null to `request` (MPI_Request_free); null is no error. ERR_REQUEST: it is active. After
 * an error of its communicator it may be freed all the same.
 */
int unisono_request_free(unisono_request **request);

/*
 * Start an operation, with the arguments of the blocking call, and write its request to `request`, null on an error:
 * then the communicator is as after an error of the blocking call.
 */
int unisono_ibarrier(unisono_comm *comm, unisono_request **request);
int unisono_ibcast(unisono_comm *comm, void *buffer, uint64_t bytes, uint32_t root, unisono_request **request);
int unisono_igather(unisono_comm *comm, const void *send, void *receive, uint64_t bytes, uint32_t root,
                    unisono_request **request);
int unisono_igatherv(unisono_comm *comm, const void *send, uint64_t bytes, void *receive, const uint64_t *counts,
                     const uint64_t *displacements, uint32_t root, unisono_request **request);
int unisono_iscatter(unisono_comm *comm, const void *send, void *receive, uint64_t bytes, uint32_t root,
                     unisono_request **request);
int unisono_iscatterv(unisono_comm *comm, const void *send, const uint64_t *counts, const uint64_t *displacements,
                      void *receive, uint64_t bytes, uint32_t root, unisono_request **request);
int unisono_iallgather(unisono_comm *comm, const void *send, void *receive, uint64_t bytes, unisono_request **request);
int unisono_iallgatherv(unisono_comm *comm, const void *send, uint64_t bytes, void *receive, const uint64_t *counts,
                        const uint64_t *displacements, unisono_request **request);
int unisono_ialltoall(unisono_comm *comm, const void *send, void *receive, uint64_t bytes, unisono_request **request);
int unisono_ialltoallv(unisono_comm *comm, const void *send, const uint64_t *send_counts,
                       const uint64_t *send_displacements, void *receive, const uint64_t *counts,
                       const uint64_t *displacements, unisono_request **request);
int unisono_ialltoallw(unisono_comm *comm, const void *send, const uint64_t *send_counts,
                       const uint64_t *send_displacements, const unisono_type *const *send_types, void *receive,
                       const uint64_t *counts, const uint64_t *displacements, const unisono_type *const *types,
                       unisono_request **request);
int unisono_ibcast_typed(unisono_comm *comm, void *buffer, uint64_t count, const unisono_type *type, uint32_t root,
                         unisono_request **request);
int unisono_igather_typed(unisono_comm *comm, const void *send, uint64_t send_count, const unisono_type *send_type,
                          void *receive, uint64_t count, const unisono_type *type, uint32_t root,
                          unisono_request **request);
int unisono_iscatter_typed(unisono_comm *comm, const void *send, uint64_t send_count, const unisono_type *send_type,
                           void *receive, uint64_t count, const unisono_type *type, uint32_t root,
                           unisono_request **request);
int unisono_iallgather_typed(unisono_comm *comm, const void *send, uint64_t send_count, const unisono_type *send_type,
                             void *receive, uint64_t count, const unisono_type *type, unisono_request **request);
int unisono_ialltoall_typed(unisono_comm *comm, const void *send, uint64_t send_count, const unisono_type *send_type,
                            void *receive, uint64_t count, const unisono_type *type, unisono_request **request);
int unisono_ireduce(unisono_comm *comm, const void *send, void *receive, uint64_t count, int datatype,
                    const unisono_op *op, uint32_t root, unisono_request **request);
int unisono_iallreduce(unisono_comm *comm, const void *send, void *receive, uint64_t count, int datatype,
                       const unisono_op *op, unisono_request **request);
int unisono_ireduce_scatter_block(unisono_comm *comm, const void *send, void *receive, uint64_t count, int datatype,
                                  const unisono_op *op, unisono_request **request);
int unisono_ireduce_scatter(unisono_comm *comm, const void *send, void *receive, const uint64_t *counts, int datatype,
                            const unisono_op *op, unisono_request **request);
int unisono_iscan(unisono_comm *comm, const void *send, void *receive, uint64_t count, int datatype,
                  const unisono_op *op, unisono_request **request);
int unisono_iexscan(unisono_comm *comm, const void *send, void *receive, uint64_t count, int datatype,
                    const unisono_op *op, unisono_request **request);

/* Prepare one: arguments are checked here, once. unisono_start starts it. Called in the same order on all ranks. */
int unisono_barrier_init(unisono_comm *comm, unisono_request **request);
int unisono_bcast_init(unisono_comm *comm, void *buffer, uint64_t bytes, uint32_t root, unisono_request **request);
int unisono_gather_init(unisono_comm *comm, const void *send, void *receive, uint64_t bytes, uint32_t root,
                        unisono_request **request);
int unisono_gatherv_init(unisono_comm *comm, const void *send, uint64_t bytes, void *receive, const uint64_t *counts,
                         const uint64_t *displacements, uint32_t root, unisono_request **request);
int unisono_scatter_init(unisono_comm *comm, const void *send, void *receive, uint64_t bytes, uint32_t root,
                         unisono_request **request);
int unisono_scatterv_init(unisono_comm *comm, const void *send, const uint64_t *counts, const uint64_t *displacements,
                          void *receive, uint64_t bytes, uint32_t root, unisono_request **request);
int unisono_allgather_init(unisono_comm *comm, const void *send, void *receive, uint64_t bytes,
                           unisono_request **request);
int unisono_allgatherv_init(unisono_comm *comm, const void *send, uint64_t bytes, void *receive, const uint64_t *counts,
                            const uint64_t *displacements, unisono_request **request);
int unisono_alltoall_init(unisono_comm *comm, const void *send, void *receive, uint64_t bytes,
                          unisono_request **request);
int unisono_alltoallv_init(unisono_comm *comm, const void *send, const uint64_t *send_counts,
                           const uint64_t *send_displacements, void *receive, const uint64_t *counts,
                           const uint64_t *displacements, unisono_request **request);
int unisono_alltoallw_init(unisono_comm *comm, const void *send, const uint64_t *send_counts,
                           const uint64_t *send_displacements, const unisono_type *const *send_types, void *receive,
                           const uint64_t *counts, const uint64_t *displacements, const unisono_type *const *types,
                           unisono_request **request);
int unisono_bcast_typed_init(unisono_comm *comm, void *buffer, uint64_t count, const unisono_type *type, uint32_t root,
                             unisono_request **request);
int unisono_gather_typed_init(unisono_comm *comm, const void *send, uint64_t send_count, const unisono_type *send_type,
                              void *receive, uint64_t count, const unisono_type *type, uint32_t root,
                              unisono_request **request);
int unisono_scatter_typed_init(unisono_comm *comm, const void *send, uint64_t send_count, const unisono_type *send_type,
                               void *receive, uint64_t count, const unisono_type *type, uint32_t root,
                               unisono_request **request);
int unisono_allgather_typed_init(unisono_comm *comm, const void *send, uint64_t send_count,
                                 const unisono_type *send_type, void *receive, uint64_t count, const unisono_type *type,
                                 unisono_request **request);
int unisono_alltoall_typed_init(unisono_comm *comm, const void *send, uint64_t send_count,
                                const unisono_type *send_type, void *receive, uint64_t count, const unisono_type *type,
                                unisono_request **request);
int unisono_reduce_init(unisono_comm *comm, const void *send, void *receive, uint64_t count, int datatype,
                        const unisono_op *op, uint32_t root, unisono_request **request);
int unisono_allreduce_init(unisono_comm *comm, const void *send, void *receive, uint64_t count, int datatype,
                           const unisono_op *op, unisono_request **request);
int unisono_reduce_scatter_block_init(unisono_comm *comm, const void *send, void *receive, uint64_t count, int datatype,
                                      const unisono_op *op, unisono_request **request);
int unisono_reduce_scatter_init(unisono_comm *comm, const void *send, void *receive, const uint64_t *counts,
                                int datatype, const unisono_op *op, unisono_request **request);
int unisono_scan_init(unisono_comm *comm, const void *send, void *receive, uint64_t count, int datatype,
                      const unisono_op *op, unisono_request **request);
int unisono_exscan_init(unisono_comm *comm, const void *send, void *receive, uint64_t count, int datatype,
                        const unisono_op *op, unisono_request **request);

#ifdef __cplusplus
}
#endif

#endif
