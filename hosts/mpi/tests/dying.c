/*
 * dying: delete callbacks that call collectives on the communicator that is being freed, which every MPI allows; and
 * later communicators with the same handle, which must not be taken for it.
 */
#include "test.h"

static int keyval, rounds_of_callback;

/* A collective whose result depends on the ranks and on `round`. */
static bool works(MPI_Comm comm, int round) {
    int mine = 100 * round + rank_in(MPI_COMM_WORLD), size = size_of(comm), sum = 0, largest = -1, all[64], wanted = 0;
    if (MPI_Allgather(&mine, 1, MPI_INT, all, 1, MPI_INT, comm)) return false;
    if (MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm)) return false;
    if (MPI_Allreduce(&mine, &largest, 1, MPI_INT, MPI_MAX, comm)) return false;
    for (int r = 0; r < size; r++) {
        wanted += all[r];
        if (all[r] / 100 != round || all[r] > largest) return false;
    }
    return all[rank_in(comm)] == mine && sum == wanted && !MPI_Barrier(comm);
}

struct value {
    int round;
    MPI_Comm other; /* freed by the callback, unless null */
};

static int deleted(MPI_Comm comm, int key, void *of, void *extra) {
    (void)key, (void)extra;
    struct value *value = of;
    rounds_of_callback++;
    expect(works(comm, value->round), "round %d: in the delete callback", value->round);
    if (value->other != MPI_COMM_NULL) {
        expect(works(value->other, value->round), "round %d: another one, in the delete callback", value->round);
        MPI_Comm_free(&value->other);
        expect(works(comm, value->round), "round %d: in the delete callback, after it freed another one", value->round);
    }
    return MPI_SUCCESS;
}

enum order { BEFORE, AFTER, MIXED, ORDERS }; /* when the attribute is set: MIXED: before the first use on odd ranks */
enum made { DUP, SPLIT, CREATE, MADE };

static MPI_Comm make(enum made made, int round) {
    MPI_Comm comm = MPI_COMM_NULL;
    int me = rank_in(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD);
    switch (made) {
    case DUP: MPI_Comm_dup(MPI_COMM_WORLD, &comm); break;
    case SPLIT: MPI_Comm_split(MPI_COMM_WORLD, 1 + ((me + round) % size == 0), round % 2 ? me : -me, &comm); break;
    default: /* never in the same order (stub.c) */
        MPI_Comm_split(MPI_COMM_WORLD, 0, size > 1 ? (me + 1 + round % (size - 1)) % size : 0, &comm);
    }
    return comm;
}

static void one_round(int round, enum made made, enum order order, bool disconnect, bool nested) {
    struct value value = {.round = round, .other = MPI_COMM_NULL};
    MPI_Comm comm = make(made, round);
    if (nested) MPI_Comm_dup(MPI_COMM_WORLD, &value.other);
    bool before = order == BEFORE || (order == MIXED && rank_in(MPI_COMM_WORLD) % 2);
    if (before) MPI_Comm_set_attr(comm, keyval, &value);
    expect(works(comm, round), "round %d: first use", round);
    if (!before) MPI_Comm_set_attr(comm, keyval, &value);
    if (nested && round % 2) expect(works(value.other, round), "round %d: another one", round);
    if (disconnect) MPI_Comm_disconnect(&comm);
    else MPI_Comm_free(&comm);
    expect(comm == MPI_COMM_NULL, "round %d: the handle is kept", round);
    /* It usually has the same handle, with other ranks or another order. */
    comm = make((made + 1) % MADE, round);
    expect(works(comm, round + 1), "round %d: the next one", round);
    MPI_Comm_free(&comm);
}

/* A callback forbids MPI_Comm_free: the communicator can still be used. */
static bool forbidden;
static int forbid(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    return forbidden ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static void refuse(int round) {
    int own;
    MPI_Comm comm = make(CREATE, round), kept = comm;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* MPICH's error */
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forbid, &own, NULL);
    MPI_Comm_set_attr(comm, own, NULL);
    expect(works(comm, round), "round %d: before the free that is forbidden", round);
    forbidden = true;
    int code = MPI_Comm_free(&comm);
    forbidden = false;
    if (code != MPI_SUCCESS && comm == kept) {
        expect(works(comm, round), "round %d: after the free that was forbidden", round);
        MPI_Comm_free(&comm);
    }
    MPI_Comm_free_keyval(&own);
}

int main(int argc, char **argv) {
    int round = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleted, &keyval, NULL);
    for (; round < 200; round++)
        one_round(round, round % MADE, round / MADE % ORDERS, round % 2, round / (MADE * ORDERS) % 2);
    expect(rounds_of_callback == round, "%d delete callbacks, not %d", rounds_of_callback, round);
    for (; round < 210; round++) refuse(round);
    MPI_Comm_free_keyval(&keyval);
    return finish("dying");
}
