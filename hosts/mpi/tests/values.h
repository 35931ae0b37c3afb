/* The parts of values.c. */
#ifndef VALUES_H
#define VALUES_H

#include "test.h"

enum { RANKS_MOST = 64 };

/* A communicator under test. */
struct group {
    const char *name;
    MPI_Comm comm;
    int rank, size;
};

/* Collectives that move data, up to `most` units; `underlying`: only calls that the MPIs get right (values.c). */
void moves(const struct group *group, int most, bool underlying);
/* Reductions of up to `most` elements. */
void reductions(const struct group *group, int most, bool underlying);

#endif
