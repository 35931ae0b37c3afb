/* Point-to-point messages of the underlying MPI, on a communicator of their own (include/unisono_messages.h). */
#include <stdlib.h>

#include "unisono_messages.h"

struct link {
    MPI_Comm comm;
};

static MPI_Comm comm_of(void *context) { return ((struct link *)context)->comm; }

/* Calls the MPI; collectives that it calls meanwhile are not taken over. */
#define INSIDE(call)                                                                                                   \
    ({                                                                                                                 \
        struct shim_thread *self_ = shim_thread();                                                                     \
        self_->inside++;                                                                                               \
        int code_ = call;                                                                                              \
        self_->inside--;                                                                                               \
        code_;                                                                                                         \
    })

static int class_of(int code) {
    int class = MPI_ERR_OTHER;
    if (code == MPI_SUCCESS) return 0;
    PMPI_Error_class(code, &class);
    return class;
}

static bool running(void) {
    int initialized = 0, finalized = 0;
    if (!shim_has_mpi()) return false;
    PMPI_Initialized(&initialized);
    if (initialized) PMPI_Finalized(&finalized);
    return initialized && !finalized;
}

/* ---- Messages -------------------------------------------------------------------------------------- */

static int send(void *context, const void *bytes, uint64_t len, uint32_t to, int tag, uintptr_t *request) {
    MPI_Request begun;
    if (!running()) return UNISONO_MESSAGES_NOT_RUNNING;
    int code = INSIDE(PMPI_Isend(bytes, (int)len, MPI_BYTE, (int)to, tag, comm_of(context), &begun));
    *request = (uintptr_t)begun;
    return class_of(code);
}

static int source(uint32_t from) { return from == UNISONO_MESSAGES_ANY ? MPI_ANY_SOURCE : (int)from; }

static int probe(void *context, uint32_t from, int tag, int *found, uint64_t *len) {
    MPI_Status status;
    int count = 0;
    if (!running()) return UNISONO_MESSAGES_NOT_RUNNING;
    int code = INSIDE(PMPI_Iprobe(source(from), tag, comm_of(context), found, &status));
    if (code == MPI_SUCCESS && *found) code = PMPI_Get_count(&status, MPI_BYTE, &count);
    *len = (uint64_t)count;
    return class_of(code);
}

static int receive(void *context, void *bytes, uint64_t len, uint32_t from, int tag, uintptr_t *request) {
    MPI_Request begun;
    if (!running()) return UNISONO_MESSAGES_NOT_RUNNING;
    int code = INSIDE(PMPI_Irecv(bytes, (int)len, MPI_BYTE, source(from), tag, comm_of(context), &begun));
    *request = (uintptr_t)begun;
    return class_of(code);
}

static int test(void *context, uintptr_t *request, int *done) {
    (void)context;
    MPI_Request asked = (MPI_Request)*request;
    if (!running()) return UNISONO_MESSAGES_NOT_RUNNING;
    int code = INSIDE(PMPI_Test(&asked, done, MPI_STATUS_IGNORE));
    *request = (uintptr_t)asked;
    return class_of(code);
}

bool shim_ending;

static int close_link(void *context) {
    struct link *link = context;
    int code = running() && !shim_ending ? INSIDE(PMPI_Comm_free(&link->comm)) : MPI_SUCCESS;
    free(link);
    return class_of(code);
}

/* ---- Links ------------------------------------------------------------------------------------------ */

/* The largest tag: an attribute of MPI_COMM_WORLD. */
static uint64_t tags(void) {
    int *largest, found = 0;
    int code = PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest, &found);
    return 1 + (uint64_t)(code == MPI_SUCCESS && found ? *largest : 32767); /* the least that MPI allows */
}

int shim_connect(MPI_Comm comm, struct unisono_messages *layer) {
    int rank, size, inter = 0;
    if (comm == MPI_COMM_NULL) return UNISONO_MESSAGES_NO_COMMUNICATOR;
    int code = PMPI_Comm_test_inter(comm, &inter);
    if (code != MPI_SUCCESS) return class_of(code);
    if (inter) return UNISONO_MESSAGES_INTERCOMMUNICATOR;
    struct link *link = malloc(sizeof *link);
    if (!link) return MPI_ERR_NO_MEM; /* the other ranks wait for ever then, as if the MPI had no memory */
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    /* By MPI_Comm_split, because a duplicate would get copies of the program's attributes. */
    MPI_Errhandler handler = shim_hush(comm);
    code = INSIDE(PMPI_Comm_split(comm, 0, rank, &link->comm));
    shim_unhush(comm, handler);
    if (code == MPI_SUCCESS) code = PMPI_Comm_set_errhandler(link->comm, MPI_ERRORS_RETURN);
    if (code != MPI_SUCCESS) {
        free(link);
        return class_of(code);
    }
    *layer = (struct unisono_messages){link, (uint32_t)rank, (uint32_t)size, tags(), send, probe, receive, test, close_link};
    return 0;
}

#if defined OPEN_MPI || defined SMPI_H
#define COMM_OF(fortran) PMPI_Comm_f2c(fortran)
#elif defined MPI_ABI_VERSION
#define COMM_OF(fortran) PMPI_Comm_fromint(fortran)
#else
#define COMM_OF(fortran) ((MPI_Comm)(fortran))
#endif

SHIM_VISIBLE int unisono_messages_connect(int fortran_handle, struct unisono_messages *layer) {
    if (shim_is_foreign()) return UNISONO_MESSAGES_FOREIGN;
    return running() ? shim_connect(COMM_OF(fortran_handle), layer) : UNISONO_MESSAGES_NOT_RUNNING;
}
