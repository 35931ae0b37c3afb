/* When the underlying MPI makes progress on the program's own messages (docs/explanation/mpi.md). */
#include <time.h>

/* Never completes. */
static MPI_Request never;

static int query(void *extra, MPI_Status *status) { return (void)extra, (void)status, MPI_SUCCESS; }
static int release(void *extra) { return (void)extra, MPI_SUCCESS; }
static int cancel(void *extra, int complete) { return (void)extra, (void)complete, MPI_SUCCESS; }

bool shim_prepare_progress(void) { return PMPI_Grequest_start(query, release, cancel, NULL, &never) == MPI_SUCCESS; }

void shim_finish_progress(void) {
    PMPI_Grequest_complete(never);
    PMPI_Request_free(&never);
}

/* In both MPIs, getting the status of a request that is not complete makes it progress all pending operations, from any thread.
 * (In MPICH, probing a communicator of one rank does not.) */
static void progress(struct shim_thread *self) {
    int flag;
    self->inside++;
    PMPI_Request_get_status(never, &flag, MPI_STATUS_IGNORE);
    self->inside--;
    shim_add(&self->progressed, 1);
}

/* About 10 µs of ticks(). */
#if defined __x86_64__
/* Counters of 2 to 4 GHz: 7.5 to 15 µs. */
#define SPAN 30000
static inline uint64_t ticks(void) { return __builtin_ia32_rdtsc(); }
#elif defined __aarch64__
static inline uint64_t ticks(void) {
    uint64_t now;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
    return now;
}
static inline uint64_t frequency(void) {
    uint64_t hertz;
    __asm__("mrs %0, cntfrq_el0" : "=r"(hertz));
    return hertz;
}
#define SPAN (frequency() / 100000)
#else
#define SPAN 10000
static inline uint64_t ticks(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
#endif

/* Except in long waits, progress takes at most one of so many parts of the time: where ranks share cores, an MPI yields its own in each
 * call that finds nothing. */
enum { SHARE = 128 };

void shim_progress_now(void) {
    struct shim_thread *self = shim_thread();
    uint64_t begin = ticks();
    progress(self);
    self->progressed_at = ticks();
    self->progress_took = self->progressed_at - begin;
}

void shim_progress_in_time(int waits_long) {
    struct shim_thread *self = shim_thread();
    uint64_t passed = ticks() - self->progressed_at;
    if (waits_long && shim_hears_failures && self->waits_on && shim_is_time_to_listen(&self->listened))
        shim_listen(self->waits_on, self->waits_in);
    if (passed >= SPAN && (waits_long || passed / SHARE >= self->progress_took)) shim_progress_now();
}

/*
 * Functions that tell whether something has happened, and look before they make progress: MPI_Iprobe and MPI_Improbe of Open MPI,
 * MPI_Win_test of MPICH. What a peer did before a collective is found by the first call after it, since the MPI's own collective
 * makes progress; after one of ours the call is made twice.
 */
bool shim_looks_again(int code, const int *flag) {
    if (code != MPI_SUCCESS || *flag || !shim_is_on()) return false;
    struct shim_thread *self = shim_thread();
    bool again = self->looked != self->ended;
    self->looked = self->ended;
    return again;
}

#define LOOK(lower, Name, parameters, names)                                                                           \
    SHIM_EXPORT(lower, Name, parameters, names) {                                                                      \
        typedef int function parameters;                                                                               \
        function *underlying = (function *)SHIM_ONCE(shim_function, "PMPI_" Name);                                     \
        int code = underlying names;                                                                                   \
        return shim_looks_again(code, flag) ? underlying names : code;                                                 \
    }

LOOK(iprobe, "Iprobe", (int source, int tag, shim_handle comm, int *flag, MPI_Status *status), (source, tag, comm, flag, status))
LOOK(improbe, "Improbe", (int source, int tag, shim_handle comm, int *flag, void *message, MPI_Status *status),
     (source, tag, comm, flag, message, status))
LOOK(win_test, "Win_test", (shim_handle win, int *flag), (win, flag))
