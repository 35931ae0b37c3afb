/*
 * program FILE: runs the programs of FILE, one after the other; each begins with its line `ranks`. Rank 0 writes
 * the number of the program that it begins to FILE.begun, since output may be lost when a process crashes. A rank that finds
 * something wrong prints it, with the program's number, and ends the job. PROGRAM_SECONDS: the longest time of a step.
 */
#define _GNU_SOURCE
#include "program.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLANK = 0xA5, GUARD = 24 };

static int me, ranks_started, program_number = -1;

void *allocate(size_t bytes) {
    void *memory = calloc(bytes ? bytes : 1, 1);
    if (!memory) fail("no memory for %zu bytes", bytes);
    return memory;
}

void fail(const char *format, ...) {
    char text[512];
    va_list rest;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    fprintf(stderr, "rank %d: program %d: %s\n", me, program_number, text);
    fflush(stderr);
    host_abort();
}

/* ---- The text --------------------------------------------------------------------------------- */

static const char *const names[] = {
    "barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw",
    "reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan", "dup", "split", "free", NULL};
static const char *const ops[] = {"none", "sum8", "sum64", "xor64", "max64", "add", "affine", NULL};
enum verb { V_RUN, V_START, V_INIT, V_TEST, V_POLL, V_WAIT, V_WAITALL, V_FREE, V_SLEEP, V_SPIN };
static const char *const verbs[] = {"run", "start", "init", "test", "poll", "wait", "waitall", "free", "sleep", "spin", NULL};

struct step { int who; enum verb verb; int numbers; int64_t *number_of; }; /* who -1: all */

struct group { int size; int *ranks; }; /* world ranks, by rank */

struct program {
    int ranks;
    uint32_t seed;
    int calls, steps, comms;
    struct call *call_of;
    struct step *step_of;
    struct group *groups;
};

static int find(const char *const *all, const char *word) {
    for (int i = 0; all[i]; i++) {
        if (!strcmp(all[i], word)) return i;
    }
    fail("\"%s\" is not known", word);
}

static char *word(char **line) {
    char *found = strtok_r(NULL, " \t\n", line);
    if (!found) fail("a line is too short");
    return found;
}

static int64_t number(char **line) { return atoll(word(line)); }

static int64_t *numbers(char **line, int *count) {
    int64_t *all = NULL;
    *count = 0;
    for (char *each; (each = strtok_r(NULL, " \t\n", line));) {
        all = realloc(all, (*count + 1) * sizeof *all);
        if (!all) fail("no memory");
        all[(*count)++] = atoll(each);
    }
    return all;
}

#define APPEND(all, count) \
    ((all) = realloc((all), ((count) + 1) * sizeof *(all)), (all) ? (void)0 : fail("no memory"), memset(&(all)[count], 0, sizeof *(all)), \
     &(all)[(count)++])

/* One line, that is not `ranks`. */
static void read_line(struct program *p, char *first, char **rest) {
    if (!strcmp(first, "seed")) {
        p->seed = (uint32_t)number(rest);
    } else if (!strcmp(first, "segment")) {
        /* The library's own choice. */
    } else if (!strcmp(first, "call")) {
        struct call *call = APPEND(p->call_of, p->calls);
        call->number = (int)number(rest);
        call->comm = (int)number(rest);
        call->name = find(names, word(rest));
        word(rest);
        call->root = (int)number(rest);
        call->in_place = number(rest);
        call->op = find(ops, word(rest));
        call->element = (uint64_t)number(rest);
        call->order = (int)number(rest);
        call->number_of = numbers(rest, &call->numbers);
    } else if (!strcmp(first, "type")) {
        int64_t at = number(rest);
        if (at < 0 || at >= p->calls) fail("a type of call %lld", (long long)at);
        struct call *call = &p->call_of[at];
        struct type *type = APPEND(call->type_of, call->types);
        type->rank = (int)number(rest), type->side = (int)number(rest);
        type->shape.kind = (uint64_t)number(rest);
        type->shape.block = (uint64_t)number(rest);
        type->shape.gap = (uint64_t)number(rest);
    } else {
        struct step *step = APPEND(p->step_of, p->steps);
        step->who = strcmp(first, "*") ? atoi(first) : -1;
        step->verb = find(verbs, word(rest));
        step->number_of = numbers(rest, &step->numbers);
        if (step->numbers == 0) fail("a step without a number");
    }
}

