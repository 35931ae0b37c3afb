/*
 * Attaching to an MPI communicator: its point-to-point messages, for the library's algorithms.
 *
 * libunisono_openmpi.so and libunisono_mpich.so export what is declared here, beside the collectives that they take
 * over. They link no MPI: they find the one in the process, so MPI must be loaded, and initialised.
 *
 *     struct unisono_messages layer;
 *     int error = unisono_messages_connect(MPI_Comm_c2f(comm), &layer);        collective over comm
 *     ...                                                                      layer.send(layer.context, ...)
 *     layer.close(layer.context);                                              collective, before MPI_Finalize
 *
 * In Rust: unisono_mpi::attach, whose Endpoint is the kernel's P2p; docs/howto/messages-over-mpi.md has an example.
 *
 * Errors are 0, one of the numbers below, or an error class of the MPI's, which are positive. All of a layer's functions
 * may be called by one thread at a time; layers of several threads need MPI_THREAD_MULTIPLE, as communicators do.
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
    UNISONO_MESSAGES_INTERCOMMUNICATOR = -4, /* it has two groups of ranks */
    UNISONO_MESSAGES_FOREIGN = -5            /* the library was built for another MPI */
};

/* Most bytes of one message here; the library sends longer ones in pieces. */
#define UNISONO_MESSAGES_MOST (UINT64_C(1) << 30)

/* From any rank: for `probe` and `receive`. */
#define UNISONO_MESSAGES_ANY UINT32_MAX

/*
 * A point-to-point layer: its functions take `context` first. Nothing blocks but `close`.
 *
 * Receives are not posted before their message has come, and its length is compared: an MPI may end the job where a message
 * is longer than its receive (MPICH does, from MPI_Test), and says nothing where it is shorter.
 */
struct unisono_messages {
    void *context;
    uint32_t rank, size; /* of the communicator */
    uint64_t tags;       /* tags are 0 ... tags - 1 */
    /* Begins a send: *request is a number of the layer's. The bytes stay as they are until it has ended. */
    int (*send)(void *context, const void *bytes, uint64_t len, uint32_t to, int tag, uintptr_t *request);
    /* *found says whether a message has come, *len how long the first one is. */
    int (*probe)(void *context, uint32_t from, int tag, int *found, uint64_t *len);
    /* Begins to receive the message that was found. */
    int (*receive)(void *context, void *bytes, uint64_t len, uint32_t from, int tag, uintptr_t *request);
    /* *done says whether it has ended. A request that has ended, by an error too, is none. */
    int (*test)(void *context, uintptr_t *request, int *done);
    /* No request is left. The layer is gone. */
    int (*close)(void *context);
};

/* Connects the ranks of an intra-communicator, given by its Fortran handle, on a communicator of their own: no message
 * of the program's is ever taken for one of theirs. Collective. */
int unisono_messages_connect(int fortran_handle, struct unisono_messages *layer);

#ifdef __cplusplus
}
#endif
#endif
