/*
 * failures: rank 1 is killed while the others are in a collective, blocking, nonblocking or persistent, and they go on without it:
 * their call returns MPIX_ERR_PROC_FAILED, or MPIX_ERR_REVOKED once one of them has revoked the communicator; then they shrink it, and
 * collectives work on what is left. For MPIs with ULFM (Open MPI 5, mpirun --with-ft ulfm). Each rank prints what it has counted; nobody
 * calls MPI_Finalize, in which Open MPI 5 waits for the dead without a preload, too.
 */
#include <mpi.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int passed, failed;

static void expect(int holds, const char *what, int number) {
    if (holds) passed++;
    else failed++, fprintf(stderr, "%s: %d\n", what, number);
}

static int class_of(int code) {
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

static void works(MPI_Comm comm) {
    int rank, ranks, sum = -1;
    MPI_Comm_rank(comm, &rank), MPI_Comm_size(comm, &ranks);
    for (int round = 0; round < 20; round++) {
        int mine = 10 * rank + round, root = round % ranks, word = rank == root ? round : -1;
        int code = MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
        expect(code == MPI_SUCCESS && sum == 10 * ranks * (ranks - 1) / 2 + round * ranks, "a sum", sum);
        code = MPI_Bcast(&word, 1, MPI_INT, root, comm);
        expect(code == MPI_SUCCESS && word == round, "a word", word);
    }
}

int main(int argc, char **argv) {
    const char *form = argc > 1 ? argv[1] : "blocking";
    int rank, ranks, left, mine = 1, sum = 0, code;
    MPI_Comm comm, rest;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm, &rank), MPI_Comm_size(comm, &ranks);
    works(comm);
    if (!strcmp(form, "persistent")) MPI_Allreduce_init(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
    if (rank == 1) {
        usleep(300000); /* the others wait for it then */
        raise(SIGKILL);
    }
    if (!strcmp(form, "nonblocking")) code = MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
    else if (!strcmp(form, "persistent")) code = MPI_Start(&request);
    else code = MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (request != MPI_REQUEST_NULL) {
        expect(code == MPI_SUCCESS, "a start", code);
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    int class = class_of(code);
    expect(class == MPIX_ERR_PROC_FAILED || class == MPIX_ERR_REVOKED, "the class of the error", class);
    MPIX_Comm_revoke(comm);
    class = class_of(MPI_Barrier(comm));
    expect(class == MPIX_ERR_REVOKED, "the class on a revoked communicator", class);
    code = MPIX_Comm_shrink(comm, &rest);
    expect(code == MPI_SUCCESS, "shrinking", code);
    MPI_Comm_size(rest, &left);
    expect(left == ranks - 1, "ranks that are left", left);
    works(rest);
    printf("failures: %d passed, %d failed\n", passed, failed);
    fflush(stdout);
    MPI_Barrier(rest);
    _exit(failed != 0);
}
