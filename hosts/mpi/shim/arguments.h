/*
 * The parts of MPI's argument lists (collectives.def), each in all the forms that the shim needs:
 *
 * _NAMES    the names of the parameters
 * _C        the parameters in C; SHIM_COUNT and SHIM_DISPLACEMENT are the types of counts and displacements there
 * _PLANNED  the parameters of a plan, the same for counts of every width
 * _PLAN     the arguments for a plan, from the C parameters
 * _TIMED    the arguments of a call that compare.c times, from its struct timed *t
 * _BESIDE   those of the MPI's call that runs beside one of ours (verify_started.c), from its struct beside *b
 *
 * ALL and ROOT come last; the other parts end with a comma. SHIM_PARTS(parts, form) expands three parts in one form.
 */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#define SHIM_PARTS(parts, form) SHIM_PARTS_OF(SHIM_THREE parts, form)
#define SHIM_THREE(one, two, last) one, two, last
#define SHIM_PARTS_OF(...) SHIM_JOIN(__VA_ARGS__)
#define SHIM_JOIN(one, two, last, form) one##form two##form last##form

#define NOTHING_NAMES
#define NOTHING_C
#define NOTHING_PLANNED
#define NOTHING_PLAN
#define NOTHING_TIMED
#define NOTHING_BESIDE

/* The buffer of a broadcast. */
#define BUFFER_NAMES buffer, count, type,
#define BUFFER_C void *buffer, SHIM_COUNT count, shim_handle type,
#define BUFFER_PLANNED void *buffer, int64_t count, MPI_Datatype type,
#define BUFFER_PLAN buffer, count, SHIM_TYPE(type),
#define BUFFER_TIMED t->receive, t->count, (shim_handle)MPI_DOUBLE,
#define BUFFER_BESIDE b->receive, (SHIM_COUNT)b->count, b->type,

/* The two buffers of a reduction. */
#define FOLD_NAMES send, receive, count, type, op,
#define FOLD_C const void *send, void *receive, SHIM_COUNT count, shim_handle type, shim_handle op,
#define FOLD_PLANNED const void *send, void *receive, int64_t count, MPI_Datatype type, MPI_Op op,
#define FOLD_PLAN send, receive, count, SHIM_TYPE(type), SHIM_OP(op),
#define FOLD_TIMED t->send, t->receive, t->count, (shim_handle)MPI_DOUBLE, (shim_handle)MPI_SUM,
#define FOLD_BESIDE b->send, b->receive, (SHIM_COUNT)b->count, b->type, b->op,

/* The same, with a count for each rank. */
#define FOLDS_NAMES send, receive, counts, type, op,
#define FOLDS_C const void *send, void *receive, const SHIM_COUNT *counts, shim_handle type, shim_handle op,
#define FOLDS_PLANNED const void *send, void *receive, struct shim_list counts, MPI_Datatype type, MPI_Op op,
#define FOLDS_PLAN send, receive, SHIM_LIST(counts), SHIM_TYPE(type), SHIM_OP(op),
#define FOLDS_TIMED t->send, t->receive, t->counts, (shim_handle)MPI_DOUBLE, (shim_handle)MPI_SUM,
#define FOLDS_BESIDE b->send, b->receive, b->counts, b->type, b->op,

/* The send side: equal blocks. */
#define SEND_NAMES send, send_count, send_type,
#define SEND_C const void *send, SHIM_COUNT send_count, shim_handle send_type,
#define SEND_PLANNED struct shim_blocks send,
#define SEND_PLAN SHIM_EQUAL(send, send_count, send_type),
#define SEND_TIMED t->send, t->count, (shim_handle)MPI_DOUBLE,
#define SEND_BESIDE b->send, (SHIM_COUNT)b->sent, b->send_type,

/* The send side: blocks with lists. */
#define SENDS_NAMES send, send_counts, send_starts, send_type,
#define SENDS_C                                                                                                        \
    const void *send, const SHIM_COUNT *send_counts, const SHIM_DISPLACEMENT *send_starts, shim_handle send_type,
#define SENDS_PLANNED struct shim_blocks send,
#define SENDS_PLAN SHIM_LISTED(send, send_counts, send_starts, send_type),
#define SENDS_TIMED t->send, t->counts, t->starts, (shim_handle)MPI_DOUBLE,
#define SENDS_BESIDE b->send, b->send_counts, b->send_starts, b->send_type,

/* The same, each block of a type of its own: displacements are in bytes. */
#define SENDS_TYPED_NAMES send, send_counts, send_starts, send_types,
#define SENDS_TYPED_C                                                                                                  \
    const void *send, const SHIM_COUNT *send_counts, const SHIM_DISPLACEMENT *send_starts, const void *send_types,
#define SENDS_TYPED_PLANNED struct shim_blocks send,
#define SENDS_TYPED_PLAN SHIM_TYPED(send, send_counts, send_starts, send_types),
#define SENDS_TYPED_TIMED t->send, t->counts, t->places, t->types,
#define SENDS_TYPED_BESIDE b->send, b->send_counts, b->send_starts, b->send_types,

