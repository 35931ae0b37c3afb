/*
 * Plans a call (whether it is taken over, and its two sides), then runs it. A plan decides by properties that are the
 * same on all ranks, except for errors in this rank's arguments.
 *
 * All that every call needs is inlined into each function that replaces one of the MPI's (exports.c), so that the
 * compiler leaves out what its form does not need: lists, a second side, an operation. For that, the call's fields must stay in
 * registers: no function that is not inlined gets the address of a call or a side; what is needed seldom gets copies.
 *
 * Each plan is compiled twice. The first one has `usual` set, a constant: it goes on only with what most calls are (shim.h,
 * struct shim_call), and so needs no code for the rest. Where a call is another one it has changed nothing, and the second plan begins anew.
 *
 * Code may not choose between the addresses of two sides, even in a case that is never reached: the compiler then keeps the call in memory, sets its
 * 400 bytes to zero and reads `usual` from there (docs/explanation/decisions.md, 96). .ci/test-mpi looks at the functions' stack frames.
 */
#ifndef COLLECTIVES_H
#define COLLECTIVES_H

#include "shim.h"

#define INLINE static inline __attribute__((always_inline))
#define SELDOM static __attribute__((noinline, cold))

SELDOM enum shim_route passed_on(enum shim_reason reason) {
    shim_add(&shim_thread()->reasons[reason], 1);
    return ROUTE_UNDERLYING;
}

/* The plan of a usual call does not count why it ends: the next one does. */
INLINE enum shim_route to_underlying(const struct shim_call *c, enum shim_reason reason) {
    return c->usual ? ROUTE_UNDERLYING : passed_on(reason);
}

/* The entry of a usual call's communicator, which has a segment. Null: the call is another one. */
INLINE const struct shim_comm *usual_entry(MPI_Comm comm) {
    struct shim_thread *self = shim_self;
    if (!shim_is_plain() || !self || self->inside) return NULL;
    const struct shim_comm *on = shim_find_again(comm);
    return on && on->comm ? on : NULL;
}

/* The first part of every plan. */
INLINE enum shim_route begin(struct shim_call *c, enum shim_collective collective, MPI_Comm comm) {
    const struct shim_comm *on;
    if (c->usual) {
        on = usual_entry(comm);
        if (!on) return ROUTE_UNDERLYING;
    } else {
        if (!shim_is_on() && !shim_wake()) return ROUTE_UNDERLYING;
        if (__builtin_expect(shim_thread()->inside, 0)) return passed_on(REASON_REENTRANT);
        on = shim_find_again(comm);
        if (__builtin_expect(!on, 0)) {
            /* The first use waits for other ranks. All ranks find none here, or none does: blocking collectives have an order, and what
             * makes a communicator attaches it on all ranks (create.c) or on none. */
            if (c->form == FORM_NONBLOCKING) return passed_on(REASON_UNATTACHED);
            int code = MPI_SUCCESS;
            on = shim_attach(comm, &code);
            c->code = code;
            if (!on) return ROUTE_FAILED;
        }
        if (!on->comm && !on->levels) return passed_on(on->reason);
    }
    c->collective = collective, c->comm = comm, c->on = on;
    c->send.blocks = c->receive.blocks = 0;
    c->send.shape = c->receive.shape = &shim_nothing;
    c->send_in_place = c->receive_in_place = false;
    c->folds = c->disputed = false;
    c->between = NULL;
    c->code = MPI_SUCCESS;
    return ROUTE_TAKEN;
}

#define BEGIN()                                                                                                        \
    do {                                                                                                               \
        enum shim_route route = begin(c, collective, comm);                                                            \
        if (route != ROUTE_TAKEN) return route;                                                                        \
    } while (0)

/* The address of a block in the program's buffer, which may be MPI_BOTTOM. */
INLINE void *block_at(const struct shim_side *side, int block) {
    return (void *)((uintptr_t)side->buffer + (uintptr_t)shim_start_of(side, block));
}

/* Null: the type can't be used to send data. The shape of a type that is not predefined is valid until the thread's next
 * call. */
