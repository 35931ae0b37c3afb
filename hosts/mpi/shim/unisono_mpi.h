/*
 * The functions of the Rust library, which does not call MPI, for the preloaded shim in C, which does; besides
 * unisono.h.
 *
 * A communicator's first use takes two collectives of the underlying MPI: every rank makes an offer, the offers are
 * allgathered, every rank attaches to the best one (the same for all), and all agree whether all ranks could attach.
 *
 *     unisono_mpi_offer(ranks, &mine);
 *     PMPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, comm);
 *     reason = unisono_mpi_attach(all, ranks, rank, local_ranks, progress, &lease);
 *     PMPI_Allreduce(&reason, &worst, 1, MPI_INT, MPI_MAX, comm);
 *     comm = unisono_mpi_settle(lease, worst);          (null unless worst is UNISONO_MPI_ATTACHED)
 *     ...
 *     unisono_mpi_release(lease);                        (from the communicator's delete callback)
 *
 * All functions may be called from several threads at once, for different communicators.
 */
#ifndef UNISONO_MPI_H
#define UNISONO_MPI_H

#include <stdint.h>
#include <unisono.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Why a communicator stays with the underlying MPI; 0: it does not. When ranks agree, the largest number wins. */
enum {
    UNISONO_MPI_ATTACHED = 0,
    UNISONO_MPI_ALONE = 1,    /* one rank: nothing is to be gained */
    UNISONO_MPI_NODES = 2,    /* ranks on several nodes, or in namespaces that can't share memory */
    UNISONO_MPI_FULL = 3,     /* no arena has room (UNISONO_ARENA) */
    UNISONO_MPI_REFUSED = 4,  /* the system refused to make or map memory; a line on stderr said why, once */
    UNISONO_MPI_VERSIONS = 5, /* another version of this library on another rank */
    UNISONO_MPI_OFF = 6       /* switched off on some rank (UNISONO=off), or after a fork */
};

/* One rank's offer: plain bytes, written by unisono_mpi_offer and read by unisono_mpi_attach. */
typedef struct unisono_mpi_offer_t { uint64_t words[12]; } unisono_mpi_offer_t;

/* One communicator's memory, from attach to release. */
typedef struct unisono_mpi_lease unisono_mpi_lease;

/* Makes progress on the rank's pending operations of the MPI, if it is time; called repeatedly while a rank waits. `waits_long`: not 0 once
 * a wait is long. */
typedef void unisono_mpi_progress(int waits_long);

/* Makes this process's arena and reads the machine's settings, so that the first communicator does not have to. */
void unisono_mpi_prepare(void);

/* Reserves memory for a communicator of `ranks` ranks in this process's arena, until attach decides, and writes the
 * offer. It can't fail: without memory the offer has the reason. */
void unisono_mpi_offer(uint32_t ranks, unisono_mpi_offer_t *mine);

/* The number of ranks that made these offers on the node of `rank`; 0 if an offer can't be read. */
uint32_t unisono_mpi_node_ranks(const unisono_mpi_offer_t *offers, uint32_t ranks, uint32_t rank);

/* Chooses among the offers of all ranks (the same on each), gives up this process's reservation if it was not chosen,
 * and maps the chosen memory. Returns UNISONO_MPI_ATTACHED or a reason, and always writes a lease, which must be
 * settled. */
int unisono_mpi_attach(const unisono_mpi_offer_t *offers, uint32_t ranks, uint32_t rank, uint32_t local_ranks,
                       unisono_mpi_progress *progress, unisono_mpi_lease **lease);

/* `agreed`: the result on which all ranks agreed. UNISONO_MPI_ATTACHED: returns the communicator, which the lease owns.
 * Otherwise frees the lease and returns null. */
unisono_comm *unisono_mpi_settle(unisono_mpi_lease *lease, int agreed);

/* Frees this rank's part of the communicator; the owner reuses the memory when all ranks have called. Null is
 * allowed. */
void unisono_mpi_release(unisono_mpi_lease *lease);

/* As unisono_test, but other threads may call the communicator meanwhile. A call of theirs waits for the end of a test; a test during one
 * only looks, and leaves the request to be tested again, also where `done` is 1. */
int unisono_mpi_test(unisono_request **request, int *done);

