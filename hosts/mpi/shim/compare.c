/*
 * Times a collective as Unisono runs it, or as the MPI does where a table leaves it the call: what `unisono tune --preload` compares
 * (hosts/mpi/src/compare.rs).
 *
 * The definitions are those of the benchmarks that users run, and one with buffers that are not in the caches. Each is a
 * mean over `calls` calls, which others precede that are not timed.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim.h"

enum method {
    METHOD_OSU,  /* the mean over ranks of each rank's time in the call; a barrier of ours between calls; root 0 */
    METHOD_IMB,  /* back to back, the slowest rank's time; the root rotates */
    METHOD_RATE, /* the same, in buffers that rotate over POOL bytes */
    METHODS
};

/* More than the private caches of today's cores. */
enum { POOL = 16 << 20 };

/* The arguments of a call, for _TIMED in arguments.h. Elements are doubles. */
struct timed {
    void *send, *receive;
    int count, root;
    int *counts, *starts, *places; /* of each rank's block; places are in bytes */
    MPI_Datatype *types;
};

#define SHIM_COUNT int
#define SHIM_DISPLACEMENT int

#define COLLECTIVE(NUMBER, Name, name, plan, parts, ...)                                                               \
    SHIM_VISIBLE int shim_export_##name(SHIM_PARTS(parts, _C)) __asm__("PMPI_" #Name);
#define NEIGHBORHOOD(...)
#include "collectives.def"

/* Calls the function that replaces the MPI's. */
static int call(enum shim_collective collective, const struct timed *t) {
    switch (collective) {
#define COLLECTIVE(NUMBER, Name, name, plan, parts, ...)                                                               \
    case NUMBER: return shim_export_##name(SHIM_PARTS(parts, _TIMED));
#define NEIGHBORHOOD(...)
#include "collectives.def"
    default: return MPI_ERR_OTHER;
    }
}

