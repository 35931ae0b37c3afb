/*
 * Failures that the MPI tells of, where it goes on after them (ULFM: Open MPI 5 under `mpirun --with-ft ulfm`). A rank that waits long
 * in Unisono asks the MPI every millisecond whether a rank of the communicator has failed, or another one has revoked it. Then it
 * poisons the communicator, so that the calls of all ranks on it end; and each learns from the MPI which error it is.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

bool shim_hears_failures;

static int (*is_revoked)(MPI_Comm, int *);
static int (*get_failed)(MPI_Comm, MPI_Group *);

void shim_prepare_failures(void) {
#ifdef OPEN_MPI
    const char *enabled = getenv("OMPI_MCA_mpi_ft_enable"); /* set by its mpirun */
    if (!enabled || !strcmp(enabled, "0") || !strcasecmp(enabled, "false")) return;
    is_revoked = shim_symbol("PMPIX_Comm_is_revoked"), get_failed = shim_symbol("PMPIX_Comm_get_failed");
    shim_hears_failures = is_revoked && get_failed;
#endif
}

/* Open MPI 5's numbers, which the mpi.h of version 4 does not have. */
enum verdict { FINE = 0, FAILED = 75, REVOKED = 77 };

/* Writes a rank that has failed. */
static enum verdict judge(MPI_Comm comm, int *rank) {
    MPI_Group failed, all;
    int revoked = 0, size = 0;
    const int first = 0;
    if (is_revoked(comm, &revoked) == MPI_SUCCESS && revoked) return REVOKED;
    if (get_failed(comm, &failed) != MPI_SUCCESS) return FINE;
    PMPI_Group_size(failed, &size);
    if (size > 0 && PMPI_Comm_group(comm, &all) == MPI_SUCCESS) {
        PMPI_Group_translate_ranks(failed, 1, &first, all, rank);
        PMPI_Group_free(&all);
    }
    PMPI_Group_free(&failed);
    return size > 0 ? FAILED : FINE;
}

static int64_t milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool shim_is_time_to_listen(int64_t *last) {
    int64_t now = milliseconds();
    return now != *last && (*last = now, true);
}

void shim_listen(const struct shim_comm *on, MPI_Comm comm) {
    int rank = on->rank;
    if (judge(comm, &rank) == FINE) return;
    if (on->comm) unisono_report_death(on->comm, (uint32_t)(rank >= 0 ? rank : on->rank));
    else if (on->levels) unisono_mpi_levels_report(on->levels);
}

/* Another rank may have poisoned the communicator before this rank's MPI knows why. */
int shim_failure_class(MPI_Comm comm, int class) {
    enum { PATIENCE = 2000 };
    int rank;
    for (int64_t end = milliseconds() + PATIENCE; milliseconds() < end; sched_yield()) {
        enum verdict verdict = judge(comm, &rank);
        if (verdict != FINE) return (int)verdict;
        shim_progress_now();
    }
    return class;
}
