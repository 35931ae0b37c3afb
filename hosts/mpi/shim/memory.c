/*
 * MPI_Alloc_mem and MPI_Free_mem: memory that the other ranks of the node read where it lies, so that collectives copy
 * long messages in it once. Short blocks, and those with an info, are the MPI's, and so is what it has allocated.
 */

/* Bytes of the shortest block that is taken from the heap, which gives whole pages. */
enum { SHORTEST = 4096 };

SHIM_EXPORT(alloc_mem, "Alloc_mem", (MPI_Aint bytes, shim_handle info, void *memory), (bytes, info, memory)) {
    typedef int function(MPI_Aint, shim_handle, void *);
    function *underlying = (function *)SHIM_ONCE(shim_function, "PMPI_Alloc_mem");
    void *own = NULL;
    if (bytes >= SHORTEST && memory && (shim_is_on() || shim_wake()) && (MPI_Info)info == MPI_INFO_NULL)
        own = unisono_mpi_alloc((uint64_t)bytes);
    if (!own) return underlying(bytes, info, memory);
    *(void **)memory = own;
    return MPI_SUCCESS;
}

SHIM_EXPORT(free_mem, "Free_mem", (void *memory), (memory)) {
    typedef int function(void *);
    function *underlying = (function *)SHIM_ONCE(shim_function, "PMPI_Free_mem");
    return unisono_mpi_free(memory) ? MPI_SUCCESS : underlying(memory);
}
