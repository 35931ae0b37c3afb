/*
 * The MPI's functions that make an intra-communicator. A program that calls only nonblocking collectives on it would never have them
 * taken over, since attaching waits for the other ranks. These functions may wait: with UNISONO_ATTACH=created, each attaches what it has
 * made. MPI_Comm_idup must not wait, so its communicators are attached at their first blocking collective, as all are by default.
 *
 * Whether a call attaches must be the same on all members. So it does not depend on where the call comes from: also an MPI's own,
 * of MPI_File_open, attaches, and one by a program's callback. Only those that the shim itself is waiting for do not.
 */

/* Called on all members of `comm`, which the MPI has just made; on others it is MPI_COMM_NULL. */
static __attribute__((noinline, cold)) int created(MPI_Comm comm) {
    int code = MPI_SUCCESS;
    if (comm != MPI_COMM_NULL && shim_is_on() && !shim_thread()->inside) shim_attach(comm, &code);
    return code;
}

/* The last parameter is `made`. MPICH 5 returns MPI_SUCCESS after an error that the program's handler has seen, and has written nothing. */
#define CREATOR(own, callee, parameters, names)                                                                        \
    int own parameters {                                                                                               \
        typedef int function parameters;                                                                               \
        function *next = (function *)callee;                                                                           \
        if (__builtin_expect(!shim_attaches_created, 1) || !made) return next names;                                   \
        *made = MPI_COMM_NULL;                                                                                         \
        int code = next names;                                                                                         \
        return code == MPI_SUCCESS ? created(*made) : code;                                                            \
    }

/* As SHIM_EXPORT; but a tool that calls the MPI past the shim sees these calls, too, since it needs to know of all communicators. Both
 * functions attach, for what the other one has attached stays so. */
#define CREATES(lower, Name, parameters, names)                                                                        \
    SHIM_VISIBLE int shim_export_##lower parameters __asm__("PMPI_" Name);                                             \
    SHIM_VISIBLE int shim_named_##lower parameters __asm__("MPI_" Name);                                               \
    CREATOR(shim_export_##lower, SHIM_ONCE(shim_function, "PMPI_" Name), parameters, names)                            \
    static void *callee_##lower(const char *name) {                                                                    \
        void *tool = shim_tool(name);                                                                                  \
        return tool ? tool : (void *)shim_export_##lower;                                                              \
    }                                                                                                                  \
    CREATOR(shim_named_##lower, SHIM_ONCE(callee_##lower, "MPI_" Name), parameters, names)

CREATES(comm_dup, "Comm_dup", (shim_handle comm, MPI_Comm *made), (comm, made))
CREATES(comm_dup_with_info, "Comm_dup_with_info", (shim_handle comm, shim_handle info, MPI_Comm *made), (comm, info, made))
CREATES(comm_create, "Comm_create", (shim_handle comm, shim_handle group, MPI_Comm *made), (comm, group, made))
CREATES(comm_create_group, "Comm_create_group", (shim_handle comm, shim_handle group, int tag, MPI_Comm *made), (comm, group, tag, made))
CREATES(comm_create_from_group, "Comm_create_from_group",
        (shim_handle group, const char *tag, shim_handle info, shim_handle handler, MPI_Comm *made), (group, tag, info, handler, made))
CREATES(comm_split, "Comm_split", (shim_handle comm, int color, int key, MPI_Comm *made), (comm, color, key, made))
CREATES(comm_split_type, "Comm_split_type", (shim_handle comm, int type, int key, shim_handle info, MPI_Comm *made),
        (comm, type, key, info, made))
CREATES(intercomm_merge, "Intercomm_merge", (shim_handle inter, int high, MPI_Comm *made), (inter, high, made))
CREATES(cart_create, "Cart_create",
        (shim_handle comm, int dimensions, const int *sizes, const int *periods, int reorder, MPI_Comm *made),
        (comm, dimensions, sizes, periods, reorder, made))
CREATES(cart_sub, "Cart_sub", (shim_handle comm, const int *remain, MPI_Comm *made), (comm, remain, made))
CREATES(graph_create, "Graph_create",
        (shim_handle comm, int nodes, const int *index, const int *edges, int reorder, MPI_Comm *made),
        (comm, nodes, index, edges, reorder, made))
CREATES(dist_graph_create, "Dist_graph_create",
        (shim_handle comm, int n, const int *sources, const int *degrees, const int *destinations, const int *weights, shim_handle info,
         int reorder, MPI_Comm *made),
        (comm, n, sources, degrees, destinations, weights, info, reorder, made))
CREATES(dist_graph_create_adjacent, "Dist_graph_create_adjacent",
        (shim_handle comm, int in, const int *sources, const int *source_weights, int out, const int *destinations,
         const int *destination_weights, shim_handle info, int reorder, MPI_Comm *made),
        (comm, in, sources, source_weights, out, destinations, destination_weights, info, reorder, made))
