/* Datatypes with holes, and the collectives that move them, from C. Built and run by c.rs. */
#include "members.h"

enum { RANKS_MOST = 5, LAYOUTS = 6, SIZE_MOST = 6, BLANK = 0xEE };

/* A type, and what the test expects of it: its packed bytes, its extent, the offset of packed byte i. `per`: the number
 * of elements with 6 packed bytes. */
static struct layout {
    unisono_type *type;
    uint64_t size, extent, at[SIZE_MOST], per;
} layouts[LAYOUTS] = {
    {NULL, 6, 6, {0, 1, 2, 3, 4, 5}, 1}, {NULL, 2, 2, {0, 1}, 3},
    {NULL, 6, 12, {0, 1, 5, 6, 10, 11}, 1}, {NULL, 6, 10, {8, 9, 0, 1, 5, 6}, 1},
    {NULL, 6, 13, {7, 8, 9, 0, 1, 4}, 1}, {NULL, 3, 4, {3, 1, 2}, 2},
};

static void make_types(void) {
    uint64_t places[] = {8, 0, 5}, bytes[] = {3, 0, 2, 1}, starts[] = {7, 0, 0, 4}, swapped[] = {3, 1}, parts[] = {1, 2};
    CHECK(unisono_type_contiguous(6, &layouts[0].type) == UNISONO_OK);
    CHECK(unisono_type_contiguous(2, &layouts[1].type) == UNISONO_OK);
    CHECK(unisono_type_vector(3, 2, 5, &layouts[2].type) == UNISONO_OK);
    CHECK(unisono_type_indexed(3, 2, places, &layouts[3].type) == UNISONO_OK);
    CHECK(unisono_type_struct(4, bytes, starts, 13, &layouts[4].type) == UNISONO_OK);
    CHECK(unisono_type_struct(2, parts, swapped, 4, &layouts[5].type) == UNISONO_OK);
    /* The library has its own copy. */
    memset(places, 0xFF, sizeof places), memset(bytes, 0xFF, sizeof bytes), memset(starts, 0xFF, sizeof starts);
    memset(parts, 0xFF, sizeof parts), memset(swapped, 0xFF, sizeof swapped);
}

static void free_types(void) {
    for (int l = 0; l < LAYOUTS; l++) CHECK(unisono_type_free(layouts[l].type) == UNISONO_OK);
    CHECK(unisono_type_free(NULL) == UNISONO_OK);
}

/* Packed byte i of the message from rank `from` to rank `to`. */
static unsigned char pattern(uint64_t i, uint32_t from, uint32_t to) {
    return (unsigned char)(i * 31 + i / 251 + from * 7 + to * 77 + 1);
}

/* A buffer and its expected contents, both blank at first, with 16 bytes more at the end that must stay blank. */
struct room {
    unsigned char *memory, *wanted;
    uint64_t bytes;
};

static struct room room(uint64_t bytes) {
    struct room room = {malloc(bytes + 16), malloc(bytes + 16), bytes + 16};
    CHECK(room.memory && room.wanted);
    memset(room.memory, BLANK, room.bytes), memset(room.wanted, BLANK, room.bytes);
    return room;
}

/* Does the buffer have the expected contents, also in holes and at the end? */
static int right(struct room room) {
    int equal = !memcmp(room.memory, room.wanted, room.bytes);
    free(room.memory), free(room.wanted);
    return equal;
}

/* Puts the `six` times 6 packed bytes of a message at `memory`, element by element. */
static void put(unsigned char *memory, const struct layout *as, uint64_t six, uint32_t from, uint32_t to) {
    for (uint64_t i = 0; i < six * 6; i++)
        memory[i / as->size * as->extent + as->at[i % as->size]] = pattern(i, from, to);
}

static uint64_t extent(const struct layout *as, uint64_t six) { return six * as->per * as->extent; }
/* The arguments of one side of a call: count and type. */
#define ELEMENTS(as) six * (as)->per, (as)->type

