/* A program that knows nothing of the library that heap.rs preloads: blocks of memory, threads, forks. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(truth) \
    do { \
        if (!(truth)) { \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #truth); \
            _exit(1); \
        } \
    } while (0)

enum { LEAST = 16 << 10, MOST = 3000000 };

/* The bounds of this process's heap; both 0: it has none. */
static uintptr_t start, end;

static void find_heap(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    CHECK(maps);
    while (fgets(line, sizeof line, maps))
        if (strstr(line, "memfd:unisono")) CHECK(sscanf(line, "%lx-%lx", &start, &end) == 2);
    fclose(maps);
}

static int shared(const void *at) { return (uintptr_t)at >= start && (uintptr_t)at < end; }

/* Where the system counts the heap's pages. */
static const char *field = "RssShmem: %ld";

/* Kilobytes of such pages that this process has. */
static long kilobytes(void) {
    FILE *status = fopen("/proc/self/status", "r");
    char line[512];
    long found = -1;
    CHECK(status);
    while (fgets(line, sizeof line, status))
        if (sscanf(line, field, &found) == 1) break;
    fclose(status);
    return found;
}

static unsigned char byte(size_t at, unsigned seed) { return (unsigned char)(at * 7 + (at >> 9) + seed); }

static void fill(unsigned char *block, size_t bytes, unsigned seed) {
    for (size_t at = 0; at < bytes; at++) block[at] = byte(at, seed);
}

static int same(const unsigned char *block, size_t bytes, unsigned seed) {
    for (size_t at = 0; at < bytes; at++)
        if (block[at] != byte(at, seed)) return 0;
    return 1;
}

static int zero(const unsigned char *block, size_t bytes) {
    for (size_t at = 0; at < bytes; at++)
        if (block[at]) return 0;
    return 1;
}

/* ---- Calls ----------------------------------------------------------------------------------------------- */

static void calls(void) {
    void *small = malloc(100), *large = malloc(LEAST), *one_less = malloc(LEAST - 1);
    CHECK(!shared(small) && !shared(one_less) && shared(large));
    CHECK(malloc_usable_size(large) >= LEAST && malloc_usable_size(small) >= 100);
    free(small), free(one_less), free(NULL);
    errno = 77;
    free(large);
    CHECK(errno == 77);

    /* A freed block is used again, and calloc's is zero whatever it held. */
    unsigned char *dirty = malloc(100000);
    fill(dirty, 100000, 3);
    free(dirty);
    unsigned char *clean = calloc(1000, 100);
    CHECK(clean == dirty && zero(clean, 100000));
    free(clean);
    volatile size_t absurd = SIZE_MAX / 2;
    CHECK(!calloc(absurd, 3) && errno == ENOMEM);
    CHECK(!malloc(absurd) && errno == ENOMEM);

    /* realloc over the border, both ways, and of nothing. */
    unsigned char *block = realloc(NULL, 1000);
    fill(block, 1000, 5);
    size_t sizes[] = {LEAST, 100, 40000, 41000, 5000000, 20000, LEAST - 1, 90000, 1};
    for (size_t i = 0, held = 1000; i < sizeof sizes / sizeof *sizes; i++) {
        size_t bytes = sizes[i];
        block = realloc(block, bytes);
        CHECK(block && shared(block) == (bytes >= LEAST));
        CHECK(same(block, held < bytes ? held : bytes, 5));
        fill(block, bytes, 5);
        held = bytes;
    }
    free(block);
    block = malloc(LEAST);
    CHECK(!realloc(block, 0));

    for (size_t align = 16; align <= 4 << 20; align *= 2) {
        void *at[4] = {NULL, aligned_alloc(align, 2 * LEAST), memalign(align, LEAST + 7), NULL};
        CHECK(posix_memalign(at, align, LEAST) == 0 && posix_memalign(at + 3, align, 10) == 0);
        for (int i = 0; i < 4; i++) {
            CHECK((uintptr_t)at[i] % align == 0 && shared(at[i]) == (i < 3));
            memset(at[i], 1, i < 3 ? LEAST : 10);
            free(at[i]);
        }
    }
    void *wrong;
    CHECK(posix_memalign(&wrong, 3, LEAST) == EINVAL && posix_memalign(&wrong, 4, LEAST) == EINVAL);
    void *pages = valloc(LEAST);
    CHECK((uintptr_t)pages % (uintptr_t)getpagesize() == 0 && shared(pages));
    free(pages);
}

