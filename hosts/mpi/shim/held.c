/*
 * Handles that nonblocking and persistent reductions by the program's own operation still use. Its function gets the program's handles,
 * so duplicates will not do; and of an operation MPI can't make one. Where the program frees such a handle, the MPI is told when the
 * last of these reductions is complete.
 */
#include <pthread.h>
#include <stdlib.h>

enum kind { OPERATION, DATATYPE };

struct held {
    struct held *next;
    enum kind kind;
    uintptr_t handle;
    int uses;
    bool freed; /* by the program */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct held *all; /* changed under the lock; null can be seen without it */

static struct held **find(enum kind kind, uintptr_t handle) {
    struct held **at = &all;
    while (*at && ((*at)->kind != kind || (*at)->handle != handle)) at = &(*at)->next;
    return at;
}

static bool hold(enum kind kind, uintptr_t handle) {
    pthread_mutex_lock(&lock);
    struct held *held = *find(kind, handle);
    if (held) held->uses++;
    else if ((held = malloc(sizeof *held))) {
        *held = (struct held){all, kind, handle, 1, false};
        __atomic_store_n(&all, held, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&lock);
    return held;
}

static void let(enum kind kind, uintptr_t handle) {
    pthread_mutex_lock(&lock);
    struct held **at = find(kind, handle), *held = *at;
    bool last = held && !--held->uses, freed = last && held->freed;
    if (last) {
        __atomic_store_n(at, held->next, __ATOMIC_RELAXED);
        free(held);
    }
    pthread_mutex_unlock(&lock);
    MPI_Op op = (MPI_Op)handle;
    MPI_Datatype type = (MPI_Datatype)handle;
    if (freed && kind == OPERATION) PMPI_Op_free(&op);
    if (freed && kind == DATATYPE) PMPI_Type_free(&type);
}

bool shim_hold(MPI_Op op, MPI_Datatype type) {
    if (!hold(OPERATION, (uintptr_t)op)) return false;
    if (shim_predefined(type) || hold(DATATYPE, (uintptr_t)type)) return true;
    let(OPERATION, (uintptr_t)op);
    return false;
}

void shim_let(MPI_Op op, MPI_Datatype type) {
    let(OPERATION, (uintptr_t)op);
    if (!shim_predefined(type)) let(DATATYPE, (uintptr_t)type);
}

/* Is it held? Then it is freed later. */
static bool later(enum kind kind, uintptr_t handle) {
    if (__builtin_expect(!__atomic_load_n(&all, __ATOMIC_RELAXED), 1)) return false;
    pthread_mutex_lock(&lock);
    struct held *held = *find(kind, handle);
    bool first = held && !held->freed; /* a second time is the program's error: the MPI raises it */
    if (first) held->freed = true;
    pthread_mutex_unlock(&lock);
    return first;
}

#define FREES(lower, Name, type, kind, null)                                                                           \
    SHIM_EXPORT(lower, Name, (type *handle), (handle)) {                                                               \
        typedef int function(type *);                                                                                  \
        if (handle && later(kind, (uintptr_t)*handle)) return *handle = null, MPI_SUCCESS;                             \
        return ((function *)SHIM_ONCE(shim_function, "PMPI_" Name))(handle);                                           \
    }

FREES(op_free, "Op_free", MPI_Op, OPERATION, MPI_OP_NULL)
FREES(type_free, "Type_free", MPI_Datatype, DATATYPE, MPI_DATATYPE_NULL)
