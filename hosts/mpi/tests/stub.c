/*
 * A library that is preloaded behind Unisono's and stands before parts of the MPI, which so answers what none does here:
 * STUB_NAME=TEXT: the MPI's version is TEXT. STUB_ABI=N: it has the standard's handles in version N; -1: it has not.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include <dlfcn.h>

/* The MPI's own. */
static void *beneath(const char *name) {
    void *at = dlsym(RTLD_NEXT, name);
    if (!at) abort();
    return at;
}

int PMPI_Get_library_version(char *version, int *len) {
    const char *name = getenv("STUB_NAME");
    if (!name) return ((int (*)(char *, int *))beneath("PMPI_Get_library_version"))(version, len);
    strcpy(version, name);
    *len = (int)strlen(name);
    return MPI_SUCCESS;
}

int PMPI_Abi_get_version(int *major, int *minor);
int PMPI_Abi_get_version(int *major, int *minor) {
    const char *version = getenv("STUB_ABI");
    *major = version ? atoi(version) : -1;
    *minor = *major < 0 ? -1 : 0;
    return MPI_SUCCESS;
}
