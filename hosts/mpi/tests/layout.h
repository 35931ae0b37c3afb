/*
 * Datatypes with their maps. A layout is a datatype, the number of its elements in a unit, and the memory offset of
 * each byte of a packed unit. Layouts of one family have the same signature: a sender's may differ from its receiver's.
 */
#ifndef LAYOUT_H
#define LAYOUT_H

#include "test.h"

struct layout {
    const char *name;
    MPI_Datatype type;
    int times;   /* elements in a unit */
    int packed;  /* bytes of a packed unit */
    int extent;  /* bytes from one unit to the next */
    int offsets[32]; /* the offset of each packed byte of the first unit */
    bool absolute;   /* to be used with MPI_BOTTOM: see place() */
};

enum { LAYOUTS = 6 };

struct family {
    const char *name;
    int count;
    struct layout layouts[LAYOUTS];
};

enum { FAMILIES = 4 };
extern struct family families[FAMILIES];

void layouts_make(void);
void layouts_free(void);

/* Units in memory. */
struct units {
    const struct layout *layout;
    unsigned char *memory;
    size_t bytes; /* of memory */
};

/* Memory for so many units, filled with junk. */
struct units units_of(const struct layout *layout, size_t units);
/* The same in memory that is there, of so many bytes. */
struct units units_in(const struct layout *layout, size_t units, unsigned char *memory);
size_t units_bytes(const struct layout *layout, size_t units);
void units_free(struct units *units);

/* A buffer argument and its datatype: MPI_BOTTOM and an absolute type, if the layout says so. */
struct place {
    void *buffer;
    MPI_Datatype type;
    bool made;
};
struct place place(const struct units *units);
void place_free(struct place *place);

/* Writes the data with this key to `count` units from unit `at` on. */
void fill(struct units *units, size_t at, size_t count, unsigned key);
/* Do the units hold that data? Afterwards they are junk again. */
bool holds(struct units *units, size_t at, size_t count, unsigned key);
/* Is all memory junk, after `holds` has checked the data: holes, gaps, and memory that must not be written? */
bool untouched(const struct units *units);

#endif
