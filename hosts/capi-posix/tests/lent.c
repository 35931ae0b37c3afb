/* Collectives on memory that others read where it lies; run by c.rs in four processes. Rank 1's memory is its own. */
#include "check.h"
#include <stdlib.h>
#include <string.h>

enum { SIZE = 4, MOST = 300000 };

static int me;

/* Has the last error's text this part? */
static int said(const char *part) {
    char text[256];
    unisono_last_error(text, sizeof text);
    return strstr(text, part) != NULL;
}

static unsigned char byte(int from, int to, size_t at, int round) {
    return (unsigned char)(from * 31 + to * 7 + (int)at * 13 + (int)(at >> 8) + round);
}

static void *get(unisono_comm *comm, size_t bytes) {
    void *memory = NULL;
    if (me == 1) memory = calloc(1, bytes);
    else CHECK(unisono_alloc(comm, bytes, &memory) == UNISONO_OK);
    CHECK(memory != NULL);
    return memory;
}

static void give(void *memory) {
    if (me == 1) free(memory);
    else CHECK(unisono_release(memory) == UNISONO_OK);
}

static void fill(unsigned char *block, size_t bytes, int from, int to, int round) {
    for (size_t at = 0; at < bytes; at++) block[at] = byte(from, to, at, round);
}

static void same(const unsigned char *block, size_t bytes, int from, int to, int round) {
    for (size_t at = 0; at < bytes; at++) CHECK(block[at] == byte(from, to, at, round));
}

static void all(unisono_comm *comm, size_t bytes, int round) {
    unsigned char *send = get(comm, SIZE * bytes), *receive = get(comm, SIZE * bytes);
    uint32_t root = (uint32_t)(round % SIZE);
    if (me == (int)root) fill(send, bytes, me, 0, round);
    CHECK(unisono_bcast(comm, send, bytes, root) == UNISONO_OK);
    same(send, bytes, (int)root, 0, round);
    /* What was sent is overwritten as soon as a call returns. */
    memset(send, 0xee, SIZE * bytes);
    fill(send, bytes, me, 1, round);
    CHECK(unisono_gather(comm, send, receive, bytes, root) == UNISONO_OK);
    memset(send, 0xee, bytes);
    for (int from = 0; from < SIZE && me == (int)root; from++) same(receive + (size_t)from * bytes, bytes, from, 1, round);
    fill(send, bytes, me, 2, round);
    CHECK(unisono_allgather(comm, send, receive, bytes) == UNISONO_OK);
    memset(send, 0xee, bytes);
    for (int from = 0; from < SIZE; from++) same(receive + (size_t)from * bytes, bytes, from, 2, round);
    for (int to = 0; to < SIZE; to++) fill(send + (size_t)to * bytes, bytes, me, to, round);
    CHECK(unisono_alltoall(comm, send, receive, bytes) == UNISONO_OK);
    memset(send, 0xee, SIZE * bytes);
    for (int from = 0; from < SIZE; from++) same(receive + (size_t)from * bytes, bytes, from, me, round);
    for (int to = 0; to < SIZE; to++) fill(send + (size_t)to * bytes, bytes, me, to, round + 1);
    CHECK(unisono_scatter(comm, send, receive, bytes, root) == UNISONO_OK);
    memset(send, 0xee, SIZE * bytes);
    same(receive, bytes, (int)root, me, round + 1);
    /* In place and not. */
    uint64_t count = bytes / 8, *numbers = (uint64_t *)(void *)send, *sums = (uint64_t *)(void *)receive;
    for (uint64_t at = 0; at < count; at++) numbers[at] = (uint64_t)me * 1000 + at;
    CHECK(unisono_allreduce(comm, numbers, sums, count, UNISONO_U64, UNISONO_SUM) == UNISONO_OK);
    for (uint64_t at = 0; at < count; at++) CHECK(sums[at] == 6000 + SIZE * at);
    CHECK(unisono_allreduce(comm, UNISONO_IN_PLACE, numbers, count, UNISONO_U64, UNISONO_SUM) == UNISONO_OK);
    for (uint64_t at = 0; at < count; at++) CHECK(numbers[at] == 6000 + SIZE * at);
    CHECK(unisono_reduce(comm, sums, me == (int)root ? numbers : NULL, count, UNISONO_U64, UNISONO_MAX, root) == UNISONO_OK);
    memset(sums, 0xee, bytes);
    for (uint64_t at = 0; at < count && me == (int)root; at++) CHECK(numbers[at] == 6000 + SIZE * at);
    give(send), give(receive);
}

int main(void) {
    unisono_comm *world, *part;
    CHECK(unisono_join(&world) == UNISONO_OK && unisono_size(world) == SIZE);
    me = unisono_rank(world);
    CHECK(unisono_comm_split(world, 0, -me, &part) == UNISONO_OK);
    for (int round = 0; round < 24; round++) {
        size_t lengths[] = {8, 1000, 4096, 5000, 40000, MOST};
        all(world, lengths[round % 6] / 8 * 8, round);
        if (round % 3 == 0) {
            unisono_comm *dup;
            CHECK(unisono_comm_dup(world, &dup) == UNISONO_OK);
            all(dup, 20000, round);
            CHECK(unisono_comm_free(&dup) == UNISONO_OK);
        }
    }
    /* A communicator with other ranks finds the same memory. */
    unsigned char *memory = get(part, MOST);
    if (unisono_rank(part) == 0) fill(memory, MOST, 9, 9, 9);
    CHECK(unisono_bcast(part, memory, MOST, 0) == UNISONO_OK);
    same(memory, MOST, 9, 9, 9);
    give(memory);
    /* What is refused. */
    void *none = &none;
    CHECK(unisono_alloc(world, 0, &none) == UNISONO_ERR_ARGUMENT && none == NULL);
    CHECK(unisono_alloc(world, 1, NULL) == UNISONO_ERR_NULL);
    CHECK(unisono_alloc(NULL, 1, &none) == UNISONO_ERR_NULL);
    CHECK(unisono_alloc(world, (size_t)1 << 40, &none) == UNISONO_ERR_MEMORY && none == NULL);
    CHECK(said("1099511627776 bytes") && said("are available"));
    CHECK(unisono_release(NULL) == UNISONO_OK && unisono_release(&none) == UNISONO_ERR_ARGUMENT);
    CHECK(said("unisono_alloc"));
    CHECK(unisono_alloc(world, 1, &none) == UNISONO_OK && *(char *)none == 0);
    memset(none, 1, 1);
    CHECK(unisono_release(none) == UNISONO_OK && unisono_release(none) == UNISONO_ERR_ARGUMENT);
    CHECK(unisono_alloc(world, 1, &none) == UNISONO_OK && *(char *)none == 0);
    CHECK(unisono_release(none) == UNISONO_OK);
    CHECK(unisono_comm_free(&part) == UNISONO_OK && unisono_free(world) == UNISONO_OK);
    return 0;
}