static void to_root(unisono_comm *c, uint32_t me, uint32_t ranks, uint64_t six, uint32_t root, int in_place) {
    /* Each rank has its own type for its side, and the root another one for all ranks' blocks. */
    const struct layout *own = &layouts[(me + root) % LAYOUTS], *other = &layouts[(root * 2 + 1 + six) % LAYOUTS];
    const struct layout *none = &(struct layout){NULL, 1, 1, {0}, UINT64_MAX};
    int here = me == root, away = here && in_place;
    uint64_t each = extent(other, six);

    struct room mine = room(extent(own, six));
    if (here) put(mine.memory, own, six, root, 0);
    put(mine.wanted, own, six, root, 0);
    CHECK(unisono_bcast_typed(c, mine.memory, ELEMENTS(own), root) == UNISONO_OK);
    CHECK(right(mine));

    struct room all = room(here ? each * ranks : 0);
    mine = room(extent(own, six));
    put(mine.memory, own, six, me, 1), put(mine.wanted, own, six, me, 1);
    if (away) put(all.memory + me * each, other, six, me, 1);
    for (uint32_t r = 0; here && r < ranks; r++) put(all.wanted + r * each, other, six, r, 1);
    CHECK(unisono_gather_typed(c, away ? UNISONO_IN_PLACE : mine.memory, ELEMENTS(away ? none : own),
                               here ? all.memory : NULL, ELEMENTS(here ? other : none), root) == UNISONO_OK);
    CHECK(right(mine) && right(all));

    all = room(here ? each * ranks : 0), mine = room(extent(own, six));
    for (uint32_t r = 0; here && r < ranks; r++)
        put(all.memory + r * each, other, six, root, r), put(all.wanted + r * each, other, six, root, r);
    if (!away) put(mine.wanted, own, six, root, me);
    CHECK(unisono_scatter_typed(c, here ? all.memory : NULL, ELEMENTS(here ? other : none),
                                away ? UNISONO_IN_PLACE : mine.memory, ELEMENTS(away ? none : own),
                                root) == UNISONO_OK);
    CHECK(right(mine) && right(all));
}

static void to_all(unisono_comm *c, uint32_t me, uint32_t ranks, uint64_t six, int in_place) {
    const struct layout *own = &layouts[(2 * me + six) % LAYOUTS], *other = &layouts[(me + 3) % LAYOUTS];
    const struct layout *none = &(struct layout){NULL, 1, 1, {0}, UINT64_MAX}, *sent = in_place ? none : own;
    uint64_t each = extent(other, six), out = extent(own, six);

    struct room mine = room(out), all = room(each * ranks);
    put(in_place ? all.memory + me * each : mine.memory, in_place ? other : own, six, me, 0);
    if (!in_place) put(mine.wanted, own, six, me, 0);
    for (uint32_t r = 0; r < ranks; r++) put(all.wanted + r * each, other, six, r, 0);
    CHECK(unisono_allgather_typed(c, in_place ? UNISONO_IN_PLACE : mine.memory, ELEMENTS(sent), all.memory,
                                  ELEMENTS(other)) == UNISONO_OK);
    CHECK(right(mine) && right(all));

    mine = room(out * ranks), all = room(each * ranks);
    for (uint32_t r = 0; r < ranks; r++) {
        if (in_place) put(all.memory + r * each, other, six, me, r);
        else put(mine.memory + r * out, own, six, me, r), put(mine.wanted + r * out, own, six, me, r);
        put(all.wanted + r * each, other, six, r, me);
    }
    CHECK(unisono_alltoall_typed(c, in_place ? UNISONO_IN_PLACE : mine.memory, ELEMENTS(sent), all.memory,
                                 ELEMENTS(other)) == UNISONO_OK);
    CHECK(right(mine) && right(all));
}

/* One side of alltoallw: the last rank's block first, gaps of 3 bytes, and absurd displacements for empty blocks. */
struct side {
    struct room room;
    const struct layout *as[RANKS_MOST];
    const unisono_type *types[RANKS_MOST];
    uint64_t sixes[RANKS_MOST], counts[RANKS_MOST], displacements[RANKS_MOST];
};

static struct side side(uint32_t me, uint32_t ranks, uint64_t six, uint32_t stride) {
    struct side s;
    uint64_t end = 3;
    for (uint32_t r = ranks; r-- > 0;) {
        s.as[r] = &layouts[(r * stride + me * 2 + 1) % LAYOUTS], s.types[r] = s.as[r]->type;
        s.sixes[r] = (me + r) % 3 * six, s.counts[r] = s.sixes[r] * s.as[r]->per;
        s.displacements[r] = s.counts[r] ? end : UINT64_MAX - r;
        end += extent(s.as[r], s.sixes[r]) + 3;
    }
    s.room = room(end);
    return s;
}

static void put_block(unsigned char *memory, const struct side *s, uint32_t r, uint32_t from, uint32_t to) {
    if (s->counts[r]) put(memory + s->displacements[r], s->as[r], s->sixes[r], from, to);
}

