/*
 * Persistent collectives of ours, and the MPI's functions that start and complete requests.
 *
 * Ranks may start persistent collectives in any order, since MPI matches them when they are made (MPI 4.1, section 6.13). So each has
 * memory of its own, as a communicator has. For the program it is a persistent request of the MPI's that never starts, a receive
 * from itself: a handle that is valid wherever one may stand, also in Fortran. (For Intel MPI one from MPI_PROC_NULL is complete
 * before it starts.) Each start begins a nonblocking collective (requests.c). MPI_Wait and MPI_Test wait for it directly; for
 * functions of several requests it gets a request of the MPI's, which the functions below put in the handle's place. Where there is
 * no persistent collective they pass on what they get.
 */
#include <pthread.h>
#include <stdlib.h>

#include "collectives.h"
#include "verify.h"

struct persistent {
    struct persistent *next;    /* in its bucket */
    MPI_Request handle;    /* the program's */
    struct request *begun; /* what was started; null: nothing, or it is complete, or the MPI has a request of it: */
    MPI_Request active;    /* or MPI_REQUEST_NULL */
    struct shim_comm channel;
    struct shim_call call;
    /* What the call points to. */
    struct shim_shape shapes[2];
    MPI_Datatype *types; /* duplicates: the program may free its own */
    int type_count;
    void *lists[2]; /* copies */
    struct shim_memory kept[SLOTS_OF_A_CALL];
    MPI_Comm beside;       /* where UNISONO_VERIFY compares it with the MPI's; or MPI_COMM_NULL */
    struct shim_user user; /* the program's own operation; without `folds.function` there is none */
    struct shim_shape folded;
};

