#include "methods.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void check(int code, const char *what) {
    if (code == 0) return;
    fprintf(stderr, "%s: %s\n", what, backend_error(code));
    backend_abort(4);
}

/* ---- Buffers: slots of a power of two in number, each on lines of its own ---- */

struct buffers {
    uint8_t *send, *receive;
    size_t send_stride, receive_stride, mask;
};

static size_t stride_of(size_t elements) { return (elements * 8 + 64 + 63) / 64 * 64; }

static size_t slots_of(const struct cell *cell) {
    size_t send = stride_of(sends_most(cell)), receive = stride_of(receives_most(cell));
    size_t fitting = POOL / (send > receive ? send : receive), slots = SLOTS_LEAST;
    while (slots * 2 <= fitting && slots < SLOTS_MOST) slots *= 2;
    return slots;
}

size_t memory_of(const struct cell *cell) {
    return slots_of(cell) * (stride_of(sends_most(cell)) + stride_of(receives_most(cell)));
}

static struct buffers buffers_of(const struct plan *plan, const struct cell *cell) {
    struct buffers b = {plan->memory, NULL, stride_of(sends_most(cell)), stride_of(receives_most(cell)), 0};
    b.mask = slots_of(cell) - 1;
    b.receive = b.send + b.send_stride * (b.mask + 1);
    return b;
}

static uint64_t *send_at(const struct buffers *b, size_t i) {
    return (uint64_t *)(b->send + (i & b->mask) * b->send_stride);
}
static uint64_t *receive_at(const struct buffers *b, size_t i) {
    return (uint64_t *)(b->receive + (i & b->mask) * b->receive_stride);
}

/* Stores a byte of every line, the same value: each is dirty in this core's cache. */
static void dirty(void *memory, size_t elements) {
    volatile uint8_t *bytes = memory;
    for (size_t at = 0; at < elements * 8; at += 64) bytes[at] = bytes[at];
}

/* ---- A row's own state ---- */

struct row {
    const struct plan *plan;
    const struct cell *cell;
    operation *run;
    bool rotating;
    bool apart; /* a broadcast's root passes its send buffer */
    struct buffers buffers;
};

enum { NO_ROOT = -1 };

static int root_of(const struct row *row, size_t i) { return row->rotating ? (int)(i % row->cell->size) : 0; }

static inline void run(const struct row *row, size_t i, int root) {
    const struct buffers *b = &row->buffers;
    uint64_t *send = send_at(b, i), *receive = row->apart && root == row->cell->rank ? send : receive_at(b, i);
    struct call call = {send, receive, row->cell->n, root};
    check(row->run(&call), row->cell->subject->name);
}

/* Dirties this rank's send and receive buffers. */
static void soil(const struct row *row, size_t i, int root) {
    dirty(send_at(&row->buffers, i), sends(row->cell, root));
    dirty(receive_at(&row->buffers, i), receives(row->cell, root));
}

/* Fills the slots that `used` operations use. */
static void prepare(const struct row *row, size_t used, uint64_t seed) {
    for (size_t slot = 0; slot < used && slot <= row->buffers.mask; slot++) {
        fill_send(row->cell, send_at(&row->buffers, slot), seed + slot);
        fill_receive(row->cell, receive_at(&row->buffers, slot), row->apart ? NO_ROOT : root_of(row, slot), seed + slot);
    }
}

static void wrong(const struct cell *cell, const char *when, int root) {
    fprintf(stderr, "wrong result: %s of %llu bytes from root %d at rank %d, %s\n", cell->subject->name,
            (unsigned long long)cell->bytes, root, cell->rank, when);
    backend_abort(3);
}

/* Checks each slot after `used` operations, by the last one on it. */
static void inspect(const struct row *row, size_t used, uint64_t seed, const char *when) {
    size_t slots = row->buffers.mask + 1;
    for (size_t slot = 0; slot < used && slot < slots; slot++) {
        int root = root_of(row, slot + (used - 1 - slot) / slots * slots);
        if (!arrived(row->cell, receive_at(&row->buffers, slot), root, seed + slot)) wrong(row->cell, when, root);
    }
}

static uint64_t agreed(uint64_t value) {
    check(backend_bcast_bytes(&value, sizeof value, 0), "agree");
    return value;
}

/* Compares the first double at each address. */
static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Nanoseconds of an operation with a barrier after it, and of dirtying its buffers before it, by rank 0's medians. The
 * number of iterations follows from them. */
static double estimate(const struct row *row, double *dirtying) {
    double ns[20], before[20];
    size_t tries = 0;
    for (double spent = 0; tries < 2 || (tries < 20 && agreed(spent < 20e6)); spent += ns[tries++]) {
        uint64_t begin = ticks_now();
        soil(row, tries, 0);
        before[tries] = ns_between(row->plan->clock, begin, ticks_now());
        check(backend_barrier(), "barrier");
        begin = ticks_now();
        run(row, tries, 0);
        check(backend_barrier(), "barrier");
        ns[tries] = ns_between(row->plan->clock, begin, ticks_now());
    }
    qsort(ns, tries, sizeof *ns, by_value);
    qsort(before, tries, sizeof *before, by_value);
    *dirtying = (double)agreed((uint64_t)before[tries / 2]);
    return (double)agreed((uint64_t)ns[tries / 2] + 1);
}

