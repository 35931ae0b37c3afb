/*
 * Compares the data that Unisono's collective received with the data that the MPI's receives (verify.h), and does so after a blocking
 * collective. Data is kept packed, so that it works for any datatype and MPI_BOTTOM. That holes were not written is checked on a copy
 * of the bytes from the first to the last.
 */
#include "verify.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool verify_on;
static uint64_t calls; /* added to by several threads */

uint64_t verify_calls(void) { return __atomic_load_n(&calls, __ATOMIC_RELAXED); }

void verify_stop(const struct verify *v, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "unisono: verify: %s among %d ranks, rank %d: %s\n", shim_names[SHIM_NUMBER(v->call->form, v->call->collective)],
            v->call->on->size, v->call->on->rank, text);
    usleep(100000); /* MPICH's launcher drops what it has not read yet when a rank aborts */
    PMPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

void verify_fail(const struct verify *v, int code) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int len;
    PMPI_Error_string(code, text, &len);
    verify_stop(v, "ours succeeded, the MPI's failed: %s", text);
}

void *verify_memory(const struct verify *v, size_t bytes) {
    void *got = malloc(bytes ? bytes : 1);
    if (!got) verify_stop(v, "no memory to compare %zu bytes", bytes);
    return got;
}

/* ---- What is received, packed ------------------------------------------------------------------ */

/* The number of blocks that this rank receives: none as root of a broadcast, or of a scatter in place. */
static int blocks_of(const struct verify *v) {
    const struct shim_call *c = v->call;
    bool sends = c->receive_in_place || shim_broadcasts(c);
    return sends ? 0 : c->receive.blocks;
}

/* Bytes at the start of what is received that have a result. Rank 0 has none of an exscan; and in place, the blocks behind
 * the result of a fold by blocks are undefined. */
static uint64_t compared(const struct verify *v) {
    const struct shim_call *c = v->call;
    if (c->collective == EXSCAN && c->on->rank == 0) return 0;
    bool by_blocks = c->collective == REDUCE_SCATTER || c->collective == REDUCE_SCATTER_BLOCK;
    return by_blocks ? (uint64_t)c->own * c->receive.shape->bytes : v->packed;
}

/* Packs or unpacks one block, by PMPI_Pack or PMPI_Unpack. */
static void transfer(const struct verify *v, void *at, const struct shim_side *side, int block, char *image, bool pack) {
    uint64_t count = (uint64_t)shim_count_of(side, block);
    if (!shim_pack(at, count, shim_type_of(side, block), shim_shape_of(side, block), image, pack))
        verify_stop(v, "the data can't be %s", pack ? "packed" : "unpacked");
}

void verify_transfer(const struct verify *v, void *base, char *image, bool pack) {
    const struct shim_side *r = &v->call->receive;
    for (int b = 0; b < blocks_of(v); b++) {
        transfer(v, verify_shifted(base, shim_start_of(r, b)), r, b, image, pack);
        image += shim_bytes_of(r, b);
    }
}

char *verify_received(const struct verify *v, void *base) {
    char *image = verify_memory(v, v->packed);
    verify_transfer(v, base, image, true);
    return image;
}

/* What the program's buffer holds now. */
static char *received(const struct verify *v) { return verify_received(v, v->call->receive.buffer); }

static struct verify_real real_of(const struct shim_call *c);

void verify_measure(struct verify *v, const struct shim_call *call) {
    const struct shim_side *r = &call->receive;
    v->call = call, v->real = real_of(call);
    v->input = v->ours = v->span = NULL;
    v->packed = 0, v->low = 0, v->high = 0;
    for (int b = 0; b < blocks_of(v); b++) {
        MPI_Count first, length;
        if (!shim_bytes_of(r, b)) continue;
        PMPI_Type_get_true_extent_x(shim_type_of(r, b), &first, &length);
        int64_t one = shim_start_of(r, b) + first, other = one + (shim_count_of(r, b) - 1) * shim_shape_of(r, b)->extent;
        int64_t low = one < other ? one : other, high = (one < other ? other : one) + length;
        if (!v->packed || low < v->low) v->low = low;
        if (!v->packed || high > v->high) v->high = high;
        v->packed += shim_bytes_of(r, b);
    }
}

/*
 * Holes can be compared only if all blocks lie in one object, which need not be so with absolute addresses. A reduction
 * may write to holes.
 */
static bool has_holes(const struct verify *v) {
    return !v->call->folds && v->call->receive.buffer != MPI_BOTTOM && v->packed != (uint64_t)(v->high - v->low);
}

/* Unpacks `ours` into the copy of the bytes before the call: the buffer must be equal to that now. */
static void compare_holes(const struct verify *v) {
    verify_transfer(v, verify_shifted(v->span, -v->low), v->ours, false);
    const char *is = verify_shifted(v->call->receive.buffer, v->low);
    for (int64_t i = 0; i < v->high - v->low; i++)
        if (is[i] != v->span[i])
            verify_stop(v, "byte %lld from the receive buffer's start is in a hole, ours wrote 0x%02x to it",
                 (long long)(v->low + i), is[i] & 0xff);
}

