/* Collectives that move data: every rank has its own layouts on both sides; results and holes are checked byte by
 * byte. */
#include "values.h"
#include "waited.h"

#include "layout.h"

/* All ranks have the same layouts. */
static bool underlying;

enum kind { GATHER, SCATTER, ALLGATHER, ALLTOALL, KINDS };
static const char *const names[KINDS][2] = {
    {"gather", "gatherv"}, {"scatter", "scatterv"}, {"allgather", "allgatherv"}, {"alltoall", "alltoallv"}};

/* One call: the same values on every rank, except for the rank in `group`. */
struct scene {
    const struct group *group;
    const struct family *family;
    enum kind kind;
    bool vector;   /* the v form: lengths differ, blocks are in reverse order with gaps */
    bool in_place;
    int root, units, shift;
};

/* Lengths and positions of blocks, in units. */
struct blocks {
    int count[RANKS_MOST], at[RANKS_MOST];
    size_t units;
};

/* A send or receive side: memory, and the arguments of a call. */
struct side {
    bool used, in_place;
    struct blocks blocks; /* in units */
    struct units units;
    struct place place;
    int counts[RANKS_MOST], displacements[RANKS_MOST]; /* in elements of the type */
};

static bool rooted(const struct scene *s) { return s->kind == GATHER || s->kind == SCATTER; }
static bool at_root(const struct scene *s) { return s->group->rank == s->root; }

static int length(const struct scene *s, int from, int to) {
    if (!s->vector) return s->units;
    int of = s->kind == SCATTER ? to : s->kind == ALLTOALL ? from + to : from;
    return s->units + of % 3;
}

static unsigned key(const struct scene *s, int from, int to) {
    unsigned to_one = s->kind == SCATTER || s->kind == ALLTOALL ? (unsigned)to : 0;
    return (unsigned)from * RANKS_MOST + to_one + (unsigned)s->units * 1009u + (unsigned)s->shift * 37u;
}

static bool sends_many(const struct scene *s) { return s->kind == SCATTER || s->kind == ALLTOALL; }
static bool receives_many(const struct scene *s) { return s->kind != SCATTER; }

/* The blocks of this rank's side: one, or one for every rank. */
static struct blocks blocks_of(const struct scene *s, bool sending) {
    struct blocks blocks = {.units = 0};
    int me = s->group->rank, size = s->group->size;
    bool many = sending ? sends_many(s) : receives_many(s);
    for (int i = 0; i < (many ? size : 1); i++) {
        int r = s->vector && many ? size - 1 - i : i;
        int peer = many ? r : s->root;
        blocks.count[r] = sending ? length(s, me, peer) : length(s, peer, me);
        /* With one rank, MPICH 4.0's own MPI_Allgatherv ignores the displacement. */
        blocks.units += s->vector && many && size > 1;
        blocks.at[r] = (int)blocks.units;
        blocks.units += (size_t)blocks.count[r];
    }
    return blocks;
}

static struct side side_of(const struct scene *s, bool sending) {
    bool only_root = sending ? s->kind == SCATTER : s->kind == GATHER;
    struct side side = {.used = !only_root || at_root(s), .blocks = blocks_of(s, sending)};
    bool in_place_here = s->in_place && (!rooted(s) || at_root(s));
    side.in_place = in_place_here && (s->kind == SCATTER ? !sending : sending);
    int pick = ((underlying ? 0 : s->group->rank) + s->shift + !sending) % s->family->count;
    const struct layout *layout = &s->family->layouts[pick];
    side.units = units_of(layout, side.blocks.units);
    side.place = place(&side.units);
    for (int r = 0; r < s->group->size; r++) {
        side.counts[r] = side.blocks.count[r] * layout->times;
        side.displacements[r] = side.blocks.at[r] * layout->times;
    }
    /* Arguments that are not significant: wrong values. */
    if (side.in_place || !side.used) place_free(&side.place), side.place = (struct place){NULL, MPI_DATATYPE_NULL, false};
    if (side.in_place) side.place.buffer = MPI_IN_PLACE;
    return side;
}

static void side_free(struct side *side) {
    place_free(&side->place);
    units_free(&side->units);
}

static int call(const struct scene *s, struct side *send, struct side *receive) {
    MPI_Comm comm = s->group->comm;
    void *from = send->place.buffer, *to = receive->place.buffer;
    MPI_Datatype sent = send->place.type, received = receive->place.type;
    const int *ns = send->counts, *ats = send->displacements, *nr = receive->counts, *atr = receive->displacements;
    switch (2 * (int)s->kind + s->vector) {
    case 2 * GATHER: return MPI_Gather(from, ns[0], sent, to, nr[0], received, s->root, comm);
    case 2 * GATHER + 1:
        if (!at_root(s)) nr = atr = NULL;
        return MPI_Gatherv(from, ns[0], sent, to, nr, atr, received, s->root, comm);
    case 2 * SCATTER: return MPI_Scatter(from, ns[0], sent, to, nr[0], received, s->root, comm);
    case 2 * SCATTER + 1:
        if (!at_root(s)) ns = ats = NULL;
        return MPI_Scatterv(from, ns, ats, sent, to, nr[0], received, s->root, comm);
    case 2 * ALLGATHER: return MPI_Allgather(from, ns[0], sent, to, nr[0], received, comm);
    case 2 * ALLGATHER + 1: return MPI_Allgatherv(from, ns[0], sent, to, nr, atr, received, comm);
    case 2 * ALLTOALL: return MPI_Alltoall(from, ns[0], sent, to, nr[0], received, comm);
    default:
        if (send->in_place) ns = ats = NULL;
        return MPI_Alltoallv(from, ns, ats, sent, to, nr, atr, received, comm);
    }
}