static int by_key(const void *left, const void *right) {
    const int64_t *l = left, *r = right;
    return l[0] != r[0] ? (l[0] > r[0]) - (l[0] < r[0]) : (l[1] > r[1]) - (l[1] < r[1]);
}

static struct group *group_of(struct program *p, int64_t comm) {
    if (comm < 0 || comm > 4096) fail("communicator %lld", (long long)comm);
    while (p->comms <= comm) APPEND(p->groups, p->comms);
    return &p->groups[comm];
}

/* The members of all communicators, once all lines are read. */
static void group(struct program *p) {
    struct group *world = group_of(p, 0);
    world->size = p->ranks, world->ranks = allocate(p->ranks * sizeof(int));
    for (int rank = 0; rank < p->ranks; rank++) world->ranks[rank] = rank;
    for (int c = 0; c < p->calls; c++) {
        struct call *call = &p->call_of[c];
        struct group of = *group_of(p, call->comm);
        bool split = call->name == SPLIT;
        for (int n = 0; (split || call->name == DUP) && n < call->numbers; n += 1 + split) {
            int64_t color = call->number_of[n];
            if (color < 0 || group_of(p, color)->ranks) continue;
            int64_t (*keys)[3] = allocate(of.size * sizeof *keys);
            struct group *made = group_of(p, color);
            made->ranks = allocate(of.size * sizeof(int));
            for (int rank = 0; rank < of.size; rank++) {
                if (split && call->number_of[2 * rank] != color) continue;
                int64_t *key = keys[made->size++];
                key[0] = split ? call->number_of[2 * rank + 1] : 0, key[1] = rank, key[2] = of.ranks[rank];
            }
            qsort(keys, made->size, sizeof *keys, by_key);
            for (int rank = 0; rank < made->size; rank++) made->ranks[rank] = (int)keys[rank][2];
            free(keys);
        }
    }
}

static int place_in(const struct group *group, int rank) {
    for (int place = 0; place < group->size; place++) {
        if (group->ranks[place] == rank) return place;
    }
    return -1;
}

static void forget(struct program *p) {
    for (int c = 0; c < p->calls; c++) free(p->call_of[c].number_of), free(p->call_of[c].type_of);
    for (int s = 0; s < p->steps; s++) free(p->step_of[s].number_of);
    for (int c = 0; c < p->comms; c++) free(p->groups[c].ranks);
    free(p->call_of), free(p->step_of), free(p->groups);
    memset(p, 0, sizeof *p);
}

/* ---- What is sent and what arrives (../src/fill.rs) --------------------------------------------- */

static bool manages(enum name name) { return name >= DUP; }
static bool folds(enum name name) { return name >= REDUCE && name <= EXSCAN; }
static bool rooted(enum name name) { return (name >= BCAST && name <= SCATTERV) || name == REDUCE; }
static bool varies(enum name name) {
    return name == GATHERV || name == SCATTERV || name == ALLGATHERV || name == ALLTOALLV || name == ALLTOALLW;
}
static bool one_for_all(enum name name) {
    return name == BCAST || name == GATHER || name == GATHERV || name == ALLGATHER || name == ALLGATHERV || name == REDUCE ||
        name == ALLREDUCE || name == SCAN || name == EXSCAN;
}

/* Elements that `from` sends to `to`, or folds for it. */
static uint64_t count_of(const struct call *call, int size, int from, int to) {
    int at = 0;
    if (call->name == GATHERV || call->name == ALLGATHERV) at = from;
    if (call->name == SCATTERV || call->name == REDUCE_SCATTER) at = to;
    if (call->name == ALLTOALLV || call->name == ALLTOALLW) at = from * size + to;
    return at < call->numbers ? (uint64_t)call->number_of[at] : 0;
}