/* Have this process's node, with so many ranks of the job, and this process fewer cores than ranks? */
int unisono_mpi_crowded(uint32_t local_ranks);

/*
 * A communicator whose ranks are on several nodes: a segment in each, messages between them. After attach has said
 * UNISONO_MPI_NODES,
 *
 *     unisono_mpi_nodes(all, ranks, nodes);                      each rank's node, in the order of their first ranks
 *     unisono_mpi_levels_offer(ranks_inside, &mine);             ranks_inside: those on this rank's node
 *     PMPI_Allgather(..., comm);
 *     reason = unisono_mpi_levels_attach(all_inside, ranks_inside, rank_inside, &lease);
 *     unisono_messages_connect(comm, &layer);                    or another layer over all ranks
 *     PMPI_Allreduce(&reason, &worst, 1, MPI_INT, MPI_MAX, comm);
 *     levels = unisono_mpi_levels_settle(lease, worst, &layer, all, ranks, rank, local_ranks, progress);
 *     ...
 *     unisono_mpi_levels_release(levels);
 *
 * One call at a time may use such a communicator. The collectives are as in unisono.h, with the MPI communicator's
 * ranks. With a `request` that is not null a call is started, as unisono_ibcast: it moves when a request of the communicator is tested;
 * calls end in the order in which they were made, so a call that is not started waits for those that were.
 */
typedef struct unisono_mpi_levels unisono_mpi_levels;
typedef struct unisono_mpi_levels_request unisono_mpi_levels_request;
struct unisono_messages;
int unisono_mpi_nodes(const unisono_mpi_offer_t *offers, uint32_t ranks, uint32_t *nodes); /* 0: an offer can't be read */
void unisono_mpi_levels_offer(uint32_t ranks, unisono_mpi_offer_t *mine);
int unisono_mpi_levels_attach(const unisono_mpi_offer_t *offers, uint32_t ranks, uint32_t rank,
                              unisono_mpi_lease **lease);
/* If `agreed` is UNISONO_MPI_ATTACHED, the layer belongs to the communicator from now on. Null: `agreed` is another
 * number, or there is no memory. */
unisono_mpi_levels *unisono_mpi_levels_settle(unisono_mpi_lease *lease, int agreed, const struct unisono_messages *layer,
                                              const unisono_mpi_offer_t *offers, uint32_t ranks, uint32_t rank,
                                              uint32_t local_ranks, unisono_mpi_progress *progress);
void unisono_mpi_levels_release(unisono_mpi_levels *levels);
/* Is the call complete? Then `done` is 1, the request is freed and null, and the result is the call's. Other threads may call the
 * communicator meanwhile. */
int unisono_mpi_levels_test(unisono_mpi_levels_request **request, int *done);
/* Tells all ranks that this rank can't take part in the next call. */
void unisono_mpi_levels_report(const unisono_mpi_levels *levels);
int unisono_mpi_levels_barrier(const unisono_mpi_levels *levels, unisono_mpi_levels_request **request);
int unisono_mpi_levels_bcast(const unisono_mpi_levels *levels, void *buffer, uint64_t bytes, uint32_t root,
                             unisono_mpi_levels_request **request);
int unisono_mpi_levels_reduce(const unisono_mpi_levels *levels, const void *send, void *receive, uint64_t count,
                              int datatype, const unisono_op *op, uint32_t root, unisono_mpi_levels_request **request);
int unisono_mpi_levels_allreduce(const unisono_mpi_levels *levels, const void *send, void *receive, uint64_t count,
                                 int datatype, const unisono_op *op, unisono_mpi_levels_request **request);
int unisono_mpi_levels_allgather(const unisono_mpi_levels *levels, const void *send, void *receive, uint64_t block,
                                 unisono_mpi_levels_request **request);
int unisono_mpi_levels_allgatherv(const unisono_mpi_levels *levels, const void *send, uint64_t sent, void *receive,
                                  const uint64_t *counts, const uint64_t *displacements,
                                  unisono_mpi_levels_request **request);
int unisono_mpi_levels_gather(const unisono_mpi_levels *levels, const void *send, void *receive, uint64_t block,
                              uint32_t root, unisono_mpi_levels_request **request);
int unisono_mpi_levels_gatherv(const unisono_mpi_levels *levels, const void *send, uint64_t sent, void *receive,
                               const uint64_t *counts, const uint64_t *displacements, uint32_t root,
                               unisono_mpi_levels_request **request);
