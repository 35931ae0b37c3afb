/* The backend for Unisono: a collective that the library gains gets a function and a line in the table. */
#ifdef UNISONO
#include "backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unisono_posix.h>

static unisono_comm *comm;

void backend_start(int *argc, char ***argv) {
    (void)argc, (void)argv;
    if (unisono_join(&comm) < 0) {
        fprintf(stderr, "unisono_join: %s\n", backend_error(0));
        exit(2);
    }
}

void backend_end(void) { unisono_free(comm); }
int backend_rank(void) { return unisono_rank(comm); }
int backend_size(void) { return unisono_size(comm); }
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

#define OPERATION(name) static int name(const struct call *c)

OPERATION(barrier) { return (void)c, unisono_barrier(comm); }
OPERATION(bcast) { return unisono_bcast(comm, c->receive, c->n * 8, c->root); }
OPERATION(allreduce) { return unisono_allreduce(comm, c->send, c->receive, c->n, UNISONO_F64, UNISONO_SUM); }

static const struct {
    const char *name;
    operation *run;
    size_t most; /* elements */
} table[] = {
    {"barrier", barrier, SIZE_MAX},
    {"bcast", bcast, SIZE_MAX},
    {"allreduce", allreduce, UNISONO_ALLREDUCE_MOST / 8},
};

operation *backend_find(const char *collective, size_t n) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, collective) && n <= table[i].most) return table[i].run;
    return NULL;
}
#endif
