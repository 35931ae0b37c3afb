/* The collectives that move bytes, from C. Built and run by c.rs. */
#include "members.h"

enum { RANKS_MOST = 5, BLOCK_MOST = 100000 };

static unsigned char *room(size_t bytes) {
    unsigned char *memory = malloc(bytes + 1);
    CHECK(memory != NULL);
    memset(memory, 0xEE, bytes + 1);
    return memory;
}

/* Byte i of the message from rank `from` to rank `to`. */
static unsigned char pattern(uint64_t i, uint32_t from, uint32_t to) {
    return (unsigned char)(i * 31 + i / 251 + from * 7 + to * 77 + 1);
}

static void put(unsigned char *at, uint64_t bytes, uint32_t from, uint32_t to) {
    for (uint64_t i = 0; i < bytes; i++) at[i] = pattern(i, from, to);
}

static int holds(const unsigned char *at, uint64_t bytes, uint32_t from, uint32_t to) {
    for (uint64_t i = 0; i < bytes; i++)
        if (at[i] != pattern(i, from, to)) return 0;
    return 1;
}

static int untouched(const unsigned char *at, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; i++)
        if (at[i] != 0xEE) return 0;
    return 1;
}

/* Blocks of different lengths: rank r's has (r + 1) * `bytes` bytes; the last rank's is first; gaps of 3 bytes. */
struct blocks {
    uint64_t counts[RANKS_MOST], displacements[RANKS_MOST], all;
};

static struct blocks varied(uint32_t ranks, uint64_t bytes) {
    struct blocks b = {{0}, {0}, 0};
    for (uint32_t r = ranks; r-- > 0; b.all += b.counts[r] + 3)
        b.counts[r] = bytes * (r + 1), b.displacements[r] = b.all;
    return b;
}

static void equal_to_root(unisono_comm *c, uint32_t rank, uint32_t ranks, uint64_t bytes, uint32_t root, int in_place) {
    int here = rank == root;
    unsigned char *all = room(ranks * bytes), *mine = room(bytes);
    put(mine, bytes, rank, 0);
    if (here && in_place) put(all + rank * bytes, bytes, rank, 0);
    const void *send = here && in_place ? UNISONO_IN_PLACE : mine;
    CHECK(unisono_gather(c, send, here ? all : NULL, bytes, root) == UNISONO_OK);
    for (uint32_t r = 0; here && r < ranks; r++) CHECK(holds(all + r * bytes, bytes, r, 0));
    CHECK(all[ranks * bytes] == 0xEE);

    for (uint32_t r = 0; r < ranks; r++) put(all + r * bytes, bytes, root, r);
    memset(mine, 0xEE, bytes);
    void *receive = here && in_place ? UNISONO_IN_PLACE : mine;
    CHECK(unisono_scatter(c, here ? all : NULL, receive, bytes, root) == UNISONO_OK);
    CHECK(here && in_place ? untouched(mine, bytes) : holds(mine, bytes, root, rank));
    CHECK(mine[bytes] == 0xEE);
    free(all), free(mine);
}

static void varied_to_root(unisono_comm *c, uint32_t rank, uint32_t ranks, uint64_t bytes, uint32_t root, int in_place) {
    int here = rank == root;
    struct blocks b = varied(ranks, bytes);
    uint64_t own = b.counts[rank], *counts = here ? b.counts : NULL, *displacements = here ? b.displacements : NULL;
    unsigned char *all = room(b.all), *mine = room(own);
    put(mine, own, rank, 0);
    if (here && in_place) put(all + b.displacements[rank], own, rank, 0);
    const void *send = here && in_place ? UNISONO_IN_PLACE : mine;
    CHECK(unisono_gatherv(c, send, own, here ? all : NULL, counts, displacements, root) == UNISONO_OK);
    for (uint32_t r = 0; here && r < ranks; r++) {
        CHECK(holds(all + b.displacements[r], b.counts[r], r, 0));
        CHECK(untouched(all + b.displacements[r] + b.counts[r], 3));
    }

    for (uint32_t r = 0; r < ranks; r++) put(all + b.displacements[r], b.counts[r], root, r);
    memset(mine, 0xEE, own);
    void *receive = here && in_place ? UNISONO_IN_PLACE : mine;
    CHECK(unisono_scatterv(c, here ? all : NULL, counts, displacements, receive, own, root) == UNISONO_OK);
    CHECK(here && in_place ? untouched(mine, own) : holds(mine, own, root, rank));
    CHECK(mine[own] == 0xEE);
    free(all), free(mine);
}

