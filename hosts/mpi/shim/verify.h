/*
 * UNISONO_VERIFY=1: after each of Unisono's collectives the MPI's runs with the same arguments, and the received data
 * of both is compared. If it differs, a line is printed on stderr and the job is aborted.
 *
 *     struct verify v;
 *     if (verify_on) verify_before(&v, &call);
 *     code = run_any(&call);
 *     if (verify_on && verify_between(&v, code)) verify_after(&v, PMPI_Allgather(...));
 *
 * Data that is only moved, and integers, are compared byte by byte. Sums and products of floating-point numbers may
 * differ as much as another order of the ranks explains: verify.c says how much that is.
 */
#ifndef VERIFY_H
#define VERIFY_H

#include "shim.h"

struct verify {
    const struct shim_call *call;
    uint64_t packed;    /* bytes that are received, without holes */
    int64_t low, high;  /* all blocks lie in the bytes low .. high, counted from the buffer's start */
    char *input, *ours; /* the buffer's blocks before and after Unisono's collective, packed */
    char *span;         /* the bytes low .. high before the collective; null if there are no holes */
};

/* Whether calls are verified: set once, before the first call, the same on all ranks. */
extern bool verify_on;

/* Keeps a copy of the data that Unisono's collective will overwrite. */
void verify_before(struct verify *v, const struct shim_call *call);

/* Keeps a copy of the received data, and restores the input for the MPI's collective. False: Unisono's collective
 * failed, and there is nothing to compare. */
bool verify_between(struct verify *v, int code);

/* Compares with the data that the MPI's collective, which returned `code`, has received since; then puts Unisono's
 * result into the buffer. */
void verify_after(struct verify *v, int code);

/* Number of calls of this process that were compared. */
uint64_t verify_calls(void);

#endif
