/*
 * lifetime [brief | spawn | ROUNDS]: thousands of communicators made and freed, two threads at once, forks between
 * collectives, and MPI_Finalize without freeing. brief: hundreds. spawn: MPI_Comm_spawn of this program. ROUNDS: that
 * many duplicates, each used and freed, and nothing else: in the statistics at the end all attached ones must be
 * released.
 */
#include "test.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* Collectives of several kinds, whose results depend on every rank. */
static bool works(MPI_Comm comm, int seed) {
    int rank = rank_in(comm), size = size_of(comm), sum = 0, sent = rank == seed % size ? seed : -1;
    int mine = rank + seed;
    if (MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm) || sum != size * seed + size * (size - 1) / 2) return false;
    return !MPI_Bcast(&sent, 1, MPI_INT, seed % size, comm) && sent == seed && !MPI_Barrier(comm);
}

enum { ROUNDS = 2000, LIVE = 1000 };
static int part = 1; /* the numbers above are divided by this */

static void churn(void) {
    for (int i = 0; i < ROUNDS / part; i++) {
        MPI_Comm dup, split;
        MPI_Comm_dup(MPI_COMM_WORLD, &dup);
        expect(works(dup, i), "duplicate %d", i);
        MPI_Comm_free(&dup);
        MPI_Comm_split(MPI_COMM_WORLD, rank_in(MPI_COMM_WORLD) % (1 + i % 3), -i, &split);
        expect(works(split, i), "split %d", i);
        MPI_Comm_free(&split);
    }
}

static void crowd(int round) {
    static MPI_Comm live[LIVE];
    for (int i = 0; i < LIVE / part; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &live[i]);
        expect(works(live[i], i), "round %d, live communicator %d", round, i);
    }
    for (int i = 0; i < LIVE / part; i++)
        expect(works(live[i], i + 1), "round %d, live communicator %d again", round, i);
    /* Not in the order in which they were made. */
    for (int i = 0; i < LIVE / part; i++) MPI_Comm_free(&live[i * 7 % (LIVE / part)]);
}

/* A handle that is reused for other ranks. */
static void reuse(void) {
    MPI_Comm comm;
    int me = rank_in(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD);
    for (int i = 0; i < 20; i++) {
        MPI_Comm_split(MPI_COMM_WORLD, i % 2 && me == 0, i % 3 ? me : -me, &comm);
        int wanted = i % 2 ? (me == 0 ? 1 : size - 1) : size;
        expect(size_of(comm) == wanted && works(comm, i), "reused handle %d", i);
        MPI_Comm_free(&comm);
    }
}

struct worker { MPI_Comm comm; int seed; };
static void *work(void *of) {
    struct worker *worker = of;
    for (int i = 0; i < 500; i++) expect(works(worker->comm, worker->seed + i), "thread %d, call %d", worker->seed, i);
    return NULL;
}

static void threads(void) {
    struct worker workers[2] = {{.seed = 1000}, {.seed = 5000}};
    pthread_t ids[2];
    for (int i = 0; i < 2; i++) MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
    for (int i = 0; i < 2; i++) pthread_create(&ids[i], NULL, work, &workers[i]);
    for (int i = 0; i < 2; i++) pthread_join(ids[i], NULL);
    for (int i = 0; i < 2; i++) MPI_Comm_free(&workers[i].comm);
}

static void forks(void) {
    for (int i = 0; i < 5; i++) {
        expect(works(MPI_COMM_WORLD, i), "before fork %d", i);
        fflush(NULL);
        pid_t child = fork();
        int status = -1;
        if (child == 0) _exit(17);
        expect(child > 0 && waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 17, "child %d", i);
        expect(works(MPI_COMM_WORLD, i + 9), "after fork %d", i);
        expect(system("exit 5") == 5 << 8, "system");
        expect(works(MPI_COMM_WORLD, i + 20), "after system %d", i);
    }
}

/* Either side of a spawn: collectives on its own MPI_COMM_WORLD, and on the merged communicator. */
static void spawned(MPI_Comm other, bool child) {
    MPI_Comm all;
    expect(works(MPI_COMM_WORLD, 3), "own world");
    MPI_Intercomm_merge(other, child, &all);
    expect(works(all, 11) && works(all, 12), "merged");
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&other);
}

static void spawn(const char *program) {
    MPI_Comm children;
    int codes[2];
    expect(works(MPI_COMM_WORLD, 1), "before spawn");
    if (MPI_Comm_spawn(program, (char *[]){"spawn", NULL}, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes))
        expect(false, "spawn is refused");
    else spawned(children, false);
    expect(works(MPI_COMM_WORLD, 2), "after spawn");
}

static void accounts(long rounds) {
    for (long i = 0; i < rounds; i++) {
        MPI_Comm dup;
        MPI_Comm_dup(MPI_COMM_WORLD, &dup);
        expect(works(dup, (int)i), "duplicate %ld", i);
        MPI_Comm_free(&dup);
    }
    UNDERLYING(PMPI_Barrier)(MPI_COMM_WORLD); /* all ranks have freed theirs */
}

int main(int argc, char **argv) {
    int level;
    MPI_Comm parent, left;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        spawned(parent, true);
        MPI_Finalize();
        return 0;
    }
    if (argc > 1 && atol(argv[1]) > 0) {
        accounts(atol(argv[1]));
        return finish("lifetime accounts");
    }
    if (argc > 1 && !strcmp(argv[1], "brief")) part = 20;
    else if (argc > 1) {
        spawn(argv[0]);
        return finish("lifetime spawn");
    }
    reuse();
    forks();
    churn();
    for (int round = 0; round < 2; round++) crowd(round);
    if (level == MPI_THREAD_MULTIPLE) threads();
    else if (rank_in(MPI_COMM_WORLD) == 0) printf("lifetime: skipped: two threads, the MPI's level is %d\n", level);
    for (int i = 0; i < 10; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &left);
        expect(works(left, i), "left %d", i);
    }
    return finish("lifetime");
}
