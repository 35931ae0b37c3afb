/*
 * With -DWAITED all collectives of a file that includes this are nonblocking ones, each of which is waited for: by turns with
 * MPI_Wait, MPI_Test, MPI_Waitall beside a message, and MPI_Waitsome. With -DPERSISTENT they are persistent ones, each started once,
 * waited for in that way, and freed. The results must be those of the blocking ones.
 */
#ifndef WAITED_H
#define WAITED_H

#include "test.h"

#if defined PERSISTENT && defined OPEN_MPI && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define INIT(name) MPIX_##name##_init
#else
#define INIT(name) MPI_##name##_init
#endif

#if defined WAITED || defined PERSISTENT
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

#ifdef PERSISTENT
static int started(int code, MPI_Request *request) {
    if (code != MPI_SUCCESS) return code;
    code = waited(MPI_Start(request), request);
    MPI_Request_free(request);
    return code;
}

#define MADE(made, ...)                                                                                                \
    ({ MPI_Request request_; int code_ = made(__VA_ARGS__, MPI_INFO_NULL, &request_); started(code_, &request_); })
#define WAIT(Name, name, ...) MADE(INIT(Name), __VA_ARGS__)
#define WAIT_WIDE(Name, name, ...) MADE(MPI_##Name##_init_c, __VA_ARGS__)
#else
#define BEGUN(begins, ...) ({ MPI_Request request_; int code_ = begins(__VA_ARGS__, &request_); waited(code_, &request_); })
#define WAIT(Name, name, ...) BEGUN(MPI_I##name, __VA_ARGS__)
#define WAIT_WIDE(Name, name, ...) BEGUN(MPI_I##name##_c, __VA_ARGS__)
#endif
#define MPI_Barrier(...) WAIT(Barrier, barrier, __VA_ARGS__)
#define MPI_Bcast(...) WAIT(Bcast, bcast, __VA_ARGS__)
#define MPI_Reduce(...) WAIT(Reduce, reduce, __VA_ARGS__)
#define MPI_Allreduce(...) WAIT(Allreduce, allreduce, __VA_ARGS__)
#define MPI_Gather(...) WAIT(Gather, gather, __VA_ARGS__)
#define MPI_Gatherv(...) WAIT(Gatherv, gatherv, __VA_ARGS__)
#define MPI_Scatter(...) WAIT(Scatter, scatter, __VA_ARGS__)
#define MPI_Scatterv(...) WAIT(Scatterv, scatterv, __VA_ARGS__)
#define MPI_Allgather(...) WAIT(Allgather, allgather, __VA_ARGS__)
#define MPI_Allgatherv(...) WAIT(Allgatherv, allgatherv, __VA_ARGS__)
#define MPI_Alltoall(...) WAIT(Alltoall, alltoall, __VA_ARGS__)
#define MPI_Alltoallv(...) WAIT(Alltoallv, alltoallv, __VA_ARGS__)
#define MPI_Alltoallw(...) WAIT(Alltoallw, alltoallw, __VA_ARGS__)
#define MPI_Reduce_scatter(...) WAIT(Reduce_scatter, reduce_scatter, __VA_ARGS__)
#define MPI_Reduce_scatter_block(...) WAIT(Reduce_scatter_block, reduce_scatter_block, __VA_ARGS__)
#define MPI_Scan(...) WAIT(Scan, scan, __VA_ARGS__)
#define MPI_Exscan(...) WAIT(Exscan, exscan, __VA_ARGS__)
/* With counts of 64 bits, as far as the programs call them. */
#define MPI_Reduce_c(...) WAIT_WIDE(Reduce, reduce, __VA_ARGS__)
#define MPI_Allreduce_c(...) WAIT_WIDE(Allreduce, allreduce, __VA_ARGS__)
#define MPI_Alltoallw_c(...) WAIT_WIDE(Alltoallw, alltoallw, __VA_ARGS__)
#define MPI_Reduce_scatter_c(...) WAIT_WIDE(Reduce_scatter, reduce_scatter, __VA_ARGS__)
#define MPI_Reduce_scatter_block_c(...) WAIT_WIDE(Reduce_scatter_block, reduce_scatter_block, __VA_ARGS__)
#define MPI_Scan_c(...) WAIT_WIDE(Scan, scan, __VA_ARGS__)
#define MPI_Exscan_c(...) WAIT_WIDE(Exscan, exscan, __VA_ARGS__)
#endif

#endif
