/*
 * Preloaded beside Unisono: an MPI whose collective, the one that LIAR names, answers a little wrongly. Rank 1 changes the
 * double LIAR_AT of what it received: by LIAR_BY, or, where that is "ulp", to the next one.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static void lie(const char *name, void *receive, MPI_Comm comm) {
    const char *wanted = getenv("LIAR"), *by = getenv("LIAR_BY"), *at = getenv("LIAR_AT");
    int rank;
    PMPI_Comm_rank(comm, &rank);
    if (rank != 1 || !wanted || strcmp(wanted, name) || !by || !at) return;
    double *number = (double *)receive + atoi(at);
    *number = !strcmp(by, "ulp") ? nextafter(*number, INFINITY) : *number + atof(by);
}

#define LIES(name, receive, parameters, arguments)                                                                     \
    int PMPI_##name parameters {                                                                                       \
        int(*real) parameters = (int(*) parameters)dlsym(RTLD_NEXT, "PMPI_" #name);                                    \
        int code = real arguments;                                                                                     \
        lie(#name, receive, comm);                                                                                     \
        return code;                                                                                                   \
    }

LIES(Bcast, buffer, (void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm),
     (buffer, count, type, root, comm))
LIES(Allreduce, receive,
     (const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     (send, receive, count, type, op, comm))
LIES(Scan, receive, (const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     (send, receive, count, type, op, comm))
LIES(Exscan, receive, (const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     (send, receive, count, type, op, comm))
LIES(Reduce_scatter, receive,
     (const void *send, void *receive, const int *counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     (send, receive, counts, type, op, comm))
LIES(Reduce_scatter_block, receive,
     (const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     (send, receive, count, type, op, comm))
LIES(Alltoallw, receive,
     (const void *send, const int *sent, const int *from, const MPI_Datatype *send_types, void *receive, const int *counts,
      const int *starts, const MPI_Datatype *types, MPI_Comm comm),
     (send, sent, from, send_types, receive, counts, starts, types, comm))
LIES(Alltoall, receive,
     (const void *send, int sent, MPI_Datatype send_type, void *receive, int count, MPI_Datatype type, MPI_Comm comm),
     (send, sent, send_type, receive, count, type, comm))
LIES(Gatherv, receive,
     (const void *send, int sent, MPI_Datatype send_type, void *receive, const int *counts, const int *starts,
      MPI_Datatype type, int root, MPI_Comm comm),
     (send, sent, send_type, receive, counts, starts, type, root, comm))
