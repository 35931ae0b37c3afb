/*
 * errors [freed]: for each error a line with the class that rank 0 gets and how often the user's error handler is
 * called. The output with a preload must be the same as without; the script that runs this compares. freed: a freed
 * handle.
 */
#include "test.h"

static int handled, class_handled;
static void handler(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    handled++;
    MPI_Error_class(*code, &class_handled);
}

static void report(const char *name, int code) {
    int class;
    MPI_Error_class(code, &class);
    if (rank_in(MPI_COMM_WORLD) == 0)
        printf("%-40s class %3d, handler called %d times, with %d\n", name, class, handled, class_handled);
    handled = class_handled = 0;
}

/* All ranks make the same mistake, so no rank waits for another. */
static void mistakes(MPI_Comm comm, const char *kind) {
    enum { MOST = 64 };
    int a[MOST] = {0}, b[MOST] = {0}, counts[MOST], ats[MOST], size = size_of(comm);
    char name[80];
    MPI_Datatype types[MOST], nulls[MOST];
    for (int r = 0; r < MOST; r++) counts[r] = -1, ats[r] = r, types[r] = MPI_INT, nulls[r] = MPI_DATATYPE_NULL;
#define MISTAKE(CALL) snprintf(name, sizeof name, "%s: %.60s", kind, #CALL), report(name, MPI_##CALL)
/* These crash in the MPI itself, with or without a preload. */
#ifdef OPEN_MPI
#define NOT_OPEN_MPI(CALL)
#define NOT_MPICH(CALL) MISTAKE(CALL)
#else
#define NOT_OPEN_MPI(CALL) MISTAKE(CALL)
#define NOT_MPICH(CALL)
#endif
    MISTAKE(Bcast(a, -1, MPI_INT, 0, comm));
    MISTAKE(Bcast(a, 1, MPI_INT, -7, comm));
    MISTAKE(Bcast(a, 1, MPI_INT, size, comm));
    MISTAKE(Bcast(a, 1, MPI_DATATYPE_NULL, 0, comm));
    NOT_MPICH(Reduce(a, b, -1, MPI_INT, MPI_SUM, 0, comm));
    MISTAKE(Reduce(a, b, 1, MPI_INT, MPI_SUM, size, comm));
    MISTAKE(Reduce(a, b, 1, MPI_INT, MPI_OP_NULL, 0, comm));
    MISTAKE(Reduce(a, b, 1, MPI_DATATYPE_NULL, MPI_SUM, 0, comm));
    NOT_MPICH(Allreduce(a, b, -1, MPI_INT, MPI_SUM, comm));
    MISTAKE(Allreduce(a, b, 1, MPI_INT, MPI_OP_NULL, comm));
    NOT_OPEN_MPI(Allreduce(a, b, 1, MPI_INT, (MPI_Op)MPI_INT, comm));
    MISTAKE(Allreduce(a, b, 1, MPI_DATATYPE_NULL, MPI_SUM, comm));
    MISTAKE(Allreduce(a, b, 1, MPI_DOUBLE, MPI_BXOR, comm));
    MISTAKE(Allreduce(a, b, 1, MPI_INT, MPI_MAXLOC, comm));
    MISTAKE(Gather(a, -1, MPI_INT, b, -1, MPI_INT, 0, comm));
    MISTAKE(Gather(a, 1, MPI_INT, b, 1, MPI_INT, -1, comm));
    MISTAKE(Gather(a, 1, MPI_DATATYPE_NULL, b, 1, MPI_DATATYPE_NULL, 0, comm));
    MISTAKE(Gatherv(a, -1, MPI_INT, b, counts, ats, MPI_INT, 0, comm));
    MISTAKE(Gatherv(a, 1, MPI_INT, b, counts, ats, MPI_INT, size + 3, comm));
    MISTAKE(Scatter(a, -1, MPI_INT, b, -1, MPI_INT, 0, comm));
    MISTAKE(Scatter(a, 1, MPI_INT, b, 1, MPI_INT, -1, comm));
    MISTAKE(Scatterv(a, counts, ats, MPI_INT, b, -1, MPI_INT, 0, comm));
    MISTAKE(Allgather(a, -1, MPI_INT, b, 1, MPI_INT, comm));
    MISTAKE(Allgather(a, 1, MPI_INT, b, 1, MPI_DATATYPE_NULL, comm));
    NOT_OPEN_MPI(Allgatherv(a, 1, MPI_INT, b, counts, ats, MPI_INT, comm));
    MISTAKE(Alltoall(a, -1, MPI_INT, b, 1, MPI_INT, comm));
    MISTAKE(Alltoall(a, 1, MPI_DATATYPE_NULL, b, 1, MPI_INT, comm));
    MISTAKE(Alltoallv(a, counts, ats, MPI_INT, b, counts, ats, MPI_INT, comm));
    MISTAKE(Alltoallw(a, counts, ats, types, b, counts, ats, types, comm));
    MISTAKE(Alltoallw(a, ats, ats, nulls, b, ats, ats, nulls, comm));
    NOT_MPICH(Scan(a, b, -1, MPI_INT, MPI_SUM, comm));
    MISTAKE(Scan(a, b, 1, MPI_INT, MPI_OP_NULL, comm));
    MISTAKE(Scan(a, b, 1, MPI_DATATYPE_NULL, MPI_SUM, comm));
    NOT_MPICH(Exscan(a, b, -1, MPI_INT, MPI_SUM, comm));
    MISTAKE(Exscan(a, b, 1, MPI_DOUBLE, MPI_BXOR, comm));
    MISTAKE(Reduce_scatter(a, b, counts, MPI_INT, MPI_SUM, comm));
    MISTAKE(Reduce_scatter(a, b, ats, MPI_INT, MPI_OP_NULL, comm));
    NOT_MPICH(Reduce_scatter_block(a, b, -1, MPI_INT, MPI_SUM, comm));
    MISTAKE(Reduce_scatter_block(a, b, 1, MPI_DATATYPE_NULL, MPI_SUM, comm));
    /* After the errors a right call works. */
    a[0] = rank_in(comm);
    report("a right call after", MPI_Allreduce(a, b, 1, MPI_INT, MPI_SUM, comm));
    expect(b[0] == size * (size - 1) / 2, "allreduce after mistakes is %d", b[0]);
}

