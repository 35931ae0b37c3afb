/* Shared by the tests in C. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unisono_posix.h>

static const char *text(void) {
    static char buf[256];
    unisono_last_error(buf, sizeof buf);
    return buf;
}

#define CHECK(truth)                                                                                \
    do {                                                                                            \
        if (!(truth)) {                                                                             \
            fprintf(stderr, "%s:%d: not true: %s (last error: %s)\n", __FILE__, __LINE__, #truth, text()); \
            exit(1);                                                                                \
        }                                                                                           \
    } while (0)
