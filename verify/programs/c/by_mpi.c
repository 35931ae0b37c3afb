/*
 * Runs programs by the calls of an MPI.
 *
 * A predefined operation that the MPI itself gets wrong is replaced by one of the program's, and rank 0 says so: Open MPI 4.1.4 adds
 * MPI_UINT8_T with saturation where the CPU has AVX, MPICH 4.0.2 takes MPI_UINT64_T for signed in MPI_MAX.
 */
#include "program.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if MPI_VERSION >= 4 || defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5
#define PLAN(Name, ...) MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, &own->request)
#elif defined(OPEN_MPI)
#include <mpi-ext.h>
#define PLAN(Name, ...) MPIX_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, &own->request)
#endif

/* A call in one of its three forms. */
#define CALL(Name, name, ...) \
    (form == RUN ? MPI_##Name(__VA_ARGS__) : form == START ? MPI_I##name(__VA_ARGS__, &own->request) : PLAN(Name, __VA_ARGS__))

struct host_comm { MPI_Comm comm; };

/* One side's arguments. */
struct arguments {
    void *buffer;
    int count, *counts, *displacements;
    MPI_Datatype type, *types, made[2];
};

struct host {
    struct arguments sides[2];
    MPI_Op op;
    MPI_Request request;
    host_comm *comm;
    unsigned char *copy; /* of what is sent in place */
};

static host_comm world;
/* By the text's operation: predefined, of which type, and does the MPI get it right? */
static struct { const char *name; MPI_Op op; MPI_Datatype type; bool right; } predefined[AFFINE + 1];

static void look_at(enum op op, const char *name, MPI_Op of, MPI_Datatype type, int rank) {
    unsigned char left[256], right[256], wanted[256];
    int element = op == SUM8 ? 1 : 8;
    for (int i = 0; i < 256; i++) left[i] = (unsigned char)(i * 89), wanted[i] = right[i] = (unsigned char)(255 - i * 31);
    fold(op, (uint64_t)element, 256 / (uint64_t)element, left, wanted);
    MPI_Reduce_local(left, right, 256 / element, type, of);
    predefined[op].name = name, predefined[op].op = of, predefined[op].type = type;
    predefined[op].right = !memcmp(right, wanted, sizeof right);
    if (!predefined[op].right && rank == 0) printf("this MPI is wrong in %s: an operation of the program's takes its place\n", name);
}

void host_begin(int *rank, int *size) {
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, size);
    world.comm = MPI_COMM_WORLD;
    look_at(SUM8, "MPI_SUM of MPI_UINT8_T", MPI_SUM, MPI_UINT8_T, *rank);
    look_at(SUM64, "MPI_SUM of MPI_UINT64_T", MPI_SUM, MPI_UINT64_T, *rank);
    look_at(XOR64, "MPI_BXOR of MPI_UINT64_T", MPI_BXOR, MPI_UINT64_T, *rank);
    look_at(MAX64, "MPI_MAX of MPI_UINT64_T", MPI_MAX, MPI_UINT64_T, *rank);
}

void host_end(void) { MPI_Finalize(); }

