/*
 * after_barrier [BYTES [TURNS]]: what a barrier before a collective does to its time. µs per turn of a loop, on the slowest rank: a
 * barrier and the collective, with the mean time of the collective alone behind it, as IMB and OSU's benchmarks take it; and the
 * collective without barriers. The root is rank 0. Medians of five loops.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LOOPS = 5 };

static const char *const names[] = {"barrier alone", "bcast", "scatter", "gather", "reduce", "allreduce", "allgather"};
static char *sent, *got;
static int bytes = 8, turns = 2000;

static void collective(int what) {
    switch (what) {
    case 1: MPI_Bcast(sent, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); break;
    case 2: MPI_Scatter(sent, bytes, MPI_BYTE, got, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); break;
    case 3: MPI_Gather(sent, bytes, MPI_BYTE, got, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); break;
    case 4: MPI_Reduce(sent, got, bytes / 8, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD); break;
    case 5: MPI_Allreduce(sent, got, bytes / 8, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD); break;
    case 6: MPI_Allgather(sent, bytes, MPI_BYTE, got, bytes, MPI_BYTE, MPI_COMM_WORLD); break;
    default: break;
    }
}

/* The turn's time, and that of the collective, each on the slowest rank. */
static void loop(int what, int barriers, double most[2]) {
    double inside = 0;
    for (int i = 0; i < 3; i++) MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int i = 0; i < turns; i++) {
        if (barriers) MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        collective(what);
        inside += MPI_Wtime() - start;
    }
    double mine[] = {(MPI_Wtime() - begin) / turns * 1e6, inside / turns * 1e6};
    MPI_Allreduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1) bytes = atoi(argv[1]);
    if (argc > 2) turns = atoi(argv[2]);
    sent = calloc((size_t)size, (size_t)bytes), got = calloc((size_t)size, (size_t)bytes);
    if (bytes < 8 || turns < 1 || !sent || !got) MPI_Abort(MPI_COMM_WORLD, 1);
    if (rank == 0) printf("%d ranks, %d B; us per turn, behind the barrier, without barriers\n", size, bytes);
    for (int what = 0; what < (int)(sizeof names / sizeof *names); what++) {
        double turn[LOOPS], behind[LOOPS], without[LOOPS];
        for (int i = 0; i < LOOPS; i++) {
            double most[2];
            loop(what, 1, most), turn[i] = most[0], behind[i] = most[1];
            loop(what, 0, most), without[i] = most[0];
        }
        qsort(turn, LOOPS, sizeof *turn, compare), qsort(behind, LOOPS, sizeof *behind, compare);
        qsort(without, LOOPS, sizeof *without, compare);
        if (rank == 0) printf("%-13s %7.2f %7.2f %7.2f\n", names[what], turn[LOOPS / 2], behind[LOOPS / 2], without[LOOPS / 2]);
    }
    free(sent), free(got);
    MPI_Finalize();
    return 0;
}