static unsigned char byte_of(uint32_t sum, uint32_t seed, const struct call *call, uint64_t index) {
    uint32_t x = seed ^ (sum + (uint32_t)index * 0x165667B1u);
    x ^= x >> 15, x *= 0x2C1B3C6Du, x ^= x >> 12, x *= 0x297A2D39u, x ^= x >> 15;
    return (unsigned char)(x | (call->op == AFFINE && index % call->element % 2 == 0));
}

/* The block that `from` sends to `to`, packed, to be freed; writes its bytes. */
static unsigned char *sent(uint32_t seed, const struct part *part, uint32_t round, int from, int to, uint64_t *bytes) {
    const struct call *call = part->call;
    uint32_t to_one = one_for_all(call->name) ? 0 : (uint32_t)to;
    uint32_t sum = (uint32_t)call->number * 0x9E3779B1u + round * 0x85EBCA77u + (uint32_t)from * 0xC2B2AE3Du + to_one * 0x27D4EB2Fu;
    *bytes = count_of(call, part->size, from, to) * call->element;
    unsigned char *all = allocate(*bytes);
    for (uint64_t index = 0; index < *bytes; index++) all[index] = byte_of(sum, seed, call, index);
    return all;
}

static uint64_t folded_word(enum op op, uint64_t left, uint64_t right) {
    return op == SUM64 ? left + right : op == XOR64 ? left ^ right : left > right ? left : right;
}

void fold(enum op op, uint64_t element, uint64_t count, const unsigned char *left, unsigned char *right) {
    for (; count > 0; count--, left += element, right += element) {
        if (op == SUM64 || op == XOR64 || op == MAX64) {
            uint64_t l, r;
            memcpy(&l, left, 8), memcpy(&r, right, 8);
            r = folded_word(op, l, r);
            memcpy(right, &r, 8);
            continue;
        }
        for (uint64_t at = 0; at < element; at++) {
            if (op != AFFINE || at + 1 == element) {
                right[at] += left[at];
            } else {
                /* x -> l0 (r0 x + r1) + l1 */
                right[at + 1] = (unsigned char)(left[at] * right[at + 1] + left[at + 1]);
                right[at] = (unsigned char)(left[at] * right[at]);
                at++;
            }
        }
    }
}

/* What ranks 0 to `ranks` - 1 fold for this one. */
static unsigned char *folded(uint32_t seed, const struct part *part, uint32_t round, int ranks, uint64_t *bytes) {
    unsigned char *all = sent(seed, part, round, 0, part->rank, bytes);
    for (int from = 1; from < ranks; from++) {
        unsigned char *next = sent(seed, part, round, from, part->rank, bytes);
        fold(part->call->op, part->call->element, *bytes / part->call->element, all, next);
        free(all);
        all = next;
    }
    return all;
}

/* The packed bytes that must be in the block of `peer`, to be freed; null: the block is unchanged. */
static unsigned char *arrives(uint32_t seed, const struct part *part, uint32_t round, int peer, uint64_t *bytes) {
    int rank = part->rank, root = part->call->root;
    switch (part->call->name) {
    case BCAST: return sent(seed, part, round, root, 0, bytes);
    case GATHER: case GATHERV: return rank == root ? sent(seed, part, round, peer, rank, bytes) : NULL;
    case SCATTER: case SCATTERV: return sent(seed, part, round, root, rank, bytes);
    case ALLGATHER: case ALLGATHERV: case ALLTOALL: case ALLTOALLV: case ALLTOALLW: return sent(seed, part, round, peer, rank, bytes);
    case REDUCE: return rank == root ? folded(seed, part, round, part->size, bytes) : NULL;
    case ALLREDUCE: case REDUCE_SCATTER: case REDUCE_SCATTER_BLOCK: return folded(seed, part, round, part->size, bytes);
    case SCAN: return folded(seed, part, round, rank + 1, bytes);
    case EXSCAN: return rank > 0 ? folded(seed, part, round, rank, bytes) : NULL;
    default: return NULL;
    }
}

