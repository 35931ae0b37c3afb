/*
 * types [ROUNDS]: random derived datatypes, different on each rank, with the same signature. Each rank must receive the
 * data that the root's type packs, and holes must not be written. At the end rank 0 prints how many bytes had to be
 * packed because they were not contiguous in packed order: Unisono's statistics must say the same.
 */
#include "test.h"

static unsigned long long state;
static int below(int n) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (int)((state >> 33) % (unsigned)n);
}

/* A quarter of all types is made with large counts, if the MPI has them. */
#if MPI_VERSION >= 4
#define MADE(narrow, large) ((below(4) ? narrow : large), commit(type, old))
#else
#define MADE(narrow, large) (narrow, commit(type, old))
#endif

static MPI_Datatype commit(MPI_Datatype type, MPI_Datatype old) {
    MPI_Type_commit(&type);
    MPI_Type_free(&old);
    return type;
}

enum { MOST = 8 };

static MPI_Aint extent_of(MPI_Datatype type) {
    MPI_Aint lower, extent;
    MPI_Type_get_extent(type, &lower, &extent);
    return extent;
}

/* The type with an extent from 0 to its last byte, sometimes with a hole at the end. */
static MPI_Datatype trimmed(MPI_Datatype old) {
    MPI_Aint lower, extent;
    MPI_Datatype type;
    MPI_Type_get_true_extent(old, &lower, &extent);
    extent = lower + extent + (below(6) == 0 ? 4 : 0);
    if (below(3) && extent == extent_of(old)) return old;
    return MADE(MPI_Type_create_resized(old, 0, extent, &type), MPI_Type_create_resized_c(old, 0, extent, &type));
}

static MPI_Datatype make(int ints, int depth);

/* `parts` parts of `each` elements of one type, by one of the combiners for that. */
static MPI_Datatype row(int parts, int each, MPI_Datatype old) {
    int counts[MOST], starts[MOST], order[MOST], gap = below(3) == 0, most = 0;
    MPI_Aint places[MOST], extent = extent_of(old);
    MPI_Datatype type;
#if MPI_VERSION >= 4
    MPI_Count large[MOST], large_starts[MOST], large_places[MOST];
#endif
    for (int i = 0; i < parts; i++) order[i] = i;
    if (below(4) == 0) order[0] = parts - 1, order[parts - 1] = 0;
    for (int i = 0; i < parts; i++) {
        counts[i] = each, starts[i] = order[i] * (each + gap), places[i] = starts[i] * extent;
#if MPI_VERSION >= 4
        large[i] = each, large_starts[i] = starts[i], large_places[i] = places[i];
#endif
        if (starts[i] + each > most) most = starts[i] + each;
    }
    switch (below(8)) {
    case 0: return MADE(MPI_Type_vector(parts, each, each + gap, old, &type), MPI_Type_vector_c(parts, each, each + gap, old, &type));
    case 1:
        return MADE(MPI_Type_create_hvector(parts, each, (each + gap) * extent, old, &type),
                    MPI_Type_create_hvector_c(parts, each, (each + gap) * extent, old, &type));
    case 2:
        return MADE(MPI_Type_indexed(parts, counts, starts, old, &type), MPI_Type_indexed_c(parts, large, large_starts, old, &type));
    case 3:
        return MADE(MPI_Type_create_hindexed(parts, counts, places, old, &type),
                    MPI_Type_create_hindexed_c(parts, large, large_places, old, &type));
    case 4:
        return MADE(MPI_Type_create_indexed_block(parts, each, starts, old, &type),
                    MPI_Type_create_indexed_block_c(parts, each, large_starts, old, &type));
    case 5:
        return MADE(MPI_Type_create_hindexed_block(parts, each, places, old, &type),
                    MPI_Type_create_hindexed_block_c(parts, each, large_places, old, &type));
    case 6: {
        bool first = below(2);
        int sizes[2] = {parts, each + gap}, lengths[2] = {parts, each}, from[2] = {0, gap && below(2)};
        if (first) sizes[0] = each + gap, sizes[1] = parts, lengths[0] = each, lengths[1] = parts, from[0] = from[1], from[1] = 0;
        int memory = first ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
#if MPI_VERSION >= 4
        MPI_Count a[2] = {sizes[0], sizes[1]}, b[2] = {lengths[0], lengths[1]}, c[2] = {from[0], from[1]};
#endif
        return MADE(MPI_Type_create_subarray(2, sizes, lengths, from, memory, old, &type),
                    MPI_Type_create_subarray_c(2, a, b, c, memory, old, &type));
    }
    default: return MADE(MPI_Type_contiguous(parts * each, old, &type), MPI_Type_contiguous_c(parts * each, old, &type));
    }
}

