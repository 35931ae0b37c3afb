/*
 * created [ROUNDS | later]: communicators made in each way that MPI has, of some of the ranks and in other orders, on which the first
 * calls are nonblocking. Under UNISONO_ATTACH=created these are Unisono's: the statistics say so. ROUNDS: that many duplicates, each
 * used and freed, and nothing else. later: communicators of MPI_Comm_idup, and inter-communicators, whose first calls are the MPI's.
 */
#include "test.h"

#include <pthread.h>
#include <unistd.h>

enum { LIMIT_S = 100, COUNT = 100 };

static int me, size;

/* Rank r's number i, where r is a rank in MPI_COMM_WORLD. */
static int number(int r, int i) { return (r + 3) * (r + 1) + i * (r + 2); }

static int *ranks_of(MPI_Comm comm) {
    MPI_Group world, group;
    int n = size_of(comm), *own = allocate(sizeof(int) * n), *ranks = allocate(sizeof(int) * n);
    for (int r = 0; r < n; r++) own[r] = r;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Comm_group(comm, &group);
    MPI_Group_translate_ranks(group, n, own, world, ranks);
    MPI_Group_free(&world);
    MPI_Group_free(&group);
    free(own);
    return ranks;
}

/* The first calls on a communicator: three are started, the last rank's broadcast among them, and then waited for. */
static void works(MPI_Comm comm, const char *how) {
    int n = size_of(comm), root = n - 1, mine[COUNT], sums[COUNT], sent[COUNT], *all = allocate(sizeof(int) * n);
    MPI_Request requests[3];
    MPI_Status statuses[3];
    int *ranks = ranks_of(comm);
    for (int i = 0; i < COUNT; i++)
        mine[i] = number(me, i), sums[i] = -1, sent[i] = rank_in(comm) == root ? number(me, i + 7) : -1;
    for (int r = 0; r < n; r++) all[r] = -1;
    expect(!MPI_Iallreduce(mine, sums, COUNT, MPI_INT, MPI_SUM, comm, &requests[0]), "%s: Iallreduce", how);
    expect(!MPI_Ibcast(sent, COUNT, MPI_INT, root, comm, &requests[1]), "%s: Ibcast", how);
    expect(!MPI_Iallgather(&me, 1, MPI_INT, all, 1, MPI_INT, comm, &requests[2]), "%s: Iallgather", how);
    expect(!MPI_Waitall(3, requests, statuses), "%s: Waitall", how);
    for (int i = 0; i < COUNT; i++) {
        int sum = 0;
        for (int r = 0; r < n; r++) sum += number(ranks[r], i);
        if (!expect(sums[i] == sum, "%s: sum %d is %d, not %d", how, i, sums[i], sum)) break;
        if (!expect(sent[i] == number(ranks[root], i + 7), "%s: %d is broadcast as %d", how, i, sent[i])) break;
    }
    for (int r = 0; r < n; r++) expect(all[r] == ranks[r], "%s: rank %d is %d", how, r, all[r]);
    free(ranks), free(all);
}

/* The same, then frees it. Ranks that are not in it have MPI_COMM_NULL: `in` says which they are. */
static void take(MPI_Comm *comm, bool in, const char *how) {
    expect((*comm != MPI_COMM_NULL) == in, "%s: this rank is in it: %d", how, *comm != MPI_COMM_NULL);
    if (*comm == MPI_COMM_NULL) return;
    works(*comm, how);
    MPI_Comm_free(comm);
}

/* All ranks but the first one, if there are others, in reversed order. */
static MPI_Group without_first(void) {
    MPI_Group world, group;
    int n = size > 1 ? size - 1 : 1, *ranks = allocate(sizeof(int) * n);
    for (int i = 0; i < n; i++) ranks[i] = size - 1 - i;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, n, ranks, &group);
    MPI_Group_free(&world);
    free(ranks);
    return group;
}

