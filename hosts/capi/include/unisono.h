/*
 * Unisono: collective operations between processes that share memory.
 *
 * The caller maps the memory (mmap, shm_open, memfd ...). The library runs MPI's collectives in it, blocking,
 * nonblocking or persistent. It starts no threads, installs no signal handlers, opens no files, prints nothing and
 * never ends the process.
 *
 *   one process:    unisono_params_init, unisono_bytes, map that many zeroed bytes, unisono_create
 *   every process:  unisono_attach, collectives, unisono_free, unmap
 *
 * Units.      All lengths are in bytes, but for the counts of datatypes. Ranks are 0 .. ranks - 1.
 * Ownership.  Memory, buffers, counts, operations and contexts are the caller's. A unisono_comm is the library's, from
 *             unisono_attach to unisono_free; a child of fork must not use its parent's. A unisono_type and a
 *             unisono_request are the library's from the function that makes them to the one that frees them.
 * Threads.    One call at a time may use a unisono_comm; a second one returns UNISONO_ERR_BUSY and changes nothing.
 *             Different communicators are independent. Any number of calls may use a unisono_type, which never changes.
 * Collective. All ranks call the same collectives in the same order, with the same root, bytes, count, datatype and op
 *             (MPI 4.1, 7.1). A blocking call returns when this rank's part is complete.
 * Errors.     0 is success. Errors are negative, and their numbers never change. When a collective fails on one rank,
 *             every rank gets an error from this call or its next one, and no rank waits for ever. The communicator
 *   can't be used after that: its requests and the handle can only be freed. The exceptions are UNISONO_ERR_NULL,
 *             UNISONO_ERR_BUSY, UNISONO_ERR_REQUEST, and UNISONO_ERR_MEMORY for a request: they change nothing, and the
 *             other ranks do not learn of them.
 * Trust.      Whatever other processes write into the memory, this library accesses nothing outside of it and the
 *             buffers; the result is an error or wrong data.
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
#define UNISONO_ERR_DIED (-8)       /* a rank has died (see unisono_report_death) */
#define UNISONO_ERR_LATE (-9)       /* a rank was waited for longer than the timeout (see unisono_set_timeout) */
#define UNISONO_ERR_CORRUPT (-10)   /* the segment has words that no rank can have written */
#define UNISONO_ERR_MEMORY (-11)    /* no memory for a communicator, a type, a request or a segment */
#define UNISONO_ERR_OTHER (-12)     /* none of the above */
#define UNISONO_ERR_HOST (-13)      /* a start-up between processes failed (see unisono_posix.h) */
#define UNISONO_ERR_REQUEST (-14)   /* a request is active, or can't be started */

/* A short text for an error number, and its name as above. Never null; not to be freed. */
const char *unisono_strerror(int code);
const char *unisono_error_name(int code);

/*
 * Writes the text of the calling thread's last error into the `len` bytes at `buf`, cut to fit and terminated by a
 * zero. The text names the argument, its value and the bound, or the rank and the operation. Returns the length of the
 * whole text without the zero, like snprintf; 0 if no call of this thread has failed.
 */
size_t unisono_last_error(char *buf, size_t len);

/* ---- Segments --------------------------------------------------------------------------------- */

/* The parameters of a segment. Fill it by unisono_params_init first; later versions add fields only at the end. */
typedef struct unisono_params {
    uint32_t size;           /* sizeof(unisono_params); set by unisono_params_init */
    uint32_t ranks;          /* number of processes, 1 .. 2^20 */
    uint64_t page;           /* bytes of a page, a power of two */
    uint64_t queue_fragment; /* bytes of a slot, which holds one fragment of a large message; a multiple of 64 */
    uint32_t queue_slots;    /* slots of each rank's queue, a power of two */
    uint32_t lines;          /* lines of each rank for small messages, a power of two, at least 2 */
} unisono_params;