/* ---- Memory (../src/memory.rs) ------------------------------------------------------------------ */

static uint64_t extent_of(struct shape shape, uint64_t element) {
    switch (shape.kind) {
    case 1: case 2: return (element / shape.block - 1) * (shape.block + shape.gap) + shape.block;
    case 3: return element + 2 * shape.gap;
    default: return element;
    }
}

/* The offset of a packed byte in an element. */
static uint64_t place_of(struct shape shape, uint64_t element, uint64_t at) {
    uint64_t block = shape.block, stride = block + shape.gap;
    switch (shape.kind) {
    case 1: return at / block * stride + at % block;
    case 2: return (element / block - 1 - at / block) * stride + at % block;
    case 3: return at < block ? element - block + shape.gap + at : at - block;
    default: return at;
    }
}

static bool in_bytes(const struct part *part) { return part->call->name == ALLTOALLW; }

/* The offset of packed byte `at` of a block. */
static uint64_t place(const struct part *part, const struct buffer *buffer, int block, uint64_t at) {
    int kind = in_bytes(part) ? block % 2 : 0;
    uint64_t element = part->call->element, extent = buffer->extents[kind];
    return buffer->displacements[block] * (in_bytes(part) ? 1 : extent) + at / element * extent +
        place_of(buffer->shapes[kind], element, at % element);
}

/* A buffer of a block of `own` elements, or of one from or to each rank. */
static void lay(struct part *part, int side, bool each) {
    const struct call *call = part->call;
    struct buffer *buffer = &part->sides[side];
    int blocks = each ? part->size : 1;
    buffer->blocks = blocks;
    for (int t = 0; t < call->types && host_has_types(call->name); t++) {
        const struct type *type = &call->type_of[t];
        if (type->rank == part->rank && type->side == side) {
            buffer->shapes[0] = type->shape;
            if (!in_bytes(part)) buffer->shapes[1] = type->shape;
        }
    }
    for (int kind = 0; kind < 2; kind++) buffer->extents[kind] = extent_of(buffer->shapes[kind], call->element);
    buffer->counts = allocate(blocks * sizeof(uint64_t)), buffer->displacements = allocate(blocks * sizeof(uint64_t));
    /* In place operands lie in the receive buffer; this rank sends them. */
    bool sends = side == SEND || folds(call->name);
    for (int peer = 0; peer < blocks; peer++) {
        buffer->counts[peer] = !each ? part->own
            : sends ? count_of(call, part->size, part->rank, peer) : count_of(call, part->size, peer, part->rank);
    }
    bool reversed = varies(call->name) && blocks > 1 && (call->order == 1 || (call->order == 2 && part->rank % 2));
    uint64_t end = 0;
    for (int i = 0; i < blocks; i++) {
        int peer = reversed ? blocks - 1 - i : i;
        buffer->displacements[peer] = end;
        end += (buffer->counts[peer] + reversed) * (in_bytes(part) ? buffer->extents[peer % 2] : 1);
    }
    buffer->bytes = end * (in_bytes(part) ? 1 : buffer->extents[0]);
    buffer->memory = allocate(buffer->bytes + GUARD);
}

