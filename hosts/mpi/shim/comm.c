/*
 * The entries of communicators, in a hash table that is searched by the handle without a lock. Only writers lock.
 * Entries may be moved or reused while a reader searches; this is safe because their memory is never freed. At worst
 * the reader does not find an entry, and searches again under the lock. A handle's entry keeps its address while the
 * handle is used.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify.h"

MPI_Comm shim_private;

/* ---- The table --------------------------------------------------------------------------------------- */

/* A hash table with open addressing, at most half full. */
struct table {
    unsigned bits;
    size_t used;
    struct shim_comm *slots[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table *table;
static struct shim_comm *unused;

static inline size_t place(uintptr_t key, unsigned bits) { return (uint64_t)key * 0x9e3779b97f4a7c15u >> (64 - bits); }

struct shim_comm *shim_find(MPI_Comm comm) {
    const struct table *t = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
    uintptr_t key = (uintptr_t)comm;
    size_t mask = ((size_t)1 << t->bits) - 1, i = place(key, t->bits);
    for (size_t tried = 0; tried <= mask; tried++, i = (i + 1) & mask) {
        struct shim_comm *entry = __atomic_load_n(&t->slots[i], __ATOMIC_ACQUIRE);
        if (!entry) break;
        if (__atomic_load_n(&entry->key, __ATOMIC_RELAXED) == key) return entry;
    }
    return NULL;
}

static struct table *new_table(unsigned bits) {
    struct table *t = calloc(1, sizeof *t + (sizeof *t->slots << bits));
    if (t) t->bits = bits;
    return t;
}

static void put(struct table *t, struct shim_comm *entry) {
    size_t mask = ((size_t)1 << t->bits) - 1, i = place(entry->key, t->bits);
    while (t->slots[i]) i = (i + 1) & mask;
    __atomic_store_n(&t->slots[i], entry, __ATOMIC_RELEASE);
    t->used++;
}

/* Called under the lock. Old tables are kept, because readers may be in them; all together they are no larger than the
 * newest one. */
static bool make_room(void) {
    struct table *old = table;
    if (old->used + 1 <= (size_t)1 << (old->bits - 1)) return true;
    struct table *larger = new_table(old->bits + 1);
    if (!larger) return false;
    for (size_t i = 0; i < (size_t)1 << old->bits; i++)
        if (old->slots[i]) put(larger, old->slots[i]);
    __atomic_store_n(&table, larger, __ATOMIC_RELEASE);
    return true;
}

/* A new entry, which is not in the table yet; the table has room for it. */
static struct shim_comm *new_entry(void) {
    pthread_mutex_lock(&lock);
    struct shim_comm *entry = unused;
    if (!make_room()) entry = NULL;
    else if (entry) unused = entry->next;
    else entry = calloc(1, sizeof *entry);
    pthread_mutex_unlock(&lock);
    return entry;
}

static void insert(struct shim_comm *entry, uintptr_t key) {
    pthread_mutex_lock(&lock);
    __atomic_store_n(&entry->key, key, __ATOMIC_RELEASE); /* shim_find_again reads it first */
    make_room(); /* several threads may have called new_entry before one inserts; half of the table is spare */
    put(table, entry);
    pthread_mutex_unlock(&lock);
}

/* Removes an entry. Entries after it move up, so that no search ends at the gap. */
static void take_out(struct table *t, const struct shim_comm *entry) {
    size_t mask = ((size_t)1 << t->bits) - 1, gap = place(entry->key, t->bits);
    while (t->slots[gap] && t->slots[gap] != entry) gap = (gap + 1) & mask;
    if (!t->slots[gap]) return;
    for (size_t i = (gap + 1) & mask; t->slots[i]; i = (i + 1) & mask) {
        size_t home = place(t->slots[i]->key, t->bits);
        if (((i - home) & mask) < ((i - gap) & mask)) continue;
        __atomic_store_n(&t->slots[gap], t->slots[i], __ATOMIC_RELEASE);
        gap = i;
    }
    __atomic_store_n(&t->slots[gap], (struct shim_comm *)NULL, __ATOMIC_RELEASE);
    t->used--;
}

static void give_up(struct shim_comm *entry) {
    pthread_mutex_lock(&lock);
    if (entry->key) take_out(table, entry);
    __atomic_store_n(&entry->key, (uintptr_t)0, __ATOMIC_RELAXED);
    entry->next = unused, unused = entry;
    pthread_mutex_unlock(&lock);
}

/* ---- Freed communicators ------------------------------------------------------------------------------- */

static int keyval = MPI_KEYVAL_INVALID;

static int copy_none(MPI_Comm comm, int key, void *extra, void *value, void *copied, int *flag) {
    (void)comm, (void)key, (void)extra, (void)value, (void)copied;
    *flag = 0;
    return MPI_SUCCESS;
}

static int deleted(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)extra;
    struct shim_comm *entry = value;
    unisono_mpi_lease *lease = entry->lease;
    unisono_mpi_levels *levels = entry->levels;
    entry->lease = NULL, entry->comm = NULL, entry->levels = NULL;
    shim_forget_topology(entry);
    give_up(entry);
    shim_release(lease, levels);
    return MPI_SUCCESS;
}

/*
 * The program's delete callbacks may call collectives on the communicator that is being freed. It must not be attached
 * again then: its own attribute would not be deleted any more, and the handle will be reused for another communicator.
 * So its entry is removed before the first callback, on all ranks, whatever the order of each rank's attributes. Until
 * the MPI's function returns, this thread's calls on it go to the MPI.
 */
static int freed(MPI_Comm *comm, int (*underlying)(MPI_Comm *)) {
    if (!shim_is_on() || !comm) return underlying(comm);
    struct shim_thread *self = shim_thread();
    struct shim_freed mine = {(uintptr_t)*comm, self->freeing};
    if (verify_on) verify_finish(*comm);
    shim_orphan_requests(*comm), shim_orphan_persistent(*comm);
    if (shim_find(*comm)) PMPI_Comm_delete_attr(*comm, keyval);
    self->freeing = &mine;
    int code = underlying(comm);
    self->freeing = mine.outer;
    return code;
}

SHIM_EXPORT(comm_free, "Comm_free", (MPI_Comm *comm), (comm)) { return freed(comm, SHIM_ONCE(shim_function, "PMPI_Comm_free")); }

SHIM_EXPORT(comm_disconnect, "Comm_disconnect", (MPI_Comm *comm), (comm)) {
    return freed(comm, SHIM_ONCE(shim_function, "PMPI_Comm_disconnect"));
}

static bool is_being_freed(MPI_Comm comm) {
    for (const struct shim_freed *one = shim_thread()->freeing; one; one = one->outer)
        if (one->key == (uintptr_t)comm) return true;
    return false;
}

/* ---- What a table leaves to the MPI ---------------------------------------------------------------------- */

/* The numbers of collectives in tables. */
static int ruled[COLLECTIVES];

static void prepare_ruled(void) {
#define COLLECTIVE(NUMBER, Name, name, ...) ruled[NUMBER] = unisono_mpi_collective(#name);
#include "collectives.def"
}

static uint32_t left_of(const unisono_mpi_lease *lease) {
    _Static_assert(COLLECTIVES <= 32, "a bit each");
    uint32_t left = 0;
    for (int c = 0; c < COLLECTIVES; c++)
        if (unisono_mpi_leaves_any(lease, ruled[c])) left |= (uint32_t)1 << c;
    return left;
}

bool shim_leaves(const struct shim_comm *on, enum shim_collective collective, uint64_t bytes, bool commutes) {
    return unisono_mpi_leaves(on->lease, ruled[collective], bytes, commutes) || on->yields;
}

/* ---- Preparing -------------------------------------------------------------------------------------------- */

static pthread_once_t private_once = PTHREAD_ONCE_INIT;

/* Made by MPI_Comm_split, because a duplicate would get copies of the program's attributes. */
static void make_private(void) {
    MPI_Comm comm;
    shim_private = MPI_COMM_NULL;
    if (!shim_prepare_progress()) return;
    if (PMPI_Comm_split(MPI_COMM_SELF, 0, 0, &comm) != MPI_SUCCESS) return;
    if (PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN) == MPI_SUCCESS) shim_private = comm;
}

