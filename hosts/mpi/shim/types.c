/* Properties of datatypes and operations. */
#include <stdlib.h>
#include <string.h>

const struct shim_shape shim_nothing = {.dense = true};
const struct shim_shape shim_byte = {.bytes = 1, .extent = 1, .dense = true};

/* ---- Operations ------------------------------------------------------------------------------------------ */

static inline uint16_t bit(const unisono_op *op) { return (uint16_t)(1u << (uintptr_t)op); }

const unisono_op *shim_operation(MPI_Op op) {
    /* The most frequent ones first. */
    if (op == MPI_SUM) return UNISONO_SUM;
    if (op == MPI_MAX) return UNISONO_MAX;
    if (op == MPI_MIN) return UNISONO_MIN;
    if (op == MPI_PROD) return UNISONO_PROD;
    if (op == MPI_LAND) return UNISONO_LAND;
    if (op == MPI_LOR) return UNISONO_LOR;
    if (op == MPI_LXOR) return UNISONO_LXOR;
    if (op == MPI_BAND) return UNISONO_BAND;
    if (op == MPI_BOR) return UNISONO_BOR;
    if (op == MPI_BXOR) return UNISONO_BXOR;
    if (op == MPI_MINLOC) return UNISONO_MINLOC;
    if (op == MPI_MAXLOC) return UNISONO_MAXLOC;
    return NULL;
}

/* ---- Derived types --------------------------------------------------------------------------------------------- */

static int cached = MPI_KEYVAL_INVALID;

static int copy_none(MPI_Datatype type, int key, void *extra, void *value, void *copied, int *flag) {
    (void)type, (void)key, (void)extra, (void)value, (void)copied;
    *flag = 0;
    return MPI_SUCCESS;
}

static int forget_none(MPI_Datatype type, int key, void *value, void *extra) {
    (void)type, (void)key, (void)value, (void)extra;
    return MPI_SUCCESS;
}

/* Caches the result of shim_is_dense as an attribute of the type: one of two addresses. */
static bool is_dense(MPI_Datatype type) {
    static char results[2];
    void *result;
    int found = 0;
    if (cached == MPI_KEYVAL_INVALID) return shim_is_dense(type);
    if (PMPI_Type_get_attr(type, cached, &result, &found) == MPI_SUCCESS && found) return result == &results[1];
    bool dense = shim_is_dense(type);
    PMPI_Type_set_attr(type, cached, &results[dense]);
    return dense;
}

/* ---- Predefined types -------------------------------------------------------------------------------------- */

/* MPI's groups of types (MPI 4.1, 7.9.2), as far as unisono.h has them. */
enum group { OTHER, SIGNED, UNSIGNED, FORTRAN_INTEGER, FLOATING, COMPLEX, BOOLEAN, BYTE, PAIR };

static uint16_t operations_of(enum group group) {
    const uint16_t folds = bit(UNISONO_SUM) | bit(UNISONO_PROD), extremes = bit(UNISONO_MIN) | bit(UNISONO_MAX),
                   logical = bit(UNISONO_LAND) | bit(UNISONO_LOR) | bit(UNISONO_LXOR),
                   bits = bit(UNISONO_BAND) | bit(UNISONO_BOR) | bit(UNISONO_BXOR),
                   places = bit(UNISONO_MINLOC) | bit(UNISONO_MAXLOC);
    switch (group) {
    case SIGNED:
    case UNSIGNED: return folds | extremes | logical | bits;
    case FORTRAN_INTEGER: return folds | extremes | bits; /* and MPI_AINT, MPI_OFFSET, MPI_COUNT */
    case FLOATING: return folds | extremes;
    case COMPLEX: return folds;
    case BOOLEAN: return logical;
    case BYTE: return bits;
    case PAIR: return places;
    default: return 0;
    }
}

