/*
 * A layer of unisono_messages.h for SMPI that waits where other layers poll: in SMPI a poll that finds nothing costs
 * virtual time, or no time passes at all.
 *
 * Receives are posted when their message is first asked for, to memory of this layer. After some calls in a row that found
 * nothing new the process waits for whichever of its requests is complete first, and goes on at that very moment. No
 * clock is read, and nothing is tested twice.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "waiting.h"

/* More calls than any poll of a machine makes before it has posted all that it can. */
enum { PATIENCE = 64 };

struct posted {
    struct posted *next;
    void *memory; /* of a receive */
    uint64_t len;
    uint32_t from;
    int tag;
    bool ended, claimed; /* asked for by `receive`, or a send: `test` may end it */
};

struct link {
    MPI_Comm comm;
    uint64_t most; /* bytes of a message */
    struct posted *oldest, **newest;
    MPI_Request *pending; /* those that have not ended, and whose they are */
    struct posted **owners;
    int count, room, failures;
};

static struct posted *post(struct link *link) {
    struct posted *new = calloc(1, sizeof *new);
    if (link->count == link->room) {
        link->room = link->room ? 2 * link->room : 16;
        link->pending = realloc(link->pending, (size_t)link->room * sizeof *link->pending);
        link->owners = realloc(link->owners, (size_t)link->room * sizeof *link->owners);
    }
    if (!new || !link->pending || !link->owners) abort();
    *link->newest = new;
    link->newest = &new->next;
    link->owners[link->count] = new;
    link->failures = 0;
    return new;
}

static void forget(struct link *link, struct posted *gone) {
    struct posted **at = &link->oldest;
    while (*at != gone) at = &(*at)->next;
    *at = gone->next;
    if (!gone->next) link->newest = at;
    free(gone->memory);
    free(gone);
}

/* A call has found nothing. */
static int failed(struct link *link) {
    MPI_Status status;
    int which, bytes = 0;
    if (++link->failures < PATIENCE) return 0;
    link->failures = 0;
    int code = PMPI_Waitany(link->count, link->pending, &which, &status);
    if (code != MPI_SUCCESS || which == MPI_UNDEFINED) return MPI_ERR_OTHER;
    struct posted *ended = link->owners[which];
    if (ended->memory) PMPI_Get_count(&status, MPI_BYTE, &bytes), ended->len = (uint64_t)bytes;
    ended->ended = true;
    link->count--;
    memmove(link->pending + which, link->pending + which + 1, (size_t)(link->count - which) * sizeof *link->pending);
    memmove(link->owners + which, link->owners + which + 1, (size_t)(link->count - which) * sizeof *link->owners);
    return 0;
}

static int send(void *context, const void *bytes, uint64_t len, uint32_t to, int tag, uintptr_t *request) {
    struct link *link = context;
    struct posted *new = post(link);
    new->claimed = true;
    *request = (uintptr_t)new;
    return PMPI_Isend(bytes, (int)len, MPI_BYTE, (int)to, tag, link->comm, &link->pending[link->count++]);
}

static int probe(void *context, uint32_t from, int tag, int *found, uint64_t *len) {
    struct link *link = context;
    struct posted *at = link->oldest;
    while (at && (at->claimed || at->from != from || at->tag != tag)) at = at->next;
    *found = at && at->ended;
    *len = *found ? at->len : 0;
    if (at) return *found ? 0 : failed(link);
    at = post(link);
    at->from = from, at->tag = tag;
    at->memory = malloc(link->most + 1);
    if (!at->memory) return MPI_ERR_NO_MEM;
    return PMPI_Irecv(at->memory, (int)link->most, MPI_BYTE, (int)from, tag, link->comm, &link->pending[link->count++]);
}

static int receive(void *context, void *bytes, uint64_t len, uint32_t from, int tag, uintptr_t *request) {
    struct link *link = context;
    struct posted *at = link->oldest;
    while (at && (at->claimed || at->from != from || at->tag != tag)) at = at->next;
    if (!at || !at->ended || at->len != len) return MPI_ERR_TRUNCATE;
    memcpy(bytes, at->memory, len);
    at->claimed = true;
    link->failures = 0;
    *request = (uintptr_t)at;
    return 0;
}

static int test(void *context, uintptr_t *request, int *done, uint64_t *len) {
    struct link *link = context;
    struct posted *asked = (struct posted *)*request;
    *done = asked->ended;
    if (!*done) return failed(link);
    if (len) *len = asked->len;
    forget(link, asked);
    *request = 0;
    link->failures = 0;
    return 0;
}

static int close_link(void *context) {
    struct link *link = context;
    int code = PMPI_Comm_free(&link->comm);
    free(link->pending);
    free(link->owners);
    free(link);
    return code;
}

int waiting_connect(MPI_Comm comm, uint64_t most, struct unisono_messages *layer) {
    int rank, size;
    struct link *link = calloc(1, sizeof *link);
    if (!link) return MPI_ERR_NO_MEM;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    link->newest = &link->oldest;
    link->most = most;
    int code = PMPI_Comm_dup(comm, &link->comm);
    *layer = (struct unisono_messages){link,  (uint32_t)rank, (uint32_t)size, UINT64_C(1) << 31, send, probe, receive,
                                       NULL, NULL, test, close_link};
    return code;
}
