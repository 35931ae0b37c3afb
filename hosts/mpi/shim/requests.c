/*
 * Nonblocking collectives of ours as requests of the MPI: generalized requests, which MPI_Wait, MPI_Test and all their relatives
 * know. The MPI calls `advance` while it waits or tests:
 *
 * - Open MPI whenever it makes progress (opal_progress_register), whatever it waits for;
 * - MPICH while it waits for a request of ours, or tests it (MPIX_Grequest_start), but for MPI_Request_get_status. While the program
 *   waits for something else in the MPI, or computes, a thread moves ours: a peer may need that before it does what the program
 *   waits for. The thread calls no MPI, but for messages between nodes (below).
 *
 * A request leaves the list when its collective is complete; then the MPI is told. What was received is unpacked when the
 * MPI asks for the status, in the thread of the program that waits or tests.
 *
 * Over nodes a collective moves by messages of the MPI's. There the thread does so if the program has MPI_THREAD_MULTIPLE. Else they are
 * ours where the MPI calls `advance` whatever it waits for: Open MPI, and MPICH from 4.3 on (MPIX_Async_start; with several threads it
 * may not be called from there).
 *
 * With UNISONO_VERIFY the MPI's collective runs beside each of ours (verify_started.c), and a request is complete when both are. `advance`
 * tests the MPI's, before it takes the lock.
 *
 * A persistent collective has a handle of its own (persistent.c), so the MPI need not know of what it starts: MPI_Wait and
 * MPI_Test wait for that directly, and a generalized request is made only for functions of several requests.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collectives.h"
#include "verify.h"

/* A collective that was started, until both are done with it: the list, and the MPI. */
struct request {
    struct request *next, *told; /* in the list; among those of which the MPI is to be told */
    int holders;                 /* the list, and the MPI or a persistent collective: the last one frees it; by atomics */
    bool told_of;                /* has the MPI a request of it? changed under the lock */
    unisono_request *ours;       /* null once it is complete, and freed */
    unisono_mpi_levels_request *between; /* the same over nodes */
    MPI_Request handle;
    bool complete; /* the MPI is told, or is being told */
    int error; /* of unisono.h */
    int code;  /* MPI's, once the error was raised */
    struct shim_call call;
    bool unpacks;                         /* what was received is still packed */
    struct shim_shape shape;              /* its own, of what is received */
    MPI_Datatype *types;                  /* duplicates of its types: the program may free those; null: none */
    int type_count;
    void *lists; /* copies of what is received's */
    struct shim_memory kept[SLOTS_OF_A_CALL]; /* the thread's, that the call uses */
    struct shim_user user;                    /* the program's own operation; without `folds.function` there is none */
    struct shim_shape folded;                 /* its elements' */
    void *rooms[2];                           /* and its operands' memory */
    unisono_mpi_lease *lease;   /* the communicator's memory, as in struct shim_comm */
    unisono_mpi_levels *levels;
    bool freed; /* the program has freed the communicator: its last request releases the memory */
    MPI_Comm beside;                /* where the MPI's collective runs, with which it is compared */
    struct verify_started *compared; /* that one; null: there is none */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct request *pending; /* changed under the lock; null can be seen without it */
static unsigned rounds;         /* how often `advance` has moved them */

static bool is_idle(void) { return !__atomic_load_n(&pending, __ATOMIC_RELAXED); }

/* ---- Progress --------------------------------------------------------------------------------------------------- */

/* Moves a collective, under the lock. Is it complete? If another thread calls its communicator now, it is freed later. */
static bool is_done(struct request *r) {
    int done = 1;
    if (r->ours && (r->error = unisono_mpi_test(&r->ours, &done))) r->ours = NULL, done = 1;
    if (r->between) r->error = unisono_mpi_levels_test(&r->between, &done);
    return done;
}

/* Of one that is done: the MPI's collective, with which it is compared, may still run. */
static bool may_complete(const struct request *r) {
    return r->complete || r->error || __builtin_expect(!r->compared, 1) || verify_is_done(r->compared);
}

/* One of its holders lets go of it. The lock is not needed: MPICH calls `release` under a lock of its own, for which a thread may wait
 * that moves messages between nodes under this one. */
static void let_go(struct request *r) {
    if (!__atomic_sub_fetch(&r->holders, 1, __ATOMIC_ACQ_REL)) free(r);
}

static bool uses(const struct request *r, const unisono_mpi_lease *lease, const unisono_mpi_levels *levels) {
    return (lease && r->lease == lease) || (levels && r->levels == levels);
}

/* Of a request that has left the list: releases the memory that no other one needs. */
static void release_of(const struct request *r) {
    bool last = r->freed;
    for (const struct request *other = pending; other && last; other = other->next) last = !uses(other, r->lease, r->levels);
    if (last) unisono_mpi_release(r->lease), unisono_mpi_levels_release(r->levels);
}

/* Moves all collectives, and completes the requests of those that are complete. Returns their number. */
static int advance(void) {
    struct request *done = NULL;
    int completed = 0;
    if (is_idle()) return 0;
    if (__builtin_expect(verify_on, 0)) verify_move();
    if (pthread_mutex_trylock(&lock)) return 0;
    rounds++;
    static int64_t listened;
    if (__builtin_expect(shim_hears_failures, 0) && shim_is_time_to_listen(&listened))
        for (const struct request *r = pending; r; r = r->next)
            if (!r->complete && !r->freed) shim_listen(r->call.on, r->call.comm);
    for (struct request **at = &pending; *at;) {
        struct request *r = *at;
        bool is = is_done(r) && may_complete(r);
        if (is && !r->complete) {
            __atomic_store_n(&r->complete, true, __ATOMIC_RELEASE);
            if (r->told_of) r->told = done, done = r;
            else completed++;
        }
        if (!is || r->ours) {
            at = &r->next;
            continue;
        }
        __atomic_store_n(at, r->next, __ATOMIC_RELAXED);
        release_of(r);
        let_go(r);
    }
    pthread_mutex_unlock(&lock);
    for (struct request *next; done; done = next, completed++) {
        next = done->told; /* once the MPI is told, it may free the request */
        PMPI_Grequest_complete(done->handle);
    }
    return completed;
}

void shim_move_requests(void) { advance(); }

void shim_release(unisono_mpi_lease *lease, unisono_mpi_levels *levels) {
    bool needed = false;
    advance();
    if (!is_idle()) {
        pthread_mutex_lock(&lock);
        for (struct request *r = pending; r; r = r->next)
            if (uses(r, lease, levels)) needed = r->freed = true;
        pthread_mutex_unlock(&lock);
    }
    if (!needed) unisono_mpi_release(lease), unisono_mpi_levels_release(levels);
}

void shim_orphan_requests(MPI_Comm comm) {
    if (is_idle()) return;
    pthread_mutex_lock(&lock);
    for (struct request *r = pending; r; r = r->next)
        if (r->call.comm == comm) r->call.comm = MPI_COMM_WORLD;
    pthread_mutex_unlock(&lock);
}

/* ---- The MPI's calls ---------------------------------------------------------------------------------------------- */

static void free_types(struct request *r) {
    if (r->user.folds.function) shim_let(r->user.op, r->user.type);
    r->user.folds.function = NULL;
    for (int i = 0; i < r->type_count; i++)
        if (r->types[i] != MPI_DATATYPE_NULL) PMPI_Type_free(&r->types[i]);
    r->type_count = 0;
}

/* Unpacks what was received, and compares it. The communicator's error handler is called once, or that of MPI_COMM_WORLD if it was freed. */
static int conclude(struct request *r) {
    if (r->unpacks && !r->error && !transfer(r->call.receive, LOAD_ALL, false)) r->error = UNISONO_ERR_OTHER;
    r->unpacks = false;
    if (r->user.failed && !r->error) r->error = UNISONO_ERR_OTHER;
    if (__builtin_expect(r->compared != NULL, 0)) {
        if (r->error) verify_abandon(r->compared);
        else verify_end(r->compared);
        r->compared = NULL;
    }
    free_types(r);
    if (r->error && !r->code)
        r->code = shim_raise(r->call.comm, SHIM_NUMBER(r->call.form, r->call.collective), r->error);
    return r->code;
}

/* That of a collective says nothing. */
static void describe(MPI_Status *status) {
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, false);
    status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
}