/* The kind of a number of `bytes` bytes; UNISONO_I8 to I64 and U8 to U64 have consecutive numbers. */
static uint8_t kind_of(enum group group, uint64_t bytes) {
    int power = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : bytes == 16 ? 4 : -1;
    switch (group) {
    case SIGNED:
    case FORTRAN_INTEGER: return power >= 0 && power < 4 ? UNISONO_I8 + power : 0;
    case UNSIGNED:
    case BYTE: return power >= 0 && power < 4 ? UNISONO_U8 + power : 0;
    case FLOATING: return power == 2 ? UNISONO_F32 : power == 3 ? UNISONO_F64 : 0;
    case COMPLEX: return power == 3 ? UNISONO_COMPLEX_F32 : power == 4 ? UNISONO_COMPLEX_F64 : 0;
    case BOOLEAN: return power == 0 ? UNISONO_BOOL : 0;
    default: return 0;
    }
}

struct shim_type shim_types[SHIM_TYPES];
uint64_t shim_types_by = 0x9e3779b97f4a7c15u;

void shim_measure(MPI_Datatype type, struct shim_shape *shape, MPI_Count *lower, MPI_Count *length) {
    MPI_Count bytes, extent, ignored;
    PMPI_Type_size_x(type, &bytes);
    PMPI_Type_get_extent_x(type, &ignored, &extent);
    PMPI_Type_get_true_extent_x(type, lower, length);
    *shape = (struct shim_shape){.bytes = (uint64_t)bytes, .extent = extent};
}

/* Enters a type. Returns whether its place is its own. */
static bool put(struct shim_type type) {
    unsigned own = shim_place_of(type.type), i = own;
    while (shim_types[i].used) i = (i + 1) % SHIM_TYPES;
    shim_types[i] = type;
    return i == own;
}

/* Handles may be addresses, which differ from run to run. Of several numbers to multiply them by, takes the first one that gives each
 * type a place of its own, or the last. */
static void spread(void) {
    enum { TRIES = 1000 };
    struct shim_type all[SHIM_TYPES / 2];
    int count = 0;
    for (int i = 0; i < SHIM_TYPES && count < SHIM_TYPES / 2; i++)
        if (shim_types[i].used) all[count++] = shim_types[i];
    bool apart = false;
    for (int tries = 0; tries < TRIES && !apart; tries++) {
        shim_types_by = shim_types_by * 6364136223846793005u + 2; /* odd ones */
        memset(shim_types, 0, sizeof shim_types);
        apart = true;
        for (int i = 0; i < count; i++) apart &= put(all[i]);
    }
}

/* Adds a type; one that this MPI does not have is null. */
static void add(MPI_Datatype type, enum group group, uint8_t kind) {
    MPI_Count lower, length;
    struct shim_shape shape;
    if (!type || type == MPI_DATATYPE_NULL || shim_predefined(type)) return;
    shim_measure(type, &shape, &lower, &length);
    if ((int64_t)shape.bytes <= 0) return; /* "not available" in some MPIs */
    shape.dense = lower == 0 && (uint64_t)length == shape.bytes && (uint64_t)shape.extent == shape.bytes;
    shape.kind = kind ? kind : kind_of(group, shape.bytes);
    shape.operations = shape.kind ? operations_of(group) : 0;
    put((struct shim_type){.type = type, .used = true, .shape = shape});
}

/* Adds a pair, if it has the same memory layout as in unisono.h, which is checked by its extent. */
static void add_pair(MPI_Datatype type, uint8_t kind, size_t bytes) {
    MPI_Count lower, length;
    struct shim_shape shape;
    if (!type || type == MPI_DATATYPE_NULL) return;
    shim_measure(type, &shape, &lower, &length);
    bool same = shape.extent == (int64_t)bytes;
    add(type, same ? PAIR : OTHER, same ? kind : 0);
}

static void add_all(const MPI_Datatype *types, size_t n, enum group group) {
    for (size_t i = 0; i < n; i++) add(types[i], group, 0);
}

#define ADD(group, ...)                                                                                                \
    do {                                                                                                               \
        const MPI_Datatype types[] = {__VA_ARGS__};                                                                    \
        add_all(types, sizeof types / sizeof *types, group);                                                           \
    } while (0)

