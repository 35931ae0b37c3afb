#include "layout.h"

struct family families[FAMILIES];

/* Appends `bytes` bytes from `at` on to the map. */
static void map(struct layout *layout, int at, int bytes) {
    for (int i = 0; i < bytes; i++) layout->offsets[layout->packed++] = at + i;
}

static struct layout *add(struct family *family, const char *name, MPI_Datatype type, int times) {
    struct layout *layout = &family->layouts[family->count++];
    MPI_Aint lb, extent;
    *layout = (struct layout){.name = name, .type = type, .times = times};
    MPI_Type_commit(&layout->type);
    MPI_Type_get_extent(type, &lb, &extent);
    layout->extent = (int)extent * times;
    return layout;
}

/* Six ints. */
static void ints(struct family *family) {
    MPI_Datatype type, column;
    struct layout *layout;

    MPI_Type_dup(MPI_INT, &type);
    map(add(family, "named", type, 6), 0, 24);

    MPI_Type_vector(3, 2, 4, MPI_INT, &type);
    layout = add(family, "vector", type, 1);
    for (int block = 0; block < 3; block++) map(layout, 16 * block, 8);

    MPI_Type_indexed(3, (int[]){2, 1, 3}, (int[]){5, 0, 9}, MPI_INT, &type);
    layout = add(family, "indexed", type, 1);
    map(layout, 20, 8), map(layout, 0, 4), map(layout, 36, 12);

    MPI_Type_contiguous(6, MPI_INT, &type);
    map(add(family, "contiguous", type, 1), 0, 24);

    /* A hole before the ints, and one after them. */
    MPI_Type_create_hindexed(1, (int[]){6}, (MPI_Aint[]){8}, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, 40, &type);
    MPI_Type_free(&column);
    map(add(family, "resized", type, 1), 8, 24);

    MPI_Type_vector(2, 3, 5, MPI_INT, &type);
    layout = add(family, "absolute", type, 1);
    for (int block = 0; block < 2; block++) map(layout, 20 * block, 12);
    layout->absolute = true;
}

/* One char, so that sizes are odd. */
static void chars(struct family *family) {
    MPI_Datatype type;
    MPI_Type_dup(MPI_CHAR, &type);
    map(add(family, "char", type, 1), 0, 1);
    MPI_Type_create_resized(MPI_CHAR, 0, 3, &type);
    map(add(family, "sparse char", type, 1), 0, 1);
}

/* An int, a double, three chars. */
static void structs(struct family *family) {
    static const struct { const char *name; int at[3], extent; } shapes[] = {
        {"struct", {0, 8, 16}, 24}, {"packed struct", {0, 4, 12}, 15}, {"mixed struct", {12, 0, 18}, 32},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int *at = shapes[i].at;
        MPI_Datatype type, bare;
        MPI_Type_create_struct(3, (int[]){1, 1, 3}, (MPI_Aint[]){at[0], at[1], at[2]},
                               (MPI_Datatype[]){MPI_INT, MPI_DOUBLE, MPI_CHAR}, &bare);
        MPI_Type_create_resized(bare, 0, shapes[i].extent, &type);
        MPI_Type_free(&bare);
        struct layout *layout = add(family, shapes[i].name, type, 1);
        map(layout, at[0], 4), map(layout, at[1], 8), map(layout, at[2], 3);
    }
}

/* Types without bytes. */
static void nothings(struct family *family) {
    MPI_Datatype type;
    MPI_Type_contiguous(0, MPI_INT, &type);
    add(family, "empty", type, 1);
    MPI_Type_vector(0, 2, 4, MPI_DOUBLE, &type);
    add(family, "empty vector", type, 1);
}

void layouts_make(void) {
    static void (*const makers[FAMILIES])(struct family *) = {ints, chars, structs, nothings};
    static const char *const names[FAMILIES] = {"ints", "chars", "structs", "nothing"};
    for (int f = 0; f < FAMILIES; f++) {
        families[f].name = names[f];
        makers[f](&families[f]);
    }
}

void layouts_free(void) {
    for (int f = 0; f < FAMILIES; f++)
        for (int l = 0; l < families[f].count; l++) MPI_Type_free(&families[f].layouts[l].type);
}

static unsigned char junk(size_t at) { return (unsigned char)(0xa5 ^ (at * 29)); }

size_t units_bytes(const struct layout *layout, size_t units) { return 64 + units * (size_t)layout->extent; }

struct units units_in(const struct layout *layout, size_t units, unsigned char *memory) {
    struct units made = {layout, memory, units_bytes(layout, units)};
    for (size_t i = 0; i < made.bytes; i++) made.memory[i] = junk(i);
    return made;
}

struct units units_of(const struct layout *layout, size_t units) {
    return units_in(layout, units, allocate(units_bytes(layout, units)));
}

void units_free(struct units *units) { free(units->memory); }

struct place place(const struct units *units) {
    struct place place = {units->memory, units->layout->type, false};
    MPI_Aint address;
    if (!units->layout->absolute) return place;
    MPI_Get_address(units->memory, &address);
    MPI_Type_create_hindexed(1, (int[]){1}, &address, units->layout->type, &place.type);
    MPI_Type_commit(&place.type);
    place.buffer = MPI_BOTTOM, place.made = true;
    return place;
}

void place_free(struct place *place) {
    if (place->made) MPI_Type_free(&place->type);
}

/* Byte `index` of the data with this key. */
static unsigned char byte(unsigned key, size_t index) {
    unsigned mixed = (unsigned)index * 2654435761u + key * 40503u + 1;
    return (unsigned char)(mixed >> 13);
}

/* The offset of a unit: callers go unit by unit, so that their inner loop only needs the map. */
static size_t first(const struct units *units, size_t unit) { return unit * (size_t)units->layout->extent; }

void fill(struct units *units, size_t at, size_t count, unsigned key) {
    const struct layout *layout = units->layout;
    for (size_t u = 0; u < count; u++)
        for (int b = 0; b < layout->packed; b++)
            units->memory[first(units, at + u) + (size_t)layout->offsets[b]] = byte(key, u * (size_t)layout->packed + (size_t)b);
}

bool holds(struct units *units, size_t at, size_t count, unsigned key) {
    const struct layout *layout = units->layout;
    bool right = true;
    for (size_t u = 0; u < count; u++)
        for (int b = 0; b < layout->packed; b++) {
            size_t where = first(units, at + u) + (size_t)layout->offsets[b];
            right &= units->memory[where] == byte(key, u * (size_t)layout->packed + (size_t)b);
            units->memory[where] = junk(where);
        }
    return right;
}

bool untouched(const struct units *units) {
    unsigned char wrong = 0;
    for (size_t i = 0; i < units->bytes; i++) wrong |= units->memory[i] ^ junk(i);
    return !wrong;
}
