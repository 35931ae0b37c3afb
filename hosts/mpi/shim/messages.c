/*
 * Point-to-point messages of the underlying MPI (include/unisono_messages.h), on a communicator that the program does not have. An MPI can make
 * only so many communicators (MPICH about 2000), and the program may need them all. So the messages of all communicators go over that of
 * MPI_COMM_WORLD, each with tags of its own. Its ranks agree on a number, from which its tags follow.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "unisono_messages.h"

/* One communicator's messages. */
struct link {
    MPI_Comm comm;
    int number;       /* its tags' among those on `comm`; OWN: `comm` is for it alone */
    int first;        /* its first tag */
    int size, *ranks; /* its ranks' on `comm`; null: the same */
    int found;        /* whose message was found last by a probe for any rank's, on `comm` */
};
enum { OWN = -1 };

/* Calls the MPI; collectives that it calls meanwhile are not taken over. */
#define INSIDE(call)                                                                                                   \
    ({                                                                                                                 \
        struct shim_thread *self_ = shim_thread();                                                                     \
        self_->inside++;                                                                                               \
        int code_ = call;                                                                                              \
        self_->inside--;                                                                                               \
        code_;                                                                                                         \
    })

/* A layer's functions ask it at each call: MPI was initialised when they were connected. */
static bool ended(void) {
    int finalized = 0;
    PMPI_Finalized(&finalized);
    return finalized;
}

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

static int rank_of(const struct link *link, uint32_t rank) {
    return link->ranks ? link->ranks[rank] : (int)rank;
}

static bool has(const struct link *link, int rank) {
    for (int r = 0; link->ranks && r < link->size; r++)
        if (link->ranks[r] == rank) return true;
    return !link->ranks;
}

static int send(void *context, const void *bytes, uint64_t len, uint32_t to, int tag, uintptr_t *request) {
    const struct link *link = context;
    MPI_Request begun;
    if (ended()) return UNISONO_MESSAGES_NOT_RUNNING;
    int code = INSIDE(PMPI_Isend(bytes, (int)len, MPI_BYTE, rank_of(link, to), link->first + tag, link->comm, &begun));
    *request = (uintptr_t)begun;
    return class_of(code);
}

/* Receives what no rank of the communicator has sent: one that has failed had sent it on an earlier communicator of the same number. */
static int drop(const struct link *link, int count, const MPI_Status *status) {
    char *bytes = malloc((size_t)count + 1);
    if (!bytes) return MPI_ERR_NO_MEM;
    int code = INSIDE(PMPI_Recv(bytes, count, MPI_BYTE, status->MPI_SOURCE, status->MPI_TAG, link->comm, MPI_STATUS_IGNORE));
    free(bytes);
    return code;
}

static int probe(void *context, uint32_t from, int tag, int *found, uint64_t *len) {
    struct link *link = context;
    MPI_Status status;
    int count = 0, source = from == UNISONO_MESSAGES_ANY ? MPI_ANY_SOURCE : rank_of(link, from);
    if (ended()) return UNISONO_MESSAGES_NOT_RUNNING;
    int code = INSIDE(PMPI_Iprobe(source, link->first + tag, link->comm, found, &status));
    if (code == MPI_SUCCESS && *found) code = PMPI_Get_count(&status, MPI_BYTE, &count);
    if (code == MPI_SUCCESS && *found && from == UNISONO_MESSAGES_ANY && !has(link, status.MPI_SOURCE))
        *found = 0, code = drop(link, count, &status);
    if (code == MPI_SUCCESS && *found) link->found = status.MPI_SOURCE;
    *len = (uint64_t)count;
    return class_of(code);
}

/* What was found is received from where it was found: under MPICH 5.0 over UCX a receive from MPI_ANY_SOURCE does not become complete. */
static int receive(void *context, void *bytes, uint64_t len, uint32_t from, int tag, uintptr_t *request) {
    const struct link *link = context;
    MPI_Request begun;
    int source = from == UNISONO_MESSAGES_ANY ? link->found : rank_of(link, from);
    if (ended()) return UNISONO_MESSAGES_NOT_RUNNING;
    int code = INSIDE(PMPI_Irecv(bytes, (int)len, MPI_BYTE, source, link->first + tag, link->comm, &begun));
    *request = (uintptr_t)begun;
    return class_of(code);
}

static int expect(void *context, void *bytes, uint64_t room, uint32_t from, int tag, uintptr_t *request) {
    return receive(context, bytes, room, from, tag, request);
}

static int cancel(void *context, uintptr_t request, int *came, uint64_t *len) {
    (void)context;
    MPI_Request asked = (MPI_Request)request;
    MPI_Status status;
    int cancelled = 0, count = 0;
    if (ended()) return UNISONO_MESSAGES_NOT_RUNNING;
    int code = INSIDE(PMPI_Cancel(&asked));
    if (code == MPI_SUCCESS) code = INSIDE(PMPI_Wait(&asked, &status));
    if (code == MPI_SUCCESS) code = PMPI_Test_cancelled(&status, &cancelled);
    if (code == MPI_SUCCESS && !cancelled) code = PMPI_Get_count(&status, MPI_BYTE, &count);
    *came = !cancelled, *len = (uint64_t)count;
    return class_of(code);
}

