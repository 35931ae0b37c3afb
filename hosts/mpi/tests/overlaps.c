/*
 * overlaps: receive blocks that share elements, on all ranks or on some. MPI calls that erroneous, but every MPI
 * accepts it: each element must be one of those that were sent to it, nothing else may be written, and the communicator
 * can still be used. (Open MPI's own MPI_Allgatherv forwards the contents of such blocks: there ranks without any get
 * wrong data too.)
 */
#include "test.h"

enum { MOST = 16, ROOM = 8192, JUNK = -7 };

static MPI_Comm comm;
static int me, size;

/* Element i of the block from `from` to `to`, in this round. */
static int value(int round, int from, int to, int i) { return ((round * MOST + from) * MOST + to) * ROOM + i; }

enum placing { TOGETHER, HALF, BACKWARDS, SOME, APART, PLACINGS };

/* The positions at which this rank receives blocks of `counts` elements. */
static void place(enum placing placing, const int *counts, int *starts) {
    int end = 0;
    for (int r = 0; r < size; r++) {
        int begin = size - 1 - r;
        for (int s = r + 1; s < size; s++) begin += counts[s];
        bool apart = placing == APART || (placing == SOME && me % 2);
        starts[r] = placing == BACKWARDS ? begin : apart ? end : placing == HALF ? r * counts[r] / 2 : 0;
        end += counts[r];
    }
}

/* Is each element of `got` from one of the blocks that cover it? The block from r is what r sends to `to`. */
static bool plausible(const int *got, int round, int to, const int *counts, const int *starts) {
    for (int at = 0; at < ROOM; at++) {
        bool covered = false, right = false;
        for (int r = 0; r < size; r++) {
            if (at < starts[r] || at >= starts[r] + counts[r]) continue;
            covered = true;
            right |= got[at] == value(round, r, to, at - starts[r]);
        }
        if (covered ? !right : got[at] != JUNK)
            return expect(false, "round %d: element %d is %d", round, at, got[at]);
    }
    return true;
}

static int sent[MOST * ROOM], got[ROOM], sparse[2 * ROOM];

static void blank(void) {
    for (int i = 0; i < ROOM; i++) got[i] = sparse[2 * i] = sparse[2 * i + 1] = JUNK;
}

/* All collectives with lists on the receive side. `one`: the elements of a block, to which some are added by rank. */
static void one_round(int number, enum placing placing, int one) {
    int counts[MOST], starts[MOST], sends[MOST], from[MOST], root = number % size;
    for (int r = 0; r < size; r++) counts[r] = one + (placing == HALF ? 0 : (number + r) % 3 * one / 4);
    place(placing, counts, starts);
    for (int i = 0; i < counts[me]; i++) sent[i] = value(number, me, 0, i);

    blank();
    expect(!MPI_Allgatherv(sent, counts[me], MPI_INT, got, counts, starts, MPI_INT, comm), "allgatherv: error");
    expect(plausible(got, number, 0, counts, starts), "round %d, placing %d: allgatherv", number, placing);

    blank();
    expect(!MPI_Gatherv(sent, counts[me], MPI_INT, got, counts, starts, MPI_INT, root, comm), "gatherv: error");
    if (me == root) expect(plausible(got, number, 0, counts, starts), "round %d, placing %d: gatherv", number, placing);

    /* Into every second int. */
    MPI_Datatype second;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &second);
    MPI_Type_commit(&second);
    blank();
    expect(!MPI_Allgatherv(sent, counts[me], MPI_INT, sparse, counts, starts, second, comm), "allgatherv to a vector: error");
    bool holes = true;
    for (int i = 0; i < ROOM; i++) got[i] = sparse[2 * i], holes &= sparse[2 * i + 1] == JUNK;
    expect(holes && plausible(got, number, 0, counts, starts), "round %d, placing %d: allgatherv to a vector", number, placing);
    MPI_Type_free(&second);

    for (int r = 0, at = 0; r < size; at += sends[r++]) {
        sends[r] = counts[me], from[r] = at; /* each rank gets as much as this rank's block has */
        for (int i = 0; i < sends[r]; i++) sent[at + i] = value(number, me, r, i);
    }
    blank();
    expect(!MPI_Alltoallv(sent, sends, from, MPI_INT, got, counts, starts, MPI_INT, comm), "alltoallv: error");
    expect(plausible(got, number, me, counts, starts), "round %d, placing %d: alltoallv", number, placing);

    int places[MOST], froms[MOST];
    MPI_Datatype types[MOST];
    for (int r = 0; r < size; r++) places[r] = 4 * starts[r], froms[r] = 4 * from[r], types[r] = MPI_INT;
    blank();
    expect(!MPI_Alltoallw(sent, sends, froms, types, got, counts, places, types, comm), "alltoallw: error");
    expect(plausible(got, number, me, counts, starts), "round %d, placing %d: alltoallw", number, placing);

    /* In place, a rank sends the elements that are in its block. */
    for (int r = 0; r < size; r++) counts[r] = one;
    place(placing == BACKWARDS ? BACKWARDS : TOGETHER, counts, starts);
    blank();
    for (int i = 0; i < one; i++) got[starts[me] + i] = value(number, me, 0, i);
    expect(!MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INT, got, counts, starts, MPI_INT, comm), "allgatherv in place: error");
    expect(plausible(got, number, 0, counts, starts), "round %d, placing %d: allgatherv in place", number, placing);

    int sum = 0;
    expect(!MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, comm) && sum == size * (size - 1) / 2, "allreduce after round %d", number);
}

int main(int argc, char **argv) {
    static const int lengths[] = {1, 2, 20, 700};
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    me = rank_in(comm), size = size_of(comm);
    if (size > 5) MPI_Abort(comm, 1);
    for (int i = 0; i < 4 * PLACINGS; i++) one_round(i, i % PLACINGS, lengths[i / PLACINGS]);
    MPI_Comm_free(&comm);
    return finish("overlaps");
}
