/* Decodes derived datatypes: whether their bytes are contiguous, and how to pack elements too long for one
 * PMPI_Pack. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- Contents of a datatype, one level down ---------------------------------------------------------------- */

/* The result of MPI_Type_get_contents: integers and large counts in `numbers`, addresses (in bytes) in `bytes`. */
struct contents {
    int combiner, types;
    int64_t *numbers, *bytes;
    MPI_Datatype *type;
    void *memory;
};

static bool is_made(int combiner) {
    return combiner != MPI_COMBINER_NAMED && combiner != MPI_COMBINER_F90_REAL && combiner != MPI_COMBINER_F90_COMPLEX &&
           combiner != MPI_COMBINER_F90_INTEGER;
}

#if MPI_VERSION >= 4
/* For a type that was made with large counts, moves these to `numbers` and `bytes`: MPI has all of them in one list,
 * but for a subarray's number of dimensions and its order, which are integers. */
static void sort(struct contents *c, int64_t *large) {
    if (c->combiner == MPI_COMBINER_SUBARRAY) {
        int64_t dimensions = c->numbers[0], order = c->numbers[1];
        memmove(c->numbers + 1, large, 3 * (size_t)dimensions * sizeof *large);
        c->numbers[1 + 3 * dimensions] = order;
        return;
    }
    bool lists = c->combiner == MPI_COMBINER_HINDEXED || c->combiner == MPI_COMBINER_STRUCT;
    c->numbers = large, c->bytes = large + (lists ? 1 + large[0] : 2);
}
#endif

/* Reads a type's contents, which `forget` frees. False: no memory, or the MPI has failed. */
static bool read_contents(MPI_Datatype type, struct contents *c) {
#if MPI_VERSION >= 4
    MPI_Count numbers, bytes, large, types;
    int code = PMPI_Type_get_envelope_c(type, &numbers, &bytes, &large, &types, &c->combiner);
#else
    int numbers, bytes, large = 0, types, code = PMPI_Type_get_envelope(type, &numbers, &bytes, &types, &c->combiner);
#endif
    if (code != MPI_SUCCESS) return false;
    c->types = is_made(c->combiner) ? (int)types : 0, c->memory = NULL;
    if (!c->types) return true;
    size_t all = (size_t)(numbers + bytes + large);
    c->memory = malloc(all * sizeof(int64_t) + (size_t)types * sizeof *c->type + (size_t)numbers * sizeof(int));
    if (!c->memory) return false;
    c->numbers = c->memory, c->bytes = c->numbers + numbers;
    c->type = (MPI_Datatype *)(c->numbers + all);
    int *narrow = (int *)(c->type + types);
#if MPI_VERSION >= 4
    int64_t *counts = c->bytes + bytes;
    code = PMPI_Type_get_contents_c(type, numbers, bytes, large, types, narrow, (MPI_Aint *)c->bytes, (MPI_Count *)counts,
                                    c->type);
#else
    code = PMPI_Type_get_contents(type, numbers, bytes, types, narrow, (MPI_Aint *)c->bytes, c->type);
#endif
    if (code != MPI_SUCCESS) return free(c->memory), false;
    for (int64_t i = 0; i < (int64_t)numbers; i++) c->numbers[i] = narrow[i];
#if MPI_VERSION >= 4
    if (large) sort(c, counts);
#endif
    return true;
}

static int combiner_of(MPI_Datatype type) {
    struct contents c = {.combiner = MPI_COMBINER_NAMED};
#if MPI_VERSION >= 4
    MPI_Count ignored[4];
    PMPI_Type_get_envelope_c(type, &ignored[0], &ignored[1], &ignored[2], &ignored[3], &c.combiner);
#else
    int ignored[3];
    PMPI_Type_get_envelope(type, &ignored[0], &ignored[1], &ignored[2], &c.combiner);
#endif
    return c.combiner;
}

static void forget(struct contents *c) {
    for (int i = 0; i < c->types; i++)
        if (!shim_predefined(c->type[i]) && is_made(combiner_of(c->type[i]))) PMPI_Type_free(&c->type[i]);
    free(c->memory);
}

/* `count` elements of one type, one after the other. */
struct part {
    int64_t at; /* bytes from the element's start */
    int64_t count;
    MPI_Datatype type;
};

/* The number of parts, in the order in which they are packed; -1: not known here (MPI_Type_create_darray, and Fortran
 * combiners of MPI-1). */