/* Does the side's block of `peer` hold the data with this key? */
static void check(const struct scene *s, struct side *side, int peer, unsigned key, const char *what) {
    bool right = holds(&side->units, (size_t)side->blocks.at[peer], (size_t)side->blocks.count[peer], key);
    expect(right, "%s: %s of %d units of %s on %s, root %d, in place %d, layout %s: block %d",
           names[s->kind][s->vector], what, s->units, s->family->name, s->group->name, s->root, s->in_place,
           side->units.layout->name, peer);
}

static void fill_send(const struct scene *s, struct side *send, struct side *receive) {
    int me = s->group->rank, size = s->group->size;
    for (int to = 0; to < size; to++) {
        int block = sends_many(s) ? to : 0;
        /* In place, the data to send is in the receive buffer. */
        if (send->in_place)
            block = s->kind == ALLTOALL ? to : me, fill(&receive->units, (size_t)receive->blocks.at[block],
                                                        (size_t)receive->blocks.count[block], key(s, me, to));
        else if (send->used)
            fill(&send->units, (size_t)send->blocks.at[block], (size_t)send->blocks.count[block], key(s, me, to));
        if (!sends_many(s)) return;
    }
}

static void move(const struct scene *s) {
    int me = s->group->rank, size = s->group->size;
    struct side send = side_of(s, true), receive = side_of(s, false);
    fill_send(s, &send, &receive);
    int code = call(s, &send, &receive);
    expect(code == MPI_SUCCESS, "%s: error %d", names[s->kind][s->vector], code);
    if (receive.used && !receive.in_place)
        for (int r = 0; r < (receives_many(s) ? size : 1); r++) {
            int from = receives_many(s) ? r : s->root;
            check(s, &receive, r, key(s, from, me), "the received data");
        }
    if (send.used && !send.in_place)
        for (int r = 0; r < (sends_many(s) ? size : 1); r++)
            check(s, &send, r, key(s, me, r), "the sent data");
    expect(untouched(&receive.units) && untouched(&send.units), "%s: holes on %s: %d units of %s, layouts %s, %s",
           names[s->kind][s->vector], s->group->name, s->units, s->family->name, send.units.layout->name,
           receive.units.layout->name);
    side_free(&send);
    side_free(&receive);
}

/* A side of an alltoallw: each block in a layout of its own. */
struct typed {
    unsigned char *memory;
    struct units blocks[RANKS_MOST];
    int counts[RANKS_MOST], starts[RANKS_MOST], lengths[RANKS_MOST];
    MPI_Datatype types[RANKS_MOST];
    bool made; /* the types have absolute addresses */
};

/* Some blocks are empty. What two ranks exchange is as long both ways, as in place requires. */
static int exchanged(const struct scene *s, int from, int to) { return (from + to) % 4 == 3 ? 0 : length(s, from, to); }

/* The block of rank r comes after that of rank r + 1. */
static struct typed typed_side(const struct scene *s, bool sending, bool absolute) {
    struct typed side = {.made = absolute};
    int me = s->group->rank, size = s->group->size, at = 0;
    const struct layout *layouts[RANKS_MOST];
    for (int r = size - 1; r >= 0; r--) {
        layouts[r] = &s->family->layouts[(me * 5 + r + s->shift + !sending) % s->family->count];
        side.lengths[r] = exchanged(s, me, r), side.counts[r] = side.lengths[r] * layouts[r]->times;
        side.starts[r] = at, at += (int)units_bytes(layouts[r], (size_t)side.lengths[r]);
    }
    side.memory = allocate((size_t)at);
    for (int r = 0; r < size; r++) {
        side.blocks[r] = units_in(layouts[r], (size_t)side.lengths[r], side.memory + side.starts[r]);
        side.types[r] = layouts[r]->type;
        if (!absolute) continue;
        MPI_Aint address;
        MPI_Get_address(side.blocks[r].memory, &address);
        MPI_Type_create_hindexed(1, &side.counts[r], &address, layouts[r]->type, &side.types[r]);
        MPI_Type_commit(&side.types[r]);
        side.counts[r] = 1, side.starts[r] = 0;
    }
    return side;
}

