/* Reductions: every predefined operation on the types for which it is defined, and the user's operations. */
#include "values.h"
#include "waited.h"

#include <complex.h>
#include <stddef.h>
#include <stdint.h>

/* Without long ones in place: see values.c. */
static bool underlying;

enum op { SUM, PROD, MIN, MAX, LAND, LOR, LXOR, BAND, BOR, BXOR, OPS };
static const char *const op_names[OPS] = {"sum", "prod", "min", "max", "land", "lor", "lxor", "band", "bor", "bxor"};
static MPI_Op op_of(enum op op) {
    MPI_Op all[OPS] = {MPI_SUM,  MPI_PROD, MPI_MIN,  MPI_MAX, MPI_LAND,
                       MPI_LOR,  MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR};
    return all[op];
}

/* A type, with functions that make a rank's elements, fold elements, and compare them. */
struct type {
    const char *name;
    MPI_Datatype type;
    size_t size;
    void (*make)(void *to, int n, int rank);
    void (*fold)(enum op op, void *onto, const void *of, int n);
    bool (*same)(const void *a, const void *b, int n);
    bool ops[OPS];
};

#define INTEGER {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
#define FLOATING {1, 1, 1, 1, 0, 0, 0, 0, 0, 0}
#define LOGICAL {0, 0, 0, 0, 1, 1, 1, 0, 0, 0}
#define COMPLEX {1, 1, 0, 0, 0, 0, 0, 0, 0, 0}
#define BITS {0, 0, 0, 0, 0, 0, 0, 1, 1, 1}

/* Small numbers, zero among them, so that sums and products are exact. */
static int value(int rank, int i) { return (rank * 7 + i * 3 + 2) % 5; }

#define MAKE_AND_SAME(T) \
    static void make_##T(void *to, int n, int rank) { for (int i = 0; i < n; i++) ((T *)to)[i] = (T)value(rank, i); } \
    static bool same_##T(const void *a, const void *b, int n) { \
        for (int i = 0; i < n; i++) if (((const T *)a)[i] != ((const T *)b)[i]) return false; \
        return true; \
    }
#define CASE(OP, RESULT) case OP: for (int i = 0; i < n; i++) { a[i] = RESULT; } return;
#define FOLD(T, CASES) \
    static void fold_##T(enum op op, void *onto, const void *of, int n) { \
        T *a = onto; const T *b = of; \
        switch (op) { CASES default: return; } \
    }
#define ARITHMETIC(T) CASE(SUM, (T)(a[i] + b[i])) CASE(PROD, (T)(a[i] * b[i]))
#define ORDERED(T) CASE(MIN, b[i] < a[i] ? b[i] : a[i]) CASE(MAX, b[i] > a[i] ? b[i] : a[i])
#define LOGIC(T) CASE(LAND, (T)(a[i] && b[i])) CASE(LOR, (T)(a[i] || b[i])) CASE(LXOR, (T)(!a[i] != !b[i]))
#define BITWISE(T) CASE(BAND, (T)(a[i] & b[i])) CASE(BOR, (T)(a[i] | b[i])) CASE(BXOR, (T)(a[i] ^ b[i]))

typedef float complex float_complex;
typedef double complex double_complex;
typedef long double long_double;

#define INTEGERS(X) \
    X(int8_t, MPI_INT8_T) X(uint8_t, MPI_UINT8_T) X(int16_t, MPI_INT16_T) X(uint16_t, MPI_UINT16_T) \
    X(int32_t, MPI_INT32_T) X(uint32_t, MPI_UINT32_T) X(int64_t, MPI_INT64_T) X(uint64_t, MPI_UINT64_T)
#define FLOATS(X) X(float, MPI_FLOAT) X(double, MPI_DOUBLE) X(long_double, MPI_LONG_DOUBLE)
#define COMPLEXES(X) X(float_complex, MPI_C_FLOAT_COMPLEX) X(double_complex, MPI_C_DOUBLE_COMPLEX)

