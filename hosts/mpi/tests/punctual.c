/*
 * punctual: rank 0 starts a long message to rank 1, and then calls collectives alone, with rank 2, which is always punctual. Rank 1
 * tells rank 2 when it has the message, and that ends the loop. So each of rank 0's calls must make some progress on the message.
 * For three ranks, rank 1 on another node than the others. An alarm ends a program that hangs.
 */
#include "test.h"

#include <unistd.h>

enum { LONG = 4 << 20, LIMIT_S = 60, SELDOM = 1000 };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    alarm(LIMIT_S);
    int rank = rank_in(MPI_COMM_WORLD), done = 0, told = 0;
    long calls = 0;
    unsigned char *message = calloc(LONG, 1);
    MPI_Comm pair;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 1, rank, &pair);
    /* All have entered the pair's collectives once: what follows needs no more of the MPI. */
    MPI_Barrier(pair);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        memset(message, 7, LONG);
        MPI_Isend(message, LONG, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    } else if (rank == 1) {
        MPI_Recv(message, LONG, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&done, 1, MPI_INT, 2, 1, MPI_COMM_WORLD);
        expect(message[0] == 7 && message[LONG - 1] == 7, "another message");
    } else if (rank == 2) MPI_Irecv(&told, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &request);
    while (rank != 1 && !done) {
        int mine = 0;
        if (rank == 2 && ++calls % SELDOM == 0) MPI_Test(&request, &mine, MPI_STATUS_IGNORE);
        MPI_Allreduce(&mine, &done, 1, MPI_INT, MPI_MAX, pair);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&pair);
    free(message);
    return finish("punctual");
}
