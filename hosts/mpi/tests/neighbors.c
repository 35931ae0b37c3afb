/*
 * neighbors [blocking]: neighborhood collectives in all forms, or blocking ones alone, on grids, graphs and distributed graphs: closed rings of one and two ranks, ranks that are
 * neighbors several times, of themselves, or of none, in another order on each rank. Lengths, places and types differ from block to block,
 * and from sender to receiver. All that is received is computed from the topology. (Not every MPI would do as a reference: where the
 * neighbors before and after are one rank, Open MPI 4.1's nonblocking functions exchange them, MPICH 4.0's those of several such dimensions.)
 */
#include "test.h"

#include <stdint.h>

#if defined OPEN_MPI && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define INIT(name) MPIX_##name##_init
#else
#define INIT(name) MPI_##name##_init
#endif

enum { MOST = 64, WORDS = 40, ROUNDS = 30, ROOM = MOST * (2 * WORDS + 3) };

static int me, ranks;
static bool blocking;

/* The same number on all ranks. */
static unsigned drawn(unsigned a, unsigned b, unsigned c) {
    uint64_t x = a * 0x9e3779b97f4a7c15u + b * 0xc2b2ae3d27d4eb4fu + c * 0x165667b19e3779f9u + 1;
    x ^= x >> 29, x *= 0xbf58476d1ce4e5b9u, x ^= x >> 32;
    return (unsigned)(x >> 7);
}

/* ---- Topologies ------------------------------------------------------------------------------------------------- */

/* A rank's neighbors. What two ranks send each other matches in the order of `from` on one, of `order` on the other, which has places in `to`. */
struct neighbors {
    int in, out, from[MOST], to[MOST], order[MOST];
};
static struct {
    MPI_Comm comm;
    struct neighbors of[MOST]; /* each rank's */
} t;

static void shuffle(int *list, int count, unsigned seed) {
    for (int i = count - 1; i > 0; i--) {
        int other = (int)(drawn(seed, (unsigned)i, 77) % (unsigned)(i + 1)), kept = list[i];
        list[i] = list[other], list[other] = kept;
    }
}

static void grid(int dimensions, const int *fixed, unsigned round) {
    int sizes[3] = {0, fixed ? 1 : 0}, periods[3];
    MPI_Dims_create(ranks, dimensions, sizes);
    for (int d = 0; d < dimensions; d++) periods[d] = fixed ? fixed[d] : drawn(round, (unsigned)d, 1) % 3 > 0;
    MPI_Cart_create(MPI_COMM_WORLD, dimensions, sizes, periods, 0, &t.comm);
    for (int r = 0; r < ranks; r++) {
        struct neighbors *n = &t.of[r];
        n->in = n->out = 2 * dimensions;
        for (int i = 0; i < n->in; i++) {
            int place[3];
            MPI_Cart_coords(t.comm, r, dimensions, place);
            place[i / 2] += i % 2 ? 1 : -1;
            bool exists = periods[i / 2] || (place[i / 2] >= 0 && place[i / 2] < sizes[i / 2]);
            n->from[i] = MPI_PROC_NULL;
            if (exists) MPI_Cart_rank(t.comm, place, &n->from[i]);
            n->to[i] = n->from[i], n->order[i] = i ^ 1; /* what goes before comes from after */
        }
    }
}

/* How often an edge goes from one rank to the other. */
static int edges(unsigned round, int from, int to) {
    unsigned kind = drawn(round, (unsigned)from * 100 + (unsigned)to, 2) % 8;
    return from == (int)(round % 5) && to != from ? 0 : kind < 4 ? 0 : kind < 7 ? 1 : 2;
}

static void graph(unsigned round) {
    int index[MOST], list[MOST * MOST], sum = 0;
    for (int r = 0; r < ranks; r++) {
        struct neighbors *n = &t.of[r];
        n->in = 0;
        for (int other = 0; other < ranks; other++) {
            int low = r < other ? r : other, high = r < other ? other : r;
            for (int e = edges(round, low, high); e > 0; e--) n->order[n->in] = n->in, n->from[n->in++] = list[sum++] = other;
        }
        n->out = n->in, memcpy(n->to, n->from, sizeof n->to);
        index[r] = sum;
    }
    MPI_Graph_create(MPI_COMM_WORLD, ranks, index, list, 0, &t.comm);
}

