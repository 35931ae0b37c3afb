/*
 * many [LEAST] | stale | churn N: communicators that are live at once, as many as the MPI can make, at most MOST, and what each gives for a
 * collective; freed, and made again. A preload must leave the program as many as it has without it: LEAST, which a run without one prints.
 * stale: a rank that fails tells the others, who may free the communicator before they hear it. What is told late must not be taken for
 * news of the next communicator. churn: N communicators one after the other, which must not leave memory behind.
 */
#include "test.h"

#include <unistd.h>

enum { MOST = 2300, SPARE = 2 };

static bool works(MPI_Comm comm, int seed) {
    int size = size_of(comm), mine = rank_in(comm) + seed, sum = -1, first = rank_in(comm) ? -1 : seed;
    if (MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm)) return false;
    return sum == size * seed + size * (size - 1) / 2 && !MPI_Bcast(&first, 1, MPI_INT, 0, comm) && first == seed;
}

/* Of all ranks, or of the even and of the odd ones. */
static bool make(int i, MPI_Comm *comm) {
    int me = rank_in(MPI_COMM_WORLD);
    int code = i % 2 ? MPI_Comm_split(MPI_COMM_WORLD, me % 2, -me, comm) : MPI_Comm_dup(MPI_COMM_WORLD, comm);
    if (!code) MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN);
    return !code;
}

static int live(int round) {
    static MPI_Comm all[MOST];
    int made = 0;
    while (made < MOST && make(made, &all[made])) {
        expect(works(all[made], made), "round %d: communicator %d", round, made);
        made++;
    }
    for (int i = 0; i < made; i++) expect(works(all[i], i + 1), "round %d: communicator %d of %d again", round, i, made);
    for (int i = 0; i < made; i++) MPI_Comm_free(&all[i]);
    return made;
}

static void stale(void) {
    enum { ROUNDS = 20, LONG = 16, SHORT = 8 };
    int me = rank_in(MPI_COMM_WORLD), last = size_of(MPI_COMM_WORLD) - 1, text[LONG] = {0}, failed = 0;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm all, but_last;
        MPI_Comm_dup(MPI_COMM_WORLD, &all);
        MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
        MPI_Comm_split(MPI_COMM_WORLD, me == last ? MPI_UNDEFINED : 0, me, &but_last);
        expect(works(all, round), "round %d: before", round);
        /* The last rank expects less than the root sends, and gets an error; the others need not. */
        failed += MPI_Bcast(text, me == last ? SHORT : LONG, MPI_INT, 0, all) != MPI_SUCCESS;
        MPI_Comm_free(&all);
        if (me == last) continue;
        MPI_Comm_set_errhandler(but_last, MPI_ERRORS_RETURN);
        for (int turn = 0; turn < 3; turn++) {
            if (me == last - 1) usleep(5000); /* the others wait, and so look for news */
            expect(works(but_last, round + turn), "round %d, turn %d: after the failure", round, turn);
        }
        MPI_Comm_free(&but_last);
    }
    expect(me != last || failed == ROUNDS, "of %d short broadcasts %d failed", ROUNDS, failed);
}

/* The process's memory, KiB. */
static long resident(void) {
    long pages[2] = {0};
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &pages[0], &pages[1]) != 2) abort();
    fclose(file);
    return pages[1] * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Without a preload an MPI grows, too: MOST_GROWTH KiB from a tenth on, however many there are. */
static void churn(int count) {
    enum { MOST_GROWTH = 2048 };
    long early = 0;
    double begin = MPI_Wtime();
    for (int i = 0; i < count; i++) {
        MPI_Comm comm;
        if (!make(i, &comm)) return (void)expect(false, "communicator %d of %d", i, count);
        if (!expect(works(comm, i % 1000), "communicator %d of %d", i, count)) return;
        MPI_Comm_free(&comm);
        if (i == count / 10) early = resident();
    }
    long growth = resident() - early, most = 0;
    MPI_Reduce(&growth, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank_in(MPI_COMM_WORLD) == 0)
        printf("churn: %d communicators, %.0f s, at most %ld KiB more than after a tenth\n", count, MPI_Wtime() - begin, most);
    expect(growth <= MOST_GROWTH, "%ld KiB more after %d communicators than after %d", growth, count, count / 10);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (argc > 1 && !strcmp(argv[1], "stale")) return stale(), finish("many, stale");
    if (argc > 2 && !strcmp(argv[1], "churn")) return churn(atoi(argv[2])), finish("many, churn");
    int made = live(1), again = live(2);
    if (rank_in(MPI_COMM_WORLD) == 0) printf("communicators: %d\n", made);
    expect(argc < 2 || made + SPARE >= atoi(argv[1]), "%d communicators, without a preload there are %s", made, argv[1]);
    expect(again == made, "%d communicators, before %d", again, made);
    return finish("many");
}
