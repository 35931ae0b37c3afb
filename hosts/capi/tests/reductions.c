/* Reductions from C. Built and run by c.rs. */
#include "members.h"

enum { RANKS_MOST = 5, COUNT_MOST = 20000 };

/* A rank's element i, and the sum of element i over ranks 0 .. last, by a loop. */
static int64_t element(uint64_t i, uint32_t rank) { return (int64_t)(i * 3 + rank * rank + 1); }
static int64_t sum(uint64_t i, int64_t last) {
    int64_t all = 0;
    for (int64_t r = 0; r <= last; r++) all += element(i, (uint32_t)r);
    return all;
}

static int64_t send[RANKS_MOST * COUNT_MOST], receive[RANKS_MOST * COUNT_MOST + 1];
enum { JUNK = -77 };

/* Fills `send`, or `receive` if in place, and returns the send argument. */
static const void *operands(uint64_t count, uint32_t rank, int in_place) {
    for (uint64_t i = 0; i <= count; i++) receive[i] = JUNK;
    for (uint64_t i = 0; i < count; i++) (in_place ? receive : send)[i] = element(i, rank);
    return in_place ? UNISONO_IN_PLACE : send;
}

static void sums(unisono_comm *c, uint32_t rank, uint32_t ranks, uint64_t n, int in_place) {
    for (uint32_t root = 0; root < ranks; root++) {
        int here = rank == root;
        const void *from = operands(n, rank, here && in_place);
        CHECK(unisono_reduce(c, from, here ? receive : NULL, n, UNISONO_I64, UNISONO_SUM, root) == UNISONO_OK);
        for (uint64_t i = 0; i < n; i++) CHECK(receive[i] == (here ? sum(i, ranks - 1) : JUNK));
    }
    CHECK(unisono_allreduce(c, operands(n, rank, in_place), receive, n, UNISONO_I64, UNISONO_SUM) == UNISONO_OK);
    for (uint64_t i = 0; i < n; i++) CHECK(receive[i] == sum(i, ranks - 1));
    CHECK(receive[n] == JUNK);
    CHECK(unisono_scan(c, operands(n, rank, in_place), receive, n, UNISONO_I64, UNISONO_SUM) == UNISONO_OK);
    for (uint64_t i = 0; i < n; i++) CHECK(receive[i] == sum(i, rank));
    CHECK(receive[n] == JUNK);
    CHECK(unisono_exscan(c, operands(n, rank, in_place), receive, n, UNISONO_I64, UNISONO_SUM) == UNISONO_OK);
    for (uint64_t i = 0; i < n; i++)
        CHECK(receive[i] == (rank ? sum(i, (int64_t)rank - 1) : in_place ? element(i, 0) : JUNK));

    const void *from = operands(ranks * n, rank, in_place);
    CHECK(unisono_reduce_scatter_block(c, from, receive, n, UNISONO_I64, UNISONO_SUM) == UNISONO_OK);
    for (uint64_t i = 0; i < n; i++) CHECK(receive[i] == sum(rank * n + i, ranks - 1));
    CHECK(in_place || receive[n] == JUNK);

    /* Blocks of n elements for even ranks, of n / 3 for rank 1, and of no elements for rank 3. */
    uint64_t counts[RANKS_MOST], all = 0, before = 0;
    for (uint32_t r = 0; r < ranks; r++) counts[r] = r == 3 ? 0 : r % 2 ? n / 3 : n, all += counts[r];
    for (uint32_t r = 0; r < rank; r++) before += counts[r];
    from = operands(all, rank, in_place);
    CHECK(unisono_reduce_scatter(c, from, receive, counts, UNISONO_I64, UNISONO_SUM) == UNISONO_OK);
    for (uint64_t i = 0; i < counts[rank]; i++) CHECK(receive[i] == sum(before + i, ranks - 1));
    CHECK(in_place || receive[counts[rank]] == JUNK);
}

