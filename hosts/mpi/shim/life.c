/* From MPI_Init to MPI_Finalize: whether this is the right MPI, and what the environment switches on. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "verify.h"

int shim_state;
bool shim_leaves_devices;
static bool stats;

static void become(enum shim_state state) { __atomic_store_n(&shim_state, (int)state, __ATOMIC_RELAXED); }

/* A number from the launcher's environment, or `other` if the variable is not set. */
static long launcher(const char *open_mpi, const char *mpich, long other) {
    const char *value = getenv(open_mpi);
    if (!value) value = getenv(mpich);
    return value ? atol(value) : other;
}

bool shim_speaks(void) { return launcher("OMPI_COMM_WORLD_RANK", "PMI_RANK", 0) == 0; }

uint32_t shim_local_ranks(void) {
    int all = 1;
    PMPI_Comm_size(MPI_COMM_WORLD, &all);
    long local = launcher("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", all);
    return local > 0 ? (uint32_t)local : 1;
}

/* ---- Before MPI_Init ------------------------------------------------------------------------------ */

/* A symbol that every program built with this MPI's mpi.h needs, and no other program. */
#ifdef OPEN_MPI
#define BUILT_FOR "Open MPI"
#define MARK "ompi_mpi_comm_world"
#elif defined SMPI_H
#define BUILT_FOR "SMPI"
#define MARK "MPI_COMM_WORLD"
#elif defined MPI_ABI_VERSION
#define BUILT_FOR "MPIs with the standard's handles (MPI 5, libmpi_abi)"
#define MARK "PMPI_Abi_get_version"
#define STANDARD true
#else
#define BUILT_FOR "MPICH"
#define MARK "MPIR_Dup_fn"
#endif
#ifndef STANDARD
#define STANDARD false
#endif

static pthread_once_t asked = PTHREAD_ONCE_INIT;
static bool foreign;

/* Is it a library with the standard ABI's handles (MPI 5)? Its symbols and version may be those of the MPI it belongs
 * to. */
static bool is_standard(void) {
    int (*ask)(int *, int *) = shim_symbol("PMPI_Abi_get_version");
    int major = -1, minor = -1;
    return ask && ask(&major, &minor) == MPI_SUCCESS && major >= 0;
}

static void ask(void) {
    if (!shim_symbol("PMPI_Init")) return;
    char text[MPI_MAX_LIBRARY_VERSION_STRING < 8192 ? 8192 : MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int len;
    foreign = !shim_symbol(MARK) || is_standard() != STANDARD;
    if (foreign) PMPI_Get_library_version(text, &len);
    text[strcspn(text, "\n,")] = 0;
    for (char *at = text; *at; at++)
        if (*at == '\t') *at = ' ';
    if (foreign && shim_speaks())
        fprintf(stderr,
                "unisono: this library is for " BUILT_FOR ", the program's MPI is \"%s\": nothing is taken over\n", text);
}

bool shim_is_foreign(void) {
    pthread_once(&asked, ask);
    return foreign;
}

static bool is_off(const char *value) { return value && (!strcasecmp(value, "off") || !strcmp(value, "0")); }
static bool is_set(const char *name) {
    const char *value = getenv(name);
    return value && *value && !is_off(value);
}

/* ---- MPI_Init --------------------------------------------------------------------------------------- */

static void forked(void) {
    become(SHIM_OFF);
    unisono_mpi_forked();
}

/* What one rank's environment asks for, all ranks do. */
enum { ASKS_OFF = 1, ASKS_STATS = 2, ASKS_VERIFY = 4, ASKS_DEVICE = 8 };

static void start(bool together) {
    int asks = (is_off(getenv("UNISONO")) ? ASKS_OFF : 0) | (is_set("UNISONO_STATS") ? ASKS_STATS : 0) |
               (is_set("UNISONO_VERIFY") ? ASKS_VERIFY : 0);
    const char *device = getenv("UNISONO_DEVICE");
    shim_prepare_devices();
    if (device && !strcasecmp(device, "mpi") && shim_knows_devices) asks |= ASKS_DEVICE;
    shim_thread()->inside++;
    if (together) PMPI_Allreduce(MPI_IN_PLACE, &asks, 1, MPI_INT, MPI_BOR, MPI_COMM_WORLD);
    if (!(asks & ASKS_OFF)) {
        shim_prepare_types();
        pthread_atfork(NULL, NULL, forked);
    }
    bool on = !(asks & ASKS_OFF) && shim_prepare_comms();
    if (on) unisono_mpi_prepare();
    stats = together && on && (asks & ASKS_STATS);
    verify_on = asks & ASKS_VERIFY;
    shim_leaves_devices = asks & ASKS_DEVICE;
    shim_thread()->inside--;
    become(on ? SHIM_ON : SHIM_OFF);
}

static pthread_mutex_t waking = PTHREAD_MUTEX_INITIALIZER;

/* Decides whether calls are taken over. `together`: all ranks of MPI_COMM_WORLD do so now. */
static void wake(bool together) {
    int initialized = 0, finalized = 0;
    if (!shim_symbol("PMPI_Init") || shim_is_foreign()) {
        become(SHIM_OFF);
        return;
    }
    PMPI_Initialized(&initialized);
    PMPI_Finalized(&finalized);
    if (finalized) become(SHIM_OFF);
    else if (initialized) start(together);
}

static void wake_once(bool together) {
    static _Thread_local bool waking_here; /* this thread is inside already: the MPI calls MPI_* itself */
    if (waking_here || __atomic_load_n(&shim_state, __ATOMIC_RELAXED) != SHIM_ASLEEP) return;
    waking_here = true;
    pthread_mutex_lock(&waking);
    if (shim_state == SHIM_ASLEEP) wake(together);
    pthread_mutex_unlock(&waking);
    waking_here = false;
}

bool shim_wake(void) {
    wake_once(false);
    return shim_is_on();
}

int shim_started(int code) {
    if (code == MPI_SUCCESS) wake_once(true);
    return code;
}

void shim_finishing(void) {
    if (!shim_is_on()) return;
    if (stats) shim_print_stats();
    shim_ending = true;
    become(SHIM_OFF);
    shim_finish_comms();
}

/* ---- Exported functions ------------------------------------------------------------------------------- */

int MPI_Init(int *argc, char ***argv) { return shim_started(SHIM_FUNCTION(PMPI_Init)(argc, argv)); }

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    return shim_started(SHIM_FUNCTION(PMPI_Init_thread)(argc, argv, required, provided));
}

int MPI_Finalize(void) {
    shim_finishing();
    return SHIM_FUNCTION(PMPI_Finalize)();
}
