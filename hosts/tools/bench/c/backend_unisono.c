/* The backend for Unisono. For a new collective of the library, add a function and an entry to the table. */
#ifdef UNISONO
#include "backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unisono_posix.h>

static unisono_comm *comm;
static int size;
/* Of the vector forms: bytes, or elements of a reduction. */
static uint64_t *counts, *displacements;
/* A byte, for every rank. */
static unisono_type *byte;
static const unisono_type **types;

void backend_start(int *argc, char ***argv) {
    (void)argc, (void)argv;
    if (unisono_join(&comm) < 0) {
        fprintf(stderr, "unisono_join: %s\n", backend_error(0));
        exit(2);
    }
    size = unisono_size(comm);
    counts = calloc(size, sizeof *counts);
    displacements = calloc(size, sizeof *displacements);
    types = calloc(size, sizeof *types);
    if (!counts || !displacements || !types || unisono_type_contiguous(1, &byte) < 0) backend_abort(2);
    for (int r = 0; r < size; r++) types[r] = byte;
}

void backend_end(void) {
    unisono_type_free(byte);
    unisono_free(comm);
}
int backend_rank(void) { return unisono_rank(comm); }
int backend_size(void) { return size; }
void backend_abort(int status) { exit(status); }

const char *backend_name(void) {
    static char text[64];
    unsigned version = unisono_version();
    snprintf(text, sizeof text, "Unisono %u.%u.%u", version / 10000, version / 100 % 100, version % 100);
    return text;
}

const char *backend_error(int code) {
    static char text[256];
    (void)code;
    unisono_last_error(text, sizeof text);
    return text;
}

int backend_barrier(void) { return unisono_barrier(comm); }
int backend_bcast_bytes(void *bytes, size_t count, int root) { return unisono_bcast(comm, bytes, count, root); }

/* The arguments of a call: bytes of a block, elements, a block for each rank. */
#define BYTES (c->n * 8)
#define DOUBLES c->n, UNISONO_F64, UNISONO_SUM
#define BLOCKS counts, displacements
#define OPERATION(name) static int name(const struct call *c)

OPERATION(barrier) { return (void)c, unisono_barrier(comm); }
OPERATION(bcast) { return unisono_bcast(comm, c->receive, BYTES, c->root); }
OPERATION(reduce) { return unisono_reduce(comm, c->send, c->receive, DOUBLES, c->root); }
OPERATION(allreduce) { return unisono_allreduce(comm, c->send, c->receive, DOUBLES); }
OPERATION(scan) { return unisono_scan(comm, c->send, c->receive, DOUBLES); }
OPERATION(exscan) { return unisono_exscan(comm, c->send, c->receive, DOUBLES); }
OPERATION(scatter) { return unisono_scatter(comm, c->send, c->receive, BYTES, c->root); }
OPERATION(gather) { return unisono_gather(comm, c->send, c->receive, BYTES, c->root); }
OPERATION(allgather) { return unisono_allgather(comm, c->send, c->receive, BYTES); }
OPERATION(alltoall) { return unisono_alltoall(comm, c->send, c->receive, BYTES); }
OPERATION(scatterv) { return unisono_scatterv(comm, c->send, BLOCKS, c->receive, BYTES, c->root); }
OPERATION(gatherv) { return unisono_gatherv(comm, c->send, BYTES, c->receive, BLOCKS, c->root); }
OPERATION(allgatherv) { return unisono_allgatherv(comm, c->send, BYTES, c->receive, BLOCKS); }
OPERATION(alltoallv) { return unisono_alltoallv(comm, c->send, BLOCKS, c->receive, BLOCKS); }
OPERATION(alltoallw) { return unisono_alltoallw(comm, c->send, BLOCKS, types, c->receive, BLOCKS, types); }
OPERATION(reduce_scatter) {
    return unisono_reduce_scatter(comm, c->send, c->receive, counts, UNISONO_F64, UNISONO_SUM);
}
OPERATION(reduce_scatter_block) { return unisono_reduce_scatter_block(comm, c->send, c->receive, DOUBLES); }

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
    for (size_t r = 0; r < (size_t)size; r++) {
        counts[r] = n * 8;
        displacements[r] = r * n * 8;
        /* The one vector form that counts elements: near-equal parts of n. */
        if (!strcmp(collective, "reduce_scatter")) counts[r] = n / size + (r < n % size);
    }
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, collective)) return table[i].run;
    return NULL;
}
#endif