static void distributed(unsigned round, bool weighted) {
    for (int r = 0; r < ranks; r++) {
        struct neighbors *n = &t.of[r];
        n->in = n->out = 0;
        for (int other = 0; other < ranks; other++) {
            for (int e = edges(round, other, r); e > 0; e--) n->from[n->in++] = other;
            for (int e = edges(round, r, other); e > 0; e--) n->order[n->out] = n->out, n->to[n->out++] = other;
        }
        shuffle(n->from, n->in, round * 31 + (unsigned)r), shuffle(n->to, n->out, round * 37 + (unsigned)r);
    }
    int weights[MOST] = {0}, *given = weighted ? weights : MPI_UNWEIGHTED;
    struct neighbors *n = &t.of[me];
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, n->in, n->from, given, n->out, n->to, given, MPI_INFO_NULL, 0, &t.comm);
}

/* The place among a sender's destinations of the message that this rank receives in its own place `at`. */
static int matching(int at) {
    const struct neighbors *mine = &t.of[me], *its = &t.of[mine->from[at]];
    int before = 0, i = 0;
    for (int other = 0; other < at; other++) before += mine->from[other] == mine->from[at];
    for (;; i++)
        if (its->to[its->order[i]] == me && before-- == 0) return its->order[i];
}

/* ---- Blocks ----------------------------------------------------------------------------------------------------- */

/* Place `e` of so many: blocks lie in their order or against it, with gaps between them. */
static int start_of(unsigned round, int e, int count) { return (round % 2 ? count - 1 - e : e) * (2 * WORDS + 1); }

/* In an Alltoallw, each second block has every second word. */
static bool is_apart(unsigned round, int e, bool sends) { return (e + sends + (int)round) % 2; }

static int length(unsigned round, int from, int to) {
    if (from < 0 || to < 0) return 3;
    unsigned it = drawn(round, (unsigned)from * 1000 + (unsigned)to, 3);
    return it % 5 ? (int)(it / 5 % WORDS) : 0;
}

/* Word `i` of what a rank sends from. */
static int word(int of, int i) { return 100000 * of + i; }

struct lists {
    int counts[MOST], starts[MOST];
    MPI_Aint bytes[MOST];
    MPI_Datatype types[MOST];
};

static struct lists out, in;
static int sent[ROOM], got[ROOM], wanted[ROOM];

static void lay(struct lists *l, unsigned round, const int *peers, int count, bool sends, MPI_Datatype apart) {
    for (int e = 0; e < count; e++) {
        l->counts[e] = sends ? length(round, me, peers[e]) : length(round, peers[e], me);
        l->starts[e] = start_of(round, e, count), l->bytes[e] = l->starts[e] * (MPI_Aint)sizeof(int);
        /* Nobody looks at the type of a block without elements. */
        l->types[e] = !l->counts[e] ? MPI_DATATYPE_NULL : is_apart(round, e, sends) ? apart : MPI_INT;
    }
}

/* The words of `got` that differ from `wanted`; it is empty again. */
static void compare(const char *name, const char *form, unsigned round) {
    int first = 0;
    while (first < ROOM && got[first] == wanted[first]) first++;
    expect(first == ROOM, "round %u: MPI_Neighbor_%s, %s: word %d is %d, not %d", round, name, form, first, got[first % ROOM], wanted[first % ROOM]);
    for (int i = 0; i < ROOM; i++) got[i] = -1;
}

/* What each block that is received gets: `count` words from `start` of the sender's, `sent_step` apart; here `step`. */
static void want(int at, int place, int step, int count, int start, int sent_step) {
    for (int i = 0; i < count; i++) wanted[place + i * step] = word(t.of[me].from[at], start + i * sent_step);
}

enum what { ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW };

static void expecting(enum what what, unsigned round, int block) {
    const struct neighbors *n = &t.of[me];
    for (int i = 0; i < ROOM; i++) wanted[i] = got[i] = -1;
    for (int at = 0; at < n->in; at++) {
        if (n->from[at] < 0) continue;
        int from = n->from[at], e = matching(at), start = start_of(round, e, t.of[from].out), sum = length(round, from, me);
        switch (what) {
        case ALLGATHER: want(at, at * block, 1, block, 0, 1); break;
        case ALLGATHERV: want(at, in.starts[at], 1, length(round, from, from), 0, 1); break;
        case ALLTOALL: want(at, 2 * at * block, 2, block, e * block, 1); break;
        case ALLTOALLV: want(at, in.starts[at], 1, sum, start, 1); break;
        default: want(at, in.starts[at], 1 + is_apart(round, at, false), sum, start, 1 + is_apart(round, e, true));
        }
    }
}