#define INTEGER_TYPE(T, M) MAKE_AND_SAME(T) FOLD(T, ARITHMETIC(T) ORDERED(T) LOGIC(T) BITWISE(T))
#define FLOAT_TYPE(T, M) MAKE_AND_SAME(T) FOLD(T, ARITHMETIC(T) ORDERED(T))
#define COMPLEX_TYPE(T, M) MAKE_AND_SAME(T) FOLD(T, ARITHMETIC(T))
INTEGERS(INTEGER_TYPE)
FLOATS(FLOAT_TYPE)
COMPLEXES(COMPLEX_TYPE)
typedef _Bool boolean;
MAKE_AND_SAME(boolean)
FOLD(boolean, LOGIC(boolean))

/* Pairs: of equal values the smaller index wins. */
struct float_int { float value; int index; };
struct double_int { double value; int index; };
struct long_int { long value; int index; };
struct short_int { short value; int index; };
struct two_int { int value, index; };
struct long_double_int { long double value; int index; };
#define PAIRS(X) \
    X(float_int, MPI_FLOAT_INT) X(double_int, MPI_DOUBLE_INT) X(long_int, MPI_LONG_INT) \
    X(short_int, MPI_SHORT_INT) X(two_int, MPI_2INT) X(long_double_int, MPI_LONG_DOUBLE_INT)
#define PAIR_TYPE(T, M) \
    static void make_##T(void *to, int n, int rank) { \
        struct T *pairs = to; \
        memset(to, 0, (size_t)n * sizeof *pairs); \
        for (int i = 0; i < n; i++) pairs[i].value = value(rank, i) % 3, pairs[i].index = (rank * 5 + i) % 11; \
    } \
    static bool same_##T(const void *a, const void *b, int n) { \
        const struct T *x = a, *y = b; \
        for (int i = 0; i < n; i++) if (x[i].value != y[i].value || x[i].index != y[i].index) return false; \
        return true; \
    } \
    static void fold_##T(enum op op, void *onto, const void *of, int n) { \
        struct T *a = onto; const struct T *b = of; \
        for (int i = 0; i < n; i++) { \
            bool better = op == MIN ? b[i].value < a[i].value : b[i].value > a[i].value; \
            if (better || (b[i].value == a[i].value && b[i].index < a[i].index)) a[i] = b[i]; \
        } \
    }
PAIRS(PAIR_TYPE)

enum form { REDUCE, ALLREDUCE, SCAN, EXSCAN, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, FORMS };
static const char *const form_names[FORMS] = {"reduce", "allreduce",      "scan",
                                              "exscan", "reduce_scatter", "reduce_scatter_block"};

/* A call under test. */
struct scene {
    const struct group *group;
    const struct type *type;
    const char *op_name;
    MPI_Op op;
    int count, root; /* elements: of a block, where there are blocks */
    enum form form;
    bool in_place;
};

static bool by_blocks(const struct scene *s) { return s->form == REDUCE_SCATTER || s->form == REDUCE_SCATTER_BLOCK; }

/* The elements of a rank's block: some have none. */
static int block(const struct scene *s, int rank) {
    return s->form == REDUCE_SCATTER ? s->count * (rank % 3) / 2 : s->count;
}

static int blocks_before(const struct scene *s, int rank) {
    int sum = 0;
    for (int r = 0; r < rank; r++) sum += block(s, r);
    return sum;
}

static int operands(const struct scene *s) { return by_blocks(s) ? blocks_before(s, s->group->size) : s->count; }

/* The elements of this rank's result. Rank 0's of an exscan is undefined. */
static int results(const struct scene *s) {
    int me = s->group->rank;
    if (by_blocks(s)) return block(s, me);
    return (s->form == REDUCE && me != s->root) || (s->form == EXSCAN && me == 0) ? 0 : s->count;
}

