/*
 * A profiler: counts this rank's calls, and says how many there were when MPI ends. It calls PMPI_*, or, with -DNEXT, what the
 * loader finds next. Built as a library to preload, or linked with the program.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

enum { INIT, BCAST, ALLREDUCE, IBARRIER, COMM_SPLIT, COMM_FREE, SEND, NUMBERS };
static int calls[NUMBERS];

#ifdef NEXT
#define CALL(name, parameters) ((int(*) parameters)dlsym(RTLD_NEXT, "MPI_" #name))
#else
#define CALL(name, parameters) PMPI_##name
#endif
#define COUNT(number, name, parameters, names)                                                                         \
    int MPI_##name parameters {                                                                                        \
        calls[number]++;                                                                                               \
        return CALL(name, parameters) names;                                                                           \
    }

/* -DWAITS: with collectives of its own, as tools have that agree on a clock first, or time each call from the time when all ranks are
 * there. */
#ifdef WAITS
enum { WAITS_FIRST = 1 };
#else
enum { WAITS_FIRST = 0 };
#endif

int MPI_Init(int *argc, char ***argv) {
    int clock = 0, code = CALL(Init, (int *, char ***))(argc, argv);
    if (WAITS_FIRST) MPI_Bcast(&clock, 1, MPI_INT, 0, MPI_COMM_WORLD);
    calls[INIT]++, calls[BCAST] = 0;
    return code;
}

COUNT(BCAST, Bcast, (void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm), (buffer, count, type, root, comm))
COUNT(IBARRIER, Ibarrier, (MPI_Comm comm, MPI_Request *request), (comm, request))
COUNT(COMM_SPLIT, Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *made), (comm, color, key, made))
COUNT(COMM_FREE, Comm_free, (MPI_Comm *comm), (comm))
COUNT(SEND, Send, (const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm),
      (buffer, count, type, to, tag, comm))

int MPI_Allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    calls[ALLREDUCE]++;
    if (WAITS_FIRST) CALL(Barrier, (MPI_Comm))(comm);
    return CALL(Allreduce, (const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm))(send, receive, count, type, op, comm);
}

int MPI_Finalize(void) {
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("tool: rank %d: init %d, bcast %d, allreduce %d, ibarrier %d, comm_split %d, comm_free %d, send %d\n", rank, calls[INIT],
           calls[BCAST], calls[ALLREDUCE], calls[IBARRIER], calls[COMM_SPLIT], calls[COMM_FREE], calls[SEND]);
    fflush(stdout);
    return CALL(Finalize, (void))();
}
