/* Calls the collectives that liar.c lies about: doubles, whose sums depend on the order. Exits 0 if all is well. */
#include <mpi.h>
#include <stdio.h>

enum { N = 24, MOST = 8 };

int main(int argc, char **argv) {
    int rank, size, counts[MOST], starts[MOST];
    double mine[N], all[N * MOST];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > MOST) MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < N; i++) mine[i] = (i % 2 ? -0.1 : 0.1) / (rank + 3);
    for (int r = 0; r < size; r++) counts[r] = N - r, starts[r] = r * N;
    MPI_Bcast(mine, N, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Allreduce(mine, all, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Alltoall(mine, N / MOST, MPI_DOUBLE, all, N / MOST, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Gatherv(mine, N - rank, MPI_DOUBLE, all, counts, starts, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