static int query(void *extra, MPI_Status *status) {
    int code = conclude(extra);
    describe(status);
    return code;
}

/* MPICH does not expect calls of the MPI here. */
static int release(void *extra) {
    struct request *r = extra;
    free(r->types), free(r->lists), free(r->rooms[0]), free(r->rooms[1]);
    shim_give_back(r->kept);
    let_go(r);
    return MPI_SUCCESS;
}

/* As MPI says of nonblocking collectives, this is an error. */
static int cancel(void *extra, int complete) { return (void)extra, (void)complete, MPI_ERR_REQUEST; }

/* ---- Whether the MPI calls us ------------------------------------------------------------------------------------ */

typedef int poll_function(void *, MPI_Status *);
typedef int wait_function(int, void **, double, MPI_Status *);
typedef int start_function(MPI_Grequest_query_function *, MPI_Grequest_free_function *, MPI_Grequest_cancel_function *,
                           poll_function *, wait_function *, void *, MPI_Request *);

/* MPICH's; null: this is not MPICH, nor made from it. */
static start_function *start_polled;

/* MPICH's from 4.3 on; null: it is not. */
typedef int async_start_function(int (*)(void *), void *, int);
static async_start_function *start_async;
enum { ASYNC_GOES_ON, ASYNC_ENDS, NO_STREAM = 0x3c000000 }; /* of its mpi.h */
static bool hooked; /* it calls `move_all`; changed under the lock */