static void prepare(struct part *part, const struct call *call, int rank, int size) {
    enum name name = call->name;
    bool at_root = rank == call->root, scatters = name == SCATTER || name == SCATTERV, gathers = name == GATHER || name == GATHERV;
    bool reduces_parts = name == REDUCE_SCATTER || name == REDUCE_SCATTER_BLOCK;
    bool exchanges = name == ALLTOALL || name == ALLTOALLV || name == ALLTOALLW, collects = name == ALLGATHER || name == ALLGATHERV;
    part->call = call, part->rank = rank, part->size = size;
    part->in_place = call->in_place && (at_root || !rooted(name));
    part->own = count_of(call, size, rank, rank);
    if (name == BARRIER || manages(name)) return;
    bool sends = !scatters || at_root, receives = name != BCAST && (at_root || !(gathers || name == REDUCE));
    if (part->in_place && scatters) receives = false;
    if (part->in_place && !scatters) sends = false;
    if (sends) lay(part, SEND, scatters || exchanges || reduces_parts);
    if (receives) lay(part, RECEIVE, gathers || collects || exchanges || (reduces_parts && part->in_place));
}

/* The number of blocks that this rank sends, and the place of the first one. */
static int blocks_sent(const struct part *part, int *first) {
    enum name name = part->call->name;
    bool gathers = name == GATHER || name == GATHERV || name == ALLGATHER || name == ALLGATHERV;
    *first = 0;
    if (name == BARRIER || manages(name)) return 0;
    if ((name == BCAST || name == SCATTER || name == SCATTERV) && part->rank != part->call->root) return 0;
    if (name == SCATTER || name == SCATTERV || (name >= ALLTOALL && name <= ALLTOALLW) || name == REDUCE_SCATTER ||
        name == REDUCE_SCATTER_BLOCK) {
        return part->size;
    }
    if (gathers && part->in_place) *first = part->rank;
    return 1;
}

static void put(const struct part *part, const struct buffer *buffer, unsigned char *memory, int block, const unsigned char *from,
                uint64_t bytes) {
    for (uint64_t at = 0; at < bytes; at++) memory[place(part, buffer, block, at)] = from[at];
}

/* Writes what this rank sends in a round to `memory`, which lies as the buffer does. */
static void put_sent(uint32_t seed, const struct part *part, const struct buffer *buffer, unsigned char *memory, uint32_t round) {
    int first, count = blocks_sent(part, &first);
    for (int i = 0; i < count; i++) {
        uint64_t bytes;
        int to = count == part->size ? i : part->rank;
        unsigned char *block = sent(seed, part, round, part->rank, to, &bytes);
        put(part, buffer, memory, first + i, block, bytes);
        free(block);
    }
}

static void fill(uint32_t seed, struct part *part) {
    for (int side = SEND; side <= RECEIVE; side++) {
        struct buffer *buffer = &part->sides[side];
        if (buffer->memory) memset(buffer->memory, BLANK, buffer->bytes + GUARD);
    }
    struct buffer *from = &part->sides[part->sides[SEND].memory ? SEND : RECEIVE];
    if (from->memory) put_sent(seed, part, from, from->memory, part->rounds);
    part->rounds++;
}

/* Is all data right after the last round? */
static void look(uint32_t seed, const struct part *part) {
    enum name name = part->call->name;
    bool scatters = name == SCATTER || name == SCATTERV;
    bool undefined = part->in_place && (name == REDUCE_SCATTER || name == REDUCE_SCATTER_BLOCK);
    uint32_t round = part->rounds - 1;
    for (int side = SEND; side <= RECEIVE; side++) {
        const struct buffer *buffer = &part->sides[side];
        if (!buffer->memory) continue;
        size_t all = buffer->bytes + GUARD, result = buffer->bytes;
        unsigned char *wanted = allocate(all);
        memset(wanted, BLANK, all);
        if (side == SEND || (part->in_place && !scatters)) put_sent(seed, part, buffer, wanted, round);
        for (int block = 0; (side == RECEIVE || name == BCAST) && block < (undefined ? 1 : buffer->blocks); block++) {
            uint64_t bytes;
            unsigned char *arrived = arrives(seed, part, round, block, &bytes);
            if (arrived) put(part, buffer, wanted, block, arrived, bytes);
            /* The bytes of operands after the result are undefined. */
            if (arrived && undefined) result = bytes;
            free(arrived);
        }
        for (size_t at = 0; at < all; at++) {
            if (buffer->memory[at] == wanted[at] || (at >= result && at < buffer->bytes)) continue;
            fail("call %d (%s), round %u: byte %zu of %zu to %s is %d, must be %d", part->call->number, names[name], round, at,
                 buffer->bytes, side == SEND ? "send" : "receive", buffer->memory[at], wanted[at]);
        }
        free(wanted);
    }
}

