/* Runs programs by the calls of unisono.h and unisono_posix.h. */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <unisono_posix.h>

/* A call in one of its three forms. */
#define CALL(name, ...) \
    ok(form == RUN ? unisono_##name(__VA_ARGS__) \
           : form == START ? unisono_i##name(__VA_ARGS__, &own->request) : unisono_##name##_init(__VA_ARGS__, &own->request))

struct host_comm { unisono_comm *comm; };

/* One side's arguments. */
struct arguments {
    void *buffer;
    uint64_t count, *counts, *displacements; /* the lists are of bytes; of alltoallw, counts are elements */
    unisono_type *made[2];
    const unisono_type **types;
    uint64_t *elements;
};

struct host {
    struct arguments sides[2];
    unisono_op op;
    uint64_t element;
    unisono_request *request;
};

static host_comm world;

static void ok(int code) {
    char text[256];
    if (code == UNISONO_OK) return;
    unisono_last_error(text, sizeof text);
    fail("%s: %s", unisono_error_name(code), text);
}

void host_begin(int *rank, int *size) {
    ok(unisono_join(&world.comm));
    *rank = unisono_rank(world.comm), *size = unisono_size(world.comm);
}

void host_end(void) { ok(unisono_comm_free(&world.comm)); }

void host_abort(void) { exit(1); }

/* What has a displacement for each rank is in bytes; an alltoallv with types is an alltoallw of blocks of one type. */
bool host_has_types(enum name name) {
    return name < REDUCE && name != GATHERV && name != SCATTERV && name != ALLGATHERV;
}

host_comm *host_world(void) { return &world; }

host_comm *host_dup(host_comm *comm) {
    host_comm *made = allocate(sizeof *made);
    ok(unisono_comm_dup(comm->comm, &made->comm));
    return made;
}

host_comm *host_split(host_comm *comm, int64_t color, int64_t key) {
    host_comm *made = allocate(sizeof *made);
    ok(unisono_comm_split(comm->comm, color < 0 ? UNISONO_UNDEFINED : (uint32_t)color, key, &made->comm));
    if (made->comm) return made;
    free(made);
    return NULL;
}

/* A communicator with requests can't be freed (unisono_posix.h). */
bool host_free(host_comm *comm, int requests) {
    int code = unisono_comm_free(&comm->comm);
    if (requests > 0 && code == UNISONO_ERR_REQUEST && comm->comm) return false;
    ok(code);
    if (requests > 0) fail("a communicator with %d requests was freed", requests);
    free(comm);
    return true;
}

static void add(const void *left, void *right, uint64_t count, void *element) { fold(ADD, *(uint64_t *)element, count, left, right); }
static void affine(const void *left, void *right, uint64_t count, void *element) {
    fold(AFFINE, *(uint64_t *)element, count, left, right);
}

static unisono_type *type_of(struct shape shape, uint64_t element, uint64_t extent) {
    unisono_type *type;
    uint64_t blocks = shape.block ? element / shape.block : 1, stride = shape.block + shape.gap;
    if (shape.kind == 0) {
        ok(unisono_type_contiguous(element, &type));
    } else if (shape.kind == 1) {
        ok(unisono_type_vector(blocks, shape.block, stride, &type));
    } else if (shape.kind == 2) {
        uint64_t *places = allocate(blocks * sizeof *places);
        for (uint64_t i = 0; i < blocks; i++) places[i] = (blocks - 1 - i) * stride;
        ok(unisono_type_indexed(blocks, shape.block, places, &type));
        free(places);
    } else {
        uint64_t bytes[2] = {shape.block, element - shape.block}, places[2] = {element - shape.block + shape.gap, 0};
        ok(unisono_type_struct(2, bytes, places, extent, &type));
    }
    return type;
}

void host_prepare(struct part *part) {
    const struct call *call = part->call;
    struct host *own = part->host = allocate(sizeof *own);
    own->element = call->element;
    own->op = (unisono_op){call->op == ADD ? add : affine, &own->element, call->op == ADD};
    for (int side = SEND; side <= RECEIVE; side++) {
        struct arguments *to = &own->sides[side];
        const struct buffer *buffer = &part->sides[side];
        to->buffer = buffer->memory;
        if (!buffer->memory) continue;
        uint64_t blocks = (uint64_t)buffer->blocks;
        to->counts = allocate(blocks * sizeof(uint64_t)), to->displacements = allocate(blocks * sizeof(uint64_t));
        to->elements = allocate(blocks * sizeof(uint64_t)), to->types = allocate(blocks * sizeof *to->types);
        for (int kind = 0; kind < 2 && call->op == NONE; kind++) {
            to->made[kind] = type_of(buffer->shapes[kind], call->element, buffer->extents[kind]);
        }
        for (uint64_t block = 0; block < blocks; block++) {
            to->elements[block] = buffer->counts[block];
            to->counts[block] = buffer->counts[block] * call->element;
            to->displacements[block] = buffer->displacements[block] * (call->name == ALLTOALLW ? 1 : buffer->extents[0]);
            to->types[block] = to->made[block % 2];
        }
        to->count = buffer->counts[0];
    }
    if (!part->in_place) return;
    bool scatters = call->name == SCATTER || call->name == SCATTERV;
    own->sides[scatters ? RECEIVE : SEND].buffer = UNISONO_IN_PLACE;
}

void host_forget(struct part *part) {
    struct host *own = part->host;
    for (int side = SEND; side <= RECEIVE; side++) {
        struct arguments *of = &own->sides[side];
        for (int kind = 0; kind < 2; kind++) ok(unisono_type_free(of->made[kind]));
        free(of->counts), free(of->displacements), free(of->elements), free(of->types);
    }
    free(own);
}

static bool typed(const struct part *part) {
    const struct call *call = part->call;
    return host_has_types(call->name) && call->types > 0;
}

void host_call(struct part *part, host_comm *of, enum form form) {
    const struct call *call = part->call;
    struct host *own = part->host;
    const struct arguments *s = &own->sides[SEND], *r = &own->sides[RECEIVE];
    unisono_comm *comm = of->comm;
    uint32_t root = (uint32_t)call->root;
    uint64_t count = part->own, bytes = count * call->element;
    int type = call->op == SUM8 ? UNISONO_U8 : call->op >= ADD ? UNISONO_OPAQUE(call->element) : UNISONO_U64;
    const unisono_op *op = call->op == SUM8 || call->op == SUM64 ? UNISONO_SUM : call->op == XOR64 ? UNISONO_BXOR
        : call->op == MAX64                                      ? UNISONO_MAX : &own->op;
    switch (call->name) {
    case BARRIER: CALL(barrier, comm); break;
    case BCAST:
        if (typed(part)) CALL(bcast_typed, comm, s->buffer, s->count, s->made[0], root);
        else CALL(bcast, comm, s->buffer, bytes, root);
        break;
    case GATHER:
        if (typed(part)) CALL(gather_typed, comm, s->buffer, s->count, s->made[0], r->buffer, r->count, r->made[0], root);
        else CALL(gather, comm, s->buffer, r->buffer, bytes, root);
        break;
    case GATHERV: CALL(gatherv, comm, s->buffer, bytes, r->buffer, r->counts, r->displacements, root); break;
    case SCATTER:
        if (typed(part)) CALL(scatter_typed, comm, s->buffer, s->count, s->made[0], r->buffer, r->count, r->made[0], root);
        else CALL(scatter, comm, s->buffer, r->buffer, bytes, root);
        break;
    case SCATTERV: CALL(scatterv, comm, s->buffer, s->counts, s->displacements, r->buffer, bytes, root); break;
    case ALLGATHER:
        if (typed(part)) CALL(allgather_typed, comm, s->buffer, s->count, s->made[0], r->buffer, r->count, r->made[0]);
        else CALL(allgather, comm, s->buffer, r->buffer, bytes);
        break;
    case ALLGATHERV: CALL(allgatherv, comm, s->buffer, bytes, r->buffer, r->counts, r->displacements); break;
    case ALLTOALL:
        if (typed(part)) CALL(alltoall_typed, comm, s->buffer, s->count, s->made[0], r->buffer, r->count, r->made[0]);
        else CALL(alltoall, comm, s->buffer, r->buffer, bytes);
        break;
    case ALLTOALLV:
        if (!typed(part)) {
            CALL(alltoallv, comm, s->buffer, s->counts, s->displacements, r->buffer, r->counts, r->displacements);
            break;
        }
        /* fall through */
    case ALLTOALLW:
        CALL(alltoallw, comm, s->buffer, s->elements, s->displacements, s->types, r->buffer, r->elements, r->displacements, r->types);
        break;
    case REDUCE: CALL(reduce, comm, s->buffer, r->buffer, count, type, op, root); break;
    case ALLREDUCE: CALL(allreduce, comm, s->buffer, r->buffer, count, type, op); break;
    case REDUCE_SCATTER: CALL(reduce_scatter, comm, s->buffer, r->buffer, part->in_place ? r->elements : s->elements, type, op); break;
    case REDUCE_SCATTER_BLOCK: CALL(reduce_scatter_block, comm, s->buffer, r->buffer, count, type, op); break;
    case SCAN: CALL(scan, comm, s->buffer, r->buffer, count, type, op); break;
    case EXSCAN: CALL(exscan, comm, s->buffer, r->buffer, count, type, op); break;
    default: fail("call %d is not a collective of a library", call->number);
    }
}

void host_start(struct part *part) { ok(unisono_start(((struct host *)part->host)->request)); }

bool host_test(struct part *part) {
    int done;
    ok(unisono_test(&((struct host *)part->host)->request, &done));
    return done;
}

void host_wait(struct part **parts, int count) {
    unisono_request **requests = allocate((size_t)count * sizeof *requests);
    for (int i = 0; i < count; i++) requests[i] = ((struct host *)parts[i]->host)->request;
    ok(count == 1 ? unisono_wait(requests) : unisono_wait_all((size_t)count, requests));
    for (int i = 0; i < count; i++) ((struct host *)parts[i]->host)->request = requests[i];
    free(requests);
}

void host_request_free(struct part *part) { ok(unisono_request_free(&((struct host *)part->host)->request)); }