/* Fills `params` with default values for `ranks` processes. `size` is sizeof(unisono_params). */
int unisono_params_init(unisono_params *params, size_t size, uint32_t ranks);

/* Writes to `bytes` the size of a segment with these parameters. */
int unisono_bytes(const unisono_params *params, uint64_t *bytes);

/*
 * Makes the `bytes` bytes at `memory` a segment. They must be zero, aligned to a page (at least to 64 bytes), and
 * shared by all processes. One process calls it, once. ERR_ARGUMENT: too few bytes, or a parameter out of bounds.
 * ERR_SEGMENT: the memory is in use, because its first eight bytes are not zero.
 */
int unisono_create(void *memory, size_t bytes, const unisono_params *params);

/* A process's handle on a segment. */
typedef struct unisono_comm unisono_comm;

/*
 * Joins the segment at `memory` as `rank`, and writes the handle to `comm` (null on an error). The address may differ
 * between processes. ERR_NOT_READY: the segment was not created yet; try again. ERR_SEGMENT: the memory has something
 * else. ERR_ARGUMENT: fewer bytes than the segment has, or a rank out of range. ERR_MEMORY: no memory for the handle;
 * the other ranks get ERR_DIED.
 */
int unisono_attach(void *memory, size_t bytes, uint32_t rank, unisono_comm **comm);

/*
 * Frees the handle; null is allowed. The memory stays mapped: it is the caller's. ERR_REQUEST: the communicator has
 * requests that were not freed; nothing has changed.
 */
int unisono_free(unisono_comm *comm);

/* Return this process's rank and the number of processes; or a negative error number. */
int unisono_rank(const unisono_comm *comm);
int unisono_size(const unisono_comm *comm);

/* The algorithms that run calls (docs/reference/algorithms.md). */
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
    UNISONO_ALGORITHM_DOUBLING = 9,
    UNISONO_ALGORITHM_TREE = 10,
    UNISONO_ALGORITHM_GROUPS = 11,
};

/*
 * unisono_ran returns the algorithm that ran the last successful blocking collective on `comm`, NONE before the first;
 * or a negative error number. unisono_algorithm_name returns its name as in decision tables; never null, not to be
 * freed.
 */
int unisono_ran(const unisono_comm *comm);
const char *unisono_algorithm_name(int algorithm);

/*
 * Tells all ranks that process `rank` has died: calls that wait, and all later ones, return ERR_DIED. For a program
 * that sees a process end (waitpid, pidfd). It may be called while another call uses `comm`.
 */
int unisono_report_death(const unisono_comm *comm, uint32_t rank);

/*
 * Sets the longest time that a call on `comm` waits for another rank, also over repeated calls of unisono_test. If a
 * rank is later, all ranks get ERR_LATE, and the text names it. 0 is the default: no timeout, because a rank may
 * compute for hours. The time between two calls of unisono_test counts as half the timeout at most. Communicators that
 * are made from `comm` inherit it.
 */
int unisono_set_timeout(unisono_comm *comm, uint64_t milliseconds);

/* ---- Collectives (MPI 4.1, chapter 7) ----------------------------------------------------------- */

/*
 * As MPI_IN_PLACE: passed for `send`, where a collective allows it. The data to send is already in `receive`, in the
 * place that this rank's data has there. Bytes, counts and displacements of `send` are ignored.
 */
#define UNISONO_IN_PLACE ((void *)-1)

/* MPI_Barrier (7.3). What a rank wrote to shared memory before the call is visible to every rank after it. */
int unisono_barrier(unisono_comm *comm);

/*
 * The collectives below move blocks of bytes. `bytes` is the length of one block. A buffer for all ranks has their
 * blocks one after the other, in rank order. With counts[r] and displacements[r], both in bytes, rank r's block has
 * counts[r] bytes and starts displacements[r] bytes after the buffer's start. Blocks that are received must not
 * overlap. Arguments that MPI calls not significant at a rank are ignored, and may be null. For data with holes see
 * Datatypes, below.
 */

