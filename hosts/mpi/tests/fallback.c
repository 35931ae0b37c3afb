/*
 * fallback [MIB]: the additional time of a call that goes to the MPI, the times of making a communicator and of its first use, and the
 * memory of a thousand live communicators in arenas of MIB (256). Times are only printed: none fails the test.
 */
#include "test.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BATCHES = 401, BATCH = 200, USES = 41, LIVE = 1000 };

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *of, int n) {
    qsort(of, (size_t)n, sizeof *of, by_size);
    return of[n / 2];
}

#define TIMED(CALL) __extension__({ \
        double begin = PMPI_Wtime(); \
        for (int i = 0; i < BATCH; i++) CALL; \
        (PMPI_Wtime() - begin) / BATCH * 1e9; \
    })

/* A communicator of one rank stays with the MPI: calls of the MPI's own barrier and of MPI_Barrier, in alternating batches. */
static void fallback(void) {
    double more[BATCHES], bare[BATCHES];
    __typeof__(PMPI_Barrier) *barrier = UNDERLYING(PMPI_Barrier);
    for (int batch = 0; batch < BATCHES; batch++) {
        bare[batch] = TIMED(barrier(MPI_COMM_SELF));
        more[batch] = TIMED(MPI_Barrier(MPI_COMM_SELF)) - bare[batch];
    }
    if (rank_in(MPI_COMM_WORLD) == 0)
        printf("  a barrier that falls back: %.1f ns more than %.1f ns (target: under 30)\n", median(more, BATCHES),
               median(bare, BATCHES));
    int mine = 5, sum = 0;
    expect(!MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF) && sum == 5, "allreduce on self is %d", sum);
}

/* Communicators that are made, used or not, and freed, in batches, by the slowest rank. */
static void made(bool used) {
    enum { EACH = 20 };
    double times[USES];
    for (int use = 0; use < USES; use++) {
        UNDERLYING(PMPI_Barrier)(MPI_COMM_WORLD);
        double begin = PMPI_Wtime(), took;
        for (int i = 0; i < EACH; i++) {
            MPI_Comm comm;
            bool right = !MPI_Comm_dup(MPI_COMM_WORLD, &comm) && !(used && MPI_Barrier(comm));
            expect(right && !MPI_Comm_free(&comm), "a duplicate");
        }
        took = (PMPI_Wtime() - begin) / EACH;
        UNDERLYING(PMPI_Allreduce)(&took, &times[use], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    if (rank_in(MPI_COMM_WORLD) == 0)
        printf("  MPI_Comm_dup%s and MPI_Comm_free among %d ranks: %.1f us\n", used ? ", MPI_Barrier" : "", size_of(MPI_COMM_WORLD),
               median(times, USES) * 1e6);
}

/* The slowest rank's first collective on a new communicator, and its second. */
static void first_use(void) {
    double times[2][USES];
    for (int use = 0; use < USES; use++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        for (int call = 0; call < 2; call++) {
            int mine = rank_in(comm), sum = -1, size = size_of(comm);
            UNDERLYING(PMPI_Barrier)(MPI_COMM_WORLD);
            double begin = PMPI_Wtime(), took;
            MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
            took = PMPI_Wtime() - begin;
            expect(sum == size * (size - 1) / 2, "allreduce is %d", sum);
            UNDERLYING(PMPI_Allreduce)(&took, &times[call][use], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        }
        MPI_Comm_free(&comm);
    }
    if (rank_in(MPI_COMM_WORLD) == 0)
        printf("  first use of a communicator of %d ranks: %.1f us, second %.1f us (target: first under 200)\n",
               size_of(MPI_COMM_WORLD), median(times[0], USES) * 1e6, median(times[1], USES) * 1e6);
}

/* Bytes of the pages of this process's arena that were touched. */
static double touched(void) {
    double bytes = 0;
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char name[64] = "";
        struct stat file;
        if (readlinkat(dirfd(folder), entry->d_name, name, sizeof name - 1) < 0 || !strstr(name, "memfd:unisono")) continue;
        if (!fstatat(dirfd(folder), entry->d_name, &file, 0)) bytes += (double)file.st_blocks * 512;
    }
    if (folder) closedir(folder);
    return bytes;
}

static void live(double most) {
    static MPI_Comm comms[LIVE];
    int size = size_of(MPI_COMM_WORLD);
    UNDERLYING(PMPI_Barrier)(MPI_COMM_WORLD);
    double begin = PMPI_Wtime();
    for (int i = 0; i < LIVE; i++) {
        int mine = rank_in(MPI_COMM_WORLD), sum = -1;
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comms[i]);
        expect(sum == size * (size - 1) / 2, "communicator %d: allreduce is %d", i, sum);
    }
    double each = (PMPI_Wtime() - begin) / LIVE, mine = touched() / (1 << 20), all;
    expect(mine <= most, "%.1f MiB of an arena of %.0f MiB", mine, most);
    UNDERLYING(PMPI_Reduce)(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank_in(MPI_COMM_WORLD) == 0)
        printf("  %d live communicators of %d ranks: %.1f MiB touched (bound: %d x %.0f MiB); made and used in %.1f us each\n",
               LIVE, size, all, size, most, each * 1e6);
    for (int i = 0; i < LIVE; i++) MPI_Comm_free(&comms[i]);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (rank_in(MPI_COMM_WORLD) == 0) fallback();
    UNDERLYING(PMPI_Barrier)(MPI_COMM_WORLD);
    made(false);
    made(true);
    first_use();
    live(argc > 1 ? atof(argv[1]) : 256);
    return finish("fallback");
}