static void groups(void) {
    MPI_Comm made, again;
    MPI_Group group = without_first();
    bool in = me || size == 1;
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    works(made, "dup");
    MPI_Comm_dup(made, &again);
    take(&again, true, "dup of a dup");
    MPI_Comm_dup_with_info(made, MPI_INFO_NULL, &again);
    take(&again, true, "dup with info");
    MPI_Comm_create(made, group, &again);
    take(&again, in, "create");
    if (in) {
        MPI_Comm_create_group(made, group, 5, &again);
        take(&again, true, "create group");
    }
    MPI_Comm_free(&made);
    MPI_Group_free(&group);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &made);
    take(&made, true, "split, reversed");
    MPI_Comm_split(MPI_COMM_WORLD, me == size / 2 ? MPI_UNDEFINED : me % 2, size - me, &made);
    take(&made, me != size / 2, "split without a rank");
    MPI_Comm_split_type(MPI_COMM_WORLD, me == 0 && size > 1 ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, -me, MPI_INFO_NULL, &made);
    take(&made, in, "split type");
    MPI_Comm_dup(MPI_COMM_SELF, &made);
    take(&made, true, "dup of self");
#if MPI_VERSION >= 4 || (defined OPEN_MPI && OMPI_MAJOR_VERSION >= 5)
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "created.c", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &made);
    take(&made, true, "create from group");
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
#endif
}

static void topologies(void) {
    MPI_Comm grid, part, graph;
    int sizes[2] = {size > 2 ? (size - 1) / 2 : 1, size > 2 ? 2 : 1}, periods[2] = {1, 0}, remain[2] = {0, 1};
    MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 0, &grid);
    bool in = me < sizes[0] * sizes[1];
    expect((grid != MPI_COMM_NULL) == in, "cart: this rank is in it: %d", !in);
    if (grid != MPI_COMM_NULL) {
        MPI_Cart_sub(grid, remain, &part);
        take(&part, true, "cart sub");
        take(&grid, true, "cart");
    }
    /* A path of all ranks but the last one. */
    int nodes = size > 1 ? size - 1 : 1, *index = allocate(sizeof(int) * nodes), *edges = allocate(sizeof(int) * 2 * nodes), last = 0;
    for (int r = 0; r < nodes; r++) {
        if (r) edges[last++] = r - 1;
        if (r + 1 < nodes) edges[last++] = r + 1;
        index[r] = last;
    }
    MPI_Graph_create(MPI_COMM_WORLD, nodes, index, edges, 0, &graph);
    take(&graph, me < nodes, "graph");
    free(index), free(edges);
    int next = (me + 1) % size, before = (me + size - 1) % size, one = 1;
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &me, &one, &next, &one, MPI_INFO_NULL, 0, &graph);
    take(&graph, true, "dist graph");
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, &one, 1, &next, &one, MPI_INFO_NULL, 0, &graph);
    take(&graph, true, "adjacent dist graph");
}

static MPI_Comm halves(void) {
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - me % 2, 3, &inter);
    MPI_Comm_free(&half);
    return inter;
}

static void merged(void) {
    if (size < 2) return;
    MPI_Comm inter = halves(), made, other;
    MPI_Intercomm_merge(inter, me % 2 == 0, &made);
    expect(rank_in(made) == (me % 2 ? me / 2 : size / 2 + me / 2), "merged: rank %d", rank_in(made));
    take(&made, true, "merged");
    MPI_Comm_dup(inter, &other);
    MPI_Intercomm_merge(other, me % 2, &made);
    take(&made, true, "merged from a dup");
    MPI_Comm_free(&other);
    MPI_Comm_free(&inter);
}

/* Wrong calls have the MPI's own errors, and a new communicator has the handler of the one that it was made from. */
static int handled;
static void handle(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code, handled++; }