INLINE const struct shim_shape *shape_of(MPI_Datatype type, enum shim_slot slot) {
    const struct shim_shape *predefined = shim_predefined(type);
    if (__builtin_expect(predefined != NULL, 1)) return predefined;
    struct shim_shape *derived = &shim_thread()->derived[slot];
    return shim_derived(type, derived) ? derived : NULL;
}

/* A block's length in the unit of displacements: elements, or with a type for each block bytes. */
INLINE int64_t length_of(const struct shim_side *side, int block) {
    return side->shapes ? (int64_t)shim_bytes_of(side, block) : shim_count_of(side, block);
}

/*
 * Makes the lists in bytes: for the program's blocks, counted from the first one with data. They are made anew (`relist`) if
 * blocks are packed, or if they do not lie in their order. False: this rank's arguments are wrong, or the call is not usual.
 */
INLINE bool lay_out_lists(const struct shim_call *c, struct shim_side *side, struct shim_blocks of, int blocks, enum shim_slot slot) {
    const struct shim_shape *shape = side->shape;
    const int64_t extent = shape->extent;
    uint64_t unit = shape->bytes, sum = 0; /* in variables, which no list overlaps */
    int64_t end = 0, first = 0, wrong = 0;
    bool any = false, ordered = true, nowhere = false;
    bool right = of.counts.at && of.displacements.at && (!c->usual || of.buffer);
    bool shaped = c->usual || side->shapes || !of.typed;
    uint64_t *bytes = right && shaped ? shim_lists(slot, blocks) : NULL, *starts = bytes ? bytes + blocks : NULL;
    side->bytes = bytes, side->starts = starts;
    for (int b = 0; bytes && b < blocks; b++) {
        int64_t count = shim_item(of.counts, b), start = shim_item(of.displacements, b);
        bytes[b] = starts[b] = 0;
        wrong |= count;
        if (count <= 0) continue;
        if (of.typed) {
            shape = c->usual ? shim_plain_shape(of.types[b]) : &side->shapes[b];
            if (!shape) return false;
            unit = shape->bytes;
        }
        const uint64_t len = (uint64_t)count * unit;
        if (!any) any = true, first = end = start;
        ordered &= start >= end;
        end = start + (of.typed ? (int64_t)len : count); /* in the unit of displacements */
        bytes[b] = len, starts[b] = (uint64_t)((start - first) * extent);
        if (!c->usual) nowhere |= unit && shape->dense && !((uintptr_t)of.buffer + (uintptr_t)(start * extent));
        sum += len;
    }
    side->sum = sum, side->first = first * extent, side->ordered = ordered;
    return right && wrong >= 0 && !nowhere && (!c->usual || (bytes && ordered));
}

/* Fills a side, whose shape is known. False: this rank's arguments are wrong, or the call is not usual. */
INLINE bool lay_out_shaped(const struct shim_call *c, struct shim_side *side, struct shim_blocks of, int blocks, enum shim_slot slot) {
    side->buffer = (void *)of.buffer, side->blocks = blocks, side->listed = of.listed, side->type = of.type;
    if (!of.typed) side->types = NULL, side->shapes = NULL;
    side->count = of.count, side->counts = of.counts, side->displacements = of.displacements;
    if (of.listed) return lay_out_lists(c, side, of, blocks, slot);
    side->sum = (uint64_t)of.count * side->shape->bytes * (uint64_t)blocks, side->ordered = true, side->first = 0;
    bool nowhere = !of.buffer && blocks && of.count && side->shape->dense && side->shape->bytes;
    return of.count >= 0 && !nowhere;
}

/* The shapes of a side's blocks, and that of the side. A type of no elements is not looked at, as MPICH does not.
 * False: this rank's arguments are wrong. */
