/*
 * Persistent collectives, started again and again, by ranks in different orders, beside messages and other collectives; what the
 * functions that start and complete requests do with them. Open MPI 4 has them by names with MPIX.
 */
#include "test.h"

#if defined OPEN_MPI && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define INIT(name) MPIX_##name##_init
#else
#define INIT(name) MPI_##name##_init
#endif

enum { MOST = 8, WORDS = 700, ROUNDS = 6 };

static int rank, ranks;

/* Word `i` of what a rank sends in a round. */
static int word(int from, int round, int i) { return 100000 * from + 1000 * round + i; }

static void fill(int *words, int count, int round) {
    for (int i = 0; i < count; i++) words[i] = word(rank, round, i);
}

/* As many words as a rank sends: none of some. */
static int length(int of) { return of % 3 == 1 ? 0 : 10 * of + 7; }

/* ---- All of them at once ---------------------------------------------------------------------------------------- */

static struct {
    int bcast[WORDS], sum[WORDS], all_sum[WORDS], scan[WORDS], exscan[WORDS], mine[WORDS], gathered[MOST * WORDS], everywhere[MOST * WORDS],
        gathered_v[MOST * WORDS], everywhere_v[MOST * WORDS], spread[MOST * WORDS], part[WORDS], spread_v[MOST * WORDS], part_v[WORDS],
        out[MOST * WORDS], in[MOST * WORDS], out_v[MOST * WORDS], in_v[MOST * WORDS], out_w[MOST * WORDS], in_w[MOST * WORDS], scattered[WORDS],
        scattered_block[WORDS];
} d;

/* Lists as they are, and as they are given to the MPI. */
struct lists {
    int counts[MOST], starts[MOST], equal[MOST], apart[MOST], typed[MOST], bytes[MOST];
    MPI_Datatype types[MOST];
};
static struct lists list, given;

enum { OPERATIONS = 17 };

static void make(MPI_Comm comm, MPI_Request *made) {
    int at = 0, root = ranks - 1;
    MPI_Datatype pairs;
    for (int r = 0, sum = 0; r < ranks; r++) {
        list.counts[r] = length(r), list.starts[r] = sum, sum += length(r) + 1;
        list.equal[r] = 5, list.apart[r] = 7 * r, list.bytes[r] = r * WORDS * (int)sizeof(int);
    }
    MPI_Type_vector(5, 1, 2, MPI_INT, &pairs); /* every second word */
    MPI_Type_commit(&pairs);
    for (int r = 0; r < ranks; r++) list.types[r] = r % 2 ? pairs : MPI_INT;
    for (int r = 0; r < ranks; r++) list.typed[r] = r % 2 ? 1 : 5;
    given = list;
    INIT(Barrier)(comm, MPI_INFO_NULL, &made[at++]);
    INIT(Bcast)(d.bcast, 1, pairs, root, comm, MPI_INFO_NULL, &made[at++]);
    INIT(Reduce)(d.mine, d.sum, WORDS, MPI_INT, MPI_SUM, root, comm, MPI_INFO_NULL, &made[at++]);
    INIT(Allreduce)(d.mine, d.all_sum, WORDS, MPI_INT, MPI_MAX, comm, MPI_INFO_NULL, &made[at++]);
    INIT(Gather)(d.mine, 20, MPI_INT, d.gathered, 20, MPI_INT, 0, comm, MPI_INFO_NULL, &made[at++]);
    INIT(Gatherv)(d.mine, length(rank), MPI_INT, d.gathered_v, given.counts, given.starts, MPI_INT, 0, comm, MPI_INFO_NULL, &made[at++]);
    INIT(Scatter)(d.spread, 30, MPI_INT, d.part, 30, MPI_INT, root, comm, MPI_INFO_NULL, &made[at++]);
    INIT(Scatterv)(d.spread_v, given.counts, given.starts, MPI_INT, d.part_v, length(rank), MPI_INT, root, comm, MPI_INFO_NULL, &made[at++]);
    INIT(Allgather)(d.mine, 9, MPI_INT, d.everywhere, 9, MPI_INT, comm, MPI_INFO_NULL, &made[at++]);
    INIT(Allgatherv)(d.mine, length(rank), MPI_INT, d.everywhere_v, given.counts, given.starts, MPI_INT, comm, MPI_INFO_NULL, &made[at++]);
    INIT(Alltoall)(d.out, 11, MPI_INT, d.in, 11, MPI_INT, comm, MPI_INFO_NULL, &made[at++]);
    INIT(Alltoallv)(d.out_v, given.equal, given.apart, MPI_INT, d.in_v, given.equal, given.apart, MPI_INT, comm, MPI_INFO_NULL, &made[at++]);
    INIT(Alltoallw)(d.out_w, given.typed, given.bytes, given.types, d.in_w, given.typed, given.bytes, given.types, comm, MPI_INFO_NULL, &made[at++]);
    INIT(Reduce_scatter)(d.out, d.scattered, given.counts, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &made[at++]);
    INIT(Reduce_scatter_block)(d.out, d.scattered_block, 4, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &made[at++]);
    INIT(Scan)(d.mine, d.scan, 3, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &made[at++]);
    INIT(Exscan)(d.mine, d.exscan, 3, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &made[at++]);
    MPI_Type_free(&pairs);
    /* MPIs copy the lists, and programs rely on that: the calls must not see them any more. */
    for (int r = 0; r < MOST; r++) given.counts[r] = given.starts[r] = given.equal[r] = given.apart[r] = given.typed[r] = given.bytes[r] = -7;
}

