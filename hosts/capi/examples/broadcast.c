/* Four processes, memory that this program maps itself, one broadcast.
 *
 *   cc broadcast.c $(pkg-config --cflags --libs unisono) -o broadcast && ./broadcast
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unisono.h>

enum { RANKS = 4 };

static void check(int code, const char *what) {
    char text[160];
    if (code >= 0) return;
    unisono_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s: %s\n", what, unisono_strerror(code), text);
    exit(1);
}

static void member(void *memory, size_t bytes, uint32_t rank) {
    unisono_comm *comm;
    char news[32] = "";
    check(unisono_attach(memory, bytes, rank, &comm), "attach");
    if (rank == 0) strcpy(news, "good news from rank 0");
    check(unisono_bcast(comm, news, sizeof news, 0), "bcast");
    printf("rank %u of %d: %s\n", (unsigned)rank, unisono_size(comm), news);
    check(unisono_free(comm), "free");
}

int main(void) {
    unisono_params params;
    uint64_t bytes;
    check(unisono_params_init(&params, sizeof params, RANKS), "params");
    check(unisono_bytes(&params, &bytes), "bytes");
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return perror("mmap"), 1;
    check(unisono_create(memory, bytes, &params), "create");
    for (uint32_t rank = 1; rank < RANKS; rank++) {
        pid_t pid = fork();
        if (pid < 0) return perror("fork"), 1;
        if (pid == 0) return member(memory, bytes, rank), 0;
    }
    member(memory, bytes, 0);
    int status, failed = 0;
    while (wait(&status) > 0) failed |= status;
    munmap(memory, bytes);
    return failed != 0;
}
