#define _GNU_SOURCE
#include "line.h"
#include "methods.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* A reading is the shortest mean of some trains of round trips; between readings there is a nap, and there are so many at most.
 * After so many waits in a row that were in vain a row waits no longer, but for one row in so many, until a reading is in the range. */
enum { TRAINS = 3, TRIPS = 100, NAP_US = 2000, NAPS_MOST = 150, VAIN_MOST = 3, ONE_IN = 64 };

/* What ranks 0 and 1 share, each word on lines of its own. */
struct shared {
    _Alignas(128) atomic_uint ping;
    _Alignas(128) atomic_uint pong;
    /* Twice the number of readings so far, and 1 if the last one is in the range. Written by rank 0. */
    _Alignas(128) atomic_uint told;
};

static struct shared *shared;
static struct line_range range;
static struct clock the_clock;
static unsigned trips, readings;
/* Waits in a row that were in vain; the same number on all ranks. */
static unsigned vain;

void line_start(struct line_range wanted, struct clock clock) {
    range = wanted;
    the_clock = clock;
    if (!range.path) return;
    int file = open(range.path, O_RDWR | O_CLOEXEC);
    void *at = file < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) {
        perror(range.path);
        backend_abort(2);
    }
    close(file);
    shared = at;
    /* What the program before left there would be taken for told. */
    if (backend_rank() == 0) shared->ping = shared->pong = shared->told = 0;
    check(backend_barrier(), "barrier");
}

/* Puts this rank onto the nth core that it may use, if there is one. */
static void pin(const cpu_set_t *allowed, int nth) {
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, allowed) || nth-- > 0) continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(core, &one);
        sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

/* Rank 0's part of a reading. */
static double lead(void) {
    double best = 1e300;
    for (int train = 0; train <= TRAINS; train++) {
        uint64_t begin = ticks_now();
        for (int i = 0; i < TRIPS; i++) {
            atomic_store_explicit(&shared->ping, ++trips, memory_order_release);
            while (atomic_load_explicit(&shared->pong, memory_order_acquire) != trips) continue;
        }
        double ns = ns_between(the_clock, begin, ticks_now()) / TRIPS;
        /* In the first train the other rank may still be on its way. */
        if (train > 0 && ns < best) best = ns;
    }
    return best;
}

/* Rank 1's part: it answers until the reading is told. */
static void follow(unsigned before) {
    while (atomic_load_explicit(&shared->told, memory_order_acquire) / 2 == before) {
        unsigned ping = atomic_load_explicit(&shared->ping, memory_order_acquire);
        if (ping == trips) continue;
        trips = ping;
        atomic_store_explicit(&shared->pong, ping, memory_order_release);
    }
}

/* One reading, by all ranks. */
static bool read_line(double *ns) {
    int rank = backend_rank();
    if (rank == 0) {
        *ns = lead();
        bool within = *ns >= range.least && *ns <= range.most;
        atomic_store_explicit(&shared->told, 2 * ++readings + within, memory_order_release);
        return within;
    }
    if (rank == 1) follow(readings);
    /* Others leave the cores to these two. */
    while (atomic_load_explicit(&shared->told, memory_order_acquire) / 2 == readings) usleep(300);
    readings++;
    return atomic_load_explicit(&shared->told, memory_order_acquire) % 2;
}

/* Ranks 0 and 1 on cores of their own, wherever they may run. */
static void alone(cpu_set_t *before) {
    check(backend_barrier(), "barrier");
    sched_getaffinity(0, sizeof *before, before);
    if (backend_rank() < 2 && CPU_COUNT(before) > 1) pin(before, backend_rank());
}

static void back(const cpu_set_t *before) {
    sched_setaffinity(0, sizeof *before, before);
    /* No rank is a reading ahead of another: there is one word. */
    check(backend_barrier(), "barrier");
}

bool line_settled(bool naps, double *ns) {
    if (!shared || backend_size() < 2) return true;
    cpu_set_t before;
    alone(&before);
    bool within = false;
    int most = naps && (vain < VAIN_MOST || vain % ONE_IN == 0) ? NAPS_MOST : 0;
    for (int i = 0; i <= most && !within; i++) {
        if (i > 0) {
            check(backend_barrier(), "barrier");
            usleep(NAP_US);
        }
        within = read_line(ns);
    }
    back(&before);
    if (within) vain = 0;
    else if (naps) vain++;
    return within;
}

void line_survey(double *ns, int count) {
    cpu_set_t before;
    alone(&before);
    for (int i = 0; i < count; i++) {
        check(backend_barrier(), "barrier");
        usleep(NAP_US);
        read_line(&ns[i]);
    }
    back(&before);
}
