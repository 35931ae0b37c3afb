/*
 * Neighborhood collectives (MPI 4.1, section 8.6) as an Alltoallv of all ranks in which only neighbors have blocks: that runs in a segment
 * and over nodes, and sends nothing between others. A rank that is a neighbor more than once has one block, of a datatype that joins them:
 * so the neighbors' order, and how often one occurs, is each rank's own affair.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* A rank's neighbors on a communicator, as the MPI says; MPI_PROC_NULL: none in this place. */
struct shim_topology {
    /* Its sources are `from`, its destinations `to`. Messages between two ranks match in the order of `from` on one, and on the other in that of
     * `order`, which has the places in `to`. */
    int sources, destinations, *from, *to, *order;
    bool some_again[2]; /* a destination, a source occurs more than once */
};

/* ---- The neighbors ---------------------------------------------------------------------------------------------- */

static bool occurs_again(const int *ranks, int count) {
    for (int i = 0; i < count; i++)
        for (int other = 0; other < i; other++)
            if (ranks[i] == ranks[other] && ranks[i] != MPI_PROC_NULL) return true;
    return false;
}

static struct shim_topology *new_topology(int sources, int destinations) {
    struct shim_topology *t = malloc(sizeof *t + sizeof(int) * ((size_t)sources + 2 * (size_t)destinations));
    if (!t) return NULL;
    int *lists = (int *)(t + 1);
    *t = (struct shim_topology){sources, destinations, lists, lists + sources, lists + sources + destinations, {false, false}};
    for (int i = 0; i < destinations; i++) t->order[i] = i;
    return t;
}

/* Of each dimension the neighbors before and after. What goes to the one before comes there from the one after: so where both are the same
 * rank, the second message is received first. */
static struct shim_topology *of_grid(MPI_Comm comm) {
    int dimensions;
    if (PMPI_Cartdim_get(comm, &dimensions) != MPI_SUCCESS) return NULL;
    struct shim_topology *t = new_topology(2 * dimensions, 2 * dimensions);
    for (int d = 0; t && d < dimensions; d++) {
        PMPI_Cart_shift(comm, d, 1, &t->from[2 * d], &t->from[2 * d + 1]);
        t->order[2 * d] = 2 * d + 1, t->order[2 * d + 1] = 2 * d;
    }
    if (t) memcpy(t->to, t->from, sizeof(int) * 2 * (size_t)dimensions);
    return t;
}

static struct shim_topology *of_graph(MPI_Comm comm, int rank) {
    int count;
    if (PMPI_Graph_neighbors_count(comm, rank, &count) != MPI_SUCCESS) return NULL;
    struct shim_topology *t = new_topology(count, count);
    if (t) PMPI_Graph_neighbors(comm, rank, count, t->from), memcpy(t->to, t->from, sizeof(int) * (size_t)count);
    return t;
}

static struct shim_topology *of_distributed_graph(MPI_Comm comm) {
    int in, out, weighted;
    if (PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted) != MPI_SUCCESS) return NULL;
    struct shim_topology *t = new_topology(in, out);
    int *weights = malloc(sizeof(int) * ((size_t)in + (size_t)out + 1));
    if (t && weights) PMPI_Dist_graph_neighbors(comm, in, t->from, weights, out, t->to, weights + in);
    else free(t), t = NULL;
    free(weights);
    return t;
}

