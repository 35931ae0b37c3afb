/*
 * overlap: the time of nonblocking collectives that are waited for at once, and of persistent ones that are started and waited for,
 * beside the blocking ones; and how much of it a computation
 * of the same length hides: 100 (1 - (time of both - time of the computation) / time of the collective), without tests of the
 * request during the computation, and with 16. The computation is a fixed number of steps: what a test takes is not hidden (OSU's
 * benchmarks take it off, too).
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#if defined OPEN_MPI && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define INIT(name) MPIX_##name##_init
#else
#define INIT(name) MPI_##name##_init
#endif

enum { MOST = 1 << 20, TESTS = 16 };

static int rank, size, rounds;
static char *sent, *got;

static int blocking(int what, int bytes) {
    switch (what) {
    case 0: return MPI_Barrier(MPI_COMM_WORLD);
    case 1: return MPI_Bcast(sent, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    case 2: return MPI_Allreduce(sent, got, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    case 3: return MPI_Allgather(sent, bytes, MPI_BYTE, got, bytes, MPI_BYTE, MPI_COMM_WORLD);
    default: return MPI_Alltoall(sent, bytes, MPI_BYTE, got, bytes, MPI_BYTE, MPI_COMM_WORLD);
    }
}

static int nonblocking(int what, int bytes, MPI_Request *request) {
    switch (what) {
    case 0: return MPI_Ibarrier(MPI_COMM_WORLD, request);
    case 1: return MPI_Ibcast(sent, bytes, MPI_BYTE, 0, MPI_COMM_WORLD, request);
    case 2: return MPI_Iallreduce(sent, got, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, request);
    case 3: return MPI_Iallgather(sent, bytes, MPI_BYTE, got, bytes, MPI_BYTE, MPI_COMM_WORLD, request);
    default: return MPI_Ialltoall(sent, bytes, MPI_BYTE, got, bytes, MPI_BYTE, MPI_COMM_WORLD, request);
    }
}

static int persistent(int what, int bytes, MPI_Request *request) {
    MPI_Comm world = MPI_COMM_WORLD;
    switch (what) {
    case 0: return INIT(Barrier)(world, MPI_INFO_NULL, request);
    case 1: return INIT(Bcast)(sent, bytes, MPI_BYTE, 0, world, MPI_INFO_NULL, request);
    case 2: return INIT(Allreduce)(sent, got, bytes / 8, MPI_DOUBLE, MPI_SUM, world, MPI_INFO_NULL, request);
    case 3: return INIT(Allgather)(sent, bytes, MPI_BYTE, got, bytes, MPI_BYTE, world, MPI_INFO_NULL, request);
    default: return INIT(Alltoall)(sent, bytes, MPI_BYTE, got, bytes, MPI_BYTE, world, MPI_INFO_NULL, request);
    }
}

/* Work that takes about so many seconds if nothing disturbs it. */
static double per_second;

static double work(long units) {
    volatile double x = 1;
    for (long i = 0; i < units; i++) x = x * 0.999 + 1;
    return x;
}

static void calibrate(void) {
    enum { UNITS = 1 << 20 };
    for (int i = 0; i < 5; i++) {
        double begin = MPI_Wtime();
        work(UNITS);
        double speed = UNITS / (MPI_Wtime() - begin);
        if (speed > per_second) per_second = speed;
    }
}

/* Tests the request after each of `tests` equal parts of the work. */
static void compute(double seconds, int tests, MPI_Request *request) {
    long units = (long)(seconds * per_second), parts = tests + 1;
    int done = 0;
    for (long part = 0; part < parts; part++) {
        work(units / parts);
        if (part < tests && !done) MPI_Test(request, &done, MPI_STATUS_IGNORE);
    }
}

static int ascending(const void *a, const void *b) { return *(double *)a < *(double *)b ? -1 : *(double *)a > *(double *)b; }

enum kind { BLOCKING, WAITED_FOR, WITH_WORK, STARTED };

/* The median over rounds of the slowest rank's time, in µs. */
static double time_of(enum kind kind, int what, int bytes, double seconds, int tests) {
    double *times = malloc(sizeof *times * rounds);
    MPI_Request made;
    if (kind == STARTED) persistent(what, bytes, &made);
    for (int i = -rounds / 10 - 1; i < rounds; i++) {
        MPI_Request request;
        PMPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime(), mine, slowest;
        switch (kind) {
        case BLOCKING: blocking(what, bytes); break;
        case STARTED: MPI_Start(&made), MPI_Wait(&made, MPI_STATUS_IGNORE); break;
        case WAITED_FOR:
        case WITH_WORK:
            nonblocking(what, bytes, &request);
            if (kind == WITH_WORK) compute(seconds, tests, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        mine = MPI_Wtime() - begin;
        PMPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (i >= 0) times[i] = 1e6 * slowest;
    }
    qsort(times, rounds, sizeof *times, ascending);
    if (kind == STARTED) MPI_Request_free(&made);
    double median = times[rounds / 2];
    free(times);
    return median;
}

static double hidden(double pure, double overall, double computed) {
    double percent = 100 * (1 - (overall - computed) / pure);
    return percent < 0 ? 0 : percent > 100 ? 100 : percent;
}

int main(int argc, char **argv) {
    static const char *const names[] = {"barrier", "bcast", "allreduce", "allgather", "alltoall"};
    static const int lengths[] = {8, 1024, 65536, 524288};
    MPI_Init(&argc, &argv);
    rounds = argc > 1 ? atoi(argv[1]) : 300;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sent = calloc(size, MOST), got = calloc(size, MOST);
    MPI_Barrier(MPI_COMM_WORLD);
    calibrate();
    if (!rank)
        printf("%-10s %8s %10s %12s %10s %10s %10s\n", "", "bytes", "blocking", "nonblocking", "persistent", "hidden %", "with tests");
    for (int what = 0; what < 5; what++)
        for (int length = 0; length < (what ? 4 : 1); length++) {
            int bytes = what ? lengths[length] : 0;
            double block = time_of(BLOCKING, what, bytes, 0, 0), pure = time_of(WAITED_FOR, what, bytes, 0, 0), seconds = pure / 1e6;
            double started = time_of(STARTED, what, bytes, 0, 0);
            double without = time_of(WITH_WORK, what, bytes, seconds, 0), with = time_of(WITH_WORK, what, bytes, seconds, TESTS);
            if (!rank)
                printf("%-10s %8d %10.2f %12.2f %10.2f %10.0f %10.0f\n", names[what], bytes, block, pure, started,
                       hidden(pure, without, pure), hidden(pure, with, pure));
        }
    free(sent), free(got);
    MPI_Finalize();
    return 0;
}
