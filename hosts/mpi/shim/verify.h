/*
 * UNISONO_VERIFY=1: after a collective of ours, the MPI's runs with the same arguments, and what both received is compared.
 * A difference is a line on stderr and the end of the job.
 *
 *     struct verify v;
 *     if (verify_on) verify_before(&v, &call);
 *     code = shim_run(&call);
 *     if (verify_on && verify_between(&v, code)) verify_after(&v, PMPI_Allgather(...));
 *
 * Moves and integers are compared byte by byte. Sums and products of floating-point numbers may differ by what
 * another order of the ranks explains: verify.c says how much that is.
 */
#ifndef VERIFY_H
#define VERIFY_H

#include "shim.h"

struct verify {
    const struct shim_call *call;
    uint64_t packed;    /* bytes that are received, without holes */
    int64_t low, high;  /* the bytes from the first block's to the last's are low .. high, from the buffer's start */
    char *input, *ours; /* packed */
    char *span;         /* low .. high as it was; null: without holes */
};

/* Whether calls are verified at all: set once, before the first call, the same on all ranks. */
extern bool verify_on;

/* Keeps what ours will overwrite. */
void verify_before(struct verify *v, const struct shim_call *call);

/* Keeps what ours received, and gives the MPI's collective the same input. False: ours failed, there's nothing to compare. */
bool verify_between(struct verify *v, int code);

/* Compares with what the MPI's collective, which answered `code`, has received since; leaves ours in the buffer. */
void verify_after(struct verify *v, int code);

/* Calls of this process that were compared. */
uint64_t verify_calls(void);

#endif
