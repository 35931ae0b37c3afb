/*
 * progress: a rank that waits in a collective makes progress on its pending messages; otherwise these programs, which
 * are correct, would hang. An alarm ends one that hangs.
 */
#include "test.h"

#include <unistd.h>

/* Large enough for the rendezvous protocol: the sender must act after the receiver has called. */
enum { LARGE = 4 << 20, LIMIT_S = 60 };

enum { BCAST, BARRIER, ALLREDUCE, GATHER, ALLTOALL, SHAPES };

/* A collective that the preload takes over. */
static void collective(int shape, MPI_Comm comm) {
    enum { MOST = 64 };
    int rank = rank_in(comm), size = size_of(comm), mine = rank + 1, got[MOST] = {0}, all[MOST] = {0};
    for (int r = 0; r < size; r++) all[r] = 100 * rank + r;
    switch (shape) {
    case BCAST:
        if (rank) mine = 0;
        MPI_Bcast(&mine, 1, MPI_INT, 0, comm);
        expect(mine == 1, "bcast is %d", mine);
        return;
    case BARRIER: expect(!MPI_Barrier(comm), "barrier"); return;
    case ALLREDUCE:
        MPI_Allreduce(&mine, got, 1, MPI_INT, MPI_SUM, comm);
        expect(got[0] == size * (size + 1) / 2, "allreduce is %d", got[0]);
        return;
    case GATHER:
        MPI_Gather(&mine, 1, MPI_INT, got, 1, MPI_INT, 0, comm);
        expect(rank || got[size - 1] == size, "gather has %d", got[size - 1]);
        return;
    default:
        MPI_Alltoall(all, 1, MPI_INT, got, 1, MPI_INT, comm);
        expect(got[size - 1] == 100 * (size - 1) + rank, "alltoall has %d", got[size - 1]);
    }
}

static bool filled(const unsigned char *large, int with) {
    for (int i = 0; i < LARGE; i++)
        if (large[i] != with) return false;
    return true;
}

/* One rank starts a message, calls the collective and waits there; its peer completes the message first and then
 * calls. */
static void pending(int shape, bool starter_sends, unsigned char *large) {
    MPI_Comm comm = MPI_COMM_WORLD;
    int rank = rank_in(comm), from = starter_sends ? 0 : 1;
    MPI_Request request = MPI_REQUEST_NULL;
    int with = 20 + shape;
    memset(large, rank == from ? with : 0, LARGE);
    if (rank == 0) {
        if (starter_sends) MPI_Isend(large, LARGE, MPI_CHAR, 1, 5, comm, &request);
        else MPI_Irecv(large, LARGE, MPI_CHAR, 1, 5, comm, &request);
    }
    if (rank == 1) {
        usleep(20000); /* rank 0 is in the collective by now */
        if (starter_sends) MPI_Recv(large, LARGE, MPI_CHAR, 0, 5, comm, MPI_STATUS_IGNORE);
        else MPI_Send(large, LARGE, MPI_CHAR, 0, 5, comm);
    }
    collective(shape, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank < 2) expect(filled(large, with), "message beside collective %d", shape);
}

/* Nonblocking collectives of the MPI are in flight while the preload's blocking ones run. */
static void nonblocking(unsigned char *large) {
    MPI_Comm comm = MPI_COMM_WORLD;
    int rank = rank_in(comm), size = size_of(comm), mine = rank + 1, sum = 0;
    MPI_Request requests[2];
    memset(large, rank == 0 ? 77 : 0, LARGE);
    if (rank == size - 1) usleep(20000);
    MPI_Ibcast(large, LARGE, MPI_CHAR, 0, comm, &requests[0]);
    MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[1]);
    for (int shape = 0; shape < SHAPES; shape++) collective(shape, comm);
    for (int i = 0; i < 2; i++) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    expect(filled(large, 77), "ibcast");
    expect(sum == size * (size + 1) / 2, "iallreduce is %d", sum);
}

/* An epoch that rank 0 completed before a barrier is complete for the others after it. False: the MPI has no windows
 * here. */
static bool window(void) {
    int rank = rank_in(MPI_COMM_WORLD), none = 0, zero = 0, flag = 1;
    MPI_Win win;
    MPI_Group all, others;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code = MPI_Win_create(&none, sizeof none, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (code != MPI_SUCCESS) {
        if (rank == 0) printf("progress: skipped: windows, which the MPI refuses here\n");
        return false;
    }
    MPI_Win_get_group(win, &all);
    if (rank == 0) {
        MPI_Group_excl(all, 1, &zero, &others);
        MPI_Win_start(others, 0, win);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_complete(win);
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        MPI_Group_incl(all, 1, &zero, &others);
        MPI_Win_post(others, 0, win);
        MPI_Win_test(win, &flag);
        expect(!flag, "a window is complete before it was used");
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_test(win, &flag);
        expect(flag, "a window that was completed before a barrier is not complete after it");
        if (!flag) MPI_Win_wait(win);
    }
    MPI_Group_free(&others);
    MPI_Group_free(&all);
    MPI_Win_free(&win);
    return true;
}

/* What a rank of this node sent before a barrier is found by one probe after it. Where there are several nodes, the MPI may send over
 * the network inside a node, too, and only at its next progress: then a later probe finds it. */
static void probed(bool matched) {
    enum { TAG = 9 };
    int rank = rank_in(MPI_COMM_WORLD), from = -1, flag = 0, got = 0;
    MPI_Comm node;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    int size = size_of(node);
    MPI_Barrier(node);
    if (rank_in(node) == size - 1 && size > 1) MPI_Isend(&rank, 1, MPI_INT, 0, TAG, node, &request);
    MPI_Barrier(node);
    if (rank_in(node) == 0 && size > 1) {
        MPI_Message message;
        do {
            if (matched) MPI_Improbe(size - 1, TAG, node, &flag, &message, &status);
            else MPI_Iprobe(size - 1, TAG, node, &flag, &status);
        } while (!flag && size < size_of(MPI_COMM_WORLD));
        expect(flag, "a message that was sent before a barrier is not found after it");
        if (matched && flag) MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
        else MPI_Recv(&got, 1, MPI_INT, size - 1, TAG, node, MPI_STATUS_IGNORE);
    }
    from = rank;
    MPI_Bcast(&from, 1, MPI_INT, size - 1, node);
    if (rank_in(node) == 0 && size > 1) expect(got == from, "the message is %d", got);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&node);
}

/* MPI_Request_get_status, which the preload replaces, of a message's request. */
static void status_of_a_message(void) {
    enum { TURN = 21 };
    int me = rank_in(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD), got = -1, done = 0;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Irecv(&got, 1, MPI_INT, (me + size - 1) % size, TURN, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&me, 1, MPI_INT, (me + 1) % size, TURN, MPI_COMM_WORLD, &requests[1]);
    while (!done) MPI_Request_get_status(requests[0], &done, statuses);
    MPI_Waitall(2, requests, statuses);
    expect(got == (me + size - 1) % size, "a message has %d", got);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    alarm(LIMIT_S);
    status_of_a_message();
    unsigned char *large = allocate(LARGE);
    for (int shape = 0; shape < SHAPES; shape++) {
        pending(shape, true, large);
        pending(shape, false, large);
    }
    for (int round = 0; round < 5; round++) nonblocking(large);
    for (int round = 0; round < 20 && window(); round++) {}
    for (int round = 0; round < 100; round++) probed(round % 2);
    free(large);
    return finish("progress");
}
