/*
 * How far the cores of ranks 0 and 1 are from each other: a cache line's round trip between them. A guest's cores are moved by
 * its host, from one cache to another and on to the threads of one core, mostly while they are idle. So a row starts once
 * the round trip is in the wanted range, after naps until it is, and is measured again if it is not at the end. If it does not
 * come there, the row is measured elsewhere, and says so.
 */
#ifndef LINE_H
#define LINE_H

#include "clock.h"

#include <stdbool.h>

/* The range of round trips, in nanoseconds, and the file that ranks 0 and 1 map: zeroed, of 4096 bytes. */
struct line_range {
    const char *path; /* null: nothing is measured */
    double least, most;
};

void line_start(struct line_range range, struct clock clock);
/* A round trip, by all ranks; at the end rank 0 has it in nanoseconds, and all know whether it is in the range. With `naps`:
 * the last one, after naps until it is in the range, or there were too many of them. */
bool line_settled(bool naps, double *ns);
/* Rank 0 gets `count` round trips, with a nap before each. */
void line_survey(double *ns, int count);

#endif