static void expect_same(const struct scene *s, const void *result, const void *wanted, int n, const char *what) {
    expect(s->type->same(result, wanted, n), "%s of %s: %s, %d elements on %s, root %d, in place %d", form_names[s->form],
           s->type->name, what ? what : s->op_name, s->count, s->group->name, s->root, s->in_place);
}

static int perform(const struct scene *s, void *from, void *to) {
    int counts[RANKS_MOST], n = s->count;
    MPI_Datatype type = s->type->type;
    MPI_Comm comm = s->group->comm;
    for (int r = 0; r < s->group->size; r++) counts[r] = block(s, r);
#if MPI_VERSION >= 4
    MPI_Count large[RANKS_MOST];
    for (int r = 0; r < s->group->size; r++) large[r] = counts[r];
    switch (n % 2 ? s->form : FORMS) {
    case REDUCE: return MPI_Reduce_c(from, to, n, type, s->op, s->root, comm);
    case ALLREDUCE: return MPI_Allreduce_c(from, to, n, type, s->op, comm);
    case SCAN: return MPI_Scan_c(from, to, n, type, s->op, comm);
    case EXSCAN: return MPI_Exscan_c(from, to, n, type, s->op, comm);
    case REDUCE_SCATTER: return MPI_Reduce_scatter_c(from, to, large, type, s->op, comm);
    case REDUCE_SCATTER_BLOCK: return MPI_Reduce_scatter_block_c(from, to, n, type, s->op, comm);
    default: break;
    }
#endif
    switch (s->form) {
    case REDUCE: return MPI_Reduce(from, to, n, type, s->op, s->root, comm);
    case ALLREDUCE: return MPI_Allreduce(from, to, n, type, s->op, comm);
    case SCAN: return MPI_Scan(from, to, n, type, s->op, comm);
    case EXSCAN: return MPI_Exscan(from, to, n, type, s->op, comm);
    case REDUCE_SCATTER: return MPI_Reduce_scatter(from, to, counts, type, s->op, comm);
    default: return MPI_Reduce_scatter_block(from, to, n, type, s->op, comm);
    }
}

/* One call; `wanted` is the expected result. */
static void call(const struct scene *s, const void *wanted) {
    enum { BEHIND = 16 };
    int n = operands(s);
    bool receives = s->form != REDUCE || s->group->rank == s->root, in_place = s->in_place && receives;
    size_t bytes = (size_t)n * s->type->size, room = in_place || s->form == EXSCAN ? bytes : (size_t)results(s) * s->type->size;
    unsigned char *send = allocate(bytes), *before = allocate(bytes), *receive = allocate(room + BEHIND);
    s->type->make(send, n, s->group->rank);
    memcpy(before, send, bytes);
    memset(receive, 0x5a, room + BEHIND);
    if (in_place) memcpy(receive, send, bytes);
    int code = perform(s, in_place ? MPI_IN_PLACE : send, receives ? receive : NULL);
    expect(code == MPI_SUCCESS, "%s of %s: error %d", form_names[s->form], s->type->name, code);
    expect_same(s, receive, wanted, results(s), NULL);
    bool tail = true;
    for (size_t i = room; i < room + BEHIND; i++) tail &= receive[i] == 0x5a;
    expect(tail, "%s of %s: written after its end", form_names[s->form], s->type->name);
    expect_same(s, send, before, n, "the sent data");
    free(send), free(before), free(receive);
}

/* May the call go to the underlying MPI, also with a preload? Complex and extended numbers do, over nodes also the user's
 * operations. */
static bool goes_to_underlying(const struct type *type) {
    return underlying || !type->fold || type->fold == fold_float_complex || type->size > 8;
}

/* Is MPICH 4.0's own MPI_Reduce wrong? So it is beyond 2 KiB where nodes have different numbers of the group's ranks. */
static bool uneven;
static bool is_wrong(const struct scene *s) {
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 50000000
    return uneven && s->form == REDUCE && s->count * s->type->size > 2048 && goes_to_underlying(s->type);
#else
    (void)s;
    return false;
#endif
}