static int test(void *context, uintptr_t *request, int *done, uint64_t *len) {
    (void)context;
    MPI_Request asked = (MPI_Request)*request;
    MPI_Status status;
    int count = 0;
    if (ended()) return UNISONO_MESSAGES_NOT_RUNNING;
    int code = INSIDE(PMPI_Test(&asked, done, len ? &status : MPI_STATUS_IGNORE));
    if (code == MPI_SUCCESS && len && *done) code = PMPI_Get_count(&status, MPI_BYTE, &count), *len = (uint64_t)count;
    *request = (uintptr_t)asked;
    return class_of(code);
}

/* ---- Numbers of communicators on that of MPI_COMM_WORLD ---------------------------------------------- */

/* Bit n of this process's numbers is set while n is free here. A number is taken by the ranks of one communicator; others, that have no
 * process in common with it, may have the same one. After an error a communicator is not closed, since messages may be left: its
 * number is not free again. */
enum { NUMBERS = 2048, WORD = 64, WORDS = NUMBERS / WORD };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t numbers[WORDS];
static bool agreeing; /* a thread has offered them; another one offers none meanwhile, and so does not take the same one */
static MPI_Comm shared; /* null: none yet */

static void set_free(int number, bool is_free) {
    uint64_t bit = UINT64_C(1) << number % WORD;
    if (is_free) numbers[number / WORD] |= bit;
    else numbers[number / WORD] &= ~bit;
}

void shim_share_world(const struct unisono_messages *layer) {
    const struct link *link = layer->context;
    pthread_mutex_lock(&lock);
    if (!shared) {
        memset(numbers, 0xff, sizeof numbers);
        set_free(0, false);
        shared = link->comm;
    }
    pthread_mutex_unlock(&lock);
}

/* A number that is free on all ranks, which takes it; collective. OWN: there is none. */
static int take_number(MPI_Comm comm) {
    uint64_t offered[WORDS] = {0}, agreed[WORDS];
    int number = OWN;
    pthread_mutex_lock(&lock);
    bool offers = shared && !agreeing && !shim_hears_failures; /* survivors must not send on a communicator that has the dead */
    if (offers) memcpy(offered, numbers, sizeof offered), agreeing = true;
    pthread_mutex_unlock(&lock);
    int code = INSIDE(PMPI_Allreduce(offered, agreed, WORDS, MPI_UINT64_T, MPI_BAND, comm));
    pthread_mutex_lock(&lock);
    for (int w = 0; code == MPI_SUCCESS && number == OWN && w < WORDS; w++)
        if (agreed[w]) number = w * WORD + __builtin_ctzll(agreed[w]);
    if (number != OWN) set_free(number, false);
    if (offers) agreeing = false;
    pthread_mutex_unlock(&lock);
    return number;
}

static void give_number(int number) {
    pthread_mutex_lock(&lock);
    set_free(number, true);
    pthread_mutex_unlock(&lock);
}

bool shim_ending;

static int close_link(void *context) {
    struct link *link = context;
    int code = MPI_SUCCESS;
    if (link->number != OWN) give_number(link->number);
    else if (running() && !shim_ending && link->comm != shared) code = INSIDE(PMPI_Comm_free(&link->comm));
    free(link->ranks);
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

/* A communicator's tags on that of MPI_COMM_WORLD; at least 16, since an MPI has 32768 or more. */
static uint64_t tags_of_each(void) { return tags() / NUMBERS; }

/* Connects over a communicator for this layer alone, with so many tags. */
static int connect(MPI_Comm comm, uint64_t tags, struct unisono_messages *layer) {
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
    link->number = OWN, link->first = 0, link->size = size, link->ranks = NULL, link->found = rank;
    *layer = (struct unisono_messages){link, (uint32_t)rank, (uint32_t)size, tags, send, probe, receive, expect, cancel,
                                       test, close_link};
    return 0;
}

int shim_connect(MPI_Comm comm, struct unisono_messages *layer) { return connect(comm, tags(), layer); }

int shim_connect_shared(MPI_Comm comm, struct unisono_messages *layer) {
    pthread_mutex_lock(&lock);
    bool first = comm == MPI_COMM_WORLD && !shared;
    pthread_mutex_unlock(&lock);
    int rank, size, number = first ? OWN : take_number(comm);
    if (number == OWN) return connect(comm, first ? tags_of_each() : tags(), layer);
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    struct link *link = malloc(sizeof *link);
    int *ranks = shim_ranks_in_world(comm, size);
    if (!link || !ranks) {
        free(link), free(ranks);
        return give_number(number), MPI_ERR_NO_MEM;
    }
    *link = (struct link){shared, number, number * (int)tags_of_each(), size, ranks, ranks[rank]};
    *layer = (struct unisono_messages){link, (uint32_t)rank, (uint32_t)size, tags_of_each(), send, probe, receive, expect, cancel,
                                       test, close_link};
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
