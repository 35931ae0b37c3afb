/* levels: each collective that is taken over where ranks are on several nodes, on many ranks: few lengths, each root. */
#include <stdlib.h>
#include <string.h>

#include "test.h"

/* Rank r's i-th number. */
static int64_t number(int r, int i) { return (int64_t)(r + 1) * 1000003 + i * 37; }

static void same(const int64_t *got, int64_t wanted, const char *what, int i) {
    expect(*got == wanted, "%s: element %d is %lld, not %lld", what, i, (long long)*got, (long long)wanted);
}

static void rooted(MPI_Comm comm, int root, int n, int64_t *mine, int64_t *all) {
    int me = rank_in(comm), size = size_of(comm);
    for (int i = 0; i < n; i++) mine[i] = number(me, i);
    MPI_Bcast(mine, n, MPI_INT64_T, root, comm);
    for (int i = 0; i < n; i++) same(mine + i, number(root, i), "bcast", i);
    for (int i = 0; i < n; i++) mine[i] = number(me, i);
    memset(all, 0, sizeof *all * n * size);
    MPI_Reduce(mine, all, n, MPI_INT64_T, MPI_SUM, root, comm);
    for (int i = 0; i < n && me == root; i++) {
        int64_t sum = 0;
        for (int r = 0; r < size; r++) sum += number(r, i);
        same(all + i, sum, "reduce", i);
    }
    MPI_Gather(mine, n, MPI_INT64_T, all, n, MPI_INT64_T, root, comm);
    for (int i = 0; i < n * size && me == root; i++) same(all + i, number(i / (n ? n : 1), i % (n ? n : 1)), "gather", i);
    MPI_Scatter(all, n, MPI_INT64_T, me == root ? MPI_IN_PLACE : mine, n, MPI_INT64_T, root, comm);
    for (int i = 0; i < n; i++) same(mine + i, number(me, i), "scatter", i);
}

static void to_all(MPI_Comm comm, int n, int64_t *mine, int64_t *all) {
    int me = rank_in(comm), size = size_of(comm), counts[64], starts[64], end = 0;
    for (int i = 0; i < n; i++) all[i] = number(me, i);
    MPI_Allreduce(MPI_IN_PLACE, all, n, MPI_INT64_T, MPI_MAX, comm);
    for (int i = 0; i < n; i++) same(all + i, number(size - 1, i), "allreduce", i);
    for (int i = 0; i < n; i++) mine[i] = number(me, i);
    MPI_Allgather(mine, n, MPI_INT64_T, all, n, MPI_INT64_T, comm);
    for (int i = 0; i < n * size; i++) same(all + i, number(i / (n ? n : 1), i % (n ? n : 1)), "allgather", i);
    for (int r = 0; r < size; r++) counts[r] = r % 2 ? n : n / 2, starts[r] = end, end += counts[r] + r % 3;
    memset(all, 0, sizeof *all * (n + 2) * size);
    MPI_Allgatherv(mine, counts[me], MPI_INT64_T, all, counts, starts, MPI_INT64_T, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < counts[r]; i++) same(all + starts[r] + i, number(r, i), "allgatherv", i);
    /* Not taken over. */
    MPI_Alltoall(all, 1, MPI_INT64_T, mine, 1, MPI_INT64_T, comm);
}

/* Several segments, the last one odd. */
static void segments(MPI_Comm comm, int root, int n, int64_t *mine, int64_t *all) {
    int me = rank_in(comm), size = size_of(comm), wrong[3] = {0};
    for (int i = 0; i < n; i++) mine[i] = me == root ? number(root, i) : 0;
    MPI_Bcast(mine, n, MPI_INT64_T, root, comm);
    for (int i = 0; i < n; i++) wrong[0] += mine[i] != number(root, i), mine[i] = number(me, i);
    MPI_Reduce(mine, all, n, MPI_INT64_T, MPI_MIN, root, comm);
    for (int i = 0; i < n && me == root; i++) wrong[1] += all[i] != number(0, i);
    MPI_Allreduce(MPI_IN_PLACE, mine, n, MPI_INT64_T, MPI_MAX, comm);
    for (int i = 0; i < n; i++) wrong[2] += mine[i] != number(size - 1, i);
    expect(!wrong[0] && !wrong[1] && !wrong[2], "%d elements from and to %d: %d, %d, %d are wrong", n, root, wrong[0], wrong[1], wrong[2]);
}

int main(int argc, char **argv) {
    static const int lengths[] = {0, 1, 13, 5000};
    MPI_Init(&argc, &argv);
    int size = size_of(MPI_COMM_WORLD), me = rank_in(MPI_COMM_WORLD);
    enum { LONG = 131073 }; /* a MiB and one element */
    int64_t *mine = calloc(LONG + size, sizeof *mine), *all = calloc((size_t)LONG + 5002 * size, sizeof *all);
    MPI_Comm comms[2];
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    /* Neighbours are on different nodes, and nodes have different numbers of ranks. */
    MPI_Comm_split(MPI_COMM_WORLD, me == size - 1, me % 4 * size + me, &comms[1]);
    for (int c = 0; c < 2; c++)
        for (int l = 0; l < 4; l++) {
            for (int root = 0; root < size_of(comms[c]); root++) rooted(comms[c], root, lengths[l], mine, all);
            to_all(comms[c], lengths[l], mine, all);
            expect(MPI_Barrier(comms[c]) == MPI_SUCCESS, "barrier");
        }
    for (int root = 0; root < size_of(comms[1]); root++) segments(comms[1], root, LONG, mine, all);
    MPI_Comm_free(&comms[0]);
    MPI_Comm_free(&comms[1]);
    free(mine), free(all);
    return finish("levels");
}
