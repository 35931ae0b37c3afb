/* Nonblocking and persistent operations from C. Built and run by c.rs. */
#include "members.h"
#include <pthread.h>
#include <stdatomic.h>

enum { MOST = 5, WORDS = 3000 };

static int64_t word(uint32_t from, uint32_t to, int round) { return from * 1000 + to * 10 + round; }

/* The buffers of the collectives. */
typedef struct {
    int64_t bcast[WORDS], one[4], block[MOST], all[MOST], gathered[MOST], scattered[1], to[MOST], from[MOST];
    int64_t sum[2], part[MOST], own[1], scan[1], exscan[1], mine[1], long_sum[WORDS], wide[MOST];
} buffers;

static void fill(buffers *b, uint32_t rank, uint32_t ranks, int round) {
    memset(b->all, 0, sizeof b->all);
    memset(b->from, 0, sizeof b->from);
    memset(b->gathered, 0, sizeof b->gathered);
    b->mine[0] = word(rank, 0, round);
    b->scan[0] = b->exscan[0] = b->own[0] = -1;
    for (int i = 0; i < WORDS; i++) b->bcast[i] = rank == 0 ? word(0, 0, round) + i : -1;
    for (int i = 0; i < WORDS; i++) b->long_sum[i] = rank + round;
    for (uint32_t r = 0; r < ranks; r++) b->to[r] = b->block[r] = word(rank, r, round);
    for (uint32_t r = 0; r < ranks; r++) b->part[r] = b->wide[r] = rank + r + (uint32_t)round;
    b->sum[0] = rank, b->sum[1] = round;
}

static void right(const buffers *b, uint32_t rank, uint32_t ranks, int round) {
    int64_t ranks_sum = ranks * (ranks - 1) / 2;
    for (int i = 0; i < WORDS; i++) CHECK(b->bcast[i] == word(0, 0, round) + i);
    for (int i = 0; i < WORDS; i++) CHECK(b->long_sum[i] == ranks_sum + (int64_t)ranks * round);
    for (uint32_t r = 0; r < ranks; r++) {
        CHECK(b->all[r] == word(r, 0, round));
        CHECK(b->from[r] == word(r, rank, round));
        CHECK(b->gathered[r] == (rank == ranks - 1 ? word(r, 0, round) : 0));
    }
    CHECK(b->scattered[0] == word(0, rank, round));
    CHECK(b->sum[0] == ranks_sum && b->sum[1] == (int64_t)ranks * round);
    CHECK(b->own[0] == ranks_sum + ranks * (rank + round));
    CHECK(b->wide[0] == (rank == 0 ? ranks_sum + (int64_t)ranks * round : (int64_t)rank + round));
    CHECK(b->scan[0] == (int64_t)(rank * (rank + 1) / 2) * 1000 + (int64_t)(rank + 1) * round);
    CHECK(b->exscan[0] == (rank == 0 ? -1 : (int64_t)(rank * (rank - 1) / 2) * 1000 + (int64_t)rank * round));
}

#define SUM UNISONO_I64, UNISONO_SUM
#define START(n, call) CHECK(call == UNISONO_OK && requests[n] != NULL)

