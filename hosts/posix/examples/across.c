// One copy across address spaces: who had better make it, the reader or the writer?
//
// Two processes, a core each. In each round both write what they send, wait for each other, copy it by one call, wait,
// and read what they have received: so lines move as in a program. `read`: process_vm_readv by the receiver. `write`:
// process_vm_writev by the sender. `alone`: rank 0 copies, for a scatter or a gather of two. `kept`: nobody writes
// or reads the buffers between the calls, as in OSU's and IMB's benchmarks. Medians of 21 rounds of blocks, us of the copy.
//
//   cc -O2 -o /tmp/across hosts/posix/examples/across.c && /tmp/across
#define _GNU_SOURCE
#include <sched.h>
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

enum { MOST = 4 << 20, ROUNDS = 21 };

struct shared {
    int pid[2];
    char *send[2], *receive[2];
    long arrived[2][8];
};

static struct shared *all;
static int me;

static void barrier(void) {
    static long count;
    __atomic_store_n(&all->arrived[me][0], ++count, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&all->arrived[!me][0], __ATOMIC_SEQ_CST) < count) {}
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static void copy(int writes, size_t bytes) {
    struct iovec here = {writes ? all->send[me] : all->receive[me], bytes};
    struct iovec there = {writes ? all->receive[!me] : all->send[!me], bytes};
    ssize_t done = writes ? process_vm_writev(all->pid[!me], &here, 1, &there, 1, 0)
                          : process_vm_readv(all->pid[!me], &here, 1, &there, 1, 0);
    if (done != (ssize_t)bytes) {
        perror(writes ? "process_vm_writev" : "process_vm_readv");
        _exit(1);
    }
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(int writes, int alone, int kept, size_t bytes) {
    double times[ROUNDS];
    int repeat = bytes < 100000 ? 50 : 5;
    for (int round = 0; round < ROUNDS; round++) {
        barrier();
        double begin = now();
        for (int i = 0; i < repeat; i++) {
            if (!kept) memset(all->send[me], i, bytes);
            barrier();
            if (!alone || me == 0) copy(writes, bytes);
            barrier();
            for (volatile char *got = all->receive[me], *end = got + bytes; !kept && got < end; got += 64) (void)*got;
        }
        times[round] = (now() - begin) / repeat;
    }
    qsort(times, ROUNDS, sizeof *times, compare);
    return times[ROUNDS / 2];
}

int main(void) {
    static const size_t lengths[] = {3000, 20000, 65536, 200000, 524288, 3000000};
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    me = child == 0;
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(me, &core);
    sched_setaffinity(0, sizeof core, &core);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    all->pid[me] = getpid();
    all->send[me] = memset(aligned_alloc(4096, MOST), 1, MOST);
    all->receive[me] = memset(aligned_alloc(4096, MOST), 2, MOST);
    barrier();
    if (me == 0) puts("   bytes   both copy: read, write   alone: read, write   kept, both: read, write");
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        double times[6];
        for (int way = 0; way < 6; way++) times[way] = median(way & 1, way / 2 == 1, way / 2 == 2, lengths[i]);
        if (me == 0)
            printf("%8zu %14.2f %9.2f %11.2f %8.2f %15.2f %8.2f\n", lengths[i], times[0], times[1], times[2], times[3], times[4], times[5]);
    }
    return me == 0 && waitpid(child, NULL, 0) != child;
}
