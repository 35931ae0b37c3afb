/*
 * What the files of the shim share. One source for every MPI; mpi.h says which one it is built for.
 *
 * Nothing of the MPI is linked: a preload is also loaded into mpirun and sh, which have none, and into programs of
 * another MPI. Its functions and its handles (which are addresses in Open MPI) are looked up when they are first used.
 * build.sh includes this header before every file, so PMPI_Bcast and MPI_INT are written as ever.
 */
#ifndef SHIM_H
#define SHIM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unisono_mpi.h>

#include "arguments.h"

/* ---- The underlying MPI (underlying.c) ------------------------------------------------------------------ */

/* The address of the MPI's symbol; null if there is none. */
void *shim_symbol(const char *name);
/* The same for a function; never null: what is missing says so, and answers MPI_ERR_OTHER. */
void *shim_function(const char *name);

/* Another MPI than the one built for. */
bool shim_is_foreign(void);
#define shim_foreign shim_is_foreign()

/* Looked up once per place; every thread finds the same. */
#define SHIM_ONCE(look_up, name)                                                                                       \
    ({                                                                                                                 \
        static void *known_;                                                                                           \
        void *now_ = __atomic_load_n(&known_, __ATOMIC_RELAXED);                                                       \
        if (__builtin_expect(!now_, 0)) __atomic_store_n(&known_, now_ = look_up(name), __ATOMIC_RELAXED);             \
        now_;                                                                                                          \
    })

