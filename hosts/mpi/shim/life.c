/* From MPI_Init to MPI_Finalize: whether this is the right MPI, and what the environment switches on. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "verify.h"

int shim_state;
bool shim_leaves_devices;
bool shim_takes_spread;
bool shim_attaches_created;
static bool stats;

static void become(enum shim_state state) { __atomic_store_n(&shim_state, (int)state, __ATOMIC_RELAXED); }

/* A number from a launcher's environment; below 0: no launcher has set it. */
static long launcher(const char *const names[]) {
    for (; *names; names++) {
        const char *value = getenv(*names);
        if (value) return atol(value);
    }
    return -1;
}

bool shim_speaks(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", NULL};
    return launcher(names) <= 0;
}

uint32_t shim_shown_ranks;

uint32_t shim_local_ranks(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", NULL};
    int all = 1;
    long local = launcher(names);
    if (local > 0) return (uint32_t)local;
    if (!shim_shown_ranks) PMPI_Comm_size(MPI_COMM_WORLD, &all);
    return shim_shown_ranks ? shim_shown_ranks : (uint32_t)all;
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
    if (!shim_has_mpi()) return;
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

/* UNISONO_ATTACH: `used`, as without it, or `created`. */
static bool is_created(void) {
    const char *value = getenv("UNISONO_ATTACH");
    if (!value || !*value || !strcasecmp(value, "used")) return false;
    if (!strcasecmp(value, "created")) return true;
    fprintf(stderr, "unisono: process %d: UNISONO_ATTACH is \"%s\", must be used or created\n", (int)getpid(), value);
    return false;
}

/* ---- MPI_Init --------------------------------------------------------------------------------------- */

static void forked(void) {
    become(SHIM_OFF);
    unisono_mpi_forked();
}

/* What one rank's environment asks for, all ranks do. */
enum { ASKS_OFF = 1, ASKS_STATS = 2, ASKS_VERIFY = 4, ASKS_DEVICE = 8, ASKS_SPREAD = 16, ASKS_CREATED = 32 };

static void start(bool together) {
    int asks = (is_off(getenv("UNISONO")) ? ASKS_OFF : 0) | (is_set("UNISONO_STATS") ? ASKS_STATS : 0) |
               (is_set("UNISONO_VERIFY") ? ASKS_VERIFY : 0) | (is_set("UNISONO_SPREAD") ? ASKS_SPREAD : 0) |
               (is_created() ? ASKS_CREATED : 0);
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
    if (on) unisono_mpi_prepare(), shim_prepare_failures();
    stats = together && on && (asks & ASKS_STATS);
    verify_on = asks & ASKS_VERIFY;
    shim_leaves_devices = asks & ASKS_DEVICE;
    shim_takes_spread = asks & ASKS_SPREAD;
    shim_attaches_created = together && on && (asks & ASKS_CREATED); /* else another rank may not know of it yet */
    shim_thread()->inside--;
    become(!on ? SHIM_OFF : verify_on || shim_knows_devices || shim_hears_failures ? SHIM_ON : SHIM_PLAIN);
    /* A nonblocking call could not. */
    int code;
    if (on && together) shim_attach(MPI_COMM_WORLD, &code);
}

static pthread_mutex_t waking = PTHREAD_MUTEX_INITIALIZER;

/* Decides whether calls are taken over. `together`: all ranks of MPI_COMM_WORLD do so now. */
static void wake(bool together) {
    int initialized = 0, finalized = 0;
    if (!shim_has_mpi() || shim_is_foreign()) {
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

/* After the MPI's Init or Init_thread has returned `code`; collective. Returns `code`. */
static int started(int code) {
    if (code == MPI_SUCCESS) wake_once(true);
    return code;
}

/* Before the MPI's Finalize; collective. No call is taken over afterwards. */
static void finishing(void) {
    if (!shim_is_on()) return;
    if (stats) shim_print_stats();
    shim_ending = true;
    become(SHIM_OFF);
    shim_finish_comms();
}

/* ---- Exported functions ------------------------------------------------------------------------------- */

/*
 * A tool that is loaded after the shim is called by MPI_Init, and calls PMPI_Init in turn, which is the shim's. One that looks
 * up the next MPI_Init instead (RTLD_NEXT) passes the shim by. From then on the shim keeps from it what it takes over: other ranks may be
 * without such a tool, and all must do the same.
 */
static bool passed_by, reached; /* the shim's PMPI_Init was called */
static bool in_tool; /* a tool's MPI_Init runs, which may call collectives */

void *shim_callee(const char *name, void *own, void **known) {
    void *tool = passed_by ? NULL : shim_tool(name), *at = tool ? tool : own;
    if (!in_tool) __atomic_store_n(known, at, __ATOMIC_RELAXED);
    return at;
}

static int after_tool(int code) {
    in_tool = false;
    if (code != MPI_SUCCESS || reached) return code;
    started(code);
    passed_by = shim_is_on();
    if (passed_by && shim_speaks())
        fprintf(stderr, "unisono: a tool that is loaded after Unisono's library calls the MPI past it, and so sees nothing of what is "
                        "taken over: name the tool first in LD_PRELOAD\n");
    return code;
}

/* Defines MPI_Init and PMPI_Init, or MPI_Init_thread and PMPI_Init_thread. */
#define INIT(lower, Name, parameters, names)                                                                           \
    SHIM_VISIBLE int shim_export_##lower parameters __asm__("PMPI_" Name);                                             \
    SHIM_VISIBLE int shim_named_##lower parameters __asm__("MPI_" Name);                                               \
    int shim_export_##lower parameters {                                                                               \
        typedef int function parameters;                                                                               \
        reached = true;                                                                                                \
        return started(((function *)shim_function("PMPI_" Name))names);                                           \
    }                                                                                                                  \
    int shim_named_##lower parameters {                                                                                \
        typedef int function parameters;                                                                               \
        function *tool = shim_tool("MPI_" Name);                                                                       \
        in_tool = tool;                                                                                                \
        return tool ? after_tool(tool names) : shim_export_##lower names;                                              \
    }

INIT(init, "Init", (int *argc, char ***argv), (argc, argv))
INIT(init_thread, "Init_thread", (int *argc, char ***argv, int required, int *provided), (argc, argv, required, provided))

SHIM_VISIBLE int shim_export_finalize(void) __asm__("PMPI_Finalize");
SHIM_VISIBLE int shim_named_finalize(void) __asm__("MPI_Finalize");
int shim_export_finalize(void) {
    finishing();
    return SHIM_FUNCTION(PMPI_Finalize)();
}
int shim_named_finalize(void) {
    int (*tool)(void) = shim_tool("MPI_Finalize");
    if (!tool) return shim_export_finalize();
    if (passed_by) finishing();
    return tool();
}
