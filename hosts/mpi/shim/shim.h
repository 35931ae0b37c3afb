/*
 * Declarations for all files of the shim. The source is the same for every MPI; mpi.h says which one it is built for.
 *
 * The shim is not linked with the MPI, because a preload is also loaded into mpirun and sh, which have no MPI, and into
 * programs of another MPI. The MPI's functions and handles (which are addresses in Open MPI) are looked up when they
 * are first used. build.sh includes this header before every file, so that the files write PMPI_Bcast and MPI_INT as
 * usual.
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

/* The address of a symbol of the MPI; null if there is none. */
void *shim_symbol(const char *name);
/* The same for a function, also one that the shim has, too; never null: in place of a missing one, a function that prints that and
 * returns MPI_ERR_OTHER. */
void *shim_function(const char *name);
/* A tool's function of this name, MPI_..., that is loaded after the shim; null: there is none. */
void *shim_tool(const char *name);
/* What an exported function calls: such a tool's, or else the shim's `own`. *known is set to it once that is certain. */
void *shim_callee(const char *name, void *own, void **known);
/* Is an MPI in the process? */
bool shim_has_mpi(void);

/* Is the process's MPI another one than the one that this was built for? */
bool shim_is_foreign(void);
#define shim_foreign shim_is_foreign()

/* Looks a name up, once for each place in the code; threads that do so at the same time find the same address. */
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

/* The libraries are compiled with -fvisibility=hidden. */
#define SHIM_VISIBLE __attribute__((visibility("default")))

/*
 * Defines MPI_<Name> and PMPI_<Name>; the body of the second one follows. A tool (a profiler) takes MPI_<Name> for itself and calls
 * PMPI_<Name>, which is ours then, wherever the tool is loaded. If it is loaded after us, MPI_<Name> passes the call to it. So a tool
 * sees each call, and Unisono runs it. `Name` is a string, `names` are those of the parameters.
 */