#ifdef OPEN_MPI
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global) ((type)SHIM_ONCE(shim_symbol, #global))
#endif

/* A function of the MPI's; one that is missing below does not link (-z defs). */
#define SHIM_FUNCTION(name) (*(__typeof__(name) *)SHIM_ONCE(shim_function, #name))

#define PMPI_Abort SHIM_FUNCTION(PMPI_Abort)
#define PMPI_Allgather SHIM_FUNCTION(PMPI_Allgather)
#define PMPI_Allreduce SHIM_FUNCTION(PMPI_Allreduce)
#define PMPI_Comm_call_errhandler SHIM_FUNCTION(PMPI_Comm_call_errhandler)
#define PMPI_Comm_create_keyval SHIM_FUNCTION(PMPI_Comm_create_keyval)
#define PMPI_Comm_delete_attr SHIM_FUNCTION(PMPI_Comm_delete_attr)
#define PMPI_Comm_free SHIM_FUNCTION(PMPI_Comm_free)
#define PMPI_Comm_get_attr SHIM_FUNCTION(PMPI_Comm_get_attr)
#define PMPI_Comm_get_errhandler SHIM_FUNCTION(PMPI_Comm_get_errhandler)
#define PMPI_Comm_group SHIM_FUNCTION(PMPI_Comm_group)
#define PMPI_Comm_rank SHIM_FUNCTION(PMPI_Comm_rank)
#define PMPI_Comm_set_attr SHIM_FUNCTION(PMPI_Comm_set_attr)
#define PMPI_Comm_set_errhandler SHIM_FUNCTION(PMPI_Comm_set_errhandler)
#define PMPI_Comm_size SHIM_FUNCTION(PMPI_Comm_size)
#define PMPI_Comm_split SHIM_FUNCTION(PMPI_Comm_split)
#define PMPI_Comm_test_inter SHIM_FUNCTION(PMPI_Comm_test_inter)
#define PMPI_Errhandler_free SHIM_FUNCTION(PMPI_Errhandler_free)
#define PMPI_Error_class SHIM_FUNCTION(PMPI_Error_class)
#define PMPI_Error_string SHIM_FUNCTION(PMPI_Error_string)
#define PMPI_Finalized SHIM_FUNCTION(PMPI_Finalized)
#define PMPI_Get_count SHIM_FUNCTION(PMPI_Get_count)
#define PMPI_Get_library_version SHIM_FUNCTION(PMPI_Get_library_version)
#define PMPI_Grequest_complete SHIM_FUNCTION(PMPI_Grequest_complete)
#define PMPI_Grequest_start SHIM_FUNCTION(PMPI_Grequest_start)
#define PMPI_Group_free SHIM_FUNCTION(PMPI_Group_free)
#define PMPI_Group_size SHIM_FUNCTION(PMPI_Group_size)
#define PMPI_Group_translate_ranks SHIM_FUNCTION(PMPI_Group_translate_ranks)
#define PMPI_Initialized SHIM_FUNCTION(PMPI_Initialized)
#define PMPI_Iprobe SHIM_FUNCTION(PMPI_Iprobe)
#define PMPI_Irecv SHIM_FUNCTION(PMPI_Irecv)
#define PMPI_Isend SHIM_FUNCTION(PMPI_Isend)
#define PMPI_Pack SHIM_FUNCTION(PMPI_Pack)
#define PMPI_Reduce SHIM_FUNCTION(PMPI_Reduce)
#define PMPI_Request_free SHIM_FUNCTION(PMPI_Request_free)
#define PMPI_Request_get_status SHIM_FUNCTION(PMPI_Request_get_status)
#define PMPI_Sendrecv SHIM_FUNCTION(PMPI_Sendrecv)
#define PMPI_Test SHIM_FUNCTION(PMPI_Test)
#define PMPI_Type_commit SHIM_FUNCTION(PMPI_Type_commit)
#define PMPI_Type_create_hindexed SHIM_FUNCTION(PMPI_Type_create_hindexed)
#define PMPI_Type_create_keyval SHIM_FUNCTION(PMPI_Type_create_keyval)
#define PMPI_Type_free SHIM_FUNCTION(PMPI_Type_free)
#define PMPI_Type_get_attr SHIM_FUNCTION(PMPI_Type_get_attr)
#if MPI_VERSION >= 4
#define PMPI_Type_get_contents_c SHIM_FUNCTION(PMPI_Type_get_contents_c)
#define PMPI_Type_get_envelope_c SHIM_FUNCTION(PMPI_Type_get_envelope_c)
#else
#define PMPI_Type_get_contents SHIM_FUNCTION(PMPI_Type_get_contents)
#define PMPI_Type_get_envelope SHIM_FUNCTION(PMPI_Type_get_envelope)
#endif
#define PMPI_Type_get_extent SHIM_FUNCTION(PMPI_Type_get_extent)
#define PMPI_Type_get_extent_x SHIM_FUNCTION(PMPI_Type_get_extent_x)
#define PMPI_Type_get_true_extent SHIM_FUNCTION(PMPI_Type_get_true_extent)
#define PMPI_Type_get_true_extent_x SHIM_FUNCTION(PMPI_Type_get_true_extent_x)
#define PMPI_Type_set_attr SHIM_FUNCTION(PMPI_Type_set_attr)
#define PMPI_Type_size SHIM_FUNCTION(PMPI_Type_size)
#define PMPI_Type_size_x SHIM_FUNCTION(PMPI_Type_size_x)
#define PMPI_Unpack SHIM_FUNCTION(PMPI_Unpack)
#if defined OPEN_MPI || defined SMPI_H
#define PMPI_Comm_c2f SHIM_FUNCTION(PMPI_Comm_c2f)
#define PMPI_Comm_f2c SHIM_FUNCTION(PMPI_Comm_f2c)
#define PMPI_Op_f2c SHIM_FUNCTION(PMPI_Op_f2c)
#define PMPI_Type_f2c SHIM_FUNCTION(PMPI_Type_f2c)
#endif

/*
 * A handle as a caller passes it, in all its bits: in a program of another MPI it goes on as it came, though it
 * may be an address there and is an int here.
 */
typedef uintptr_t shim_handle;
#define SHIM_COMM(handle) ((MPI_Comm)(handle))
#define SHIM_TYPE(handle) ((MPI_Datatype)(handle))
#define SHIM_OP(handle) ((MPI_Op)(handle))

/* ---- From MPI_Init to MPI_Finalize (life.c) -------------------------------------------------------- */

enum shim_state {
    SHIM_ASLEEP, /* before MPI_Init, or nobody looked yet */
    SHIM_ON,
    SHIM_OFF, /* UNISONO=off, another MPI, a forked child, after MPI_Finalize */
};
extern int shim_state; /* read and written relaxed */

static inline bool shim_is_on(void) { return __atomic_load_n(&shim_state, __ATOMIC_RELAXED) == SHIM_ON; }

/* UNISONO_DEVICE=mpi, on some rank: communicators stay with an MPI that knows devices. Agreed on by MPI_Init. */
extern bool shim_leaves_devices;

/* Whether calls are taken over, when they weren't yet: wakes what sleeps. */
bool shim_wake(void);
/* After the MPI's Init, Init_thread (in any language) answered `code`; collective. Answers `code`. */
int shim_started(int code);
/* Before the MPI's Finalize; collective. Nothing is taken over afterwards. */
void shim_finishing(void);

/* The own rank's, and those that share its node; as the launcher says, before MPI_Init too. */
bool shim_speaks(void); /* of all ranks, one says what all would */
uint32_t shim_local_ranks(void);

/* A communicator of this process alone, to pack for; its errors return. From the first attachment on. */
extern MPI_Comm shim_private;

/* ---- Threads and sums (stats.c) --------------------------------------------------------------------- */

enum shim_collective { /* BARRIER, BCAST ... */
#define COLLECTIVE(NUMBER, ...) NUMBER,
#include "collectives.def"
    COLLECTIVES
};

/* Why a call went to the MPI; the first ones are those of unisono_mpi.h. */
enum shim_reason {
    REASON_NONE = UNISONO_MPI_ATTACHED,
    REASON_ALONE = UNISONO_MPI_ALONE,
    REASON_NODES = UNISONO_MPI_NODES,
    REASON_FULL = UNISONO_MPI_FULL,
    REASON_REFUSED = UNISONO_MPI_REFUSED,
    REASON_VERSIONS = UNISONO_MPI_VERSIONS,
    REASON_OFF = UNISONO_MPI_OFF,
    REASON_INTERCOMMUNICATOR, /* or none: MPI_COMM_NULL */
    REASON_WORLDS,            /* ranks of several MPI_COMM_WORLDs: spawned, connected */
    REASON_OPERATION,         /* the caller's, or none that MPI defines for these elements */
    REASON_ELEMENT,           /* no kind of unisono.h's: long double, Fortran's logical */
    REASON_REENTRANT,         /* from inside the MPI, called by us */
    REASON_ARGUMENTS,         /* this rank's are wrong: the MPI says how */
    REASON_DEVICE,            /* UNISONO_DEVICE=mpi, and the MPI knows devices */
    REASON_FREED,             /* the communicator is being freed: from a delete callback of the program's */
    REASONS
};

/* Buffers that a thread keeps. */
enum shim_slot { SLOT_SEND, SLOT_RECEIVE, SLOT_SEND_LISTS, SLOT_RECEIVE_LISTS, SLOTS };

/* A communicator that a thread is freeing, from the stack of MPI_Comm_free; a delete callback may free another one. */
struct shim_freed {
    uintptr_t key;
    struct shim_freed *outer;
};

/* What runs a call: unisono.h's algorithms in a segment, and this: segments in nodes, messages between them. */
enum { SHIM_TWO_LEVELS = UNISONO_ALGORITHM_COMBINING + 1, SHIM_ALGORITHMS };

/* What a thread has for itself. It is never freed: a thread that ends leaves it to the next one. */
struct shim_thread {
    int inside; /* in the MPI, called by us */
    struct shim_freed *freeing;
    struct {
        void *at;
        size_t bytes;
    } slots[SLOTS];
    /* One writer, relaxed. */
    uint64_t calls[COLLECTIVES][SHIM_ALGORITHMS], bytes[COLLECTIVES], reasons[REASONS], packed;
    struct shim_thread *next;
    bool idle;
};

extern _Thread_local struct shim_thread *shim_self __attribute__((tls_model("initial-exec")));
struct shim_thread *shim_new_thread(void);
static inline struct shim_thread *shim_thread(void) { return shim_self ? shim_self : shim_new_thread(); }

/* One more; only the own thread writes, so no locked instruction. */
static inline void shim_add(uint64_t *sum, uint64_t more) {
    __atomic_store_n(sum, __atomic_load_n(sum, __ATOMIC_RELAXED) + more, __ATOMIC_RELAXED);
}

/* At least `bytes` bytes, the thread's own until it asks again; null: no memory. */
void *shim_buffer(enum shim_slot slot, size_t bytes);
/* Gives large ones back. */
void shim_trim(void);

/* Sums of all ranks, on stderr; collective. */
void shim_print_stats(void);

extern const char *const shim_names[COLLECTIVES]; /* "MPI_Bcast" */

/* ---- Communicators (comm.c) ------------------------------------------------------------------------- */

/* What is known of a communicator. */
struct shim_comm {
    uintptr_t key;      /* the handle's value; 0: unused */
    unisono_comm *comm; /* null: stays with the MPI */
    unisono_mpi_levels *levels; /* of several nodes, whatever `reason` says; null: none */
    int reason;
    int rank, size;
    unisono_mpi_lease *lease;
    struct shim_comm *next; /* unused */
};

/* That of a communicator that was attached, or couldn't be; null: not used yet. */
struct shim_comm *shim_find(MPI_Comm comm);
/* The same at its first use: collective. Null: an error, in *code, which was raised. */
struct shim_comm *shim_attach(MPI_Comm comm, int *code);
/* Errors of what we ask of the MPI on a program's communicator are ours, not its handler's; until it has that back. */
MPI_Errhandler shim_hush(MPI_Comm comm);
void shim_unhush(MPI_Comm comm, MPI_Errhandler handler);
/* Once, after MPI_Init. */
bool shim_prepare_comms(void);
/* Once, before MPI_Finalize. */
void shim_finish_comms(void);

/* ---- Several nodes (levels.c) -------------------------------------------------------------------------- */

/* Attaches a communicator whose ranks' offers are on several nodes; collective. Leaves entry->levels null if it can't. */
void shim_attach_levels(MPI_Comm comm, struct shim_comm *entry, const unisono_mpi_offer_t *offers, bool able,
                        unisono_mpi_progress *progress);

/* ---- Messages (messages.c) ---------------------------------------------------------------------------- */

struct unisono_messages;
/* unisono_messages_connect, by the MPI's handle, of an MPI that is running. */
int shim_connect(MPI_Comm comm, struct unisono_messages *layer);
/* MPI_Finalize has begun: communicators are its own to free. */
extern bool shim_ending;

/* ---- Datatypes and operations (types.c) -------------------------------------------------------------- */

struct shim_shape {
    uint64_t bytes;      /* of an element, without holes */
    int64_t extent;      /* from element to element */
    bool dense;          /* any number of elements lie in memory as they are packed */
    uint8_t kind;        /* UNISONO_F64 ...; 0: none */
    uint16_t operations; /* bit i: that with unisono.h's number i is defined by MPI */
};

void shim_prepare_types(void);
/* False: no type that data can be sent with. */
bool shim_shape(MPI_Datatype type, struct shim_shape *shape);
/* Null: none of unisono.h's. */
const unisono_op *shim_operation(MPI_Op op);

bool shim_is_predefined(MPI_Datatype type);
/* `lower` and `length`: the true extent. No kind, no operations; not dense. */
void shim_measure(MPI_Datatype type, struct shim_shape *shape, MPI_Count *lower, MPI_Count *length);

/* ---- Derived datatypes (parts.c) --------------------------------------------------------------------- */

/* Do any number of elements lie in memory as they are packed? Takes the type apart. */
bool shim_is_dense(MPI_Datatype type);

/* Packs `count` elements at `at` into `packed`, or unpacks them from there. False: the MPI can't. */
bool shim_pack(void *at, uint64_t count, MPI_Datatype type, const struct shim_shape *shape, char *packed, bool pack);

/* ---- Memory of devices (device.c) --------------------------------------------------------------------- */

/* Does the MPI take addresses of a device's memory? Never changed after shim_prepare_devices. */
extern bool shim_knows_devices;
void shim_prepare_devices(void);
/* Can the processor read there? */
bool shim_is_readable(const void *at);
/* Elements of a predefined type, by the MPI. */
bool shim_copy(void *to, void *from, uint64_t count, MPI_Datatype type, const struct shim_shape *shape);

/* ---- Errors (errors.c) ------------------------------------------------------------------------------ */

/* Raises unisono.h's error in the communicator's error handler; answers MPI's class. */
int shim_raise(MPI_Comm comm, enum shim_collective collective, int error);

/* ---- Calls (collectives.c) --------------------------------------------------------------------------- */

/* Counts or displacements: ints, or 64 bits wide (MPI_Count, MPI_Aint). */
struct shim_list {
    const void *at;
    bool wide;
};

static inline int64_t shim_item(struct shim_list list, int i) {
    return list.wide ? ((const int64_t *)list.at)[i] : ((const int *)list.at)[i];
}

/* One of a call's two buffers, at this rank. */
struct shim_side {
    void *buffer;
    int blocks;                            /* 0: this rank has none */
    int64_t count;                         /* elements of a block, one behind the other; unless there are lists */
    struct shim_list counts, displacements;
    MPI_Datatype type;
    struct shim_shape shape;
    /* Where Unisono finds it: there, or packed. Lists are in bytes. Set when the call runs. */
    char *at;
    uint64_t *bytes, *starts;
    uint64_t sum; /* bytes of all blocks */
    bool staged, overlaps;
    bool copied; /* staged as it is, not packed: a reduction's, in a device's memory */
};

struct shim_call {
    enum shim_collective collective;
    MPI_Comm comm;
    const struct shim_comm *on;
    struct shim_side send, receive; /* a broadcast's buffer is `receive` */
    bool send_in_place, receive_in_place;
    int root;
    MPI_Op op; /* of a reduction; of others MPI_OP_NULL */
    const unisono_op *operation;
    int code;
};

static inline bool shim_folds(const struct shim_call *c) { return c->op != MPI_OP_NULL; }
/* Is this rank a broadcast's root, whose buffer is sent? */
static inline bool shim_broadcasts(const struct shim_call *c) {
    return c->collective == BCAST && c->on->rank == c->root;
}

/* What an exported function does with a call. */
enum shim_route {
    ROUTE_UNDERLYING, /* it goes to the MPI */
    ROUTE_TAKEN,   /* shim_run it */
    ROUTE_FAILED,  /* answer call->code */
};

/* One side's blocks as the program passes them: of equal lengths, or with lists. */
struct shim_blocks {
    const void *buffer;
    int64_t count;
    struct shim_list counts, displacements;
    MPI_Datatype type;
};

/* shim_plan_bcast ...: plans a call. A collective and its form with lists share one, which is told `collective`. */
#define COLLECTIVE(NUMBER, Name, name, plan, parts, ...)                                                               \
    enum shim_route shim_plan_##plan(struct shim_call *c, enum shim_collective collective, SHIM_PARTS(parts, _PLANNED));
#include "collectives.def"

/* Runs what was taken; answers MPI's code, raised. */
int shim_run(struct shim_call *c);

#endif