/* What is freed goes back to the system, but for 64 MiB. */
static void goes_back(void) {
    enum { BLOCKS = 60, BYTES = 5 << 20 };
    static unsigned char *blocks[BLOCKS];
    long before = kilobytes();
    for (int i = 0; i < BLOCKS; i++) memset(blocks[i] = malloc(BYTES), 1, BYTES);
    long full = kilobytes();
    CHECK(full - before > 300 * 1000 && shared(blocks[0]));
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    long after = kilobytes();
    printf("shared memory: %ld kB before, %ld kB with %d blocks, %ld kB after\n", before, full, BLOCKS, after);
    CHECK(after - before <= 66 * 1024);
    unsigned char *large = malloc(200 << 20);
    memset(large, 1, 200 << 20);
    free(large);
    CHECK(kilobytes() - before <= 66 * 1024);
}

/* ---- Threads ---------------------------------------------------------------------------------------------- */

static int stop;

static void *storm(void *context) {
    unsigned seed = (unsigned)(uintptr_t)context, random = seed;
    struct { unsigned char *at; size_t bytes; unsigned seed; } held[16] = {{0, 0, 0}};
    for (int step = 0; step < 3000 && !__atomic_load_n(&stop, __ATOMIC_RELAXED); step++) {
        random = random * 1664525 + 1013904223;
        unsigned which = random >> 28;
        size_t bytes = (random >> 8) % (step % 7 ? 60000 : 900000) + 1;
        if (held[which].at) CHECK(same(held[which].at, held[which].bytes, held[which].seed));
        if (random >> 27 & 1) {
            unsigned char *at = realloc(held[which].at, bytes);
            CHECK(at && same(at, bytes < held[which].bytes ? bytes : held[which].bytes, held[which].seed));
            held[which].at = at;
        } else {
            free(held[which].at);
            held[which].at = step % 2 ? malloc(bytes) : calloc(1, bytes);
            if (step % 2 == 0) CHECK(zero(held[which].at, bytes));
        }
        held[which].bytes = bytes, held[which].seed = seed + (unsigned)step;
        fill(held[which].at, bytes, held[which].seed);
    }
    for (int i = 0; i < 16; i++) free(held[i].at);
    return NULL;
}

static void threads(void) {
    pthread_t all[4];
    for (uintptr_t i = 0; i < 4; i++) CHECK(!pthread_create(all + i, NULL, storm, (void *)(i + 1)));
    for (int i = 0; i < 4; i++) CHECK(!pthread_join(all[i], NULL));
}

/* ---- Forks ------------------------------------------------------------------------------------------------- */