INLINE bool lay_out_types(struct shim_side *side, struct shim_blocks of, int blocks, enum shim_slot slot) {
    struct shim_shape *shapes = shim_shapes(slot, blocks);
    bool right = of.types && of.counts.at, dense = true;
    for (int b = 0, last = -1; shapes && right && b < blocks; b++) {
        shapes[b] = shim_nothing;
        if (shim_item(of.counts, b) <= 0) continue;
        bool again = last >= 0 && of.types[last] == of.types[b];
        const struct shim_shape *shape = again ? &shapes[last] : shape_of(of.types[b], slot);
        right = shape != NULL;
        if (right) shapes[b] = *shape, dense &= shape->dense, last = b;
    }
    struct shim_shape *bytes = &shim_thread()->derived[slot];
    *bytes = (struct shim_shape){.bytes = 1, .extent = 1, .dense = dense};
    side->types = of.types, side->shapes = shapes, side->shape = bytes;
    return right;
}

/* Fills a side. False: this rank's arguments are wrong, or the call is not usual. */
INLINE bool lay_out(const struct shim_call *c, struct shim_side *side, struct shim_blocks of, int blocks, enum shim_slot slot) {
    if (of.typed && c->usual) side->shape = &shim_byte, side->types = of.types, side->shapes = NULL;
    else if (of.typed && !lay_out_types(side, of, blocks, slot)) return false;
    if (of.typed) return (!c->usual || of.types) && lay_out_shaped(c, side, of, blocks, slot);
    side->shape = c->usual ? shim_plain_shape(of.type) : shape_of(of.type, slot);
    return side->shape && lay_out_shaped(c, side, of, blocks, slot);
}

INLINE bool is_rank(const struct shim_call *c, int root) { return root >= 0 && root < c->on->size; }

INLINE struct shim_blocks row(const void *buffer, int64_t count, MPI_Datatype type) {
    return (struct shim_blocks){.buffer = buffer, .count = count, .type = type};
}

INLINE uint64_t block_bytes(const struct shim_side *side) { return (uint64_t)side->count * side->shape->bytes; }

/* ---- Plans --------------------------------------------------------------------------------------------------- */

INLINE enum shim_route plan_barrier(struct shim_call *c, enum shim_collective collective, MPI_Comm comm) {
    BEGIN();
    return ROUTE_TAKEN;
}

INLINE enum shim_route plan_bcast(struct shim_call *c, enum shim_collective collective, void *buffer, int64_t count,
                                  MPI_Datatype type, int root, MPI_Comm comm) {
    BEGIN();
    c->root = root;
    bool right = is_rank(c, root) && buffer != MPI_IN_PLACE && lay_out(c, &c->receive, row(buffer, count, type), 1, SLOT_RECEIVE);
    return right ? ROUTE_TAKEN : to_underlying(c, REASON_ARGUMENTS);
}

/* Plans a reduction of `sent` elements; a rank that `receives` has a buffer of `received` elements. Predefined
 * operations are defined for predefined types only, whose holes do not matter. */
INLINE enum shim_route fold(struct shim_call *c, const void *send, int64_t sent, void *receive, int64_t received,
                            MPI_Datatype type, MPI_Op op, bool receives) {
    c->send_in_place = send == MPI_IN_PLACE;
    c->folds = true, c->op = op;
    c->operation = shim_operation(op);
    bool right = (c->operation || op != MPI_OP_NULL) && (receives ? receive != MPI_IN_PLACE : !c->send_in_place) &&
                 lay_out(c, &c->send, row(send, sent, type), c->send_in_place ? 0 : 1, SLOT_SEND);
    c->receive.shape = c->send.shape;
    if (!right || !lay_out_shaped(c, &c->receive, row(receive, received, type), receives ? 1 : 0, SLOT_RECEIVE))
        return to_underlying(c, REASON_ARGUMENTS);
    /* The program's operation, or elements that Unisono has no operations for, such as long double: the MPI folds them. */
    if (__builtin_expect(!c->operation || !c->send.shape->kind, 0)) {
        if (c->usual || (c->form && c->on->moves != MOVES_ALWAYS)) return to_underlying(c, REASON_OPERATION);
        enum shim_reason reason = shim_user(op, type, c->send.shape, c->on->comm);
        c->operation = &shim_thread()->user.folds, c->element = UNISONO_OPAQUE(c->send.shape->bytes);
        return reason == REASON_NONE ? ROUTE_TAKEN : passed_on(reason);
    }
    c->element = c->send.shape->kind;
    if (!(c->send.shape->operations >> (uintptr_t)c->operation & 1)) return to_underlying(c, REASON_OPERATION);
    return ROUTE_TAKEN;
}

