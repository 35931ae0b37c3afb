/*
 * lent [heap|window]: collectives on memory that the other ranks read where it lies: of MPI_Alloc_mem; with `heap` of
 * malloc, since libunisono_heap.so is preloaded, too; with `window` of MPI_Win_allocate_shared. Rank 1's memory is its own.
 * What was sent is overwritten as soon as a call returns, or freed.
 */
#include "test.h"

#include <sys/wait.h>
#include <unistd.h>

static bool heap, window;
static int me, size;

static bool lends(void) { return me != 1; }

/* Each rank's part of a window holds an array of so many bytes for each number. */
enum { ARRAY = 1 << 22, ARRAYS = 3 };
static MPI_Win shared;
static unsigned char *part;

static void open_window(void) {
    MPI_Aint bytes = me == 1 ? 0 : (MPI_Aint)ARRAYS * ARRAY + me * 4096;
    expect(MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &shared) == MPI_SUCCESS, "a window");
}

static void close_window(void) { expect(MPI_Win_free(&shared) == MPI_SUCCESS && shared == MPI_WIN_NULL, "MPI_Win_free"); }

/* `bytes` bytes; for a rank that does not lend, the array of this number. */
static unsigned char *get(size_t bytes, int number) {
    unsigned char *memory;
    static unsigned char own[ARRAYS][ARRAY];
    if (!lends() || window) return bytes <= ARRAY ? lends() ? part + (size_t)number * ARRAY : own[number] : (abort(), NULL);
    if (heap) return allocate(bytes);
    if (MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &memory) != MPI_SUCCESS) abort();
    return memory;
}

static void give(unsigned char *memory) {
    if (!lends() || window) return;
    if (heap) free(memory);
    else expect(MPI_Free_mem(memory) == MPI_SUCCESS, "MPI_Free_mem");
}

/* How many heaps of other processes are mapped here, to be read. */
static int mapped(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    int count = 0;
    while (maps && fgets(line, sizeof line, maps)) count += strstr(line, "memfd:unisono") && strstr(line, " r--s ");
    if (maps) fclose(maps);
    return count;
}

static unsigned char byte(int from, int to, size_t at, int round) {
    return (unsigned char)(from * 31 + to * 7 + (int)at * 13 + (int)(at >> 8) + round);
}

static void fill(unsigned char *block, size_t bytes, int from, int to, int round) {
    for (size_t at = 0; at < bytes; at++) block[at] = byte(from, to, at, round);
}

static void same(const char *what, const unsigned char *block, size_t bytes, int from, int to, int round) {
    size_t at = 0;
    while (at < bytes && block[at] == byte(from, to, at, round)) at++;
    expect(at == bytes, "%s, round %d: byte %zu of %zu from rank %d", what, round, at, bytes, from);
}

static void all(int bytes, int round) {
    int root = round % size;
    size_t each = (size_t)bytes;
    unsigned char *send = get(each * (size_t)size, 0), *receive = get(each * (size_t)size, 1);
    if (me == root) fill(send, each, me, 0, round);
    MPI_Bcast(send, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    same("bcast", send, each, root, 0, round);
    fill(send, each, me, 1, round);
    MPI_Gather(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    for (int from = 0; from < size && me == root; from++) same("gather", receive + each * from, each, from, 1, round);
    fill(send, each, me, 2, round);
    MPI_Allgather(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, MPI_COMM_WORLD);
    memset(send, 0xee, each);
    for (int from = 0; from < size; from++) same("allgather", receive + each * from, each, from, 2, round);
    for (int to = 0; to < size; to++) fill(send + each * to, each, me, to, round);
    MPI_Alltoall(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, MPI_COMM_WORLD);
    memset(send, 0xee, each * size);
    for (int from = 0; from < size; from++) same("alltoall", receive + each * from, each, from, me, round);
    for (int to = 0; to < size; to++) fill(send + each * to, each, me, to, round + 1);
    MPI_Request request;
    MPI_Iscatter(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, root, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Scatter(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    memset(send, 0xee, each * size);
    same("scatter", receive, each, root, me, round + 1);
    int count = bytes / 8;
    long *numbers = (long *)(void *)send, *sums = (long *)(void *)receive;
    bool right = true;
    for (int at = 0; at < count; at++) numbers[at] = me * 1000 + at;
    MPI_Allreduce(numbers, sums, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int at = 0; at < count; at++) right = right && sums[at] == 500l * size * (size - 1) + (long)size * at;
    MPI_Allreduce(MPI_IN_PLACE, numbers, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int at = 0; at < count; at++) right = right && numbers[at] == sums[at];
    MPI_Reduce(sums, numbers, count, MPI_LONG, MPI_MAX, root, MPI_COMM_WORLD);
    memset(sums, 0xee, each);
    for (int at = 0; at < count && me == root; at++) right = right && numbers[at] == 500l * size * (size - 1) + (long)size * at;
    expect(right, "reductions of %d longs, round %d", count, round);
    give(send), give(receive);
}

/* A child has copies, and none of its writes reaches its parent, whose ranks go on meanwhile. */
static void forks(void) {
    size_t bytes = 200000;
    unsigned char *block = get(bytes, 2);
    fill(block, bytes, me, 3, 0);
    pid_t child = fork();
    if (!child) {
        bool right = true;
        for (size_t at = 0; at < bytes; at++) right = right && block[at] == byte(me, 3, at, 0);
        memset(block, 0xcc, bytes);
        _exit(right ? 0 : 1);
    }
    for (int round = 0; round < 20; round++) all(30000, round);
    int status = -1;
    expect(waitpid(child, &status, 0) == child && !status, "a child's copy: status %x", status);
    same("the parent's own", block, bytes, me, 3, 0);
    give(block);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    heap = count > 1 && !strcmp(words[1], "heap"), window = count > 1 && !strcmp(words[1], "window");
    MPI_Comm_rank(MPI_COMM_WORLD, &me), MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (window) open_window();
    int sizes[] = {3000, 4095, 4096, 20001, 65536, 200000, 700000};
    for (int round = 0; round < 35; round++) all(sizes[round % 7], round);
    if (window) {
        /* Another one lies elsewhere, while the first is there and after it was freed. */
        MPI_Win first = shared;
        open_window();
        for (int round = 0; round < 7; round++) all(sizes[round], round);
        expect(MPI_Win_free(&first) == MPI_SUCCESS, "MPI_Win_free of the first window");
        for (int round = 0; round < 7; round++) all(sizes[round], round);
        close_window();
        return finish("lent");
    }
    expect(mapped() == size - (me == 1 ? 1 : 2), "%d heaps of others are mapped", mapped());
    forks();
    /* Short blocks, and what the MPI has allocated. */
    void *small = NULL;
    expect(MPI_Alloc_mem(100, MPI_INFO_NULL, &small) == MPI_SUCCESS && small, "100 bytes");
    memset(small, 1, 100);
    expect(MPI_Free_mem(small) == MPI_SUCCESS, "MPI_Free_mem of 100 bytes");
    return finish("lent");
}
