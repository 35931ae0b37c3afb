/*
 * Every collective of MPI under one library: a JSON object per row, results verified outside the
 * timed part. The same source runs under each MPI and, with -DUNISONO, under Unisono.
 *
 *   collectives [--collectives LIST] [--bytes LIST] [--warm-bytes LIST] [--methods window,rate,osu,imb]
 *               [--roots fixed,rotating] [--budget-ms N] [--least N] [--repetitions N] [--crowded 0|1]
 *
 * --warm-bytes: the sizes for osu and imb, whose buffers are warm; without it --bytes.
 * Exit status: 0, 2 bad arguments or no memory, 3 wrong result, 4 error of the library.
 */
#define _GNU_SOURCE
#include "methods.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MOST = 32 };

static struct {
    const char *collectives, *bytes, *warm_bytes, *methods, *roots;
    uint64_t budget_ms, least, repetitions, crowded;
} options = {"all", "8,8192", NULL, "window,rate,osu,imb", "fixed,rotating", 20, 5, 5, 0};

/* Whether the buffers of an operation were used just before. */
enum buffers_are { COLD, WARM };

static struct sizes {
    uint64_t bytes[BYTES_MOST];
    size_t count;
} sizes[2];

__attribute__((noreturn)) static void refuse(const char *name, const char *value, const char *bound) {
    if (backend_rank() == 0) fprintf(stderr, "collectives: %s is %s, must be %s\n", name, value, bound);
    backend_abort(2);
}

static uint64_t number(const char *name, const char *text, uint64_t least, uint64_t most, const char *bound) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || value < least || value > most) refuse(name, text, bound);
    return value;
}

/* Is `name` one of the words of a list with commas? */
static bool listed(const char *list, const char *name) {
    size_t len = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, name, len) && (at[len] == ',' || !at[len])) return true;
    return false;
}

static bool known(const char *word) {
    for (size_t i = 0; i < subject_count; i++)
        if (!strcmp(subjects[i].name, word)) return true;
    return !strcmp(word, "all");
}

/* Calls `each` with every word of a list. */
static void words(const char *list, void (*each)(const char *word)) {
    char *copy = strdup(list), *state;
    if (!copy) backend_abort(2);
    for (char *word = strtok_r(copy, ",", &state); word; word = strtok_r(NULL, ",", &state)) each(word);
    free(copy);
}

static void take(struct sizes *list, const char *name, const char *word) {
    if (list->count == BYTES_MOST) refuse(name, "a longer list", "at most 32 numbers");
    uint64_t bytes = number(name, word, 8, 64 << 20, "multiples of 8 from 8 to 64 MiB");
    if (bytes % 8) refuse(name, word, "multiples of 8 from 8 to 64 MiB");
    list->bytes[list->count++] = bytes;
}
static void take_size(const char *word) { take(&sizes[COLD], "--bytes", word); }
static void take_warm_size(const char *word) { take(&sizes[WARM], "--warm-bytes", word); }
static void take_collective(const char *word) {
    if (!known(word)) refuse("--collectives", word, "names of collectives, or all");
}
static void take_method(const char *word) {
    if (!listed("window,rate,osu,imb", word)) refuse("--methods", word, "window, rate, osu, imb");
}
static void take_root(const char *word) {
    if (!listed("fixed,rotating", word)) refuse("--roots", word, "fixed, rotating");
}

static void parse(int argc, char **argv) {
    for (int i = 1; i < argc; i += 2) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "missing";
        if (!strcmp(name, "--collectives")) options.collectives = value;
        else if (!strcmp(name, "--bytes")) options.bytes = value;
        else if (!strcmp(name, "--warm-bytes")) options.warm_bytes = value;
        else if (!strcmp(name, "--methods")) options.methods = value;
        else if (!strcmp(name, "--roots")) options.roots = value;
        else if (!strcmp(name, "--budget-ms")) options.budget_ms = number(name, value, 1, 60000, "1 to 60000");
        else if (!strcmp(name, "--least")) options.least = number(name, value, 1, WINDOW_MOST, "1 to 2000");
        else if (!strcmp(name, "--repetitions")) options.repetitions = number(name, value, 1, 1000, "1 to 1000");
        else if (!strcmp(name, "--crowded")) options.crowded = number(name, value, 0, 1, "0 or 1");
        else refuse("an option", name, "one of those in collectives.c");
    }
    words(options.collectives, take_collective);
    words(options.bytes, take_size);
    words(options.warm_bytes ? options.warm_bytes : options.bytes, take_warm_size);
    words(options.methods, take_method);
    words(options.roots, take_root);
}

