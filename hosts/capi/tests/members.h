/* Shared by the C tests: checks that end the program, and running a function in several processes. */
#ifndef MEMBERS_H
#define MEMBERS_H

#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unisono.h>

static inline const char *text(void) {
    static char buf[256];
    unisono_last_error(buf, sizeof buf);
    return buf;
}

#define CHECK(truth)                                                                                \
    do {                                                                                            \
        if (!(truth)) {                                                                             \
            fprintf(stderr, "%s:%d: not true: %s (last error: %s)\n", __FILE__, __LINE__, #truth, text()); \
            _exit(1);                                                                               \
        }                                                                                           \
    } while (0)

#define SAYS(words)                                                                                 \
    do {                                                                                            \
        if (!strstr(text(), words)) {                                                               \
            fprintf(stderr, "%s:%d: \"%s\" is not in \"%s\"\n", __FILE__, __LINE__, words, text()); \
            _exit(1);                                                                               \
        }                                                                                           \
    } while (0)

typedef void member_function(unisono_comm *comm, uint32_t rank, uint32_t ranks);

static inline void *fresh(uint32_t ranks, uint64_t *bytes) {
    unisono_params params;
    CHECK(unisono_params_init(&params, sizeof params, ranks) == UNISONO_OK);
    CHECK(params.size == sizeof params && params.ranks == ranks);
    CHECK(unisono_bytes(&params, bytes) == UNISONO_OK);
    void *memory = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    CHECK(unisono_create(memory, *bytes, &params) == UNISONO_OK);
    return memory;
}

/* Runs `member` in `ranks` processes over one segment; all must succeed. */
static inline void processes(uint32_t ranks, member_function *member) {
    uint64_t bytes;
    void *memory = fresh(ranks, &bytes);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            alarm(120);
            prctl(PR_SET_PDEATHSIG, SIGKILL); /* when one fails, the others do not wait for it */
            unisono_comm *comm;
            CHECK(unisono_attach(memory, bytes, rank, &comm) == UNISONO_OK);
            CHECK(unisono_rank(comm) == (int)rank && unisono_size(comm) == (int)ranks);
            member(comm, rank, ranks);
            CHECK(unisono_free(comm) == UNISONO_OK);
            _exit(0);
        }
    }
    int status;
    for (uint32_t ended = 0; ended < ranks; ended++) {
        CHECK(wait(&status) > 0);
        CHECK(status == 0);
    }
    CHECK(munmap(memory, bytes) == 0);
}

/* The last rank passed a wrong argument; the others get its error from this operation or the next. */
static inline void refused(unisono_comm *comm, uint32_t rank, uint32_t ranks, int code, const char *words) {
    if (rank == ranks - 1) {
        CHECK(code == UNISONO_ERR_ARGUMENT);
        SAYS(words);
    } else if (code == UNISONO_OK) {
        code = unisono_barrier(comm);
    }
    if (rank != ranks - 1) {
        char culprit[32];
        snprintf(culprit, sizeof culprit, "rank %u refused", (unsigned)ranks - 1);
        CHECK(code == UNISONO_ERR_PEER);
        SAYS(culprit);
        SAYS(words);
    }
    CHECK(unisono_barrier(comm) == UNISONO_ERR_PEER);
}

#endif