/* ---- Calls ------------------------------------------------------------------------------------------------------ */

static void completes(MPI_Request *request) { expect(!MPI_Wait(request, MPI_STATUS_IGNORE), "a wait"); }

/* All forms of one; `before` and `after` the receive buffer are its other arguments. */
#define OPEN(...) __VA_ARGS__
#define ALL_FORMS(WHAT, name, before, after)                                                                           \
    do {                                                                                                               \
        MPI_Request request;                                                                                           \
        expecting(WHAT, round, block);                                                                                 \
        MPI_Neighbor_##name(OPEN before, got, OPEN after);                                                             \
        compare(#name, "blocking", round);                                                                             \
        if (blocking) break;                                                                                           \
        MPI_Ineighbor_##name(OPEN before, got, OPEN after, &request);                                                  \
        completes(&request);                                                                                           \
        compare(#name, "nonblocking", round);                                                                          \
        INIT(Neighbor_##name)(OPEN before, got, OPEN after, MPI_INFO_NULL, &request);                                  \
        for (int turn = 0; turn < 2; turn++) {                                                                         \
            MPI_Start(&request);                                                                                       \
            completes(&request);                                                                                       \
            compare(#name, "persistent", round);                                                                       \
        }                                                                                                              \
        MPI_Request_free(&request);                                                                                    \
    } while (0)

static void run(unsigned round) {
    const struct neighbors *n = &t.of[me];
    MPI_Datatype pair, apart;
    MPI_Type_vector(1, 1, 2, MPI_INT, &pair);
    MPI_Type_create_resized(pair, 0, 2 * sizeof(int), &apart); /* every second word */
    MPI_Type_commit(&apart);
    lay(&out, round, n->to, n->out, true, apart), lay(&in, round, n->from, n->in, false, apart);
    int block = 1 + (int)(drawn(round, 0, 4) % WORDS);
    for (int i = 0; i < ROOM; i++) sent[i] = word(me, i);
    ALL_FORMS(ALLGATHER, allgather, (sent, block, MPI_INT), (block, MPI_INT, t.comm));
    ALL_FORMS(ALLTOALL, alltoall, (sent, block, MPI_INT), (block, apart, t.comm));
    ALL_FORMS(ALLTOALLV, alltoallv, (sent, out.counts, out.starts, MPI_INT), (in.counts, in.starts, MPI_INT, t.comm));
    ALL_FORMS(ALLTOALLW, alltoallw, (sent, out.counts, out.bytes, out.types), (in.counts, in.bytes, in.types, t.comm));
    /* Each rank sends one length to all. */
    for (int i = 0; i < n->in; i++) in.counts[i] = n->from[i] < 0 ? 7 : length(round, n->from[i], n->from[i]);
    ALL_FORMS(ALLGATHERV, allgatherv, (sent, length(round, me, me), MPI_INT), (in.counts, in.starts, MPI_INT, t.comm));
    MPI_Type_free(&pair), MPI_Type_free(&apart);
}

/* Errors are the MPI's. */
static void errors(void) {
    int word = 0, words[MOST], class;
    MPI_Errhandler before;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Neighbor_allgather(&word, 1, MPI_INT, words, 1, MPI_INT, MPI_COMM_WORLD), &class);
    int code = UNDERLYING(PMPI_Neighbor_allgather)(&word, 1, MPI_INT, words, 1, MPI_INT, MPI_COMM_WORLD), wanted;
    MPI_Error_class(code, &wanted);
    expect(class == wanted && code, "without a topology: class %d, the MPI's %d", class, wanted);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
    MPI_Errhandler_free(&before);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    me = rank_in(MPI_COMM_WORLD), ranks = size_of(MPI_COMM_WORLD);
    blocking = argc > 1 && !strcmp(argv[1], "blocking");
    for (unsigned round = 0; round < ROUNDS; round++) {
        switch (round % 6) {
        case 0: grid(1 + (int)(round / 6 % 2), (int[]){1, 1}, round); break; /* closed */
        case 1: grid(2, NULL, round); break;
        case 2: grid(3, NULL, round); break;
        case 3: graph(round); break;
        default: distributed(round, round % 2);
        }
        MPI_Barrier(t.comm); /* a nonblocking collective is the MPI's before the communicator's first blocking one */
        run(round);
        MPI_Comm_free(&t.comm);
    }
    errors();
    return finish("neighbors");
}
