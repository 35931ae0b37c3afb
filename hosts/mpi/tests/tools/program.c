/*
 * Calls of each kind that a tool counts, each with its result checked: collectives, one of them nonblocking, on two communicators, and
 * messages. Prints "result: right" on rank 0.
 */
#include <mpi.h>
#include <stdio.h>

enum { ROUNDS = 10 };

int main(int argc, char **argv) {
    int rank, ranks, at, wrong = 0, all = 0;
    MPI_Comm other;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &other);
    MPI_Comm_rank(other, &at);
    for (int round = 0; round < ROUNDS; round++) {
        int root = round % ranks, word = rank == root ? 100 * round + root : -1, sum = 0, got = -1;
        MPI_Bcast(&word, 1, MPI_INT, root, MPI_COMM_WORLD);
        wrong += word != 100 * round + root;
        int mine = rank * rank + round;
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, round % 2 ? other : MPI_COMM_WORLD);
        for (int r = 0; r < ranks; r++) sum -= r * r + round;
        wrong += sum != 0;
        MPI_Irecv(&got, 1, MPI_INT, (at + ranks - 1) % ranks, 7, other, &request);
        MPI_Send(&round, 1, MPI_INT, (at + 1) % ranks, 7, other);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        wrong += got != round;
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&other);
    PMPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("result: %s\n", all ? "wrong" : "right");
    MPI_Finalize();
    return all != 0;
}
