/* The functions that stand before the MPI's: all forms of them. */
#include "verify.h"

/* Plans the call; runs it, or hands it to the MPI as it came. */
#define EXPORT(name, parameters, arguments, plan)                                                                      \
    int SHIM_NAME(shim_export_##name) parameters __asm__(SHIM_TEXT(SHIM_NAME(MPI_##name)));                            \
    int SHIM_NAME(shim_export_##name) parameters {                                                                     \
        typedef int function parameters;                                                                               \
        function *beneath = (function *)SHIM_ONCE(shim_function, "P" SHIM_TEXT(SHIM_NAME(MPI_##name)));                \
        struct shim_call c;                                                                                            \
        enum shim_route route = plan;                                                                                  \
        if (route == ROUTE_BENEATH) return beneath arguments;                                                          \
        if (route == ROUTE_FAILED) return c.code;                                                                      \
        if (__builtin_expect(!verify_on, 1)) return shim_run(&c);                                                      \
        struct verify v;                                                                                               \
        verify_before(&v, &c);                                                                                         \
        int code = shim_run(&c);                                                                                       \
        if (verify_between(&v, code)) verify_after(&v, beneath arguments);                                             \
        return code;                                                                                                   \
    }

#define SHIM_TEXT(name) SHIM_TEXT_OF(name)
#define SHIM_TEXT_OF(name) #name

int shim_export_barrier(shim_handle comm) __asm__("MPI_Barrier");
int shim_export_barrier(shim_handle comm) {
    typedef int function(shim_handle);
    function *beneath = (function *)SHIM_ONCE(shim_function, "PMPI_Barrier");
    struct shim_call c;
    enum shim_route route = shim_barrier(&c, SHIM_COMM(comm));
    if (route == ROUTE_BENEATH) return beneath(comm);
    return route == ROUTE_FAILED ? c.code : shim_run(&c);
}

#define SHIM_COUNT int
#define SHIM_DISPLACEMENT int
#define SHIM_NAME(name) name
#define SHIM_WIDE false
#include "exports.h"

/* MPI 4: counts of 64 bits. */
#if MPI_VERSION >= 4
_Static_assert(sizeof(MPI_Count) == sizeof(int64_t) && sizeof(MPI_Aint) == sizeof(int64_t), "see shim_item");
#undef SHIM_COUNT
#undef SHIM_DISPLACEMENT
#undef SHIM_NAME
#undef SHIM_WIDE
#define SHIM_COUNT MPI_Count
#define SHIM_DISPLACEMENT MPI_Aint
#define SHIM_NAME(name) name##_c
#define SHIM_WIDE true
#include "exports.h"
#endif
