/*
 * The data of each collective: how much it sends and receives, and the right result.
 *
 * "bytes" is OSU's: the whole vector of one rank for barrier (0), bcast, reduce, allreduce, scan,
 * exscan, and for reduce_scatter and reduce_scatter_block, which leave near-equal parts of it at each
 * rank (for the block form at least one element); one block, from one rank to one
 * other, for scatter(v), gather(v), allgather(v), alltoall(v, w). Vector forms have equal blocks.
 */
#ifndef SUBJECTS_H
#define SUBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kind { BARRIER, BCAST, REDUCE, ALLREDUCE, SCAN, EXSCAN, SCATTER, GATHER, ALLGATHER, ALLTOALL, PARTS, BLOCKS };

struct subject {
    const char *name;
    enum kind kind;
};

extern const struct subject subjects[];
extern const size_t subject_count;

/* A row's subject between `size` ranks. */
struct cell {
    const struct subject *subject;
    uint64_t bytes;
    size_t n; /* elements, as the call counts them */
    int rank, size;
};

struct cell cell_of(const struct subject *subject, uint64_t bytes, int rank, int size);
bool rooted(const struct cell *cell);
/* Elements of the largest send and receive buffer, whichever rank is the root. */
size_t sends_most(const struct cell *cell);
size_t receives_most(const struct cell *cell);
/* Elements that this rank sends and receives. A broadcast's buffer counts as received; there is a send buffer for it, too. */
size_t sends(const struct cell *cell, int root);
size_t receives(const struct cell *cell, int root);

/* Fills this rank's send buffer, that of a broadcast with its message. Two seeds differ in every element. */
void fill_send(const struct cell *cell, uint64_t *send, uint64_t seed);
/* Fills this rank's receive buffer with junk that must not stay; at the root of a broadcast, with its message. */
void fill_receive(const struct cell *cell, uint64_t *receive, int root, uint64_t seed);
/* Is the result right, with this root? */
bool arrived(const struct cell *cell, const uint64_t *receive, int root, uint64_t seed);

#endif