static struct sample summary(double *samples, size_t count, uint64_t iterations) {
    qsort(samples, count, sizeof *samples, by_value);
    return (struct sample){iterations, samples[(count - 1) / 2], samples[(count - 1) * 99 / 100], samples[count - 1]};
}

/* Gathers all ranks' `words` words, by rank, in plan->times; this rank's own already lie in their place. */
static void gather_times(const struct row *row, size_t words) {
    for (int rank = 0; rank < row->cell->size; rank++)
        check(backend_bcast_bytes(row->plan->times + rank * words, words * 8, rank), "gather times");
}

void verify(const struct plan *plan, const struct cell *cell, operation *call) {
    struct row row = {plan, cell, call, true, false, buffers_of(plan, cell)};
    size_t times = rooted(cell) ? (size_t)cell->size : 2;
    for (size_t i = 0; i < times; i++) {
        /* From root i, whatever the slot. */
        fill_send(cell, send_at(&row.buffers, i), 7 + i);
        fill_receive(cell, receive_at(&row.buffers, i), (int)(i % cell->size), 7 + i);
        run(&row, i, (int)(i % cell->size));
        if (!arrived(cell, receive_at(&row.buffers, i), (int)(i % cell->size), 7 + i)) wrong(cell, "first", (int)i);
    }
}

/* Operations between two agreements on a deadline: a stall spoils no more than these. Words of an
 * operation's record: start, end, lateness. Nanoseconds by which a rank may miss the deadline. */
enum { TRAIN = 32, EACH = 3, LATE_NS = 300 };

struct sample window(const struct plan *plan, const struct cell *cell, operation *call, bool rotating) {
    const struct clock clock = plan->clock;
    struct row row = {plan, cell, call, rotating, false, buffers_of(plan, cell)};
    prepare(&row, 20, 0);
    double dirtying, ns = estimate(&row, &dirtying);
    /* Between two deadlines: the operation with room for a slow one, the dirtying of buffers, slack. */
    double gap = ns + (ns < 100e3 ? 3 * ns : 300e3 + ns / 4) + (plan->crowded ? 50e3 + 4 * dirtying : 4e3 + 1.5 * dirtying);
    uint64_t iterations = (uint64_t)(plan->budget_ns / gap);
    iterations = iterations < plan->least ? plan->least : iterations > WINDOW_MOST ? WINDOW_MOST : iterations;
    prepare(&row, iterations, 100);
    iterations = agreed(iterations);
    uint64_t step = agreed((uint64_t)(gap / clock.tick));
    uint64_t head = (uint64_t)((50e3 + 10 * ns + (plan->crowded ? 1e6 : 0)) / clock.tick) + step;

    uint64_t *mine = plan->times + (size_t)cell->rank * iterations * EACH, deadline = 0;
    for (uint64_t i = 0; i < iterations; i++, deadline += step) {
        int root = root_of(&row, i);
        if (i % TRAIN == 0) {
            check(backend_barrier(), "barrier");
            deadline = agreed(ticks_now() + head);
        }
        soil(&row, i, root);
        while (ticks_now() < deadline)
            if (plan->crowded) sched_yield();
        uint64_t start = ticks_now();
        run(&row, i, root);
        mine[EACH * i] = start;
        mine[EACH * i + 1] = ticks_now();
        mine[EACH * i + 2] = start - deadline;
    }
    inspect(&row, iterations, 100, "in the window");
    gather_times(&row, iterations * EACH);

    struct timing {
        double late, ns;
    } *all = malloc(iterations * sizeof *all);
    double *kept = malloc(iterations * sizeof *kept);
    if (!all || !kept) backend_abort(2);
    size_t in_time = 0;
    for (uint64_t i = 0; i < iterations; i++) {
        uint64_t first = UINT64_MAX, last = 0, late = 0;
        for (int rank = 0; rank < cell->size; rank++) {
            const uint64_t *t = plan->times + (rank * iterations + i) * EACH;
            if (rooted(cell) ? rank == root_of(&row, i) : t[0] < first) first = t[0];
            if (t[1] > last) last = t[1];
            if (t[2] > late) late = t[2];
        }
        all[i] = (struct timing){(double)late * clock.tick, ns_between(clock, first, last)};
        if (all[i].late <= LATE_NS) in_time++;
    }
    /* When crowded, lateness is part of the figure; else operations in time count, or the tenth that is least late. */
    qsort(all, iterations, sizeof *all, by_value);
    size_t count = plan->crowded ? iterations : in_time > iterations / 10 ? in_time : iterations / 10 + 1;
    for (size_t i = 0; i < count; i++) kept[i] = all[i].ns;
    struct sample sample = summary(kept, count, count);
    free(kept);
    free(all);
    return sample;
}

