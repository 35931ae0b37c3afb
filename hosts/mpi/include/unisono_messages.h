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

/* As MPI_ANY_SOURCE, for `probe` and `receive`. */
#define UNISONO_MESSAGES_ANY UINT32_MAX

/*
 * A point-to-point layer. Pass `context` to its functions as the first argument. Only `close` blocks.
 *
 * A receive is started only after its message has arrived and its length was compared. The reason: if a message is
 * longer than its receive, an MPI may end the job (MPICH does, from MPI_Test), and if it is shorter, MPI reports no
 * error.
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
    /* *done: whether the request is complete. After it is complete or has failed, the request must not be used. */
    int (*test)(void *context, uintptr_t *request, int *done);
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