static void to_all(unisono_comm *c, uint32_t rank, uint32_t ranks, uint64_t bytes, int in_place) {
    struct blocks b = varied(ranks, bytes);
    unsigned char *all = room(b.all), *send = room(b.all);
    put(in_place ? all + rank * bytes : send, bytes, rank, 0);
    CHECK(unisono_allgather(c, in_place ? UNISONO_IN_PLACE : send, all, bytes) == UNISONO_OK);
    for (uint32_t r = 0; r < ranks; r++) CHECK(holds(all + r * bytes, bytes, r, 0));
    CHECK(untouched(all + ranks * bytes, b.all - ranks * bytes));

    memset(all, 0xEE, b.all);
    put(in_place ? all + b.displacements[rank] : send, b.counts[rank], rank, 0);
    CHECK(unisono_allgatherv(c, in_place ? UNISONO_IN_PLACE : send, b.counts[rank], all, b.counts, b.displacements) ==
          UNISONO_OK);
    for (uint32_t r = 0; r < ranks; r++) {
        CHECK(holds(all + b.displacements[r], b.counts[r], r, 0));
        CHECK(untouched(all + b.displacements[r] + b.counts[r], 3));
    }

    memset(all, 0xEE, b.all);
    for (uint32_t r = 0; r < ranks; r++) put((in_place ? all : send) + r * bytes, bytes, rank, r);
    CHECK(unisono_alltoall(c, in_place ? UNISONO_IN_PLACE : send, all, bytes) == UNISONO_OK);
    for (uint32_t r = 0; r < ranks; r++) CHECK(holds(all + r * bytes, bytes, r, rank));
    CHECK(untouched(all + ranks * bytes, b.all - ranks * bytes));
    free(all), free(send);
}

/* Rank r sends (r + s) * bytes to rank s: the counts of both sides agree, in place too. */
static void vector_to_all(unisono_comm *c, uint32_t rank, uint32_t ranks, uint64_t bytes, int in_place) {
    uint64_t counts[RANKS_MOST], starts[RANKS_MOST], back[RANKS_MOST], all = 0, end = 0;
    for (uint32_t r = 0; r < ranks; r++) counts[r] = (rank + r) * bytes, starts[r] = all, all += counts[r];
    for (uint32_t r = ranks; r-- > 0; end += counts[r]) back[r] = end;
    unsigned char *send = room(all), *receive = room(all);
    for (uint32_t r = 0; r < ranks; r++) put(in_place ? receive + back[r] : send + starts[r], counts[r], rank, r);
    int code = in_place ? unisono_alltoallv(c, UNISONO_IN_PLACE, NULL, NULL, receive, counts, back)
                        : unisono_alltoallv(c, send, counts, starts, receive, counts, back);
    CHECK(code == UNISONO_OK);
    for (uint32_t r = 0; r < ranks; r++) CHECK(holds(receive + back[r], counts[r], r, rank));
    CHECK(receive[all] == 0xEE);
    free(send), free(receive);
}

static void moves(unisono_comm *comm, uint32_t rank, uint32_t ranks) {
    const uint64_t sizes[] = {8, 0, 1, 113, 4099, BLOCK_MOST};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int in_place = 0; in_place < 2; in_place++) {
            for (uint32_t root = 0; root < ranks; root++) {
                equal_to_root(comm, rank, ranks, sizes[s], root, in_place);
                varied_to_root(comm, rank, ranks, sizes[s], root, in_place);
            }
            to_all(comm, rank, ranks, sizes[s], in_place);
            vector_to_all(comm, rank, ranks, sizes[s], in_place);
        }
}

