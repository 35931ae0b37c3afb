/*
 * Compares nonblocking and persistent collectives of ours with the MPI's (verify.h).
 *
 * The MPI's nonblocking collective runs beside ours, from the same send buffer into other memory. Its address is such that the
 * program's counts, displacements and datatypes hold there, and only the pages that it writes exist: so the memory may be as long as it
 * is from one object to another, where a datatype has absolute addresses. In place the input is copied there first.
 *
 * The program's request is complete when both are. The MPI's are tested wherever ours are moved by a thread that may call the MPI
 * (requests.c), and not waited for: an MPI_Test must return, and the root of a broadcast must not wait for ranks that have not called it.
 *
 * What is not compared: the bytes in holes of the receive buffer, which may be those of another collective that is active; neighborhood
 * collectives, whose nonblocking ones both Open MPI and MPICH have wrong on short rings (docs/results/mpi.md).
 */
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "verify.h"

enum state { DONE, RUNS, ABANDONED };

struct verify_started {
    struct verify_started *next; /* in the list, while the MPI's runs */
    struct verify v;
    struct shim_call call; /* as the request has it, but with an entry of its own: the program may free the communicator */
    struct shim_comm on;
    MPI_Comm comm;
    char *pages; /* the memory, and its bytes */
    size_t mapped;
    void *base; /* what the MPI gets as the receive buffer */
    MPI_Request *requests;
    int count, code;
    struct verify_scale scale;
    MPI_Datatype *types[2]; /* lists that the MPI may read until it is done */
    int *counts;
    int state; /* of enum state; by atomics */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct verify_started *all; /* changed under the lock; null can be seen without it */

static bool is_none(void) { return !__atomic_load_n(&all, __ATOMIC_RELAXED); }

bool verify_compares(const struct shim_call *c) {
    /* In place Open MPI 4.1's hang, and MPICH 4.0's MPI_Ialltoallw is wrong (docs/results/mpi.md). */
    if (c->send_in_place && (c->collective == ALLTOALLV || c->collective == ALLTOALLW)) return false;
    return c->collective != BARRIER && c->collective < NEIGHBOR_ALLGATHER;
}

/* ---- Before ---------------------------------------------------------------------------------------------------- */

/* Its bytes are zero, and lie in a page as the program's do: the program's operations may rely on how elements are aligned. */
static void map(struct verify_started *s) {
    enum { PAGE = 4096 };
    size_t first = (uintptr_t)verify_shifted(s->call.receive.buffer, s->v.low) % PAGE;
    s->mapped = first + (size_t)(s->v.high - s->v.low) + 1;
    s->pages = mmap(NULL, s->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s->pages == MAP_FAILED) verify_stop(&s->v, "no memory for the MPI's result, %zu bytes from the first to the last", s->mapped);
    s->base = verify_shifted(s->pages + first, -s->v.low);
}

struct verify_started *verify_prepare(const struct shim_call *call, MPI_Comm comm) {
    struct verify own;
    verify_measure(&own, call);
    struct verify_started *s = verify_memory(&own, sizeof *s);
    memset(s, 0, sizeof *s);
    s->call = *call, s->on = (struct shim_comm){.rank = call->on->rank, .size = call->on->size};
    s->call.on = &s->on, s->comm = comm;
    verify_measure(&s->v, &s->call);
    if (s->call.receive.blocks) map(s);
    if (s->call.send_in_place) {
        s->v.input = verify_received(&s->v, s->call.receive.buffer);
        verify_transfer(&s->v, s->base, s->v.input, false);
    }
    s->scale = verify_scale_of(&s->v);
    free(s->v.input);
    s->v.input = NULL;
    return s;
}

/* ---- The MPI's call -------------------------------------------------------------------------------------------- */

/* Its arguments, for _BESIDE in arguments.h. Those of a side that this rank does not use say nothing. */
struct beside {
    const void *send;
    void *receive;
    int64_t sent, count;
    const void *send_counts, *send_starts, *counts, *starts;
    shim_handle send_type, type, op;
    const void *send_types, *types;
    int root;
    shim_handle comm;
    bool wide; /* by the function with counts of 64 bits */
};

/* A side's types, but a valid one where there are no elements: ours keeps none there. */
static const MPI_Datatype *types_of(struct verify_started *s, const struct shim_side *side, int number) {
    if (!side->types) return NULL;
    MPI_Datatype *types = s->types[number] = verify_memory(&s->v, sizeof *types * (size_t)side->blocks);
    for (int b = 0; b < side->blocks; b++) types[b] = shim_count_of(side, b) ? side->types[b] : MPI_BYTE;
    return types;
}

/* A reduce_scatter's counts, which ours has with 64 bits. */
static void list_counts(struct verify_started *s, struct beside *b) {
    const uint64_t *counts = s->call.counts;
    b->counts = counts;
    for (int r = 0; r < s->on.size; r++) b->wide |= counts[r] > INT_MAX;
    if (b->wide) return;
    b->counts = s->counts = verify_memory(&s->v, sizeof *s->counts * (size_t)s->on.size);
    for (int r = 0; r < s->on.size; r++) s->counts[r] = (int)counts[r];
}

static void *receives_at(const struct verify_started *s) {
    const struct shim_call *c = &s->call;
    if (c->receive_in_place) return MPI_IN_PLACE;
    if (shim_broadcasts(c) || (c->folds && !c->receive.blocks)) return c->receive.buffer;
    return s->base;
}

static struct beside arguments(struct verify_started *s) {
    const struct shim_call *c = &s->call;
    const struct shim_side *from = &c->send, *to = &c->receive;
    struct beside b = {.send_type = (shim_handle)MPI_BYTE, .type = (shim_handle)MPI_BYTE, .root = c->root, .comm = (shim_handle)s->comm};
    if (from->blocks) {
        b.send = from->buffer, b.sent = from->count, b.send_type = (shim_handle)from->type;
        b.send_counts = from->counts.at, b.send_starts = from->displacements.at, b.send_types = types_of(s, from, 0);
        b.wide = (from->listed && from->counts.wide) || (!from->listed && b.sent > INT_MAX);
    }
    if (c->send_in_place) b.send = MPI_IN_PLACE;
    b.receive = receives_at(s);
    if (to->blocks && !c->folds) {
        b.count = to->count, b.type = (shim_handle)to->type;
        b.counts = to->counts.at, b.starts = to->displacements.at, b.types = types_of(s, to, 1);
        b.wide |= (to->listed && to->counts.wide) || (!to->listed && b.count > INT_MAX);
    }
    if (!c->folds) return b;
    /* The program's operation gets the program's handle. */
    const struct shim_user *user = c->element < 0 ? c->operation->context : NULL;
    b.op = (shim_handle)c->op, b.type = (shim_handle)(user ? user->type : from->type);
    b.count = c->collective == REDUCE_SCATTER_BLOCK ? c->own : from->count;
    b.wide = c->collective != REDUCE_SCATTER && b.count > INT_MAX;
    if (c->collective == REDUCE_SCATTER) list_counts(s, &b);
    return b;
}

#define SHIM_TEXT(name) SHIM_TEXT_OF(name)
#define SHIM_TEXT_OF(name) #name
/* The MPI's MPI_Ibcast, or MPI_Ibcast_c ... */
#define CASE(NUMBER, Name, name, plan, parts, ...)                                                                     \
    case NUMBER: {                                                                                                     \
        typedef int function(SHIM_PARTS(parts, _C), void *);                                                           \
        function *theirs = (function *)SHIM_ONCE(shim_function, "PMPI_" SHIM_TEXT(SHIM_NAME(I##name)));                \
        return theirs(SHIM_PARTS(parts, _BESIDE), request);                                                            \
    }

#define SHIM_COUNT int
#define SHIM_DISPLACEMENT int
#define SHIM_NAME(name) name
static int call(enum shim_collective collective, const struct beside *b, MPI_Request *request) {
    switch (collective) {
#define COLLECTIVE CASE
#define COLLECTIVE_WITHOUT_DATA(...)
#define NEIGHBORHOOD(...)
#include "collectives.def"
    default: return MPI_ERR_OTHER;
    }
}

#if MPI_VERSION >= 4
#undef SHIM_COUNT
#undef SHIM_DISPLACEMENT
#undef SHIM_NAME
#define SHIM_COUNT MPI_Count
#define SHIM_DISPLACEMENT MPI_Aint
#define SHIM_NAME(name) name##_c
static int call_wide(enum shim_collective collective, const struct beside *b, MPI_Request *request) {
    switch (collective) {
#define COLLECTIVE CASE
#define COLLECTIVE_WITHOUT_DATA(...)
#define NEIGHBORHOOD(...)
#include "collectives.def"
    default: return MPI_ERR_OTHER;
    }
}
#else
#define call_wide call /* no count is wide */
#endif

void verify_start(struct verify_started *s) {
    struct beside b = arguments(s);
    size_t pieces = (s->scale.count + VERIFY_PIECE - 1) / VERIFY_PIECE;
    s->count = (int)(1 + 2 * pieces);
    s->requests = verify_memory(&s->v, sizeof *s->requests * (size_t)s->count);
    shim_thread()->inside++;
    int code = (b.wide ? call_wide : call)(s->call.collective, &b, s->requests);
    if (code != MPI_SUCCESS) verify_fail(&s->v, code);
    verify_reduce_scale(&s->v, &s->scale, s->comm, s->requests + 1);
    shim_thread()->inside--;
    s->state = RUNS;
    pthread_mutex_lock(&lock);
    s->next = all;
    __atomic_store_n(&all, s, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
}

/* ---- Until both are complete ------------------------------------------------------------------------------------ */

static void release(struct verify_started *s) {
    if (s->pages) munmap(s->pages, s->mapped);
    free(s->requests), free(s->scale.more), free(s->scale.less), free(s->types[0]), free(s->types[1]), free(s->counts);
    free(s);
}

/* Are the MPI's requests complete? Those that are null are. */
static bool test(struct verify_started *s) {
    for (int i = 0, done; i < s->count; i++) {
        MPI_Status status;
        int code = PMPI_Test(&s->requests[i], &done, &status);
        if (code != MPI_SUCCESS) return s->code = code, true;
        if (!done) return false;
    }
    return true;
}

/* A test makes the MPI progress, which may call this again: the lock is only tried. */
void verify_move(void) {
    if (is_none() || pthread_mutex_trylock(&lock)) return;
    shim_thread()->inside++;
    for (struct verify_started **at = &all; *at;) {
        struct verify_started *s = *at;
        if (!test(s)) {
            at = &s->next;
            continue;
        }
        __atomic_store_n(at, s->next, __ATOMIC_RELAXED);
        if (__atomic_exchange_n(&s->state, DONE, __ATOMIC_ACQ_REL) == ABANDONED) release(s);
    }
    shim_thread()->inside--;
    pthread_mutex_unlock(&lock);
}

bool verify_is_done(const struct verify_started *s) { return __atomic_load_n(&s->state, __ATOMIC_ACQUIRE) == DONE; }

static bool has_running(MPI_Comm comm) {
    bool has = false;
    pthread_mutex_lock(&lock);
    for (const struct verify_started *s = all; s; s = s->next)
        has |= s->comm == comm && __atomic_load_n(&s->state, __ATOMIC_RELAXED) == RUNS;
    pthread_mutex_unlock(&lock);
    return has;
}

/* Open MPI 4 crashes where it goes on with a collective whose communicator is freed. All ranks have called it, or will: they free the
 * communicator after that. */
void verify_finish(MPI_Comm comm) {
    while (!is_none() && has_running(comm)) verify_move();
}

/* ---- The comparison --------------------------------------------------------------------------------------------- */

void verify_end(struct verify_started *s) {
    struct verify *v = &s->v;
    if (s->code != MPI_SUCCESS) verify_fail(v, s->code);
    shim_thread()->inside++;
    v->ours = verify_received(v, s->call.receive.buffer);
    char *theirs = verify_received(v, s->base);
    verify_compare(v, theirs, &s->scale);
    shim_thread()->inside--;
    free(theirs), free(v->ours);
    release(s);
}

void verify_abandon(struct verify_started *s) {
    if (s && __atomic_exchange_n(&s->state, ABANDONED, __ATOMIC_ACQ_REL) == DONE) release(s);
}
