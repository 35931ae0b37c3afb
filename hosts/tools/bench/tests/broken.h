/* A broadcast that spoils the last byte of 8 KiB messages: the benchmark must find it. */
#define _GNU_SOURCE
#include <unisono_posix.h>

static inline int broken_bcast(unisono_comm *comm, void *buffer, uint64_t bytes, uint32_t root) {
    int code = unisono_bcast(comm, buffer, bytes, root);
    if (bytes == 8192 && (uint32_t)unisono_rank(comm) != root) ((char *)buffer)[8191] ^= 1;
    return code;
}
#define unisono_bcast broken_bcast
