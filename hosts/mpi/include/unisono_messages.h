/*
 * Attaching to an MPI communicator: point-to-point messages of the MPI, for the library's algorithms.
 *
 * libunisono_openmpi.so and libunisono_mpich.so export the function below, besides the collectives that they take over.
 * They are not linked with an MPI, but find the one in the process: so MPI must be loaded, and initialised.
 *
 *     struct unisono_messages layer;
 *     int error = unisono_messages_connect(MPI_Comm_c2f(comm), &layer);        collective over comm
 *     ...                                                                      layer.send(layer.context, ...)
 *     layer.close(layer.context);                                              collective, before MPI_Finalize
 *
 * In Rust: unisono_mpi::attach, whose Endpoint is the kernel's P2p; docs/howto/messages-over-mpi.md has an example.
 *
 * Functions return 0, one of the errors below, or an error class of the MPI, which is positive. One thread at a time
 * may call a layer's functions. Threads that use different layers need MPI_THREAD_MULTIPLE, as with communicators.
 */
#ifndef UNISONO_MESSAGES_H
#define UNISONO_MESSAGES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    UNISONO_MESSAGES_NOT_RUNNING = -2,       /* MPI is not initialised, or finalised */
    UNISONO_MESSAGES_NO_COMMUNICATOR = -3,   /* MPI_COMM_NULL */
    UNISONO_MESSAGES_INTERCOMMUNICATOR = -4, /* an inter-communicator */
    UNISONO_MESSAGES_FOREIGN = -5            /* the library was built for another MPI */
};

/* The most bytes of one message of a layer; the library sends longer ones in pieces. */
#define UNISONO_MESSAGES_MOST (UINT64_C(1) << 30)

/* The most bytes of a message that `expect` may be called for. */
#define UNISONO_MESSAGES_SHORT (UINT64_C(1) << 10)

/* As MPI_ANY_SOURCE, for `probe` and `receive`. */
#define UNISONO_MESSAGES_ANY UINT32_MAX

/*
 * A point-to-point layer. Pass `context` to its functions as the first argument. Only `close` and `cancel` may
 * block.
 *
 * A receive must never meet a message that is longer: an MPI may end the job then (MPICH 4 does, from MPI_Test), or write
 * beyond the receive (Open MPI does). So the library receives a message by `receive` after it has arrived and its length
 * was compared. Messages of up to UNISONO_MESSAGES_SHORT bytes have tags of their own, and are received by `expect`, which
 * may be called before they arrive, with room for the longest of them. A layer without `expect` and `cancel` (null) works
 * likewise; all ranks' layers must be alike.
 */
struct unisono_messages {
    void *context;
    uint32_t rank, size; /* of the communicator */
    uint64_t tags;       /* tags are 0 ... tags - 1 */
    /* Starts a send; *request is the layer's number for it. The bytes must not change until it is complete. */
    int (*send)(void *context, const void *bytes, uint64_t len, uint32_t to, int tag, uintptr_t *request);
    /* *found: whether a message has arrived; *len: the bytes of the first one. */
    int (*probe)(void *context, uint32_t from, int tag, int *found, uint64_t *len);
    /* Starts to receive the message that `probe` has found. */
    int (*receive)(void *context, void *bytes, uint64_t len, uint32_t from, int tag, uintptr_t *request);
    /* Starts to receive a message of at most `room` bytes, which may not have arrived; or null. */
    int (*expect)(void *context, void *bytes, uint64_t room, uint32_t from, int tag, uintptr_t *request);
    /* Gives up such a receive. *came: whether its message has come before; if so, *len: its bytes. The request must not be
     * used any more. Null where `expect` is. */
    int (*cancel)(void *context, uintptr_t request, int *came, uint64_t *len);
    /* *done: whether the request is complete; if so, and unless `len` is null, *len: the bytes that a receive has received.
     * After it is complete or has failed, the request must not be used. */
    int (*test)(void *context, uintptr_t *request, int *done, uint64_t *len);
    /* Frees the layer, which must have no requests. */
    int (*close)(void *context);
};

/* Connects the ranks of an intra-communicator, given by its Fortran handle. The layer sends on a communicator of its
 * own, so its messages never match the program's receives, nor the program's messages the layer's. Collective. */
int unisono_messages_connect(int fortran_handle, struct unisono_messages *layer);

#ifdef __cplusplus
}
#endif
#endif
