/*
 * device: buffers in the memory of a device (stub.c), on some ranks or on all, and others in the host's memory. As in
 * an MPI that knows devices, each collective must work with both, and all ranks must take it over alike.
 */
#include "test.h"

#include <dlfcn.h>

enum { ROOM = 1 << 16, RANKS = 8 };
static char *host[2], *memory;
static void (*open_device)(bool);
static MPI_Comm comm;
static int me, size;

/* Buffer 0 is sent, buffer 1 received. `where` has two bits for each rank: whether each buffer is on the device. */
static bool is_there(int where, int buffer) { return where >> (2 * me + buffer) & 1; }
static void *buffer(int where, int which) { return is_there(where, which) ? memory + which * ROOM : host[which]; }

static void *contents(int where, int which) {
    if (is_there(where, which)) memcpy(host[which], memory + which * ROOM, ROOM);
    return host[which];
}

static int value(int round, int from, int to, int i) { return round * 7919 + from * 1009 + to * 101 + i; }

static void one_round(int number, int where, int n) {
    int counts[RANKS], starts[RANKS], *s = (int *)host[0], *r = (int *)host[1], root = number % size;
    for (int k = 0; k < size; k++) counts[k] = n, starts[k] = (size - 1 - k) * (n + 1);
#define INPUT(to, i, which)                                                                                            \
    do {                                                                                                               \
        open_device(true);                                                                                             \
        memset(buffer(where, 1), 0, ROOM);                                                                             \
        for (int t_ = 0; t_ < size; t_++)                                                                              \
            for (int i = 0; i < n; i++) ((int *)buffer(where, which))[t_ * n + i] = value(number, me, to ? t_ : 0, i);  \
        open_device(false);                                                                                            \
    } while (0)
#define CHECK(name, rows, at, wanted)                                                                                  \
    do {                                                                                                               \
        bool right_ = true;                                                                                            \
        open_device(true);                                                                                             \
        r = contents(where, 1);                                                                                        \
        open_device(false);                                                                                            \
        for (int k = 0; k < rows; k++)                                                                                 \
            for (int i = 0; i < n; i++) right_ &= r[at + i] == wanted;                                                 \
        expect(right_, "round %d, on the device 0x%x: %s", number, where, name);                                        \
    } while (0)
    void *in = buffer(where, 0), *out = buffer(where, 1);
    (void)s;
    INPUT(false, i, 0);
    MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, comm);
    CHECK("allgather", size, k * n, value(number, k, 0, i));
    INPUT(false, i, 0);
    MPI_Allgatherv(in, n, MPI_INT, out, counts, starts, MPI_INT, comm);
    CHECK("allgatherv", size, starts[k], value(number, k, 0, i));
    INPUT(false, i, 0);
    MPI_Gather(in, n, MPI_INT, out, n, MPI_INT, root, comm);
    if (me == root) CHECK("gather", size, k * n, value(number, k, 0, i));
    INPUT(true, i, 0);
    MPI_Scatter(in, n, MPI_INT, out, n, MPI_INT, root, comm);
    CHECK("scatter", 1, 0, value(number, root, me, i));
    INPUT(true, i, 0);
    MPI_Alltoall(in, n, MPI_INT, out, n, MPI_INT, comm);
    CHECK("alltoall", size, k * n, value(number, k, me, i));
    INPUT(true, i, 1);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, out, n, MPI_INT, comm);
    CHECK("alltoall in place", size, k * n, value(number, k, me, i));
    INPUT(false, i, 1);
    MPI_Bcast(out, n, MPI_INT, root, comm);
    CHECK("bcast", 1, 0, value(number, root, 0, i));

    INPUT(false, i, 0);
    MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, comm);
    int others = 1009 * size * (size - 1) / 2;
    CHECK("allreduce", 1, 0, size * value(number, 0, 0, i) + others);
    INPUT(false, i, 1);
    MPI_Allreduce(MPI_IN_PLACE, out, n, MPI_INT, MPI_MAX, comm);
    CHECK("allreduce in place", 1, 0, value(number, size - 1, 0, i));
    INPUT(false, i, 0);
    MPI_Reduce(in, out, n, MPI_INT, MPI_MIN, root, comm);
    if (me == root) CHECK("reduce", 1, 0, value(number, 0, 0, i));

    INPUT(false, i, 1);
    MPI_Scan(MPI_IN_PLACE, out, n, MPI_INT, MPI_MAX, comm);
    CHECK("scan in place", 1, 0, value(number, me, 0, i));
    INPUT(false, i, 0);
    MPI_Exscan(in, out, n, MPI_INT, MPI_MIN, comm);
    if (me) CHECK("exscan", 1, 0, value(number, 0, 0, i));
    INPUT(true, i, 0);
    MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_MAX, comm);
    CHECK("reduce_scatter", 1, 0, value(number, size - 1, me, i));
    INPUT(true, i, 1);
    MPI_Reduce_scatter_block(MPI_IN_PLACE, out, n, MPI_INT, MPI_MIN, comm);
    CHECK("reduce_scatter_block in place", 1, 0, value(number, 0, me, i));
    int places[RANKS], rows[RANKS];
    MPI_Datatype types[RANKS];
    for (int k = 0; k < size; k++) places[k] = 4 * starts[k], rows[k] = 4 * k * n, types[k] = MPI_INT;
    INPUT(true, i, 0);
    MPI_Alltoallw(in, counts, rows, types, out, counts, places, types, comm);
    CHECK("alltoallw", size, starts[k], value(number, k, me, i));

    /* A pair with holes. */
    struct { double value; int rank; } *pairs;
    open_device(true);
    pairs = in;
    for (int i = 0; i < n; i++) pairs[i].value = i % size == me ? -1.5 : i, pairs[i].rank = me;
    open_device(false);
    MPI_Allreduce(in, out, n, MPI_DOUBLE_INT, MPI_MINLOC, comm);
    open_device(true);
    pairs = contents(where, 1);
    open_device(false);
    bool right = true;
    for (int i = 0; i < n; i++) right &= pairs[i].value == -1.5 && pairs[i].rank == i % size;
    expect(right, "round %d, on the device 0x%x: allreduce of pairs", number, where);
}

int main(int argc, char **argv) {
    static const int lengths[] = {1, 13, 600};
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    me = rank_in(comm), size = size_of(comm);
    void *(*allocated)(void) = (void *(*)(void))dlsym(RTLD_DEFAULT, "stub_device");
    open_device = (void (*)(bool))dlsym(RTLD_DEFAULT, "stub_open");
    if (!allocated || !open_device || size > RANKS) MPI_Abort(comm, 1);
    memory = allocated();
    for (int i = 0; i < 2; i++) host[i] = calloc(1, ROOM);
    int number = 0;
    for (int where = 0; where < 1 << (size < 4 ? 2 * size : 8); where += size < 3 ? 1 : 5)
        for (int l = 0; l < 3; l++) one_round(number++, where, lengths[l]);
    MPI_Comm_free(&comm);
    return finish("device");
}