INLINE enum shim_route plan_reduce(struct shim_call *c, enum shim_collective collective, const void *send, void *receive,
                                   int64_t count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
    BEGIN();
    c->root = root;
    if (!is_rank(c, root)) return to_underlying(c, REASON_ARGUMENTS);
    return fold(c, send, count, receive, count, type, op, c->on->rank == root);
}

INLINE enum shim_route plan_allreduce(struct shim_call *c, enum shim_collective collective, const void *send,
                                      void *receive, int64_t count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    BEGIN();
    return fold(c, send, count, receive, count, type, op, true);
}

/* On rank 0 the receive buffer is not significant, unless the operand is there. */
INLINE enum shim_route plan_exscan(struct shim_call *c, enum shim_collective collective, const void *send, void *receive,
                                   int64_t count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    BEGIN();
    return fold(c, send, count, receive, count, type, op, c->on->rank > 0 || send == MPI_IN_PLACE);
}

INLINE enum shim_route plan_reduce_scatter_block(struct shim_call *c, enum shim_collective collective, const void *send,
                                                 void *receive, int64_t count, MPI_Datatype type, MPI_Op op,
                                                 MPI_Comm comm) {
    BEGIN();
    int64_t all = count * c->on->size;
    c->own = count;
    return fold(c, send, all, receive, send == MPI_IN_PLACE ? all : count, type, op, true);
}

INLINE enum shim_route plan_reduce_scatter(struct shim_call *c, enum shim_collective collective, const void *send,
                                           void *receive, struct shim_list counts, MPI_Datatype type, MPI_Op op,
                                           MPI_Comm comm) {
    BEGIN();
    bool right = counts.at;
    int64_t all = 0;
    c->counts = shim_lists(SLOT_SEND, c->on->size);
    for (int r = 0; right && r < c->on->size; r++) {
        int64_t count = shim_item(counts, r);
        right = count >= 0, all += count;
        if (c->counts) c->counts[r] = (uint64_t)count;
    }
    if (!right) return to_underlying(c, REASON_ARGUMENTS);
    c->own = shim_item(counts, c->on->rank);
    return fold(c, send, all, receive, send == MPI_IN_PLACE ? all : c->own, type, op, true);
}

INLINE enum shim_route plan_gather(struct shim_call *c, enum shim_collective collective, struct shim_blocks send,
                                   struct shim_blocks receive, int root, MPI_Comm comm) {
    BEGIN();
    c->root = root;
    bool is_root = c->on->rank == root;
    c->send_in_place = send.buffer == MPI_IN_PLACE;
    bool right = is_rank(c, root) && (is_root ? receive.buffer != MPI_IN_PLACE : !c->send_in_place) &&
                 (c->send_in_place || lay_out(c, &c->send, send, 1, SLOT_SEND)) &&
                 (!is_root || lay_out(c, &c->receive, receive, c->on->size, SLOT_RECEIVE));
    return right ? ROUTE_TAKEN : to_underlying(c, REASON_ARGUMENTS);
}

INLINE enum shim_route plan_scatter(struct shim_call *c, enum shim_collective collective, struct shim_blocks send,
                                    struct shim_blocks receive, int root, MPI_Comm comm) {
    BEGIN();
    c->root = root;
    bool is_root = c->on->rank == root;
    c->receive_in_place = receive.buffer == MPI_IN_PLACE;
    bool right = is_rank(c, root) && (is_root ? send.buffer != MPI_IN_PLACE : !c->receive_in_place) &&
                 (c->receive_in_place || lay_out(c, &c->receive, receive, 1, SLOT_RECEIVE)) &&
                 (!is_root || lay_out(c, &c->send, send, c->on->size, SLOT_SEND));
    return right ? ROUTE_TAKEN : to_underlying(c, REASON_ARGUMENTS);
}