static bool is_uneven(const struct group *group) {
    MPI_Comm node;
    int here, least_most[2];
    MPI_Comm_split_type(group->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &here);
    MPI_Comm_free(&node);
    MPI_Allreduce((int[]){-here, here}, least_most, 2, MPI_INT, MPI_MAX, group->comm);
    return -least_most[0] != least_most[1];
}

typedef void folding(const struct scene *s, void *onto, const void *of, int n);

static void forms(struct scene scene, folding *fold) {
    int me = scene.group->rank, size = scene.group->size;
    for (scene.form = 0; scene.form < FORMS; scene.form++) {
        int n = operands(&scene), ranks = scene.form == SCAN ? me + 1 : scene.form == EXSCAN ? me : size;
        unsigned char *wanted = allocate((size_t)n * scene.type->size), *next = allocate((size_t)n * scene.type->size);
        scene.type->make(wanted, n, 0);
        for (int r = 1; r < ranks; r++) {
            scene.type->make(next, n, r);
            fold(&scene, wanted, next, n);
        }
        unsigned char *own = wanted + (by_blocks(&scene) ? (size_t)blocks_before(&scene, me) * scene.type->size : 0);
        for (int in_place = 0; in_place < 2; in_place++) {
            scene.in_place = in_place, scene.root = 0;
            bool crashes = scene.form == REDUCE_SCATTER && in_place && scene.count > 1025 && goes_to_underlying(scene.type);
            if (scene.form != REDUCE && !crashes) call(&scene, own);
            for (; scene.form == REDUCE && !is_wrong(&scene) && scene.root < size; scene.root++)
                if (scene.count * scene.type->size < 1000 ||
                    (scene.root == size - 1 && !(in_place && goes_to_underlying(scene.type))))
                    call(&scene, own);
        }
        free(wanted), free(next);
    }
}

static enum op folded;
static void fold_predefined(const struct scene *s, void *onto, const void *of, int n) {
    s->type->fold(folded, onto, of, n);
}

static void lengths(struct scene scene, int most, folding *fold) {
    static const int counts[] = {0, 1, 7, 1025, 100000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        scene.count = counts[i];
        if (counts[i] <= most) forms(scene, fold);
    }
}

/* The user's operations. They find the types' elements with their holes, and may ask the MPI about the type. What lies outside
 * an element's `bytes` from `from` on is none of theirs: the MPIs have no memory there. */
enum { PRIME = 10007, LONG_INTS = 1024 };
static size_t extent_of(MPI_Datatype type) {
    MPI_Aint lower, extent;
    MPI_Type_get_extent(type, &lower, &extent);
    return (size_t)extent;
}
#define USER_WITHIN(NAME, T, from, bytes) \
    static void user_##NAME(void *left, void *both, int *n, MPI_Datatype *type) { \
        expect(extent_of(*type) == sizeof(T), "a type with an extent of %zu bytes, not %zu", extent_of(*type), sizeof(T)); \
        for (int i = 0; i < *n; i++) { \
            T result = NAME((T *)left + i, (T *)both + i); \
            memcpy((char *)both + i * sizeof(T) + (from), (char *)&result + (from), bytes); \
        } \
    } \
    static void fold_##NAME(const struct scene *s, void *onto, const void *of, int n) { \
        (void)s; \
        for (int i = 0; i < n; i++) ((T *)onto)[i] = NAME((T *)onto + i, (const T *)of + i); \
    }
#define USER(NAME, T) USER_WITHIN(NAME, T, 0, sizeof(T))

