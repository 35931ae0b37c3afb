/* Communicators whose ranks are on several nodes: shared memory inside each node, messages between them. */
#include <stdlib.h>

#include "unisono_messages.h"

/* ---- First use ---------------------------------------------------------------------------------------- */

/* The ranks of each node make offers, and attach to their node's best one. All get all offers: so the MPI need not make a communicator
 * for each node, of which it may have none left. Returns a reason. */
static int attach_node(MPI_Comm comm, const struct shim_comm *entry, const uint32_t *nodes, unisono_mpi_lease **lease) {
    uint32_t inside = 0, rank = 0, kept = 0;
    for (int r = 0; r < entry->size; r++)
        if (nodes[r] == nodes[entry->rank]) rank += r < entry->rank, inside++;
    unisono_mpi_offer_t mine, *all = malloc(sizeof *all * entry->size);
    unisono_mpi_levels_offer(inside, &mine);
    if (!all) return REASON_REFUSED; /* the other ranks wait for ever then, as if the MPI had no memory */
    int code = PMPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, comm);
    for (int r = 0; r < entry->size; r++)
        if (nodes[r] == nodes[entry->rank]) all[kept++] = all[r];
    int reason = unisono_mpi_levels_attach(all, inside, rank, lease);
    free(all);
    return code == MPI_SUCCESS ? reason : REASON_REFUSED;
}

/* Is each of the ranks on a node of its own? Nodes are numbered in the order of their first ranks. */
static bool are_spread(const uint32_t *nodes, int size) {
    for (int r = 0; r < size; r++)
        if (nodes[r] != (uint32_t)r) return false;
    return true;
}

enum shim_reason shim_attach_levels(MPI_Comm comm, struct shim_comm *entry, const unisono_mpi_offer_t *offers, bool able,
                                    unisono_mpi_progress *progress) {
    uint32_t *nodes = malloc(sizeof *nodes * entry->size);
    struct unisono_messages layer;
    unisono_mpi_lease *lease = NULL;
    int worst = REASON_NODES;
    if (!nodes) return REASON_NODES; /* as above */
    bool read = unisono_mpi_nodes(offers, (uint32_t)entry->size, nodes);
    if (read && are_spread(nodes, entry->size) && !shim_takes_spread) {
        worst = REASON_SPREAD;
    } else if (read) {
        /* Whatever fails on one rank, all ranks call the same collectives. */
        worst = REASON_REFUSED;
        int reason = attach_node(comm, entry, nodes, &lease);
        bool connected = shim_connect_shared(comm, &layer) == 0;
        if (!connected || !lease || !able) reason = REASON_REFUSED;
        reason = reason * MOVES_ALL + (int)shim_moves();
        int code = PMPI_Allreduce(&reason, &worst, 1, MPI_INT, MPI_MAX, comm);
        entry->moves = (enum shim_moves)(worst % MOVES_ALL), worst /= MOVES_ALL;
        if (code != MPI_SUCCESS) worst = REASON_REFUSED;
        if (connected && worst != REASON_NONE) layer.close(layer.context);
        else if (connected && comm == MPI_COMM_WORLD) shim_share_world(&layer);
        if (lease)
            entry->levels = unisono_mpi_levels_settle(lease, worst, &layer, offers, (uint32_t)entry->size,
                                                      (uint32_t)entry->rank, shim_local_ranks(), progress);
    }
    free(nodes);
    return entry->levels ? REASON_NONE : worst == REASON_SPREAD ? REASON_SPREAD : REASON_NODES;
}