static void typed_free(const struct scene *s, struct typed *side) {
    for (int r = 0; r < s->group->size && side->made; r++) MPI_Type_free(&side->types[r]);
    free(side->memory);
}

static int call_typed(const struct scene *s, const struct typed *send, const struct typed *receive) {
    const void *from = s->in_place ? MPI_IN_PLACE : send->made ? MPI_BOTTOM : send->memory;
    void *to = receive->made ? MPI_BOTTOM : receive->memory;
#if MPI_VERSION >= 4
    MPI_Count sent[RANKS_MOST], received[RANKS_MOST];
    MPI_Aint from_at[RANKS_MOST], to_at[RANKS_MOST];
    for (int r = 0; r < s->group->size; r++) {
        sent[r] = send->counts[r], received[r] = receive->counts[r];
        from_at[r] = send->starts[r], to_at[r] = receive->starts[r];
    }
    if (s->units % 2)
        return MPI_Alltoallw_c(from, sent, from_at, send->types, to, received, to_at, receive->types, s->group->comm);
#endif
    /* In place, what is said of the sent data is not significant. */
    const int *ns = s->in_place ? NULL : send->counts, *ats = s->in_place ? NULL : send->starts;
    const MPI_Datatype *types = s->in_place ? NULL : send->types;
    return MPI_Alltoallw(from, ns, ats, types, to, receive->counts, receive->starts, receive->types, s->group->comm);
}

static void alltoallw(const struct scene *s, bool absolute) {
    int me = s->group->rank, size = s->group->size;
    struct typed send = typed_side(s, true, absolute), receive = typed_side(s, false, absolute);
    struct typed *of = s->in_place ? &receive : &send;
    for (int r = 0; r < size; r++) fill(&of->blocks[r], 0, (size_t)of->lengths[r], key(s, me, r));
    int code = call_typed(s, &send, &receive);
    expect(code == MPI_SUCCESS, "alltoallw: error %d", code);
    for (int side = 0; side < (s->in_place ? 1 : 2); side++)
        for (int r = 0; r < size; r++) {
            struct units *block = side ? &send.blocks[r] : &receive.blocks[r];
            bool right = holds(block, 0, (size_t)receive.lengths[r], side ? key(s, me, r) : key(s, r, me));
            expect(right && untouched(block), "alltoallw of %d units of %s on %s, in place %d, absolute %d, layout %s: block %d, %s",
                   s->units, s->family->name, s->group->name, s->in_place, absolute, block->layout->name, r,
                   side ? "sent" : "received");
        }
    typed_free(s, &send), typed_free(s, &receive);
}

static void bcast(const struct scene *s) {
    struct side side = side_of(s, false);
    int count = side.blocks.count[0];
    unsigned of = key(s, s->root, 0);
    if (at_root(s)) fill(&side.units, 0, (size_t)count, of);
    int code = MPI_Bcast(side.place.buffer, side.counts[0], side.place.type, s->root, s->group->comm);
    expect(code == MPI_SUCCESS, "bcast: error %d", code);
    expect(holds(&side.units, 0, (size_t)count, of), "bcast: %d units of %s on %s, root %d, layout %s", s->units,
           s->family->name, s->group->name, s->root, side.units.layout->name);
    expect(untouched(&side.units), "bcast: holes of layout %s", side.units.layout->name);
    side_free(&side);
}

/* All forms with one root. */
static void forms(struct scene scene) {
    scene.kind = SCATTER, bcast(&scene);
    for (scene.kind = 0; scene.kind < KINDS; scene.kind++) {
        if (!rooted(&scene) && scene.root) continue;
        for (int form = 0; form < 4; form++) {
            scene.vector = form & 1, scene.in_place = form & 2;
            move(&scene);
        }
    }
    scene.kind = ALLTOALL, scene.vector = true;
    for (int form = 0; form < 4 && !scene.root; form++) {
        scene.in_place = form & 1;
        alltoallw(&scene, form & 2);
    }
}

void moves(const struct group *group, int most, bool only_underlying) {
    underlying = only_underlying;
    /* A unit of ints has six elements: so 100,000 elements at most. */
    static const int lengths[] = {0, 1, 7, 333, 16667};
    for (int f = 0; f < FAMILIES; f++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            struct scene scene = {.group = group, .family = &families[f], .units = lengths[i], .shift = (int)i};
            if (lengths[i] > most || (lengths[i] > 333 && f > 1)) continue;
            /* The long ones with one root, and two mixes of layouts. */
            bool large = lengths[i] > 333;
            for (scene.root = large ? group->size - 1 : 0; scene.root < group->size; scene.root++)
                scene.shift++, forms(scene);
            /* Collectives without a root are skipped for other roots than 0, so this runs them. */
            scene.root = 0;
            if (large) scene.shift++, forms(scene);
        }
    /* Each layout with each other one, for short messages. */
    for (int shift = 0; shift < families[0].count; shift++)
        forms((struct scene){.group = group, .family = &families[0], .units = 5, .shift = shift});
}
