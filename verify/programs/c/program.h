/*
 * Programs of collectives from their text (its format: ../src/text.rs), in C: a rank's calls and memory, for any
 * library. program.c reads the text, fills buffers, makes the steps and checks results; by_mpi.c and by_unisono.c call.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum name {
    BARRIER, BCAST, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW,
    REDUCE, ALLREDUCE, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN, DUP, SPLIT, FREE
};

enum op { NONE, SUM8, SUM64, XOR64, MAX64, ADD, AFFINE };

/* How the packed bytes of an element lie: `kind` as in the text, 0 to 3. */
struct shape { uint64_t kind, block, gap; };

struct type { int rank, side; struct shape shape; };

struct call {
    int number, comm, root, order;
    enum name name;
    enum op op;
    bool in_place;
    uint64_t element;
    int numbers, types;
    int64_t *number_of;
    struct type *type_of;
};

enum { SEND, RECEIVE };

/* One side's memory: a block, or one for each rank. */
struct buffer {
    unsigned char *memory; /* null: the call does not have this side */
    size_t bytes;          /* without the guard at the end */
    int blocks;
    uint64_t *counts, *displacements; /* displacements in extents; of alltoallw in bytes */
    struct shape shapes[2];           /* of blocks of even ranks, and of odd ones */
    uint64_t extents[2];
};

enum form { RUN, START, INIT };

/* A rank's part of a call. */
struct part {
    const struct call *call;
    int rank, size; /* in its communicator */
    bool in_place;  /* is it in place on this rank? */
    uint64_t own;   /* elements of a block that is alone in its buffer */
    struct buffer sides[2];
    uint32_t rounds;
    bool active, persistent;
    void *host; /* the library's data, made by host_prepare() */
};

/* right = left op right, for `count` elements: a user's operation. */
void fold(enum op op, uint64_t element, uint64_t count, const unsigned char *left, unsigned char *right);

void *allocate(size_t bytes);
/* Prints what is wrong, and ends this process and with it the job. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- The library ------------------------------------------------------------------------------ */

void host_begin(int *rank, int *size);
void host_end(void);
_Noreturn void host_abort(void);

/* Does the library have datatypes with holes for this collective? */
bool host_has_types(enum name name);

typedef struct host_comm host_comm;
/* The communicator of all ranks, which is never freed; and what is made from others. */
host_comm *host_world(void);
host_comm *host_dup(host_comm *comm);
host_comm *host_split(host_comm *comm, int64_t color, int64_t key); /* color -1: returns null */
/* Frees the communicator, on which so many requests are left; false: it can be freed only when none is left. */
bool host_free(host_comm *comm, int requests);

/* Makes and frees the library's data of a part, from before its first round to the program's end. */
void host_prepare(struct part *part);
void host_forget(struct part *part);

void host_call(struct part *part, host_comm *comm, enum form form);
void host_start(struct part *part); /* again */
bool host_test(struct part *part);
void host_wait(struct part **parts, int count);
void host_request_free(struct part *part);

#endif
