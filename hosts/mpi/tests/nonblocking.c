/*
 * nonblocking [mismatch]: nonblocking collectives beside messages, blocking collectives, other communicators and threads, and what a
 * program may free before they are complete. An alarm ends a run that hangs. mismatch: ranks whose lengths differ get an error,
 * which MPIs do not notice.
 */
#include "test.h"

#include <pthread.h>
#include <unistd.h>

enum { LIMIT_S = 100, MANY = 24, LONG = 30000 };

static int me, size;

static long sum_of_ranks(long factor) { return factor * size * (size + 1) / 2; }

/* A collective of each kind, on different communicators, with a message in between. */
struct flight {
    MPI_Request requests[MANY + 2];
    long sent[MANY][LONG / 8], got[MANY][LONG / 8];
    int token[2], length[MANY];
};

static void start(struct flight *f, MPI_Comm first, MPI_Comm second) {
    for (int i = 0; i < MANY; i++) {
        MPI_Comm comm = i % 3 ? first : second;
        f->length[i] = i % 4 ? i + 1 : LONG / 8 / size;
        for (int k = 0; k < f->length[i]; k++) f->sent[i][k] = (me + 1) * (i + 1) + k, f->got[i][k] = -1;
        switch (i % 4) {
        case 0: MPI_Iallgather(f->sent[i], f->length[i], MPI_LONG, f->got[i], f->length[i], MPI_LONG, comm, &f->requests[i]); break;
        case 1: MPI_Iallreduce(f->sent[i], f->got[i], f->length[i], MPI_LONG, MPI_SUM, comm, &f->requests[i]); break;
        case 2:
            if (me == i % size) memcpy(f->got[i], f->sent[i], f->length[i] * sizeof(long));
            MPI_Ibcast(f->got[i], f->length[i], MPI_LONG, i % size, comm, &f->requests[i]);
            break;
        default: MPI_Ireduce(f->sent[i], f->got[i], f->length[i], MPI_LONG, MPI_SUM, i % size, comm, &f->requests[i]);
        }
    }
    f->token[0] = me, f->token[1] = -1;
    MPI_Irecv(&f->token[1], 1, MPI_INT, (me + size - 1) % size, 5, first, &f->requests[MANY]);
    MPI_Isend(&f->token[0], 1, MPI_INT, (me + 1) % size, 5, first, &f->requests[MANY + 1]);
}

static void check(const struct flight *f, const char *how) {
    for (int i = 0; i < MANY; i++) {
        for (int k = 0; k < f->length[i]; k++) {
            long sum = sum_of_ranks(i + 1) + (long)k * size, wanted = sum;
            if (i % 4 == 2) wanted = (i % size + 1) * (i + 1) + k;
            if (i % 4 == 0) wanted = (me + 1) * (i + 1) + k;
            if (i % 4 == 3 && me != i % size) wanted = -1;
            long got = i % 4 == 0 ? f->got[i][me * f->length[i] + k] : f->got[i][k];
            if (!expect(got == wanted, "%s: call %d has %ld at %d, not %ld", how, i, got, k, wanted)) return;
        }
        if (i % 4 == 0)
            for (int r = 0; r < size; r++)
                expect(f->got[i][r * f->length[i]] == (r + 1) * (i + 1), "%s: allgather %d has %ld of rank %d", how, i,
                       f->got[i][r * f->length[i]], r);
    }
    expect(f->token[1] == (me + size - 1) % size, "%s: a message has %d", how, f->token[1]);
    for (int i = 0; i < MANY + 2; i++) expect(f->requests[i] == MPI_REQUEST_NULL, "%s: request %d is left", how, i);
}

/* Every rank completes them in another order. */
static void complete(struct flight *f, int how) {
    enum { ALL = MANY + 2 };
    MPI_Status status, statuses[ALL];
    int indices[ALL], done = 0, count, index;
    switch (how) {
    case 0: MPI_Waitall(ALL, f->requests, statuses); break;
    case 1:
        for (int i = 0; i < ALL; i++) MPI_Wait(&f->requests[(i * 7 + me) % ALL], &status);
        break;
    case 2:
        for (int left = ALL; left; left--) MPI_Waitany(ALL, f->requests, &index, &status);
        break;
    case 3:
        for (int left = ALL; left; left -= count) MPI_Waitsome(ALL, f->requests, &count, indices, statuses);
        break;
    case 4:
        while (!done) MPI_Testall(ALL, f->requests, &done, statuses);
        break;
    case 5:
        for (int left = ALL; left; left -= done) MPI_Testany(ALL, f->requests, &index, &done, &status);
        break;
    case 6:
        for (int left = ALL; left; left -= count) MPI_Testsome(ALL, f->requests, &count, indices, statuses);
        break;
    default:
        for (int i = ALL; i-- > 0; MPI_Wait(&f->requests[i], &status))
            for (done = 0; !done;) MPI_Request_get_status(f->requests[i], &done, &status);
    }
}

