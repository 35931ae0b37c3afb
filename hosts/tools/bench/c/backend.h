/* What the benchmark needs from a library. backend_mpi.c and backend_unisono.c implement it. */
#ifndef BACKEND_H
#define BACKEND_H

#include <stddef.h>
#include <stdint.h>

/* One collective call. Elements are 8 bytes: opaque where data are moved, doubles where they are reduced. */
struct call {
    const void *send;
    void *receive;
    size_t n; /* elements; what they are per collective: subjects.h */
    int root;
};

/* Returns 0, or the library's error number. */
typedef int operation(const struct call *call);

void backend_start(int *argc, char ***argv);
void backend_end(void);
int backend_rank(void);
int backend_size(void);
/* The library's name and version, on one line. */
const char *backend_name(void);
/* The text of the error number. */
const char *backend_error(int code);
/* Ends all ranks. */
void backend_abort(int status) __attribute__((noreturn));

/* The operation of this name for `n` elements; null where the library has none. */
operation *backend_find(const char *collective, size_t n);

/* A barrier, outside the timed part. */
int backend_barrier(void);
int backend_bcast_bytes(void *bytes, size_t count, int root);

#endif
