/*
 * silent late|refused: the last rank calls too late, with a timeout (UNISONO_TIMEOUT); or its arguments differ from
 * those of the others, without one. Every rank gets one error, in the communicator's handler.
 */
#include <unistd.h>

#include "test.h"

static int handled, class_handled;
static void handler(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    handled++;
    MPI_Error_class(*code, &class_handled);
}

static void wants(int code, int class, const char *what) {
    int given = MPI_SUCCESS;
    MPI_Error_class(code, &given);
    expect(given == class && handled == 1 && class_handled == class, "%s: class %d; handler called %d times, with %d", what,
           given, handled, class_handled);
    handled = class_handled = 0;
}

/* A rank that calls again after the first error gets it again. */
static void over(MPI_Comm comm) {
    wants(MPI_Barrier(comm), MPI_ERR_OTHER, "after an error");
}

static void late(MPI_Comm comm, bool last) {
    double mine = 1, sum = 0;
    /* Longer than the timeout: the others have given up then. */
    if (last) sleep(5);
    int code = MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
    /* The data that it waits for may have been sent before, so that its first call succeeds. */
    for (int call = 0; last && code == MPI_SUCCESS && call < 3; call++) code = MPI_Barrier(comm);
    wants(code, MPI_ERR_OTHER, last ? "the late rank" : "a rank that waited");
    over(comm);
}

static void refused(MPI_Comm comm, bool last) {
    static char bytes[100000];
    int code = MPI_Bcast(bytes, (int)sizeof bytes - last, MPI_CHAR, 0, comm);
    if (last) wants(code, MPI_ERR_TRUNCATE, "another length");
    /* The others get the error from this call, or from a later one in which they wait. */
    for (int call = 0; code == MPI_SUCCESS && call < 3; call++) code = MPI_Barrier(comm);
    if (!last) wants(code, MPI_ERR_OTHER, "a peer's refusal");
    over(comm);
}

int main(int argc, char **argv) {
    MPI_Comm comm;
    MPI_Errhandler mine;
    MPI_Init(&argc, &argv);
    bool last = rank_in(MPI_COMM_WORLD) == size_of(MPI_COMM_WORLD) - 1;
    MPI_Comm_create_errhandler(handler, &mine);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    expect(MPI_Barrier(comm) == MPI_SUCCESS, "a first call");
    MPI_Comm_set_errhandler(comm, mine);
    if (argc > 1 && !strcmp(argv[1], "late")) late(comm, last);
    else refused(comm, last);
    MPI_Comm_free(&comm);
    MPI_Errhandler_free(&mine);
    return finish("silent");
}