INLINE enum shim_route plan_allgather(struct shim_call *c, enum shim_collective collective, struct shim_blocks send,
                                      struct shim_blocks receive, MPI_Comm comm) {
    BEGIN();
    c->send_in_place = send.buffer == MPI_IN_PLACE;
    bool right = receive.buffer != MPI_IN_PLACE && (c->send_in_place || lay_out(c, &c->send, send, 1, SLOT_SEND)) &&
                 lay_out(c, &c->receive, receive, c->on->size, SLOT_RECEIVE);
    return right ? ROUTE_TAKEN : to_underlying(c, REASON_ARGUMENTS);
}

INLINE enum shim_route plan_alltoall(struct shim_call *c, enum shim_collective collective, struct shim_blocks send,
                                     struct shim_blocks receive, MPI_Comm comm) {
    BEGIN();
    c->send_in_place = send.buffer == MPI_IN_PLACE;
    bool right = receive.buffer != MPI_IN_PLACE && (c->send_in_place || lay_out(c, &c->send, send, c->on->size, SLOT_SEND)) &&
                 lay_out(c, &c->receive, receive, c->on->size, SLOT_RECEIVE);
    return right ? ROUTE_TAKEN : to_underlying(c, REASON_ARGUMENTS);
}

/* An Alltoallv or Alltoallw in which only neighbors have blocks. */
INLINE enum shim_route plan_neighbors(struct shim_call *c, enum shim_collective collective, struct shim_blocks send,
                                      struct shim_blocks receive, MPI_Comm comm) {
    if (c->usual) return ROUTE_UNDERLYING;
    BEGIN();
    bool alike = collective == NEIGHBOR_ALLGATHER || collective == NEIGHBOR_ALLGATHERV, disputed = false;
    bool right = send.buffer != MPI_IN_PLACE && receive.buffer != MPI_IN_PLACE &&
                 shim_neighbors(comm, c->on, alike, &send, &receive, &disputed) && lay_out(c, &c->send, send, c->on->size, SLOT_SEND) &&
                 lay_out(c, &c->receive, receive, c->on->size, SLOT_RECEIVE);
    c->disputed = disputed;
    return right ? ROUTE_TAKEN : to_underlying(c, REASON_ARGUMENTS);
}

/* ---- Calls that a table leaves to the MPI -------------------------------------------------------------------------- */

/* The bytes that a decision table asks for: of the whole vector, of a block, or of the longest one; 0: not all ranks know them. */
INLINE uint64_t table_bytes(const struct shim_call *c) {
    const struct shim_side *s = &c->send, *r = &c->receive;
    uint64_t most = 0;
    switch (c->collective) {
    case BCAST: return r->sum;
    case GATHER:
    case SCATTER:
    case ALLGATHER:
    case ALLTOALL: return s->blocks ? block_bytes(s) : block_bytes(r);
    case ALLGATHERV:
        for (int b = 0; b < r->blocks; b++)
            if (shim_bytes_of(r, b) > most) most = shim_bytes_of(r, b);
        return most;
    case REDUCE_SCATTER:
        for (int b = 0; b < c->on->size; b++)
            if (c->counts && c->counts[b] > most) most = c->counts[b];
        return most * s->shape->bytes * (uint64_t)c->on->size;
    default: return c->folds ? block_bytes(s) : 0;
    }
}

/* Does a decision table leave the call to the MPI? By what all ranks know alike. */
INLINE bool is_left(const struct shim_call *c) {
    if (__builtin_expect(!(c->on->left >> c->collective & 1), 1)) return false;
    bool commutes = !c->folds || c->element >= 0 || c->operation->commutative;
    return shim_leaves(c->on, c->collective, table_bytes(c), commutes);
}

/* ---- Buffers ---------------------------------------------------------------------------------------------------- */

