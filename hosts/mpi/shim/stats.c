/* Each thread's state, and the sums that UNISONO_STATS=1 prints. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify.h"

const char *const shim_names[SHIM_CALLS] = {
#define COLLECTIVE(NUMBER, Name, name, ...)                                                                            \
    [SHIM_NUMBER(FORM_BLOCKING, NUMBER)] = "MPI_" #Name, [SHIM_NUMBER(FORM_NONBLOCKING, NUMBER)] = "MPI_I" #name,      \
    [SHIM_NUMBER(FORM_PERSISTENT, NUMBER)] = "MPI_" #Name "_init",
#include "collectives.def"
};

static const char *const reasons[REASONS] = {
    [REASON_NONE] = "none",
    [REASON_ALONE] = "alone",
    [REASON_NODES] = "nodes",
    [REASON_FULL] = "full",
    [REASON_REFUSED] = "refused",
    [REASON_VERSIONS] = "versions",
    [REASON_OFF] = "off",
    [REASON_INTERCOMMUNICATOR] = "intercommunicator",
    [REASON_WORLDS] = "worlds",
    [REASON_OPERATION] = "operation",
    [REASON_ELEMENT] = "element",
    [REASON_REENTRANT] = "re-entrant",
    [REASON_ARGUMENTS] = "arguments",
    [REASON_DEVICE] = "device",
    [REASON_FREED] = "freed",
    [REASON_UNATTACHED] = "unattached",
    [REASON_REQUESTS] = "requests",
    [REASON_SPREAD] = "spread",
    [REASON_TABLE] = "table",
};

/* ---- Threads --------------------------------------------------------------------------------------------- */

_Thread_local struct shim_thread *shim_self __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shim_thread *threads;
static pthread_key_t ended;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void leave(void *mine) {
    pthread_mutex_lock(&lock);
    ((struct shim_thread *)mine)->idle = true;
    ((struct shim_thread *)mine)->inside = 0;
    pthread_mutex_unlock(&lock);
    shim_self = NULL;
}

static void make_key(void) { pthread_key_create(&ended, leave); }

struct shim_thread *shim_new_thread(void) {
    static struct shim_thread last_resort; /* if there is no memory; sums may be wrong then */
    pthread_once(&once, make_key);
    pthread_mutex_lock(&lock);
    struct shim_thread *t = threads;
    while (t && !t->idle) t = t->next;
    if (!t && (t = calloc(1, sizeof *t))) t->next = threads, threads = t;
    if (t) t->idle = false;
    pthread_mutex_unlock(&lock);
    if (!t) return &last_resort;
    pthread_setspecific(ended, t);
    return shim_self = t;
}

void *shim_buffer(enum shim_slot slot, size_t bytes) {
    struct shim_thread *t = shim_thread();
    if (t->slots[slot].bytes < bytes || !t->slots[slot].at) {
        free(t->slots[slot].at);
        t->slots[slot].bytes = bytes < 4096 ? 4096 : bytes + bytes / 2;
        t->slots[slot].at = malloc(t->slots[slot].bytes);
        if (!t->slots[slot].at) t->slots[slot].bytes = 0;
    }
    return t->slots[slot].at;
}

/* Bytes of the largest buffer that a thread keeps. */
enum { KEPT = 16 << 20 };

void shim_trim(void) {
    struct shim_thread *t = shim_thread();
    for (int slot = 0; slot < SLOTS; slot++) {
        if (t->slots[slot].bytes <= KEPT) continue;
        free(t->slots[slot].at);
        t->slots[slot].at = NULL, t->slots[slot].bytes = 0;
    }
}

void shim_take_memory(struct shim_memory kept[SLOTS_OF_A_CALL]) {
    struct shim_thread *t = shim_thread();
    for (int slot = 0; slot < SLOTS_OF_A_CALL; slot++) kept[slot] = t->slots[slot], t->slots[slot] = (struct shim_memory){0};
}

void shim_give_back(struct shim_memory kept[SLOTS_OF_A_CALL]) {
    struct shim_thread *t = shim_thread();
    for (int slot = 0; slot < SLOTS_OF_A_CALL; slot++) {
        if (t->slots[slot].at || kept[slot].bytes > KEPT) free(kept[slot].at);
        else t->slots[slot] = kept[slot];
    }
}

/* ---- Sums --------------------------------------------------------------------------------------------------- */

static const char *name_of(int algorithm) {
    if (algorithm == SHIM_TWO_LEVELS) return "two levels";
    if (algorithm == SHIM_NONBLOCKING) return "nonblocking";
    return algorithm == UNISONO_ALGORITHM_NONE ? "failed" : unisono_algorithm_name(algorithm);
}

