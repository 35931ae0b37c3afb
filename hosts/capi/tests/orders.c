/* Ranks that call the operations of several communicators in different orders: a thread that waits for one operation
 * makes progress on the others that it has started. Built and run by c.rs. */
#include "members.h"
#include <pthread.h>
#include <stdbool.h>

enum { BYTES = 1 << 20, COMMS = 3, ROUNDS = 40 };

/* Runs `member` in `ranks` processes with `count` segments, to which it attaches itself. */
static void run(uint32_t ranks, void (*member)(void **, uint64_t, uint32_t), int count) {
    uint64_t bytes;
    void *memory[ROUNDS + 1];
    for (int n = 0; n < count; n++) memory[n] = fresh(ranks, &bytes);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            alarm(30); /* a deadlock */
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            member(memory, bytes, rank);
            _exit(0);
        }
    }
    for (uint32_t ended = 0; ended < ranks; ended++) {
        int status;
        CHECK(wait(&status) > 0);
        CHECK(status == 0);
    }
    for (int n = 0; n < count; n++) CHECK(munmap(memory[n], bytes) == 0);
}

static unisono_comm *attach(void *memory, uint64_t bytes, uint32_t rank) {
    unisono_comm *comm;
    CHECK(unisono_attach(memory, bytes, rank, &comm) == UNISONO_OK);
    return comm;
}

static void fill(char *buffer, bool root, int round) {
    for (int i = 0; i < BYTES; i++) buffer[i] = (char)(root ? i + round : 0);
}

static void right(const char *buffer, int round) {
    for (int i = 0; i < BYTES; i++) CHECK(buffer[i] == (char)(i + round));
}

/* Different calls that wait for the other rank on a communicator. */
static void barrier(unisono_comm *comm) { CHECK(unisono_barrier(comm) == UNISONO_OK); }

static void reduction(unisono_comm *comm) {
    int64_t sum = 1;
    CHECK(unisono_allreduce(comm, UNISONO_IN_PLACE, &sum, 1, UNISONO_I64, UNISONO_SUM) == UNISONO_OK && sum == 2);
}

static void wait_for(unisono_comm *comm) {
    unisono_request *request;
    CHECK(unisono_ibarrier(comm, &request) == UNISONO_OK && unisono_wait(&request) == UNISONO_OK);
}

static void test(unisono_comm *comm, unsigned pause) {
    unisono_request *request;
    int done = 0;
    CHECK(unisono_ibarrier(comm, &request) == UNISONO_OK);
    while (!done) {
        CHECK(unisono_test(&request, &done) == UNISONO_OK);
        usleep(pause);
    }
}

static void test_often(unisono_comm *comm) { test(comm, 0); }
static void test_now_and_then(unisono_comm *comm) { test(comm, 5000); }

static void drain(unisono_comm *comm) {
    unisono_request *request;
    CHECK(unisono_ibarrier(comm, &request) == UNISONO_OK);
    barrier(comm);
    CHECK(unisono_wait(&request) == UNISONO_OK);
}

static void (*const WAITS[])(unisono_comm *) = {barrier, reduction, wait_for, test_often, test_now_and_then, drain};
enum { COUNT = sizeof WAITS / sizeof *WAITS };

/* Rank 0 calls on B before it waits for the operation on A, rank 1 afterwards. */
static void crossed(void **memory, uint64_t bytes, uint32_t rank) {
    unisono_comm *a = attach(memory[0], bytes, rank), *b = attach(memory[1], bytes, rank);
    static char buffer[BYTES];
    unisono_request *request;
    for (int n = 0; n < COUNT; n++) {
        fill(buffer, rank == 1, n);
        CHECK(unisono_ibcast(a, buffer, BYTES, 1, &request) == UNISONO_OK);
        if (rank == 0) WAITS[n](b);
        CHECK(unisono_wait(&request) == UNISONO_OK);
        if (rank == 1) WAITS[n](b);
        right(buffer, n);
    }
    CHECK(unisono_bcast_init(a, buffer, BYTES, 1, &request) == UNISONO_OK);
    for (int round = 0; round < 5; round++) {
        fill(buffer, rank == 1, round);
        CHECK(unisono_start(request) == UNISONO_OK);
        if (rank == 0) barrier(b);
        CHECK(unisono_wait(&request) == UNISONO_OK);
        if (rank == 1) barrier(b);
        right(buffer, round);
    }
    CHECK(unisono_request_free(&request) == UNISONO_OK);
    CHECK(unisono_free(a) == UNISONO_OK && unisono_free(b) == UNISONO_OK);
}

/* All ranks start operations on all communicators. They call barriers in the same order, and waits in an order of their
 * own. */