/* Packs block `only` of a staged side, or all blocks (-1); or unpacks them. */
SELDOM bool transfer(struct shim_side of, int only, bool pack) {
    const struct shim_side *side = &of;
    struct shim_thread *self = shim_thread();
    char *packed = side->at;
    bool done = true;
    self->inside++;
    if (side->copied)
        done = shim_copy(pack ? packed : side->buffer, pack ? side->buffer : packed, (uint64_t)side->count, side->type,
                         side->shape);
    for (int b = 0; b < (side->copied ? 0 : side->blocks) && done; b++) {
        bool meant = only < 0 || only == b;
        if (meant)
            done = shim_pack(block_at(side, b), (uint64_t)shim_count_of(side, b), shim_type_of(side, b),
                             shim_shape_of(side, b), packed, pack);
        packed += shim_bytes_of(side, b);
    }
    self->inside--;
    return done;
}

/*
 * Do two blocks share an element? For received blocks that is erroneous, but MPIs accept it. Only this rank has to
 * know: it receives such blocks packed, and unpacks them in order, so that the last block's data stays.
 */
SELDOM bool overlap(struct shim_side of) {
    const struct shim_side *side = &of;
    for (int b = 0; b < side->blocks; b++) {
        int64_t length = length_of(side, b), start = shim_item(side->displacements, b);
        for (int other = 0; length && other < b; other++) {
            int64_t begin = shim_item(side->displacements, other), more = length_of(side, other);
            if (more && begin < start + length && start < begin + more) return true;
        }
    }
    return false;
}

/* Makes the lists in bytes anew: for the packed blocks, or for the program's, counted from the lowest one, whose place it
 * returns. */
SELDOM int64_t relist(struct shim_side of) {
    uint64_t sum = 0;
    int64_t first = INT64_MAX;
    for (int b = 0; b < of.blocks; b++) {
        of.starts[b] = of.staged ? sum : 0;
        sum += of.bytes[b];
        if (of.bytes[b] && shim_start_of(&of, b) < first) first = shim_start_of(&of, b);
    }
    for (int b = 0; !of.staged && b < of.blocks; b++)
        if (of.bytes[b]) of.starts[b] = (uint64_t)(shim_start_of(&of, b) - first);
    return of.staged || !sum ? 0 : first;
}

/* Is the side's data in a device's memory? */
SELDOM bool on_device(struct shim_side side) {
    for (int b = 0; b < side.blocks; b++)
        if (shim_count_of(&side, b)) return !shim_is_readable(block_at(&side, b));
    return false;
}

enum load { LOAD_NONE = -2, LOAD_ALL = -1 /* or a block */ };

/* Provides the side's data for Unisono. Returns an error of unisono.h, which only this rank has. */
INLINE int prepare(const struct shim_call *c, struct shim_side *side, enum shim_slot slot, int load, bool predefined) {
    static char nothing; /* unisono.h requires an address also for no bytes */
    side->staged = side->overlaps = side->copied = false;
    if (!side->blocks) return UNISONO_OK;
    if (c->usual) return side->at = side->sum ? (char *)side->buffer + side->first : &nothing, UNISONO_OK;
    side->staged = !predefined && !side->shape->dense; /* predefined operations fold pairs with their holes */
    if (__builtin_expect(shim_knows_devices, 0) && !side->staged && on_device(*side))
        side->staged = true, side->copied = predefined;
    if (side->listed) {
        if (!side->bytes) return UNISONO_ERR_MEMORY;
        /* Blocks of types with holes may lie in each other's: they are packed, and copied out in order, in any case. */
        bool comparable = !side->shapes || side->shape->dense;
        side->overlaps = slot == SLOT_RECEIVE && !side->ordered && comparable && overlap(*side);
        side->staged |= side->overlaps;
        if (side->staged || !side->ordered) side->first = relist(*side);
    }
    side->at = (char *)side->buffer + side->first;
    if (!side->sum) side->at = &nothing, side->staged = false;
    if (!side->staged) return UNISONO_OK;
    side->at = shim_buffer(slot, side->copied ? (uint64_t)(side->count * side->shape->extent) : side->sum);
    if (!side->at) return UNISONO_ERR_MEMORY;
    shim_add(&shim_thread()->packed, side->sum);
    return load == LOAD_NONE || transfer(*side, load, true) ? UNISONO_OK : UNISONO_ERR_OTHER;
}

