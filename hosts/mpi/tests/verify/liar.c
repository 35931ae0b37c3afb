/*
 * Preloaded beside Unisono: an MPI whose collective, the one that LIAR names, answers a little wrongly. Rank 1 changes the
 * double LIAR_AT of what it received: by LIAR_BY, or, where that is "ulp", to the next one. A nonblocking one lies once, when MPI_Test says
 * that it is complete: before that the MPI would overwrite the lie.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

/* Is it this one, on this rank? */
static int lies(const char *name, MPI_Comm comm) {
    const char *wanted = getenv("LIAR");
    int rank;
    PMPI_Comm_rank(comm, &rank);
    return rank == 1 && wanted && !strcmp(wanted, name);
}

static void lie(void *receive) {
    const char *by = getenv("LIAR_BY"), *at = getenv("LIAR_AT");
    if (!by || !at) return;
    double *number = (double *)receive + atoi(at);
    *number = !strcmp(by, "ulp") ? nextafter(*number, INFINITY) : *number + atof(by);
}

/* The nonblocking call that lies when it is complete. */
static struct {
    MPI_Request request;
    void *receive;
    enum { NONE, ACTIVE, OVER } state;
} started;

static void keep(MPI_Request request, void *receive) {
    if (started.state == NONE) started.request = request, started.receive = receive, started.state = ACTIVE;
}

int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
    int (*real)(MPI_Request *, int *, MPI_Status *) = (int (*)(MPI_Request *, int *, MPI_Status *))dlsym(RTLD_NEXT, "PMPI_Test");
    int it = started.state == ACTIVE && *request == started.request, code = real(request, flag, status);
    if (it && *flag) started.state = OVER, lie(started.receive);
    return code;
}

/* Defines PMPI_Bcast and PMPI_Ibcast ... */
#define BARE(...) __VA_ARGS__
#define LIES(Name, name, receive, parameters, arguments)                                                               \
    int PMPI_##Name(BARE parameters) {                                                                                 \
        int (*real)(BARE parameters) = (int (*)(BARE parameters))dlsym(RTLD_NEXT, "PMPI_" #Name);                      \
        int code = real arguments;                                                                                     \
        if (lies(#Name, comm)) lie(receive);                                                                           \
        return code;                                                                                                   \
    }                                                                                                                  \
    int PMPI_I##name(BARE parameters, MPI_Request *request) {                                                          \
        int (*real)(BARE parameters, MPI_Request *) = (int (*)(BARE parameters, MPI_Request *))dlsym(RTLD_NEXT, "PMPI_I" #name); \
        int code = real(BARE arguments, request);                                                                      \
        if (lies("I" #name, comm)) keep(*request, receive);                                                            \
        return code;                                                                                                   \
    }

LIES(Bcast, bcast, buffer, (void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm),
     (buffer, count, type, root, comm))
LIES(Allreduce, allreduce, receive,
     (const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     (send, receive, count, type, op, comm))
LIES(Scan, scan, receive, (const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     (send, receive, count, type, op, comm))
LIES(Exscan, exscan, receive, (const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     (send, receive, count, type, op, comm))
LIES(Reduce_scatter, reduce_scatter, receive,
     (const void *send, void *receive, const int *counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     (send, receive, counts, type, op, comm))
LIES(Reduce_scatter_block, reduce_scatter_block, receive,
     (const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     (send, receive, count, type, op, comm))
LIES(Alltoallw, alltoallw, receive,
     (const void *send, const int *sent, const int *from, const MPI_Datatype *send_types, void *receive, const int *counts,
      const int *starts, const MPI_Datatype *types, MPI_Comm comm),
     (send, sent, from, send_types, receive, counts, starts, types, comm))
LIES(Alltoall, alltoall, receive,
     (const void *send, int sent, MPI_Datatype send_type, void *receive, int count, MPI_Datatype type, MPI_Comm comm),
     (send, sent, send_type, receive, count, type, comm))
LIES(Gatherv, gatherv, receive,
     (const void *send, int sent, MPI_Datatype send_type, void *receive, const int *counts, const int *starts,
      MPI_Datatype type, int root, MPI_Comm comm),
     (send, sent, send_type, receive, counts, starts, type, root, comm))