static void errors(void) {
    MPI_Comm first, made;
    MPI_Errhandler mine, its;
    int sizes[1] = {size + 1}, periods[1] = {0};
    MPI_Comm_create_errhandler(handle, &mine);
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    MPI_Comm_set_errhandler(first, mine);
    MPI_Comm_dup(first, &made);
    MPI_Comm_get_errhandler(made, &its);
    expect(its == mine, "a duplicate has another error handler");
    MPI_Errhandler_free(&its);
    take(&made, true, "dup with an error handler");
    expect(!handled, "the error handler was called %d times", handled);
    memset(&made, 0x55, sizeof made); /* no handle */
    int ours = MPI_Cart_create(first, 1, sizes, periods, 0, &made), before = handled;
    int theirs = UNDERLYING(PMPI_Cart_create)(first, 1, sizes, periods, 0, &made);
    int class, wanted;
    MPI_Error_class(ours, &class), MPI_Error_class(theirs, &wanted);
    expect(class == wanted && before == 1 && handled == 2, "a grid that is too large: class %d, not %d; handled %d times",
           class, wanted, handled);
    ours = MPI_Comm_dup(first, NULL), theirs = UNDERLYING(PMPI_Comm_dup)(first, NULL);
    MPI_Error_class(ours, &class), MPI_Error_class(theirs, &wanted);
    expect(class == wanted && handled == 4, "a duplicate without a place: class %d, not %d; handled %d times", class, wanted, handled);
    take(&first, true, "dup after an error");
    MPI_Errhandler_free(&mine);
}

/* A copy callback that makes a communicator, as PETSc's programs have. */
static int copies;
static int copied(MPI_Comm from, int key, void *extra, void *value, void *copy, int *flag) {
    (void)from, (void)key, (void)extra;
    MPI_Comm *inner = allocate(sizeof *inner);
    copies++;
    MPI_Comm_dup(*(MPI_Comm *)value, inner);
    *(void **)copy = inner, *flag = 1;
    return MPI_SUCCESS;
}

static int deleted(MPI_Comm from, int key, void *value, void *extra) {
    (void)from, (void)key, (void)extra;
    take(value, true, "made by a copy callback");
    free(value);
    return MPI_SUCCESS;
}

static void nested(void) {
    MPI_Comm first, made, *inner = allocate(sizeof *inner);
    int key;
    MPI_Comm_create_keyval(copied, deleted, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -me, inner);
    MPI_Comm_set_attr(first, key, inner);
    MPI_Comm_dup(first, &made);
    expect(copies == 1, "%d copies", copies);
    take(&made, true, "dup with an attribute");
    take(&first, true, "dup with the first attribute");
    MPI_Comm_free_keyval(&key);
}

/* Two threads make communicators at the same time, from communicators of their own. */
static void *makes(void *of) {
    MPI_Comm made;
    for (int i = 0; i < 50; i++) {
        if (i % 2) MPI_Comm_dup(*(MPI_Comm *)of, &made);
        else MPI_Comm_split(*(MPI_Comm *)of, 0, -me, &made);
        take(&made, true, "made by a thread");
    }
    return NULL;
}

static void threads(void) {
    MPI_Comm comms[2];
    pthread_t ids[2];
    for (int i = 0; i < 2; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < 2; i++) pthread_create(&ids[i], NULL, makes, &comms[i]);
    for (int i = 0; i < 2; i++) pthread_join(ids[i], NULL);
    for (int i = 0; i < 2; i++) MPI_Comm_free(&comms[i]);
}

static void later(void) {
    MPI_Comm made;
    MPI_Request request;
    MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    works(made, "idup, before a blocking collective");
    MPI_Barrier(made);
    works(made, "idup, after a blocking collective");
    MPI_Comm_free(&made);
    if (size < 2) return;
    MPI_Comm inter = halves(), other;
    MPI_Comm_dup(inter, &other);
    MPI_Ibarrier(other, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&other);
    MPI_Comm_free(&inter);
}

static void rounds(long n) {
    for (long i = 0; i < n; i++) {
        MPI_Comm made;
        MPI_Request request;
        int mine = me + (int)i, sum = -1;
        MPI_Comm_dup(MPI_COMM_WORLD, &made);
        MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, made, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect(sum == size * (int)i + size * (size - 1) / 2, "duplicate %ld: %d", i, sum);
        MPI_Comm_free(&made);
    }
    UNDERLYING(PMPI_Barrier)(MPI_COMM_WORLD); /* all ranks have freed theirs */
}

int main(int argc, char **argv) {
    int level;
    alarm(LIMIT_S);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    me = rank_in(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD);
    if (argc > 1 && !strcmp(argv[1], "later")) later();
    else if (argc > 1) rounds(atol(argv[1]));
    else groups(), topologies(), merged(), errors(), nested();
    if (argc == 1 && level == MPI_THREAD_MULTIPLE) threads();
    return finish("created");
}
