/*
 * values [--brief] [--underlying]: compares the results of every collective that may be taken over with values that
 * this program computes, on communicators of all kinds. --brief: no long messages. --underlying: only calls that the
 * MPIs get right without the preload. If datatypes differ between ranks (which MPI allows if signatures agree), Open
 * MPI 4.1's MPI_Allgatherv hangs and MPICH 4.0's MPI_Gather aborts; MPICH 4.0's MPI_Reduce in place above 2 KiB crashes
 * with other roots than 0, and its MPI_Reduce_scatter in place of 800,000 bytes by a user's operation that does not commute.
 */
#include "values.h"

#include "layout.h"

#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* No rank leaves a barrier before the last one has entered; all ranks read the same clock. */
static void barrier(const struct group *group) {
    for (int late = 0; late < group->size; late++) {
        if (group->rank == late) usleep(2000);
        double entered = now(), last;
        expect(MPI_Barrier(group->comm) == MPI_SUCCESS, "barrier: error");
        double left = now();
        UNDERLYING(PMPI_Allreduce)(&entered, &last, 1, MPI_DOUBLE, MPI_MAX, group->comm);
        expect(left >= last, "barrier on %s: left %g s early", group->name, last - left);
    }
}

static bool brief, underlying;

static void whole(const char *name, MPI_Comm comm, int units, int elements) {
    struct group group = {name, comm, rank_in(comm), size_of(comm)};
    barrier(&group);
    moves(&group, units, underlying);
    reductions(&group, elements, underlying);
}

/* An inter-communicator of even and odd ranks, whose calls go to the MPI, also with a preload. */
static void between(void) {
    MPI_Comm half, inter;
    int me = rank_in(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD), side = me % 2;
    if (size < 2) return;
    MPI_Comm_split(MPI_COMM_WORLD, side, me, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 3, &inter);
    int mine = me + 1, sum = 0, others = 0, got[RANKS_MOST], remote;
    for (int r = 1 - side; r < size; r += 2) others += r + 1;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter);
    expect(sum == others, "inter-communicator: allreduce is %d, not %d", sum, others);
    MPI_Allgather(&mine, 1, MPI_INT, got, 1, MPI_INT, inter);
    MPI_Comm_remote_size(inter, &remote);
    for (int r = 0; r < remote; r++)
        expect(got[r] == 2 * r + 2 - side, "inter-communicator: allgather has %d at %d", got[r], r);
    int root = side ? 0 : rank_in(half) == 0 ? MPI_ROOT : MPI_PROC_NULL, sent = side ? 0 : 77;
    MPI_Bcast(&sent, 1, MPI_INT, root, inter);
    expect(sent == 77, "inter-communicator: bcast is %d", sent);
    expect(MPI_Barrier(inter) == MPI_SUCCESS, "inter-communicator: barrier");
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    for (int i = 1; i < argc; i++) brief |= !strcmp(argv[i], "--brief"), underlying |= !strcmp(argv[i], "--underlying");
    MPI_Comm comm;
    int me = rank_in(MPI_COMM_WORLD);
    layouts_make();
    whole("world", MPI_COMM_WORLD, brief ? 333 : 16667, brief ? 1025 : 100000);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    whole("dup", comm, 7, 7);
    MPI_Comm_free(&comm);
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &comm);
    whole("odd or even", comm, 333, 7);
    MPI_Comm_free(&comm);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &comm);
    whole("reversed", comm, 7, 7);
    MPI_Comm_free(&comm);
    whole("self", MPI_COMM_SELF, 7, 7);
    between();
    layouts_free();
    return finish("values");
}
