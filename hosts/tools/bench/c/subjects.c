/* Patterns: an element follows from its sender's rank, its place there and a seed; sums are exact in doubles. */
#include "subjects.h"

#include <string.h>

const struct subject subjects[] = {
    {"barrier", BARRIER},     {"bcast", BCAST},        {"reduce", REDUCE},
    {"scatter", SCATTER},     {"scatterv", SCATTER},   {"gather", GATHER},
    {"gatherv", GATHER},      {"allreduce", ALLREDUCE}, {"allgather", ALLGATHER},
    {"allgatherv", ALLGATHER}, {"alltoall", ALLTOALL},  {"alltoallv", ALLTOALL},
    {"alltoallw", ALLTOALL},  {"reduce_scatter", PARTS}, {"reduce_scatter_block", BLOCKS},
    {"scan", SCAN},           {"exscan", EXSCAN},
};
const size_t subject_count = sizeof subjects / sizeof *subjects;

/* `count` elements that come from rank `from`, `index` on; of a reduction: `from` times those of rank 0. */
struct run {
    size_t at, count, index;
    uint64_t from;
};

struct cell cell_of(const struct subject *subject, uint64_t bytes, int rank, int size) {
    size_t n = bytes / 8;
    if (subject->kind == BLOCKS) n = n / size ? n / size : 1;
    return (struct cell){subject, bytes, n, rank, size};
}

static bool is(const struct cell *cell, enum kind kind) { return cell->subject->kind == kind; }

bool rooted(const struct cell *cell) {
    return is(cell, BCAST) || is(cell, REDUCE) || is(cell, SCATTER) || is(cell, GATHER);
}

static bool reduces(const struct cell *cell) {
    enum kind kind = cell->subject->kind;
    return kind == REDUCE || kind == ALLREDUCE || kind == SCAN || kind == EXSCAN || kind == PARTS || kind == BLOCKS;
}

size_t sends(const struct cell *cell, int root) {
    switch (cell->subject->kind) {
    case BARRIER:
    case BCAST: return 0;
    case SCATTER: return cell->rank == root ? cell->n * cell->size : 0;
    case ALLTOALL:
    case BLOCKS: return cell->n * cell->size;
    default: return cell->n;
    }
}

size_t receives(const struct cell *cell, int root) {
    switch (cell->subject->kind) {
    case BARRIER: return 0;
    case REDUCE: return cell->rank == root ? cell->n : 0;
    case GATHER: return cell->rank == root ? cell->n * cell->size : 0;
    case ALLGATHER:
    case ALLTOALL: return cell->n * cell->size;
    case PARTS: return cell->n / cell->size + ((size_t)cell->rank < cell->n % cell->size);
    default: return cell->n;
    }
}

size_t sends_most(const struct cell *cell) { return is(cell, BCAST) ? cell->n : sends(cell, cell->rank); }
size_t receives_most(const struct cell *cell) {
    return is(cell, PARTS) ? cell->n / cell->size + 1 : receives(cell, cell->rank);
}

static uint64_t element(const struct cell *cell, uint64_t from, size_t index, uint64_t seed) {
    if (!reduces(cell)) return index * 0x9e3779b97f4a7c15u + from * 0xbf58476d1ce4e5b9u + seed * 0x94d049bb133111ebu;
    double value = (double)(from * (1 + ((index * 7 + seed * 13) & 1023)));
    uint64_t bits;
    memcpy(&bits, &value, 8);
    return bits;
}

static void fill(const struct cell *cell, uint64_t *to, struct run run, uint64_t seed) {
    for (size_t i = 0; i < run.count; i++) to[run.at + i] = element(cell, run.from, run.index + i, seed);
}

static bool holds(const struct cell *cell, const uint64_t *of, struct run run, uint64_t seed) {
    uint64_t wrong = 0;
    for (size_t i = 0; i < run.count; i++) wrong |= of[run.at + i] ^ element(cell, run.from, run.index + i, seed);
    return !wrong;
}

void fill_send(const struct cell *cell, uint64_t *send, uint64_t seed) {
    fill(cell, send, (struct run){0, sends_most(cell), 0, is(cell, BCAST) ? 1 : cell->rank + 1}, seed);
}

void fill_receive(const struct cell *cell, uint64_t *receive, int root, uint64_t seed) {
    memset(receive, 0x5a, receives_most(cell) * 8);
    if (is(cell, BCAST) && cell->rank == root) fill(cell, receive, (struct run){0, cell->n, 0, 1}, seed);
}

bool arrived(const struct cell *cell, const uint64_t *receive, int root, uint64_t seed) {
    size_t n = cell->n;
    uint64_t me = cell->rank, size = cell->size, all = size * (size + 1) / 2;
    size_t before = me * (n / size) + (me < n % size ? me : n % size);
    struct run run = {0, receives(cell, root), 0, 1};
    switch (cell->subject->kind) {
    case BCAST: break;
    case SCATTER: run.index = me * n, run.from = root + 1; break;
    case REDUCE:
    case ALLREDUCE: run.from = all; break;
    case PARTS: run.index = before, run.from = all; break;
    case BLOCKS: run.index = me * n, run.from = all; break;
    case SCAN: run.from = (me + 1) * (me + 2) / 2; break;
    case EXSCAN: run.from = me * (me + 1) / 2; break;
    default: /* Blocks, one of each rank. */
        if (!run.count) return true;
        for (uint64_t from = 0; from < size; from++) {
            size_t index = is(cell, ALLTOALL) ? me * n : 0;
            if (!holds(cell, receive, (struct run){from * n, n, index, from + 1}, seed)) return false;
        }
        return true;
    }
    /* An exclusive scan leaves rank 0's buffer undefined. */
    return (is(cell, EXSCAN) && me == 0) || holds(cell, receive, run, seed);
}
