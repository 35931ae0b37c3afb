/*
 * large: one element of a datatype with more bytes than an int counts, as programs sent large messages before MPI 4: 3
 * x 2^30 bytes without holes, made in several ways, and a little more than 2^31 with holes of several kinds. Rank 0
 * uses the type, rank 1 contiguous bytes; in both directions. Two ranks; 9 GiB of memory.
 */
#include "test.h"

#include <stdint.h>
#include <sys/mman.h>

enum { MEBI = 1 << 20, LONGEST = 3 << 10 /* MiB */, HOLES = 2100 };
static uint64_t *memory;

static uint64_t word(uint64_t i, int seed) { return (i + 1) * 0x9e3779b97f4a7c15u ^ (uint64_t)seed; }

static MPI_Datatype committed(MPI_Datatype type) { return MPI_Type_commit(&type), type; }

static MPI_Datatype row(MPI_Aint mebi) {
    MPI_Datatype one, type;
    MPI_Type_contiguous(MEBI, MPI_BYTE, &one);
    MPI_Type_contiguous((int)mebi, one, &type);
    MPI_Type_free(&one);
    return committed(type);
}

/* As libraries for large counts do it: chunks that an int counts, and the rest after them. */
static MPI_Datatype chunks(void) {
    const int64_t chunk = INT32_MAX, all = (int64_t)LONGEST * MEBI, rest = all % chunk;
    MPI_Datatype parts[2], type;
    MPI_Type_vector((int)(all / chunk), (int)chunk, (int)chunk, MPI_BYTE, &parts[0]);
    MPI_Type_contiguous((int)rest, MPI_BYTE, &parts[1]);
    MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, all - rest}, parts, &type);
    MPI_Type_free(&parts[0]), MPI_Type_free(&parts[1]);
    return committed(type);
}

static MPI_Datatype indexed(void) {
    MPI_Datatype gibi = row(1024), inner, type;
    MPI_Type_indexed(2, (int[]){1, 2}, (int[]){0, 1}, gibi, &inner);
    MPI_Type_create_resized(inner, 0, (MPI_Aint)LONGEST * MEBI, &type);
    MPI_Type_free(&gibi), MPI_Type_free(&inner);
    return committed(type);
}

/* Blocks of `words` words with a hole of one word after each, HOLES MiB in all. */
static MPI_Datatype blocks(int words, MPI_Aint *extent) {
    MPI_Datatype type;
    MPI_Aint lower;
    int64_t n = (int64_t)HOLES * MEBI / (8 * words);
    MPI_Type_vector((int)n, words, words + 1, MPI_UINT64_T, &type);
    MPI_Type_get_true_extent(type, &lower, extent);
    return committed(type);
}

/* An element of two long pieces, the second at a lower address than the first, and a short piece of another type. */
static MPI_Datatype pieces(MPI_Aint *extent) {
    MPI_Aint mebi = HOLES / 2;
    MPI_Datatype half = row(mebi), few, type;
    MPI_Type_vector(2, 1, 2, MPI_UINT64_T, &few);
    *extent = 2 * mebi * MEBI + 64;
    MPI_Type_create_struct(3, (int[]){1, 1, 1}, (MPI_Aint[]){mebi * MEBI + 64, 0, mebi * MEBI + 16}, (MPI_Datatype[]){half, half, few}, &type);
    MPI_Type_free(&half), MPI_Type_free(&few);
    return committed(type);
}

/* The position in memory of packed word i of `blocks` and of `pieces`. */
static uint64_t in_blocks(uint64_t i, uint64_t words) { return i + i / words; }
static uint64_t in_pieces(uint64_t i) {
    uint64_t half = (uint64_t)HOLES / 2 * MEBI / 8;
    return i < half ? half + 8 + i : i < 2 * half ? i - half : half + 2 + 2 * (i - 2 * half);
}

/* `words`: words of a block; 0 for pieces, 1 for a row. Broadcasts between the type on rank 0 and a row on rank 1. */
static void send(const char *name, MPI_Datatype type, MPI_Aint bytes, MPI_Aint extent, uint64_t words, int from) {
    int me = rank_in(MPI_COMM_WORLD);
    uint64_t n = (uint64_t)bytes / 8, sum = 0, wrong = 0;
    bool typed = me == 0;
    MPI_Datatype own = type;
    if (!typed) {
        MPI_Datatype big = row(bytes / MEBI);
        MPI_Aint rest = bytes % MEBI;
        MPI_Type_create_struct(2, (int[]){1, (int)rest}, (MPI_Aint[]){0, bytes - rest}, (MPI_Datatype[]){big, MPI_BYTE}, &own);
        MPI_Type_free(&big), MPI_Type_commit(&own);
    }
#define PLACE(i) (!typed || words == 1 ? (i) : words ? in_blocks(i, words) : in_pieces(i))
    memset(memory, 0x55, (size_t)(typed ? extent : bytes));
    if (me == from) for (uint64_t i = 0; i < n; i++) memory[PLACE(i)] = word(i, from);
    if (!expect(MPI_Bcast(memory, 1, own, from, MPI_COMM_WORLD) == MPI_SUCCESS, "%s from %d: error", name, from)) return;
    for (uint64_t i = 0; i < n; i++) wrong += memory[PLACE(i)] != word(i, from), sum += memory[PLACE(i)];
    uint64_t holes = 0;
    if (typed && words != 1) {
        for (uint64_t i = 0; i < (uint64_t)extent / 8; i++) holes += memory[i] == 0x5555555555555555u;
        expect(holes == ((uint64_t)extent - (uint64_t)bytes) / 8, "%s from %d: holes are written to", name, from);
    }
    expect(!wrong, "%s from %d: %llu words of %llu are wrong", name, from, (unsigned long long)wrong, (unsigned long long)n);
    if (!typed) MPI_Type_free(&own);
}

static void both(const char *name, MPI_Datatype type, MPI_Aint bytes, MPI_Aint extent, uint64_t words) {
    for (int from = 0; from < 2; from++) send(name, type, bytes, extent, words, from);
    if (rank_in(MPI_COMM_WORLD) == 0) printf("  %s: done\n", name), fflush(stdout);
    MPI_Type_free(&type);
}

int main(int argc, char **argv) {
    MPI_Aint all = (MPI_Aint)LONGEST * MEBI, some = (MPI_Aint)HOLES * MEBI, extent;
    MPI_Init(&argc, &argv);
    memory = mmap(NULL, (size_t)all + (64 << 20), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || size_of(MPI_COMM_WORLD) != 2) MPI_Abort(MPI_COMM_WORLD, 1);
    both("rows of rows", row(LONGEST), all, all, 1);
    both("chunks", chunks(), all, all, 1);
    both("indexed", indexed(), all, all, 1);
    MPI_Datatype type = blocks(1 << 17, &extent);
    both("long blocks", type, some, extent, 1 << 17);
    type = blocks(1 << 7, &extent);
    both("short blocks", type, some, extent, 1 << 7);
    type = pieces(&extent);
    both("pieces", type, some + 16, extent, 0);
    return finish("large");
}