/* The length of the block from i to j depends on i + j only, so that the call may also be in place. */
static void each_to_all(unisono_comm *c, uint32_t me, uint32_t ranks, uint64_t six, int in_place) {
    struct side from = side(me, ranks, six, 1), to = side(me, ranks, six, 5);
    for (uint32_t r = 0; r < ranks; r++) {
        put_block(in_place ? to.room.memory : from.room.memory, in_place ? &to : &from, r, me, r);
        if (!in_place) put_block(from.room.wanted, &from, r, me, r);
        put_block(to.room.wanted, &to, r, r, me);
    }
    int code = in_place ? unisono_alltoallw(c, UNISONO_IN_PLACE, NULL, NULL, NULL, to.room.memory, to.counts,
                                            to.displacements, to.types)
                        : unisono_alltoallw(c, from.room.memory, from.counts, from.displacements, from.types,
                                            to.room.memory, to.counts, to.displacements, to.types);
    CHECK(code == UNISONO_OK);
    CHECK(right(from.room) && right(to.room));
}

/* Column r of each rank's matrix becomes a row at rank r, and back: blocks lie in each other's holes. */
static void columns_to_rows(unisono_comm *c, uint32_t me, uint32_t ranks) {
    enum { ROWS = 3 };
    uint16_t matrix[ROWS][RANKS_MOST], columns[RANKS_MOST][ROWS];
    unisono_type *column, *row;
    CHECK(unisono_type_vector(ROWS, sizeof(uint16_t), sizeof *matrix, &column) == UNISONO_OK);
    CHECK(unisono_type_contiguous(sizeof *columns, &row) == UNISONO_OK);
    uint64_t counts[RANKS_MOST], from[RANKS_MOST], to[RANKS_MOST];
    const unisono_type *sent[RANKS_MOST], *received[RANKS_MOST];
    for (uint32_t r = 0; r < ranks; r++) {
        counts[r] = 1, sent[r] = column, from[r] = r * sizeof(uint16_t);
        received[r] = row, to[r] = r * sizeof *columns;
        for (uint32_t i = 0; i < ROWS; i++) matrix[i][r] = (uint16_t)(me * 100 + i * 10 + r);
    }
    CHECK(unisono_alltoallw(c, matrix, counts, from, sent, columns, counts, to, received) == UNISONO_OK);
    for (uint32_t r = 0; r < ranks; r++)
        for (uint32_t i = 0; i < ROWS; i++) CHECK(columns[r][i] == r * 100 + i * 10 + me);
    uint16_t back[ROWS][RANKS_MOST];
    memset(back, BLANK, sizeof back);
    CHECK(unisono_alltoallw(c, columns, counts, to, received, back, counts, from, sent) == UNISONO_OK);
    for (uint32_t i = 0; i < ROWS; i++)
        for (uint32_t r = 0; r < RANKS_MOST; r++) CHECK(back[i][r] == (r < ranks ? matrix[i][r] : 0xEEEE));
    CHECK(unisono_type_free(column) == UNISONO_OK && unisono_type_free(row) == UNISONO_OK);
}

static void moves(unisono_comm *comm, uint32_t me, uint32_t ranks) {
    const uint64_t sixes[] = {1, 0, 2, 23, 700, 12000};
    make_types();
    for (size_t s = 0; s < sizeof sixes / sizeof *sixes; s++)
        for (int in_place = 0; in_place < 2; in_place++) {
            for (uint32_t root = 0; root < ranks; root++) to_root(comm, me, ranks, sixes[s], root, in_place);
            to_all(comm, me, ranks, sixes[s], in_place);
            each_to_all(comm, me, ranks, sixes[s], in_place);
        }
    free_types();
    columns_to_rows(comm, me, ranks);
}

/* No elements, and elements of types without bytes. */
static void nothing(unisono_comm *comm, uint32_t me, uint32_t ranks) {
    unisono_type *none[3];
    CHECK(unisono_type_contiguous(0, &none[0]) == UNISONO_OK);
    CHECK(unisono_type_indexed(0, 8, NULL, &none[1]) == UNISONO_OK);
    CHECK(unisono_type_struct(0, NULL, NULL, 8, &none[2]) == UNISONO_OK);
    unsigned char memory[64];
    memset(memory, BLANK, sizeof memory);
    for (int t = 0; t < 3; t++) {
        CHECK(unisono_bcast_typed(comm, memory, 8, none[(me + (uint32_t)t) % 3], ranks - 1) == UNISONO_OK);
        CHECK(unisono_allgather_typed(comm, NULL, 0, none[t], memory, 1, none[0]) == UNISONO_OK);
    }
    for (size_t i = 0; i < sizeof memory; i++) CHECK(memory[i] == BLANK);
    for (int t = 0; t < 3; t++) CHECK(unisono_type_free(none[t]) == UNISONO_OK);
}

