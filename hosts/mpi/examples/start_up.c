/*
 * start_up: how long MPI_Init, the first collective and MPI_Finalize take, in ms: the slowest rank's. With the preload the first two
 * are where ranks of a node find each other.
 */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * t.tv_sec + t.tv_nsec / 1e6;
}

int main(int argc, char **argv) {
    double begin = now();
    MPI_Init(&argc, &argv);
    double initialised = now();
    /* A broadcast of one byte: the root may leave before others come, so the slowest rank counts. */
    char byte = 0;
    MPI_Bcast(&byte, 1, MPI_BYTE, 0, MPI_COMM_WORLD);
    double mine[] = {initialised - begin, now() - initialised}, slowest[2];
    int rank, size;
    PMPI_Reduce(mine, slowest, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    begin = now();
    MPI_Finalize();
    if (rank == 0)
        printf("%d ranks: MPI_Init %.2f, first broadcast %.3f, MPI_Finalize %.2f ms\n", size, slowest[0], slowest[1], now() - begin);
    return 0;
}