#define SHIM_EXPORT(lower, Name, ...) SHIM_EXPORT_AS(lower, "MPI_" Name, __VA_ARGS__)
/* The same for another name than one that begins so, such as "MPIX_...". */
#define SHIM_EXPORT_AS(...) SHIM_EXPORT_OF(__VA_ARGS__)
#define SHIM_EXPORT_OF(lower, name, parameters, names)                                                                 \
    SHIM_VISIBLE int shim_export_##lower parameters __asm__("P" name);                                                 \
    SHIM_VISIBLE int shim_named_##lower parameters __asm__(name);                                                      \
    typedef int shim_type_##lower parameters;                                                                          \
    static int shim_found_##lower parameters;                                                                          \
    static void *shim_callee_##lower = (void *)shim_found_##lower;                                                     \
    static int shim_found_##lower parameters {                                                                         \
        return ((shim_type_##lower *)shim_callee(name, (void *)shim_export_##lower, &shim_callee_##lower))names;       \
    }                                                                                                                  \
    int shim_named_##lower parameters {                                                                                \
        return ((shim_type_##lower *)__atomic_load_n(&shim_callee_##lower, __ATOMIC_RELAXED))names;                    \
    }                                                                                                                  \
    int shim_export_##lower parameters

/* A function of the MPI. A call of one that is not in the list below does not link (-z defs). */
#define SHIM_FUNCTION(name) (*(__typeof__(name) *)SHIM_ONCE(shim_function, #name))

#define PMPI_Abort SHIM_FUNCTION(PMPI_Abort)
#define PMPI_Allgather SHIM_FUNCTION(PMPI_Allgather)
#define PMPI_Allreduce SHIM_FUNCTION(PMPI_Allreduce)
#define PMPI_Cancel SHIM_FUNCTION(PMPI_Cancel)
#define PMPI_Cart_shift SHIM_FUNCTION(PMPI_Cart_shift)
#define PMPI_Cartdim_get SHIM_FUNCTION(PMPI_Cartdim_get)
#define PMPI_Comm_call_errhandler SHIM_FUNCTION(PMPI_Comm_call_errhandler)
#define PMPI_Comm_create_keyval SHIM_FUNCTION(PMPI_Comm_create_keyval)
#define PMPI_Comm_delete_attr SHIM_FUNCTION(PMPI_Comm_delete_attr)
#define PMPI_Comm_free SHIM_FUNCTION(PMPI_Comm_free)
#define PMPI_Comm_get_attr SHIM_FUNCTION(PMPI_Comm_get_attr)
#define PMPI_Comm_get_errhandler SHIM_FUNCTION(PMPI_Comm_get_errhandler)
#define PMPI_Comm_group SHIM_FUNCTION(PMPI_Comm_group)
#define PMPI_Comm_rank SHIM_FUNCTION(PMPI_Comm_rank)
#define PMPI_Comm_remote_size SHIM_FUNCTION(PMPI_Comm_remote_size)
#define PMPI_Comm_set_attr SHIM_FUNCTION(PMPI_Comm_set_attr)
#define PMPI_Comm_set_errhandler SHIM_FUNCTION(PMPI_Comm_set_errhandler)
#define PMPI_Comm_size SHIM_FUNCTION(PMPI_Comm_size)
#define PMPI_Comm_split SHIM_FUNCTION(PMPI_Comm_split)
#define PMPI_Comm_test_inter SHIM_FUNCTION(PMPI_Comm_test_inter)
#define PMPI_Dist_graph_neighbors SHIM_FUNCTION(PMPI_Dist_graph_neighbors)
#define PMPI_Dist_graph_neighbors_count SHIM_FUNCTION(PMPI_Dist_graph_neighbors_count)
#define PMPI_Errhandler_free SHIM_FUNCTION(PMPI_Errhandler_free)
#define PMPI_Error_class SHIM_FUNCTION(PMPI_Error_class)
#define PMPI_Error_string SHIM_FUNCTION(PMPI_Error_string)
#define PMPI_Finalized SHIM_FUNCTION(PMPI_Finalized)
#define PMPI_Get_count SHIM_FUNCTION(PMPI_Get_count)
#define PMPI_Get_library_version SHIM_FUNCTION(PMPI_Get_library_version)
#define PMPI_Graph_neighbors SHIM_FUNCTION(PMPI_Graph_neighbors)
#define PMPI_Graph_neighbors_count SHIM_FUNCTION(PMPI_Graph_neighbors_count)
#define PMPI_Grequest_complete SHIM_FUNCTION(PMPI_Grequest_complete)
#define PMPI_Grequest_start SHIM_FUNCTION(PMPI_Grequest_start)
#define PMPI_Group_free SHIM_FUNCTION(PMPI_Group_free)
#define PMPI_Group_size SHIM_FUNCTION(PMPI_Group_size)
#define PMPI_Group_translate_ranks SHIM_FUNCTION(PMPI_Group_translate_ranks)
#define PMPI_Iallreduce SHIM_FUNCTION(PMPI_Iallreduce)
#define PMPI_Initialized SHIM_FUNCTION(PMPI_Initialized)
#define PMPI_Iprobe SHIM_FUNCTION(PMPI_Iprobe)
#define PMPI_Irecv SHIM_FUNCTION(PMPI_Irecv)
#define PMPI_Isend SHIM_FUNCTION(PMPI_Isend)
#define PMPI_Op_commutative SHIM_FUNCTION(PMPI_Op_commutative)
#define PMPI_Op_free SHIM_FUNCTION(PMPI_Op_free)
#define PMPI_Pack SHIM_FUNCTION(PMPI_Pack)
#define PMPI_Query_thread SHIM_FUNCTION(PMPI_Query_thread)
#define PMPI_Recv SHIM_FUNCTION(PMPI_Recv)
#define PMPI_Recv_init SHIM_FUNCTION(PMPI_Recv_init)
#define PMPI_Reduce SHIM_FUNCTION(PMPI_Reduce)
#define PMPI_Reduce_local SHIM_FUNCTION(PMPI_Reduce_local)
#define PMPI_Request_free SHIM_FUNCTION(PMPI_Request_free)
#define PMPI_Request_get_status SHIM_FUNCTION(PMPI_Request_get_status)
#define PMPI_Sendrecv SHIM_FUNCTION(PMPI_Sendrecv)
#define PMPI_Status_set_cancelled SHIM_FUNCTION(PMPI_Status_set_cancelled)
#define PMPI_Status_set_elements SHIM_FUNCTION(PMPI_Status_set_elements)
#define PMPI_Test SHIM_FUNCTION(PMPI_Test)
#define PMPI_Test_cancelled SHIM_FUNCTION(PMPI_Test_cancelled)
#define PMPI_Topo_test SHIM_FUNCTION(PMPI_Topo_test)
#define PMPI_Type_commit SHIM_FUNCTION(PMPI_Type_commit)
#define PMPI_Type_contiguous SHIM_FUNCTION(PMPI_Type_contiguous)
#define PMPI_Type_create_hindexed SHIM_FUNCTION(PMPI_Type_create_hindexed)
#define PMPI_Type_create_keyval SHIM_FUNCTION(PMPI_Type_create_keyval)
#if MPI_VERSION >= 4
#define PMPI_Type_create_struct_c SHIM_FUNCTION(PMPI_Type_create_struct_c)
#else
#define PMPI_Type_create_struct SHIM_FUNCTION(PMPI_Type_create_struct)
#endif
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
#define PMPI_Wait SHIM_FUNCTION(PMPI_Wait)
#define PMPI_Win_create_keyval SHIM_FUNCTION(PMPI_Win_create_keyval)
#define PMPI_Win_delete_attr SHIM_FUNCTION(PMPI_Win_delete_attr)
#define PMPI_Win_get_attr SHIM_FUNCTION(PMPI_Win_get_attr)
#define PMPI_Win_set_attr SHIM_FUNCTION(PMPI_Win_set_attr)
#define PMPI_Win_shared_query SHIM_FUNCTION(PMPI_Win_shared_query)
#ifdef MPI_ABI_VERSION
#define PMPI_Comm_fromint SHIM_FUNCTION(PMPI_Comm_fromint)
#endif
#if defined OPEN_MPI || defined SMPI_H
#define PMPI_Comm_f2c SHIM_FUNCTION(PMPI_Comm_f2c)
#endif

/*
 * A handle as the caller passes it, with all its bits. In a program of another MPI it is passed on unchanged, although
 * it may be an address there and an int in the MPI that this was built for.
 */
typedef uintptr_t shim_handle;
#define SHIM_COMM(handle) ((MPI_Comm)(handle))
#define SHIM_TYPE(handle) ((MPI_Datatype)(handle))
#define SHIM_OP(handle) ((MPI_Op)(handle))

/* ---- From MPI_Init to MPI_Finalize (life.c) -------------------------------------------------------- */

enum shim_state {
    SHIM_ASLEEP, /* not decided: before MPI_Init, or before the first call after it */
    SHIM_OFF,    /* UNISONO=off, another MPI, a forked child, after MPI_Finalize */
    SHIM_ON,     /* each call looks for devices' memory, for failures, or is verified */
    SHIM_PLAIN,  /* on, and none does */
};
extern int shim_state; /* accessed by relaxed atomics */

static inline bool shim_is_on(void) { return __atomic_load_n(&shim_state, __ATOMIC_RELAXED) >= SHIM_ON; }
static inline bool shim_is_plain(void) { return __atomic_load_n(&shim_state, __ATOMIC_RELAXED) == SHIM_PLAIN; }

/* UNISONO_DEVICE=mpi is set on some rank, and the MPI knows devices: communicators stay with the MPI. All ranks agree
 * on it in MPI_Init. */
extern bool shim_leaves_devices;

/* UNISONO_SPREAD: communicators whose ranks are each on a node of its own are taken over, too. */
extern bool shim_takes_spread;

/* UNISONO_ATTACH=created is set on some rank: communicators are attached when they are made (create.c). All ranks agree on it in
 * MPI_Init. */
extern bool shim_attaches_created;

/* Whether calls are taken over; decides it if it is not decided yet. */
bool shim_wake(void);

/* Is this the rank that prints what all ranks would print? From the launcher's environment; works before MPI_Init, too. */
bool shim_speaks(void);
/* The number of ranks on this node: as the launcher says, or else as MPI_COMM_WORLD's offers have shown. */
uint32_t shim_local_ranks(void);
extern uint32_t shim_shown_ranks; /* by the offers; 0: not yet */

/* A communicator of this process only, for PMPI_Pack; its error handler is MPI_ERRORS_RETURN. */
extern MPI_Comm shim_private;

/* ---- Threads and sums (stats.c) --------------------------------------------------------------------- */

enum shim_collective { /* BARRIER, BCAST ... */
#define COLLECTIVE(NUMBER, ...) NUMBER,
#include "collectives.def"
    COLLECTIVES
};
/* MPI_Bcast, MPI_Ibcast, MPI_Bcast_init. */
enum shim_form { FORM_BLOCKING, FORM_NONBLOCKING, FORM_PERSISTENT, FORMS };
enum { SHIM_CALLS = FORMS * COLLECTIVES };
/* The number of a collective's form. */
#define SHIM_NUMBER(form, collective) ((int)(form) * (int)COLLECTIVES + (int)(collective))

/* Why a call goes to the MPI; the first reasons are those of unisono_mpi.h. */
enum shim_reason {
    REASON_NONE = UNISONO_MPI_ATTACHED,
    REASON_ALONE = UNISONO_MPI_ALONE,
    REASON_NODES = UNISONO_MPI_NODES,
    REASON_FULL = UNISONO_MPI_FULL,
    REASON_REFUSED = UNISONO_MPI_REFUSED,
    REASON_VERSIONS = UNISONO_MPI_VERSIONS,
    REASON_OFF = UNISONO_MPI_OFF,
    REASON_INTERCOMMUNICATOR, /* an inter-communicator, or MPI_COMM_NULL */
    REASON_WORLDS,            /* ranks of several MPI_COMM_WORLDs: spawned, connected */
    REASON_OPERATION,         /* one that MPI does not define for the datatype; over nodes one that does not commute */
    REASON_ELEMENT,           /* that the MPI would fold, of more than 4096 bytes, or of none */
    REASON_REENTRANT,         /* called by the MPI while the shim is in one of its functions */
    REASON_ARGUMENTS,         /* this rank's arguments are wrong: the MPI raises the error */
    REASON_DEVICE,            /* UNISONO_DEVICE=mpi, and the MPI knows devices */
    REASON_FREED,             /* the communicator is being freed: called by the program's delete callback */
    REASON_UNATTACHED,        /* nonblocking, and the communicator was attached neither when it was made nor by a blocking collective */
    REASON_REQUESTS,          /* nonblocking, and the MPI has no way to know requests of ours */
    REASON_SPREAD,            /* each rank is on a node of its own: there is no memory to share */
    REASON_TABLE,             /* the decision table says `use mpi` */
    REASONS
};

/* Buffers that a thread keeps. */
enum shim_slot {
    SLOT_SEND,
    SLOT_RECEIVE,
    SLOT_SEND_LISTS,
    SLOT_RECEIVE_LISTS,
    SLOT_SEND_SHAPES,
    SLOT_RECEIVE_SHAPES,
    SLOT_SEND_NEIGHBORS,
    SLOT_RECEIVE_NEIGHBORS,
    SLOTS_OF_A_CALL,
    SLOT_LEFT = SLOTS_OF_A_CALL, /* operands of the program's operation, unpacked */
    SLOT_RIGHT,
    SLOTS
};
struct shim_memory {
    void *at;
    size_t bytes;
};

/* A communicator that a thread is freeing, on the stack of MPI_Comm_free. A delete callback may free another one:
 * `outer` is the one whose callback that is. */
struct shim_freed {
    uintptr_t key;
    struct shim_freed *outer;
};

/* The algorithms of unisono.h, in one segment; and two more: segments in the nodes, and messages between them; any algorithm of a
 * nonblocking call. */
enum { SHIM_TWO_LEVELS = UNISONO_ALGORITHM_GROUPS + 1, SHIM_NONBLOCKING, SHIM_ALGORITHMS };

struct shim_shape {
    uint64_t bytes;      /* of an element, without holes */
    int64_t extent;      /* bytes from the start of one element to the next */
    bool dense;          /* any number of elements have in memory the same bytes as when packed */
    uint8_t kind;        /* UNISONO_F64 ...; 0: not one of these */
    uint16_t operations; /* bit i: MPI defines the operation with unisono.h's number i for the type */
};

/* The program's own operation, with which the thread's call folds. */
struct shim_user {
    unisono_op folds; /* as unisono.h has it */
    MPI_Op op;
    MPI_Datatype type;
    const struct shim_shape *shape;
    void *at[2]; /* both operands' memory, for a type that is not dense */
    bool failed; /* the MPI has: the result is wrong */
};

/* A thread's state. It is never freed: when a thread ends, another one takes it over. */
struct shim_thread {
    int inside; /* above 0: the shim has called the MPI */
    unsigned ended; /* calls that Unisono has run */
    unsigned looked; /* `ended` when it last was to look again */
    uint64_t progressed_at, progress_took; /* when it last made the MPI progress, and how long that took */
    MPI_Comm waits_in; /* where failures are heard: the communicator of its blocking call, and `waits_on` its entry; null: in none */
    const struct shim_comm *waits_on;
    int64_t listened; /* the millisecond in which it last did */
    struct shim_comm *last; /* the entry that was found last; it may be another communicator's by now */
    struct shim_shape derived[2]; /* those of the sides of a call whose types are not predefined */
    struct shim_user user;
    struct shim_freed *freeing;
    struct {
        MPI_Datatype *types;
        int count, room;
    } joined; /* types that its last neighborhood collective has made */
    struct shim_memory slots[SLOTS];
    /* Only the thread itself writes these, by relaxed atomics. */
    uint64_t calls[SHIM_CALLS][SHIM_ALGORITHMS], bytes[SHIM_CALLS], reasons[REASONS], packed, progressed;
    struct shim_thread *next;
    bool idle;
};

extern _Thread_local struct shim_thread *shim_self __attribute__((tls_model("initial-exec")));
struct shim_thread *shim_new_thread(void);
static inline struct shim_thread *shim_thread(void) { return shim_self ? shim_self : shim_new_thread(); }

/* Adds to a sum of the calling thread. Only that thread writes it, so no locked instruction is needed. */
static inline void shim_add(uint64_t *sum, uint64_t more) {
    __atomic_store_n(sum, __atomic_load_n(sum, __ATOMIC_RELAXED) + more, __ATOMIC_RELAXED);
}

/* A buffer of at least `bytes` bytes, for the calling thread until it calls this again for the slot; null: no
 * memory. */
void *shim_buffer(enum shim_slot slot, size_t bytes);
/* The same for a side's lists in bytes: `blocks` lengths, then `blocks` places. */
static inline uint64_t *shim_lists(enum shim_slot side, int blocks) {
    struct shim_thread *self = shim_thread();
    enum shim_slot slot = side + SLOT_SEND_LISTS;
    size_t bytes = 2 * sizeof(uint64_t) * blocks;
    return self->slots[slot].bytes >= bytes && self->slots[slot].at ? self->slots[slot].at : shim_buffer(slot, bytes);
}
/* The same for the shapes of a side's blocks. */
static inline struct shim_shape *shim_shapes(enum shim_slot side, int blocks) {
    return shim_buffer(side + SLOT_SEND_SHAPES, sizeof(struct shim_shape) * blocks);
}
/* Frees the calling thread's large buffers. */
void shim_trim(void);
/* Takes the thread's buffers of a call, which another call would write; and gives them back, to any thread. */
void shim_take_memory(struct shim_memory kept[SLOTS_OF_A_CALL]);
void shim_give_back(struct shim_memory kept[SLOTS_OF_A_CALL]);

/* Prints the sums over all ranks on stderr; collective. */
void shim_print_stats(void);

extern const char *const shim_names[SHIM_CALLS]; /* "MPI_Bcast" */

/* ---- Communicators (comm.c) ------------------------------------------------------------------------- */

/* The shim's entry for a communicator. */
/* How requests of ours move while the program waits for something else in the MPI. */
enum shim_moves {
    MOVES_ALWAYS,    /* the MPI calls us whatever it waits for */
    MOVES_BY_THREAD, /* so does a thread of ours, which may call the MPI */
    MOVES_ASIDE,     /* that thread may not call it */
    MOVES_ALL
};

struct shim_comm {
    uintptr_t key;      /* the handle's value; 0: unused */
    unisono_comm *comm; /* the communicator in shared memory; null: there is none */
    unisono_mpi_levels *levels; /* the communicator over several nodes; null: none */
    int reason;
    enum shim_moves moves; /* the least of its ranks */
    int rank, size;
    uint32_t left; /* bit i: a decision table leaves some calls of enum shim_collective's i to the MPI */
    bool yields;   /* all calls of the collectives in `left` are left, whatever their lengths (compare.c) */
    unisono_mpi_lease *lease;
    struct shim_topology *topology; /* its neighbors, once they were looked up; else null */
    struct shim_comm *next; /* in the list of unused entries */
};

/* The entry of a communicator that was attached before; null: there is none. */
struct shim_comm *shim_find(MPI_Comm comm);
/* Is it the communicator's entry? Entries are never freed, so the key tells. */
static inline bool shim_has_key(const struct shim_comm *entry, MPI_Comm comm) {
    uintptr_t key = (uintptr_t)comm; /* 0 is no handle, but the key of an entry that is not used */
    return key && __atomic_load_n(&entry->key, __ATOMIC_ACQUIRE) == key;
}
/* The same as shim_find. Most calls are on the communicator of the call before. */
static inline struct shim_comm *shim_find_again(MPI_Comm comm) {
    struct shim_thread *self = shim_thread();
    if (self->last && shim_has_key(self->last, comm)) return self->last;
    return self->last = shim_find(comm);
}
/* Makes the entry, at the communicator's first use, or when it is made: collective. Null: an error, which was raised, and is in *code. */
struct shim_comm *shim_attach(MPI_Comm comm, int *code);
/* The ranks' in MPI_COMM_WORLD, to be freed; MPI_UNDEFINED: one is not there. Null: no memory, or the MPI fails. */
int *shim_ranks_in_world(MPI_Comm comm, int size);
/* Sets MPI_ERRORS_RETURN, so that errors of the shim's own calls do not reach the program's error handler; returns that
 * handler, which shim_unhush sets again. */
MPI_Errhandler shim_hush(MPI_Comm comm);
void shim_unhush(MPI_Comm comm, MPI_Errhandler handler);
/* Makes memory for a persistent call on an attached communicator: an entry of its own, which is not found by a handle. Collective;
 * `unable`: a reason of this rank not to. Returns a reason, the same on all ranks. */
enum shim_reason shim_attach_channel(MPI_Comm comm, const struct shim_comm *on, struct shim_comm *channel, enum shim_reason unable);
/* Does the table leave a call to the MPI, of so many bytes as tables count them, whose op commutes or not? */
bool shim_leaves(const struct shim_comm *on, enum shim_collective collective, uint64_t bytes, bool commutes);
/* To be called once, after MPI_Init. */
bool shim_prepare_comms(void);
/* To be called once, before MPI_Finalize. */
void shim_finish_comms(void);

/* ---- Progress (progress.c) ----------------------------------------------------------------------------- */

/* The first is to be called once, before the last three. */
bool shim_prepare_progress(void);
void shim_finish_progress(void);
/* Makes the MPI progress all pending operations. */
void shim_progress_now(void);
/* The same, if this thread has not for about 10 µs; and, unless it waits long, if that takes little of the time. */
void shim_progress_in_time(int waits_long);

/* Is a function to be called again that returned `code` and looked whether something has happened? */
bool shim_looks_again(int code, const int *flag);

/* ---- Several nodes (levels.c) -------------------------------------------------------------------------- */

/* Attaches a communicator whose ranks are on several nodes; collective. `able`: this rank can take part. Sets
 * entry->levels, or leaves it null if a rank can't, or if there is nothing to share; says why. */
enum shim_reason shim_attach_levels(MPI_Comm comm, struct shim_comm *entry, const unisono_mpi_offer_t *offers, bool able,
                                    unisono_mpi_progress *progress);

/* ---- Messages (messages.c) ---------------------------------------------------------------------------- */

struct unisono_messages;
/* As unisono_messages_connect, with a C handle; MPI must be initialised and not finalised. */
int shim_connect(MPI_Comm comm, struct unisono_messages *layer);
/* The same over the messages' communicator of MPI_COMM_WORLD, which has all ranks, if that can be had. */
int shim_connect_shared(MPI_Comm comm, struct unisono_messages *layer);
/* From now on those of MPI_COMM_WORLD, its first layer of shim_connect_shared, can be. To be called on all ranks or none. */
void shim_share_world(const struct unisono_messages *layer);
/* MPI_Finalize was called: it frees the communicators itself. */
extern bool shim_ending;

/* ---- Datatypes and operations (types.c) -------------------------------------------------------------- */

/* That of a side which is not used. */
extern const struct shim_shape shim_nothing;
/* A byte's. */
extern const struct shim_shape shim_byte;
void shim_prepare_types(void);

/* The predefined types, in a hash table that does not change after shim_prepare_types. */
enum { SHIM_TYPE_BITS = 10, SHIM_TYPES = 1 << SHIM_TYPE_BITS };
extern struct shim_type {
    MPI_Datatype type;
    bool used;
    struct shim_shape shape;
} shim_types[SHIM_TYPES];
extern uint64_t shim_types_by;
static inline unsigned shim_place_of(MPI_Datatype type) {
    return (unsigned)((uint64_t)(uintptr_t)type * shim_types_by >> (64 - SHIM_TYPE_BITS));
}
/* The shape of a predefined type; null: it is not one. */
static inline const struct shim_shape *shim_predefined(MPI_Datatype type) {
    for (unsigned i = shim_place_of(type); shim_types[i].used; i = (i + 1) % SHIM_TYPES)
        if (shim_types[i].type == type) return &shim_types[i].shape;
    return NULL;
}
/* That of a predefined type which is dense. Null: it is another one, or not in its own place. */
static inline const struct shim_shape *shim_plain_shape(MPI_Datatype type) {
    const struct shim_type *found = &shim_types[shim_place_of(type)];
    return found->type == type && found->shape.dense ? &found->shape : NULL;
}
/* The shape of another one. False: the type can't be used to send data. */
bool shim_derived(MPI_Datatype type, struct shim_shape *shape);
/* The operation in unisono.h; null: it does not have it. */
const unisono_op *shim_operation(MPI_Op op);

/* A duplicate without the program's attributes; MPI_DATATYPE_NULL: there is none. */
MPI_Datatype shim_duplicate(MPI_Datatype type);

/* Writes bytes and extent of `shape` and sets the rest to zero; `lower` and `length`: the true extent. */
void shim_measure(MPI_Datatype type, struct shim_shape *shape, MPI_Count *lower, MPI_Count *length);

/* ---- The program's own operations (operations.c) ------------------------------------------------------- */

/* Makes the thread's `user` of an `op` that shim_operation does not have. Or a reason why not, the same on all ranks if
 * it is a valid one. `in_order`: operations that do not commute can be had, too. */
enum shim_reason shim_user(MPI_Op op, MPI_Datatype type, const struct shim_shape *shape, bool in_order);
/* To be called before it folds. The operands' memory is the thread's, or, if `own` is not null, the caller's to be freed. False: no memory. */
bool shim_user_room(struct shim_user *user, void *own[2]);

/* ---- Handles of such operations that are not complete (held.c) ----------------------------------------- */

/* What the program frees of these is freed when they are let go. False: no memory. */
bool shim_hold(MPI_Op op, MPI_Datatype type);
void shim_let(MPI_Op op, MPI_Datatype type);

/* ---- Derived datatypes (parts.c) --------------------------------------------------------------------- */

/* Do any number of elements have in memory the same bytes as when packed? Decodes the type. */
bool shim_is_dense(MPI_Datatype type);

/* Packs `count` elements at `at` into `packed`, or unpacks them from there. False: the MPI has failed. */
bool shim_pack(void *at, uint64_t count, MPI_Datatype type, const struct shim_shape *shape, char *packed, bool pack);

/* ---- Neighborhood collectives (neighbors.c) --------------------------------------------------------------- */

struct shim_blocks;
/* Makes blocks of neighbors, as the program passes them, blocks of ranks, with lists of 64 bits, which are valid until the thread's next call.
 * `alike`: one block is sent to all. *disputed: MPIs differ in what this rank receives. False: the communicator has no topology, an argument is wrong, or
 * there is no memory. */
bool shim_neighbors(MPI_Comm comm, const struct shim_comm *on, bool alike, struct shim_blocks *send, struct shim_blocks *receive,
                    bool *disputed);
/* The communicator is freed. */
void shim_forget_topology(struct shim_comm *entry);

/* ---- Memory of devices (device.c) --------------------------------------------------------------------- */

/* Does the MPI accept addresses of a device's memory? It does not change after shim_prepare_devices. */
extern bool shim_knows_devices;
void shim_prepare_devices(void);
/* Can the processor read there? */
bool shim_is_readable(const void *at);
/* Copies elements of a predefined type, by the MPI. */
bool shim_copy(void *to, void *from, uint64_t count, MPI_Datatype type, const struct shim_shape *shape);

/* ---- Failures (failures.c) ----------------------------------------------------------------------------- */

/* Does the MPI tell of ranks that have failed? */
extern bool shim_hears_failures;
void shim_prepare_failures(void);
/* Was the last time another millisecond? */
bool shim_is_time_to_listen(int64_t *last);
/* Ends the calls on a communicator of which a rank has failed, or that was revoked. */
void shim_listen(const struct shim_comm *on, MPI_Comm comm);
/* The class of an error that such a failure has caused; `class` if there is none. */
int shim_failure_class(MPI_Comm comm, int class);

/* ---- Errors (errors.c) ------------------------------------------------------------------------------ */

/* Raises an error of unisono.h in the communicator's error handler; returns MPI's error class. `call`: a SHIM_NUMBER. */
int shim_raise(MPI_Comm comm, int call, int error);

/* ---- Calls (collectives.c) --------------------------------------------------------------------------- */

/* Counts or displacements: ints, or numbers of 64 bits (MPI_Count, MPI_Aint). */
struct shim_list {
    const void *at;
    bool wide;
};

static inline int64_t shim_item(struct shim_list list, int i) {
    return list.wide ? ((const int64_t *)list.at)[i] : ((const int *)list.at)[i];
}

/* One of a call's two sides, on this rank. */
struct shim_side {
    void *buffer;
    int blocks;                            /* number of blocks; 0: the side is not used on this rank */
    int64_t count;                         /* without lists: elements of each block, which lie one after the other */
    struct shim_list counts, displacements;
    bool listed;
    MPI_Datatype type;
    const struct shim_shape *shape;        /* with a type for each block: of a byte, dense if all are */
    const MPI_Datatype *types;             /* with a type for each block: these; else null, as the next one is */
    const struct shim_shape *shapes;       /* theirs; of blocks without elements that of no side */
    uint64_t *bytes, *starts; /* the lists in bytes, from `first` on; null: no memory */
    int64_t first;            /* where they start in the buffer */
    uint64_t sum;             /* bytes of all blocks */
    bool ordered;             /* no block starts before the end of one before it in the list */
    /* Set when the call runs: the data for Unisono, in the buffer or packed. */
    char *at;
    bool staged;   /* the data is packed into other memory */
    bool overlaps; /* received blocks share elements */
    bool copied;   /* staged, but copied with its holes, not packed: for a reduction, from a device's memory */
};

static inline int64_t shim_count_of(const struct shim_side *side, int block) {
    return side->listed ? shim_item(side->counts, block) : side->count;
}

/* Bytes from the buffer's start to a block. */
static inline int64_t shim_start_of(const struct shim_side *side, int block) {
    return (side->listed ? shim_item(side->displacements, block) : block * side->count) * side->shape->extent;
}

static inline MPI_Datatype shim_type_of(const struct shim_side *side, int block) {
    return side->types ? side->types[block] : side->type;
}

static inline const struct shim_shape *shim_shape_of(const struct shim_side *side, int block) {
    return side->shapes ? &side->shapes[block] : side->shape;
}

static inline uint64_t shim_bytes_of(const struct shim_side *side, int block) {
    return (uint64_t)shim_count_of(side, block) * shim_shape_of(side, block)->bytes;
}

struct shim_call {
    /* Is this blocking call as most are, so that no more needs to be looked at than such a call needs? On a communicator that has a segment;
     * predefined types without holes; with lists, blocks in their order; an operation of MPI's. */
    bool usual;
    enum shim_collective collective;
    MPI_Comm comm;
    const struct shim_comm *on;
    struct shim_side send, receive; /* a broadcast's buffer is `receive` */
    bool send_in_place, receive_in_place;
    int root;
    bool folds; /* is it a reduction? */
    bool disputed; /* MPIs differ in this rank's result: UNISONO_VERIFY does not compare it */
    MPI_Op op;
    const unisono_op *operation;
    enum shim_form form;
    unisono_request **request; /* where that of a nonblocking call is written */
    unisono_mpi_levels_request **between; /* the same over nodes; null: the call is blocking */
    int element;      /* unisono.h's datatype; below 0: packed elements, for the program's own operation */
    int64_t own;      /* of a fold by blocks, the elements of this rank's. The input has all blocks, also in place. */
    uint64_t *counts; /* those of all ranks' blocks, where they differ; null: no memory */
    int code;
};

/* Is this rank the root of a broadcast, whose buffer is sent? */
static inline bool shim_broadcasts(const struct shim_call *c) {
    return c->collective == BCAST && c->on->rank == c->root;
}

/* What an exported function does with a call. */
enum shim_route {
    ROUTE_UNDERLYING, /* calls the MPI */
    ROUTE_TAKEN,      /* runs it */
    ROUTE_FAILED,     /* returns call->code */
};

/* ---- Nonblocking calls (requests.c) ------------------------------------------------------------------- */

/* Has the MPI a way to know requests of ours on this communicator? */
bool shim_may_start(const struct shim_comm *on);
/* How do requests of this process move? */
enum shim_moves shim_moves(void);
/* Starts a call, and writes the MPI's request to `request`. As MPI_Ibcast, it returns MPI_SUCCESS, or the error that it has raised. */
int shim_start(struct shim_call call, MPI_Request *request);

/* The same of a persistent collective, without a request of the MPI's. Then it must be ended when it is complete, or told. `beside`: where
 * the MPI's runs, with which UNISONO_VERIFY compares it. */
struct request;
int shim_begin(struct shim_call call, MPI_Comm beside, struct request **begun);

/* Moves it, and everything else. Is it complete? */
bool shim_is_complete(struct request *r);

/* Ends what is complete: its status, and MPI's code. */
int shim_end(struct request *r, MPI_Status *status);

/* Makes a request of the MPI's for what has begun, which the MPI ends. False: it can't. */
bool shim_tell(struct request *r, MPI_Request *request);
/* Copies a side's counts and displacements into memory that the caller frees. False: no memory. MPI says that the program keeps them
 * until the request is complete, or freed; MPIs copy them, and mpi4py relies on that. */
bool shim_keep_lists(struct shim_side *side, void **copies);
/* Moves all collectives that were started. */
void shim_move_requests(void);
/* The program frees a communicator: errors of its requests are raised in MPI_COMM_WORLD. */
void shim_orphan_requests(MPI_Comm comm);

/* ---- Persistent calls (persistent.c) ------------------------------------------------------------------- */

/* Makes a persistent call, as MPI_Bcast_init; collective. Returns ROUTE_TAKEN, or ROUTE_UNDERLYING on all ranks. */
enum shim_route shim_persist(struct shim_call call, MPI_Request *request);
/* As shim_orphan_requests. */
void shim_orphan_persistent(MPI_Comm comm);
/* Releases a communicator's memory, in a node or over several, either may be null: now, or when the last nonblocking collective that
 * needs it is complete. */
void shim_release(unisono_mpi_lease *lease, unisono_mpi_levels *levels);

/* One side's blocks as the program passes them: of equal lengths, or with lists. */
struct shim_blocks {
    const void *buffer;
    int64_t count;
    bool listed;
    struct shim_list counts, displacements;
    MPI_Datatype type;
    bool typed; /* with a list of types */
    const MPI_Datatype *types;
};

#endif