/* The same, with displacements of type MPI_Aint: of neighbors. */
#define SENDS_PLACED_NAMES send, send_counts, send_starts, send_types,
#define SENDS_PLACED_C                                                                                                 \
    const void *send, const SHIM_COUNT *send_counts, const MPI_Aint *send_starts, const void *send_types,
#define SENDS_PLACED_PLANNED struct shim_blocks send,
#define SENDS_PLACED_PLAN SHIM_PLACED(send, send_counts, send_starts, send_types),

/* The receive side: equal blocks. */
#define RECEIVE_NAMES receive, count, type,
#define RECEIVE_C void *receive, SHIM_COUNT count, shim_handle type,
#define RECEIVE_PLANNED struct shim_blocks receive,
#define RECEIVE_PLAN SHIM_EQUAL(receive, count, type),
#define RECEIVE_TIMED t->receive, t->count, (shim_handle)MPI_DOUBLE,
#define RECEIVE_BESIDE b->receive, (SHIM_COUNT)b->count, b->type,

/* The receive side: blocks with lists. */
#define RECEIVES_NAMES receive, counts, starts, type,
#define RECEIVES_C void *receive, const SHIM_COUNT *counts, const SHIM_DISPLACEMENT *starts, shim_handle type,
#define RECEIVES_PLANNED struct shim_blocks receive,
#define RECEIVES_PLAN SHIM_LISTED(receive, counts, starts, type),
#define RECEIVES_TIMED t->receive, t->counts, t->starts, (shim_handle)MPI_DOUBLE,
#define RECEIVES_BESIDE b->receive, b->counts, b->starts, b->type,

/* The same, each block of a type of its own. */
#define RECEIVES_TYPED_NAMES receive, counts, starts, types,
#define RECEIVES_TYPED_C                                                                                               \
    void *receive, const SHIM_COUNT *counts, const SHIM_DISPLACEMENT *starts, const void *types,
#define RECEIVES_TYPED_PLANNED struct shim_blocks receive,
#define RECEIVES_TYPED_PLAN SHIM_TYPED(receive, counts, starts, types),
#define RECEIVES_TYPED_TIMED t->receive, t->counts, t->places, t->types,
#define RECEIVES_TYPED_BESIDE b->receive, b->counts, b->starts, b->types,

/* The same, with displacements of type MPI_Aint. */
#define RECEIVES_PLACED_NAMES receive, counts, starts, types,
#define RECEIVES_PLACED_C void *receive, const SHIM_COUNT *counts, const MPI_Aint *starts, const void *types,
#define RECEIVES_PLACED_PLANNED struct shim_blocks receive,
#define RECEIVES_PLACED_PLAN SHIM_PLACED(receive, counts, starts, types),

/* The communicator, without and with a root. */
#define ALL_NAMES comm
#define ALL_C shim_handle comm
#define ALL_PLANNED MPI_Comm comm
#define ALL_PLAN SHIM_COMM(comm)
#define ALL_TIMED (shim_handle)MPI_COMM_WORLD
#define ALL_BESIDE b->comm

#define ROOT_NAMES root, ALL_NAMES
#define ROOT_C int root, ALL_C
#define ROOT_PLANNED int root, ALL_PLANNED
#define ROOT_PLAN root, ALL_PLAN
#define ROOT_TIMED t->root, ALL_TIMED
#define ROOT_BESIDE b->root, ALL_BESIDE

/* A side's blocks, and a list, for a plan; SHIM_WIDE: the lists have items of 64 bits. */
#define SHIM_EQUAL(address, elements, handle)                                                                          \
    (struct shim_blocks) { .buffer = address, .count = elements, .type = SHIM_TYPE(handle) }
#define SHIM_LISTED(address, lengths, places, handle)                                                                  \
    (struct shim_blocks) {                                                                                             \
        .buffer = address, .listed = true, .counts = SHIM_LIST(lengths), .displacements = SHIM_LIST(places),           \
        .type = SHIM_TYPE(handle)                                                                                      \
    }
#define SHIM_TYPED(address, lengths, places, handles)                                                                  \
    (struct shim_blocks) {                                                                                             \
        .buffer = address, .listed = true, .counts = SHIM_LIST(lengths), .displacements = SHIM_LIST(places),           \
        .typed = true, .types = handles                                                                                \
    }
#define SHIM_PLACED(address, lengths, places, handles)                                                                 \
    (struct shim_blocks) {                                                                                             \
        .buffer = address, .listed = true, .counts = SHIM_LIST(lengths),                                               \
        .displacements = (struct shim_list){.at = places, .wide = true}, .typed = true, .types = handles               \
    }
#define SHIM_LIST(items) ((struct shim_list){.at = items, .wide = SHIM_WIDE})

#endif