/* MPI_Bcast (7.4): `bytes` bytes at the root's `buffer` go to every rank's `buffer`. */
int unisono_bcast(unisono_comm *comm, void *buffer, uint64_t bytes, uint32_t root);

/* MPI_Gather, MPI_Gatherv (7.5): each rank's `send` goes to its block of the root's `receive`. In place: the root. */
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

/*
 * MPI_Allgather, MPI_Allgatherv (7.7): each rank's `send` goes to its block of every rank's `receive`. In place: on all
 * ranks.
 */
int unisono_allgather(unisono_comm *comm, const void *send, void *receive, uint64_t bytes);
int unisono_allgatherv(unisono_comm *comm, const void *send, uint64_t bytes, void *receive, const uint64_t *counts,
                       const uint64_t *displacements);

/*
 * MPI_Alltoall, MPI_Alltoallv (7.8): block r of rank s's `send` goes to block s of rank r's `receive`. In place: on all
 * ranks.
 */
int unisono_alltoall(unisono_comm *comm, const void *send, void *receive, uint64_t bytes);
int unisono_alltoallv(unisono_comm *comm, const void *send, const uint64_t *send_counts,
                      const uint64_t *send_displacements, void *receive, const uint64_t *counts,
                      const uint64_t *displacements);

/* ---- Datatypes (MPI 4.1, chapter 5) ------------------------------------------------------------- */

/*
 * A unisono_type says how the bytes of one element lie in memory: blocks of bytes in an order, the packed order, with
 * holes between them that are neither sent nor written. The size of a type is its bytes without the holes, the extent
 * its bytes with them: element i of a buffer starts i extents after the buffer's start. All lengths, strides,
 * displacements and extents are in bytes, and at most PTRDIFF_MAX. (Reductions, below, use predefined datatypes
 * instead.)
 */
typedef struct unisono_type unisono_type;

/*
 * These functions make a type and write its handle to `type`, null on an error. They are local: a process makes types
 * at any time, for all its communicators. The memory that is passed here is not needed after the call. ERR_NULL: `type`
 * is null, or a list is null that must have items. ERR_ARGUMENT: as said at each function; or the type is larger than
 * memory can be. ERR_MEMORY: no memory for the type.
 */

/* MPI_Type_contiguous of bytes: `bytes` bytes without holes. */
int unisono_type_contiguous(uint64_t bytes, unisono_type **type);

/*
 * MPI_Type_create_hvector of bytes: `blocks` blocks of `block` bytes, `stride` bytes from the start of one to the start
 * of the next. The extent ends with the last block. ERR_ARGUMENT: the blocks overlap (`stride` is below `block`).
 */
int unisono_type_vector(uint64_t blocks, uint64_t block, uint64_t stride, unisono_type **type);

/*
 * MPI_Type_create_hindexed_block of bytes: `blocks` blocks of `block` bytes; block i starts displacements[i] bytes
 * after the element's start. The extent ends with the block of the largest displacement. Blocks that are received must
 * not overlap, which is not checked.
 */
int unisono_type_indexed(uint64_t blocks, uint64_t block, const uint64_t *displacements, unisono_type **type);

/*
 * MPI_Type_create_struct of bytes, with a given extent (MPI_Type_create_resized): field i has bytes[i] bytes and starts
 * displacements[i] bytes after the element's start. For a C struct these are the field's sizeof and offsetof, and
 * `extent` is the struct's sizeof. Fields that are received must not overlap, which is not checked. ERR_ARGUMENT: a
 * field ends after the extent.
 */
int unisono_type_struct(uint64_t fields, const uint64_t *bytes, const uint64_t *displacements, uint64_t extent,
                        unisono_type **type);

/* Frees a type that no call or request is using; null is allowed. */
int unisono_type_free(unisono_type *type);

