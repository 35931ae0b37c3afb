/* A rank does not call, is killed, writes random words, or can't attach: no other rank waits for ever. Built and run by
 * c.rs. */
#include "members.h"
#include <stdbool.h>

enum { RANKS = 3 };

/* Makes malloc fail, in the process that can't attach. */
static bool refuses;
extern void *__libc_malloc(size_t bytes);
void *malloc(size_t bytes) { return refuses ? NULL : __libc_malloc(bytes); }

/* Calls a collective in one of the forms; returns its error. */
typedef int form(unisono_comm *comm);

static int blocks(unisono_comm *comm) { return unisono_barrier(comm); }

static int waits(unisono_comm *comm) {
    unisono_request *request;
    int code = unisono_ibarrier(comm, &request);
    return code == UNISONO_OK ? unisono_wait(&request) : code;
}

static int waits_for_all(unisono_comm *comm) {
    unisono_request *requests[2] = {NULL, NULL};
    int code = UNISONO_OK;
    for (int n = 0; n < 2 && code == UNISONO_OK; n++) code = unisono_ibarrier(comm, &requests[n]);
    int ended = unisono_wait_all(2, requests);
    return code == UNISONO_OK ? ended : code;
}

static int tests(unisono_comm *comm, unsigned pause) {
    unisono_request *request;
    int done = 0, code = unisono_ibarrier(comm, &request);
    while (code == UNISONO_OK && !done) {
        code = unisono_test(&request, &done);
        usleep(pause);
    }
    return code;
}

static int tests_often(unisono_comm *comm) { return tests(comm, 0); }
static int tests_now_and_then(unisono_comm *comm) { return tests(comm, 20000); }

static int starts_again(unisono_comm *comm) {
    unisono_request *request;
    int done = 0, code = unisono_barrier_init(comm, &request);
    if (code == UNISONO_OK) code = unisono_start(request);
    while (code == UNISONO_OK && !done) code = unisono_test(&request, &done);
    CHECK(unisono_request_free(&request) == UNISONO_OK);
    return code;
}

static form *const FORMS[] = {blocks, waits, waits_for_all, tests_often, tests_now_and_then, starts_again};
enum { COUNT = sizeof FORMS / sizeof *FORMS };

static int attach(void *memory, uint64_t bytes, uint32_t rank, unisono_comm **comm) {
    alarm(60); /* a process that waits for ever is killed, and its status says so */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return unisono_attach(memory, bytes, rank, comm);
}

/* What the last rank does instead of its part. */
typedef void absent(void *memory, uint64_t bytes);

static void sleeps(void *memory, uint64_t bytes) {
    (void)memory, (void)bytes;
    pause();
}

static void is_killed(void *memory, uint64_t bytes) {
    unisono_comm *comm;
    CHECK(attach(memory, bytes, RANKS - 1, &comm) == UNISONO_OK);
    kill(getpid(), SIGKILL);
}

static void is_hostile(void *memory, uint64_t bytes) {
    /* Writes random values and zeros to words everywhere but in the header. */
    uint64_t *words = memory;
    for (uint64_t seed = (uint64_t)getpid();; seed = seed * 6364136223846793005u + 1442695040888963407u) {
        uint64_t at = 512 + (seed >> 32) % (bytes / 8 - 512);
        __atomic_store_n(&words[at], seed >> 60 ? 0 : seed, __ATOMIC_RELEASE);
    }
}

static void can_not_attach(void *memory, uint64_t bytes) {
    unisono_comm *comm;
    refuses = true;
    CHECK(attach(memory, bytes, RANKS - 1, &comm) == UNISONO_ERR_MEMORY && comm == NULL);
    pause();
}

/* All ranks but the last call `call`; `bound`: their timeout in milliseconds. Each must get an error that names the
 * last rank: `code`, or any if that is 0. */
static void others(form *call, absent *last, uint64_t bound, int code) {
    uint64_t bytes;
    void *memory = fresh(RANKS, &bytes);
    pid_t pids[RANKS];
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        pids[rank] = fork();
        CHECK(pids[rank] >= 0);
        if (pids[rank] > 0) continue;
        if (rank == RANKS - 1) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            last(memory, bytes);
            _exit(1);
        }
        unisono_comm *comm;
        CHECK(attach(memory, bytes, rank, &comm) == UNISONO_OK);
        CHECK(unisono_set_timeout(comm, bound) == UNISONO_OK);
        int found = call(comm);
        while (code == 0 && found == UNISONO_OK) found = call(comm); /* the hostile rank may write that it has called */
        CHECK(found != UNISONO_OK && (code == 0 || found == code));
        if (code != 0) SAYS("rank 2");
        CHECK(unisono_barrier(comm) != UNISONO_OK);
        CHECK(unisono_free(comm) == UNISONO_OK || code == 0);
        _exit(0);
    }
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        int status;
        if (rank == RANKS - 1) kill(pids[rank], SIGKILL);
        CHECK(waitpid(pids[rank], &status, 0) == pids[rank]);
        CHECK(rank == RANKS - 1 || status == 0);
    }
    CHECK(munmap(memory, bytes) == 0);
}

int main(void) {
    for (int at = 0; at < COUNT; at++) {
        others(FORMS[at], sleeps, 200, UNISONO_ERR_LATE);
        others(FORMS[at], can_not_attach, 0, UNISONO_ERR_DIED);
        for (int round = 0; round < 2; round++) others(FORMS[at], is_hostile, 100, 0);
    }
    others(blocks, is_killed, 200, UNISONO_ERR_LATE);
    others(tests_often, is_killed, 200, UNISONO_ERR_LATE);

    uint64_t bytes;
    void *memory = fresh(1, &bytes);
    unisono_comm *comm;
    CHECK(unisono_attach(memory, bytes, 0, &comm) == UNISONO_OK);
    CHECK(unisono_set_timeout(NULL, 1) == UNISONO_ERR_NULL);
    CHECK(unisono_set_timeout(comm, 1) == UNISONO_OK && unisono_set_timeout(comm, 0) == UNISONO_OK);
    CHECK(unisono_set_timeout(comm, UINT64_MAX) == UNISONO_OK && unisono_barrier(comm) == UNISONO_OK);
    CHECK(unisono_free(comm) == UNISONO_OK);
    puts("all well");
    return 0;
}