static void mixed(void **memory, uint64_t bytes, uint32_t rank) {
    unisono_comm *comms[COMMS];
    unisono_request *requests[COMMS];
    static char buffers[COMMS][BYTES];
    unsigned mine = rank + 1;
    for (int n = 0; n < COMMS; n++) comms[n] = attach(memory[n], bytes, rank);
    for (int round = 0; round < ROUNDS; round++) {
        for (int n = 0; n < COMMS; n++) {
            int at = (n + (int)rank) % COMMS;
            fill(buffers[at], (int)rank == (round + at) % 3, round);
            CHECK(unisono_ibcast(comms[at], buffers[at], BYTES, (uint32_t)(round + at) % 3, &requests[at]) == UNISONO_OK);
        }
        for (int calls = 0; calls < COMMS; calls++) {
            mine = mine * 1103515245 + 12345;
            if (mine >> 16 & 1) CHECK(unisono_wait(&requests[(mine >> 20) % COMMS]) == UNISONO_OK);
            barrier(comms[(calls + round) % COMMS]);
        }
        for (int n = 0; n < COMMS; n++) {
            CHECK(unisono_wait(&requests[n]) == UNISONO_OK);
            right(buffers[n], round);
        }
    }
    for (int n = 0; n < COMMS; n++) CHECK(unisono_free(comms[n]) == UNISONO_OK);
}

/* One thread starts an operation; another completes and frees it while the first waits on another communicator. */
typedef struct {
    unisono_comm *comm;
    unisono_request *request;
    bool tests;
} handed;

static void *finish(void *argument) {
    handed *it = argument;
    if (it->tests)
        for (int done = 0; !done;) CHECK(unisono_test(&it->request, &done) == UNISONO_OK);
    else
        CHECK(unisono_wait(&it->request) == UNISONO_OK);
    CHECK(unisono_free(it->comm) == UNISONO_OK);
    return NULL;
}

static void handed_over(void **memory, uint64_t bytes, uint32_t rank) {
    unisono_comm *b = attach(memory[ROUNDS], bytes, rank);
    static char buffer[BYTES];
    for (int round = 0; round < ROUNDS; round++) {
        handed it = {attach(memory[round], bytes, rank), NULL, round % 2};
        pthread_t thread;
        fill(buffer, rank == 1, round);
        CHECK(unisono_ibcast(it.comm, buffer, BYTES, 1, &it.request) == UNISONO_OK);
        CHECK(pthread_create(&thread, NULL, finish, &it) == 0);
        if ((int)rank == round % 2) usleep(300);
        for (int n = 0; n < 10; n++) barrier(b);
        CHECK(pthread_join(thread, NULL) == 0);
        right(buffer, round);
        for (int n = 0; n < 10; n++) barrier(b); /* no progress on a freed communicator */
    }
    CHECK(unisono_free(b) == UNISONO_OK);
}

/* A child of fork that waits makes no progress on its parent's operation: so the root's can't complete. */
static void forked(void **memory, uint64_t bytes, uint32_t rank) {
    unisono_comm *a = attach(memory[0], bytes, rank), *b = attach(memory[1], bytes, rank);
    static char buffer[8 * BYTES];
    unisono_request *request;
    int done = 0, status;
    buffer[sizeof buffer - 1] = (char)rank;
    if (rank == 0) {
        CHECK(unisono_ibcast(a, buffer, sizeof buffer, 1, &request) == UNISONO_OK);
        barrier(b);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            barrier(attach(memory[2], bytes, 0));
            _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    } else {
        barrier(b);
        usleep(10000);
        CHECK(unisono_ibcast(a, buffer, sizeof buffer, 1, &request) == UNISONO_OK);
        for (int n = 0; n < 50 && !done; n++) {
            CHECK(unisono_test(&request, &done) == UNISONO_OK);
            usleep(1000);
        }
        CHECK(!done);
        barrier(attach(memory[2], bytes, 1));
    }
    CHECK(unisono_wait(&request) == UNISONO_OK && buffer[sizeof buffer - 1] == 1);
    CHECK(unisono_free(a) == UNISONO_OK && unisono_free(b) == UNISONO_OK);
}

/* An operation that fails during another communicator's call: only calls on its own communicator return the error. */
static void failing(void **memory, uint64_t bytes, uint32_t rank) {
    unisono_comm *a = attach(memory[0], bytes, rank), *b = attach(memory[1], bytes, rank);
    /* More than a queue holds, so the root has to wait for rank 0. */
    static char buffer[8 * BYTES];
    unisono_request *request = NULL;
    if (rank == 1) CHECK(unisono_ibcast(a, buffer, sizeof buffer, 1, &request) == UNISONO_OK);
    barrier(b);
    if (rank == 0) CHECK(unisono_report_death(a, 0) == UNISONO_OK && usleep(20000) == 0);
    barrier(b);
    CHECK(unisono_wait(&request) == (rank == 1 ? UNISONO_ERR_DIED : UNISONO_OK));
    barrier(b);
    CHECK(unisono_free(a) == UNISONO_OK && unisono_free(b) == UNISONO_OK);
}

int main(void) {
    run(2, crossed, 2);
    run(3, mixed, COMMS);
    run(2, handed_over, ROUNDS + 1);
    run(2, forked, 3);
    run(2, failing, 2);
    puts("all well");
    return 0;
}