bool shim_prepare_comms(void) {
    enum { FIRST_BITS = 6 };
    if (!table) table = new_table(FIRST_BITS);
    prepare_ruled();
    pthread_once(&private_once, make_private);
    return table && PMPI_Comm_create_keyval(copy_none, deleted, &keyval, NULL) == MPI_SUCCESS;
}

void shim_finish_comms(void) {
    if (!shim_private || shim_private == MPI_COMM_NULL) return;
    shim_finish_progress();
    PMPI_Comm_free(&shim_private);
}

int *shim_ranks_in_world(MPI_Comm comm, int size) {
    MPI_Group world, group;
    int *ranks = malloc(2 * sizeof *ranks * (size_t)size), *own = ranks + size;
    if (!ranks) return NULL;
    for (int r = 0; r < size; r++) own[r] = r;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Comm_group(comm, &group);
    int code = PMPI_Group_translate_ranks(group, size, own, world, ranks);
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    if (code == MPI_SUCCESS) return ranks;
    free(ranks);
    return NULL;
}

/* Are all ranks in this process's MPI_COMM_WORLD? The result is the same on all ranks. */
static bool one_world(MPI_Comm comm, int size) {
    int *ranks = shim_ranks_in_world(comm, size);
    bool one = ranks;
    for (int r = 0; one && r < size; r++) one = ranks[r] != MPI_UNDEFINED;
    free(ranks);
    return one;
}

MPI_Errhandler shim_hush(MPI_Comm comm) {
    MPI_Errhandler handler;
    if (PMPI_Comm_get_errhandler(comm, &handler) != MPI_SUCCESS) return MPI_ERRHANDLER_NULL;
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    return handler;
}