static int ended(pid_t child) {
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void forks(void) {
    static unsigned char *blocks[40];
    for (int i = 0; i < 40; i++) fill(blocks[i] = malloc((size_t)(i + 1) * 10000), (size_t)(i + 1) * 10000, (unsigned)i);
    unsigned char *hole = calloc(1, 64 << 20); /* one page of it exists */
    hole[40 << 20] = 9;
    for (int round = 0; round < 5; round++) {
        int go[2];
        CHECK(!pipe(go));
        pid_t child = fork();
        if (!child) {
            /* The parent has overwritten all of it by now. */
            char word;
            CHECK(read(go[0], &word, 1) == 1);
            for (int i = 0; i < 40; i++) CHECK(same(blocks[i], (size_t)(i + 1) * 10000, (unsigned)(i + round)));
            CHECK(hole[40 << 20] == 9 && !hole[0]);
            for (int i = 0; i < 40; i++) memset(blocks[i], 0xcc, (size_t)(i + 1) * 10000);
            /* Its next blocks are its own, and blocks of its parent may be freed and resized. */
            unsigned char *own = malloc(MOST), *moved = realloc(blocks[30], 400000);
            CHECK(own && !shared(own) && moved && !shared(moved) && moved[5] == 0xcc);
            CHECK((blocks[20] = realloc(blocks[20], 20000)) && blocks[20][19999] == 0xcc);
            memset(own, 1, MOST);
            for (int i = 0; i < 20; i++) free(blocks[i]);
            for (int i = 0; i < 200; i++) CHECK((own = malloc(300000)) && !shared(own) && memset(own, 2, 300000));
            if (!fork()) {
                CHECK(moved[5] == 0xcc && blocks[39][7] == 0xcc);
                memset(moved, 3, 400000);
                _exit(0);
            }
            int status;
            CHECK(wait(&status) > 0 && !status && moved[7] == 0xcc);
            _exit(5);
        }
        for (int i = 0; i < 40; i++) fill(blocks[i], (size_t)(i + 1) * 10000, (unsigned)(i + round + 1));
        CHECK(write(go[1], "x", 1) == 1);
        CHECK(ended(child) == 5);
        for (int i = 0; i < 40; i++) CHECK(same(blocks[i], (size_t)(i + 1) * 10000, (unsigned)(i + round + 1)));
        close(go[0]), close(go[1]);
    }
    /* exec, and what calls no handlers but shares the memory until exec. */
    pid_t child = fork();
    if (!child) execl("/bin/sh", "sh", "-c", "exit 6", (char *)NULL), _exit(1);
    CHECK(ended(child) == 6);
    CHECK(WEXITSTATUS(system("exit 7")) == 7);
    FILE *out = popen("echo hello", "r");
    char text[16] = "";
    CHECK(out && fgets(text, sizeof text, out) && !strcmp(text, "hello\n") && !pclose(out));
    for (int i = 0; i < 40; i++) CHECK(same(blocks[i], (size_t)(i + 1) * 10000, (unsigned)(i + 5)));

    /* While other threads allocate. */
    pthread_t all[2];
    for (uintptr_t i = 0; i < 2; i++) CHECK(!pthread_create(all + i, NULL, storm, (void *)(i + 9)));
    for (int round = 0; round < 30; round++) {
        if (!(child = fork())) {
            for (int i = 0; i < 40; i++) CHECK(same(blocks[i], (size_t)(i + 1) * 10000, (unsigned)(i + 5)));
            free(blocks[round]);
            CHECK(malloc(MOST));
            _exit(8);
        }
        CHECK(ended(child) == 8);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++) CHECK(!pthread_join(all[i], NULL));

    /* Without descriptors for the copying, a child has no blocks; but it may run another program. */
    int spare[2000], count = 0;
    while (count < 2000 && (spare[count] = dup(1)) >= 0) count++;
    if (count < 2000) {
        if (!(child = fork())) execl("/bin/sh", "sh", "-c", "exit 9", (char *)NULL), _exit(1);
        CHECK(ended(child) == 9);
        if (!(child = fork())) _exit(blocks[30][0]);
        CHECK(ended(child) == 1000 + 11);
    }
    while (count > 0) close(spare[--count]);
    for (int i = 0; i < 40; i++) free(blocks[i]);
    free(hole);
}

int main(int count, char **words) {
    find_heap();
    if (count > 1 && !strcmp(words[1], "off")) {
        void *large = malloc(MOST);
        CHECK(large && !start);
        free(large);
        return 0;
    }
    CHECK(start);
    if (count > 1 && !strcmp(words[1], "pool")) field = "HugetlbPages: %ld";
    calls();
    goes_back();
    threads();
    forks();
    puts("fine");
    return 0;
}