int unisono_mpi_levels_scatter(const unisono_mpi_levels *levels, const void *send, void *receive, uint64_t block,
                               uint32_t root, unisono_mpi_levels_request **request);
int unisono_mpi_levels_scatterv(const unisono_mpi_levels *levels, const void *send, const uint64_t *counts,
                                const uint64_t *displacements, void *receive, uint64_t received, uint32_t root,
                                unisono_mpi_levels_request **request);
int unisono_mpi_levels_alltoall(const unisono_mpi_levels *levels, const void *send, void *receive, uint64_t block,
                                unisono_mpi_levels_request **request);
int unisono_mpi_levels_alltoallv(const unisono_mpi_levels *levels, const void *send, const uint64_t *send_counts,
                                 const uint64_t *send_displacements, void *receive, const uint64_t *receive_counts,
                                 const uint64_t *receive_displacements, unisono_mpi_levels_request **request);
int unisono_mpi_levels_reduce_scatter(const unisono_mpi_levels *levels, const void *send, void *receive,
                                      const uint64_t *counts, int datatype, const unisono_op *op,
                                      unisono_mpi_levels_request **request);
int unisono_mpi_levels_reduce_scatter_block(const unisono_mpi_levels *levels, const void *send, void *receive,
                                            uint64_t count, int datatype, const unisono_op *op,
                                            unisono_mpi_levels_request **request);
int unisono_mpi_levels_scan(const unisono_mpi_levels *levels, const void *send, void *receive, uint64_t count,
                            int datatype, const unisono_op *op, unisono_mpi_levels_request **request);
int unisono_mpi_levels_exscan(const unisono_mpi_levels *levels, const void *send, void *receive, uint64_t count,
                              int datatype, const unisono_op *op, unisono_mpi_levels_request **request);

/* Sums since the start: waits that did not end at once; bytes of this process's arena, those in
 * use now, and the most that were in use; communicators attached and released; messages that were lent and read where
 * they lay, and those that a rank could not read there; pages of this process's parts of communicators, and how many of them
 * do not lie on its NUMA node; calls over switches; bytes of its heap's blocks, of freed blocks whose pages are kept, and of
 * its pages. */
typedef struct unisono_mpi_sums_t {
    uint64_t waits, arena, used, most_used, attached, released, lent, refused, pages, elsewhere,
        over_switches, heap_used, heap_kept, heap_touched;
} unisono_mpi_sums_t;
void unisono_mpi_sums(unisono_mpi_sums_t *sums);

/* Does the decision table that all ranks of the lease's communicator have leave a call to the MPI? `collective` is the number of a
 * collective of MPI's by its name ("allgatherv"); -1: tables have no rules for it. `bytes` are those that tables count; the op
 * `commutes`. `any`: is any call of the collective left? */
int unisono_mpi_collective(const char *name);
int unisono_mpi_leaves(const unisono_mpi_lease *lease, int collective, uint64_t bytes, int commutes);
int unisono_mpi_leaves_any(const unisono_mpi_lease *lease, int collective);

/* Memory that the other ranks of the node read where it lies, in whole pages; null: there is none. Freed, or 0: it is no such
 * memory. */
void *unisono_mpi_alloc(uint64_t bytes);
int unisono_mpi_free(void *memory);

/* A window of the MPI whose parts are mapped in all its ranks: messages that lie in a rank's own part are read there. One
 * rank's number is for all; 0: nothing is lent here. `add` returns 0 if the window was not added; its parts stay mapped until
 * it is removed. A number that was not added may be removed. */
typedef struct unisono_mpi_part_t {
    uint64_t process; /* its number */
    void *base;       /* in this process */
    uint64_t bytes;
} unisono_mpi_part_t;
uint64_t unisono_mpi_window_number(void);
int unisono_mpi_window_add(uint64_t number, const unisono_mpi_part_t *parts, uint32_t ranks, uint32_t rank);
void unisono_mpi_window_remove(uint64_t number);

/* To be called in the child after a fork, which must not use anything of the parent. From now on offers say
 * UNISONO_MPI_OFF. */
void unisono_mpi_forked(void);

#ifdef __cplusplus
}
#endif
#endif