/* ---- Steps -------------------------------------------------------------------------------------- */

/* A communicator of this rank. */
struct member {
    host_comm *comm;
    int requests; /* active and persistent */
    bool leaves;  /* is freed when no request is left */
};

struct rank {
    const struct program *program;
    struct part *parts;
    struct member *members; /* by communicator */
};

static void leave(struct member *member) {
    member->leaves = !host_free(member->comm, member->requests);
    if (member->leaves && member->requests == 0) fail("a communicator without requests is not freed");
    if (!member->leaves) member->comm = NULL;
}

/* A request was freed or is complete. */
static void forget_request(struct rank *rank, const struct part *part) {
    struct member *member = &rank->members[part->call->comm];
    if (--member->requests == 0 && member->leaves) leave(member);
}

static void complete(struct rank *rank, struct part *part) {
    if (part->active && !part->persistent) forget_request(rank, part);
    part->active = false;
    look(rank->program->seed, part);
}

static bool test(struct rank *rank, struct part *part) {
    if (part->active && host_test(part)) complete(rank, part);
    return !part->active;
}

static void manage(struct rank *rank, const struct part *part) {
    const struct call *call = part->call;
    host_comm *comm = rank->members[call->comm].comm;
    if (call->name == DUP) {
        rank->members[call->number_of[0]].comm = host_dup(comm);
    } else if (call->name == SPLIT) {
        int64_t color = call->number_of[2 * part->rank];
        host_comm *made = host_split(comm, color, call->number_of[2 * part->rank + 1]);
        if (color >= 0) rank->members[color].comm = made;
    } else {
        leave(&rank->members[call->comm]);
    }
}