static void print(const struct cell *cell, const char *method, const char *root, struct sample s) {
    if (cell->rank) return;
    printf("{\"collective\":\"%s\",\"bytes\":%llu,\"method\":\"%s\",\"root\":\"%s\",\"ranks\":%d,\"iterations\":%llu,"
           "\"p50_ns\":%.3f,\"p99_ns\":%.3f,\"max_ns\":%.3f}\n",
           cell->subject->name, (unsigned long long)cell->bytes, method, root, cell->size,
           (unsigned long long)s.iterations, s.p50, s.p99, s.max);
    fflush(stdout);
}

static void measure(const struct plan *plan, const struct cell *cell, enum buffers_are buffers) {
    operation *run = backend_find(cell->subject->name, cell->n);
    if (!run) refuse("--collectives", cell->subject->name, "one that the library has");
    verify(plan, cell, run);
    bool root = rooted(cell);
    if (buffers == WARM) {
        if (listed(options.methods, "osu")) print(cell, "osu", root ? "fixed" : "none", osu(plan, cell, run, false));
        if (listed(options.methods, "imb")) print(cell, "imb", root ? "rotating" : "none", imb(plan, cell, run, root));
        return;
    }
    for (int rotating = 0; rotating <= root; rotating++) {
        const char *name = !root ? "none" : rotating ? "rotating" : "fixed";
        if (listed(options.methods, "window") && (!root || listed(options.roots, name)))
            print(cell, "window", name, window(plan, cell, run, rotating));
    }
    /* The root rotates: from one root, broadcasts back to back would measure how far the root runs ahead. */
    if (listed(options.methods, "rate"))
        print(cell, "rate", root ? "rotating" : "none", rate(plan, cell, run, root));
}

/* Runs `visit` on every cell that the options ask for. */
static void cells(struct plan *plan, void (*visit)(struct plan *, const struct cell *, enum buffers_are)) {
    static const char *const methods[2][2] = {{"window", "rate"}, {"osu", "imb"}};
    for (size_t i = 0; i < 2 * subject_count; i++) {
        const struct subject *subject = &subjects[i / 2];
        enum buffers_are buffers = i % 2;
        if (!listed(options.collectives, "all") && !listed(options.collectives, subject->name)) continue;
        if (!listed(options.methods, methods[buffers][0]) && !listed(options.methods, methods[buffers][1])) continue;
        for (size_t s = 0; s < (subject->kind == BARRIER ? 1 : sizes[buffers].count); s++) {
            uint64_t bytes = subject->kind == BARRIER ? 0 : sizes[buffers].bytes[s];
            struct cell cell = cell_of(subject, bytes, backend_rank(), backend_size());
            visit(plan, &cell, buffers);
        }
    }
}

static size_t memory_most;
static void note_memory(struct plan *plan, const struct cell *cell, enum buffers_are buffers) {
    (void)plan, (void)buffers;
    if (memory_of(cell) > memory_most) memory_most = memory_of(cell);
}
static void visit(struct plan *plan, const struct cell *cell, enum buffers_are buffers) { measure(plan, cell, buffers); }

int main(int argc, char **argv) {
    backend_start(&argc, &argv);
    parse(argc, argv);
    struct plan plan = {calibrate(), options.budget_ms * 1e6, options.least, options.repetitions, options.crowded,
                        NULL, NULL};
    cells(&plan, note_memory);
    /* As a program has its buffers, and OSU's: its pages exist once they are used. */
    void *memory = NULL;
    if (memory_most && posix_memalign(&memory, 4096, memory_most)) backend_abort(2);
    plan.memory = memory;
    plan.times = malloc((size_t)TIMES_MOST * backend_size() * sizeof *plan.times);
    if (!plan.times) backend_abort(2);
    if (backend_rank() == 0) printf("{\"library\":\"%s\",\"ranks\":%d}\n", backend_name(), backend_size());
    cells(&plan, visit);
    backend_end();
    return 0;
}