/* Affine maps x -> a x + b, folded by composition: associative, not commutative. Modulo 2^32. */
struct map {
    uint32_t a, b, unused;
};
static void compose(const void *left, void *right, uint64_t count, void *context) {
    const struct map *l = left;
    struct map *r = right;
    for (uint64_t i = 0; i < count; i++) r[i].b = l[i].b * r[i].a + r[i].b, r[i].a *= l[i].a;
    ++*(int *)context;
}
static struct map map(uint64_t i, uint32_t rank) { return (struct map){2 * (uint32_t)i + rank + 3, rank + 7, 9}; }
static int is_composed(struct map found, uint64_t i, int64_t last) {
    struct map all = map(i, 0);
    int calls = 0;
    for (int64_t r = 1; r <= last; r++) {
        struct map next = map(i, (uint32_t)r);
        compose(&all, &next, 1, &calls);
        all = next;
    }
    return found.a == all.a && found.b == all.b;
}

static void maps(unisono_comm *c, uint32_t rank, uint32_t ranks, uint64_t n) {
    static struct map from[RANKS_MOST * COUNT_MOST], to[COUNT_MOST];
    int calls = 0, type = UNISONO_OPAQUE(sizeof *from);
    const unisono_op op = {compose, &calls, 0};
    for (uint64_t i = 0; i < ranks * n; i++) from[i] = map(i, rank);
    CHECK(unisono_reduce(c, from, to, n, type, &op, ranks - 1) == UNISONO_OK);
    for (uint64_t i = 0; rank == ranks - 1 && i < n; i++) CHECK(is_composed(to[i], i, ranks - 1));
    CHECK(unisono_allreduce(c, from, to, n, type, &op) == UNISONO_OK);
    for (uint64_t i = 0; i < n; i++) CHECK(is_composed(to[i], i, ranks - 1));
    CHECK(unisono_scan(c, from, to, n, type, &op) == UNISONO_OK);
    for (uint64_t i = 0; i < n; i++) CHECK(is_composed(to[i], i, rank));
    CHECK(unisono_exscan(c, from, to, n, type, &op) == UNISONO_OK);
    for (uint64_t i = 0; rank && i < n; i++) CHECK(is_composed(to[i], i, (int64_t)rank - 1));
    CHECK(unisono_reduce_scatter_block(c, from, to, n, type, &op) == UNISONO_OK);
    for (uint64_t i = 0; i < n; i++) CHECK(is_composed(to[i], rank * n + i, ranks - 1));
    CHECK(ranks == 1 || n == 0 || calls > 0);
}

/* One fold of each operation, on one type each. */
static void operations(unisono_comm *c, uint32_t rank, uint32_t ranks) {
#define FOLD(ctype, type, op, mine, expected)                                                 \
    do {                                                                                            \
        ctype x = (ctype)(mine), y = 0;                                                             \
        CHECK(unisono_allreduce(c, &x, &y, 1, type, op) == UNISONO_OK);                             \
        CHECK(y == (ctype)(expected));                                                              \
    } while (0)
    uint32_t product = 1, bits = (1u << ranks) - 1;
    for (uint32_t r = 0; r < ranks; r++) product *= r + 1;
    FOLD(float, UNISONO_F32, UNISONO_SUM, rank + 0.5f, ranks * (ranks - 1) / 2.0f + ranks * 0.5f);
    FOLD(uint16_t, UNISONO_U16, UNISONO_PROD, rank + 1, product);
    FOLD(int8_t, UNISONO_I8, UNISONO_MIN, -(int)rank, -(int)(ranks - 1));
    FOLD(uint64_t, UNISONO_U64, UNISONO_MAX, (uint64_t)rank << 60, (uint64_t)(ranks - 1) << 60);
    FOLD(_Bool, UNISONO_BOOL, UNISONO_LAND, rank != 0, 0);
    FOLD(int32_t, UNISONO_I32, UNISONO_LOR, rank * 5, ranks > 1);
    FOLD(uint8_t, UNISONO_U8, UNISONO_LXOR, 4, ranks == 1 ? 4 : ranks % 2); /* one operand: unchanged */
    FOLD(uint32_t, UNISONO_U32, UNISONO_BAND, ~(1u << rank), ~bits);
    FOLD(uint32_t, UNISONO_U32, UNISONO_BOR, 1u << rank, bits);
    FOLD(int16_t, UNISONO_I16, UNISONO_BXOR, 1 << rank, bits);
    FOLD(double, UNISONO_F64, UNISONO_MAX, -1.0 - rank, -1.0);

    struct pair {
        double value;
        int32_t index;
    } x = {rank / 2, (int32_t)rank}, y;
    CHECK(unisono_allreduce(c, &x, &y, 1, UNISONO_DOUBLE_INT, UNISONO_MAXLOC) == UNISONO_OK);
    CHECK(y.value == (ranks - 1) / 2 && y.index == (int32_t)((ranks - 1) / 2 * 2));
    CHECK(unisono_allreduce(c, &x, &y, 1, UNISONO_DOUBLE_INT, UNISONO_MINLOC) == UNISONO_OK);
    CHECK(y.value == 0 && y.index == 0);
}