/* Is it one that the MPI is to move, where it can? */
static bool is_hooked(const struct request *r) { return r->between || r->user.folds.function; }

/* Under the lock. */
static bool is_any_hooked(void) {
    const struct request *r = pending;
    while (r && !is_hooked(r)) r = r->next;
    return r;
}

static int move_all(void *unused) {
    (void)unused;
    advance();
    if (pthread_mutex_trylock(&lock)) return ASYNC_GOES_ON; /* it is called again */
    hooked = is_any_hooked();
    int result = hooked ? ASYNC_GOES_ON : ASYNC_ENDS;
    pthread_mutex_unlock(&lock);
    return result;
}
static bool crowded;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER;

/* MPICH makes no progress of its own while it waits for ours; and another rank may need the core. */
static int poll_one(void *extra, MPI_Status *status) {
    (void)extra, (void)status;
    if (advance()) return MPI_SUCCESS;
    shim_progress_in_time(true);
    if (crowded) sched_yield();
    return MPI_SUCCESS;
}

/* MPI_Waitall calls it before it waits for the others. */
static int wait_for(int count, void **extras, double timeout, MPI_Status *status) {
    (void)timeout;
    for (int i = 0; i < count; i++) {
        struct request *r = extras[i];
        while (!__atomic_load_n(&r->complete, __ATOMIC_ACQUIRE)) poll_one(r, status);
    }
    return MPI_SUCCESS;
}

enum shim_moves shim_moves(void) {
    int level = MPI_THREAD_SINGLE;
    if (shim_symbol("opal_progress_register")) return MOVES_ALWAYS;
    PMPI_Query_thread(&level);
    if (level == MPI_THREAD_MULTIPLE) return MOVES_BY_THREAD;
    return shim_symbol("PMPIX_Async_start") ? MOVES_ALWAYS : MOVES_ASIDE;
}

static void *watch(void *unused) {
    const struct timespec span = {.tv_nsec = 500000};
    const bool may_call = shim_moves() == MOVES_BY_THREAD;
    for (unsigned seen = 0;;) {
        pthread_mutex_lock(&lock);
        while (!pending) pthread_cond_wait(&some, &lock);
        for (struct request *r = rounds == seen ? pending : NULL; r; r = r->next)
            if ((!r->between || may_call) && !r->user.folds.function) is_done(r);
        seen = rounds;
        pthread_mutex_unlock(&lock);
        nanosleep(&span, NULL);
    }
    return unused;
}

static bool start_watch(void) {
    sigset_t all, before;
    pthread_attr_t detached;
    pthread_t thread;
    if (pthread_attr_init(&detached)) return false;
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the program's threads' */
    bool made = !pthread_create(&thread, &detached, watch, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&detached);
    return made;
}

