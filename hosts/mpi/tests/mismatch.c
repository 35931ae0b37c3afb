/*
 * mismatch: lengths that differ between sender and receiver, which MPI calls erroneous in every collective, also if the
 * receiver's is longer. With the preload all ranks get an error, and nothing is written after a block. And null
 * addresses: they are right for no elements; otherwise the MPI raises its error.
 */
#include "test.h"

#include <unistd.h>

enum { ROOM = 256, JUNK = -1 };
static int s[ROOM], r[ROOM], short_counts[64], long_counts[64], none[64], starts[64], byte_starts[64];
static MPI_Datatype types[64];
static MPI_Comm comm;
static int me;

static int class_of(int code) {
    int class = MPI_SUCCESS;
    if (code) MPI_Error_class(code, &class);
    return class;
}

static void begin(void) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < ROOM; i++) s[i] = 100 * me + i, r[i] = JUNK;
}

/* Some rank gets MPI_ERR_TRUNCATE, and all ranks get an error, from this call or the next that waits. `written`: the
 * most ints of r that may be written. */
static void wrong(const char *name, int code, int written) {
    int truncated = class_of(code) == MPI_ERR_TRUNCATE, told = code != 0, any = 0, all = 0;
    if (!told) told = MPI_Barrier(comm) != MPI_SUCCESS;
    UNDERLYING(PMPI_Allreduce)(&truncated, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    UNDERLYING(PMPI_Allreduce)(&told, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    expect(any && all, "%s: class %d, truncated somewhere %d, told to all %d", name, class_of(code), any, all);
    for (int i = written; i < ROOM; i++)
        if (!expect(r[i] == JUNK, "%s: int %d after %d is written", name, i, written)) break;
    MPI_Comm_free(&comm);
}
#define WRONG(written, call) (begin(), wrong(#call, MPI_##call, written))

/* All ranks get this class, and the communicator can still be used. */
static void alike(const char *name, int code, int class) {
    int sum = 0, one = 1;
    expect(class_of(code) == class, "%s: class %d, not %d", name, class_of(code), class);
    expect(!MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) && sum == size_of(comm), "%s: allreduce after it", name);
    MPI_Comm_free(&comm);
}
#define ALIKE(class, call) (begin(), alike(#call, MPI_##call, class))

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    alarm(100);
    me = rank_in(MPI_COMM_WORLD);
    int n = size_of(MPI_COMM_WORLD), more = me ? 4 : 2, less = me ? 2 : 4;
    for (int i = 0; i < n; i++) short_counts[i] = 2, long_counts[i] = 4, starts[i] = 4 * i;

    WRONG(more, Bcast(r + (me ? 0 : ROOM / 2), more, MPI_INT, 0, comm));
    WRONG(me ? less : ROOM, Bcast(me ? r : s, less, MPI_INT, 0, comm));
    WRONG(4 * n, Gather(s, 2, MPI_INT, r, 4, MPI_INT, 0, comm));
    WRONG(2 * n, Gather(s, 4, MPI_INT, r, 2, MPI_INT, 0, comm));
    WRONG(4 * n, Gather(s, less, MPI_INT, r, 4, MPI_INT, 0, comm));
    WRONG(4 * n, Gatherv(s, 2, MPI_INT, r, long_counts, starts, MPI_INT, 0, comm));
    WRONG(4 * n, Gatherv(s, more, MPI_INT, r, short_counts, starts, MPI_INT, 0, comm));
    WRONG(4, Scatter(s, 2, MPI_INT, r, 4, MPI_INT, 0, comm));
    WRONG(2, Scatter(s, 4, MPI_INT, r, 2, MPI_INT, 0, comm));
    WRONG(more, Scatter(s, 2, MPI_INT, r, more, MPI_INT, 0, comm));
    WRONG(more, Scatterv(s, short_counts, starts, MPI_INT, r, more, MPI_INT, 0, comm));
    WRONG(4 * n, Allgather(s, 2, MPI_INT, r, 4, MPI_INT, comm));
    WRONG(2 * n, Allgather(s, 4, MPI_INT, r, 2, MPI_INT, comm));
    WRONG(4 * n, Allgather(s, more, MPI_INT, r, 4, MPI_INT, comm));
    WRONG(4 * n, Allgatherv(s, 2, MPI_INT, r, long_counts, starts, MPI_INT, comm));
    WRONG(4 * n, Alltoall(s, 2, MPI_INT, r, 4, MPI_INT, comm));
    WRONG(2 * n, Alltoall(s, 4, MPI_INT, r, 2, MPI_INT, comm));
    WRONG(4 * n, Alltoallv(s, short_counts, starts, MPI_INT, r, long_counts, starts, MPI_INT, comm));
    WRONG(4 * n, Alltoallv(s, long_counts, starts, MPI_INT, r, short_counts, starts, MPI_INT, comm));
    WRONG(less, Reduce(s, r, less, MPI_INT, MPI_SUM, 0, comm));
    WRONG(less, Allreduce(s, r, less, MPI_INT, MPI_SUM, comm));
    WRONG(less, Scan(s, r, less, MPI_INT, MPI_SUM, comm));
    WRONG(less, Exscan(s, r, less, MPI_INT, MPI_SUM, comm));
    WRONG(less, Reduce_scatter_block(s, r, less, MPI_INT, MPI_SUM, comm));
    WRONG(less, Reduce_scatter(s, r, me ? short_counts : long_counts, MPI_INT, MPI_SUM, comm));
    for (int i = 0; i < n; i++) types[i] = MPI_INT, byte_starts[i] = 4 * starts[i];
    WRONG(4 * n, Alltoallw(s, short_counts, byte_starts, types, r, long_counts, byte_starts, types, comm));
    WRONG(4 * n, Alltoallw(s, long_counts, byte_starts, types, r, short_counts, byte_starts, types, comm));

    ALIKE(MPI_SUCCESS, Bcast(NULL, 0, MPI_INT, 0, comm));
    ALIKE(MPI_SUCCESS, Bcast(me ? r : NULL, 0, MPI_INT, 0, comm));
    ALIKE(MPI_SUCCESS, Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, comm));
    ALIKE(MPI_SUCCESS, Reduce(s, me ? NULL : r, 2, MPI_INT, MPI_SUM, 0, comm));
    ALIKE(MPI_SUCCESS, Gather(s, 2, MPI_INT, me ? NULL : r, me ? 0 : 2, me ? MPI_DATATYPE_NULL : MPI_INT, 0, comm));
    ALIKE(MPI_SUCCESS, Gatherv(s, 4, MPI_INT, me ? NULL : r, me ? NULL : long_counts, me ? NULL : starts, MPI_INT, 0, comm));
    ALIKE(MPI_SUCCESS, Gatherv(NULL, 0, MPI_INT, NULL, none, none, MPI_INT, 0, comm));
    ALIKE(MPI_SUCCESS, Scan(NULL, NULL, 0, MPI_INT, MPI_SUM, comm));
    ALIKE(MPI_SUCCESS, Exscan(s, me ? r : NULL, 2, MPI_INT, MPI_SUM, comm));
    ALIKE(MPI_SUCCESS, Exscan(MPI_IN_PLACE, r, 2, MPI_INT, MPI_SUM, comm));
    ALIKE(MPI_SUCCESS, Reduce_scatter(NULL, NULL, none, MPI_INT, MPI_SUM, comm));
    ALIKE(MPI_SUCCESS, Reduce_scatter_block(NULL, NULL, 0, MPI_INT, MPI_SUM, comm));
    /* The type of no elements is not looked at. */
    for (int i = 0; i < n; i++) types[i] = MPI_DATATYPE_NULL;
    ALIKE(MPI_SUCCESS, Alltoallw(NULL, none, none, types, NULL, none, none, types, comm));
    begin(), MPI_Exscan(s, r, ROOM, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < ROOM && me == 0; i++) expect(r[i] == JUNK, "exscan: int %d of rank 0 is written", i);
    MPI_Comm_free(&comm);
#ifdef MPICH /* Open MPI reads from the null address */
    ALIKE(MPI_ERR_BUFFER, Bcast(NULL, 3, MPI_INT, 0, comm));
    ALIKE(MPI_ERR_BUFFER, Allreduce(NULL, r, 2, MPI_INT, MPI_SUM, comm));
    ALIKE(MPI_ERR_BUFFER, Allgatherv(NULL, 2, MPI_INT, r, short_counts, starts, MPI_INT, comm));
    ALIKE(MPI_ERR_BUFFER, Alltoallv(NULL, short_counts, starts, MPI_INT, r, short_counts, starts, MPI_INT, comm));
    ALIKE(MPI_ERR_BUFFER, Scan(NULL, r, 2, MPI_INT, MPI_SUM, comm));
    ALIKE(MPI_ERR_BUFFER, Scatterv(s, short_counts, starts, MPI_INT, NULL, 2, MPI_INT, 0, comm));
#endif
    return finish("mismatch");
}