void shim_prepare_types(void) {
    PMPI_Type_create_keyval(copy_none, forget_none, &cached, NULL);
    ADD(SIGNED, MPI_INT, MPI_LONG, MPI_SHORT, MPI_LONG_LONG, MPI_SIGNED_CHAR, MPI_INT8_T, MPI_INT16_T, MPI_INT32_T,
        MPI_INT64_T);
    ADD(UNSIGNED, MPI_UNSIGNED, MPI_UNSIGNED_LONG, MPI_UNSIGNED_SHORT, MPI_UNSIGNED_LONG_LONG, MPI_UNSIGNED_CHAR,
        MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T);
    ADD(FORTRAN_INTEGER, MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8, MPI_AINT,
        MPI_OFFSET, MPI_COUNT);
    ADD(FLOATING, MPI_DOUBLE, MPI_FLOAT, MPI_LONG_DOUBLE, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL4, MPI_REAL8,
        MPI_REAL16);
    ADD(COMPLEX, MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_C_LONG_DOUBLE_COMPLEX, MPI_COMPLEX, MPI_DOUBLE_COMPLEX,
        MPI_COMPLEX8, MPI_COMPLEX16, MPI_COMPLEX32, MPI_CXX_FLOAT_COMPLEX, MPI_CXX_DOUBLE_COMPLEX,
        MPI_CXX_LONG_DOUBLE_COMPLEX);
    ADD(BOOLEAN, MPI_C_BOOL);
    ADD(BYTE, MPI_BYTE);
    struct { float value; int32_t index; } float_int;
    struct { double value; int32_t index; } double_int;
    struct { int64_t value; int32_t index; } long_int;
    struct { int16_t value; int32_t index; } short_int;
    add_pair(MPI_FLOAT_INT, UNISONO_FLOAT_INT, sizeof float_int);
    add_pair(MPI_DOUBLE_INT, UNISONO_DOUBLE_INT, sizeof double_int);
    add_pair(MPI_LONG_INT, UNISONO_LONG_INT, sizeof long_int);
    add_pair(MPI_SHORT_INT, UNISONO_SHORT_INT, sizeof short_int);
    add_pair(MPI_2INT, UNISONO_2INT, 2 * sizeof(int32_t));
    add_pair(MPI_2INTEGER, UNISONO_2INT, 2 * sizeof(int32_t));
    ADD(OTHER, MPI_CHAR, MPI_WCHAR, MPI_PACKED, MPI_CHARACTER, MPI_LOGICAL, MPI_CXX_BOOL, MPI_LONG_DOUBLE_INT,
        MPI_2REAL, MPI_2DOUBLE_PRECISION);
    spread();
}

/* ---- Other types --------------------------------------------------------------------------------------------- */

bool shim_derived(MPI_Datatype type, struct shim_shape *shape) {
    /* A null, freed or uncommitted type: packing no elements finds it, without calling the program's error handler. */
    char nothing;
    int position = 0;
    if (!type || type == MPI_DATATYPE_NULL) return false;
    if (PMPI_Pack(&nothing, 0, type, &nothing, sizeof nothing, &position, shim_private) != MPI_SUCCESS) return false;
    MPI_Count lower, length;
    shim_measure(type, shape, &lower, &length);
    shape->dense = !shape->bytes || (lower == 0 && (uint64_t)length == shape->bytes &&
                                     (uint64_t)shape->extent == shape->bytes && is_dense(type));
    return true;
}

MPI_Datatype shim_duplicate(MPI_Datatype type) {
    MPI_Datatype made;
    if (PMPI_Type_contiguous(1, type, &made) != MPI_SUCCESS) return MPI_DATATYPE_NULL;
    if (PMPI_Type_commit(&made) == MPI_SUCCESS) return made;
    PMPI_Type_free(&made);
    return MPI_DATATYPE_NULL;
}
