/*
 * With -DWAITED all collectives of a file that includes this are nonblocking ones, each of which is waited for: by turns with
 * MPI_Wait, MPI_Test, MPI_Waitall beside a message, and MPI_Waitsome. The results must be those of the blocking ones.
 */
#ifndef WAITED_H
#define WAITED_H

#include "test.h"

#ifdef WAITED
static int waited(int code, MPI_Request *request) {
    static unsigned turn;
    static int token;
    int done = 0, index;
    MPI_Request both[] = {MPI_REQUEST_NULL, *request};
    MPI_Status status, statuses[2];
    if (code != MPI_SUCCESS) return code;
    switch (turn++ % 4) {
    case 0: return MPI_Wait(request, &status);
    case 1:
        while (!done && code == MPI_SUCCESS) code = MPI_Test(request, &done, &status);
        return code;
    case 2:
        MPI_Irecv(&token, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, both);
        return MPI_Waitall(2, both, statuses);
    default: return MPI_Waitsome(1, both + 1, &done, &index, statuses);
    }
}

#define WAIT(name, ...) ({ MPI_Request request_; int code_ = MPI_I##name(__VA_ARGS__, &request_); waited(code_, &request_); })
#define MPI_Barrier(...) WAIT(barrier, __VA_ARGS__)
#define MPI_Bcast(...) WAIT(bcast, __VA_ARGS__)
#define MPI_Reduce(...) WAIT(reduce, __VA_ARGS__)
#define MPI_Allreduce(...) WAIT(allreduce, __VA_ARGS__)
#define MPI_Gather(...) WAIT(gather, __VA_ARGS__)
#define MPI_Gatherv(...) WAIT(gatherv, __VA_ARGS__)
#define MPI_Scatter(...) WAIT(scatter, __VA_ARGS__)
#define MPI_Scatterv(...) WAIT(scatterv, __VA_ARGS__)
#define MPI_Allgather(...) WAIT(allgather, __VA_ARGS__)
#define MPI_Allgatherv(...) WAIT(allgatherv, __VA_ARGS__)
#define MPI_Alltoall(...) WAIT(alltoall, __VA_ARGS__)
#define MPI_Alltoallv(...) WAIT(alltoallv, __VA_ARGS__)
#define MPI_Alltoallw(...) WAIT(alltoallw, __VA_ARGS__)
#define MPI_Reduce_scatter(...) WAIT(reduce_scatter, __VA_ARGS__)
#define MPI_Reduce_scatter_block(...) WAIT(reduce_scatter_block, __VA_ARGS__)
#define MPI_Scan(...) WAIT(scan, __VA_ARGS__)
#define MPI_Exscan(...) WAIT(exscan, __VA_ARGS__)
#endif

#endif
