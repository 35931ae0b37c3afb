// Many readers of one process's memory: how long do all take, if each begins some time after the one before?
//
// Rank 0 has a block for each other rank, which that one reads by process_vm_readv; each rank has a core. `gap`: nanoseconds
// for each page of the block from the begin of one reader to that of the next. Medians of 200 rounds, us: until the slowest
// has its block, waiting for its turn included, and the mean of all.
//
//   cc -O2 -o /tmp/readers hosts/posix/examples/readers.c && /tmp/readers RANKS BYTES small|huge
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 256, ROUNDS = 200, PAGE = 4096, HUGE_PAGE = 2 << 20 };

static struct {
    _Alignas(64) atomic_uint arrived;
    _Alignas(64) atomic_uint released;
    atomic_int failed;
    _Alignas(64) pid_t pid;
    char *blocks;
    double us[RANKS];
} *shared;
static unsigned ranks, barriers;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void barrier(void) {
    barriers++;
    if (atomic_fetch_add(&shared->arrived, 1) + 1 == ranks * barriers) atomic_store(&shared->released, barriers);
    for (int spins = 0; atomic_load(&shared->released) < barriers; spins++) {
        if (atomic_load(&shared->failed)) exit(1);
        if (spins > 10000) sched_yield();
    }
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    if (argc != 4 || (ranks = atoi(argv[1])) < 2 || ranks > RANKS) {
        fprintf(stderr, "readers RANKS BYTES small|huge\n");
        return 2;
    }
    size_t bytes = atol(argv[2]), all = (bytes * ranks + HUGE_PAGE) / HUGE_PAGE * HUGE_PAGE;
    int huge = strcmp(argv[3], "huge") == 0;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned me = 0;
    for (unsigned rank = 1; rank < ranks && me == 0; rank++)
        if (fork() == 0) me = rank;
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(me % sysconf(_SC_NPROCESSORS_ONLN), &core);
    sched_setaffinity(0, sizeof core, &core);
    char *memory = mmap(NULL, all + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // At a huge page's begin.
    memory = (char *)(((uintptr_t)memory + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    madvise(memory, all, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    memset(memory, me + 1, all);
    if (me == 0) {
        shared->pid = getpid();
        shared->blocks = memory;
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    }
    barrier();
    static const double gaps[] = {0, 5, 10, 15, 20, 30, 40, 60, 80, 120, 160, 240};
    for (size_t gap = 0; gap < sizeof gaps / sizeof *gaps; gap++) {
        static double slowest[ROUNDS], mean[ROUNDS];
        for (int round = 0; round < ROUNDS; round++) {
            barrier();
            double begin = now(), turn = begin + (me - 1.0) * gaps[gap] * (bytes / PAGE + 1) / 1e3;
            if (me > 0) {
                while (now() < turn) {}
                struct iovec to = {memory, bytes}, from = {shared->blocks + me * bytes, bytes};
                if (process_vm_readv(shared->pid, &to, 1, &from, 1, 0) != (ssize_t)bytes || memory[bytes / 2] != 1) {
                    perror("process_vm_readv");
                    atomic_store(&shared->failed, 1);
                    exit(1);
                }
                shared->us[me] = now() - begin;
            }
            barrier();
            for (unsigned rank = 1; me == 0 && rank < ranks; rank++) {
                if (shared->us[rank] > slowest[round]) slowest[round] = shared->us[rank];
                mean[round] += shared->us[rank] / (ranks - 1);
            }
        }
        if (me == 0) {
            qsort(slowest, ROUNDS, sizeof *slowest, compare);
            qsort(mean, ROUNDS, sizeof *mean, compare);
            printf("%u ranks, %zu B, %s pages, gap %3.0f ns for each: slowest %6.1f, mean %6.1f\n", ranks, bytes,
                   huge ? "huge" : "small", gaps[gap], slowest[ROUNDS / 2], mean[ROUNDS / 2]);
            memset(slowest, 0, sizeof slowest);
            memset(mean, 0, sizeof mean);
        }
    }
    if (me > 0) _exit(0);
    while (wait(NULL) > 0) {}
    return 0;
}
