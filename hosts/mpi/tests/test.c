#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "test.h"

#include <dlfcn.h>
#include <stdarg.h>

/* The most failures of a rank that are printed; further ones are only counted. */
enum { SHOWN = 10 };

static struct { long passed, failed; } tally;

bool expect(bool holds, const char *format, ...) {
    if (holds) {
        __atomic_add_fetch(&tally.passed, 1, __ATOMIC_RELAXED);
        return true;
    }
    if (__atomic_add_fetch(&tally.failed, 1, __ATOMIC_RELAXED) <= SHOWN) {
        char text[512];
        va_list rest;
        int rank;
        va_start(rest, format);
        vsnprintf(text, sizeof text, format, rest);
        va_end(rest);
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
        fprintf(stderr, "rank %d: %s\n", rank, text);
    }
    return false;
}

void *underlying_function(const char *name) {
    Dl_info mpi;
    if (!dladdr((void *)PMPI_Get_version, &mpi)) abort(); /* no preload has this one */
    void *library = dlopen(mpi.dli_fname, RTLD_LAZY | RTLD_NOLOAD), *at = library ? dlsym(library, name) : NULL;
    if (!at) abort();
    dlclose(library);
    return at;
}

int finish(const char *name) {
    long mine[2] = {tally.passed, tally.failed}, all[2];
    UNDERLYING(PMPI_Allreduce)(mine, all, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank_in(MPI_COMM_WORLD) == 0) printf("%s: %ld passed, %ld failed\n", name, all[0], all[1]);
    fflush(stdout);
    MPI_Finalize();
    return all[1] || !all[0];
}
