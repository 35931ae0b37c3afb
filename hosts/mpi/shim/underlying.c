/* Finds the MPI in the process, which is linked or was loaded later (mpi4py), and looks up its symbols. */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void *library; /* for dlsym; valid after look_for_mpi */
static bool found;

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
    library = RTLD_DEFAULT;
    found = dlsym(library, wanted);
    if (found) return;
    struct candidates all = {.count = 0};
    dl_iterate_phdr(collect, &all);
    for (int i = 0; i < all.count && !found; i++) {
        void *handle = dlopen(all.names[i], RTLD_LAZY | RTLD_NOLOAD);
        if (handle && dlsym(handle, wanted)) library = handle, found = true;
        else if (handle) dlclose(handle);
    }
}

void *shim_symbol(const char *name) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, look_for_mpi);
    return found ? dlsym(library, name) : NULL;
}

static int missing(void) {
    static bool said;
    if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
        fprintf(stderr, "unisono: no MPI is loaded in this process, or not all of it\n");
    return MPI_ERR_OTHER;
}

void *shim_function(const char *name) {
    void *at = shim_symbol(name);
    return at ? at : (void *)missing;
}