void host_abort(void) {
    /* So that it is read before the job ends. */
    usleep(100000);
    MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

bool host_has_types(enum name name) { return name < REDUCE; }

host_comm *host_world(void) { return &world; }

host_comm *host_dup(host_comm *comm) {
    host_comm *made = allocate(sizeof *made);
    MPI_Comm_dup(comm->comm, &made->comm);
    return made;
}

host_comm *host_split(host_comm *comm, int64_t color, int64_t key) {
    host_comm *made = allocate(sizeof *made);
    MPI_Comm_split(comm->comm, color < 0 ? MPI_UNDEFINED : (int)color, (int)key, &made->comm);
    if (made->comm != MPI_COMM_NULL) return made;
    free(made);
    return NULL;
}

#if defined(OPEN_MPI) && MPI_VERSION < 4
enum { OPEN_MPI_4 = 1 };
#else
enum { OPEN_MPI_4 = 0 };
#endif

/* Open MPI 4.1.4's nonblocking collectives that are not complete yet crash where they go on, on a communicator that was freed. */
bool host_free(host_comm *comm, int requests) {
    if (OPEN_MPI_4 && requests > 0) return false;
    MPI_Comm_free(&comm->comm);
    free(comm);
    return true;
}

/* The elements of the text are rows of bytes to an operation of the caller's. */
static void by(enum op op, void *left, void *right, int *count, MPI_Datatype *type) {
    int element;
    MPI_Type_size(*type, &element);
    fold(op, (uint64_t)element, (uint64_t)*count, left, right);
}
static void sum8(void *left, void *right, int *count, MPI_Datatype *type) { by(SUM8, left, right, count, type); }
static void sum64(void *left, void *right, int *count, MPI_Datatype *type) { by(SUM64, left, right, count, type); }
static void xor64(void *left, void *right, int *count, MPI_Datatype *type) { by(XOR64, left, right, count, type); }
static void max64(void *left, void *right, int *count, MPI_Datatype *type) { by(MAX64, left, right, count, type); }
static void add(void *left, void *right, int *count, MPI_Datatype *type) { by(ADD, left, right, count, type); }
static void affine(void *left, void *right, int *count, MPI_Datatype *type) { by(AFFINE, left, right, count, type); }

static MPI_User_function *const functions[] = {NULL, sum8, sum64, xor64, max64, add, affine};

static MPI_Datatype type_of(struct shape shape, uint64_t element, uint64_t extent) {
    MPI_Datatype type, fields;
    int blocks = shape.kind ? (int)(element / (shape.block ? shape.block : element)) : 1, block = (int)shape.block;
    MPI_Aint stride = (MPI_Aint)(shape.block + shape.gap);
    if (shape.kind == 0) {
        MPI_Type_contiguous((int)element, MPI_BYTE, &type);
    } else if (shape.kind == 1) {
        MPI_Type_create_hvector(blocks, block, stride, MPI_BYTE, &type);
    } else if (shape.kind == 2) {
        MPI_Aint *places = allocate(blocks * sizeof *places);
        for (int i = 0; i < blocks; i++) places[i] = (blocks - 1 - i) * stride;
        MPI_Type_create_hindexed_block(blocks, block, places, MPI_BYTE, &type);
        free(places);
    } else {
        int lengths[2] = {block, (int)element - block};
        MPI_Aint places[2] = {(MPI_Aint)(element - shape.block + shape.gap), 0};
        MPI_Datatype bytes[2] = {MPI_BYTE, MPI_BYTE};
        MPI_Type_create_struct(2, lengths, places, bytes, &fields);
        MPI_Type_create_resized(fields, 0, (MPI_Aint)extent, &type);
        MPI_Type_free(&fields);
    }
    MPI_Type_commit(&type);
    return type;
}

static bool makes_op(const struct call *call) { return call->op != NONE && !predefined[call->op].right; }

void host_prepare(struct part *part) {
    const struct call *call = part->call;
    struct host *own = part->host = allocate(sizeof *own);
    own->request = MPI_REQUEST_NULL;
    bool ready = predefined[call->op].right;
    own->op = predefined[call->op].op;
    if (makes_op(call)) MPI_Op_create(functions[call->op], call->op != AFFINE, &own->op);
    for (int side = SEND; side <= RECEIVE; side++) {
        struct arguments *to = &own->sides[side];
        const struct buffer *buffer = &part->sides[side];
        to->made[0] = to->made[1] = MPI_DATATYPE_NULL;
        to->type = ready ? predefined[call->op].type : MPI_BYTE;
        if (buffer->memory && !ready) {
            for (int kind = 0; kind < 2; kind++) to->made[kind] = type_of(buffer->shapes[kind], call->element, buffer->extents[kind]);
            to->type = to->made[0];
        }
        to->buffer = buffer->memory;
        int blocks = part->size > buffer->blocks ? part->size : buffer->blocks;
        to->counts = allocate(blocks * sizeof(int)), to->displacements = allocate(blocks * sizeof(int));
        to->types = allocate(blocks * sizeof(MPI_Datatype));
        for (int block = 0; block < blocks; block++) to->types[block] = MPI_BYTE;
        for (int block = 0; block < buffer->blocks; block++) {
            to->counts[block] = (int)buffer->counts[block], to->displacements[block] = (int)buffer->displacements[block];
            to->types[block] = to->made[block % 2];
        }
        to->count = to->counts[0];
    }
    if (!part->in_place) return;
    bool scatters = call->name == SCATTER || call->name == SCATTERV;
    own->sides[scatters ? RECEIVE : SEND].buffer = MPI_IN_PLACE;
    /* The operand of a reduction in place is in the buffer of the other side. */
    if (call->op != NONE) own->sides[SEND].type = own->sides[RECEIVE].type;
}

void host_forget(struct part *part) {
    struct host *own = part->host;
    for (int side = SEND; side <= RECEIVE; side++) {
        struct arguments *of = &own->sides[side];
        for (int kind = 0; kind < 2; kind++) {
            if (of->made[kind] != MPI_DATATYPE_NULL) MPI_Type_free(&of->made[kind]);
        }
        free(of->counts), free(of->displacements), free(of->types);
    }
    if (makes_op(part->call)) MPI_Op_free(&own->op);
    free(own->copy);
    free(own);
}

/* Open MPI 4.1.4's nonblocking alltoalls in place disturb later ones, which hang: what would be sent in place is sent from a copy. */
static bool copies(const struct part *part) {
    return OPEN_MPI_4 && part->in_place && part->call->name >= ALLTOALL && part->call->name <= ALLTOALLW;
}

static void copy(struct part *part) {
    struct host *own = part->host;
    const struct buffer *buffer = &part->sides[RECEIVE];
    if (!own->copy) own->copy = allocate(buffer->bytes);
    memcpy(own->copy, buffer->memory, buffer->bytes);
}

/*
 * Where not, `init` does nothing, and a start is a nonblocking call. MPICH 4.0.2's MPI_Gather_init receives nothing, and a second start
 * of others fails.
 */
static bool plans(const struct part *part) {
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40100000
    (void)part;
    return false;
#else
    return !copies(part);
#endif
}

void host_call(struct part *part, host_comm *of, enum form form) {
    const struct call *call = part->call;
    struct host *own = part->host;
    const struct arguments *s = &own->sides[SEND], *r = &own->sides[RECEIVE];
    struct arguments copied = *r;
    if (form == START && copies(part)) {
        copy(part);
        copied.buffer = own->copy, s = &copied;
    }
    /* Of a fold, where one side is not there or both are the same. */
    MPI_Datatype type = s->type == MPI_BYTE ? r->type : s->type;
    MPI_Comm comm = of->comm;
    int root = call->root, count = (int)part->own;
    own->comm = of;
    if (form == INIT && !plans(part)) return;
    switch (call->name) {
    case BARRIER: CALL(Barrier, barrier, comm); break;
    case BCAST: CALL(Bcast, bcast, s->buffer, s->count, s->type, root, comm); break;
    case GATHER: CALL(Gather, gather, s->buffer, s->count, s->type, r->buffer, r->count, r->type, root, comm); break;
    case GATHERV:
        CALL(Gatherv, gatherv, s->buffer, s->count, s->type, r->buffer, r->counts, r->displacements, r->type, root, comm);
        break;
    case SCATTER: CALL(Scatter, scatter, s->buffer, s->count, s->type, r->buffer, r->count, r->type, root, comm); break;
    case SCATTERV:
        CALL(Scatterv, scatterv, s->buffer, s->counts, s->displacements, s->type, r->buffer, r->count, r->type, root, comm);
        break;
    case ALLGATHER: CALL(Allgather, allgather, s->buffer, s->count, s->type, r->buffer, r->count, r->type, comm); break;
    case ALLGATHERV:
        CALL(Allgatherv, allgatherv, s->buffer, s->count, s->type, r->buffer, r->counts, r->displacements, r->type, comm);
        break;
    case ALLTOALL: CALL(Alltoall, alltoall, s->buffer, s->count, s->type, r->buffer, r->count, r->type, comm); break;
    case ALLTOALLV:
        CALL(Alltoallv, alltoallv, s->buffer, s->counts, s->displacements, s->type, r->buffer, r->counts, r->displacements, r->type, comm);
        break;
    case ALLTOALLW:
        CALL(Alltoallw, alltoallw, s->buffer, s->counts, s->displacements, s->types, r->buffer, r->counts, r->displacements, r->types,
             comm);
        break;
    case REDUCE: CALL(Reduce, reduce, s->buffer, r->buffer, count, type, own->op, root, comm); break;
    case ALLREDUCE: CALL(Allreduce, allreduce, s->buffer, r->buffer, count, type, own->op, comm); break;
    case REDUCE_SCATTER: {
        const int *counts = part->in_place ? r->counts : s->counts;
        CALL(Reduce_scatter, reduce_scatter, s->buffer, r->buffer, counts, type, own->op, comm);
        break;
    }
    case REDUCE_SCATTER_BLOCK: CALL(Reduce_scatter_block, reduce_scatter_block, s->buffer, r->buffer, count, type, own->op, comm); break;
    case SCAN: CALL(Scan, scan, s->buffer, r->buffer, count, type, own->op, comm); break;
    case EXSCAN: CALL(Exscan, exscan, s->buffer, r->buffer, count, type, own->op, comm); break;
    default: fail("call %d is not a collective of a library", call->number);
    }
}

void host_start(struct part *part) {
    struct host *own = part->host;
    if (plans(part)) {
        MPI_Start(&own->request);
    } else {
        host_call(part, own->comm, START);
    }
}

bool host_test(struct part *part) {
    struct host *own = part->host;
    int done;
    MPI_Test(&own->request, &done, MPI_STATUS_IGNORE);
    return done;
}

void host_wait(struct part **parts, int count) {
    MPI_Request *requests = allocate(count * sizeof *requests);
    for (int i = 0; i < count; i++) requests[i] = ((struct host *)parts[i]->host)->request;
    if (count == 1) {
        MPI_Wait(requests, MPI_STATUS_IGNORE);
    } else {
        /* MPICH's header says that statuses that are ignored are written. */
        MPI_Status *statuses = allocate(count * sizeof *statuses);
        MPI_Waitall(count, requests, statuses);
        free(statuses);
    }
    for (int i = 0; i < count; i++) ((struct host *)parts[i]->host)->request = requests[i];
    free(requests);
}

void host_request_free(struct part *part) {
    struct host *own = part->host;
    if (own->request != MPI_REQUEST_NULL) MPI_Request_free(&own->request);
}