static bool hear(void) {
    int (*add)(int (*)(void)) = shim_symbol("opal_progress_register");
    crowded = unisono_mpi_crowded(shim_local_ranks());
    if (add) return add(advance) == 0;
    start_polled = shim_symbol("PMPIX_Grequest_start");
    if (!start_polled) start_polled = shim_symbol("MPIX_Grequest_start"); /* in its libmpi_abi */
    if (shim_moves() == MOVES_ALWAYS) start_async = shim_symbol("PMPIX_Async_start");
    return start_polled && start_watch();
}

static int make(struct request *r) {
    if (start_polled) return start_polled(query, release, cancel, poll_one, wait_for, r, &r->handle);
    return PMPI_Grequest_start(query, release, cancel, r, &r->handle);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool ready;
static void prepare_once(void) { ready = hear(); }

bool shim_may_start(const struct shim_comm *on) {
    pthread_once(&once, prepare_once);
    return ready && (on->comm || on->moves != MOVES_ASIDE);
}

/* ---- Starts ------------------------------------------------------------------------------------------------------- */

bool shim_keep_lists(struct shim_side *side, void **copies) {
    size_t bytes = (size_t)side->blocks * (side->counts.wide ? sizeof(int64_t) : sizeof(int));
    if (!side->listed) return true;
    *copies = malloc(2 * bytes + 1);
    if (!*copies) return false;
    memcpy(*copies, side->counts.at, bytes), memcpy((char *)*copies + bytes, side->displacements.at, bytes);
    side->counts.at = *copies, side->displacements.at = (char *)*copies + bytes;
    return true;
}

/* Keeps what is needed to unpack the received data, or to compare it, when the collective is complete. */
static bool keep_types(struct request *r) {
    struct shim_side *side = &r->call.receive;
    int count = side->types ? side->blocks : 1;
    r->shape = *side->shape, side->shape = &r->shape;
    r->types = malloc(sizeof *r->types * (size_t)count);
    if (!r->types || !shim_keep_lists(side, &r->lists)) return false;
    for (; r->type_count < count; r->type_count++) {
        bool used = !side->types || shim_count_of(side, r->type_count) > 0;
        r->types[r->type_count] = used ? shim_duplicate(shim_type_of(side, r->type_count)) : MPI_DATATYPE_NULL;
        if (used && r->types[r->type_count] == MPI_DATATYPE_NULL) return false;
    }
    if (side->types) side->types = r->types;
    else side->type = r->types[0];
    return true;
}

/* Makes the program's own operation, which the call points to, the request's. */
static bool keep_operation(struct request *r) {
    r->user = *(const struct shim_user *)r->call.operation->context, r->folded = *r->user.shape;
    r->user.shape = &r->folded, r->user.failed = false;
    r->user.folds.context = &r->user, r->user.folds.function = NULL;
    if (!shim_hold(r->user.op, r->user.type)) return false;
    r->user.folds.function = r->call.operation->function;
    r->call.operation = &r->user.folds;
    return shim_user_room(&r->user, r->rooms);
}

/* Starts the collective itself; the first error is the rank's own. */
static int start(struct request *r) {
    struct shim_call *c = &r->call;
    struct shim_side *s = &c->send, *to = &c->receive;
    bool by_program = c->folds && c->element < 0, verified = verify_on && verify_compares(c);
    int error = prepare(c, s, SLOT_SEND, LOAD_ALL, c->folds && !by_program);
    if (!error) error = prepare(c, to, SLOT_RECEIVE, input(c), c->folds && !by_program);
    if (by_program && !error && !keep_operation(r)) error = UNISONO_ERR_MEMORY;
    if (c->collective == REDUCE_SCATTER && !c->counts) error = UNISONO_ERR_MEMORY;
    bool receives = to->blocks && !shim_broadcasts(c);
    r->unpacks = receives && to->staged;
    if (!error && (r->unpacks || (receives && verified)) && !keep_types(r)) error = UNISONO_ERR_MEMORY;
    if (error) return report(c->on), error;
    if (!c->folds && !agrees(c)) return refuse(*c);
    if (verified) r->compared = verify_prepare(c, r->beside);
    return call(c);
}

/* Starts it, and lists it if it is not complete `at_once`: then another thread may complete it. Returns the error; then only `release`
 * is left to do. */
static int launch(struct request *r, bool *at_once) {
    int error = start(r);
    count(&r->call, error);
    if (error) {
        verify_abandon(r->compared), r->compared = NULL;
        return free_types(r), error;
    }
    /* The lists of a persistent call are its own. */
    bool uses_memory = r->call.send.staged || r->call.receive.staged;
    if (r->call.form == FORM_NONBLOCKING)
        uses_memory |= r->call.collective == REDUCE_SCATTER || r->call.send.listed || r->call.receive.listed;
    if (uses_memory) shim_take_memory(r->kept);
    if (__builtin_expect(r->compared != NULL, 0)) verify_start(r->compared);
    *at_once = !r->compared && is_done(r) && !r->ours;
    if (*at_once) {
        r->complete = true;
        return UNISONO_OK;
    }
    pthread_mutex_lock(&lock);
    __atomic_add_fetch(&r->holders, 1, __ATOMIC_RELAXED), r->next = pending;
    __atomic_store_n(&pending, r, __ATOMIC_RELAXED);
    bool hooks = start_async && is_hooked(r) && !hooked;
    if (hooks) hooked = true;
    pthread_mutex_unlock(&lock);
    pthread_cond_signal(&some);
    if (hooks) start_async(move_all, NULL, NO_STREAM);
    return UNISONO_OK;
}

static struct request *new_request(struct shim_call of, MPI_Comm beside) {
    struct request *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->call = of, r->call.request = &r->ours, r->call.between = &r->between, r->holders = 1;
    r->lease = of.on->lease, r->levels = of.on->levels, r->beside = beside;
    return r;
}

/* There is no memory for a request: the other ranks must not wait for this one. */
static int fail(struct shim_call of, struct request *r) {
    report(of.on);
    free(r);
    return shim_raise(of.comm, SHIM_NUMBER(of.form, of.collective), UNISONO_ERR_MEMORY);
}

int shim_start(struct shim_call of, MPI_Request *request) {
    struct request *r = new_request(of, of.comm);
    if (!r || make(r) != MPI_SUCCESS) return fail(of, r);
    r->told_of = true;
    MPI_Request handle = r->handle;
    bool at_once;
    int error = launch(r, &at_once);
    if (error) { /* the MPI frees it */
        PMPI_Grequest_complete(handle);
        PMPI_Request_free(&handle);
        return shim_raise(of.comm, SHIM_NUMBER(of.form, of.collective), error);
    }
    *request = handle;
    if (at_once) PMPI_Grequest_complete(handle);
    return MPI_SUCCESS;
}

/* ---- What a persistent collective has started ---------------------------------------------------------------------- */

int shim_begin(struct shim_call of, MPI_Comm beside, struct request **begun) {
    struct request *r = new_request(of, beside);
    if (!r) return fail(of, r);
    bool at_once;
    int error = launch(r, &at_once);
    if (error) {
        release(r);
        return shim_raise(of.comm, SHIM_NUMBER(of.form, of.collective), error);
    }
    *begun = r;
    return MPI_SUCCESS;
}

bool shim_is_complete(struct request *r) {
    MPI_Status none;
    if (!__atomic_load_n(&r->complete, __ATOMIC_ACQUIRE)) poll_one(r, &none);
    return __atomic_load_n(&r->complete, __ATOMIC_ACQUIRE);
}

int shim_end(struct request *r, MPI_Status *status) {
    int code = conclude(r);
    if (status != MPI_STATUS_IGNORE) describe(status);
    release(r);
    return code;
}

bool shim_tell(struct request *r, MPI_Request *request) {
    if (make(r) != MPI_SUCCESS) return false;
    pthread_mutex_lock(&lock);
    bool complete = r->complete;
    r->told_of = true;
    pthread_mutex_unlock(&lock);
    *request = r->handle;
    /* Else whoever completes it tells the MPI. */
    if (complete) PMPI_Grequest_complete(r->handle);
    return true;
}