struct sums {
    uint64_t calls[SHIM_CALLS][SHIM_ALGORITHMS], bytes[SHIM_CALLS], reasons[REASONS], packed, progressed, verified;
    unisono_mpi_sums_t library;
};

static void add_all(uint64_t *to, const uint64_t *from, int n) {
    for (int i = 0; i < n; i++) to[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

static void add_up(struct sums *sums) {
    memset(sums, 0, sizeof *sums);
    pthread_mutex_lock(&lock);
    for (struct shim_thread *t = threads; t; t = t->next) {
        add_all(sums->calls[0], t->calls[0], SHIM_CALLS * SHIM_ALGORITHMS);
        add_all(sums->bytes, t->bytes, SHIM_CALLS);
        add_all(sums->reasons, t->reasons, REASONS);
        add_all(&sums->packed, &t->packed, 1);
        add_all(&sums->progressed, &t->progressed, 1);
    }
    pthread_mutex_unlock(&lock);
    sums->verified = verify_calls();
    unisono_mpi_sums(&sums->library);
}

/* Prints a line for each collective and reason that occurred; tests read it. Each line is one call of fprintf, hence
   one write, so that what other ranks print does not come in the middle of it. */
static void print(const struct sums *s, int ranks) {
    typedef unsigned long long number;
    fprintf(stderr, "unisono: statistics, sums of %d ranks\n", ranks);
    for (int i = 0; i < SHIM_CALLS; i++) {
        char by[1024] = ""; /* the calls by each algorithm; cut where they are longer */
        size_t length = 0;
        number calls = 0;
        for (int a = 0; a < SHIM_ALGORITHMS; a++) {
            const number n = s->calls[i][a];
            calls += n;
            if (n && length < sizeof by)
                length += (size_t)snprintf(by + length, sizeof by - length, " %s %llu", name_of(a), n);
        }
        if (!calls) continue;
        fprintf(stderr, "unisono:   %-24s %12llu calls %16llu bytes:%s\n", shim_names[i], calls, (number)s->bytes[i], by);
    }
    for (int i = 0; i < REASONS; i++)
        if (s->reasons[i])
            fprintf(stderr, "unisono:   to the MPI: %-17s %9llu calls\n", reasons[i], (number)s->reasons[i]);
    if (s->packed) fprintf(stderr, "unisono:   packed %llu bytes\n", (number)s->packed);
    if (verify_on) fprintf(stderr, "unisono:   verified %llu calls\n", (number)s->verified);
    const unisono_mpi_sums_t *l = &s->library;
    fprintf(stderr, "unisono:   waits %llu, progress calls %llu\n", (number)l->waits, (number)s->progressed);
    fprintf(stderr, "unisono:   arenas %llu bytes, in use %llu, at most %llu\n", (number)l->arena, (number)l->used,
            (number)l->most_used);
    fprintf(stderr, "unisono:   communicators attached %llu, released %llu\n", (number)l->attached,
            (number)l->released);
    if (l->lent || l->refused)
        fprintf(stderr, "unisono:   messages lent %llu, refused %llu\n", (number)l->lent, (number)l->refused);
    if (l->heap_used || l->heap_kept || l->heap_touched)
        fprintf(stderr, "unisono:   heaps: blocks %llu bytes, freed and kept %llu, pages %llu\n", (number)l->heap_used,
                (number)l->heap_kept, (number)l->heap_touched);
    if (l->pages)
        fprintf(stderr, "unisono:   pages %llu, on another NUMA node than their rank %llu\n", (number)l->pages,
                (number)l->elsewhere);
    if (l->over_switches) fprintf(stderr, "unisono:   calls over switches %llu\n", (number)l->over_switches);
}

void shim_print_stats(void) {
    struct sums mine, all;
    int rank, size;
    add_up(&mine);
    shim_thread()->inside++;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    /* In pieces: beyond 2 KiB MPICH 4.0's MPI_Reduce is wrong where nodes have different numbers of ranks. */
    enum { PIECE = 128, WORDS = sizeof mine / sizeof(uint64_t) };
    int code = MPI_SUCCESS;
    for (int i = 0; code == MPI_SUCCESS && i < WORDS; i += PIECE)
        code = PMPI_Reduce((uint64_t *)&mine + i, (uint64_t *)&all + i, WORDS - i < PIECE ? WORDS - i : PIECE, MPI_UINT64_T,
                           MPI_SUM, 0, MPI_COMM_WORLD);
    shim_thread()->inside--;
    if (code == MPI_SUCCESS && rank == 0) print(&all, size);
}
