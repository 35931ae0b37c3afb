/* Segments, errors, broadcast and allreduce from C. Built and run by c.rs; a check that fails ends the program. */
#include "members.h"

enum { MIB = 1 << 20 };

static unsigned char pattern(uint64_t i, uint32_t root) { return (unsigned char)(i * 31 + i / 251 + root * 7 + 1); }

/* Broadcasts, and checks that the bytes around the buffer are not written. */
static void bcast_of(unisono_comm *comm, unsigned char *room, uint64_t bytes, uint32_t rank, uint32_t root) {
    unsigned char *data = room + 64;
    memset(room, 0xEE, bytes + 128);
    if (rank == root)
        for (uint64_t i = 0; i < bytes; i++) data[i] = pattern(i, root);
    CHECK(unisono_bcast(comm, data, bytes, root) == UNISONO_OK);
    for (uint64_t i = 0; i < bytes; i++) CHECK(data[i] == pattern(i, root));
    for (int i = 0; i < 64; i++) CHECK(room[i] == 0xEE && data[bytes + i] == 0xEE);
}

/* right = left * 10 + right: not commutative, and not declared so. */
static void append(const void *left, void *right, uint64_t count, void *context) {
    const int32_t *l = left;
    int32_t *r = right;
    for (uint64_t i = 0; i < count; i++) r[i] += l[i] * *(int32_t *)context;
}

static void collectives(unisono_comm *comm, uint32_t rank, uint32_t ranks) {
    unsigned char *room = malloc(MIB + 128);
    CHECK(room != NULL);
    for (uint32_t root = 0; root < ranks; root++) {
        const uint64_t sizes[] = {8, 0, 1, 112, 113, 65537, MIB};
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) bcast_of(comm, room, sizes[s], rank, root);
        CHECK(unisono_barrier(comm) == UNISONO_OK);

        double x = rank + 0.5, sum = 0;
        CHECK(unisono_allreduce(comm, &x, &sum, 1, UNISONO_F64, UNISONO_SUM) == UNISONO_OK);
        CHECK(sum == ranks * (ranks - 1) / 2.0 + 0.5 * ranks && x == rank + 0.5);

        int64_t n[6];
        const uint64_t count = sizeof n / sizeof *n;
        for (uint64_t i = 0; i < count; i++) n[i] = (int64_t)(rank + i);
        CHECK(unisono_allreduce(comm, UNISONO_IN_PLACE, n, count, UNISONO_I64, UNISONO_SUM) == UNISONO_OK);
        for (uint64_t i = 0; i < count; i++) CHECK(n[i] == (int64_t)(ranks * (ranks - 1) / 2 + i * ranks));

        int32_t ten = 10, digit[2] = {(int32_t)rank + 1, 1}, digits[2], expected = 0;
        const unisono_op op = {append, &ten, 0};
        CHECK(unisono_allreduce(comm, digit, digits, 2, UNISONO_I32, &op) == UNISONO_OK);
        for (uint32_t r = 1; r <= ranks; r++) expected = expected * 10 + (int32_t)r;
        CHECK(digits[0] == expected);
        CHECK(unisono_allreduce(comm, &x, &x, 0, UNISONO_F64, UNISONO_SUM) == UNISONO_OK);
    }
    free(room);
}

/* An operation that calls the communicator in use: null arguments and a busy handle change nothing. */
static void busy(const void *left, void *right, uint64_t count, void *comm) {
    (void)left, (void)right, (void)count;
    CHECK(unisono_barrier(comm) == UNISONO_ERR_BUSY);
    SAYS("in use");
    CHECK(unisono_free(comm) == UNISONO_ERR_BUSY);
}

static void survivable(unisono_comm *comm, uint32_t rank, uint32_t ranks) {
    int64_t x = rank;
    (void)ranks;
    CHECK(unisono_bcast(NULL, &x, sizeof x, 0) == UNISONO_ERR_NULL);
    SAYS("comm is NULL");
    CHECK(unisono_barrier(NULL) == UNISONO_ERR_NULL && unisono_rank(NULL) == UNISONO_ERR_NULL);
    CHECK(unisono_free(NULL) == UNISONO_OK);
    const unisono_op op = {busy, comm, 1};
    CHECK(unisono_allreduce(comm, &x, &x, 1, UNISONO_OPAQUE(sizeof x), &op) == UNISONO_OK);
    CHECK(unisono_bcast(comm, NULL, 0, 0) == UNISONO_OK);
    CHECK(unisono_barrier(comm) == UNISONO_OK);
}