static void many(MPI_Comm other) {
    static const char *const names[] = {"Waitall", "Wait", "Waitany", "Waitsome", "Testall", "Testany", "Testsome", "Request_get_status"};
    static struct flight flight;
    for (int turn = 0; turn < 16; turn++) {
        start(&flight, MPI_COMM_WORLD, other);
        complete(&flight, (turn + me) % 8);
        check(&flight, names[(turn + me) % 8]);
    }
}

/* Types, lists and communicators that are freed, or written, as soon as MPI allows it. */
static void freed(void) {
    MPI_Comm comm;
    MPI_Datatype pairs;
    MPI_Request requests[3];
    MPI_Status statuses[3]; /* MPICH's header says that ignored ones are written */
    int mine[3] = {me, me + 100, -7}, *all = allocate(sizeof(int) * 8 * size), sum = 0;
    int *counts = allocate(sizeof(int) * size), *starts = allocate(sizeof(int) * size);
    for (int round = 0; round < 8; round++) {
        for (int i = 0; i < 8 * size; i++) all[i] = -1;
        for (int r = 0; r < size; r++) counts[r] = 1, starts[r] = size - 1 - r;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Barrier(comm);
        MPI_Type_vector(2, 1, 3, MPI_INT, &pairs);
        MPI_Datatype wide;
        MPI_Type_create_resized(pairs, 0, 8 * sizeof(int), &wide);
        MPI_Type_commit(&wide);
        MPI_Iallgatherv(mine, 2, MPI_INT, all, counts, starts, wide, comm, &requests[0]);
        MPI_Iallreduce(&mine[0], &sum, 1, MPI_INT, MPI_SUM, comm, &requests[1]);
        MPI_Ibarrier(comm, &requests[2]);
        MPI_Type_free(&wide);
        MPI_Type_free(&pairs);
        MPI_Comm_free(&comm);
        MPI_Waitall(3, requests, statuses);
        for (int r = 0; r < size; r++) {
            const int *at = all + 8 * (size - 1 - r);
            expect(at[0] == r && at[3] == r + 100, "freed: block %d has %d, %d", r, at[0], at[3]);
            expect(at[1] == -1 && at[2] == -1 && at[4] == -1, "freed: a hole of block %d was written", r);
        }
        expect(sum == size * (size - 1) / 2, "freed: allreduce is %d", sum);
    }
    free(all), free(counts), free(starts);
}

/* Rank 0 waits for something else in the MPI, which comes only after its collective was moved. */
static void moved(MPI_Comm other) {
    MPI_Request request;
    MPI_Comm comm;
    int token = 0, sum, one = 1;
    for (int round = 0; round < 20; round++) {
        MPI_Ibarrier(other, &request);
        if (me) MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (me == size - 1) MPI_Send(&round, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
        if (!me) MPI_Recv(&token, 1, MPI_INT, size - 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!me) MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect(me || token == round, "moved: a message has %d", token);
    }
    MPI_Ibarrier(other, &request);
    if (me) MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_dup(other, &comm);
    if (!me) MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int round = 0; round < 50; round++) {
        sum = -1;
        MPI_Ibarrier(comm, &request);
        if (me) MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (!me) MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect(sum == size, "moved: allreduce is %d", sum);
    }
    MPI_Comm_free(&comm);
}

/* A blocking call on the communicator completes what was started before it. */
static void in_order(MPI_Comm comm) {
    for (int round = 0; round < 50; round++) {
        long early = -1, late = -1, mine = me + 1 + round;
        MPI_Request request;
        MPI_Iallreduce(&mine, &early, 1, MPI_LONG, MPI_SUM, comm, &request);
        MPI_Allreduce(&mine, &late, 1, MPI_LONG, MPI_MAX, comm);
        expect(late == size + round, "in order: the blocking one is %ld", late);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect(early == sum_of_ranks(1) + (long)size * round, "in order: the nonblocking one is %ld", early);
    }
}

static void *waits(void *of) {
    MPI_Wait(of, MPI_STATUS_IGNORE);
    return NULL;
}

/* One thread waits for a request while another one calls blocking collectives on the same communicator. */
static void threads(MPI_Comm comm) {
    for (int round = 0; round < 30; round++) {
        long early = -1, late = -1, mine = me + 1;
        MPI_Request request;
        pthread_t thread;
        MPI_Iallreduce(&mine, &early, 1, MPI_LONG, MPI_SUM, comm, &request);
        pthread_create(&thread, NULL, waits, &request);
        for (int i = 0; i < 20; i++) MPI_Allreduce(&mine, &late, 1, MPI_LONG, MPI_SUM, comm);
        pthread_join(thread, NULL);
        expect(early == sum_of_ranks(1) && late == early, "threads: %ld and %ld", early, late);
    }
}

static void *waits_and_sends(void *of) {
    MPI_Wait(of, MPI_STATUS_IGNORE);
    MPI_Send(NULL, 0, MPI_INT, 1, 11, MPI_COMM_WORLD);
    return NULL;
}