/* The least number of operations of a repetition: with a single one all ranks would start and end together. */
enum { BACK_TO_BACK = 4 };

/* Operations of a repetition that fit the budget, between two bounds. */
static uint64_t fitting(const struct row *row, uint64_t least, uint64_t most) {
    const struct plan *plan = row->plan;
    double dirtying, wanted = plan->budget_ns / (double)plan->repetitions / estimate(row, &dirtying);
    return agreed(wanted < (double)least ? least : wanted > (double)most ? most : (uint64_t)wanted);
}

/* This rank's words, one for each repetition: picoseconds of an operation. */
static uint64_t *repetitions_of(const struct row *row) {
    return row->plan->times + (size_t)row->cell->rank * row->plan->repetitions;
}

/* Gathers the repetitions of all ranks. A repetition's time is that of the slowest rank, or the mean over ranks. */
static struct sample over_ranks(const struct row *row, uint64_t iterations, bool mean) {
    const struct plan *plan = row->plan;
    int size = row->cell->size;
    gather_times(row, plan->repetitions);
    double *kept = malloc(plan->repetitions * sizeof *kept);
    if (!kept) backend_abort(2);
    for (uint64_t repetition = 0; repetition < plan->repetitions; repetition++) {
        double most = 0, sum = 0;
        for (int rank = 0; rank < size; rank++) {
            double t = (double)plan->times[rank * plan->repetitions + repetition] / 1000;
            sum += t;
            if (t > most) most = t;
        }
        kept[repetition] = mean ? sum / size : most;
    }
    struct sample sample = summary(kept, plan->repetitions, plan->repetitions * iterations);
    free(kept);
    return sample;
}

/* Operations back to back. */
static struct sample back_to_back(struct row row) {
    const struct plan *plan = row.plan;
    prepare(&row, 20, 0);
    uint64_t iterations = fitting(&row, BACK_TO_BACK, 1000000), *mine = repetitions_of(&row);
    for (uint64_t repetition = 0; repetition < plan->repetitions; repetition++) {
        uint64_t seed = 1000 + repetition * SLOTS_MOST;
        prepare(&row, iterations, seed);
        check(backend_barrier(), "barrier");
        uint64_t begin = ticks_now();
        int root = 0;
        for (uint64_t i = 0; i < iterations; i++) {
            run(&row, i, root);
            if (row.rotating && ++root == row.cell->size) root = 0;
        }
        mine[repetition] = (uint64_t)(ns_between(plan->clock, begin, ticks_now()) * 1000 / (double)iterations);
        inspect(&row, iterations, seed, "at full rate");
    }
    return over_ranks(&row, iterations, false);
}

struct sample rate(const struct plan *plan, const struct cell *cell, operation *call, bool rotating) {
    return back_to_back((struct row){plan, cell, call, rotating, false, buffers_of(plan, cell)});
}

/* Every operation in the first slot. */
static struct row warm(const struct plan *plan, const struct cell *cell, operation *call, bool rotating) {
    struct row row = {plan, cell, call, rotating, false, buffers_of(plan, cell)};
    row.buffers.mask = 0;
    return row;
}

struct sample imb(const struct plan *plan, const struct cell *cell, operation *call, bool rotating) {
    struct row row = warm(plan, cell, call, rotating);
    /* Each rank is the root in turn, so all receive from another before the result is looked at. */
    row.apart = cell->subject->kind == BCAST && rotating && cell->size > 1;
    return back_to_back(row);
}

/* OSU's numbers of operations: of short messages, and the least of long ones. */
enum { OSU_MOST = 1000, OSU_LEAST = 10 };

struct sample osu(const struct plan *plan, const struct cell *cell, operation *call, bool rotating) {
    struct row row = warm(plan, cell, call, rotating);
    prepare(&row, 1, 0);
    uint64_t iterations = fitting(&row, OSU_LEAST, OSU_MOST), *mine = repetitions_of(&row);
    bool separate = cell->subject->kind != BARRIER;
    for (uint64_t repetition = 0; repetition < plan->repetitions; repetition++) {
        double spent = 0;
        prepare(&row, 1, 1000 + repetition);
        check(backend_barrier(), "barrier");
        /* A tenth before them is not timed. */
        for (uint64_t i = 0, untimed = iterations / 10; i < untimed + iterations; i++) {
            uint64_t begin = ticks_now();
            run(&row, i, root_of(&row, i));
            uint64_t end = ticks_now();
            if (i >= untimed) spent += ns_between(plan->clock, begin, end);
            if (separate) check(backend_barrier(), "barrier");
        }
        mine[repetition] = (uint64_t)(spent * 1000 / (double)iterations);
        inspect(&row, 1, 1000 + repetition, "between barriers");
    }
    return over_ranks(&row, iterations, true);
}
