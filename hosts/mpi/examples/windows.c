/*
 * windows: what memory of windows gains in collectives, and what it would cost to give a program other memory for its windows.
 * Two ranks; medians of 9 blocks in turn, as the slower rank sees them. Under the preload, from the top:
 *
 *     mpicc.openmpi -O2 hosts/mpi/examples/windows.c -o target/windows
 *     mpirun.openmpi --bind-to core -x LD_PRELOAD=$PWD/target/release/libunisono_openmpi.so -n 2 target/windows
 *
 * and `mpicc.mpich`, `mpirun.mpich -bind-to core -n 2 -genv LD_PRELOAD $PWD/target/release/libunisono_mpich.so target/windows`.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 9, MOST = 1 << 20 };
static int me;
static MPI_Win created, allocated;
static char *own, *part, *receive;

/* Each is one call with `bytes` bytes of `memory`. */
static void bcast(char *memory, int bytes) { MPI_Bcast(memory, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); }
static void allgather(char *memory, int bytes) { MPI_Allgather(memory, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, MPI_COMM_WORLD); }
static void put(MPI_Win win, char *memory, int bytes) {
    if (me) return;
    MPI_Put(memory, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, win);
    MPI_Win_flush(1, win);
}
static void put_created(char *memory, int bytes) { put(created, memory, bytes); }
static void put_allocated(char *memory, int bytes) { put(allocated, memory, bytes); }

/* Microseconds of a call. */
static double time_of(void (*call)(char *, int), char *memory, int bytes) {
    int calls = bytes < 10000 ? 1000 : 200;
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime(), mine, slower;
    for (int at = 0; at < calls; at++) call(memory, bytes);
    mine = (MPI_Wtime() - begin) / calls * 1e6;
    MPI_Allreduce(&mine, &slower, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slower;
}

static int ascending(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* A line that compares two ways. */
static void compare(const char *what, void (*one)(char *, int), char *its, void (*other)(char *, int), char *others, int bytes) {
    double first[BLOCKS], second[BLOCKS];
    for (int at = 0; at < BLOCKS; at++) first[at] = time_of(one, its, bytes), second[at] = time_of(other, others, bytes);
    qsort(first, BLOCKS, sizeof *first, ascending), qsort(second, BLOCKS, sizeof *second, ascending);
    if (!me)
        printf("%-44s %8d %8.2f (%.2f to %.2f) %8.2f (%.2f to %.2f) %6.2f\n", what, bytes, first[BLOCKS / 2], first[0], first[BLOCKS - 1],
               second[BLOCKS / 2], second[0], second[BLOCKS - 1], second[BLOCKS / 2] / first[BLOCKS / 2]);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    int size;
    MPI_Comm_rank(MPI_COMM_WORLD, &me), MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) return fprintf(stderr, "windows: needs 2 ranks, has %d\n", size), MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Win shared;
    char *theirs;
    own = malloc(MOST), receive = malloc(2 * MOST);
    if (!own || !receive) MPI_Abort(MPI_COMM_WORLD, 1);
    memset(own, 1, MOST);
    MPI_Win_allocate_shared(MOST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &shared);
    MPI_Win_allocate(MOST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &theirs, &allocated);
    MPI_Win_create(own, MOST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &created);
    memset(part, 1, MOST), memset(theirs, 1, MOST);
    MPI_Win_lock_all(0, allocated), MPI_Win_lock_all(0, created);
    if (!me) printf("%-44s %8s   µs, first (range), second (range), second ÷ first\n", "", "bytes");
    int sizes[] = {3000, 20000, 200000, MOST};
    for (int at = 0; at < 4; at++) {
        compare("bcast: own memory, a shared window", bcast, own, bcast, part, sizes[at]);
        compare("allgather: own memory, a shared window", allgather, own, allgather, part, sizes[at]);
    }
    int puts[] = {8, 20000, 200000};
    for (int at = 0; at < 3; at++)
        compare("put: MPI_Win_allocate, MPI_Win_create", put_allocated, receive, put_created, receive, puts[at]);
    MPI_Win_unlock_all(allocated), MPI_Win_unlock_all(created);
    MPI_Win_free(&created), MPI_Win_free(&allocated), MPI_Win_free(&shared);
    free(own), free(receive);
    return MPI_Finalize();
}
