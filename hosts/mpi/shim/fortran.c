/*
 * Fortran's names. Only those where the MPI's own wrapper calls PMPI_* past us, as `nm -D` and objdump show:
 *
 * - Open MPI: all. mpi_bcast_ and its other spellings are one function of libmpi_mpifh, ompi_bcast_f, which
 *   mpi_f08's wrapper calls too; it calls PMPI_Bcast.
 * - MPICH: mpi_bcast_ and mpi_f08's mpi_bcast_f08ts_ call MPI_Bcast, which is ours. But mpi_f08's wrappers of what has no
 *   buffer, mpi_barrier_f08_, mpi_comm_free_f08_ and those that start and end the MPI, call PMPI_*.
 *
 * These here call the C functions that are ours, as the wrappers should: handles are translated, Fortran's MPI_BOTTOM
 * and MPI_IN_PLACE become C's. While nothing is taken over (another MPI's handles may differ) they call what
 * they stand before.
 */
#include <dlfcn.h>

_Static_assert(sizeof(MPI_Fint) == sizeof(int), "lists of counts are passed on as they are");

typedef MPI_Fint *ints;

#ifdef OPEN_MPI
/* The sentinels are the addresses of common blocks. One spelling: libmpi has and knows no other. */
static void *buffer(void *address) {
    if (address == SHIM_ONCE(shim_symbol, "mpi_fortran_in_place_")) return MPI_IN_PLACE;
    return address == SHIM_ONCE(shim_symbol, "mpi_fortran_bottom_") ? MPI_BOTTOM : address;
}