/* A struct of several types, one after the other or in another order. */
static MPI_Datatype several(int ints, int depth) {
    MPI_Datatype types[MOST], type;
    int counts[MOST], n = 0;
    MPI_Aint places[MOST], at = 0;
#if MPI_VERSION >= 4
    MPI_Count large[MOST], large_places[MOST];
#endif
    do {
        int part = n == MOST - 1 ? ints : 1 + below(ints);
        types[n] = trimmed(make(part, depth - 1)), counts[n] = 1, places[n] = at;
        at += extent_of(types[n]) + (below(6) == 0 ? 8 : 0);
        ints -= part, n++;
    } while (ints > 0);
    if (n > 1 && below(5) == 0) { /* the first type's memory comes last */
        MPI_Datatype first = types[0];
        MPI_Aint place = places[0];
        for (int i = 1; i < n; i++) types[i - 1] = types[i], places[i - 1] = places[i];
        types[n - 1] = first, places[n - 1] = place;
    }
#if MPI_VERSION >= 4
    for (int i = 0; i < n; i++) large[i] = counts[i], large_places[i] = places[i];
    if (below(4) == 0) MPI_Type_create_struct_c(n, large, large_places, types, &type);
    else
#endif
    MPI_Type_create_struct(n, counts, places, types, &type);
    for (int i = 0; i < n; i++) MPI_Type_free(&types[i]);
    MPI_Type_commit(&type);
    return type;
}

/* A type of so many MPI_INTs. */
static MPI_Datatype make(int ints, int depth) {
    MPI_Datatype type;
    if (depth == 0 || ints == 1) return MPI_Type_contiguous(ints, MPI_INT, &type), MPI_Type_commit(&type), type;
    if (below(8) == 0) {
        MPI_Datatype old = make(ints, depth - 1);
        return MPI_Type_dup(old, &type), commit(type, old);
    }
    for (int tries = 0; tries < 4; tries++) {
        int parts = 2 + below(MOST - 1), each = 1 + below(3);
        if (ints % (parts * each) == 0) return row(parts, each, trimmed(make(ints / (parts * each), depth - 1)));
    }
    return several(ints, depth);
}

static long long to_pack;

/* Are the bytes of `count` elements contiguous in packed order? Found by unpacking with the MPI. */
static bool in_a_row(MPI_Datatype type, int count, int *packed, int bytes, char *memory, int room) {
    int position = 0;
    MPI_Aint extent = extent_of(type);
    memset(memory, 0, (size_t)room);
    MPI_Unpack(packed, bytes, &position, memory, count, type, MPI_COMM_WORLD);
    return extent * count == bytes && !memcmp(memory, packed, (size_t)bytes);
}

static void one_round(int number) {
    enum { ROOM = 1 << 18 };
    static char memory[ROOM], wanted[ROOM];
    static int packed[ROOM / 4], data[ROOM / 4];
    int me = rank_in(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD), root = number % size, position = 0;
    state = (unsigned long long)number * 977 + 5, below(2);
    int ints = 1 + below(60), count = 1 + below(3), bytes = 4 * ints * count;
    state += (unsigned long long)me * 1000003, below(2);
    MPI_Datatype type = trimmed(make(ints, below(5)));
    MPI_Aint lower, extent;
    MPI_Type_get_true_extent(type, &lower, &extent);
    int length = (int)(lower + extent + (count - 1) * extent_of(type));
    if (length > ROOM || lower < 0) MPI_Abort(MPI_COMM_WORLD, 1);

    for (int i = 0; i < ints * count; i++) data[i] = 1000 * number + i + 1;
    bool row = in_a_row(type, count, data, bytes, wanted, length);
    if (!row && size > 1) to_pack += 2 * bytes;

    memset(memory, 0x55, (size_t)length), memset(wanted, 0x55, (size_t)length);
    MPI_Unpack(data, bytes, &position, wanted, count, type, MPI_COMM_WORLD);
    if (me == root) memcpy(memory, wanted, (size_t)length);
    MPI_Bcast(memory, count, type, root, MPI_COMM_WORLD);
    if (!expect(!memcmp(memory, wanted, (size_t)length), "round %d: broadcast of %d of %d ints", number, count, ints)) {
        position = 0;
        MPI_Pack(memory, count, type, packed, bytes, &position, MPI_COMM_WORLD);
        for (int i = 0; i < ints * count; i++)
            if (packed[i] != data[i]) { expect(false, "int %d of %d is %d", i, ints * count, packed[i]); break; }
    }
    /* Once more, with what the library has cached for the type. */
    memset(memory, 0x55, (size_t)length);
    if (me == root) memcpy(memory, wanted, (size_t)length);
    MPI_Bcast(memory, count, type, root, MPI_COMM_WORLD);
    expect(!memcmp(memory, wanted, (size_t)length), "round %d: the same again", number);
    MPI_Type_free(&type);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rounds = argc > 1 ? atoi(argv[1]) : 3000;
    for (int i = 0; i < rounds; i++) one_round(i);
    long long sum = 0;
    UNDERLYING(PMPI_Reduce)(&to_pack, &sum, 1, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank_in(MPI_COMM_WORLD) == 0) printf("types: to pack %lld bytes\n", sum);
    return finish("types");
}
