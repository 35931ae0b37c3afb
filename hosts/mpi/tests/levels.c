/*
 * levels [disagree]: each collective on many ranks on several nodes: few lengths, each root. disagree: the last rank
 * and the root, which are on different nodes, pass different lengths of a block.
 */
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

/* Blocks of n numbers or half as many, by rank, with gaps; returns the numbers from the first block's start to the
 * end. */
static int lay_out(int n, int size, int *counts, int *starts) {
    int end = 0;
    for (int r = 0; r < size; r++) counts[r] = r % 2 ? n : n / 2, starts[r] = end, end += counts[r] + r % 3;
    return end;
}

/* Only the root knows all lengths. */
static void rooted_varying(MPI_Comm comm, int root, int n, int64_t *mine, int64_t *all) {
    int me = rank_in(comm), size = size_of(comm), counts[64], starts[64], end = lay_out(n, size, counts, starts);
    int own = counts[me], *at_root = me == root ? counts : NULL, *from = me == root ? starts : NULL;
    for (int in_place = 0; in_place < 2; in_place++) {
        bool stays = in_place && me == root;
        for (int i = 0; i < end && me == root; i++) all[i] = -1;
        for (int i = 0; i < own; i++) (stays ? all + starts[me] : mine)[i] = number(me, i);
        MPI_Gatherv(stays ? MPI_IN_PLACE : mine, own, MPI_INT64_T, all, at_root, from, MPI_INT64_T, root, comm);
        for (int r = 0; r < size && me == root; r++) {
            for (int i = 0; i < counts[r]; i++) same(all + starts[r] + i, number(r, i), "gatherv", i);
            for (int i = 0; i < r % 3; i++) same(all + starts[r] + counts[r] + i, -1, "gatherv's gap", i);
        }
        for (int i = 0; i < own; i++) mine[i] = -2;
        MPI_Scatterv(all, at_root, from, MPI_INT64_T, stays ? MPI_IN_PLACE : mine, own, MPI_INT64_T, root, comm);
        for (int i = 0; i < own; i++) same(mine + i, stays ? -2 : number(me, i), "scatterv", i);
    }
}

/* Blocks of n numbers for each rank; then of lengths that are equal in both directions, as in place requires; some are
 * empty. */
static void to_each(MPI_Comm comm, int n, int64_t *mine, int64_t *all) {
    int me = rank_in(comm), size = size_of(comm), counts[64], starts[64], end = 0;
    for (int form = 0; form < 4; form++) {
        bool in_place = form & 1, varies = form & 2;
        for (int r = end = 0; r < size; r++) {
            counts[r] = !varies ? n : (me + r) % 4 == 0 ? 0 : (me + r) % 2 ? n : n / 2;
            starts[r] = end, end += counts[r] + (varies ? r % 3 : 0);
        }
        int64_t *from = in_place ? all : mine;
        for (int i = 0; i < end; i++) all[i] = -1;
        for (int r = 0; r < size; r++)
            for (int i = 0; i < counts[r]; i++) from[starts[r] + i] = number(me * size + r, i);
        void *send = in_place ? MPI_IN_PLACE : mine;
        if (varies) MPI_Alltoallv(send, counts, starts, MPI_INT64_T, all, counts, starts, MPI_INT64_T, comm);
        else MPI_Alltoall(send, n, MPI_INT64_T, all, n, MPI_INT64_T, comm);
        for (int r = 0; r < size; r++) {
            for (int i = 0; i < counts[r]; i++)
                same(all + starts[r] + i, number(r * size + me, i), varies ? "alltoallv" : "alltoall", i);
            for (int i = 0; i < r % 3 && varies; i++) same(all + starts[r] + counts[r] + i, -1, "alltoallv's gap", i);
        }
    }
}

static void to_all(MPI_Comm comm, int n, int64_t *mine, int64_t *all) {
    int me = rank_in(comm), size = size_of(comm), counts[64], starts[64];
    for (int i = 0; i < n; i++) all[i] = number(me, i);
    MPI_Allreduce(MPI_IN_PLACE, all, n, MPI_INT64_T, MPI_MAX, comm);
    for (int i = 0; i < n; i++) same(all + i, number(size - 1, i), "allreduce", i);
    for (int i = 0; i < n; i++) mine[i] = number(me, i);
    MPI_Allgather(mine, n, MPI_INT64_T, all, n, MPI_INT64_T, comm);
    for (int i = 0; i < n * size; i++) same(all + i, number(i / (n ? n : 1), i % (n ? n : 1)), "allgather", i);
    lay_out(n, size, counts, starts);
    memset(all, 0, sizeof *all * (n + 2) * size);
    MPI_Allgatherv(mine, counts[me], MPI_INT64_T, all, counts, starts, MPI_INT64_T, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < counts[r]; i++) same(all + starts[r] + i, number(r, i), "allgatherv", i);
}

/* The sum of ranks 0 .. below's i-th numbers. */
static int64_t sum_of(int below, int i) {
    int64_t sum = 0;
    for (int r = 0; r < below; r++) sum += number(r, i);
    return sum;
}

