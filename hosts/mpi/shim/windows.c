#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * MPI_Win_allocate_shared and MPI_Win_free: the MPI maps the window's memory into all its ranks, so messages that lie in it
 * are read there. The window has an attribute, its number, so that it is known until it is freed, by whatever function.
 * MPICH deletes attributes before it unmaps the memory, Open MPI after that: so MPI_Win_free deletes this one first.
 */
#ifndef SMPI_H
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int keyval = MPI_KEYVAL_INVALID;

static int copy_none(MPI_Win win, int key, void *extra, void *value, void *copied, int *flag) {
    (void)win, (void)key, (void)extra, (void)value, (void)copied;
    *flag = 0;
    return MPI_SUCCESS;
}

static int deleted(MPI_Win win, int key, void *value, void *extra) {
    (void)win, (void)key, (void)extra;
    unisono_mpi_window_remove((uintptr_t)value);
    return MPI_SUCCESS;
}

static void make_keyval(void) {
    if (PMPI_Win_create_keyval(copy_none, deleted, &keyval, NULL) != MPI_SUCCESS) keyval = MPI_KEYVAL_INVALID;
}

/* What a rank tells the others of itself. */
struct member { uint64_t number, process; };

/* What a rank knows of a window's others before there is a window. */
struct members {
    int ranks, rank;
    struct member *all; /* null: nothing is lent in it */
    unisono_mpi_part_t *parts;
};

/* All ranks of `comm` call it, whether they will get a window or not: what fails on one rank later is its affair alone. */
static struct members meet(MPI_Comm comm) {
    struct members m = {0};
    int inter = 0;
    if (comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter) return m;
    PMPI_Comm_size(comm, &m.ranks), PMPI_Comm_rank(comm, &m.rank);
    pthread_once(&once, make_keyval);
    struct member mine = {unisono_mpi_window_number(), (uint64_t)getpid()};
    m.all = calloc((size_t)m.ranks, sizeof *m.all), m.parts = calloc((size_t)m.ranks, sizeof *m.parts);
    int can = m.all && m.parts && keyval != MPI_KEYVAL_INVALID && mine.number, all_can = 0;
    if (PMPI_Allreduce(&can, &all_can, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && all_can &&
        PMPI_Allgather(&mine, sizeof mine, MPI_BYTE, m.all, sizeof mine, MPI_BYTE, comm) == MPI_SUCCESS)
        return m;
    free(m.all), free(m.parts);
    m.all = NULL;
    return m;
}

/* Has this rank's part of the window lent, and the others' read. */
static void lend(const struct members *m, MPI_Win win) {
    for (int at = 0; at < m->ranks; at++) {
        MPI_Aint bytes = -1;
        int unit;
        if (PMPI_Win_shared_query(win, at, &bytes, &unit, &m->parts[at].base) != MPI_SUCCESS || bytes < 0) return;
        m->parts[at].process = m->all[at].process, m->parts[at].bytes = (uint64_t)bytes;
    }
    uint64_t number = m->all[0].number;
    if (PMPI_Win_set_attr(win, keyval, (void *)(uintptr_t)number) == MPI_SUCCESS)
        unisono_mpi_window_add(number, m->parts, (uint32_t)m->ranks, (uint32_t)m->rank);
}

/* `unit` is an int, or, in the function for large counts, an MPI_Aint. */
#define ALLOCATE_SHARED(lower, Name, unit_type)                                                                        \
    SHIM_EXPORT(lower, Name, (MPI_Aint bytes, unit_type unit, shim_handle info, shim_handle comm, void *base, MPI_Win *win), \
                (bytes, unit, info, comm, base, win)) {                                                                \
        typedef int function(MPI_Aint, unit_type, shim_handle, shim_handle, void *, MPI_Win *);                        \
        function *underlying = (function *)SHIM_ONCE(shim_function, "PMPI_" Name);                                     \
        if (!(shim_is_on() || shim_wake())) return underlying(bytes, unit, info, comm, base, win);                     \
        shim_thread()->inside++;                                                                                       \
        struct members m = meet(SHIM_COMM(comm));                                                                      \
        int code = underlying(bytes, unit, info, comm, base, win);                                                     \
        if (code == MPI_SUCCESS && m.all) lend(&m, *win);                                                              \
        if (m.all) free(m.all), free(m.parts);                                                                         \
        shim_thread()->inside--;                                                                                       \
        return code;                                                                                                   \
    }
ALLOCATE_SHARED(win_allocate_shared, "Win_allocate_shared", int)
#if MPI_VERSION >= 4
ALLOCATE_SHARED(win_allocate_shared_c, "Win_allocate_shared_c", MPI_Aint)
#endif

SHIM_EXPORT(win_free, "Win_free", (MPI_Win *win), (win)) {
    typedef int function(MPI_Win *);
    function *underlying = (function *)SHIM_ONCE(shim_function, "PMPI_Win_free");
    void *number;
    int known = 0;
    if (shim_is_on() && win && *win != MPI_WIN_NULL && keyval != MPI_KEYVAL_INVALID &&
        PMPI_Win_get_attr(*win, keyval, &number, &known) == MPI_SUCCESS && known)
        PMPI_Win_delete_attr(*win, keyval);
    return underlying(win);
}
#endif
