/*
 * Times bcast, reduce, allreduce, allgather and barrier in SMPI's virtual time, and verifies their data.
 *
 *     collectives LAYER PER_NODE PER_LEAF BYTES[,BYTES...] TASK...
 *
 * A TASK is `bcast`, `reduce`, `allreduce`, `allgather`, `barrier` of the MPI, or one of ours: `bcast/levels-8192/chain`, `bcast/levels/flat@ND` over these
 * levels alone; with `=BYTES` at the end, of this length alone. LAYER: `waiting`, or the file of a library that exports
 * unisono_messages_connect. PER_NODE ranks are on a node, PER_LEAF nodes at a switch. Each line of output is a task, its bytes, and
 * the nanoseconds from a start that all ranks share to the last rank's end; or `-`: does not apply. The MPI's own are run twice,
 * and the second run is timed: the first one may make communicators. Exit status 1 where data was wrong.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "waiting.h"

struct party;
struct party *unisono_simgrid_join(const struct unisono_messages *, uint32_t per_node, uint32_t per_leaf);
int unisono_simgrid_run(struct party *, const char *name, const void *send, void *receive, uint64_t bytes);
void unisono_simgrid_leave(struct party *);

enum { NOT_APPLICABLE = 1, JUNK = 77 };

static int is(const char *task, const char *collective) {
    size_t len = strlen(collective);
    return !strncmp(task, collective, len) && (!task[len] || task[len] == '/');
}

/* ---- Data: element i of rank r's operand is (r + 1)(i + 1), of a broadcast's (i + 1) ---------------- */

static void fill(int *words, uint64_t bytes, int factor) {
    for (uint64_t i = 0; i < bytes / sizeof *words; i++) words[i] = factor * (int)(i % 1009 + 1);
}

static int holds(const int *words, uint64_t bytes, int factor) {
    for (uint64_t i = 0; i < bytes / sizeof *words; i++)
        if (words[i] != factor * (int)(i % 1009 + 1)) return 0;
    return 1;
}

/* The factor of the r-th block's elements that a rank receives; only an allgather's has several. */
static int wanted(const char *task, int rank, int size, int block) {
    if (is(task, "allgather")) return block + 1;
    if (is(task, "barrier")) return JUNK;
    if (is(task, "bcast")) return 1;
    return is(task, "allreduce") || rank == 0 ? size * (size + 1) / 2 : JUNK;
}

static int *block_of(void *receive, uint64_t bytes, int block) { return (int *)((char *)receive + bytes * block); }

/* ---- A run ------------------------------------------------------------------------------------------- */

/* Waits until all ranks are here, and some virtual time more; all ranks start then. */
static double start(void) {
    double now = MPI_Wtime(), begin;
    MPI_Allreduce(&now, &begin, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    begin += 1e-2;
    long wait = (long)((begin - MPI_Wtime()) * 1e9);
    struct timespec span = {0, wait};
    smpi_nanosleep(&span, NULL);
    return MPI_Wtime();
}

static int run(const char *task, struct party *party, void *send, void *receive, uint64_t bytes) {
    int count = (int)(bytes / sizeof(int));
    if (strchr(task, '/')) return unisono_simgrid_run(party, task, send, receive, bytes);
    if (is(task, "bcast")) return MPI_Bcast(receive, count, MPI_INT, 0, MPI_COMM_WORLD);
    if (is(task, "barrier")) return MPI_Barrier(MPI_COMM_WORLD);
    if (is(task, "allgather")) return MPI_Allgather(send, count, MPI_INT, receive, count, MPI_INT, MPI_COMM_WORLD);
    if (is(task, "reduce")) return MPI_Reduce(send, receive, count, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    return MPI_Allreduce(send, receive, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

/* Runs the task, the MPI's own ones twice; returns whether this rank's data is right. */
static int measure(const char *task, struct party *party, void *send, void *receive, uint64_t bytes, int rank, int size) {
    int right = 1, code = 0;
    double begin = 0, end = 0;
    for (int runs = strchr(task, '/') ? 1 : 2; runs > 0 && right; runs--) {
        fill(send, bytes, rank + 1);
        int blocks = is(task, "allgather") ? size : 1;
        for (int b = 0; b < blocks; b++) fill(block_of(receive, bytes, b), bytes, is(task, "bcast") && rank == 0 ? 1 : JUNK);
        begin = start();
        code = run(task, party, send, receive, bytes);
        end = MPI_Wtime();
        if (code == NOT_APPLICABLE) break;
        right = code == 0;
        for (int b = 0; b < blocks && right; b++)
            right = holds(block_of(receive, bytes, b), bytes, wanted(task, rank, size, b));
    }
    double first, last;
    MPI_Allreduce(&begin, &first, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&end, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0 && code == NOT_APPLICABLE) printf("%s %llu -\n", task, (unsigned long long)bytes);
    else if (rank == 0) printf("%s %llu %.1f\n", task, (unsigned long long)bytes, (last - first) * 1e9);
    if (!right) fprintf(stderr, "rank %d: %s, %llu bytes: wrong data\n", rank, task, (unsigned long long)bytes);
    return right;
}

static int connect(const char *name, uint64_t most, struct unisono_messages *layer) {
    if (!strcmp(name, "waiting")) return waiting_connect(MPI_COMM_WORLD, most, layer);
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) return fprintf(stderr, "%s\n", dlerror()), MPI_ERR_OTHER;
    int (*unisono_connect)(int, struct unisono_messages *) = dlsym(library, "unisono_messages_connect");
    return unisono_connect ? unisono_connect(MPI_Comm_c2f(MPI_COMM_WORLD), layer) : MPI_ERR_OTHER;
}

int main(int count, char **words) {
    enum { LAYER = 1, PER_NODE, PER_LEAF, LENGTHS, TASKS };
    int rank, size, right = 1;
    uint64_t lengths[16], most = 0;
    struct unisono_messages layer;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (count <= TASKS) return fprintf(stderr, "usage: see collectives.c\n"), 2;
    int many = 0;
    char *list = strdup(words[LENGTHS]), *rest = list;
    for (char *word; many < 16 && (word = strsep(&rest, ","));) {
        lengths[many] = strtoull(word, NULL, 10);
        if (lengths[many++] > most) most = lengths[many - 1];
    }
    free(list);
    bool gathers = false;
    for (int task = TASKS; task < count; task++) gathers |= is(words[task], "allgather");
    int code = connect(words[LAYER], gathers ? most * size : most, &layer);
    if (code) return fprintf(stderr, "rank %d: no layer: %d\n", rank, code), 2;
    struct party *party = unisono_simgrid_join(&layer, (uint32_t)atoi(words[PER_NODE]), (uint32_t)atoi(words[PER_LEAF]));
    void *send = malloc(most + 1), *receive = malloc(most * size + 1);
    if (!party || !send || !receive) return 2;
    for (int task = TASKS; task < count; task++) {
        char *name = strdup(words[task]), *only = strchr(name, '=');
        if (only) *only++ = 0;
        for (int i = 0; i < many; i++)
            if (!only || strtoull(only, NULL, 10) == lengths[i])
                right &= measure(name, party, send, receive, lengths[i], rank, size);
        free(name);
    }
    free(send);
    free(receive);
    unisono_simgrid_leave(party);
    MPI_Finalize();
    return !right;
}