/* ---- Floating-point numbers -------------------------------------------------------------------- */

static struct verify_real real_of(const struct shim_call *c) {
    static const struct verify_real reals[] = {
        [UNISONO_F32] = {4, false, false},        [UNISONO_F64] = {8, false, false},
        [UNISONO_COMPLEX_F32] = {4, true, false}, [UNISONO_COMPLEX_F64] = {8, true, false},
        [UNISONO_FLOAT_INT] = {4, false, true},   [UNISONO_DOUBLE_INT] = {8, false, true},
    };
    uint8_t kind = c->send.shape->kind;
    bool known = c->folds && kind < sizeof reals / sizeof *reals;
    return known ? reals[kind] : (struct verify_real){0, false, false};
}

static double number(const char *at, size_t width) {
    float single;
    double twice;
    memcpy(width == 4 ? (void *)&single : (void *)&twice, at, width);
    return width == 4 ? single : twice;
}

/* The absolute value of the number that the i-th component belongs to. */
static double magnitude(const char *image, size_t i, struct verify_real real) {
    if (!real.complex) return fabs(number(image + i * real.width, real.width));
    i &= ~(size_t)1;
    return hypot(number(image + i * real.width, real.width), number(image + (i + 1) * real.width, real.width));
}

/*
 * The differences that another order explains, for p operands x of one component; e is the distance from 1 to the next
 * number:
 *
 * sum:      each order's error is at most about p e/2 times the sum of all |x|. Allowed: 2 p e sum |x|, and any result
 *   if that sum is not finite in the type (a partial sum may overflow, or an operand is NaN);
 * product:  p e/2 times the result, four times that for complex numbers. Allowed: 8 p e |result|, and any result if the
 *           product of the |x| above 1, or of those below, leaves the type's range (a partial product may overflow or
 *           underflow, or an operand is NaN);
 * min, max: the same value; any if one is NaN, for which the standard defines nothing.
 *
 * For other elements the bytes must be the same. Of a scan, x are the operands of all ranks: more than those of its result.
 */
/* The elements of the blocks before this rank's in a fold by blocks. */
static uint64_t before_own(const struct shim_call *c) {
    uint64_t before = 0;
    if (c->collective == REDUCE_SCATTER_BLOCK) return (uint64_t)c->own * c->on->rank;
    for (int r = 0; c->collective == REDUCE_SCATTER && r < c->on->rank; r++) before += c->counts[r];
    return before;
}

struct verify_scale verify_scale_of(const struct verify *v) {
    const struct shim_call *c = v->call;
    const struct shim_side *side = &c->send; /* in place too, but for the buffer */
    struct verify_real real = v->real;
    struct verify_scale s = {.ranks = c->on->size};
    bool sum = c->op == MPI_SUM;
    if (!real.width || real.pair || (!sum && c->op != MPI_PROD)) return s;
    size_t bytes = side->count * side->shape->bytes;
    s.count = bytes / real.width, s.first = before_own(c) * (side->shape->bytes / real.width);
    char *own = NULL;
    if (!c->send_in_place) transfer(v, side->buffer, side, 0, own = verify_memory(v, bytes), true);
    const char *operand = own ? own : v->input;
    s.more = verify_memory(v, s.count * sizeof *s.more), s.less = verify_memory(v, s.count * sizeof *s.less);
    for (size_t i = 0; i < s.count; i++) {
        double x = sum ? fabs(number(operand + i * real.width, real.width)) : magnitude(operand, i, real);
        s.more[i] = sum || !(x <= 1) ? x : 1;
        s.less[i] = x > 0 && x < 1 ? x : 1;
    }
    free(own);
    return s;
}

void verify_reduce_scale(const struct verify *v, struct verify_scale *s, MPI_Comm comm, MPI_Request *requests) {
    MPI_Op of_more = v->call->op == MPI_SUM ? MPI_SUM : MPI_PROD;
    for (size_t i = 0; i < s->count; i += VERIFY_PIECE) {
        int piece = s->count - i < VERIFY_PIECE ? s->count - i : VERIFY_PIECE;
        for (int less = 0; less < 2; less++) {
            double *at = (less ? s->less : s->more) + i;
            MPI_Op op = less ? MPI_PROD : of_more;
            int code = requests ? PMPI_Iallreduce(MPI_IN_PLACE, at, piece, MPI_DOUBLE, op, comm, requests++)
                                : PMPI_Allreduce(MPI_IN_PLACE, at, piece, MPI_DOUBLE, op, comm);
            if (code != MPI_SUCCESS) verify_stop(v, "the MPI can't add up how much another order may differ");
        }
    }
}