#define EACH(I, S)                                                                                     \
    START(0, unisono_##I##bcast##S(comm, b->bcast, sizeof b->bcast, 0, &requests[0]));                 \
    START(1, unisono_##I##allgather##S(comm, b->mine, b->all, 8, &requests[1]));                       \
    START(2, unisono_##I##barrier##S(comm, &requests[2]));                                             \
    START(3, unisono_##I##gather##S(comm, b->mine, b->gathered, 8, ranks - 1, &requests[3]));          \
    START(4, unisono_##I##scatter##S(comm, b->block, b->scattered, 8, 0, &requests[4]));               \
    START(5, unisono_##I##alltoall##S(comm, b->to, b->from, 8, &requests[5]));                         \
    START(6, unisono_##I##allreduce##S(comm, UNISONO_IN_PLACE, b->long_sum, WORDS, SUM, &requests[6])); \
    START(7, unisono_##I##reduce_scatter_block##S(comm, b->part, b->own, 1, SUM, &requests[7]));       \
    START(8, unisono_##I##scan##S(comm, b->mine, b->scan, 1, SUM, &requests[8]));                      \
    START(9, unisono_##I##exscan##S(comm, b->mine, b->exscan, 1, SUM, &requests[9]));                  \
    START(10, unisono_##I##allreduce##S(comm, UNISONO_IN_PLACE, b->sum, 2, SUM, &requests[10]));       \
    START(11, unisono_##I##reduce##S(comm, rank == 0 ? UNISONO_IN_PLACE : b->wide, b->wide, 1, SUM, 0, &requests[11]))

/* All collectives in flight together, completed in several orders. */
static void in_flight(unisono_comm *comm, uint32_t rank, uint32_t ranks) {
    buffers *b = malloc(sizeof *b);
    unisono_request *requests[12];
    CHECK(b != NULL);
    for (int round = 0; round < 4; round++) {
        fill(b, rank, ranks, round);
        EACH(i, );
        CHECK(unisono_free(comm) == UNISONO_ERR_REQUEST);
        SAYS("requests of the communicator is 12, must be 0");
        int done = 0;
        switch (round) {
        case 0: /* testing the last request makes progress on all */
            while (!done) CHECK(unisono_test(&requests[11], &done) == UNISONO_OK);
            CHECK(requests[11] == NULL);
            for (int n = 0; n < 11; n++) {
                CHECK(unisono_test(&requests[n], &done) == UNISONO_OK && done && requests[n] == NULL);
                CHECK(unisono_test(&requests[n], &done) == UNISONO_OK && done);
            }
            break;
        case 1: /* from the last to the first */
            for (int n = 11; n >= 0; n--) CHECK(unisono_wait(&requests[n]) == UNISONO_OK && requests[n] == NULL);
            break;
        case 2: /* a blocking call completes all of them first */
            CHECK(unisono_barrier(comm) == UNISONO_OK);
            right(b, rank, ranks, round);
            for (int n = 0; n < 12; n++) CHECK(unisono_request_free(&requests[n]) == UNISONO_OK && requests[n] == NULL);
            break;
        default: CHECK(unisono_wait_all(12, requests) == UNISONO_OK && requests[0] == NULL && requests[11] == NULL);
        }
        right(b, rank, ranks, round);
    }
    CHECK(unisono_wait_all(12, requests) == UNISONO_OK);
    free(b);
}

/* Persistent requests, started again and again. */
static void again(unisono_comm *comm, uint32_t rank, uint32_t ranks) {
    buffers *b = malloc(sizeof *b);
    unisono_request *requests[12];
    CHECK(b != NULL);
    EACH(, _init);
    for (int round = 0; round < 5; round++) {
        fill(b, rank, ranks, round);
        /* The order of the starts matters, not that of the inits. */
        for (int n = 0; n < 12; n++) CHECK(unisono_start(requests[(n + round) % 12]) == UNISONO_OK);
        int done;
        CHECK(unisono_wait_all(12, requests) == UNISONO_OK);
        for (int n = 0; n < 12; n++) {
            CHECK(requests[n] != NULL && unisono_wait(&requests[n]) == UNISONO_OK);
            CHECK(unisono_test(&requests[n], &done) == UNISONO_OK && done);
        }
        right(b, rank, ranks, round);
    }
    CHECK(unisono_free(comm) == UNISONO_ERR_REQUEST);
    for (int n = 0; n < 12; n++) CHECK(unisono_request_free(&requests[n]) == UNISONO_OK && requests[n] == NULL);
    CHECK(unisono_request_free(&requests[0]) == UNISONO_OK);
    free(b);
}

/* Counts, displacements and types on both sides: the library's own lists live as long as the request. */
static void lists(unisono_comm *comm, uint32_t rank, uint32_t ranks) {
    uint64_t counts[MOST], places[MOST], ones[MOST], starts[MOST];
    int64_t mine[MOST], all[MOST], to[MOST], from[MOST], typed[MOST], part[MOST], own[1], pair[2], pairs[2 * MOST];
    unisono_type *type, *types[MOST];
    const unisono_type *const *each = (const unisono_type *const *)types;
    unisono_request *requests[16];
    CHECK(unisono_type_vector(1, 8, 8, &type) == UNISONO_OK);
    for (uint32_t r = 0; r < ranks; r++) {
        counts[r] = 8, ones[r] = 1, types[r] = type;
        places[r] = 8 * (ranks - 1 - r), starts[r] = 8 * r;
    }
    START(0, unisono_gatherv_init(comm, mine, 8, all, counts, places, 0, &requests[0]));
    START(1, unisono_scatterv_init(comm, all, counts, places, &pair[0], 8, 0, &requests[1]));
    START(2, unisono_allgatherv_init(comm, mine, 8, all, counts, places, &requests[2]));
    START(3, unisono_alltoallv_init(comm, to, counts, starts, from, counts, places, &requests[3]));
    START(4, unisono_alltoallw_init(comm, to, ones, starts, each, typed, ones, places, each, &requests[4]));
    START(5, unisono_reduce_scatter_init(comm, part, own, ones, SUM, &requests[5]));
    START(6, unisono_bcast_typed_init(comm, &pair[1], 1, type, 0, &requests[6]));
    START(7, unisono_gather_typed_init(comm, mine, 1, type, pairs, 1, type, 0, &requests[7]));
    START(8, unisono_scatter_typed_init(comm, pairs, 1, type, &pair[0], 1, type, 0, &requests[8]));
    START(9, unisono_allgather_typed_init(comm, mine, 1, type, pairs, 1, type, &requests[9]));
    START(10, unisono_alltoall_typed_init(comm, to, 1, type, pairs, 1, type, &requests[10]));
    for (int round = 0; round < 3; round++) {
        mine[0] = word(rank, 0, round);
        pair[1] = rank == 0 ? round : -1;
        for (uint32_t r = 0; r < ranks; r++) to[r] = word(rank, r, round), part[r] = r + (uint32_t)round;
        for (int n = 0; n <= 10; n++) CHECK(unisono_start(requests[n]) == UNISONO_OK);
        CHECK(unisono_wait_all(11, requests) == UNISONO_OK);
        for (uint32_t r = 0; r < ranks; r++) {
            uint32_t back = ranks - 1 - r;
            CHECK(all[back] == word(r, 0, round) && from[back] == word(r, rank, round));
            CHECK(typed[back] == word(r, rank, round) && pairs[r] == word(r, rank, round));
        }
        CHECK(own[0] == (int64_t)ranks * (rank + round) && pair[1] == round && pair[0] == word(rank, 0, round));
    }
    for (int n = 0; n <= 10; n++) CHECK(unisono_request_free(&requests[n]) == UNISONO_OK);
    for (int n = 0; n < 11; n++) requests[n] = NULL;
    START(0, unisono_igatherv(comm, mine, 8, all, counts, places, 0, &requests[0]));
    START(1, unisono_iscatterv(comm, all, counts, places, &pair[0], 8, 0, &requests[1]));
    START(2, unisono_iallgatherv(comm, mine, 8, all, counts, places, &requests[2]));
    START(3, unisono_ialltoallv(comm, to, counts, starts, from, counts, places, &requests[3]));
    START(4, unisono_ialltoallw(comm, to, ones, starts, each, typed, ones, places, each, &requests[4]));
    START(5, unisono_ireduce_scatter(comm, part, own, ones, SUM, &requests[5]));
    START(6, unisono_ibcast_typed(comm, &pair[1], 1, type, 0, &requests[6]));
    START(7, unisono_igather_typed(comm, mine, 1, type, pairs, 1, type, 0, &requests[7]));
    START(8, unisono_iscatter_typed(comm, pairs, 1, type, &pair[0], 1, type, 0, &requests[8]));
    START(9, unisono_iallgather_typed(comm, mine, 1, type, pairs, 1, type, &requests[9]));
    START(10, unisono_ialltoall_typed(comm, to, 1, type, pairs, 1, type, &requests[10]));
    for (int n = 10; n >= 0; n--) CHECK(unisono_wait(&requests[n]) == UNISONO_OK);
    CHECK(own[0] == (int64_t)ranks * (rank + 2) && all[ranks - 1] == word(0, 0, 2));
    CHECK(typed[0] == word(ranks - 1, rank, 2));
    CHECK(unisono_type_free(type) == UNISONO_OK);
}

/* The memory of a second communicator. */
static void *shared;
static uint64_t shared_bytes;

static unisono_comm *second(uint32_t rank) {
    unisono_comm *comm;
    CHECK(unisono_attach(shared, shared_bytes, rank, &comm) == UNISONO_OK);
    return comm;
}

/* A call that a request's state does not allow changes nothing. */
static void misuse(unisono_comm *comm, uint32_t rank, uint32_t ranks) {
    int64_t x = rank == 0 ? 7 : 0;
    int done;
    unisono_request *request, *started, *none = NULL;
    CHECK(unisono_bcast_init(comm, &x, sizeof x, 0, NULL) == UNISONO_ERR_NULL);
    CHECK(unisono_ibarrier(NULL, &request) == UNISONO_ERR_NULL && request == NULL);
    CHECK(unisono_start(NULL) == UNISONO_ERR_NULL && unisono_wait(NULL) == UNISONO_ERR_NULL);
    CHECK(unisono_test(NULL, &done) == UNISONO_ERR_NULL && unisono_test(&none, NULL) == UNISONO_ERR_NULL);
    CHECK(unisono_wait(&none) == UNISONO_OK && unisono_request_free(&none) == UNISONO_OK);
    CHECK(unisono_request_free(NULL) == UNISONO_ERR_NULL && unisono_wait_all(1, NULL) == UNISONO_ERR_NULL);
    CHECK(unisono_wait_all(0, NULL) == UNISONO_OK);
    CHECK(unisono_bcast_init(comm, &x, sizeof x, 0, &request) == UNISONO_OK);
    CHECK(unisono_wait(&request) == UNISONO_OK && request != NULL); /* never started */
    CHECK(unisono_barrier_init(comm, &started) == UNISONO_OK);
    if (ranks > 1) {
        unisono_comm *other = second(rank);
        if (rank == 0) {
            /* No other rank starts it before the barrier below. */
            CHECK(unisono_start(started) == UNISONO_OK && unisono_test(&started, &done) == UNISONO_OK && !done);
            CHECK(unisono_start(started) == UNISONO_ERR_REQUEST);
            SAYS("active");
            CHECK(unisono_request_free(&started) == UNISONO_ERR_REQUEST && started != NULL);
            CHECK(unisono_free(comm) == UNISONO_ERR_REQUEST);
            CHECK(unisono_barrier(other) == UNISONO_OK);
            CHECK(unisono_start(request) == UNISONO_OK);
            CHECK(unisono_bcast(comm, &x, sizeof x, 0) == UNISONO_OK);
            CHECK(unisono_wait_all(2, (unisono_request *[]){request, started}) == UNISONO_OK);
        } else {
            CHECK(unisono_barrier(other) == UNISONO_OK);
            CHECK(unisono_start(started) == UNISONO_OK && unisono_wait(&started) == UNISONO_OK);
            CHECK(unisono_start(request) == UNISONO_OK && unisono_wait(&request) == UNISONO_OK && x == 7);
            CHECK(unisono_bcast(comm, &x, sizeof x, 0) == UNISONO_OK && x == 7);
        }
        CHECK(unisono_free(other) == UNISONO_OK);
    }
    CHECK(unisono_ibarrier(comm, &none) == UNISONO_OK);
    CHECK(unisono_start(none) == UNISONO_ERR_REQUEST);
    SAYS("nonblocking");
    CHECK(unisono_wait(&none) == UNISONO_OK && unisono_request_free(&started) == UNISONO_OK);
    CHECK(unisono_request_free(&request) == UNISONO_OK);
}

/* A refused argument poisons the communicator as in a blocking call; operations in flight fail, and can be freed. */
static void poisoned(unisono_comm *comm, uint32_t rank, uint32_t ranks) {
    int64_t x = 1, y = 0;
    int done;
    unisono_request *sum, *flight, *bad = (unisono_request *)&x;
    CHECK(unisono_allreduce_init(comm, &x, &y, 1, SUM, &sum) == UNISONO_OK);
    CHECK(unisono_start(sum) == UNISONO_OK && unisono_wait(&sum) == UNISONO_OK && y == ranks);
    CHECK(unisono_barrier(comm) == UNISONO_OK);
    if (rank == ranks - 1) {
        CHECK(unisono_bcast_init(comm, &x, sizeof x, 99, &bad) == UNISONO_ERR_ARGUMENT && bad == NULL);
        SAYS("root is 99, must be below");
    } else {
        /* The barrier can't complete: the last rank never calls it. */
        int code = unisono_ibarrier(comm, &flight);
        CHECK(code == UNISONO_OK || (code == UNISONO_ERR_PEER && flight == NULL));
        if (code == UNISONO_OK && rank == 0) {
            while ((code = unisono_test(&flight, &done)) == UNISONO_OK) CHECK(!done);
            CHECK(code == UNISONO_ERR_PEER && flight == NULL);
        } else if (code == UNISONO_OK) {
            CHECK(unisono_wait(&flight) == UNISONO_ERR_PEER && flight == NULL);
        }
        SAYS("root is 99, must be below");
    }
    CHECK(unisono_start(sum) == UNISONO_ERR_PEER && y == ranks);
    CHECK(unisono_wait(&sum) == UNISONO_OK && sum != NULL); /* it was not started */
    CHECK(unisono_free(comm) == UNISONO_ERR_REQUEST && unisono_request_free(&sum) == UNISONO_OK);
}

/* Two communicators, whose requests ranks wait for in different orders. */
static void crossed(unisono_comm *comm, uint32_t rank, uint32_t ranks) {
    static int64_t sums[2][WORDS];
    unisono_comm *other = second(rank);
    for (int round = 0; round < 20; round++) {
        int first = (int)(rank + (uint32_t)round) % 2;
        unisono_request *requests[2];
        for (int i = 0; i < WORDS; i++) sums[0][i] = sums[1][i] = rank + (uint32_t)round;
        for (int n = 0; n < 2; n++) {
            int which = (n + first) % 2;
            unisono_comm *on = which ? other : comm;
            CHECK(unisono_iallreduce(on, UNISONO_IN_PLACE, sums[which], WORDS, SUM, &requests[n]) == UNISONO_OK);
        }
        CHECK(unisono_wait_all(2, requests) == UNISONO_OK);
        int64_t sum = ranks * (ranks - 1) / 2 + (int64_t)ranks * round;
        for (int i = 0; i < WORDS; i++) CHECK(sums[0][i] == sum && sums[1][i] == sum);
    }
    CHECK(unisono_free(other) == UNISONO_OK);
}

typedef struct {
    unisono_comm *comm;
    atomic_int inside, leave;
} folding;

/* A user's operation that returns only after `leave` is set. */
static void linger(const void *left, void *right, uint64_t count, void *context) {
    folding *state = context;
    for (uint64_t i = 0; i < count; i++) ((int64_t *)right)[i] += ((const int64_t *)left)[i];
    atomic_store(&state->inside, 1);
    while (!atomic_load(&state->leave)) usleep(100);
}

static void *fold(void *context) {
    folding *state = context;
    int64_t x = 3;
    const unisono_op op = {linger, state, 1};
    CHECK(unisono_allreduce(state->comm, UNISONO_IN_PLACE, &x, 1, UNISONO_I64, &op) == UNISONO_OK && x == 6);
    return NULL;
}

static void *rounds(void *comm) {
    int64_t x;
    for (int round = 0; round < 200; round++) {
        unisono_request *request;
        x = round;
        CHECK(unisono_iallreduce(comm, UNISONO_IN_PLACE, &x, 1, SUM, &request) == UNISONO_OK);
        CHECK(unisono_wait(&request) == UNISONO_OK && x == 2 * round);
    }
    return NULL;
}

/* Both ranks of two communicators in one process: a thread each. */
static void threads(void) {
    uint64_t bytes;
    unisono_comm *comms[4];
    pthread_t ids[4];
    void *memory[2] = {fresh(2, &bytes), fresh(2, &bytes)};
    for (uint32_t n = 0; n < 4; n++) CHECK(unisono_attach(memory[n / 2], bytes, n % 2, &comms[n]) == UNISONO_OK);
    folding states[2] = {{.comm = comms[0]}, {.comm = comms[1]}};
    unisono_request *request;
    CHECK(unisono_barrier_init(comms[0], &request) == UNISONO_OK);
    for (int n = 0; n < 2; n++) CHECK(pthread_create(&ids[n], NULL, fold, &states[n]) == 0);
    while (!atomic_load(&states[0].inside)) usleep(100);
    /* Another thread is inside a call on the communicator: every call is refused, and changes nothing. */
    CHECK(unisono_barrier(comms[0]) == UNISONO_ERR_BUSY);
    CHECK(unisono_start(request) == UNISONO_ERR_BUSY && unisono_wait(&request) == UNISONO_ERR_BUSY);
    CHECK(unisono_request_free(&request) == UNISONO_ERR_BUSY && unisono_free(comms[0]) == UNISONO_ERR_BUSY);
    SAYS("in use");
    for (int n = 0; n < 2; n++) atomic_store(&states[n].leave, 1);
    for (int n = 0; n < 2; n++) CHECK(pthread_join(ids[n], NULL) == 0);
    CHECK(unisono_request_free(&request) == UNISONO_OK);
    /* Threads may use different communicators at the same time. */
    for (int n = 0; n < 4; n++) CHECK(pthread_create(&ids[n], NULL, rounds, comms[n]) == 0);
    for (int n = 0; n < 4; n++) CHECK(pthread_join(ids[n], NULL) == 0);
    for (int n = 0; n < 4; n++) CHECK(unisono_free(comms[n]) == UNISONO_OK);
    for (int n = 0; n < 2; n++) CHECK(munmap(memory[n], bytes) == 0);
}

static void on_two(uint32_t ranks, member_function *member) {
    shared = fresh(ranks, &shared_bytes);
    processes(ranks, member);
    CHECK(munmap(shared, shared_bytes) == 0);
}

int main(void) {
    alarm(120); /* a test that hangs fails */
    threads();
    for (uint32_t ranks = 1; ranks <= MOST; ranks += 2) {
        processes(ranks, in_flight);
        processes(ranks, again);
        processes(ranks, lists);
        on_two(ranks, misuse);
    }
    processes(3, poisoned);
    for (uint32_t ranks = 1; ranks <= 4; ranks++) on_two(ranks, crossed);
    puts("all well");
    return 0;
}