/*
 * MPI_Alltoallw (7.8): block r of rank s's `send` goes to block s of rank r's `receive`. The block to rank r has
 * send_counts[r] elements of send_types[r], and starts send_displacements[r] bytes after `send`; likewise counts[r],
 * types[r] and displacements[r] for the block from rank r. The two sides of a block may differ in type and count, but
 * not in packed bytes. In place: on all ranks; the block that rank r sends to s has the count and type of the block
 * that it receives from s. Blocks that are received must not overlap, but may lie in each other's holes. ERR_ARGUMENT:
 * blocks without holes overlap (others are not checked); a list or a type is null; a block ends after PTRDIFF_MAX.
 * ERR_MISMATCH: the packed bytes of the two sides differ.
 */
int unisono_alltoallw(unisono_comm *comm, const void *send, const uint64_t *send_counts,
                      const uint64_t *send_displacements, const unisono_type *const *send_types, void *receive,
                      const uint64_t *counts, const uint64_t *displacements, const unisono_type *const *types);

/*
 * The collectives above with equal blocks, with a count and a type on each side: `send_count` elements of `send_type`
 * in each block of `send`, `count` elements of `type` in each block of `receive`. The blocks of all ranks lie one after
 * the other, `count` extents apart. The packed bytes of a block must be the same on both sides and all ranks; types and
 * counts need not be. In place as above: the count and type of that side are ignored.
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

/* Elements of `bytes` bytes, 1 .. 4096 and at most a slot (`queue_fragment`), for the caller's own operations. */
#define UNISONO_OPAQUE(bytes) (-(int)(bytes))

/*
 * Computes right[i] = left[i] op right[i] for `count` elements, as MPI_User_function; both arrays are aligned to 16
 * bytes. One call may get only a part of a reduction's elements. It must return normally (no longjmp, no C++
 * exception).
 */
typedef void unisono_function(const void *left, void *right, uint64_t count, void *context);

/* An operation of the caller's own, passed by address. The struct is read during the call only. */
typedef struct unisono_op {
    unisono_function *function;
    void *context;   /* passed to the function */
    int commutative; /* 0: the operands are folded in rank order */
} unisono_op;

/* Predefined operations, and the datatypes for which they are defined (MPI 4.1, 7.9.2 to 7.9.4). */
#define UNISONO_SUM ((const unisono_op *)1)     /* numbers; integers wrap */
#define UNISONO_PROD ((const unisono_op *)2)    /* numbers; integers wrap */
#define UNISONO_MIN ((const unisono_op *)3)     /* integers, floats; NaN if an operand is */
#define UNISONO_MAX ((const unisono_op *)4)     /* integers, floats; NaN if an operand is */
#define UNISONO_LAND ((const unisono_op *)5)    /* bool, integers; 1 or 0 */
#define UNISONO_LOR ((const unisono_op *)6)     /* bool, integers; 1 or 0 */
#define UNISONO_LXOR ((const unisono_op *)7)    /* bool, integers; 1 or 0 */
#define UNISONO_BAND ((const unisono_op *)8)    /* integers */
#define UNISONO_BOR ((const unisono_op *)9)     /* integers */
#define UNISONO_BXOR ((const unisono_op *)10)   /* integers */
#define UNISONO_MINLOC ((const unisono_op *)11) /* pairs; of equal values the lowest index */
#define UNISONO_MAXLOC ((const unisono_op *)12) /* pairs; of equal values the lowest index */

/*
 * In all of these `send` is UNISONO_IN_PLACE, or equal to `receive`, or does not overlap it. `count` and `counts` are
 * numbers of elements of `datatype`. Operands are folded in rank order, unless the operation is commutative.
 */

/* MPI_Reduce (7.9.1): the fold of all ranks' `send` goes to the root's `receive`. In place: at the root. */
int unisono_reduce(unisono_comm *comm, const void *send, void *receive, uint64_t count, int datatype,
                   const unisono_op *op, uint32_t root);

