/*
 * Functions for Fortran: only those whose wrapper in the MPI calls PMPI_* directly, as `nm -D` and objdump show:
 *
 * - Open MPI: all. mpi_bcast_ and its other spellings are one function of libmpi_mpifh, ompi_bcast_f, which
 *   mpi_f08's wrapper calls too; it calls PMPI_Bcast.
 * - MPICH: mpi_bcast_ and mpi_f08's mpi_bcast_f08ts_ call MPI_Bcast, which is the shim's. But mpi_f08's wrappers of
 *   functions without a buffer, mpi_barrier_f08_, mpi_comm_free_f08_ and those that start and end the MPI, call PMPI_*.
 *
 * The functions here call the shim's C functions, as the wrappers should: handles are translated, and Fortran's
 * MPI_BOTTOM and MPI_IN_PLACE become C's. While no call is taken over (another MPI's handles may differ) they call the
 * functions that they replace. With the standard's handles (libmpi_abi): none here; what calls PMPI_* there is not known.
 */
#ifndef MPI_ABI_VERSION
#include <dlfcn.h>

_Static_assert(sizeof(MPI_Fint) == sizeof(int), "lists of counts are passed on as they are");

typedef MPI_Fint *ints;

#ifdef OPEN_MPI
/* The sentinels are the addresses of common blocks, in the one spelling that libmpi has. */
static void *address(void *passed) {
    if (passed == SHIM_ONCE(shim_symbol, "mpi_fortran_in_place_")) return MPI_IN_PLACE;
    return passed == SHIM_ONCE(shim_symbol, "mpi_fortran_bottom_") ? MPI_BOTTOM : passed;
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

/* The types of the blocks of an alltoallw in C, until the thread's next call; null: none were passed, the communicator
 * is none, or there is no memory. */
#ifdef OPEN_MPI
static const MPI_Datatype *types_in_c(enum shim_slot slot, ints passed, MPI_Comm comm) {
    int inter, blocks = 0;
    if (!passed || !comm || comm == MPI_COMM_NULL) return NULL;
    if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS) return NULL;
    inter ? PMPI_Comm_remote_size(comm, &blocks) : PMPI_Comm_size(comm, &blocks);
    MPI_Datatype *types = shim_buffer(slot, sizeof *types * blocks);
    for (int b = 0; types && b < blocks; b++) types[b] = PMPI_Type_f2c(passed[b]);
    return types;
}
#endif

/* Defines a function for Fortran, all of whose parameters are addresses, by a call in C. mpi_f08 may leave `error`
 * out. */
#define FORTRAN(lower, upper, mixed, parameters, ...)                                                                  \
    void NAME(lower) parameters;                                                                                       \
    void NAME(lower) parameters {                                                                                      \
        int code = __VA_ARGS__;                                                                                        \
        if (error) *error = code;                                                                                      \
    }                                                                                                                  \
    OTHERS(lower, upper, mixed)

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

/* The same, but if `ours` is false the call is passed unchanged to the replaced function; `names`: its parameters'
 * names. */