static int64_t parts_of(const struct contents *c) {
    switch (c->combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
    case MPI_COMBINER_CONTIGUOUS: return 1;
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK:
    case MPI_COMBINER_STRUCT: return c->numbers[0];
    case MPI_COMBINER_SUBARRAY: {
        /* Rows along the dimension in which elements are contiguous. */
        int64_t dimensions = c->numbers[0], rows = 1;
        const int64_t *lengths = c->numbers + 1 + dimensions;
        bool last = c->numbers[1 + 3 * dimensions] == MPI_ORDER_C;
        for (int64_t d = 0; d < dimensions; d++) rows *= d == (last ? dimensions - 1 : 0) ? 1 : lengths[d];
        return rows;
    }
    default: return -1;
    }
}

static struct part row_of(const struct contents *c, int64_t i, int64_t extent) {
    int64_t dimensions = c->numbers[0], stride = extent, at = 0, count = 1;
    const int64_t *sizes = c->numbers + 1, *lengths = sizes + dimensions, *starts = lengths + dimensions;
    for (int64_t k = 0; k < dimensions; k++) {
        int64_t d = starts[dimensions] == MPI_ORDER_C ? dimensions - 1 - k : k;
        if (k == 0) count = lengths[d];
        at += (starts[d] + (k ? i % lengths[d] : 0)) * stride;
        if (k) i /= lengths[d];
        stride *= sizes[d];
    }
    return (struct part){at, count, c->type[0]};
}

/* Part i; `extent`: the extent of the first type. */
static struct part part_of(const struct contents *c, int64_t i, int64_t extent) {
    const int64_t *n = c->numbers;
    switch (c->combiner) {
    case MPI_COMBINER_CONTIGUOUS: return (struct part){0, n[0], c->type[0]};
    case MPI_COMBINER_VECTOR: return (struct part){i * n[2] * extent, n[1], c->type[0]};
    case MPI_COMBINER_HVECTOR: return (struct part){i * c->bytes[0], n[1], c->type[0]};
    case MPI_COMBINER_INDEXED: return (struct part){n[1 + n[0] + i] * extent, n[1 + i], c->type[0]};
    case MPI_COMBINER_HINDEXED: return (struct part){c->bytes[i], n[1 + i], c->type[0]};
    case MPI_COMBINER_INDEXED_BLOCK: return (struct part){n[2 + i] * extent, n[1], c->type[0]};
    case MPI_COMBINER_HINDEXED_BLOCK: return (struct part){c->bytes[i], n[1], c->type[0]};
    case MPI_COMBINER_STRUCT: return (struct part){c->bytes[i], n[1 + i], c->type[i]};
    case MPI_COMBINER_SUBARRAY: return row_of(c, i, extent);
    default: return (struct part){0, 1, c->type[0]}; /* a duplicate, a resized one */
    }
}

/* ---- Contiguous bytes ---------------------------------------------------------------------------------------- */

/* An element: `whole`: its bytes in memory are contiguous, in packed order, from `first` on. */
struct run {
    bool whole;
    int64_t first, bytes, extent;
};

static struct run run_of(MPI_Datatype type) {
    struct shim_shape shape;
    MPI_Count lower, length;
    struct contents c;
    shim_measure(type, &shape, &lower, &length);
    struct run run = {(int64_t)shape.bytes == length, lower, (int64_t)shape.bytes, shape.extent};
    /* Without bytes, with holes, or predefined: decided. Otherwise the parts may be in another order. */
    if (!run.bytes || !run.whole || shim_predefined(type)) return run;
    if (!read_contents(type, &c)) return run.whole = false, run;
    int64_t parts = c.types ? parts_of(&c) : 0, end = lower;
    struct run inner = {0};
    run.whole = parts >= 0;
    for (int64_t i = 0; i < parts && run.whole; i++) {
        if (i == 0 || c.combiner == MPI_COMBINER_STRUCT) inner = run_of(c.type[i]);
        struct part part = part_of(&c, i, inner.extent);
        if (!part.count || !inner.bytes) continue;
        run.whole = inner.whole && part.at + inner.first == end && (part.count == 1 || inner.extent == inner.bytes);
        end += part.count * inner.bytes;
    }
    forget(&c);
    return run;
}

bool shim_is_dense(MPI_Datatype type) {
    struct run run = run_of(type);
    return !run.bytes || (run.whole && run.first == 0 && run.extent == run.bytes);
}

/* ---- Packing -------------------------------------------------------------------------------------------- */

enum { PIECE = 1 << 30 }; /* PMPI_Pack's sizes are ints */

