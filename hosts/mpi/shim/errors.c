/* MPI's error class for each error of unisono.h: as in kernel/src/class.rs, with which tests/classes.rs compares it. */
#include <stdio.h>

static int class_of(int error) {
    switch (error) {
    case UNISONO_ERR_NULL: return MPI_ERR_BUFFER;
    case UNISONO_ERR_ARGUMENT: return MPI_ERR_ARG;
    case UNISONO_ERR_MISMATCH: return MPI_ERR_TRUNCATE;
    case UNISONO_ERR_SEGMENT:
    case UNISONO_ERR_CORRUPT: return MPI_ERR_INTERN;
    case UNISONO_ERR_MEMORY: return MPI_ERR_NO_MEM;
    case UNISONO_ERR_REQUEST: return MPI_ERR_REQUEST;
    case UNISONO_ERR_BUSY:
    case UNISONO_ERR_NOT_READY:
    case UNISONO_ERR_PEER:
    case UNISONO_ERR_DIED:
    case UNISONO_ERR_LATE:
    case UNISONO_ERR_OTHER:
    case UNISONO_ERR_HOST:
    default: return MPI_ERR_OTHER;
    }
}

static bool is_of_a_peer(int error) { return error == UNISONO_ERR_DIED || error == UNISONO_ERR_PEER || error == UNISONO_ERR_LATE; }

int shim_raise(MPI_Comm comm, int call, int error) {
    int class = class_of(error), heard = class;
    if (shim_hears_failures && is_of_a_peer(error)) heard = shim_failure_class(comm, class);
    if (heard != class) return PMPI_Comm_call_errhandler(comm, heard), heard; /* the program expects it */
    /* MPI's error text has only the class, so the cause is printed here. */
    char text[256] = "";
    unisono_last_error(text, sizeof text);
    fprintf(stderr, "unisono: %s: %s%s%s\n", shim_names[call], unisono_strerror(error), *text ? ": " : "", text);
    PMPI_Comm_call_errhandler(comm, class);
    return class;
}
