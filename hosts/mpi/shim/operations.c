/*
 * The program's own operations (MPI_Op_create), which the MPI itself calls: it knows their language and the handles that
 * they expect. So are predefined ones for elements that unisono.h does not have: long double, Fortran's logical, MPI_CHAR.
 * What Unisono folds are packed elements. Where a type's elements have other bytes in memory, both operands of a fold are
 * unpacked, in this rank's own layout, and the result is packed again.
 */
#include <limits.h>
#include <stdlib.h>

/* Bytes of the memory for elements of one operand: more, if one element has more. */
enum { ROOM = 1 << 16 };

/* Elements that are folded by one call; those of a dense type need no room. */
static int64_t at_once(const struct shim_shape *shape) {
    int64_t extent = shape->extent < 0 ? -shape->extent : shape->extent;
    return shape->dense ? INT_MAX : extent < ROOM ? ROOM / (extent ? extent : 1) : 1;
}

/* inout = in op inout, for `n` elements in memory. */
static void fold(struct shim_user *user, const void *in, void *inout, int n) {
    if (PMPI_Reduce_local(in, inout, n, user->type, user->op) != MPI_SUCCESS) user->failed = true;
}

static void fold_packed(struct shim_user *user, char *left, char *right, int n) {
    bool unpacked = shim_pack(user->at[0], (uint64_t)n, user->type, user->shape, left, false) &&
                    shim_pack(user->at[1], (uint64_t)n, user->type, user->shape, right, false);
    if (unpacked) fold(user, user->at[0], user->at[1], n);
    if (!unpacked || !shim_pack(user->at[1], (uint64_t)n, user->type, user->shape, right, true)) user->failed = true;
}

/* A unisono_function. The operation may call MPI; a collective, which is erroneous there, goes to the MPI. */
static void call(const void *left, void *right, uint64_t count, void *context) {
    struct shim_user *user = context;
    uint64_t most = (uint64_t)at_once(user->shape), bytes = user->shape->bytes;
    shim_thread()->inside++;
    for (uint64_t done = 0, n; done < count && !user->failed; done += n) {
        char *from = (char *)left + done * bytes, *onto = (char *)right + done * bytes;
        n = count - done < most ? count - done : most;
        if (user->shape->dense) fold(user, from, onto, (int)n);
        else fold_packed(user, from, onto, (int)n);
    }
    shim_thread()->inside--;
}

enum shim_reason shim_user(MPI_Op op, MPI_Datatype type, const struct shim_shape *shape, bool in_order) {
    enum { LONGEST = 4096 }; /* of UNISONO_OPAQUE, and a slot in the smallest queue */
    struct shim_thread *self = shim_thread();
    struct shim_user *user = &self->user;
    char nothing;
    if (op == MPI_REPLACE || op == MPI_NO_OP) return REASON_OPERATION;
    if (!shape->bytes || shape->bytes > LONGEST) return REASON_ELEMENT;
    /* No operation: a fold of no elements finds it, without calling the program's error handler. */
    self->inside++;
    bool valid = PMPI_Allreduce(MPI_IN_PLACE, &nothing, 0, type, op, shim_private) == MPI_SUCCESS &&
                 PMPI_Op_commutative(op, &user->folds.commutative) == MPI_SUCCESS;
    self->inside--;
    if (!valid) return REASON_ARGUMENTS;
    user->folds.function = call, user->folds.context = user;
    user->op = op, user->type = type, user->shape = shape, user->failed = false;
    return in_order || user->folds.commutative ? REASON_NONE : REASON_OPERATION;
}

bool shim_user_room(struct shim_user *user, void *own[2]) {
    MPI_Count lower, extent, first, length;
    if (user->shape->dense) return true;
    /* Where operations assign structs, they write to padding at the end of the extent, too. */
    PMPI_Type_get_extent_x(user->type, &lower, &extent);
    PMPI_Type_get_true_extent_x(user->type, &first, &length);
    int64_t last = (at_once(user->shape) - 1) * extent, begin = first < lower ? first : lower;
    int64_t end = first + length > lower + extent ? first + length : lower + extent;
    int64_t low = begin + (last < 0 ? last : 0), high = end + (last > 0 ? last : 0);
    /* Elements lie at their displacements from an address that is aligned as malloc's. */
    enum { ALIGNED = 16 };
    size_t bytes = (size_t)(high - low) + ALIGNED;
    for (int side = 0; side < 2; side++) {
        char *room = own ? own[side] = malloc(bytes) : shim_buffer(SLOT_LEFT + side, bytes);
        if (!room) return false;
        user->at[side] = (void *)((uintptr_t)room + (uintptr_t)((-low + ALIGNED - 1) & -(int64_t)ALIGNED));
    }
    return true;
}