/* Which blocks of `receive` are input. */
INLINE int input(const struct shim_call *c) {
    if (c->collective == BCAST) return shim_broadcasts(c) ? LOAD_ALL : LOAD_NONE;
    if (!c->send_in_place) return LOAD_NONE;
    if (c->folds) return LOAD_ALL;
    return c->collective >= ALLTOALL && c->collective <= ALLTOALLW ? LOAD_ALL : c->on->rank;
}

/* ---- Runs ---------------------------------------------------------------------------------------------- */

/*
 * Calls the collective's function, in a segment or over several nodes. collectives.def has its arguments, in the names
 * that are declared here.
 */
/* The lists are in bytes, whatever the types, and of all ranks, also where only neighbors have blocks. */
#define unisono_alltoallw unisono_alltoallv
#define unisono_ialltoallw unisono_ialltoallv
#define unisono_mpi_levels_alltoallw unisono_mpi_levels_alltoallv
#define unisono_neighbor_allgather unisono_alltoallv
#define unisono_ineighbor_allgather unisono_ialltoallv
#define unisono_mpi_levels_neighbor_allgather unisono_mpi_levels_alltoallv
#define unisono_neighbor_allgatherv unisono_alltoallv
#define unisono_ineighbor_allgatherv unisono_ialltoallv
#define unisono_mpi_levels_neighbor_allgatherv unisono_mpi_levels_alltoallv
#define unisono_neighbor_alltoall unisono_alltoallv
#define unisono_ineighbor_alltoall unisono_ialltoallv
#define unisono_mpi_levels_neighbor_alltoall unisono_mpi_levels_alltoallv
#define unisono_neighbor_alltoallv unisono_alltoallv
#define unisono_ineighbor_alltoallv unisono_ialltoallv
#define unisono_mpi_levels_neighbor_alltoallv unisono_mpi_levels_alltoallv
#define unisono_neighbor_alltoallw unisono_alltoallv
#define unisono_ineighbor_alltoallw unisono_ialltoallv
#define unisono_mpi_levels_neighbor_alltoallw unisono_mpi_levels_alltoallv
INLINE int call(const struct shim_call *c) {
    unisono_comm *segment = c->on->comm;
    const unisono_mpi_levels *levels = c->on->levels;
    const struct shim_side *s = &c->send, *r = &c->receive;
    void *send = c->send_in_place ? UNISONO_IN_PLACE : s->at, *receive = c->receive_in_place ? UNISONO_IN_PLACE : r->at;
    /* Bytes of a block. If all blocks are equal, this rank uses at least one side. */
    uint64_t sent = s->blocks ? block_bytes(s) : 0, received = r->blocks ? block_bytes(r) : 0;
    uint64_t block = s->blocks ? sent : received;
    switch (c->collective) {
#define COLLECTIVE(NUMBER, Name, name, plan, parts, ...)                                                               \
    case NUMBER:                                                                                                       \
        if (!c->usual && __builtin_expect(!segment, 0))                                                                \
            return unisono_mpi_levels_##name(levels, ##__VA_ARGS__, c->between);                                       \
        return c->form ? unisono_i##name(segment, ##__VA_ARGS__, c->request) : unisono_##name(segment, ##__VA_ARGS__);
#include "collectives.def"
    default: return UNISONO_ERR_OTHER;
    }
}

/* The bytes of a side's only block, or of this rank's. */
INLINE uint64_t own_bytes(const struct shim_call *c, const struct shim_side *side) {
    int block = side->blocks > 1 ? c->on->rank : 0;
    return c->usual && side->listed ? side->bytes[block] : shim_bytes_of(side, block);
}

/* The other ranks must not wait for this one. */
INLINE void report(const struct shim_comm *on) {
    if (on->comm) unisono_report_death(on->comm, (uint32_t)on->rank);
    else unisono_mpi_levels_report(on->levels);
}

/* Does this rank receive from itself as many bytes as it sends to itself? In place it sends none. */
INLINE bool agrees(const struct shim_call *c) {
    const struct shim_side *s = &c->send, *r = &c->receive;
    if (!s->blocks || !r->blocks) return true;
    return own_bytes(c, s) == own_bytes(c, r);
}