/* Is the difference in the i-th component allowed? */
static bool explained(const struct verify *v, const struct verify_scale *s, const char *theirs, size_t i) {
    struct verify_real real = v->real;
    double a = number(v->ours + i * real.width, real.width), b = number(theirs + i * real.width, real.width);
    MPI_Op op = v->call->op;
    double epsilon = real.width == 4 ? FLT_EPSILON : DBL_EPSILON, largest = real.width == 4 ? FLT_MAX : DBL_MAX;
    if (a == b || (isnan(a) && isnan(b))) return true;
    if (op != MPI_SUM && op != MPI_PROD) return isnan(a) || isnan(b);
    double more = s->more[s->first + i], less = s->less[s->first + i];
    if (op == MPI_SUM) return !(more <= largest) || fabs(a - b) <= 2 * s->ranks * epsilon * more;
    if (!(more <= largest / 2) || less < (real.width == 4 ? FLT_MIN : DBL_MIN)) return true;
    return fabs(a - b) <= 8 * s->ranks * epsilon * fmax(magnitude(v->ours, i, real), magnitude(theirs, i, real));
}

/* Compares two pairs: the values (zeros of both signs are equal), then the indices. */
static bool same_pair(const char *ours, const char *theirs, size_t width, size_t size) {
    double a = number(ours, width), b = number(theirs, width);
    return isnan(a) || isnan(b) || (a == b && !memcmp(ours + width, theirs + width, size - width));
}

/* ---- The comparison ---------------------------------------------------------------------------- */

__attribute__((noreturn)) static void differ(const struct verify *v, const char *theirs, size_t element) {
    enum { MOST = 32 };
    char text[2][2 * MOST + 1];
    uint64_t size = v->call->receive.shape->bytes;
    const char *image[2] = {v->ours + element * size, theirs + element * size};
    for (int side = 0; side < 2; side++)
        for (uint64_t i = 0; i < MOST && i < size; i++) sprintf(text[side] + 2 * i, "%02x", image[side][i] & 0xff);
    int block = 0;
    const struct shim_side *r = &v->call->receive;
    for (; element >= shim_bytes_of(r, block) / size; block++) element -= shim_bytes_of(r, block) / size;
    verify_stop(v, "element %zu of block %d of %d differs: bytes %s, the MPI's %s%s", element, block, blocks_of(v), text[0],
         text[1], size > MOST ? ", cut off" : "");
}

/* Of overlapping blocks both results are right. Where a rank is a neighbor several times, MPIs do not agree in which order its messages are
 * received (hosts/mpi/tests/neighbors.c). Of the program's operations the integers' must be the same: how much others
 * may differ in another order is not known. */
static bool is_comparable(const struct verify *v) {
    const struct shim_call *c = v->call;
    uint8_t kind = c->receive.shape->kind;
    bool integers = kind >= UNISONO_BOOL && kind <= UNISONO_U64;
    return !c->receive.overlaps && !c->disputed && (!c->folds || c->element > 0 || integers);
}

static void compare(const struct verify *v, const char *theirs, const struct verify_scale *s) {
    struct verify_real real = v->real;
    MPI_Op op = v->call->op;
    size_t size = v->call->receive.shape->bytes, numbers = real.width && !real.pair ? size / real.width : 0;
    for (size_t at = 0; at < compared(v); at += size) {
        if (!memcmp(v->ours + at, theirs + at, size)) continue;
        bool same = real.pair && (op == MPI_MINLOC || op == MPI_MAXLOC) &&
                    same_pair(v->ours + at, theirs + at, real.width, size);
        size_t fine = 0;
        while (fine < numbers && explained(v, s, theirs, at / real.width + fine)) fine++;
        if (!same && (!numbers || fine < numbers)) differ(v, theirs, at / size);
    }
}

void verify_compare(const struct verify *v, const char *theirs, const struct verify_scale *s) {
    if (is_comparable(v)) compare(v, theirs, s);
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
}

/* ---- Blocking collectives ------------------------------------------------------------------------ */

static void drop(struct verify *v) {
    free(v->input), free(v->ours), free(v->span);
    v->input = v->ours = v->span = NULL;
}

void verify_before(struct verify *v, const struct shim_call *call) {
    verify_measure(v, call);
    v->input = received(v);
    if (has_holes(v)) {
        v->span = verify_memory(v, v->high - v->low);
        memcpy(v->span, verify_shifted(v->call->receive.buffer, v->low), v->high - v->low);
    }
}

bool verify_between(struct verify *v, int code) {
    if (code != MPI_SUCCESS) {
        drop(v);
        return false;
    }
    shim_thread()->inside++; /* until the end of the comparison */
    v->ours = received(v);
    if (v->span) compare_holes(v);
    verify_transfer(v, v->call->receive.buffer, v->input, false);
    return true;
}

void verify_after(struct verify *v, int code) {
    if (code != MPI_SUCCESS) verify_fail(v, code);
    char *theirs = received(v);
    struct verify_scale scale = verify_scale_of(v);
    verify_reduce_scale(v, &scale, v->call->comm, NULL);
    verify_compare(v, theirs, &scale);
    verify_transfer(v, v->call->receive.buffer, v->ours, false);
    free(theirs), free(scale.more), free(scale.less);
    drop(v);
    shim_thread()->inside--;
}