/* Matrices modulo a prime: products depend on the order of ranks. Spread ones have holes, one of them first. */
struct matrix { int at[2][2]; };
struct spread { int hole, a, hole_too, b, c, d, last; };
static struct matrix product(const struct matrix *a, const struct matrix *b) {
    struct matrix c;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) c.at[i][j] = (a->at[i][0] * b->at[0][j] + a->at[i][1] * b->at[1][j]) % PRIME;
    return c;
}
static struct matrix sum(const struct matrix *a, const struct matrix *b) {
    struct matrix c;
    for (int i = 0; i < 4; i++) c.at[i / 2][i % 2] = (a->at[i / 2][i % 2] + b->at[i / 2][i % 2]) % PRIME;
    return c;
}
static struct matrix gathered(const struct spread *from) { return (struct matrix){{{from->a, from->b}, {from->c, from->d}}}; }
static struct spread scattered(struct matrix m) {
    return (struct spread){-1, m.at[0][0], -2, m.at[0][1], m.at[1][0], m.at[1][1], -3};
}
static struct spread spread_sum(const struct spread *a, const struct spread *b) {
    struct matrix x = gathered(a), y = gathered(b);
    return scattered(sum(&x, &y));
}
USER(product, struct matrix)
USER(sum, struct matrix)
USER_WITHIN(spread_sum, struct spread, offsetof(struct spread, a), 5 * sizeof(int))
static void make_matrix(void *to, int n, int rank) {
    for (int i = 0; i < n; i++)
        ((struct matrix *)to)[i] = (struct matrix){{{rank + 1, i % 17 + 1}, {rank * 3 + i % 5, 2}}};
}
static bool same_matrix(const void *a, const void *b, int n) { return !memcmp(a, b, (size_t)n * sizeof(struct matrix)); }
static void make_spread(void *to, int n, int rank) {
    struct matrix one;
    for (int i = 0; i < n; i++) {
        make_matrix(&one, 1, rank + i % 5);
        ((struct spread *)to)[i] = scattered(one);
    }
}
static bool same_spread(const void *a, const void *b, int n) {
    for (int i = 0; i < n; i++) {
        struct matrix x = gathered((const struct spread *)a + i), y = gathered((const struct spread *)b + i);
        if (!same_matrix(&x, &y, 1)) return false;
    }
    return true;
}

/* On a predefined type: the first number that is not 0. */
static int32_t first(const int32_t *a, const int32_t *b) { return *a ? *a : *b; }
USER(first, int32_t)

/* A mean's sum and number, with a hole at the end; the MPI's pairs are such, too. */
static struct double_int mean(const struct double_int *a, const struct double_int *b) {
    return (struct double_int){a->value + b->value, a->index + b->index};
}
USER_WITHIN(mean, struct double_int, 0, sizeof(double) + sizeof(int))

