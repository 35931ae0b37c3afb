/*
 * Every collective of MPI under one library: a JSON object per row, results verified outside the
 * timed part. The same source runs under each MPI and, with -DUNISONO, under Unisono.
 *
 *   collectives [--collectives LIST] [--bytes LIST] [--warm-bytes LIST] [--methods window,rate,osu,imb]
 *               [--roots fixed,rotating] [--budget-ms N] [--least N] [--repetitions N] [--crowded 0|1]
 *               [--line FILE [--line-least NS --line-most NS | --survey N]]
 *
 * --warm-bytes: the sizes for osu and imb, whose buffers are warm; without it --bytes.
 * --line: a file of 4096 zeroes, through which ranks 0 and 1 measure a cache line's round trip (line.h); rows are measured while
 * it is between the two numbers, as far as that can be had. --survey: prints so many round trips, and no rows.
 * Exit status: 0, 2 bad arguments or no memory, 3 wrong result, 4 error of the library.
 */
#define _GNU_SOURCE
#include "line.h"
#include "methods.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MOST = 32, SURVEY_MOST = 2000 };

/* A row that ends with a round trip outside of the range is measured again, so many times at most. */
enum { TRIES_MOST = 5 };

static struct {
    const char *collectives, *bytes, *warm_bytes, *methods, *roots, *line;
    uint64_t budget_ms, least, repetitions, crowded, line_least, line_most, survey;
} options = {"all", "8,8192", NULL, "window,rate,osu,imb", "fixed,rotating", NULL, 20, 5, 5, 0, 0, 1000000000, 0};

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
        else if (!strcmp(name, "--line")) options.line = value;
        else if (!strcmp(name, "--line-least")) options.line_least = number(name, value, 0, 1000000000, "0 to 1000000000");
        else if (!strcmp(name, "--line-most")) options.line_most = number(name, value, 1, 1000000000, "1 to 1000000000");
        else if (!strcmp(name, "--survey")) options.survey = number(name, value, 1, SURVEY_MOST, "1 to 2000");
        else refuse("an option", name, "one of those in collectives.c");
    }
    words(options.collectives, take_collective);
    words(options.bytes, take_size);
    words(options.warm_bytes ? options.warm_bytes : options.bytes, take_warm_size);
    words(options.methods, take_method);
    words(options.roots, take_root);
}

static void print(const struct cell *cell, const char *method, const char *root, struct sample s, double line_ns) {
    if (cell->rank) return;
    printf("{\"collective\":\"%s\",\"bytes\":%llu,\"method\":\"%s\",\"root\":\"%s\",\"ranks\":%d,\"iterations\":%llu,"
           "\"p50_ns\":%.3f,\"p99_ns\":%.3f,\"max_ns\":%.3f",
           cell->subject->name, (unsigned long long)cell->bytes, method, root, cell->size,
           (unsigned long long)s.iterations, s.p50, s.p99, s.max);
    if (line_ns > 0) printf(",\"line_ns\":%.1f", line_ns);
    printf("}\n");
    fflush(stdout);
}

/* A definition of time. */
typedef struct sample definition(const struct plan *plan, const struct cell *cell, operation *run, bool rotating);

static void row(const struct plan *plan, const struct cell *cell, operation *run, const char *method, definition *measure,
                bool rotating) {
    struct sample sample;
    double line_ns = 0;
    bool settled = false;
    for (int tries = 0; tries < TRIES_MOST && !settled; tries++) {
        double end_ns = 0;
        bool began = line_settled(true, &line_ns);
        sample = measure(plan, cell, run, rotating);
        settled = line_settled(false, &end_ns) || !began;
        /* A row that begins elsewhere was measured elsewhere. */
        if (began) line_ns = end_ns;
    }
    print(cell, method, !rooted(cell) ? "none" : rotating ? "rotating" : "fixed", sample, line_ns);
}

static void measure(const struct plan *plan, const struct cell *cell, enum buffers_are buffers) {
    operation *run = backend_find(cell->subject->name, cell->n);
    if (!run) refuse("--collectives", cell->subject->name, "one that the library has");
    verify(plan, cell, run);
    bool root = rooted(cell);
    if (buffers == WARM) {
        if (listed(options.methods, "osu")) row(plan, cell, run, "osu", osu, false);
        if (listed(options.methods, "imb")) row(plan, cell, run, "imb", imb, root);
        return;
    }
    if (listed(options.methods, "window")) {
        if (!root || listed(options.roots, "fixed")) row(plan, cell, run, "window", window, false);
        if (root && listed(options.roots, "rotating")) row(plan, cell, run, "window", window, true);
    }
    /* The root rotates: from one root, broadcasts back to back would measure how far the root runs ahead. */
    if (listed(options.methods, "rate")) row(plan, cell, run, "rate", rate, root);
}

/* Prints round trips of a line, as they come. */
static void survey(void) {
    static double ns[SURVEY_MOST];
    line_survey(ns, (int)options.survey);
    if (backend_rank()) return;
    printf("{\"line_ns\":[");
    for (uint64_t i = 0; i < options.survey; i++) printf("%s%.1f", i ? "," : "", ns[i]);
    printf("]}\n");
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
    line_start((struct line_range){options.line, (double)options.line_least, (double)options.line_most}, plan.clock);
    if (options.survey) {
        if (!options.line || backend_size() < 2) refuse("--survey", "given", "with --line and for two ranks");
        survey();
        backend_end();
        return 0;
    }
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