/* Null: the communicator has no topology, or there is no memory. It is looked up once, and freed with the entry. */
static const struct shim_topology *topology(MPI_Comm comm, const struct shim_comm *on) {
    struct shim_topology **kept = (struct shim_topology **)&on->topology, *t = __atomic_load_n(kept, __ATOMIC_ACQUIRE), *none = NULL;
    int kind;
    if (t) return t;
    if (PMPI_Topo_test(comm, &kind) != MPI_SUCCESS) return NULL;
    if (kind == MPI_CART) t = of_grid(comm);
    else if (kind == MPI_GRAPH) t = of_graph(comm, on->rank);
    else if (kind == MPI_DIST_GRAPH) t = of_distributed_graph(comm);
    if (!t) return NULL;
    t->some_again[SLOT_SEND] = occurs_again(t->to, t->destinations);
    t->some_again[SLOT_RECEIVE] = occurs_again(t->from, t->sources);
    /* Another thread may have been faster. */
    if (__atomic_compare_exchange_n(kept, &none, t, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return t;
    free(t);
    return none;
}

void shim_forget_topology(struct shim_comm *entry) { free(entry->topology), entry->topology = NULL; }

/* ---- Blocks of neighbors as blocks of ranks ----------------------------------------------------------------------- */

/* One side: the neighbors' ranks in the order in which their messages match, and the blocks as the program passes them. */
struct edges {
    const int *ranks, *order; /* null: their own order */
    int count;
    bool alike; /* the same block goes to all: an allgather */
    struct shim_blocks of;
    int64_t extent; /* of its type; 0: not needed */
};

static int place(const struct edges *e, int i) { return e->order ? e->order[i] : i; }
static int64_t length(const struct edges *e, int at) { return e->of.listed ? shim_item(e->of.counts, at) : e->of.count; }
/* In elements; where each block has a type of its own, in bytes. */
static int64_t start(const struct edges *e, int at) {
    return e->of.listed ? shim_item(e->of.displacements, at) : e->alike ? 0 : at * e->of.count;
}
static int64_t start_in_bytes(const struct edges *e, int at) { return start(e, at) * (e->of.typed ? 1 : e->extent); }
static MPI_Datatype type(const struct edges *e, int at) { return e->of.typed ? e->of.types[at] : e->of.type; }

static void free_joined(struct shim_thread *self) {
    while (self->joined.count) PMPI_Type_free(&self->joined.types[--self->joined.count]);
}

/* Adds a type to those that the thread's next call frees. What this one starts or makes keeps duplicates. */
static bool free_later(struct shim_thread *self, MPI_Datatype type) {
    if (self->joined.count == self->joined.room) {
        int room = self->joined.room ? 2 * self->joined.room : 8;
        MPI_Datatype *types = realloc(self->joined.types, sizeof *types * (size_t)room);
        if (!types) return PMPI_Type_free(&type), false;
        self->joined.types = types, self->joined.room = room;
    }
    self->joined.types[self->joined.count++] = type;
    return true;
}

/* Can it be used to send data? Then *extent is its extent, unless `extent` is null. */
static bool is_valid(MPI_Datatype type, int64_t *extent) {
    struct shim_shape derived;
    const struct shim_shape *shape = shim_predefined(type);
    if (!shape && shim_derived(type, &derived)) shape = &derived;
    if (shape && extent) *extent = shape->extent;
    return shape;
}

/* The numbers of a struct's parts. */
#if MPI_VERSION >= 4
typedef MPI_Count part_length, part_place;
#define create_struct PMPI_Type_create_struct_c
#else
typedef int part_length;
typedef MPI_Aint part_place;
#define create_struct PMPI_Type_create_struct
#endif

/* The blocks of one rank, which are several, as one type. False: an argument is wrong, or there is no memory. */
static bool join(const struct edges *e, int rank, MPI_Datatype *made) {
    part_length *lengths = malloc(sizeof *lengths * (size_t)e->count);
    part_place *places = malloc(sizeof *places * (size_t)e->count);
    MPI_Datatype *types = malloc(sizeof *types * (size_t)e->count);
    int several = 0;
    bool right = lengths && places && types;
    for (int i = 0; right && i < e->count; i++) {
        int at = place(e, i);
        if (e->ranks[at] != rank || length(e, at) == 0) continue;
        right = length(e, at) > 0 && is_valid(type(e, at), NULL);
        lengths[several] = (part_length)length(e, at), places[several] = (part_place)start_in_bytes(e, at), types[several++] = type(e, at);
    }
    right = right && create_struct(several, lengths, places, types, made) == MPI_SUCCESS && free_later(shim_thread(), *made) &&
            PMPI_Type_commit(made) == MPI_SUCCESS;
    free(lengths), free(places), free(types);
    return right;
}

/* One block for each of `size` ranks, in lists that the thread keeps in `slot`. False: an argument is wrong, or there is no memory. */
static bool by_ranks(struct edges *e, bool some_again, int size, enum shim_slot slot, struct shim_blocks *ranks) {
    struct shim_blocks of = e->of;
    if (some_again && !of.typed && !is_valid(of.type, &e->extent)) return false;
    if (e->count && of.listed && (!of.counts.at || !of.displacements.at || (of.typed && !of.types))) return false;
    int64_t *counts = shim_buffer(slot, (2 * sizeof *counts + sizeof(MPI_Datatype) + sizeof(int)) * (size_t)size);
    if (!counts) return false;
    int64_t *starts = counts + size;
    MPI_Datatype *types = (MPI_Datatype *)(starts + size);
    int *times = (int *)(types + size);
    memset(counts, 0, 2 * sizeof *counts * (size_t)size), memset(times, 0, sizeof *times * (size_t)size);
    for (int i = 0; i < e->count; i++) {
        int at = place(e, i), rank = e->ranks[at];
        if (rank < 0 || rank >= size) continue; /* MPI_PROC_NULL */
        times[rank]++, counts[rank] = length(e, at), types[rank] = type(e, at);
        starts[rank] = some_again ? start_in_bytes(e, at) : start(e, at);
    }
    for (int r = 0; some_again && r < size; r++) {
        if (times[r] < 2) continue;
        counts[r] = 1, starts[r] = 0;
        if (!join(e, r, &types[r])) return false;
    }
    bool typed = of.typed || some_again;
    *ranks = (struct shim_blocks){.buffer = of.buffer, .listed = true, .typed = typed, .type = of.type, .types = typed ? types : NULL};
    ranks->counts = (struct shim_list){counts, true}, ranks->displacements = (struct shim_list){starts, true};
    return true;
}

bool shim_neighbors(MPI_Comm comm, const struct shim_comm *on, bool alike, struct shim_blocks *send, struct shim_blocks *receive,
                    bool *disputed) {
    struct shim_thread *self = shim_thread();
    self->inside++;
    free_joined(self);
    const struct shim_topology *t = topology(comm, on);
    bool right = t;
    if (right) {
        *disputed = t->some_again[SLOT_RECEIVE];
        struct edges out = {t->to, t->order, t->destinations, alike, *send, 0}, in = {t->from, NULL, t->sources, false, *receive, 0};
        right = by_ranks(&out, t->some_again[SLOT_SEND], on->size, SLOT_SEND_NEIGHBORS, send) &&
                by_ranks(&in, t->some_again[SLOT_RECEIVE], on->size, SLOT_RECEIVE_NEIGHBORS, receive);
    }
    self->inside--;
    return right;
}