/* Wrong arguments, only on the last of four ranks. */
static unsigned char here[64], there[64];
static uint64_t eights[4] = {8, 8, 8, 8}, starts[4] = {0, 8, 16, 24};
#define BAD(name, words, call)                                                                      \
    static void name(unisono_comm *comm, uint32_t rank, uint32_t ranks) {                           \
        int bad = rank == ranks - 1;                                                                \
        refused(comm, rank, ranks, call, words);                                                    \
    }

BAD(gather_root, "root is 4, must be below 4", unisono_gather(comm, here, there, 8, bad ? 4 : 0))
BAD(scatter_root, "root is 4294967295", unisono_scatter(comm, here, there, 8, bad ? UINT32_MAX : 0))
BAD(gather_null, "buffer address is null", unisono_gather(comm, here, bad ? NULL : there, 8, ranks - 1))
BAD(gather_away, "UNISONO_IN_PLACE where MPI does not allow it", unisono_gather(comm, bad ? UNISONO_IN_PLACE : here, there, 8, 0))
BAD(scatter_away, "UNISONO_IN_PLACE where MPI does not allow it", unisono_scatter(comm, here, bad ? UNISONO_IN_PLACE : there, 8, 0))
BAD(bcast_away, "UNISONO_IN_PLACE where MPI does not allow it", unisono_bcast(comm, bad ? UNISONO_IN_PLACE : here, 8, 0))
BAD(both_away, "UNISONO_IN_PLACE where MPI does not allow it", unisono_allgather(comm, here, bad ? UNISONO_IN_PLACE : there, 8))
BAD(long_bytes, "bytes is 18446744073709551615", unisono_alltoall(comm, here, there, bad ? UINT64_MAX / 2 : 8))
BAD(null_counts, "datatypes is null", unisono_allgatherv(comm, here, 8, there, bad ? NULL : eights, starts))
BAD(null_starts, "datatypes is null",
    unisono_scatterv(comm, here, eights, bad ? NULL : starts, there, 8, ranks - 1))
BAD(own_length, "bytes is 7, must be 8", unisono_allgatherv(comm, here, bad ? 7 : 8, there, eights, starts))

static uint64_t shared[4] = {0, 8, 12, 24}, away[4] = {0, 8, UINT64_MAX - 4, 24};
BAD(overlap_gatherv, "blocks 1 and 2 overlap",
    unisono_gatherv(comm, here, 8, there, eights, bad ? shared : starts, ranks - 1))
BAD(overlap_allgatherv, "blocks 1 and 2 overlap",
    unisono_allgatherv(comm, here, 8, there, eights, bad ? shared : starts))
BAD(overlap_alltoallv, "blocks 1 and 2 overlap",
    unisono_alltoallv(comm, here, eights, starts, there, eights, bad ? shared : starts))
BAD(overflow, "bytes is 18446744073709551615",
    unisono_alltoallv(comm, here, eights, bad ? away : starts, there, eights, starts))

/* Lengths that differ between ranks: one rank finds it, and all get an error. */
static void mismatch(unisono_comm *comm, uint32_t rank, uint32_t ranks) {
    (void)ranks;
    int code = unisono_allgather(comm, here, there, rank == 1 ? 16 : 8);
    CHECK(code == UNISONO_ERR_MISMATCH || code == UNISONO_ERR_PEER || code == UNISONO_OK);
    CHECK(unisono_barrier(comm) == UNISONO_ERR_PEER);
    SAYS("bytes is ");
}

int main(void) {
    alarm(240); /* a test that hangs fails */
    for (uint32_t ranks = 1; ranks <= RANKS_MOST; ranks++) processes(ranks, moves);
    member_function *bad[] = {gather_root, scatter_root,    gather_null,        gather_away,       scatter_away,
                              bcast_away,  both_away,       long_bytes,         null_counts,       null_starts,
                              own_length,  overlap_gatherv, overlap_allgatherv, overlap_alltoallv, overflow};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) processes(4, bad[i]);
    processes(3, mismatch);
    puts("all well");
    return 0;
}