#define NAME(lower) ompi_##lower##_f
#define NEXT(lower) "mpi_" #lower "_"
#define ALIAS(lower, name) __typeof__(ompi_##lower##_f) name __attribute__((alias("ompi_" #lower "_f")));
#define OTHERS(lower, upper, mixed)                                                                                    \
    ALIAS(lower, mpi_##lower) ALIAS(lower, mpi_##lower##_) ALIAS(lower, mpi_##lower##__) ALIAS(lower, MPI_##upper)     \
    ALIAS(lower, MPI_##mixed##_f) ALIAS(lower, MPI_##mixed##_f08)
#else
#define NAME(lower) mpi_##lower##_f08_
#define NEXT(lower) "mpi_" #lower "_f08_"
#define OTHERS(lower, upper, mixed)
#endif

/* A function of Fortran, all of whose parameters are addresses, and the call in C. mpi_f08 may leave `error` out. */
#define FORTRAN(lower, upper, mixed, parameters, ...)                                                                  \
    void NAME(lower) parameters;                                                                                       \
    void NAME(lower) parameters {                                                                                      \
        int code = __VA_ARGS__;                                                                                        \
        if (error) *error = code;                                                                                      \
    }                                                                                                                  \
    OTHERS(lower, upper, mixed)

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

/* One that goes on as it came where `ours` does not hold: also the names of its parameters. */
#define UNLESS(ours, lower, upper, mixed, parameters, names, ...)                                                      \
    static int call_##lower parameters {                                                                               \
        void(*beneath) parameters;                                                                                     \
        if (!(ours) && (beneath = SHIM_ONCE(next, NEXT(lower)))) {                                                     \
            beneath names;                                                                                             \
            return error ? *error : MPI_SUCCESS;                                                                       \
        }                                                                                                              \
        return __VA_ARGS__;                                                                                            \
    }                                                                                                                  \
    FORTRAN(lower, upper, mixed, parameters, call_##lower names)

/* From MPI_Init to MPI_Finalize. */
#define LIFE(...) UNLESS(!shim_is_foreign(), __VA_ARGS__)
LIFE(init, INIT, Init, (ints error), (error), MPI_Init(NULL, NULL))
LIFE(init_thread, INIT_THREAD, Init_thread, (ints required, ints provided, ints error), (required, provided, error),
     MPI_Init_thread(NULL, NULL, *required, provided))
LIFE(finalize, FINALIZE, Finalize, (ints error), (error), MPI_Finalize())

#define COLLECTIVE(...) UNLESS(shim_is_on() || shim_wake(), __VA_ARGS__)

/*
 * Parts of a call, each with its parameters, their names, and what C wants of them: the end with a root or without; the
 * buffer of a broadcast; both of a reduction; one side of the others, with one count or lists of them.
 */
#define ALL_PARAMETERS ints comm, ints error
#define ALL_NAMES comm, error
#define ALL_IN_C PMPI_Comm_f2c(*comm)
COLLECTIVE(barrier, BARRIER, Barrier, (ALL_PARAMETERS), (ALL_NAMES), MPI_Barrier(ALL_IN_C))


/* Whose communicator is set. */
#define FREE(name)                                                                                                     \
    ({                                                                                                                 \
        MPI_Comm own_ = PMPI_Comm_f2c(*comm);                                                                          \
        int code_ = name(&own_);                                                                                       \
        *comm = PMPI_Comm_c2f(own_);                                                                                   \
        code_;                                                                                                         \
    })
COLLECTIVE(comm_free, COMM_FREE, Comm_free, (ALL_PARAMETERS), (ALL_NAMES), FREE(MPI_Comm_free))
COLLECTIVE(comm_disconnect, COMM_DISCONNECT, Comm_disconnect, (ALL_PARAMETERS), (ALL_NAMES), FREE(MPI_Comm_disconnect))

#ifdef OPEN_MPI
#define ROOT_PARAMETERS ints root, ALL_PARAMETERS
#define ROOT_NAMES root, ALL_NAMES
#define ROOT_IN_C *root, ALL_IN_C

#define FOLD_PARAMETERS void *send, void *receive, ints count, ints type, ints op
#define FOLD_NAMES send, receive, count, type, op
#define FOLD_IN_C buffer(send), buffer(receive), *count, PMPI_Type_f2c(*type), PMPI_Op_f2c(*op)

#define SEND_PARAMETERS void *send, ints send_count, ints send_type
#define SEND_NAMES send, send_count, send_type
#define SEND_IN_C buffer(send), *send_count, PMPI_Type_f2c(*send_type)

#define SENDS_PARAMETERS void *send, ints send_counts, ints send_displacements, ints send_type
#define SENDS_NAMES send, send_counts, send_displacements, send_type
#define SENDS_IN_C buffer(send), send_counts, send_displacements, PMPI_Type_f2c(*send_type)

#define RECEIVE_PARAMETERS void *receive, ints count, ints type
#define RECEIVE_NAMES receive, count, type
#define RECEIVE_IN_C buffer(receive), *count, PMPI_Type_f2c(*type)

#define RECEIVES_PARAMETERS void *receive, ints counts, ints displacements, ints type
#define RECEIVES_NAMES receive, counts, displacements, type
#define RECEIVES_IN_C buffer(receive), counts, displacements, PMPI_Type_f2c(*type)

#define TWO_PARTS(lower, upper, mixed, one, two)                                                                       \
    COLLECTIVE(lower, upper, mixed, (one##_PARAMETERS, two##_PARAMETERS), (one##_NAMES, two##_NAMES),                  \
               MPI_##mixed(one##_IN_C, two##_IN_C))
#define THREE_PARTS(lower, upper, mixed, one, two, three)                                                              \
    COLLECTIVE(lower, upper, mixed, (one##_PARAMETERS, two##_PARAMETERS, three##_PARAMETERS),                          \
               (one##_NAMES, two##_NAMES, three##_NAMES), MPI_##mixed(one##_IN_C, two##_IN_C, three##_IN_C))

TWO_PARTS(bcast, BCAST, Bcast, RECEIVE, ROOT)
TWO_PARTS(reduce, REDUCE, Reduce, FOLD, ROOT)
TWO_PARTS(allreduce, ALLREDUCE, Allreduce, FOLD, ALL)
THREE_PARTS(gather, GATHER, Gather, SEND, RECEIVE, ROOT)
THREE_PARTS(gatherv, GATHERV, Gatherv, SEND, RECEIVES, ROOT)
THREE_PARTS(scatter, SCATTER, Scatter, SEND, RECEIVE, ROOT)
THREE_PARTS(scatterv, SCATTERV, Scatterv, SENDS, RECEIVE, ROOT)
THREE_PARTS(allgather, ALLGATHER, Allgather, SEND, RECEIVE, ALL)
THREE_PARTS(allgatherv, ALLGATHERV, Allgatherv, SEND, RECEIVES, ALL)
THREE_PARTS(alltoall, ALLTOALL, Alltoall, SEND, RECEIVE, ALL)
THREE_PARTS(alltoallv, ALLTOALLV, Alltoallv, SENDS, RECEIVES, ALL)
#endif
