/* connect: attaching to a communicator from C: when it is refused, and messages. Linked with the library. */
#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "unisono_messages.h"

static int connected(MPI_Comm comm, struct unisono_messages *layer) {
    return unisono_messages_connect(MPI_Comm_c2f(comm), layer);
}

static void wait_for(struct unisono_messages *layer, uintptr_t request) {
    for (int done = 0; !done;)
        if (layer->test(layer->context, &request, &done, NULL)) exit(1);
}

/* Sends `len` bytes from rank 0 to rank 1; a message of the program with the same tag must not be mixed up with it. */
static void message(struct unisono_messages *layer, MPI_Comm comm, uint64_t len) {
    enum { TAG = 5 };
    char *bytes = calloc(len + 1, 1), other = 0;
    uintptr_t request;
    if (layer->rank == 0) {
        memset(bytes, 77, len);
        MPI_Request sent;
        MPI_Isend("x", 1, MPI_CHAR, 1, TAG, comm, &sent);
        expect(!layer->send(layer->context, bytes, len, 1, TAG, &request), "send");
        wait_for(layer, request);
        MPI_Wait(&sent, MPI_STATUS_IGNORE);
    } else if (layer->rank == 1) {
        uint64_t found_len = 0;
        for (int found = 0; !found;)
            if (layer->probe(layer->context, 0, TAG, &found, &found_len)) exit(1);
        expect(found_len == len, "a message of %llu bytes, not %llu", (unsigned long long)found_len, (unsigned long long)len);
        expect(!layer->receive(layer->context, bytes, len, 0, TAG, &request), "receive");
        wait_for(layer, request);
        expect((!len || (bytes[0] == 77 && bytes[len - 1] == 77)) && bytes[len] == 0, "the message's bytes");
        MPI_Recv(&other, 1, MPI_CHAR, 0, TAG, comm, MPI_STATUS_IGNORE);
        expect(other == 'x', "the program's message");
    }
    free(bytes);
}

/* Receives that are started before their messages: one meets a shorter message than it has room for, others are given up before and
 * after a message has come. */
static void early(struct unisono_messages *layer, MPI_Comm comm) {
    enum { TAG = 6, LEN = 8 };
    char bytes[UNISONO_MESSAGES_SHORT] = {0};
    uintptr_t request;
    uint64_t len = 99;
    int done = 0, came = 9;
    if (layer->rank == 1) {
        expect(!layer->expect(layer->context, bytes, sizeof bytes, 0, TAG, &request), "expect");
        expect(!layer->test(layer->context, &request, &done, &len) && !done, "it has not been sent");
    }
    MPI_Barrier(comm);
    if (layer->rank == 0) {
        memset(bytes, 78, LEN);
        expect(!layer->send(layer->context, bytes, LEN, 1, TAG, &request), "send");
        wait_for(layer, request);
    } else if (layer->rank == 1) {
        while (!done)
            if (layer->test(layer->context, &request, &done, &len)) exit(1);
        expect(len == LEN && bytes[LEN - 1] == 78 && bytes[LEN] == 0, "%llu bytes", (unsigned long long)len);
        expect(!layer->expect(layer->context, bytes, sizeof bytes, 0, TAG, &request), "expect another one");
        expect(!layer->cancel(layer->context, request, &came, &len) && !came, "it never came");
        expect(!layer->expect(layer->context, bytes, sizeof bytes, 0, TAG, &request), "expect a third one");
    }
    MPI_Barrier(comm);
    if (layer->rank == 0) {
        uintptr_t sent;
        expect(!layer->send(layer->context, bytes, LEN, 1, TAG, &sent), "send another one");
        wait_for(layer, sent);
        MPI_Send(bytes, 1, MPI_CHAR, 1, TAG, comm);
    } else if (layer->rank == 1) {
        MPI_Recv(bytes, 1, MPI_CHAR, 0, TAG, comm, MPI_STATUS_IGNORE);
        expect(!layer->cancel(layer->context, request, &came, &len), "cancel");
        /* If it was given up, its message is there. */
        if (came) expect(len == LEN, "%llu bytes of what came", (unsigned long long)len);
        else {
            for (int found = 0; !found;)
                if (layer->probe(layer->context, 0, TAG, &found, &len)) exit(1);
            expect(!layer->receive(layer->context, bytes, len, 0, TAG, &request), "receive");
            wait_for(layer, request);
        }
    }
}

int main(int argc, char **argv) {
    struct unisono_messages layer;
    expect(unisono_messages_connect(0, &layer) == UNISONO_MESSAGES_NOT_RUNNING, "before MPI_Init");
    MPI_Init(&argc, &argv);
    int me = rank_in(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD);
    expect(connected(MPI_COMM_NULL, &layer) == UNISONO_MESSAGES_NO_COMMUNICATOR, "MPI_COMM_NULL");
    if (size > 1) {
        MPI_Comm half, inter;
        MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - me % 2, 3, &inter);
        expect(connected(inter, &layer) == UNISONO_MESSAGES_INTERCOMMUNICATOR, "an inter-communicator");
        MPI_Comm_free(&inter);
        MPI_Comm_free(&half);
    }
    expect(connected(MPI_COMM_WORLD, &layer) == 0, "MPI_COMM_WORLD");
    expect(layer.rank == (uint32_t)me && layer.size == (uint32_t)size, "rank %u of %u", layer.rank, layer.size);
    expect(layer.tags > 32767, "%llu tags", (unsigned long long)layer.tags);
    if (size > 1)
        for (uint64_t len = 0; len < 1 << 22; len = len ? 37 * len : 1) message(&layer, MPI_COMM_WORLD, len);
    if (size > 1) early(&layer, MPI_COMM_WORLD);
    expect(layer.close(layer.context) == 0, "close");
    int code = finish("connect");
    return unisono_messages_connect(0, &layer) == UNISONO_MESSAGES_NOT_RUNNING ? code : 1;
}
