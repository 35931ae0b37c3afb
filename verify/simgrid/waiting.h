/* A layer for SMPI; see waiting.c. */
#ifndef WAITING_H
#define WAITING_H

#include <mpi.h>

#include "unisono_messages.h"

/* Connects the ranks of a communicator, for messages of `most` bytes. Collective. */
int waiting_connect(MPI_Comm comm, uint64_t most, struct unisono_messages *layer);

#endif
