/* The four definitions of time: two of our own, and those of the benchmarks that users run. */
#ifndef METHODS_H
#define METHODS_H

#include "backend.h"
#include "clock.h"
#include "subjects.h"

/* More than the private caches of today's cores; buffers rotate over it. */
enum { POOL = 16 << 20, SLOTS_LEAST = 2, SLOTS_MOST = 4096 };

/* How rows are measured. */
struct plan {
    struct clock clock;
    double budget_ns; /* for the timed part of a row, roughly */
    uint64_t least, repetitions;
    bool crowded; /* more ranks than cores */
    uint8_t *memory;
    uint64_t *times; /* room for TIMES_MOST words of each rank */
};

/* A row's samples, in nanoseconds. */
struct sample {
    uint64_t iterations;
    double p50, p99, max;
};

enum { WINDOW_MOST = 2000, TIMES_MOST = 3 * WINDOW_MOST };

/* Bytes of memory that a cell's buffers take. */
size_t memory_of(const struct cell *cell);

/* From every root, with data that is checked. */
void verify(const struct plan *plan, const struct cell *cell, operation *run);
/* Per operation, from the first rank's start (rooted: the root's) to the last rank's end. */
struct sample window(const struct plan *plan, const struct cell *cell, operation *run, bool rotating);
/* Wall time by iterations of the slowest rank, back to back. */
struct sample rate(const struct plan *plan, const struct cell *cell, operation *run, bool rotating);
/* As IMB-MPI1 -sync off -root_shift on measures, its t_max: `rate` with the same buffers in each operation. The root of a broadcast
 * passes its send buffer, the others their receive buffers. */
struct sample imb(const struct plan *plan, const struct cell *cell, operation *run, bool rotating);
/* As the OSU benchmarks measure: the mean over ranks of each rank's own time in the call, from root 0, in the same buffers each
 * time, with a barrier after each operation (but for the barrier itself). */
struct sample osu(const struct plan *plan, const struct cell *cell, operation *run, bool rotating);

/* Ends all ranks if `code` is an error of the library's. */
void check(int code, const char *what);

#endif