static void start(struct rank *rank, struct part *part, enum form form) {
    struct member *member = &rank->members[part->call->comm];
    if (form == INIT) {
        host_call(part, member->comm, INIT);
        part->persistent = true, member->requests++;
        return;
    }
    fill(rank->program->seed, part);
    if (form == START && part->persistent) {
        host_start(part);
    } else {
        host_call(part, member->comm, form);
        member->requests += form == START;
    }
    if (form == START) {
        part->active = true;
    } else {
        complete(rank, part);
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static void wait_all(struct rank *rank, const struct step *step) {
    struct part **active = allocate(step->numbers * sizeof *active);
    int count = 0;
    for (int n = 0; n < step->numbers; n++) {
        struct part *part = &rank->parts[step->number_of[n]];
        if (part->active) active[count++] = part;
    }
    if (count > 0) host_wait(active, count);
    for (int n = 0; n < count; n++) complete(rank, active[n]);
    free(active);
}

static void make_step(struct rank *rank, const struct step *step) {
    if (step->verb == V_SLEEP) {
        usleep((useconds_t)step->number_of[0]);
        return;
    }
    if (step->verb == V_SPIN) {
        for (double end = now() + (double)step->number_of[0]; now() < end;) {
        }
        return;
    }
    struct part *part = &rank->parts[step->number_of[0]];
    switch (step->verb) {
    case V_RUN:
        if (manages(part->call->name)) {
            manage(rank, part);
        } else {
            start(rank, part, RUN);
        }
        break;
    case V_START: start(rank, part, START); break;
    case V_INIT: start(rank, part, INIT); break;
    case V_TEST: test(rank, part); break;
    case V_POLL:
        while (!test(rank, part)) sched_yield();
        break;
    case V_FREE: host_request_free(part), part->persistent = false, forget_request(rank, part); break;
    default: wait_all(rank, step);
    }
}

/* The text that is printed if this step takes too long. */
static char late[128];

static void too_late(int signal) {
    (void)signal;
    if (write(STDERR_FILENO, late, strlen(late)) < 0) _exit(2);
    _exit(1);
}

static void run(struct program *p) {
    char *seconds = getenv("PROGRAM_SECONDS");
    if (p->ranks != ranks_started) fail("it is for %d ranks, here are %d", p->ranks, ranks_started);
    group(p);
    struct rank rank = {p, allocate(p->calls * sizeof *rank.parts), allocate(p->comms * sizeof *rank.members)};
    bool frees_world = false;
    for (int c = 0; c < p->calls; c++) {
        const struct call *call = &p->call_of[c];
        const struct group *group = &p->groups[call->comm];
        int place = place_in(group, me);
        frees_world |= call->name == FREE && call->comm == 0;
        rank.parts[c].call = call;
        if (place < 0) continue;
        prepare(&rank.parts[c], call, place, group->size);
        if (!manages(call->name)) host_prepare(&rank.parts[c]);
    }
    rank.members[0].comm = frees_world || program_number % 2 ? host_dup(host_world()) : host_world();
    for (int s = 0; s < p->steps; s++) {
        const struct step *step = &p->step_of[s];
        bool calls = step->verb < V_SLEEP;
        if (calls && (step->number_of[0] < 0 || step->number_of[0] >= p->calls)) fail("step %d: no such call", s);
        const struct group *group = calls ? &p->groups[p->call_of[step->number_of[0]].comm] : &p->groups[0];
        if (step->who >= 0 ? step->who != me : place_in(group, me) < 0) continue;
        snprintf(late, sizeof late, "rank %d: program %d: step %d (%s %lld): did not end in time\n", me, program_number, s,
                 verbs[step->verb], (long long)step->number_of[0]);
        alarm(seconds ? (unsigned)atoi(seconds) : 60);
        make_step(&rank, step);
    }
    alarm(0);
    for (int c = 0; c < p->calls; c++) {
        struct part *part = &rank.parts[c];
        if (part->host) host_forget(part);
        for (int side = SEND; side <= RECEIVE; side++) {
            free(part->sides[side].memory), free(part->sides[side].counts), free(part->sides[side].displacements);
        }
    }
    for (int c = 0; c < p->comms; c++) {
        if (rank.members[c].comm && rank.members[c].comm != host_world()) leave(&rank.members[c]);
    }
    free(rank.parts), free(rank.members);
    forget(p);
}

static void begin(int begun) {
    char text[16];
    int length = snprintf(text, sizeof text, "%d\n", program_number);
    if (me == 0 && pwrite(begun, text, (size_t)length, 0) != length) fail("what is begun can't be written");
}

int main(int count, char **arguments) {
    host_begin(&me, &ranks_started);
    if (count != 2) fail("to be called with a FILE of programs");
    FILE *file = fopen(arguments[1], "r");
    if (!file) fail("%s can't be read", arguments[1]);
    char *name = allocate(strlen(arguments[1]) + sizeof ".begun");
    strcat(strcpy(name, arguments[1]), ".begun");
    int begun = me == 0 ? open(name, O_CREAT | O_TRUNC | O_WRONLY, 0666) : -1;
    signal(SIGALRM, too_late);
    struct program program = {0};
    char *line = NULL;
    size_t length = 0;
    for (;;) {
        bool more = getline(&line, &length, file) > 0;
        char *comment = more ? strchr(line, '#') : NULL, *rest, *first;
        if (comment) *comment = 0;
        first = more ? strtok_r(line, " \t\n", &rest) : NULL;
        bool begins = first && !strcmp(first, "ranks");
        if (program.ranks && (begins || !more)) {
            begin(begun);
            run(&program);
        }
        if (!more) break;
        if (begins) program_number++, program.ranks = (int)number(&rest);
        else if (first) read_line(&program, first, &rest);
    }
    free(line), free(name), fclose(file);
    if (begun >= 0) close(begun);
    host_end();
    if (me == 0) printf("programs: %d\n", program_number + 1);
    return 0;
}
