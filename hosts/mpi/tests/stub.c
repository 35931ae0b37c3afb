/*
 * A library that is preloaded after Unisono's and replaces some functions of the MPI, so that the MPI has properties
 * that none has here. STUB_NAME=TEXT: its version is TEXT. STUB_ABI=N: it has the standard ABI's handles in version N;
 * -1: it does not. STUB_SPLIT=N: every Nth MPI_Comm_split of a communicator of several ranks fails, if it keeps all ranks in their
 * order, as Unisono's do: the program's own come this way, too.
 * STUB_DEVICE=1: it knows a device, whose memory the processor can't access: pages that only this library opens.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <dlfcn.h>
#include <sys/mman.h>

/* The MPI's own function. */
static void *underlying(const char *name) {
    void *at = dlsym(RTLD_NEXT, name);
    if (!at) abort();
    return at;
}

int PMPI_Get_library_version(char *version, int *len) {
    const char *name = getenv("STUB_NAME");
    if (!name) return ((int (*)(char *, int *))underlying("PMPI_Get_library_version"))(version, len);
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

int PMPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *split) {
    static int count;
    const char *nth = getenv("STUB_SPLIT");
    int size, rank;
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    if (!nth || size == 1 || color != 0 || key != rank || ++count % atoi(nth))
        return ((__typeof__(PMPI_Comm_split) *)underlying("PMPI_Comm_split"))(comm, color, key, split);
    MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
    return MPI_ERR_OTHER;
}

/* ---- A device ------------------------------------------------------------------------------------------ */

enum { MEMORY = 1 << 24 };
static char *device;

/* Returns the device's memory, which is closed, to the program. */
void *stub_device(void);
void *stub_device(void) {
    if (!device) device = mmap(NULL, MEMORY, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (device == MAP_FAILED) abort();
    return device;
}

void stub_open(bool open);
void stub_open(bool open) {
    if (device && mprotect(device, MEMORY, open ? PROT_READ | PROT_WRITE : PROT_NONE)) abort();
}

int MPIX_Query_cuda_support(void) { return getenv("STUB_DEVICE") != NULL; }

#define OPENED(call)                                                                                                   \
    do {                                                                                                               \
        stub_open(true);                                                                                               \
        int code = call;                                                                                               \
        stub_open(false);                                                                                              \
        return code;                                                                                                   \
    } while (0)
#define UNDERLYING(name) ((__typeof__(name) *)underlying(#name))

int PMPI_Pack(const void *from, int count, MPI_Datatype type, void *to, int size, int *position, MPI_Comm comm) {
    OPENED(UNDERLYING(PMPI_Pack)(from, count, type, to, size, position, comm));
}

int PMPI_Unpack(const void *from, int size, int *position, void *to, int count, MPI_Datatype type, MPI_Comm comm) {
    OPENED(UNDERLYING(PMPI_Unpack)(from, size, position, to, count, type, comm));
}

int PMPI_Sendrecv(const void *from, int count, MPI_Datatype type, int dest, int tag, void *to, int counts, MPI_Datatype other,
                  int source, int tags, MPI_Comm comm, MPI_Status *status) {
    OPENED(UNDERLYING(PMPI_Sendrecv)(from, count, type, dest, tag, to, counts, other, source, tags, comm, status));
}