enum { BUCKETS = 256 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct persistent *table[BUCKETS];
static int number; /* of all; read without the lock */

static bool is_none(void) { return __builtin_expect(!__atomic_load_n(&number, __ATOMIC_RELAXED), 1); }

static struct persistent **bucket(MPI_Request handle) {
    uint64_t mixed = (uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15;
    return &table[mixed >> 56];
}

static struct persistent *find(MPI_Request handle) {
    if (is_none()) return NULL;
    pthread_mutex_lock(&lock);
    struct persistent *p = *bucket(handle);
    while (p && p->handle != handle) p = p->next;
    pthread_mutex_unlock(&lock);
    return p;
}

void shim_orphan_persistent(MPI_Comm comm) {
    if (is_none()) return;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < BUCKETS; i++)
        for (struct persistent *p = table[i]; p; p = p->next)
            if (p->call.comm == comm) p->call.comm = MPI_COMM_WORLD;
    pthread_mutex_unlock(&lock);
}

/* ---- Making and freeing ----------------------------------------------------------------------------------------- */

/* Adds a type to those that are kept. */
static bool keep_type(struct persistent *p, MPI_Datatype type, bool used) {
    MPI_Datatype kept = MPI_DATATYPE_NULL;
    if (used && shim_predefined(type)) kept = type;
    else if (used && (kept = shim_duplicate(type)) == MPI_DATATYPE_NULL) return false;
    p->types[p->type_count++] = kept;
    return true;
}

/* Makes a side independent of the program's types, and of the thread. */
static bool keep_side(struct persistent *p, struct shim_side *side, int number) {
    if (!side->blocks) return true;
    p->shapes[number] = *side->shape, side->shape = &p->shapes[number];
    if (!shim_keep_lists(side, &p->lists[number])) return false;
    MPI_Datatype *own = p->types + p->type_count;
    for (int b = 0; b < (side->types ? side->blocks : 1); b++)
        if (!keep_type(p, shim_type_of(side, b), !side->types || shim_count_of(side, b) > 0)) return false;
    if (side->types) side->types = own;
    else side->type = *own;
    return true;
}

/* Makes the program's own operation, which the call points to, the persistent call's. */
static bool keep_operation(struct persistent *p) {
    if (!p->call.folds || p->call.element >= 0) return true;
    const struct shim_user *theirs = p->call.operation->context;
    if (!shim_hold(theirs->op, theirs->type)) return false;
    p->user = *theirs, p->folded = *theirs->shape;
    p->user.shape = &p->folded, p->user.folds.context = &p->user;
    p->call.operation = &p->user.folds;
    return true;
}

static bool keep(struct persistent *p) {
    p->types = calloc((size_t)(p->call.send.blocks + p->call.receive.blocks) + 1, sizeof *p->types);
    shim_take_memory(p->kept);
    return p->types && keep_operation(p) && keep_side(p, &p->call.send, 0) && keep_side(p, &p->call.receive, 1);
}

/* Frees all but the program's handle. */
static void discard(struct persistent *p) {
    if (!p) return;
    for (int i = 0; i < p->type_count; i++)
        if (p->types[i] != MPI_DATATYPE_NULL && !shim_predefined(p->types[i])) PMPI_Type_free(&p->types[i]);
    if (p->user.folds.function) shim_let(p->user.op, p->user.type);
    free(p->types), free(p->lists[0]), free(p->lists[1]);
    if (p->beside != MPI_COMM_NULL) PMPI_Comm_free(&p->beside);
    shim_give_back(p->kept);
    shim_release(p->channel.lease, p->channel.levels);
    free(p);
}

/*
 * For UNISONO_VERIFY a communicator on which the MPI's collectives run: ranks may start persistent ones in any order, and the MPI's nonblocking
 * ones have that of their starts. (MPICH 4.0's own persistent ones do not work.) It is no duplicate, which would have the program's attributes.
 */
static bool make_beside(struct persistent *p) {
    if (!verify_on || !verify_compares(&p->call)) return true;
    shim_thread()->inside++;
    int code = PMPI_Comm_split(p->call.comm, 0, p->channel.rank, &p->beside);
    shim_thread()->inside--;
    return code == MPI_SUCCESS;
}

enum shim_route shim_persist(struct shim_call of, MPI_Request *request) {
    struct shim_comm none;
    struct persistent *p = calloc(1, sizeof *p);
    if (p) p->call = of, p->handle = p->active = MPI_REQUEST_NULL, p->beside = MPI_COMM_NULL;
    bool able = p && keep(p);
    if (able) able = PMPI_Recv_init(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_SELF, &p->handle) == MPI_SUCCESS;
    enum shim_reason reason = shim_attach_channel(of.comm, of.on, p ? &p->channel : &none, able ? REASON_NONE : REASON_REFUSED);
    if (reason == REASON_NONE && !make_beside(p)) reason = REASON_REFUSED;
    if (reason != REASON_NONE) {
        if (p && p->handle != MPI_REQUEST_NULL) PMPI_Request_free(&p->handle);
        discard(p);
        return passed_on(reason);
    }
    p->call.on = &p->channel;
    *request = p->handle;
    pthread_mutex_lock(&lock);
    struct persistent **in = bucket(p->handle);
    p->next = *in, *in = p;
    __atomic_store_n(&number, number + 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
    return ROUTE_TAKEN;
}

static bool is_active(const struct persistent *p) { return p->begun || p->active != MPI_REQUEST_NULL; }

/* What is active must not be freed or started. */
static int refused(const struct persistent *p) {
    PMPI_Comm_call_errhandler(p->call.comm, MPI_ERR_REQUEST);
    return MPI_ERR_REQUEST;
}

SHIM_EXPORT(request_free, "Request_free", (MPI_Request *request), (request)) {
    typedef int function(MPI_Request *);
    function *underlying = (function *)SHIM_ONCE(shim_function, "PMPI_Request_free");
    struct persistent *p = is_none() || !request ? NULL : find(*request);
    if (!p) return underlying(request);
    if (is_active(p)) return refused(p);
    pthread_mutex_lock(&lock);
    struct persistent **at = bucket(p->handle);
    while (*at != p) at = &(*at)->next;
    *at = p->next;
    __atomic_store_n(&number, number - 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
    discard(p);
    return underlying(request);
}

/* ---- Starting --------------------------------------------------------------------------------------------------- */

static int start(struct persistent *p) { return is_active(p) ? refused(p) : shim_begin(p->call, p->beside, &p->begun); }

SHIM_EXPORT(start, "Start", (MPI_Request *request), (request)) {
    typedef int function(MPI_Request *);
    struct persistent *p = is_none() || !request ? NULL : find(*request);
    return p ? start(p) : ((function *)SHIM_ONCE(shim_function, "PMPI_Start"))(request);
}

SHIM_EXPORT(startall, "Startall", (int count, MPI_Request *requests), (count, requests)) {
    typedef int function(int, MPI_Request *);
    function *underlying = (function *)SHIM_ONCE(shim_function, "PMPI_Startall");
    int from = 0, code = MPI_SUCCESS; /* the first that was not started */
    for (int i = 0; !is_none() && requests && i < count && code == MPI_SUCCESS; i++) {
        struct persistent *p = find(requests[i]);
        if (!p) continue;
        if (from < i) code = underlying(i - from, requests + from);
        if (code == MPI_SUCCESS) code = start(p);
        from = i + 1;
    }
    return code == MPI_SUCCESS && (from < count || !from) ? underlying(count - from, requests + from) : code;
}

/* ---- Completing ------------------------------------------------------------------------------------------------- */

static int end(struct persistent *p, MPI_Status *status) {
    struct request *begun = p->begun;
    p->begun = NULL;
    return shim_end(begun, status);
}

/* Has the MPI make a request of what was started; where it can't, that is waited for. */
static void tell(struct persistent *p) {
    if (!p->begun) return;
    if (shim_tell(p->begun, &p->active)) {
        p->begun = NULL;
        return;
    }
    while (!shim_is_complete(p->begun)) {}
    end(p, MPI_STATUS_IGNORE);
}

/* The requests of a call, with those of what was started in the places of their handles. */
struct exchanged {
    MPI_Request few[16], *all;
};

/* False: none of the program's requests is one of ours, or there is no memory. */
static bool exchange(struct exchanged *e, int count, const MPI_Request *theirs) {
    e->all = NULL;
    for (int i = 0; theirs && i < count; i++) {
        struct persistent *p = find(theirs[i]);
        if (p) tell(p);
        if (!p || p->active == MPI_REQUEST_NULL) continue;
        if (!e->all) {
            e->all = count <= 16 ? e->few : malloc(sizeof *e->all * (size_t)count);
            if (!e->all) return false;
            for (int k = 0; k < count; k++) e->all[k] = theirs[k];
        }
        e->all[i] = p->active;
    }
    return e->all;
}

/* What the call has made of them. */
static void change_back(struct exchanged *e, int count, MPI_Request *theirs) {
    for (int i = 0; i < count; i++) {
        struct persistent *p = find(theirs[i]);
        if (p && p->active != MPI_REQUEST_NULL) p->active = e->all[i];
        else theirs[i] = e->all[i];
    }
    if (e->all != e->few) free(e->all);
}

/* What a request stands for that was started, and of which the MPI has no request; or null. */
static struct persistent *begun(const MPI_Request *request) {
    struct persistent *p = request ? find(*request) : NULL;
    return p && p->begun ? p : NULL;
}

/* Defines a function that completes or tests some of `count` `requests`; of one, `directly` does it with what has begun. */
#define COMPLETES(lower, Name, count, parameters, names) COMPLETES_ONE(lower, Name, count, parameters, names, )
#define COMPLETES_ONE(lower, Name, count, parameters, names, directly)                                                 \
    SHIM_EXPORT(lower, Name, parameters, names) {                                                                      \
        typedef int function parameters;                                                                               \
        function *underlying = (function *)SHIM_ONCE(shim_function, "PMPI_" Name);                                     \
        struct exchanged e;                                                                                            \
        MPI_Request *theirs = requests;                                                                                \
        if (is_none()) return underlying names;                                                                        \
        directly;                                                                                                      \
        if (!exchange(&e, count, theirs)) return underlying names;                                                     \
        requests = e.all;                                                                                              \
        int code = underlying names;                                                                                   \
        change_back(&e, count, theirs);                                                                                \
        return code;                                                                                                   \
    }

COMPLETES_ONE(wait, "Wait", 1, (MPI_Request *requests, void *status), (requests, status), {
    struct persistent *p = begun(requests);
    while (p && !shim_is_complete(p->begun)) {}
    if (p) return end(p, status);
})
COMPLETES_ONE(test, "Test", 1, (MPI_Request *requests, int *flag, void *status), (requests, flag, status), {
    struct persistent *p = begun(requests);
    if (p && flag) return (*flag = shim_is_complete(p->begun)) ? end(p, status) : MPI_SUCCESS;
})
COMPLETES(waitany, "Waitany", count, (int count, MPI_Request *requests, int *index, void *status), (count, requests, index, status))
COMPLETES(testany, "Testany", count, (int count, MPI_Request *requests, int *index, int *flag, void *status),
          (count, requests, index, flag, status))
COMPLETES(waitall, "Waitall", count, (int count, MPI_Request *requests, void *statuses), (count, requests, statuses))
COMPLETES(testall, "Testall", count, (int count, MPI_Request *requests, int *flag, void *statuses), (count, requests, flag, statuses))
COMPLETES(waitsome, "Waitsome", count, (int count, MPI_Request *requests, int *completed, int *indices, void *statuses),
          (count, requests, completed, indices, statuses))
COMPLETES(testsome, "Testsome", count, (int count, MPI_Request *requests, int *completed, int *indices, void *statuses),
          (count, requests, completed, indices, statuses))
COMPLETES(cancel, "Cancel", 1, (MPI_Request *requests), (requests))

/* MPICH's does not move ours (requests.c). */
SHIM_EXPORT(request_get_status, "Request_get_status", (shim_handle request, int *flag, void *status), (request, flag, status)) {
    typedef int function(shim_handle, int *, void *);
    struct persistent *p = is_none() ? NULL : find((MPI_Request)request);
    if (p) tell(p);
    if (p && p->active != MPI_REQUEST_NULL) request = (shim_handle)p->active;
    shim_move_requests();
    return ((function *)SHIM_ONCE(shim_function, "PMPI_Request_get_status"))(request, flag, status);
}
