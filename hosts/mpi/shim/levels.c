/* Communicators whose ranks are on several nodes: shared memory inside each node, messages between them. */
#include <stdlib.h>

#include "unisono_messages.h"

/* ---- First use ---------------------------------------------------------------------------------------- */

/* The ranks of this node make offers, and attach to the best one. Returns a reason. */
static int attach_node(MPI_Comm inside, unisono_mpi_lease **lease) {
    int rank, size;
    PMPI_Comm_rank(inside, &rank);
    PMPI_Comm_size(inside, &size);
    unisono_mpi_offer_t mine, *all = malloc(sizeof *all * size);
    unisono_mpi_levels_offer((uint32_t)size, &mine);
    if (!all) return REASON_REFUSED; /* the other ranks wait for ever then, as if the MPI had no memory */
    int code = PMPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, inside);
    int reason = unisono_mpi_levels_attach(all, (uint32_t)size, (uint32_t)rank, lease);
    free(all);
    return code == MPI_SUCCESS ? reason : REASON_REFUSED;
}

void shim_attach_levels(MPI_Comm comm, struct shim_comm *entry, const unisono_mpi_offer_t *offers, bool able,
                        unisono_mpi_progress *progress) {
    uint32_t *nodes = malloc(sizeof *nodes * entry->size);
    MPI_Comm inside;
    struct unisono_messages layer;
    unisono_mpi_lease *lease = NULL;
    int worst = REASON_REFUSED;
    if (!nodes) return; /* as above */
    if (unisono_mpi_nodes(offers, (uint32_t)entry->size, nodes)) {
        /* Whatever fails on one rank, all ranks call the same collectives. */
        int reason = REASON_REFUSED;
        if (PMPI_Comm_split(comm, (int)nodes[entry->rank], entry->rank, &inside) == MPI_SUCCESS) {
            reason = attach_node(inside, &lease);
            PMPI_Comm_free(&inside);
        }
        bool connected = shim_connect(comm, &layer) == 0;
        if (!connected || !lease || !able) reason = REASON_REFUSED;
        if (PMPI_Allreduce(&reason, &worst, 1, MPI_INT, MPI_MAX, comm) != MPI_SUCCESS) worst = REASON_REFUSED;
        if (connected && worst != REASON_NONE) layer.close(layer.context);
        if (lease)
            entry->levels = unisono_mpi_levels_settle(lease, worst, &layer, offers, (uint32_t)entry->size,
                                                      (uint32_t)entry->rank, shim_local_ranks(), progress);
    }
    free(nodes);
}