/* Rank 0 waits in a blocking collective for rank 1, which comes when a thread of rank 0 has seen that an earlier one is complete. */
static void seen(MPI_Comm comm) {
    if (size < 2) return;
    for (int round = 0; round < 30; round++) {
        long early = -1, late = -1, mine = me + 1;
        MPI_Request request;
        pthread_t thread;
        MPI_Iallreduce(&mine, &early, 1, MPI_LONG, MPI_SUM, comm, &request);
        if (!me) pthread_create(&thread, NULL, waits_and_sends, &request);
        else MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (me == 1) MPI_Recv(NULL, 0, MPI_INT, 0, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Allreduce(&mine, &late, 1, MPI_LONG, MPI_SUM, comm);
        if (!me) pthread_join(thread, NULL);
        expect(early == sum_of_ranks(1) && late == early, "seen: %ld and %ld", early, late);
    }
}

/* The map x -> a x + b of numbers modulo 2^32; the order of maps counts. */
struct map {
    unsigned a, hole, b;
};

static MPI_Datatype maps;
static bool strange; /* a function got another datatype than the program's */

static void follow(void *first, void *then, int *count, MPI_Datatype *type) {
    struct map *left = first, *right = then;
    strange |= *type != maps;
    for (int i = 0; i < *count; i++) {
        struct map both = {left[i].a * right[i].a, right[i].hole, right[i].a * left[i].b + right[i].b};
        right[i] = both;
    }
}

static struct map map_of(int rank, int round) { return (struct map){2 * rank + 3, 77, rank * round + 1}; }

/* Reductions by the program's own operation, whose handle and whose type's it frees at once. */
static void operations(MPI_Comm comm) {
    enum { ROUNDS = 30, FLIGHT = 3 };
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Op op;
        MPI_Request requests[FLIGHT];
        MPI_Status statuses[FLIGHT];
        struct map mine[2] = {map_of(me, round), map_of(me, round + 1)}, all[2] = {{0}}, scanned[2] = {{0}}, one[2] = {{0}};
        int words[] = {0, 2}, commutes = 0;
        MPI_Datatype pair;
        MPI_Type_create_indexed_block(2, 1, words, MPI_UNSIGNED, &pair);
        MPI_Type_create_resized(pair, 0, sizeof(struct map), &maps);
        MPI_Type_commit(&maps);
        MPI_Type_free(&pair);
        MPI_Op_create(follow, commutes, &op);
        MPI_Datatype kept = maps;
        MPI_Iallreduce(mine, all, 2, maps, op, comm, &requests[0]);
        MPI_Iscan(mine, scanned, 2, maps, op, comm, &requests[1]);
        MPI_Ireduce(mine, one, 2, maps, op, round % size, comm, &requests[2]);
        MPI_Op_free(&op);
        MPI_Type_free(&kept);
        expect(op == MPI_OP_NULL && kept == MPI_DATATYPE_NULL, "operations: a freed handle is left");
        MPI_Waitall(FLIGHT, requests, statuses);
        for (int i = 0; i < 2; i++) {
            struct map whole = map_of(0, round + i), to_me = whole;
            for (int r = 1; r < size; r++) {
                struct map next = map_of(r, round + i);
                whole = (struct map){whole.a * next.a, 0, next.a * whole.b + next.b};
                if (r == me) to_me = whole;
            }
            expect(all[i].a == whole.a && all[i].b == whole.b, "operations: allreduce has %u %u", all[i].a, all[i].b);
            expect(scanned[i].a == to_me.a && scanned[i].b == to_me.b, "operations: scan has %u %u", scanned[i].a, scanned[i].b);
            expect(me != round % size || (one[i].a == whole.a && one[i].b == whole.b), "operations: reduce has %u %u", one[i].a, one[i].b);
            expect(!all[i].hole && !scanned[i].hole, "operations: a hole was written");
        }
    }
    expect(!strange, "operations: another datatype than the program's");
}

static void cancelled(MPI_Comm comm) {
    MPI_Request request;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Ibarrier(comm, &request);
    expect(MPI_Cancel(&request) != MPI_SUCCESS, "a nonblocking collective was cancelled");
    expect(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "cancelled: the barrier has failed");
}

static void mismatch(MPI_Comm comm) {
    MPI_Request request;
    int *mine = calloc(64, sizeof *mine), *all = calloc(64 * size, sizeof *all);
    int code = MPI_Iallgather(mine, me ? 8 : 9, MPI_INT, all, me ? 8 : 9, MPI_INT, comm, &request), class = 0;
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
    expect(class == MPI_ERR_TRUNCATE || class == MPI_ERR_OTHER, "lengths that differ: class %d", class);
    free(mine), free(all);
}

int main(int argc, char **argv) {
    int level;
    MPI_Comm other;
    alarm(LIMIT_S);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    me = rank_in(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - me, &other);
    /* A rank that is still in the barrier when others' calls fail hears of it there. */
    if (argc > 1) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
    /* The first blocking collectives: from here on nonblocking ones are taken over. */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(other);
    if (argc > 1) {
        mismatch(other);
        return finish("nonblocking");
    }
    MPI_Comm_free(&other);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Barrier(other);
    many(other);
    freed();
    moved(other);
    in_order(other);
    operations(other);
    if (level == MPI_THREAD_MULTIPLE) threads(other), seen(other);
    cancelled(other);
    MPI_Comm_free(&other);
    return finish("nonblocking");
}
