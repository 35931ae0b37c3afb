/* What all these programs share: expectations are counted on every rank, and rank 0 sums them up in one line. */
#ifndef TEST_H
#define TEST_H

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Counts; says what failed, the first few times. Two threads may count at once. */
bool expect(bool holds, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The sums of all ranks, by the underlying MPI: what is tested does not count itself. Finalises; answers the exit status. */
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
