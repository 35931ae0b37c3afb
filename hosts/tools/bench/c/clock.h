/* The constant time-stamp counter, the same on all cores; elsewhere the system's monotonic clock. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>
#include <time.h>
#if defined __x86_64__
#include <x86intrin.h>
#endif

static inline uint64_t system_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline uint64_t ticks_now(void) {
#if defined __x86_64__
    unsigned core;
    return __rdtscp(&core);
#else
    return system_ns();
#endif
}

/* Nanoseconds of a tick, and the ticks that reading the clock twice costs. */
struct clock {
    double tick;
    uint64_t cost;
};

/* Compares the counter with the system's clock, five times for 4 ms: the median, since any may be interrupted. */
static inline struct clock calibrate(void) {
    double ticks[5];
    struct clock clock = {0, UINT64_MAX};
    for (int i = 0; i < 5; i++) {
        uint64_t begin = system_ns(), t0 = ticks_now(), elapsed, t1;
        do elapsed = system_ns() - begin, t1 = ticks_now();
        while (elapsed < 4000000);
        double tick = (double)elapsed / (double)(t1 - t0);
        int at = i;
        for (; at > 0 && ticks[at - 1] > tick; at--) ticks[at] = ticks[at - 1];
        ticks[at] = tick;
    }
    clock.tick = ticks[2];
    for (int i = 0; i < 1000; i++) {
        uint64_t t = ticks_now(), cost = ticks_now() - t;
        if (cost < clock.cost) clock.cost = cost;
    }
    return clock;
}

/* Nanoseconds between two readings, less the clock's own cost. */
static inline double ns_between(struct clock clock, uint64_t from, uint64_t to) {
    return to > from + clock.cost ? (double)(to - from - clock.cost) * clock.tick : 0;
}

#endif
