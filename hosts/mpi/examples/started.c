/*
 * started [ROUNDS]: how long nonblocking and persistent collectives take that are waited for at once: bytes, and µs of the slowest rank,
 * the median of the rounds. On one node or several.
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

enum { IBARRIER, IBCAST, IALLREDUCE, IALLGATHER, IALLTOALL, IREDUCE, IGATHER, BCAST_INIT, ALLREDUCE_INIT, CALLS, MOST = 1 << 20, BLOCK = 1 << 16 };
static const char *const names[] = {"ibarrier", "ibcast", "iallreduce", "iallgather", "ialltoall", "ireduce", "igather", "bcast_init", "allreduce_init"};
static const int lengths[] = {8, 1024, BLOCK, MOST};

static int compare(const void *a, const void *b) {
    double difference = *(const double *)a - *(const double *)b;
    return difference < 0 ? -1 : difference > 0;
}

static void start(int call, int len, char *from, char *to, MPI_Request *request) {
    switch (call) {
    case IBARRIER: MPI_Ibarrier(MPI_COMM_WORLD, request); break;
    case IBCAST: MPI_Ibcast(from, len, MPI_CHAR, 0, MPI_COMM_WORLD, request); break;
    case IALLREDUCE: MPI_Iallreduce(from, to, len / 8, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, request); break;
    case IALLGATHER: MPI_Iallgather(from, len, MPI_CHAR, to, len, MPI_CHAR, MPI_COMM_WORLD, request); break;
    case IALLTOALL: MPI_Ialltoall(from, len, MPI_CHAR, to, len, MPI_CHAR, MPI_COMM_WORLD, request); break;
    case IREDUCE: MPI_Ireduce(from, to, len / 8, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD, request); break;
    case IGATHER: MPI_Igather(from, len, MPI_CHAR, to, len, MPI_CHAR, 0, MPI_COMM_WORLD, request); break;
    default: MPI_Start(request);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size, all = argc > 1 ? atoi(argv[1]) : 200;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
    size_t room = (size_t)BLOCK * size > MOST ? (size_t)BLOCK * size : MOST;
    char *from = calloc(room, 1), *to = calloc(room, 1);
    double *times = malloc(sizeof *times * (size_t)(all > 0 ? all : 1));
    if (!from || !to || !times || all < 8) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Barrier(MPI_COMM_WORLD); /* a nonblocking collective is the MPI's before the communicator's first blocking one */
    for (int call = 0; call < CALLS; call++)
        for (int l = 0; l < 4; l++) {
            int len = lengths[l], rounds = len > BLOCK ? all / 8 : all, blocks = call == IALLGATHER || call == IALLTOALL || call == IGATHER;
            if ((call == IBARRIER && l) || (blocks && len > BLOCK)) continue;
            MPI_Request request = MPI_REQUEST_NULL;
            if (call == BCAST_INIT) INIT(Bcast)(from, len, MPI_CHAR, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
            if (call == ALLREDUCE_INIT) INIT(Allreduce)(from, to, len / 8, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
            for (int i = 0; i < rounds; i++) {
                MPI_Barrier(MPI_COMM_WORLD);
                double took = -MPI_Wtime();
                start(call, len, from, to, &request);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
                took += MPI_Wtime();
                MPI_Allreduce(&took, &times[i], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            }
            if (call >= BCAST_INIT) MPI_Request_free(&request);
            qsort(times, (size_t)rounds, sizeof *times, compare);
            if (!rank) printf("%s %d %.1f\n", names[call], call == IBARRIER ? 0 : len, times[rounds / 2] * 1e6);
        }
    free(from), free(to), free(times);
    return MPI_Finalize();
}