static void bad_root(unisono_comm *comm, uint32_t rank, uint32_t ranks) {
    int64_t x = 0;
    uint32_t root = rank == ranks - 1 ? 99 : 0;
    refused(comm, rank, ranks, unisono_bcast(comm, &x, sizeof x, root), "root is 99, must be below 4");
}

static void bad_buffer(unisono_comm *comm, uint32_t rank, uint32_t ranks) {
    int64_t x = 0;
    void *buffer = rank == ranks - 1 ? NULL : &x;
    refused(comm, rank, ranks, unisono_bcast(comm, buffer, sizeof x, 0), "buffer address is null");
}

static void bad_count(unisono_comm *comm, uint32_t rank, uint32_t ranks) {
    double x[6] = {0};
    uint64_t count = rank == ranks - 1 ? UINT64_MAX / 4 : 6;
    int code = unisono_allreduce(comm, UNISONO_IN_PLACE, x, count, UNISONO_F64, UNISONO_SUM);
    refused(comm, rank, ranks, code, "count is 4611686018427387903, must be at most 1152921504606846975");
}

static void bad_type(unisono_comm *comm, uint32_t rank, uint32_t ranks) {
    double x = 0;
    int type = rank == ranks - 1 ? 77 : UNISONO_F64;
    refused(comm, rank, ranks, unisono_allreduce(comm, &x, &x, 1, type, UNISONO_SUM), "datatype is 77, must be at most 19");
}

static void bad_op(unisono_comm *comm, uint32_t rank, uint32_t ranks) {
    double x = 0;
    int32_t ten = 10;
    const unisono_op op = {rank == ranks - 1 ? NULL : append, &ten, 1};
    refused(comm, rank, ranks, unisono_allreduce(comm, &x, &x, 2, UNISONO_OPAQUE(4), &op),
            "function of the operation is null");
}

/* Lengths differ: the rank that finds it gets ERR_MISMATCH, the others ERR_PEER. */
static void mismatch(unisono_comm *comm, uint32_t rank, uint32_t ranks) {
    char x[16] = {0};
    (void)ranks;
    int code = unisono_bcast(comm, x, rank == 1 ? 16 : 8, 0);
    if (rank == 1) {
        CHECK(code == UNISONO_ERR_MISMATCH);
        SAYS("disagreement with rank 0: bytes is 16, must be 8");
    } else if (code == UNISONO_OK) {
        CHECK(unisono_barrier(comm) == UNISONO_ERR_PEER);
    }
    CHECK(unisono_barrier(comm) == UNISONO_ERR_PEER);
    SAYS("rank 1 refused operation 1: bytes is 16, must be 8");
}

/* Rank 1 never calls; rank 0 reports its death. */
static void death(unisono_comm *comm, uint32_t rank, uint32_t ranks) {
    if (rank == 1) return;
    if (rank == 0) {
        CHECK(unisono_report_death(comm, ranks) == UNISONO_ERR_ARGUMENT);
        CHECK(unisono_report_death(comm, 1) == UNISONO_OK);
    }
    CHECK(unisono_barrier(comm) == UNISONO_ERR_DIED);
    SAYS("rank 1 died (seen in operation 1)");
}

