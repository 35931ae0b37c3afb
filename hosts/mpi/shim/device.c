/*
 * Memory of devices. If the MPI says that it knows devices, it copies a buffer that the processor can't read: the
 * buffer is packed into memory of the host, and unpacked from there. The other ranks are not involved, as with a
 * datatype with holes.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

bool shim_knows_devices;

void shim_prepare_devices(void) {
    static const char *const questions[] = {"MPIX_Query_cuda_support", "MPIX_Query_rocm_support", "MPIX_Query_hip_support",
                                            "MPIX_Query_ze_support"};
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        int (*ask)(void) = shim_symbol(questions[i]);
        if (ask && ask() > 0) shim_knows_devices = true;
    }
}

/* Makes a system call that is refused, but reads its argument first: the error is EFAULT if the memory can't be
 * read. */
bool shim_is_readable(const void *at) {
    int before = errno;
    uintptr_t word = (uintptr_t)at & ~(uintptr_t)7;
    bool readable = syscall(SYS_rt_sigprocmask, ~0, word, NULL, 8) == 0 || errno != EFAULT;
    errno = before;
    return readable;
}

bool shim_copy(void *to, void *from, uint64_t count, MPI_Datatype type, const struct shim_shape *shape) {
    enum { PIECE = 1 << 30 }; /* bytes, of a predefined type */
    uint64_t most = PIECE / (uint64_t)shape->extent;
    for (uint64_t done = 0; done < count; done += most) {
        int n = (int)(count - done < most ? count - done : most);
        int64_t by = (int64_t)done * shape->extent;
        if (PMPI_Sendrecv((char *)from + by, n, type, 0, 0, (char *)to + by, n, type, 0, 0, shim_private,
                          MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return false;
    }
    return true;
}
