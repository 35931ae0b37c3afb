/* Finds the MPI in the process, which is linked or was loaded later (mpi4py), and looks up its symbols. */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* For dlsym, valid after look_for_mpi: where the MPI's symbols are found, and its functions, of which the shim has some of the same
 * names. (A program may have copies of the MPI's variables, so those must not be looked up after the shim.) */
static void *symbols, *functions;
static bool found;

/* Where the program or library begins in memory that has the address; null: none has. */
static const void *object_of(const void *at) {
    Dl_info info;
    return at && dladdr(at, &info) ? info.dli_fbase : NULL;
}

/* The loaded libraries whose name an MPI may have. They are collected first, because dlopen can't be called while the
 * list of all libraries is walked. */
enum { MOST = 8, LENGTH = 512 };
struct candidates {
    char names[MOST][LENGTH];
    int count;
};

static int collect(struct dl_phdr_info *info, size_t size, void *context) {
    (void)size;
    struct candidates *all = context;
    const char *name = strrchr(info->dlpi_name, '/');
    name = name ? name + 1 : info->dlpi_name;
    if (!strncmp(name, "libmpi", 6) && all->count < MOST && strlen(info->dlpi_name) < LENGTH)
        strcpy(all->names[all->count++], info->dlpi_name);
    return 0;
}

static void look_for_mpi(void) {
    static const char wanted[] = "PMPI_Init";
    /* Preloaded or linked, the shim precedes the MPI; loaded later, it does not, or is not among the process's symbols at all. */
    void *const anywhere = dlsym(RTLD_DEFAULT, wanted);
    symbols = RTLD_DEFAULT;
    functions = dlsym(RTLD_NEXT, wanted) ? RTLD_NEXT : RTLD_DEFAULT;
    found = functions == RTLD_NEXT || (anywhere && object_of(anywhere) != object_of(&found));
    if (found) return;
    struct candidates all = {.count = 0};
    dl_iterate_phdr(collect, &all);
    for (int i = 0; i < all.count && !found; i++) {
        void *handle = dlopen(all.names[i], RTLD_LAZY | RTLD_NOLOAD);
        if (handle && dlsym(handle, wanted)) symbols = functions = handle, found = true;
        else if (handle) dlclose(handle);
    }
}

bool shim_has_mpi(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, look_for_mpi);
    return found;
}

void *shim_symbol(const char *name) { return shim_has_mpi() ? dlsym(symbols, name) : NULL; }

static int missing(void) {
    static bool said;
    if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
        fprintf(stderr, "unisono: no MPI is loaded in this process, or not all of it\n");
    return MPI_ERR_OTHER;
}

void *shim_function(const char *name) {
    void *at = shim_has_mpi() ? dlsym(functions, name) : NULL;
    return at ? at : (void *)missing;
}

void *shim_tool(const char *name) {
    char profiled[64] = "P";
    Dl_info info;
    void *at = dlsym(RTLD_NEXT, name);
    if (!at || !dladdr(at, &info) || strlen(name) > sizeof profiled - 2) return NULL;
    /* What has both names is an MPI, or another library of Unisono's. */
    void *library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!library) return NULL;
    bool both = object_of(dlsym(library, strcat(profiled, name))) == info.dli_fbase;
    dlclose(library);
    return both ? NULL : at;
}