/* Segments that are refused, in one process. */
static void segments(void) {
    unisono_params params;
    unisono_comm *comm = (unisono_comm *)&params;
    uint64_t bytes;
    CHECK(unisono_params_init(NULL, sizeof params, 2) == UNISONO_ERR_NULL);
    CHECK(unisono_params_init(&params, 1, 2) == UNISONO_ERR_ARGUMENT);
    SAYS("size is 1, must be 32");
    CHECK(unisono_params_init(&params, sizeof params, 0) == UNISONO_ERR_ARGUMENT);
    SAYS("ranks is 0, must be at least 1");
    CHECK(unisono_params_init(&params, sizeof params, 2) == UNISONO_OK);
    CHECK(unisono_bytes(&params, NULL) == UNISONO_ERR_NULL && unisono_bytes(NULL, &bytes) == UNISONO_ERR_NULL);
    params.size++;
    CHECK(unisono_bytes(&params, &bytes) == UNISONO_ERR_ARGUMENT);
    SAYS("size is 33, must be 32");
    params.size--;
    params.lines = 12;
    CHECK(unisono_bytes(&params, &bytes) == UNISONO_ERR_ARGUMENT);
    SAYS("lines is 12, must be a multiple of 16");
    params.lines = 16;
    CHECK(unisono_bytes(&params, &bytes) == UNISONO_OK && bytes == 2 * 4096 + 2 * (3 * 4096 + 128 * 32768));

    unsigned char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    CHECK(unisono_attach(memory, bytes, 0, &comm) == UNISONO_ERR_NOT_READY && comm == NULL);
    CHECK(unisono_create(NULL, bytes, &params) == UNISONO_ERR_NULL);
    CHECK(unisono_create(memory, bytes, NULL) == UNISONO_ERR_NULL);
    CHECK(unisono_create(memory + 8, bytes - 8, &params) == UNISONO_ERR_ARGUMENT);
    SAYS("segment address is ");
    CHECK(unisono_create(memory, bytes - 1, &params) == UNISONO_ERR_ARGUMENT);
    char words[80];
    snprintf(words, sizeof words, "segment bytes is %llu, must be at least %llu", (unsigned long long)bytes - 1,
             (unsigned long long)bytes);
    SAYS(words);
    CHECK(unisono_create(memory, bytes, &params) == UNISONO_OK);
    CHECK(unisono_create(memory, bytes, &params) == UNISONO_ERR_SEGMENT);
    CHECK(unisono_attach(memory, bytes - 1, 0, &comm) == UNISONO_ERR_ARGUMENT);
    SAYS(words);
    CHECK(unisono_attach(memory, 8, 0, &comm) == UNISONO_ERR_ARGUMENT);
    CHECK(unisono_attach(memory, bytes, 2, &comm) == UNISONO_ERR_ARGUMENT);
    SAYS("rank is 2, must be below 2");
    CHECK(unisono_attach(NULL, bytes, 0, &comm) == UNISONO_ERR_NULL);
    CHECK(unisono_attach(memory, bytes, 0, NULL) == UNISONO_ERR_NULL);
    snprintf(words, sizeof words, "version is %d, must be %d", memory[8] ^ 1, memory[8]);
    memory[8] ^= 1;
    CHECK(unisono_attach(memory, bytes, 0, &comm) == UNISONO_ERR_SEGMENT);
    SAYS(words);
    memory[0] ^= 1;
    CHECK(unisono_attach(memory, bytes, 0, &comm) == UNISONO_ERR_SEGMENT);
    SAYS("magic is ");
    CHECK(munmap(memory, bytes) == 0);
}

static void numbers(void) {
#define NAMED(code) CHECK(strcmp(unisono_error_name(code), #code) == 0 && strlen(unisono_strerror(code)) > 0)
    NAMED(UNISONO_OK);
    NAMED(UNISONO_ERR_NULL);
    NAMED(UNISONO_ERR_ARGUMENT);
    NAMED(UNISONO_ERR_BUSY);
    NAMED(UNISONO_ERR_NOT_READY);
    NAMED(UNISONO_ERR_SEGMENT);
    NAMED(UNISONO_ERR_MISMATCH);
    NAMED(UNISONO_ERR_PEER);
    NAMED(UNISONO_ERR_DIED);
    NAMED(UNISONO_ERR_LATE);
    NAMED(UNISONO_ERR_CORRUPT);
    NAMED(UNISONO_ERR_MEMORY);
    NAMED(UNISONO_ERR_OTHER);
    NAMED(UNISONO_ERR_HOST);
    NAMED(UNISONO_ERR_REQUEST);
    CHECK(strcmp(unisono_error_name(-999), "UNISONO_ERR_UNKNOWN") == 0);
    CHECK(unisono_version() == UNISONO_VERSION);

    /* A text that does not fit is cut, and its whole length is returned. */
    char small[5] = "####";
    CHECK(unisono_last_error(NULL, 0) == 0 && unisono_last_error(small, 5) == 0 && small[0] == 0);
    CHECK(unisono_barrier(NULL) == UNISONO_ERR_NULL);
    const char *whole = "comm is NULL, must be an address";
    CHECK(unisono_last_error(NULL, 9) == strlen(whole));
    CHECK(unisono_last_error(small, 4) == strlen(whole) && strcmp(small, "com") == 0 && small[4] == 0);
    CHECK(strcmp(text(), whole) == 0);
}

int main(void) {
    alarm(120); /* a test that hangs fails */
    numbers();
    segments();
    for (uint32_t ranks = 1; ranks <= 5; ranks++) processes(ranks, collectives);
    for (uint32_t ranks = 1; ranks <= 2; ranks++) processes(ranks, survivable);
    member_function *bad[] = {bad_root, bad_buffer, bad_count, bad_type, bad_op};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) processes(4, bad[i]);
    processes(3, mismatch);
    processes(4, death);
    puts("all well");
    return 0;
}
