/* The backend for an MPI: predefined types, as in OSU's benchmarks; MPI_CHAR where data are moved. */
#ifndef UNISONO
#include "backend.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
/* Counts, displacements and types of the vector forms. */
static int *counts, *displacements;
static MPI_Datatype *types;

void backend_start(int *argc, char ***argv) {
    MPI_Init(argc, argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    counts = calloc(size, sizeof *counts);
    displacements = calloc(size, sizeof *displacements);
    types = calloc(size, sizeof *types);
    if (!counts || !displacements || !types) backend_abort(2);
    for (int r = 0; r < size; r++) types[r] = MPI_CHAR;
}

void backend_end(void) { MPI_Finalize(); }
int backend_rank(void) { return rank; }
int backend_size(void) { return size; }

void backend_abort(int status) {
    MPI_Abort(MPI_COMM_WORLD, status);
    exit(status);
}

const char *backend_name(void) {
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int len;
    MPI_Get_library_version(text, &len);
    text[strcspn(text, "\n,")] = 0;
    for (char *at = text; *at; at++)
        if (*at == '\t' || *at == '"' || *at == '\\') *at = ' ';
    return text;
}

const char *backend_error(int code) {
    static char text[MPI_MAX_ERROR_STRING];
    int len;
    MPI_Error_string(code, text, &len);
    return text;
}

int backend_barrier(void) { return MPI_Barrier(MPI_COMM_WORLD); }
int backend_bcast_bytes(void *bytes, size_t count, int root) {
    return MPI_Bcast(bytes, (int)count, MPI_CHAR, root, MPI_COMM_WORLD);
}

/* The arguments of a call: bytes of a block, elements, communicator. */
#define BYTES (int)(c->n * 8), MPI_CHAR
#define DOUBLES (int)c->n, MPI_DOUBLE, MPI_SUM
#define WORLD MPI_COMM_WORLD
#define OPERATION(name) static int name(const struct call *c)

OPERATION(barrier) { return (void)c, MPI_Barrier(WORLD); }
OPERATION(bcast) { return MPI_Bcast(c->receive, BYTES, c->root, WORLD); }
OPERATION(reduce) { return MPI_Reduce(c->send, c->receive, DOUBLES, c->root, WORLD); }
OPERATION(allreduce) { return MPI_Allreduce(c->send, c->receive, DOUBLES, WORLD); }
OPERATION(scan) { return MPI_Scan(c->send, c->receive, DOUBLES, WORLD); }
OPERATION(exscan) { return MPI_Exscan(c->send, c->receive, DOUBLES, WORLD); }
OPERATION(scatter) { return MPI_Scatter(c->send, BYTES, c->receive, BYTES, c->root, WORLD); }
OPERATION(gather) { return MPI_Gather(c->send, BYTES, c->receive, BYTES, c->root, WORLD); }
OPERATION(allgather) { return MPI_Allgather(c->send, BYTES, c->receive, BYTES, WORLD); }
OPERATION(alltoall) { return MPI_Alltoall(c->send, BYTES, c->receive, BYTES, WORLD); }
OPERATION(scatterv) {
    return MPI_Scatterv(c->send, counts, displacements, MPI_CHAR, c->receive, BYTES, c->root, WORLD);
}
OPERATION(gatherv) {
    return MPI_Gatherv(c->send, BYTES, c->receive, counts, displacements, MPI_CHAR, c->root, WORLD);
}
OPERATION(allgatherv) { return MPI_Allgatherv(c->send, BYTES, c->receive, counts, displacements, MPI_CHAR, WORLD); }
OPERATION(alltoallv) {
    return MPI_Alltoallv(c->send, counts, displacements, MPI_CHAR, c->receive, counts, displacements, MPI_CHAR, WORLD);
}
OPERATION(alltoallw) {
    return MPI_Alltoallw(c->send, counts, displacements, types, c->receive, counts, displacements, types, WORLD);
}
OPERATION(reduce_scatter) { return MPI_Reduce_scatter(c->send, c->receive, counts, MPI_DOUBLE, MPI_SUM, WORLD); }
OPERATION(reduce_scatter_block) { return MPI_Reduce_scatter_block(c->send, c->receive, DOUBLES, WORLD); }

#define ENTRY(name) {#name, name}
static const struct {
    const char *name;
    operation *run;
} table[] = {
    ENTRY(barrier),    ENTRY(bcast),     ENTRY(reduce),    ENTRY(allreduce),      ENTRY(scan),     ENTRY(exscan),
    ENTRY(scatter),    ENTRY(gather),    ENTRY(allgather), ENTRY(alltoall),       ENTRY(scatterv), ENTRY(gatherv),
    ENTRY(allgatherv), ENTRY(alltoallv), ENTRY(alltoallw), ENTRY(reduce_scatter), ENTRY(reduce_scatter_block),
};

operation *backend_find(const char *collective, size_t n) {
    for (int r = 0; r < size; r++) {
        counts[r] = (int)n * 8;
        displacements[r] = r * (int)n * 8;
        /* The one vector form that counts elements: near-equal parts of n. */
        if (!strcmp(collective, "reduce_scatter")) counts[r] = (int)(n / size + ((size_t)r < n % size));
    }
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, collective)) return table[i].run;
    return NULL;
}
#endif