/* MPI_Allreduce (7.9.6): the fold goes to every rank's `receive`, the same bits on all ranks. */
int unisono_allreduce(unisono_comm *comm, const void *send, void *receive, uint64_t count, int datatype,
                      const unisono_op *op);

/*
 * MPI_Reduce_scatter_block, MPI_Reduce_scatter (7.10): `send` has a block for each rank, of `count` or counts[r]
 * elements. The fold of all ranks' block r goes to rank r's `receive`. In place: all blocks are in `receive`, and the
 * result goes to its start; the rest of `receive` is undefined then.
 */
int unisono_reduce_scatter_block(unisono_comm *comm, const void *send, void *receive, uint64_t count, int datatype,
                                 const unisono_op *op);
int unisono_reduce_scatter(unisono_comm *comm, const void *send, void *receive, const uint64_t *counts, int datatype,
                           const unisono_op *op);

/*
 * MPI_Scan, MPI_Exscan (7.11): the fold of the `send` of ranks 0 .. r, or 0 .. r - 1, goes to rank r's `receive`.
 * Exscan does not write rank 0's `receive`.
 */
int unisono_scan(unisono_comm *comm, const void *send, void *receive, uint64_t count, int datatype,
                 const unisono_op *op);
int unisono_exscan(unisono_comm *comm, const void *send, void *receive, uint64_t count, int datatype,
                   const unisono_op *op);

/* ---- Nonblocking and persistent operations (MPI 4.1, 7.12, 7.13, 3.9) -------------------------------- */

/*
 * A request is a nonblocking operation, or a persistent one that may be started again and again. It belongs to one
 * communicator, which completes its operations in the order of their start: all ranks start the same operations in the
 * same order, blocking calls included. Every call on a communicator makes progress on its operations in flight, so a
 * program that computes meanwhile calls unisono_test now and then. A call that waits, and repeated calls of
 * unisono_test, also make progress on operations that the same thread has started on other communicators. So ranks may
 * call the operations of several communicators in different orders.
 *
 * The program must not write buffers from start to completion, nor read those that are received into. Lists of counts,
 * displacements and types, the types in them, and the context of the caller's own operation must not change until the
 * request is freed. A request is the library's until it is freed. One thread at a time may use it.
 *
 * ERR_REQUEST: the request's state does not allow the call, which has changed nothing. ERR_MEMORY: nothing was started.
 */
typedef struct unisono_request unisono_request;

/* Starts a persistent request that is not active (MPI_Start). */
int unisono_start(unisono_request *request);

/*
 * Makes progress, and writes to `done` 1 if the request is complete, else 0 (MPI_Test). When it is complete or has
 * failed, a nonblocking request is freed and null is written to `request`; a persistent one is inactive, and may be
 * started again. Null, and a request that is not active, count as complete.
 */
int unisono_test(unisono_request **request, int *done);

/* Waits until the request is complete; then does what unisono_test does (MPI_Wait). */
int unisono_wait(unisono_request **request);

/*
 * Waits for all `count` requests, in their order, and makes progress on the communicators of all of them, whichever
 * thread started them (MPI_Waitall). Returns the first failure; all requests are complete or have failed then.
 */
int unisono_wait_all(size_t count, unisono_request **requests);

/*
 * Frees a request, and writes null to `request` (MPI_Request_free); null is allowed. ERR_REQUEST: the request is
 * active. After its communicator has failed an active request may be freed too.
 */
int unisono_request_free(unisono_request **request);

/*
 * Nonblocking: these start an operation, with the arguments of the blocking call, and write its request to `request`,
 * null on an error. After an error the communicator is in the same state as after an error of the blocking call.
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

/*
 * Persistent: these check the arguments, once, and write a request to `request` that unisono_start starts. All ranks
 * call them in the same order.
 */
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
