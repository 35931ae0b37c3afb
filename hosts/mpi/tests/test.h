/* Shared by all these programs: every rank counts its expectations, and rank 0 prints the sums in one line. */
#ifndef TEST_H
#define TEST_H

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Counts an expectation; prints the first few that fail. Several threads may call it at once. */
bool expect(bool holds, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The MPI's own function, PMPI_..., where a preload has one of this name, too: `UNDERLYING(PMPI_Barrier)(comm)`. */
#define UNDERLYING(name) ((__typeof__(name) *)underlying_function(#name))
void *underlying_function(const char *name);

/* Prints the sums of all ranks, which it computes by the underlying MPI, not by the code under test. Calls
 * MPI_Finalize; returns the exit status. */
int finish(const char *name);

static inline void *allocate(size_t bytes) {
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) abort();
    return memory;
}

static inline int rank_in(MPI_Comm comm) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

static inline int size_of(MPI_Comm comm) {
    int size;
    MPI_Comm_size(comm, &size);
    return size;
}

#endif