static void set(int round) {
    fill(d.mine, WORDS, round), fill(d.bcast, WORDS, round), fill(d.spread, MOST * 30, round), fill(d.spread_v, MOST * WORDS, round);
    fill(d.out, MOST * WORDS, round), fill(d.out_v, MOST * WORDS, round), fill(d.out_w, MOST * WORDS, round);
}

/* The sum of word `i` of ranks below `end`. */
static int sum_of(int end, int round, int i) {
    int sum = 0;
    for (int r = 0; r < end; r++) sum += word(r, round, i);
    return sum;
}

static bool are(const int *words, int count, int from, int round, int first) {
    for (int i = 0; i < count; i++)
        if (words[i] != word(from, round, first + i)) return false;
    return true;
}

static void look(int round) {
    int root = ranks - 1;
    bool right = true;
    for (int i = 0; i < 9; i += 2) right = right && d.bcast[i] == word(root, round, i); /* words between them stay */
    for (int i = 1; i < 9; i += 2) right = right && d.bcast[i] == word(rank, round, i);
    expect(right, "rank %d, round %d: bcast", rank, round);
    for (int i = 0; i < WORDS; i++) {
        expect(rank != root || d.sum[i] == sum_of(ranks, round, i), "rank %d, round %d: reduce", rank, round);
        expect(d.all_sum[i] == word(root, round, i), "rank %d, round %d: allreduce", rank, round);
    }
    for (int r = 0; r < ranks; r++) {
        expect(rank || are(d.gathered + 20 * r, 20, r, round, 0), "rank %d, round %d: gather from %d", rank, round, r);
        expect(rank || are(d.gathered_v + list.starts[r], length(r), r, round, 0), "rank %d, round %d: gatherv from %d", rank, round, r);
        expect(are(d.everywhere + 9 * r, 9, r, round, 0), "rank %d, round %d: allgather from %d", rank, round, r);
        expect(are(d.everywhere_v + list.starts[r], length(r), r, round, 0), "rank %d, round %d: allgatherv from %d", rank, round, r);
        expect(are(d.in + 11 * r, 11, r, round, 11 * rank), "rank %d, round %d: alltoall from %d", rank, round, r);
        expect(are(d.in_v + list.apart[r], 5, r, round, list.apart[rank]), "rank %d, round %d: alltoallv from %d", rank, round, r);
        for (int i = 0; i < 5; i++) {
            int from = (rank % 2 ? 2 : 1) * i, to = (r % 2 ? 2 : 1) * i;
            expect(d.in_w[WORDS * r + to] == word(r, round, WORDS * rank + from), "rank %d, round %d: alltoallw from %d", rank, round, r);
        }
    }
    expect(are(d.part, 30, root, round, 30 * rank), "rank %d, round %d: scatter", rank, round);
    expect(are(d.part_v, length(rank), root, round, list.starts[rank]), "rank %d, round %d: scatterv", rank, round);
    for (int i = 0, first = 0; i < length(rank); i++) {
        first = 0;
        for (int r = 0; r < rank; r++) first += length(r);
        expect(d.scattered[i] == sum_of(ranks, round, first + i), "rank %d, round %d: reduce_scatter", rank, round);
    }
    for (int i = 0; i < 4; i++)
        expect(d.scattered_block[i] == sum_of(ranks, round, 4 * rank + i), "rank %d, round %d: reduce_scatter_block", rank, round);
    for (int i = 0; i < 3; i++) {
        expect(d.scan[i] == sum_of(rank + 1, round, i), "rank %d, round %d: scan", rank, round);
        expect(!rank || d.exscan[i] == sum_of(rank, round, i), "rank %d, round %d: exscan", rank, round);
    }
}