void shim_unhush(MPI_Comm comm, MPI_Errhandler handler) {
    if (handler == MPI_ERRHANDLER_NULL) return;
    PMPI_Comm_set_errhandler(comm, handler);
    PMPI_Errhandler_free(&handler); /* the reference that PMPI_Comm_get_errhandler has made */
}

/* ---- First use -------------------------------------------------------------------------------------------- */

/* Attaches by two collectives of the MPI, as unisono_mpi.h shows. `unable`: a reason of this rank not to attach. */
static int agree(MPI_Comm comm, struct shim_comm *entry, int unable) {
    int reason, worst = REASON_REFUSED;
    unisono_mpi_offer_t mine, *all = calloc(entry->size, sizeof *all);
    unisono_mpi_lease *lease = NULL;
    if (!all) return REASON_REFUSED; /* the other ranks wait for ever then, as if the MPI had no memory */
    unisono_mpi_offer(entry->size, &mine);
    int code = PMPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, comm);
    if (code != MPI_SUCCESS) { /* without the others' offers: so the own offer is given up */
        memset(all, 0, sizeof *all * entry->size);
        all[entry->rank] = mine;
    }
    if (comm == MPI_COMM_WORLD) shim_shown_ranks = unisono_mpi_node_ranks(all, (uint32_t)entry->size, (uint32_t)entry->rank);
    reason = unisono_mpi_attach(all, entry->size, entry->rank, shim_local_ranks(), shim_progress_in_time, &lease);
    if (code != MPI_SUCCESS) reason = REASON_REFUSED;
    if (unable > reason) reason = unable;
    reason = reason * MOVES_ALL + (int)shim_moves();
    if (code == MPI_SUCCESS) code = PMPI_Allreduce(&reason, &worst, 1, MPI_INT, MPI_MAX, comm);
    entry->moves = (enum shim_moves)(worst % MOVES_ALL), worst /= MOVES_ALL;
    if (code != MPI_SUCCESS) worst = REASON_REFUSED;
    entry->comm = unisono_mpi_settle(lease, worst);
    entry->lease = entry->comm ? lease : NULL;
    entry->left = left_of(entry->lease);
    if (worst == REASON_NODES) worst = shim_attach_levels(comm, entry, all, !unable, shim_progress_in_time);
    free(all);
    return worst;
}

enum shim_reason shim_attach_channel(MPI_Comm comm, const struct shim_comm *on, struct shim_comm *channel, enum shim_reason unable) {
    *channel = (struct shim_comm){.rank = on->rank, .size = on->size};
    struct shim_thread *self = shim_thread();
    self->inside++;
    MPI_Errhandler handler = shim_hush(comm);
    channel->reason = agree(comm, channel, unable);
    shim_unhush(comm, handler);
    self->inside--;
    return channel->reason;
}

static int judge(MPI_Comm comm, struct shim_comm *entry, bool inter) {
    bool known = PMPI_Comm_set_attr(comm, keyval, entry) == MPI_SUCCESS; /* `deleted` will be called */
    if (inter) return REASON_INTERCOMMUNICATOR;
    if (entry->size == 1) return REASON_ALONE;
    if (shim_leaves_devices) return REASON_DEVICE;
    if (!one_world(comm, entry->size)) return REASON_WORLDS;
    return agree(comm, entry, known && shim_private != MPI_COMM_NULL ? REASON_NONE : REASON_REFUSED);
}

static struct shim_comm *attach(MPI_Comm comm, int *code) {
    static struct shim_comm none = {.reason = REASON_INTERCOMMUNICATOR};
    int inter = 0;
    if (comm == MPI_COMM_NULL) return &none;
    *code = PMPI_Comm_test_inter(comm, &inter);
    if (*code != MPI_SUCCESS) return NULL;
    struct shim_comm *entry = new_entry();
    if (!entry) {
        *code = MPI_ERR_NO_MEM;
        PMPI_Comm_call_errhandler(comm, *code);
        return NULL;
    }
    entry->comm = NULL, entry->lease = NULL, entry->levels = NULL, entry->left = 0;
    PMPI_Comm_rank(comm, &entry->rank);
    PMPI_Comm_size(comm, &entry->size);
    MPI_Errhandler handler = shim_hush(comm);
    entry->reason = judge(comm, entry, inter);
    shim_unhush(comm, handler);
    insert(entry, (uintptr_t)comm);
    return entry;
}

struct shim_comm *shim_attach(MPI_Comm comm, int *code) {
    static struct shim_comm freed_one = {.reason = REASON_FREED};
    if (is_being_freed(comm)) return &freed_one;
    pthread_mutex_lock(&lock);
    struct shim_comm *entry = shim_find(comm); /* the search without the lock may have missed it */
    pthread_mutex_unlock(&lock);
    if (entry) return entry;
    struct shim_thread *self = shim_thread();
    self->inside++;
    entry = attach(comm, code);
    self->inside--;
    return entry;
}