/* The longest elements that are taken over, and longer ones, which go to the MPI. */
struct longest { int at[LONG_INTS]; };
struct longer { int at[LONG_INTS + 1]; };
#define LONG(T) \
    static struct T sum_##T(const struct T *a, const struct T *b) { \
        struct T c; \
        for (size_t i = 0; i < sizeof c / sizeof(int); i++) c.at[i] = a->at[i] + b->at[i]; \
        return c; \
    } \
    USER(sum_##T, struct T) \
    static void make_##T(void *to, int n, int rank) { make_int32_t(to, (int)(n * sizeof(struct T) / sizeof(int)), rank); } \
    static bool same_##T(const void *a, const void *b, int n) { return !memcmp(a, b, (size_t)n * sizeof(struct T)); }
LONG(longest)
LONG(longer)

/* Ranks whose types have equal signatures and different layouts: one has elements that begin before their address. */
#define AT_B(address) ((struct spread *)((char *)(address) - offsetof(struct spread, b)))
static void user_mixed(void *left, void *both, int *n, MPI_Datatype *type) {
    if (extent_of(*type) == sizeof(struct matrix)) user_product(left, both, n, type);
    for (int i = 0; extent_of(*type) == sizeof(struct spread) && i < *n; i++) {
        struct spread *from = AT_B(left) + i, *to = AT_B(both) + i;
        struct matrix x = gathered(from), y = gathered(to), z = product(&x, &y);
        to->a = z.at[0][0], to->b = z.at[0][1], to->c = z.at[1][0], to->d = z.at[1][1];
    }
}
static void mixed(const struct group *group, MPI_Datatype matrix, int n) {
    size_t bytes = (size_t)n * sizeof(struct matrix), spread_bytes = (size_t)n * sizeof(struct spread);
    struct matrix *dense = allocate(bytes), *wanted = allocate(bytes), *result = allocate(bytes);
    struct spread *send = allocate(spread_bytes), *receive = allocate(spread_bytes);
    bool spreads = group->rank % 2;
    int places[] = {-2, 0, 1, 2};
    MPI_Datatype bare, spread;
    MPI_Op op;
    MPI_Type_create_indexed_block(4, 1, places, MPI_INT, &bare);
    MPI_Type_create_resized(bare, -(MPI_Aint)offsetof(struct spread, b), sizeof(struct spread), &spread);
    MPI_Type_commit(&spread);
    MPI_Op_create(user_mixed, 0, &op);
    make_matrix(wanted, n, 0);
    for (int r = 1; r < group->size; r++) {
        make_matrix(dense, n, r);
        fold_product(NULL, wanted, dense, n);
    }
    make_matrix(dense, n, group->rank);
    for (int i = 0; i < n; i++) send[i] = scattered(dense[i]);
    if (spreads) MPI_Allreduce(&send->b, &receive->b, n, spread, op, group->comm);
    else MPI_Allreduce(dense, result, n, matrix, op, group->comm);
    for (int i = 0; spreads && i < n; i++) result[i] = gathered(receive + i);
    expect(same_matrix(result, wanted, n), "allreduce of %d elements in different layouts on %s", n, group->name);
    MPI_Op_free(&op);
    MPI_Type_free(&bare);
    MPI_Type_free(&spread);
    free(dense), free(wanted), free(result), free(send), free(receive);
}

static void user(const struct group *group, struct type type, const char *name, MPI_User_function *function, bool commutes,
                 folding *fold, int most) {
    MPI_Op op;
    MPI_Op_create(function, commutes, &op);
    lengths((struct scene){.group = group, .type = &type, .op_name = name, .op = op}, most, fold);
    MPI_Op_free(&op);
}

static void users(const struct group *group, int most) {
    struct type matrix = {.name = "matrix", .size = sizeof(struct matrix), .make = make_matrix, .same = same_matrix};
    struct type spread = {.name = "spread", .size = sizeof(struct spread), .make = make_spread, .same = same_spread};
    struct type longest = {.name = "longest", .size = sizeof(struct longest), .make = make_longest, .same = same_longest};
    struct type longer = {.name = "longer", .size = sizeof(struct longer), .make = make_longer, .same = same_longer};
    struct type number = {"int32_t", MPI_INT32_T, sizeof(int32_t), make_int32_t, .same = same_int32_t};
    struct type pair = {"double_int", MPI_DOUBLE_INT, sizeof(struct double_int), make_double_int, .same = same_double_int};
    struct type *made[] = {&matrix, &spread, &longest, &longer};
    MPI_Datatype bare;
    int places[] = {1, 3, 4, 5};
    MPI_Type_contiguous(4, MPI_INT, &matrix.type);
    MPI_Type_create_indexed_block(4, 1, places, MPI_INT, &bare);
    MPI_Type_create_resized(bare, 0, sizeof(struct spread), &spread.type);
    MPI_Type_free(&bare);
    MPI_Type_contiguous(LONG_INTS, MPI_INT, &longest.type);
    MPI_Type_contiguous(LONG_INTS + 1, MPI_INT, &longer.type);
    for (size_t t = 0; t < sizeof made / sizeof *made; t++) MPI_Type_commit(&made[t]->type);
    user(group, matrix, "product", user_product, false, fold_product, most);
    user(group, matrix, "user sum", user_sum, true, fold_sum, most);
    /* With a product MPICH 4.0's MPI_Reduce_scatter_block reads and writes beyond its own memory, since there are holes. */
    user(group, spread, "user sum", user_spread_sum, true, fold_spread_sum, most);
    user(group, number, "first", user_first, false, fold_first, most);
    user(group, pair, "mean", user_mean, true, fold_mean, most);
    user(group, longest, "user sum", user_sum_longest, true, fold_sum_longest, most < 7 ? most : 7);
    user(group, longer, "user sum", user_sum_longer, true, fold_sum_longer, most < 7 ? most : 7);
    if (!underlying) mixed(group, matrix.type, most);
    for (size_t t = 0; t < sizeof made / sizeof *made; t++) MPI_Type_free(&made[t]->type);
}

void reductions(const struct group *group, int most, bool only_underlying) {
    underlying = only_underlying;
    uneven = is_uneven(group);
#define ENTRY(T, M, OPS_OF) {.name = #T, .type = M, .size = sizeof(T), .make = make_##T, .fold = fold_##T, .same = same_##T, .ops = OPS_OF},
#define INTEGER_ENTRY(T, M) ENTRY(T, M, INTEGER)
#define FLOAT_ENTRY(T, M) ENTRY(T, M, FLOATING)
#define COMPLEX_ENTRY(T, M) ENTRY(T, M, COMPLEX)
    const struct type types[] = {
        INTEGERS(INTEGER_ENTRY) FLOATS(FLOAT_ENTRY) COMPLEXES(COMPLEX_ENTRY) ENTRY(boolean, MPI_C_BOOL, LOGICAL)
        /* Types that are other names for these. */
        {"int", MPI_INT, sizeof(int), make_int32_t, fold_int32_t, same_int32_t, INTEGER},
        {"long", MPI_LONG, sizeof(long), make_int64_t, fold_int64_t, same_int64_t, INTEGER},
        {"long long", MPI_LONG_LONG, sizeof(long long), make_int64_t, fold_int64_t, same_int64_t, INTEGER},
        {"unsigned", MPI_UNSIGNED, sizeof(unsigned), make_uint32_t, fold_uint32_t, same_uint32_t, INTEGER},
        {"signed char", MPI_SIGNED_CHAR, 1, make_int8_t, fold_int8_t, same_int8_t, INTEGER},
        {"unsigned char", MPI_UNSIGNED_CHAR, 1, make_uint8_t, fold_uint8_t, same_uint8_t, INTEGER},
        {"byte", MPI_BYTE, 1, make_uint8_t, fold_uint8_t, same_uint8_t, BITS},
    };
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (enum op op = 0; op < OPS; op++) {
            if (!types[t].ops[op]) continue;
            folded = op;
            /* Long ones for a few types only. */
            bool long_too = op == SUM && (types[t].type == MPI_DOUBLE || types[t].type == MPI_INT || types[t].size == 1);
            struct scene scene = {.group = group, .type = &types[t], .op_name = op_names[op], .op = op_of(op)};
            lengths(scene, long_too ? most : most < 1025 ? most : 1025, fold_predefined);
        }
#define PAIR_ENTRY(T, M) {.name = #T, .type = M, .size = sizeof(struct T), .make = make_##T, .fold = fold_##T, .same = same_##T},
    const struct type pairs[] = {PAIRS(PAIR_ENTRY)};
    for (size_t t = 0; t < sizeof pairs / sizeof *pairs; t++)
        for (folded = MIN; folded <= MAX; folded++) {
            struct scene scene = {.group = group, .type = &pairs[t], .op_name = folded == MIN ? "minloc" : "maxloc"};
            scene.op = folded == MIN ? MPI_MINLOC : MPI_MAXLOC;
            lengths(scene, most < 1025 ? most : 1025, fold_predefined);
        }
    users(group, most);
}
