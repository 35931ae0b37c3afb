/* The C functions that replace the MPI's: all collectives, with counts of both widths. */
#include "collectives.h"
#include "verify.h"

/* Not for one collective alone. */
SELDOM int run_any(struct shim_call *c) { return run(c); }

/*
 * Defines the function that replaces MPI_Bcast, or MPI_Bcast_c ... It plans the call, then runs it or passes it
 * unchanged to the MPI. `verified`: whether the result is compared with the MPI's.
 */
#define EXPORT(verified, NUMBER, Name, name, plan, parts, ...)                                                         \
    static __attribute__((noinline)) int SHIM_NAME(any_##name)(SHIM_PARTS(parts, _C));                                 \
    static __attribute__((noinline)) int SHIM_NAME(left_##name)(SHIM_PARTS(parts, _C)) {                               \
        typedef int function(SHIM_PARTS(parts, _C));                                                                   \
        passed_on(REASON_TABLE);                                                                                       \
        return ((function *)SHIM_ONCE(shim_function, "PMPI_" SHIM_TEXT(SHIM_NAME(Name))))(SHIM_PARTS(parts, _NAMES));  \
    }                                                                                                                  \
    SHIM_EXPORT(SHIM_NAME(name), SHIM_TEXT(SHIM_NAME(Name)), (SHIM_PARTS(parts, _C)), (SHIM_PARTS(parts, _NAMES))) {   \
        struct shim_call c = {.usual = true, .form = FORM_BLOCKING};                                                   \
        bool usual = plan_##plan(&c, NUMBER, SHIM_PARTS(parts, _PLAN)) == ROUTE_TAKEN && (c.folds || agrees(&c));      \
        if (__builtin_expect(!usual, 0)) return SHIM_NAME(any_##name)(SHIM_PARTS(parts, _NAMES));                      \
        return is_left(&c) ? SHIM_NAME(left_##name)(SHIM_PARTS(parts, _NAMES)) : run(&c);                              \
    }                                                                                                                  \
    static __attribute__((noinline)) int SHIM_NAME(any_##name)(SHIM_PARTS(parts, _C)) {                                \
        typedef int function(SHIM_PARTS(parts, _C));                                                                   \
        function *underlying = (function *)SHIM_ONCE(shim_function, "PMPI_" SHIM_TEXT(SHIM_NAME(Name)));             \
        struct shim_call c;                                                                                            \
        c.usual = false, c.form = FORM_BLOCKING;                                                                       \
        enum shim_route route = plan_##plan(&c, NUMBER, SHIM_PARTS(parts, _PLAN));                                \
        if (route == ROUTE_TAKEN && is_left(&c)) route = passed_on(REASON_TABLE);                                      \
        if (route == ROUTE_UNDERLYING) return underlying(SHIM_PARTS(parts, _NAMES));                                   \
        if (route == ROUTE_FAILED) return c.code;                                                                      \
        if (__builtin_expect(!(verified), 1)) return run(&c);                                                          \
        struct shim_call kept = c;                                                                                     \
        struct verify v;                                                                                               \
        verify_before(&v, &kept);                                                                                      \
        int code = run_any(&kept);                                                                                     \
        if (verify_between(&v, code)) verify_after(&v, underlying(SHIM_PARTS(parts, _NAMES)));                         \
        return code;                                                                                                   \
    }

/* The same for MPI_Ibcast, or MPI_Ibcast_c ... */
#define EXPORT_STARTED(NUMBER, Name, name, plan, parts, ...)                                                           \
    SHIM_EXPORT(SHIM_NAME(i##name), SHIM_TEXT(SHIM_NAME(I##name)), (SHIM_PARTS(parts, _C), void *request),             \
                (SHIM_PARTS(parts, _NAMES), request)) {                                                                \
        typedef int function(SHIM_PARTS(parts, _C), void *);                                                           \
        function *underlying = (function *)SHIM_ONCE(shim_function, "PMPI_" SHIM_TEXT(SHIM_NAME(I##name)));            \
        struct shim_call c;                                                                                            \
        c.usual = false, c.form = FORM_NONBLOCKING;                                                                    \
        enum shim_route route = request ? plan_##plan(&c, NUMBER, SHIM_PARTS(parts, _PLAN)) : ROUTE_UNDERLYING;        \
        if (route == ROUTE_TAKEN && !shim_may_start(c.on)) route = passed_on(REASON_REQUESTS);                           \
        if (route == ROUTE_UNDERLYING) return underlying(SHIM_PARTS(parts, _NAMES), request);                          \
        return route == ROUTE_FAILED ? c.code : shim_start(c, request);                                                \
    }

/* The same for MPI_Bcast_init, or MPI_Bcast_init_c ... `PREFIX` of their names: "MPI_". An info says nothing to Unisono. */
#define EXPORT_PERSISTENT(PREFIX, lower, NUMBER, Name, plan, parts)                                                    \
    SHIM_EXPORT_AS(SHIM_NAME(lower), PREFIX SHIM_TEXT(SHIM_NAME(Name##_init)),                                         \
                   (SHIM_PARTS(parts, _C), shim_handle info, void *request), (SHIM_PARTS(parts, _NAMES), info, request)) { \
        typedef int function(SHIM_PARTS(parts, _C), shim_handle, void *);                                              \
        function *underlying = (function *)SHIM_ONCE(shim_function, "P" PREFIX SHIM_TEXT(SHIM_NAME(Name##_init)));     \
        struct shim_call c;                                                                                            \
        c.usual = false, c.form = FORM_PERSISTENT;                                                                     \
        enum shim_route route = request ? plan_##plan(&c, NUMBER, SHIM_PARTS(parts, _PLAN)) : ROUTE_UNDERLYING;        \
        if (route == ROUTE_TAKEN && !shim_may_start(c.on)) route = passed_on(REASON_REQUESTS);                           \
        if (route == ROUTE_TAKEN) route = shim_persist(c, request);                                                    \
        if (route == ROUTE_UNDERLYING) return underlying(SHIM_PARTS(parts, _NAMES), info, request);                    \
        return route == ROUTE_FAILED ? c.code : MPI_SUCCESS;                                                           \
    }
#ifdef OPEN_MPI /* 4 has them by other names */
#define EXPORT_MADE(NUMBER, Name, name, plan, parts, ...)                                                              \
    EXPORT_PERSISTENT("MPI_", name##_init, NUMBER, Name, plan, parts)                                                  \
    EXPORT_PERSISTENT("MPIX_", name##_init_x, NUMBER, Name, plan, parts)
#else
#define EXPORT_MADE(NUMBER, Name, name, plan, parts, ...) EXPORT_PERSISTENT("MPI_", name##_init, NUMBER, Name, plan, parts)
#endif

#define SHIM_TEXT(name) SHIM_TEXT_OF(name)
#define SHIM_TEXT_OF(name) #name

#define SHIM_COUNT int
#define SHIM_DISPLACEMENT int
#define SHIM_NAME(name) name
#define SHIM_WIDE false
#define COLLECTIVE(...) EXPORT(verify_on, __VA_ARGS__) EXPORT_STARTED(__VA_ARGS__) EXPORT_MADE(__VA_ARGS__)
#define COLLECTIVE_WITHOUT_DATA(...) EXPORT(false, __VA_ARGS__) EXPORT_STARTED(__VA_ARGS__) EXPORT_MADE(__VA_ARGS__)
#include "collectives.def"

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
#define COLLECTIVE(...) EXPORT(verify_on, __VA_ARGS__) EXPORT_STARTED(__VA_ARGS__) EXPORT_MADE(__VA_ARGS__)
#define COLLECTIVE_WITHOUT_DATA(...)
#include "collectives.def"
#endif