/* The collective of a name such as "allgatherv"; COLLECTIVES: there is none that is compared. */
static enum shim_collective named(const char *text) {
#define COLLECTIVE(NUMBER, Name, name, ...)                                                                            \
    if (!strcmp(text, #name)) return NUMBER;
#define NEIGHBORHOOD(...)
#include "collectives.def"
    return COLLECTIVES;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* What reading the clock costs. */
static double clock_cost(void) {
    double least = 1e9;
    for (int i = 0; i < 100; i++) {
        double begin = now(), cost = now() - begin;
        if (cost < least) least = cost;
    }
    return least;
}

/* Memory that is kept from call to call, of at least `bytes` bytes; null: there is none. */
static char *memory(size_t bytes) {
    static char *at;
    static size_t room;
    if (bytes <= room) return at;
    free(at);
    at = malloc(bytes), room = at ? bytes : 0;
    if (at) memset(at, 0, bytes);
    return at;
}

/* Numbers of elements: `bytes` are those that tables count, of a whole vector or of a block. */
static void lay_out(struct timed *t, enum shim_collective collective, uint64_t bytes, int size) {
    bool parts = collective == REDUCE_SCATTER || collective == REDUCE_SCATTER_BLOCK;
    int n = (int)(bytes / sizeof(double)), share = parts ? n / size : n, rest = parts ? n % size : 0;
    t->count = collective == REDUCE_SCATTER_BLOCK ? (share ? share : 1) : n;
    for (int r = 0, start = 0; r < size; r++) {
        t->counts[r] = share + (r < rest), t->starts[r] = start, t->types[r] = MPI_DOUBLE;
        t->places[r] = start * (int)sizeof(double);
        start += t->counts[r];
    }
}

/* Runs the calls; *mine: this rank's nanoseconds for each. */
static int run(enum shim_collective collective, struct timed *t, enum method method, uint32_t calls, size_t side, char *pool,
               double *mine) {
    size_t slots = method == METHOD_RATE ? POOL / (2 * side + 1) : 1, slot = 0;
    if (slots < 1 + (method == METHOD_RATE)) slots++;
    int code = MPI_SUCCESS, size;
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    double cost = clock_cost(), begin = 0, sum = 0;
    uint32_t before = calls / 8 + 2;
    for (uint32_t i = 0; i < before + calls && code == MPI_SUCCESS; i++) {
        if (i == before) {
            code = shim_export_barrier((shim_handle)MPI_COMM_WORLD);
            begin = now(), sum = 0;
        }
        t->root = method == METHOD_OSU ? 0 : (int)(i % (uint32_t)size);
        t->send = pool + 2 * side * slot, t->receive = pool + 2 * side * slot + side;
        slot = slot + 1 < slots ? slot + 1 : 0;
        double start = method == METHOD_OSU ? now() : 0;
        if (code == MPI_SUCCESS) code = call(collective, t);
        if (method == METHOD_OSU && code == MPI_SUCCESS) {
            double took = now() - start - cost;
            sum += took > 0 ? took : 0;
            code = shim_export_barrier((shim_handle)MPI_COMM_WORLD);
        }
    }
    *mine = (method == METHOD_OSU ? sum : now() - begin) / calls;
    return code;
}

/*
 * Times a collective of MPI_COMM_WORLD, of so many bytes as tables count them (a multiple of 8): ours, or the MPI's (`theirs`).
 * *ns: the nanoseconds of a call, the same on all ranks. *refused: why nothing is timed, or NULL. Collective. Returns an error of the
 * MPI, or MPI_SUCCESS. A program of another version finds it by its name: who changes the arguments changes that, too.
 */
SHIM_VISIBLE int unisono_time(const char *collective, uint64_t bytes, int method, int theirs, uint32_t calls, double *ns,
                              const char **refused) {
    enum shim_collective which = named(collective);
    *refused = which == COLLECTIVES ? "this collective is not compared" : NULL;
    if (method < 0 || method >= METHODS) *refused = "there is no such method";
    if (!calls) *refused = "0 calls can't be timed";
    if (*refused) return MPI_SUCCESS;
    int code = shim_export_barrier((shim_handle)MPI_COMM_WORLD), size, most = 0;
    struct shim_comm *on = code == MPI_SUCCESS && shim_is_on() ? shim_find(MPI_COMM_WORLD) : NULL;
    if (code != MPI_SUCCESS) return code;
    if (!on || !on->comm) {
        *refused = "the ranks' calls stay with the MPI: they share no memory, or UNISONO=off is set";
        return MPI_SUCCESS;
    }
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    if (bytes > INT_MAX / (uint64_t)size) {
        *refused = "the blocks are too long for counts of type int";
        return MPI_SUCCESS;
    }
    size_t side = (size_t)(bytes + sizeof(double)) * (size_t)size;
    size_t pool = method == METHOD_RATE && POOL > 4 * side ? POOL : 4 * side;
    int *lists = calloc((size_t)size, 3 * sizeof *lists);
    struct timed t = {.counts = lists, .starts = lists + size, .places = lists + 2 * size};
    t.types = calloc((size_t)size, sizeof *t.types);
    char *at = memory(pool + 2 * side);
    int lacks = !lists || !t.types || !at;
    shim_thread()->inside++;
    code = PMPI_Allreduce(&lacks, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    shim_thread()->inside--;
    if (code == MPI_SUCCESS && most) *refused = "no memory for the blocks";
    if (code == MPI_SUCCESS && !most) {
        double mine = 0;
        uint32_t left = on->left;
        lay_out(&t, which, bytes, size);
        /* Whatever a table says. What is left to the MPI takes the way of such a call: it is planned first. */
        on->left = theirs ? (uint32_t)1 << which : 0, on->yields = theirs;
        code = run(which, &t, (enum method)method, calls, side, at, &mine);
        on->left = left, on->yields = false;
        if (method == METHOD_OSU) mine /= size;
        shim_thread()->inside++;
        if (code == MPI_SUCCESS)
            code = PMPI_Allreduce(&mine, ns, 1, MPI_DOUBLE, method == METHOD_OSU ? MPI_SUM : MPI_MAX, MPI_COMM_WORLD);
        shim_thread()->inside--;
    }
    free(lists), free(t.types);
    return code;
}