/* Types that are refused: only the caller learns of it. */
static void refused_types(void) {
    const uint64_t far[] = {0, UINT64_MAX - 7}, long_fields[] = {4, UINT64_MAX}, starts[] = {0, 4};
    const uint64_t most = (uint64_t)PTRDIFF_MAX;
    unisono_type *type;
#define REFUSED(call, code, words)                                                                  \
    do {                                                                                            \
        type = (unisono_type *)1;                                                                   \
        CHECK((call) == (code));                                                                    \
        SAYS(words);                                                                                \
        CHECK(type == NULL);                                                                        \
    } while (0)
#define BEYOND "must be at most 9223372036854775807"
    REFUSED(unisono_type_contiguous(most + 1, &type), UNISONO_ERR_ARGUMENT, "extent is 9223372036854775808, " BEYOND);
    REFUSED(unisono_type_vector(2, 4, 3, &type), UNISONO_ERR_ARGUMENT, "extent is 3, must be at least 4");
    REFUSED(unisono_type_vector(UINT64_MAX, 1, UINT64_MAX, &type), UNISONO_ERR_ARGUMENT, BEYOND);
    REFUSED(unisono_type_vector(2, 1, most, &type), UNISONO_ERR_ARGUMENT, "extent is 9223372036854775808, " BEYOND);
    REFUSED(unisono_type_indexed(2, 8, far, &type), UNISONO_ERR_ARGUMENT, BEYOND);
    REFUSED(unisono_type_indexed(2, most, starts, &type), UNISONO_ERR_ARGUMENT, BEYOND);
    REFUSED(unisono_type_indexed(1, 8, NULL, &type), UNISONO_ERR_NULL, "displacements is NULL");
    REFUSED(unisono_type_indexed(1, 8, (const uint64_t *)12, &type), UNISONO_ERR_ARGUMENT,
            "buffer address is 12, must be a multiple of 8");
    REFUSED(unisono_type_indexed(UINT64_MAX, 8, far, &type), UNISONO_ERR_ARGUMENT, "count is 18446744073709551615");
    REFUSED(unisono_type_struct(2, long_fields, starts, 8, &type), UNISONO_ERR_ARGUMENT,
            "extent is 8, must be at least 18446744073709551615");
    REFUSED(unisono_type_struct(1, starts + 1, starts, 3, &type), UNISONO_ERR_ARGUMENT, "extent is 3, must be at least 4");
    REFUSED(unisono_type_struct(0, NULL, NULL, most + 1, &type), UNISONO_ERR_ARGUMENT, BEYOND);
    REFUSED(unisono_type_struct(1, NULL, starts, 8, &type), UNISONO_ERR_NULL, "bytes is NULL");
    REFUSED(unisono_type_struct(1, starts, NULL, 8, &type), UNISONO_ERR_NULL, "displacements is NULL");
    CHECK(unisono_type_contiguous(8, NULL) == UNISONO_ERR_NULL);
    CHECK(!strcmp(text(), "type is NULL, must be an address"));
    CHECK(unisono_alltoallw(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == UNISONO_ERR_NULL);
    SAYS("comm is NULL");
}

/* Wrong arguments, only on the last of four ranks. `pair` has two packed bytes in an extent of four. */
static unsigned char here[64], there[64];
static unisono_type *pair, *huge, *dense;
static const unisono_type *pairs[4], *gap[4], *hugest[4], *densest[4];
static uint64_t ones[4] = {1, 1, 1, 1}, twos[4] = {1, 1, 1, 2}, many[4] = {1, 1, UINT64_MAX, 1};
static uint64_t starts[4] = {0, 4, 8, 12}, mixed[4] = {8, 2, 3, 12}, away[4] = {0, 4, 8, UINT64_MAX};
#define BAD(name, words, call)                                                                      \
    static void name(unisono_comm *comm, uint32_t rank, uint32_t ranks) {                           \
        int bad = rank == ranks - 1;                                                                \
        refused(comm, rank, ranks, call, words);                                                    \
    }
#define FROM here, ones, starts, pairs
#define TO there, ones, starts, pairs

BAD(null_types, "datatypes is null", unisono_alltoallw(comm, here, ones, starts, bad ? NULL : pairs, TO))
BAD(null_counts, "datatypes is null", unisono_alltoallw(comm, FROM, there, bad ? NULL : ones, starts, pairs))
BAD(null_starts, "datatypes is null", unisono_alltoallw(comm, FROM, there, ones, bad ? NULL : starts, pairs))
BAD(null_type, "datatype is null", unisono_alltoallw(comm, FROM, there, ones, starts, bad ? gap : pairs))
BAD(null_memory, "buffer address is null", unisono_alltoallw(comm, FROM, bad ? NULL : there, ones, starts, pairs))
BAD(both_away, "UNISONO_IN_PLACE where MPI does not allow it",
    unisono_alltoallw(comm, FROM, bad ? UNISONO_IN_PLACE : there, ones, starts, pairs))
BAD(overlap, "blocks 1 and 2 overlap",
    unisono_alltoallw(comm, FROM, there, ones, bad ? mixed : starts, densest))
BAD(far_block, "bytes is 18446744073709551615, must be at most 9223372036854775807",
    unisono_alltoallw(comm, here, ones, bad ? away : starts, pairs, TO))
BAD(many_elements, "bytes is 18446744073709551615, must be at most 9223372036854775807",
    unisono_alltoallw(comm, here, bad ? many : ones, starts, pairs, TO))
BAD(huge_elements, "bytes is 9223372036854775811, must be at most 9223372036854775807",
    unisono_alltoallw(comm, here, ones, starts, bad ? hugest : pairs, TO))
BAD(own_length, "bytes is 2, must be 4", unisono_alltoallw(comm, FROM, there, bad ? twos : ones, starts, pairs))
BAD(bcast_type, "datatype is null", unisono_bcast_typed(comm, here, 1, bad ? NULL : pair, 0))
BAD(bcast_away, "UNISONO_IN_PLACE where MPI does not allow it",
    unisono_bcast_typed(comm, bad ? UNISONO_IN_PLACE : here, 1, pair, 0))
BAD(gather_count, "bytes is 18446744073709551615, must be at most 9223372036854775807",
    unisono_gather_typed(comm, here, 1, pair, there, bad ? UINT64_MAX / 2 : 1, pair, ranks - 1))
BAD(scatter_root, "root is 4, must be below 4", unisono_scatter_typed(comm, here, 1, pair, there, 1, pair, bad ? 4 : 0))
BAD(allgather_own, "bytes is 4, must be 2", unisono_allgather_typed(comm, here, bad ? 2 : 1, pair, there, 1, pair))
BAD(alltoall_type, "datatype is 12, must be a multiple of 8",
    unisono_alltoall_typed(comm, here, 1, bad ? (unisono_type *)12 : pair, there, 1, pair))

/* Packed bytes that differ between ranks: one rank finds it, and all get an error. */
static void mismatch(unisono_comm *comm, uint32_t rank, uint32_t ranks) {
    uint64_t counts[3] = {1, 1, 1};
    if (rank == 1) counts[0] = 2;
    CHECK(ranks == 3);
    int code = unisono_alltoallw(comm, here, counts, starts, pairs, TO);
    CHECK(code == UNISONO_ERR_MISMATCH || code == UNISONO_ERR_PEER || code == UNISONO_OK);
    CHECK(unisono_barrier(comm) == UNISONO_ERR_PEER);
    SAYS("bytes is ");
}

int main(void) {
    alarm(240); /* a test that hangs fails */
    refused_types();
    for (uint32_t ranks = 1; ranks <= RANKS_MOST; ranks++) processes(ranks, moves), processes(ranks, nothing);
    CHECK(unisono_type_vector(2, 1, 3, &pair) == UNISONO_OK);
    CHECK(unisono_type_contiguous(PTRDIFF_MAX, &huge) == UNISONO_OK);
    CHECK(unisono_type_contiguous(2, &dense) == UNISONO_OK);
    for (int r = 0; r < 4; r++) {
        pairs[r] = pair, densest[r] = dense;
        gap[r] = r == 2 ? NULL : pair, hugest[r] = r == 1 ? huge : pair;
    }
    member_function *bad[] = {null_types, null_counts,   null_starts,   null_type,  null_memory, both_away,
                              overlap,    far_block,     many_elements, own_length, bcast_type,  bcast_away,
                              gather_count, scatter_root, allgather_own, alltoall_type, huge_elements};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) processes(4, bad[i]);
    processes(3, mismatch);
    CHECK(unisono_type_free(pair) == UNISONO_OK && unisono_type_free(huge) == UNISONO_OK);
    CHECK(unisono_type_free(dense) == UNISONO_OK);
    puts("all well");
    return 0;
}