/* Called if it doesn't. Only forms with lists can express that: Unisono refuses such a call, and all ranks get an
 * error. */
SELDOM int refuse(struct shim_call of) {
    const struct shim_call *c = &of;
    struct shim_call listed = of;
    if (!c->on->comm) return report(c->on), UNISONO_ERR_MISMATCH;
    struct shim_side *sides[] = {&listed.send, &listed.receive};
    bool equal = !c->send.listed && !c->receive.listed;
    if (equal) listed.collective++; /* Gather to Gatherv */
    for (int i = 0; i < 2 && equal; i++) {
        uint64_t *lists = shim_lists(SLOT_SEND + i, c->on->size);
        if (!lists) return report(c->on), UNISONO_ERR_MEMORY;
        sides[i]->bytes = lists, sides[i]->starts = lists + c->on->size;
        for (int b = 0; b < c->on->size; b++)
            sides[i]->bytes[b] = block_bytes(sides[i]), sides[i]->starts[b] = b * block_bytes(sides[i]);
    }
    call(&listed);
    return UNISONO_ERR_MISMATCH;
}

/* A rank whose partners are always punctual never waits, and a message that it has started must arrive all the same. So one of
 * PROGRESSING calls makes the MPI progress; and calls that move as many bytes as LONG, and one of LOOKING, if it is time. */
enum { PROGRESSING = 64, LOOKING = 8, LONG = 4096 };

/* Adds the call to the statistics. The bytes are those that this rank sends; if it sends none, or in place, those that
 * it receives. */
INLINE void count(const struct shim_call *c, int error) {
    struct shim_thread *self = c->usual ? shim_self : shim_thread(); /* a request may end in another thread than it began in */
    bool starts = c->form;
    int number = SHIM_NUMBER(c->form, c->collective);
    int ran = error ? UNISONO_ALGORITHM_NONE : starts ? SHIM_NONBLOCKING : c->usual || c->on->comm ? unisono_ran(c->on->comm) : SHIM_TWO_LEVELS;
    uint64_t bytes = c->send.blocks ? c->send.sum : c->receive.blocks ? c->receive.sum : 0;
    if (!starts && __builtin_expect(++self->ended % LOOKING == 0 || bytes >= LONG, 0))
        self->ended % PROGRESSING ? shim_progress_in_time(false) : shim_progress_now();
    shim_add(&self->calls[number][ran], 1);
    shim_add(&self->bytes[number], bytes);
}

/* Runs a call that was taken over. Returns MPI_SUCCESS, or MPI's error class after raising the error. */
INLINE int run(struct shim_call *c) {
    struct shim_side *s = &c->send, *r = &c->receive;
    bool folds = c->folds, by_program = !c->usual && folds && c->element < 0, hears = !c->usual && shim_hears_failures;
    int error = prepare(c, s, SLOT_SEND, LOAD_ALL, folds && !by_program);
    if (!error) error = prepare(c, r, SLOT_RECEIVE, input(c), folds && !by_program);
    if (__builtin_expect(by_program, 0) && !error && !shim_user_room(&shim_thread()->user, NULL)) error = UNISONO_ERR_MEMORY;
    if (c->collective == REDUCE_SCATTER && !c->counts) error = UNISONO_ERR_MEMORY;
    if (error) report(c->on);
    else {
        if (__builtin_expect(hears, 0)) shim_thread()->waits_in = c->comm, shim_thread()->waits_on = c->on;
        error = c->usual || folds || agrees(c) ? call(c) : refuse(*c);
        if (__builtin_expect(hears, 0)) shim_thread()->waits_on = NULL;
    }
    if (__builtin_expect(by_program, 0) && !error && shim_thread()->user.failed) error = UNISONO_ERR_OTHER;
    count(c, error);
    if (!error && r->staged && !shim_broadcasts(c) && !transfer(*r, LOAD_ALL, false))
        error = UNISONO_ERR_OTHER;
    if (s->staged || r->staged) shim_trim();
    return error ? shim_raise(c->comm, c->collective, error) : MPI_SUCCESS;
}

#endif