/* Scans, and folds by blocks of n or half as many numbers, every third of them empty. */
static void prefixes_and_blocks(MPI_Comm comm, int n, int64_t *mine, int64_t *all) {
    int me = rank_in(comm), size = size_of(comm), counts[64], before = 0, end = 0;
    for (int r = 0; r < size; r++) {
        counts[r] = r % 3 == 2 ? 0 : r % 2 ? n : n / 2;
        before += r < me ? counts[r] : 0, end += counts[r];
    }
    for (int in_place = 0; in_place < 2; in_place++) {
        void *send = in_place ? MPI_IN_PLACE : mine;
        int64_t *from = in_place ? all : mine;
        for (int form = 0; form < 4; form++) {
            int elements = form < 2 ? n : form == 2 ? end : n * size, first = form < 2 ? 0 : form == 2 ? before : n * me;
            int results = form == 2 ? counts[me] : n, below = form == 0 ? me + 1 : form == 1 ? me : size;
            for (int i = 0; i <= results; i++) all[i] = -1;
            for (int i = 0; i < elements; i++) from[i] = number(me, i);
            switch (form) {
            case 0: MPI_Scan(send, all, n, MPI_INT64_T, MPI_SUM, comm); break;
            case 1: MPI_Exscan(send, all, n, MPI_INT64_T, MPI_SUM, comm); break;
            case 2: MPI_Reduce_scatter(send, all, counts, MPI_INT64_T, MPI_SUM, comm); break;
            default: MPI_Reduce_scatter_block(send, all, n, MPI_INT64_T, MPI_SUM, comm); break;
            }
            static const char *const names[] = {"scan", "exscan", "reduce_scatter", "reduce_scatter_block"};
            for (int i = 0; i < results && below; i++) same(all + i, sum_of(below, first + i), names[form], i);
            if (!in_place) same(all + results, -1, "what is after the result", results);
        }
    }
}

/* An alltoallw: from every second number into a row, and in place. Some blocks are empty. */
static void to_each_typed(MPI_Comm comm, int n, int64_t *mine, int64_t *all) {
    int me = rank_in(comm), size = size_of(comm), counts[64], rows[64], columns[64];
    MPI_Datatype second, apart[64], row[64];
    MPI_Type_create_resized(MPI_INT64_T, 0, 2 * sizeof(int64_t), &second);
    MPI_Type_commit(&second);
    for (int r = 0, end = 0; r < size; end += counts[r++]) {
        counts[r] = (me + r) % 4 == 0 ? 0 : (me + r) % 2 ? n : n / 2;
        /* The blocks lie in each other's holes: the odd ones behind the even ones. */
        columns[r] = (int)sizeof(int64_t) * (r / 2 * 2 * n + r % 2);
        rows[r] = (int)sizeof(int64_t) * end, apart[r] = second, row[r] = MPI_INT64_T;
    }
    for (int in_place = 0; in_place < 2; in_place++) {
        for (int i = 0; i < n * (size + 1); i++) mine[i] = all[i] = -1;
        for (int r = 0; r < size; r++)
            for (int i = 0; i < counts[r]; i++) mine[columns[r] / 8 + 2 * i] = number(me * size + r, i);
        if (in_place) MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, mine, counts, columns, apart, comm);
        else MPI_Alltoallw(mine, counts, columns, apart, all, counts, rows, row, comm);
        for (int r = 0; r < size; r++)
            for (int i = 0; i < counts[r]; i++) {
                int64_t *got = in_place ? mine + columns[r] / 8 + 2 * i : all + rows[r] / 8 + i;
                same(got, number(r * size + me, i), "alltoallw", i);
            }
    }
    MPI_Type_free(&second);
}

static void refused(int code, const char *what) {
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    expect(class == MPI_ERR_TRUNCATE, "%s: error class %d, not MPI_ERR_TRUNCATE", what, class);
}

static void disagree(int64_t *mine, int64_t *all) {
    int me = rank_in(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD), counts[64], starts[64], code;
    int own = me == size - 1 ? 2 : 1;
    MPI_Comm comms[2];
    for (int i = 0; i < 2; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]), MPI_Comm_set_errhandler(comms[i], MPI_ERRORS_RETURN);
    for (int r = 0; r < size; r++) counts[r] = 1, starts[r] = r;
    code = MPI_Gatherv(mine, own, MPI_INT64_T, all, counts, starts, MPI_INT64_T, 0, comms[0]);
    if (me == 0) refused(code, "gatherv of a block that is longer than the root expects");
    code = MPI_Scatterv(all, counts, starts, MPI_INT64_T, mine, own, MPI_INT64_T, 0, comms[1]);
    if (me == size - 1) refused(code, "scatterv to a rank that expects more");
    /* Communicators that failed are not freed. */
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Several segments of a long message, the last one short. */
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
    size_t room = (size_t)LONG + 5002 * size;
    int64_t *mine = calloc(room, sizeof *mine), *all = calloc(room, sizeof *all);
    MPI_Comm comms[2];
    if (argc > 1) {
        disagree(mine, all);
        return finish("levels, disagree");
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    /* Neighbours are on different nodes, and nodes have different numbers of ranks. */
    MPI_Comm_split(MPI_COMM_WORLD, me == size - 1, me % 4 * size + me, &comms[1]);
    for (int c = 0; c < 2; c++)
        for (int l = 0; l < 4; l++) {
            for (int root = 0; root < size_of(comms[c]); root++) {
                rooted(comms[c], root, lengths[l], mine, all);
                rooted_varying(comms[c], root, lengths[l], mine, all);
            }
            to_each(comms[c], lengths[l], mine, all);
            to_all(comms[c], lengths[l], mine, all);
            prefixes_and_blocks(comms[c], lengths[l], mine, all);
            to_each_typed(comms[c], lengths[l], mine, all);
            expect(MPI_Barrier(comms[c]) == MPI_SUCCESS, "barrier");
        }
    for (int root = 0; root < size_of(comms[1]); root++) segments(comms[1], root, LONG, mine, all);
    MPI_Comm_free(&comms[0]);
    MPI_Comm_free(&comms[1]);
    free(mine), free(all);
    return finish("levels");
}
