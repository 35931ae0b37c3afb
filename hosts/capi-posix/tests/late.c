/* A rank does not call, dies, or has no memory: the others get an error. Run by c.rs; the argument says which case. */
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <unistd.h>

enum { LAST = 2 };

/* The size of the last call of malloc, and the size for which calls fail. */
static size_t last, refused;
extern void *__libc_malloc(size_t bytes);
void *malloc(size_t bytes) {
    last = bytes;
    return bytes == refused && bytes > 0 ? NULL : __libc_malloc(bytes);
}

static int tests(unisono_comm *comm) {
    unisono_request *request;
    int done = 0, code = unisono_ibarrier(comm, &request);
    while (code == UNISONO_OK && !done) code = unisono_test(&request, &done);
    return code;
}

static int waits(unisono_comm *comm) { return unisono_barrier(comm); }

/* The last rank never calls; the others must get the error `code` that names it. */
static void late(unisono_comm *comm, int rank, int code, int (*call)(unisono_comm *)) {
    if (rank == LAST) {
        sleep(3);
        exit(0);
    }
    CHECK(call(comm) == code);
    CHECK(strstr(text(), "rank 2"));
}

int main(int argc, char **argv) {
    unisono_comm *comm, *part, *dup;
    CHECK(argc == 2);
    CHECK(unisono_join(&comm) == UNISONO_OK);
    int rank = unisono_rank(comm);
    CHECK(unisono_barrier(comm) == UNISONO_OK);
    if (!strcmp(argv[1], "environment")) { /* UNISONO_TIMEOUT */
        late(comm, rank, UNISONO_ERR_LATE, waits);
    } else if (!strcmp(argv[1], "tests")) {
        late(comm, rank, UNISONO_ERR_LATE, tests);
    } else if (!strcmp(argv[1], "inherits")) {
        CHECK(unisono_set_timeout(comm, 300) == UNISONO_OK);
        CHECK(unisono_comm_dup(comm, &dup) == UNISONO_OK);
        CHECK(unisono_comm_split(dup, 0, 0, &part) == UNISONO_OK);
        late(part, rank, UNISONO_ERR_LATE, waits);
    } else if (!strcmp(argv[1], "killed")) {
        if (rank == LAST) kill(getpid(), SIGKILL);
        late(comm, rank, UNISONO_ERR_DIED, tests);
    } else {
        CHECK(!strcmp(argv[1], "memory"));
        CHECK(unisono_set_timeout(comm, 5000) == UNISONO_OK);
        CHECK(unisono_comm_dup(comm, &part) == UNISONO_OK);
        if (rank == LAST) {
            refused = last; /* the handle is allocated last */
            CHECK(unisono_comm_dup(comm, &dup) == UNISONO_ERR_MEMORY && dup == NULL);
        } else {
            CHECK(unisono_comm_dup(comm, &dup) == UNISONO_OK);
            CHECK(unisono_barrier(dup) == UNISONO_ERR_DIED && strstr(text(), "rank 2"));
        }
        CHECK(unisono_barrier(comm) == UNISONO_OK);
    }
    return 0;
}