/* Completes all requests, by another function in each round. */
static void complete(int count, MPI_Request *requests, int round) {
    int done = 0, index, completed, indices[OPERATIONS + 2];
    MPI_Status status, statuses[OPERATIONS + 2];
    switch (round % 6) {
    case 0: MPI_Waitall(count, requests, statuses); break;
    case 1:
        while (!done) MPI_Testall(count, requests, &done, statuses);
        break;
    case 2:
        for (int i = count; i--;) MPI_Wait(&requests[i], &status);
        break;
    case 3:
        for (int i = 0; i < count; i++) {
            MPI_Waitany(count, requests, &index, &status);
            expect(index >= 0 && index < count, "rank %d: waitany", rank);
        }
        MPI_Waitany(count, requests, &index, &status);
        expect(index == MPI_UNDEFINED, "rank %d: a waitany of inactive ones", rank);
        break;
    case 4:
        for (int left = count; left > 0; left -= completed) {
            if (left % 2) MPI_Waitsome(count, requests, &completed, indices, statuses);
            else MPI_Testsome(count, requests, &completed, indices, statuses);
            expect(completed >= 0 && completed <= left, "rank %d: %d are complete", rank, completed);
            if (completed == MPI_UNDEFINED) break;
        }
        break;
    default:
        for (int i = 0; i < count; i++) {
            for (done = 0; !done;) MPI_Request_get_status(requests[i], &done, &status);
            MPI_Test(&requests[i], &done, &status);
            expect(done, "rank %d: what is complete stays so", rank);
        }
    }
}

static void all_at_once(MPI_Comm comm) {
    MPI_Request requests[OPERATIONS + 2], made[OPERATIONS];
    int sent = 0, got = 0, next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    make(comm, made);
    MPI_Send_init(&sent, 1, MPI_INT, next, 3, comm, &requests[OPERATIONS]);
    MPI_Recv_init(&got, 1, MPI_INT, before, 3, comm, &requests[OPERATIONS + 1]);
    for (int round = 0; round < 2 * ROUNDS; round++) {
        set(round);
        sent = word(rank, round, 0), got = -1;
        /* Each rank in an order of its own. */
        for (int i = 0; i < OPERATIONS; i++) requests[i] = made[(i * (rank % 2 ? 16 : 1) + 5 * rank + round) % OPERATIONS];
        if (round < ROUNDS) {
            for (int i = 0; i < OPERATIONS + 2; i++) MPI_Start(&requests[i]);
        } else MPI_Startall(OPERATIONS + 2, requests);
        if (round % 3 == rank % 3) MPI_Barrier(MPI_COMM_SELF);
        int all = -1;
        MPI_Allreduce(&rank, &all, 1, MPI_INT, MPI_MAX, comm);
        expect(all == ranks - 1, "rank %d, round %d: a blocking one in between", rank, round);
        complete(OPERATIONS + 2, requests, round);
        for (int i = 0; i < OPERATIONS + 2; i++) expect(requests[i] != MPI_REQUEST_NULL, "rank %d: request %d is gone", rank, i);
        expect(got == word(before, round, 0), "rank %d, round %d: a message", rank, round);
        look(round);
    }
    MPI_Request_free(&requests[OPERATIONS]), MPI_Request_free(&requests[OPERATIONS + 1]);
    for (int i = OPERATIONS; i--;) {
        MPI_Request_free(&made[i]);
        expect(made[i] == MPI_REQUEST_NULL, "rank %d: a freed request", rank);
    }
}

/* ---- What else is said of requests ------------------------------------------------------------------------------- */

static void inactive(MPI_Comm comm) {
    MPI_Request request;
    MPI_Status status;
    int done = 0;
    INIT(Barrier)(comm, MPI_INFO_NULL, &request);
    MPI_Wait(&request, &status); /* returns at once */
    MPI_Test(&request, &done, &status);
    expect(done, "rank %d: a test of an inactive one", rank);
    done = 0;
    MPI_Request_get_status(request, &done, &status);
    expect(done, "rank %d: the status of an inactive one", rank);
    MPI_Start(&request);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (ranks > 1) expect(MPI_Start(&request) != MPI_SUCCESS, "rank %d: a second start", rank);
    MPI_Wait(&request, &status);
    MPI_Start(&request);
    MPI_Wait(&request, &status);
    MPI_Request_free(&request);
}

/* More than fit at once into the memory that a few take; made and freed in turn they leave nothing. */
static void many(MPI_Comm comm) {
    enum { AT_ONCE = 20, TIMES = 30 };
    MPI_Request requests[AT_ONCE];
    MPI_Status statuses[AT_ONCE];
    int values[AT_ONCE];
    for (int time = 0; time < TIMES; time++) {
        for (int i = 0; i < AT_ONCE; i++)
            INIT(Bcast)(&values[i], 1, MPI_INT, i % ranks, comm, MPI_INFO_NULL, &requests[i]);
        for (int i = 0; i < AT_ONCE; i++) values[i] = word(rank, time, i);
        MPI_Startall(AT_ONCE, requests);
        MPI_Waitall(AT_ONCE, requests, statuses);
        for (int i = 0; i < AT_ONCE; i++) {
            expect(values[i] == word(i % ranks, time, i), "rank %d: one of many", rank);
            MPI_Request_free(&requests[i]);
        }
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm other;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &other);
    MPI_Comm_rank(other, &rank);
    all_at_once(other);
    inactive(other);
    many(other);
    MPI_Comm_free(&other);
    return finish("persistent");
}