static void null_handles(void) {
    int a = 0, b = 0;
    report("null: barrier", MPI_Barrier(MPI_COMM_NULL));
    report("null: bcast", MPI_Bcast(&a, 1, MPI_INT, 0, MPI_COMM_NULL));
    report("null: allreduce", MPI_Allreduce(&a, &b, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL));
    report("null: alltoall", MPI_Alltoall(&a, 1, MPI_INT, &b, 1, MPI_INT, MPI_COMM_NULL));
}

/* A freed handle, on which collectives were called before. */
static void freed(void) {
    MPI_Comm comm, kept;
    int a = 1, b = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Allreduce(&a, &b, 1, MPI_INT, MPI_SUM, comm);
    expect(b == size_of(MPI_COMM_WORLD), "allreduce is %d", b);
    kept = comm;
    MPI_Comm_free(&comm);
    report("freed: allreduce", MPI_Allreduce(&a, &b, 1, MPI_INT, MPI_SUM, kept));
    report("freed: barrier", MPI_Barrier(kept));
}

int main(int argc, char **argv) {
    MPI_Comm comm;
    MPI_Errhandler mine;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (argc > 1) {
        freed();
        return finish("errors freed");
    }
    mistakes(MPI_COMM_WORLD, "world");
    MPI_Comm_create_errhandler(handler, &mine);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, mine);
    mistakes(comm, "handler");
    MPI_Comm_free(&comm);
    null_handles();
    MPI_Errhandler_free(&mine);
    return finish("errors");
}