static bool pack_some(void *at, int count, MPI_Datatype type, char *packed, int bytes, bool pack) {
    int position = 0, code = pack ? PMPI_Pack(at, count, type, packed, bytes, &position, shim_private)
                                  : PMPI_Unpack(packed, bytes, &position, at, count, type, shim_private);
    return code == MPI_SUCCESS && position == bytes;
}

/* MPICH refuses to pack from address 0, which is MPI_BOTTOM. So this packs from a higher address, with a type that has
 * a negative displacement. */
static bool pack_at_zero(int count, MPI_Datatype type, char *packed, int bytes, bool pack) {
    MPI_Aint above = 4096, back = -above;
    MPI_Datatype shifted;
    if (PMPI_Type_create_hindexed(1, &count, &back, type, &shifted) != MPI_SUCCESS) return false;
    bool done = PMPI_Type_commit(&shifted) == MPI_SUCCESS && pack_some((void *)above, 1, shifted, packed, bytes, pack);
    PMPI_Type_free(&shifted);
    return done;
}

static bool pack_piece(void *at, int count, MPI_Datatype type, char *packed, int bytes, bool pack) {
    return at ? pack_some(at, count, type, packed, bytes, pack) : pack_at_zero(count, type, packed, bytes, pack);
}

static void *moved(void *at, int64_t by) { return (void *)((uintptr_t)at + (uintptr_t)by); }

/* Short parts of the same type, which are packed by one call. */
struct group {
    int n;
    int64_t bytes;
    MPI_Datatype type;
    enum { GROUP = 4096 } most;
    int counts[GROUP];
    MPI_Aint places[GROUP];
};

/* Packs and empties the group. */
static bool pack_group(struct group *g, void *at, char **packed, bool pack) {
    MPI_Datatype all;
    int n = g->n, bytes = (int)g->bytes;
    g->n = 0, g->bytes = 0;
    if (n == 0) return true;
    if (PMPI_Type_create_hindexed(n, g->counts, g->places, g->type, &all) != MPI_SUCCESS) return false;
    bool done = PMPI_Type_commit(&all) == MPI_SUCCESS && pack_piece(at, 1, all, *packed, bytes, pack);
    PMPI_Type_free(&all);
    *packed += bytes;
    return done;
}

static bool pack_parts(const struct contents *c, struct group *g, void *at, char *packed, bool pack) {
    int64_t parts = c->types ? parts_of(c) : -1;
    struct shim_shape inner = {0};
    MPI_Count ignored[2];
    g->n = 0, g->bytes = 0;
    for (int64_t i = 0; i < parts; i++) {
        if (i == 0 || c->combiner == MPI_COMBINER_STRUCT) shim_measure(c->type[i], &inner, &ignored[0], &ignored[1]);
        struct part part = part_of(c, i, inner.extent);
        int64_t bytes = part.count * (int64_t)inner.bytes;
        if (!bytes) continue;
        bool ends = g->n == GROUP || part.type != g->type || g->bytes + bytes > PIECE;
        if (ends && !pack_group(g, at, &packed, pack)) return false;
        if (bytes > PIECE) {
            if (!shim_pack(moved(at, part.at), (uint64_t)part.count, part.type, &inner, packed, pack)) return false;
            packed += bytes;
            continue;
        }
        g->type = part.type, g->bytes += bytes;
        g->counts[g->n] = (int)part.count, g->places[g->n++] = part.at;
    }
    return parts >= 0 && pack_group(g, at, &packed, pack);
}

/* Packs an element that is too long for one call of PMPI_Pack, part by part. */
static bool pack_long(void *at, MPI_Datatype type, char *packed, bool pack) {
    struct contents c;
    if (!read_contents(type, &c)) return false;
    struct group *g = malloc(sizeof *g);
    bool done = g && pack_parts(&c, g, at, packed, pack);
    free(g);
    forget(&c);
    return done;
}

bool shim_pack(void *at, uint64_t count, MPI_Datatype type, const struct shim_shape *shape, char *packed, bool pack) {
    if (!shape->bytes) return true;
    uint64_t most = shape->bytes < PIECE ? PIECE / shape->bytes : 1;
    for (uint64_t done = 0; done < count; done += most) {
        uint64_t n = count - done < most ? count - done : most, bytes = n * shape->bytes;
        void *here = moved(at, (int64_t)done * shape->extent);
        bool fits = bytes <= INT_MAX;
        bool done_so = fits ? pack_piece(here, (int)n, type, packed, (int)bytes, pack) : pack_long(here, type, packed, pack);
        if (!done_so) return false;
        packed += bytes;
    }
    return true;
}
