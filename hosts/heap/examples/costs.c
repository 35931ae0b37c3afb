/*
 * What libunisono_heap.so costs a program that is bound by memory. Run it with and without the library, and with huge pages:
 *
 *     cc -O2 hosts/heap/examples/costs.c -o costs
 *     ./costs; LD_PRELOAD=$PWD/target/release/libunisono_heap.so ./costs
 *     echo 260 > /proc/sys/vm/nr_hugepages; UNISONO_PAGES=huge LD_PRELOAD=$PWD/target/release/libunisono_heap.so ./costs
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 16 << 20, REPEATS = 5, READS = 20000000, BLOCKS = 2000 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Milliseconds of allocating, touching and freeing a block of so many bytes. */
static double blocks(size_t bytes, size_t touched) {
    double begin = now();
    for (int i = 0; i < BLOCKS; i++) {
        char *volatile block = malloc(bytes);
        memset(block, 1, touched);
        free(block);
    }
    return (now() - begin) / BLOCKS;
}

int main(void) {
    double begin = now(), best = 1e9, *a = malloc(8l * WORDS), *b = malloc(8l * WORDS), *c = malloc(8l * WORDS);
    for (size_t i = 0; i < WORDS; i++) a[i] = 0, b[i] = 1, c[i] = 2;
    printf("384 MiB allocated and touched %.0f ms", now() - begin);
    for (int r = 0; r < REPEATS; r++) {
        begin = now();
        for (size_t i = 0; i < WORDS; i++) a[i] = b[i] + 3 * c[i];
        if (now() - begin < best) best = now() - begin;
        b[r] = a[r + 1];
    }
    printf("; triad %.1f ms", best);
    uint64_t x = 1;
    double sum = 0;
    begin = now();
    for (int i = 0; i < READS; i++) x = x * 6364136223846793005u + 1, sum += a[x >> 40];
    printf("; a random read %.1f ns", (now() - begin) * 1e6 / READS);
    printf("; a block of 3 MB %.1f us, of 100 kB %.2f us", blocks(3000000, 3000000) * 1e3, blocks(100000, 1) * 1e3);
    begin = now();
    pid_t child = fork();
    if (!child) _exit(0);
    printf("; fork %.1f ms (%g)\n", now() - begin, sum);
    return waitpid(child, NULL, 0) != child;
}