static void reductions(unisono_comm *comm, uint32_t rank, uint32_t ranks) {
    const uint64_t counts[] = {1, 0, 6, 7, 129, COUNT_MOST};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        sums(comm, rank, ranks, counts[i], 0);
        sums(comm, rank, ranks, counts[i], 1);
        maps(comm, rank, ranks, counts[i]);
    }
    operations(comm, rank, ranks);
}

/* Wrong arguments, only on the last of four ranks. */
static int64_t here[8], there[8];
static uint64_t ones[4] = {1, 1, 1, 1}, many[4] = {1, UINT64_MAX, 1, 1};
static int calls;
static const unisono_op user = {compose, &calls, 1}, null = {NULL, &calls, 1};
#define BAD(name, words, call)                                                                      \
    static void name(unisono_comm *comm, uint32_t rank, uint32_t ranks) {                           \
        int bad = rank == ranks - 1;                                                                \
        refused(comm, rank, ranks, call, words);                                                    \
    }
#define SUM UNISONO_I64, UNISONO_SUM

BAD(root, "root is 4, must be below 4", unisono_reduce(comm, here, there, 1, SUM, bad ? 4 : 0))
BAD(no_result, "buffer address is null", unisono_reduce(comm, here, bad ? NULL : there, 1, SUM, ranks - 1))
BAD(away, "UNISONO_IN_PLACE where MPI does not allow it",
    unisono_reduce(comm, bad ? UNISONO_IN_PLACE : here, there, 1, SUM, 0))
BAD(both_away, "UNISONO_IN_PLACE where MPI does not allow it",
    unisono_scan(comm, UNISONO_IN_PLACE, bad ? UNISONO_IN_PLACE : there, 1, SUM))
BAD(no_op, "operation is null",
    unisono_exscan(comm, here, there, 1, UNISONO_I64, bad ? NULL : UNISONO_SUM))
BAD(unknown_op, "operation is 13, must be at most 12",
    unisono_scan(comm, here, there, 1, UNISONO_I64, bad ? (const unisono_op *)13 : UNISONO_SUM))
BAD(undefined_op, "datatype is 5, must be at least 14",
    unisono_scan(comm, here, there, 1, UNISONO_I64, bad ? UNISONO_MINLOC : UNISONO_SUM))
BAD(opaque_sum, "datatype is 4294967288, must be at most 19",
    unisono_allreduce(comm, here, there, 1, bad ? UNISONO_OPAQUE(8) : UNISONO_I64, UNISONO_SUM))
BAD(no_function, "function of the operation is null",
    unisono_reduce_scatter_block(comm, here, there, 1, UNISONO_I64, bad ? &null : &user))
BAD(no_element, "datatype is 0, must be at least 1",
    unisono_reduce_scatter(comm, here, there, ones, bad ? UNISONO_OPAQUE(0) : UNISONO_I64, &user))
BAD(large_element, "extent is 4097, must be at most 4096",
    unisono_allreduce(comm, here, there, 0, bad ? UNISONO_OPAQUE(4097) : UNISONO_I64, &user))
BAD(no_counts, "datatypes is null", unisono_reduce_scatter(comm, here, there, bad ? NULL : ones, SUM))
BAD(overflow, "count is 18446744073709551615, must be at most 18446744073709551614",
    unisono_reduce_scatter(comm, here, there, bad ? many : ones, SUM))
BAD(long_block, "bytes is 18446744073709551615",
    unisono_reduce_scatter_block(comm, here, there, bad ? UINT64_MAX / 8 : 1, SUM))

int main(void) {
    alarm(240); /* a test that hangs fails */
    for (uint32_t ranks = 1; ranks <= RANKS_MOST; ranks++) processes(ranks, reductions);
    member_function *bad[] = {root,         no_result,  away,        both_away,  no_op,         unknown_op, long_block,
                              undefined_op, opaque_sum, no_function, no_element, large_element, no_counts,  overflow};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) processes(4, bad[i]);
    puts("all well");
    return 0;
}