#define UNLESS(ours, lower, upper, mixed, parameters, names, ...)                                                      \
    static int call_##lower parameters {                                                                               \
        void(*underlying) parameters;                                                                                  \
        if (!(ours) && (underlying = SHIM_ONCE(next, NEXT(lower)))) {                                                  \
            underlying names;                                                                                          \
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

#define TAKEN(...) UNLESS(shim_is_on() || shim_wake(), __VA_ARGS__)

/* The collectives: some need all their names here and some none, as said above. */
#define CALL(NUMBER, Name, name, plan, parts, ...)                                                                     \
    TAKEN(name, NUMBER, Name, (SHIM_PARTS(parts, _FORTRAN), ints error), (SHIM_PARTS(parts, _NAMES), error),           \
          MPI_##Name(SHIM_PARTS(parts, _IN_C)))
/* And their nonblocking forms. */
#define START(NUMBER, Name, name, plan, parts, ...)                                                                    \
    TAKEN(i##name, I##NUMBER, I##name, (SHIM_PARTS(parts, _FORTRAN), ints request, ints error),                        \
          (SHIM_PARTS(parts, _NAMES), request, error), ({                                                              \
              MPI_Request own_;                                                                                        \
              int code_ = MPI_I##name(SHIM_PARTS(parts, _IN_C), &own_);                                                \
              if (code_ == MPI_SUCCESS) *request = PMPI_Request_c2f(own_);                                             \
              code_;                                                                                                   \
          }))
#define BOTH(...) CALL(__VA_ARGS__) START(__VA_ARGS__)
#ifdef OPEN_MPI
#define COLLECTIVE BOTH
#else
#define COLLECTIVE(...)
#define COLLECTIVE_WITHOUT_DATA BOTH
#endif
#include "collectives.def"

#if !defined OPEN_MPI && !defined SMPI_H
/* As MPI_Request_get_status (requests.c). */
void mpi_request_get_status_f08_(void *request, ints flag, void *status, ints error);
void mpi_request_get_status_f08_(void *request, ints flag, void *status, ints error) {
    void (*underlying)(void *, ints, void *, ints) = SHIM_ONCE(next, "mpi_request_get_status_f08_");
    shim_move_requests();
    underlying(request, flag, status, error);
}
#endif

/* Memory. MPICH's wrappers call the shim's functions. */
#ifdef OPEN_MPI
TAKEN(alloc_mem, ALLOC_MEM, Alloc_mem, (MPI_Aint *bytes, ints info, void *memory, ints error), (bytes, info, memory, error),
      MPI_Alloc_mem(*bytes, PMPI_Info_f2c(*info), memory))
TAKEN(free_mem, FREE_MEM, Free_mem, (void *memory, ints error), (memory, error), MPI_Free_mem(memory))
/* It may be a window that the program has made in C. */
TAKEN(win_free, WIN_FREE, Win_free, (ints win, ints error), (win, error), ({
          MPI_Win own_ = PMPI_Win_f2c(*win);
          int code_ = MPI_Win_free(&own_);
          *win = PMPI_Win_c2f(own_);
          code_;
      }))
#endif

/* These are called twice (progress.c). A flag that is false is 0. */
#ifdef OPEN_MPI
#define LOOK(lower, upper, mixed, parameters, names)                                                                   \
    void NAME(lower) parameters;                                                                                       \
    void NAME(lower) parameters {                                                                                      \
        void(*underlying) parameters = SHIM_ONCE(next, NEXT(lower));                                                   \
        underlying names;                                                                                              \
        if (shim_looks_again(error ? *error : MPI_SUCCESS, flag)) underlying names;                                    \
    }                                                                                                                  \
    OTHERS(lower, upper, mixed)
LOOK(iprobe, IPROBE, Iprobe, (ints source, ints tag, ints comm, ints flag, ints status, ints error),
     (source, tag, comm, flag, status, error))
LOOK(improbe, IMPROBE, Improbe, (ints source, ints tag, ints comm, ints flag, ints message, ints status, ints error),
     (source, tag, comm, flag, message, status, error))
#endif

/* These set the communicator to MPI_COMM_NULL. */
#define FREE(name)                                                                                                     \
    ({                                                                                                                 \
        MPI_Comm own_ = PMPI_Comm_f2c(*comm);                                                                          \
        int code_ = name(&own_);                                                                                       \
        *comm = PMPI_Comm_c2f(own_);                                                                                   \
        code_;                                                                                                         \
    })
TAKEN(comm_free, COMM_FREE, Comm_free, (ints comm, ints error), (comm, error), FREE(MPI_Comm_free))
TAKEN(comm_disconnect, COMM_DISCONNECT, Comm_disconnect, (ints comm, ints error), (comm, error),
      FREE(MPI_Comm_disconnect))
#endif
