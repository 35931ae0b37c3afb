/* Included by exports.c alone: the functions with counts of one width. No guard, as there are two widths. */

#undef LIST
#undef ROW
#undef ROWS
#undef SEND_ROW
#undef SEND_ROWS
#undef RECEIVE_ROW
#undef RECEIVE_ROWS
#define LIST(list) {.at = list, .wide = SHIM_WIDE}
#define ROW(address, elements, handle)                                                                                 \
    (struct shim_blocks) { .buffer = address, .count = elements, .type = SHIM_TYPE(handle) }
#define ROWS(address, lengths, starts, handle)                                                                         \
    (struct shim_blocks) {                                                                                             \
        .buffer = address, .counts = LIST(lengths), .displacements = LIST(starts), .type = SHIM_TYPE(handle)           \
    }
#define SEND_ROW const void *send, SHIM_COUNT send_count, shim_handle send_type
#define SEND_ROWS                                                                                                      \
    const void *send, const SHIM_COUNT *send_counts, const SHIM_DISPLACEMENT *send_starts, shim_handle send_type
#define RECEIVE_ROW void *receive, SHIM_COUNT count, shim_handle type
#define RECEIVE_ROWS void *receive, const SHIM_COUNT *counts, const SHIM_DISPLACEMENT *starts, shim_handle type

EXPORT(Bcast, (void *buffer, SHIM_COUNT count, shim_handle type, int root, shim_handle comm),
       (buffer, count, type, root, comm), shim_bcast(&c, buffer, count, SHIM_TYPE(type), root, SHIM_COMM(comm)))

EXPORT(Reduce,
       (const void *send, void *receive, SHIM_COUNT count, shim_handle type, shim_handle op, int root,
        shim_handle comm),
       (send, receive, count, type, op, root, comm),
       shim_reduce(&c, send, receive, count, SHIM_TYPE(type), SHIM_OP(op), root, SHIM_COMM(comm)))

EXPORT(Allreduce,
       (const void *send, void *receive, SHIM_COUNT count, shim_handle type, shim_handle op, shim_handle comm),
       (send, receive, count, type, op, comm),
       shim_allreduce(&c, send, receive, count, SHIM_TYPE(type), SHIM_OP(op), SHIM_COMM(comm)))

EXPORT(Gather, (SEND_ROW, RECEIVE_ROW, int root, shim_handle comm),
       (send, send_count, send_type, receive, count, type, root, comm),
       shim_gather(&c, false, ROW(send, send_count, send_type), ROW(receive, count, type), root, SHIM_COMM(comm)))

EXPORT(Gatherv, (SEND_ROW, RECEIVE_ROWS, int root, shim_handle comm),
       (send, send_count, send_type, receive, counts, starts, type, root, comm),
       shim_gather(&c, true, ROW(send, send_count, send_type), ROWS(receive, counts, starts, type), root,
                   SHIM_COMM(comm)))

EXPORT(Scatter, (SEND_ROW, RECEIVE_ROW, int root, shim_handle comm),
       (send, send_count, send_type, receive, count, type, root, comm),
       shim_scatter(&c, false, ROW(send, send_count, send_type), ROW(receive, count, type), root, SHIM_COMM(comm)))

EXPORT(Scatterv, (SEND_ROWS, RECEIVE_ROW, int root, shim_handle comm),
       (send, send_counts, send_starts, send_type, receive, count, type, root, comm),
       shim_scatter(&c, true, ROWS(send, send_counts, send_starts, send_type), ROW(receive, count, type), root,
                    SHIM_COMM(comm)))

EXPORT(Allgather, (SEND_ROW, RECEIVE_ROW, shim_handle comm), (send, send_count, send_type, receive, count, type, comm),
       shim_allgather(&c, false, ROW(send, send_count, send_type), ROW(receive, count, type), SHIM_COMM(comm)))

EXPORT(Allgatherv, (SEND_ROW, RECEIVE_ROWS, shim_handle comm),
       (send, send_count, send_type, receive, counts, starts, type, comm),
       shim_allgather(&c, true, ROW(send, send_count, send_type), ROWS(receive, counts, starts, type), SHIM_COMM(comm)))

EXPORT(Alltoall, (SEND_ROW, RECEIVE_ROW, shim_handle comm), (send, send_count, send_type, receive, count, type, comm),
       shim_alltoall(&c, false, ROW(send, send_count, send_type), ROW(receive, count, type), SHIM_COMM(comm)))

EXPORT(Alltoallv, (SEND_ROWS, RECEIVE_ROWS, shim_handle comm),
       (send, send_counts, send_starts, send_type, receive, counts, starts, type, comm),
       shim_alltoall(&c, true, ROWS(send, send_counts, send_starts, send_type), ROWS(receive, counts, starts, type),
                     SHIM_COMM(comm)))
