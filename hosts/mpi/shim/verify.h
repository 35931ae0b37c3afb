/*
 * UNISONO_VERIFY=1: after each of Unisono's collectives the MPI's runs with the same arguments, and the received data
 * of both is compared. If it differs, a line is printed on stderr and the job is aborted.
 *
 *     struct verify v;
 *     if (verify_on) verify_before(&v, &call);
 *     code = run_any(&call);
 *     if (verify_on && verify_between(&v, code)) verify_after(&v, PMPI_Allgather(...));
 *
 * Of a nonblocking or a persistent collective the MPI's nonblocking one runs beside ours (verify_started.c):
 *
 *     if (verify_on && verify_compares(&call)) s = verify_prepare(&call, comm);
 *     ...                     ours is started
 *     verify_start(s);
 *     ...                     ours is complete, and verify_is_done(s)
 *     verify_end(s);
 *
 * Data that is only moved, and integers, are compared byte by byte. Sums and products of floating-point numbers may
 * differ as much as another order of the ranks explains: verify.c says how much that is.
 */
#ifndef VERIFY_H
#define VERIFY_H

#include "shim.h"

/* Whether calls are verified: set once, before the first call, the same on all ranks. */
extern bool verify_on;

/* Number of calls of this process that were compared. */
uint64_t verify_calls(void);

/* Elements that consist of floats or doubles, and the pairs of MINLOC and MAXLOC that start with one. */
struct verify_real {
    size_t width; /* bytes of one number; 0: something else */
    bool complex, pair;
};

struct verify {
    const struct shim_call *call;
    uint64_t packed;    /* bytes that are received, without holes */
    int64_t low, high;  /* all blocks lie in the bytes low .. high, counted from the buffer's start */
    struct verify_real real; /* the elements of a reduction */
    char *input, *ours; /* the buffer's blocks before and after Unisono's collective, packed */
    char *span;         /* the bytes low .. high before the collective; null if there are no holes, or they are not looked at */
};

/* ---- Blocking collectives (verify.c) ------------------------------------------------------------- */

/* Keeps a copy of the data that Unisono's collective will overwrite. */
void verify_before(struct verify *v, const struct shim_call *call);

/* Keeps a copy of the received data, and restores the input for the MPI's collective. False: Unisono's collective
 * failed, and there is nothing to compare. */
bool verify_between(struct verify *v, int code);

/* Compares with the data that the MPI's collective, which returned `code`, has received since; then puts Unisono's
 * result into the buffer. */
void verify_after(struct verify *v, int code);

/* ---- Nonblocking and persistent ones (verify_started.c) ------------------------------------------ */

struct verify_started;

/* Is the call compared? The same on all ranks. */
bool verify_compares(const struct shim_call *call);

/* To be called before ours starts, which may overwrite its input. `comm`: where the MPI's will run. What the call points to must stay
 * until the end. */
struct verify_started *verify_prepare(const struct shim_call *call, MPI_Comm comm);

/* Starts the MPI's. All ranks call it in the same order, as the program starts collectives on the communicator. */
void verify_start(struct verify_started *s);

/* Tests the MPI's of all calls. Not to be called under a lock that is needed where the MPI makes progress. */
void verify_move(void);
bool verify_is_done(const struct verify_started *s);

/* Once ours is complete, and the MPI's done: compares what was received, and frees s. */
void verify_end(struct verify_started *s);
/* Ours has failed: frees s, if need be when the MPI is done with its memory. May be null. */
void verify_abandon(struct verify_started *s);

/* The communicator is being freed: waits for the MPI's collectives on it. */
void verify_finish(MPI_Comm comm);

/* ---- What both need (verify.c) ------------------------------------------------------------------- */

__attribute__((noreturn, format(printf, 2, 3))) void verify_stop(const struct verify *v, const char *format, ...);
/* The MPI's collective has failed. */
__attribute__((noreturn)) void verify_fail(const struct verify *v, int code);
void *verify_memory(const struct verify *v, size_t bytes);

/* Computes with addresses as numbers: the base may be MPI_BOTTOM, or lie before a copy of which only a part exists. */
static inline void *verify_shifted(const void *base, int64_t by) { return (void *)((uintptr_t)base + (uintptr_t)by); }

/* Fills v with what is known before the call. */
void verify_measure(struct verify *v, const struct shim_call *call);
/* Packs all received blocks, or unpacks them, in the program's buffer, or in a copy of it that starts at `base`. */
void verify_transfer(const struct verify *v, void *base, char *image, bool pack);
/* The same into new memory. */
char *verify_received(const struct verify *v, void *base);

/* How much results may differ: of sums and products; else `count` is 0, and nothing is needed. */
struct verify_scale {
    double *more, *less; /* sums of |x|; or products of those above 1, and of those below */
    size_t count, first; /* `first`: that of this rank's first component, of a fold by blocks */
    int ranks;
};
enum { VERIFY_PIECE = 1 << 30 }; /* components that the MPI adds up by one call: a count is an int */

/* This rank's part, from its operand. Null pointers are to be freed, too. */
struct verify_scale verify_scale_of(const struct verify *v);
/* The same of all ranks; collective. `requests`, two for each piece: the sums are complete when they are; null: at once. */
void verify_reduce_scale(const struct verify *v, struct verify_scale *s, MPI_Comm comm, MPI_Request *requests);

/* Compares `ours` with what the MPI's has received, packed, and counts the call. */
void verify_compare(const struct verify *v, const char *theirs, const struct verify_scale *s);

#endif
