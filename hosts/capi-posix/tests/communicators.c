/* Making communicators from C; run by c.rs in five processes. */
#include "check.h"

/* The sum over `comm` of its processes' ranks in the job. */
static int sum(unisono_comm *comm, int world) {
    int64_t mine = world, all = -1;
    CHECK(unisono_allreduce(comm, &mine, &all, 1, UNISONO_I64, UNISONO_SUM) == UNISONO_OK);
    return (int)all;
}

/* A broadcast on a new communicator, whose memory has the papers' queues if the table uses them. */
static void broadcast(unisono_comm *comm) {
    int64_t last = unisono_size(comm) - 1, word = unisono_rank(comm);
    CHECK(unisono_bcast(comm, &word, sizeof word, (uint32_t)last) == UNISONO_OK && word == last);
    CHECK(unisono_ran(comm) == (getenv("UNISONO_RULES") ? UNISONO_ALGORITHM_CICO : UNISONO_ALGORITHM_POSTED));
}

int main(void) {
    enum { SIZE = 5 };
    unisono_comm *world, *dup, *part, *group, *other;
    CHECK(unisono_join(&world) == UNISONO_OK);
    int me = unisono_rank(world);
    CHECK(unisono_size(world) == SIZE);

    for (int round = 0; round < 300; round++) {
        CHECK(unisono_comm_dup(world, &dup) == UNISONO_OK);
        CHECK(unisono_rank(dup) == me && unisono_size(dup) == SIZE);
        if (round % 10 == 0) {
            CHECK(sum(dup, me) == 10);
            broadcast(dup);
        }
        CHECK(unisono_comm_free(&dup) == UNISONO_OK && dup == NULL);
    }
    CHECK(unisono_comm_free(&dup) == UNISONO_OK);

    /* Active requests are completed before a dup and a split; a communicator with requests is not freed. */
    unisono_request *request;
    int64_t before = me, total = -1;
    CHECK(unisono_comm_dup(world, &other) == UNISONO_OK);
    CHECK(unisono_iallreduce(other, &before, &total, 1, UNISONO_I64, UNISONO_SUM, &request) == UNISONO_OK);
    CHECK(unisono_comm_dup(other, &dup) == UNISONO_OK && total == 10);
    CHECK(unisono_comm_free(&other) == UNISONO_ERR_REQUEST && other != NULL);
    CHECK(unisono_wait(&request) == UNISONO_OK);
    CHECK(unisono_iallreduce(other, &before, &total, 1, UNISONO_I64, UNISONO_MAX, &request) == UNISONO_OK);
    CHECK(unisono_comm_split(other, 1, 0, &part) == UNISONO_OK && total == 4);
    CHECK(unisono_wait(&request) == UNISONO_OK && sum(other, me) == 10);
    CHECK(unisono_comm_free(&other) == UNISONO_OK && sum(dup, me) == 10 && sum(part, me) == 10);
    CHECK(unisono_comm_free(&dup) == UNISONO_OK && unisono_comm_free(&part) == UNISONO_OK);

    /* A part of ranks 4, 2 and 0, in this order, without 1 and 3. */
    uint32_t color = me % 2 ? UNISONO_UNDEFINED : 7;
    part = (unisono_comm *)&me;
    CHECK(unisono_comm_split(world, color, -me, &part) == UNISONO_OK);
    CHECK((part == NULL) == (me % 2));
    if (part) {
        CHECK(unisono_size(part) == 3 && unisono_rank(part) == (4 - me) / 2);
        CHECK(sum(part, me) == 6);
        broadcast(part);
        /* A communicator made from another one outlives it. */
        CHECK(unisono_comm_dup(part, &other) == UNISONO_OK);
        CHECK(unisono_comm_free(&part) == UNISONO_OK);
        CHECK(sum(other, me) == 6);
        CHECK(unisono_free(other) == UNISONO_OK);
    }

    const uint32_t odd[] = {3, 1}, even[] = {0, 2, 4}, twice[] = {0, 1, 2, 3, 4, 0};
    CHECK(unisono_comm_create_group(world, me % 2 ? odd : even, me % 2 ? 2 : 3, 9, &group) == UNISONO_OK);
    CHECK(unisono_rank(group) == (me % 2 ? (3 - me) / 2 : me / 2));
    CHECK(sum(group, me) == (me % 2 ? 4 : 6));
    broadcast(group);
    CHECK(unisono_comm_free(&group) == UNISONO_OK);

    /* An argument that one rank refuses fails the communicator on all ranks; all renew it, and continue. */
    CHECK(unisono_comm_dup(world, &dup) == UNISONO_OK);
    other = dup;
    CHECK(unisono_comm_renew(&dup) == UNISONO_ERR_ARGUMENT && dup == other);
    CHECK(strstr(text(), "the communicator has not failed"));
    for (int round = 0; round < 2 * SIZE; round++) {
        CHECK(sum(dup, me) == 10);
        CHECK(unisono_bcast_init(dup, &total, sizeof total, 0, &request) == UNISONO_OK);
        CHECK(unisono_barrier(world) == UNISONO_OK);
        int wrong = me == round % SIZE;
        int failed = unisono_bcast(dup, &total, sizeof total, wrong ? 77 : 0);
        if (failed == UNISONO_OK) failed = unisono_barrier(dup);
        CHECK(failed == (wrong ? UNISONO_ERR_ARGUMENT : UNISONO_ERR_PEER));
        CHECK(strstr(text(), "root is 77, must be below 5"));
        CHECK(wrong || strstr(text(), " refused operation "));
        CHECK(unisono_start(request) == UNISONO_ERR_PEER);
        CHECK(unisono_comm_renew(&dup) == UNISONO_ERR_REQUEST && dup != NULL);
        CHECK(unisono_request_free(&request) == UNISONO_OK);
        CHECK(unisono_comm_renew(&dup) == UNISONO_OK);
        CHECK(unisono_rank(dup) == me && unisono_size(dup) == SIZE);
    }
    CHECK(sum(dup, me) == 10 && unisono_comm_free(&dup) == UNISONO_OK);

    CHECK(unisono_comm_renew(NULL) == UNISONO_ERR_NULL && unisono_comm_renew(&dup) == UNISONO_ERR_NULL);
    CHECK(unisono_comm_create_group(world, twice, 6, 0, &group) == UNISONO_ERR_ARGUMENT && group == NULL);
    CHECK(strstr(text(), "distinct ranks"));
    CHECK(unisono_comm_create_group(world, NULL, 6, 0, &group) == UNISONO_ERR_NULL);
    CHECK(unisono_comm_dup(world, NULL) == UNISONO_ERR_NULL);
    CHECK(unisono_comm_dup(NULL, &dup) == UNISONO_ERR_NULL);
    CHECK(unisono_comm_split(NULL, 0, 0, &dup) == UNISONO_ERR_NULL);
    CHECK(unisono_comm_free(NULL) == UNISONO_ERR_NULL);

    /* Until no arena has room: all ranks get the error, and nothing is lost. */
    static unisono_comm *all[1 << 12];
    int made = 0, code;
    while ((code = unisono_comm_dup(world, &all[made])) == UNISONO_OK) made++;
    CHECK(code == UNISONO_ERR_MEMORY && all[made] == NULL && made > 0);
    CHECK(strstr(text(), " bytes, ") && strstr(text(), " are free"));
    CHECK(sum(world, me) == 10 && sum(all[made - 1], me) == 10);
    while (made > 0) CHECK(unisono_comm_free(&all[--made]) == UNISONO_OK);
    CHECK(unisono_barrier(world) == UNISONO_OK);
    CHECK(unisono_comm_dup(world, &dup) == UNISONO_OK && sum(dup, me) == 10);
    CHECK(unisono_comm_free(&dup) == UNISONO_OK);
    CHECK(unisono_comm_free(&world) == UNISONO_OK && world == NULL);

    /* A communicator on the caller's own memory does not belong to a job. */
    static _Alignas(4096) unsigned char memory[1 << 20];
    unisono_params params;
    CHECK(unisono_params_init(&params, sizeof params, 1) == UNISONO_OK);
    CHECK(unisono_create(memory, sizeof memory, &params) == UNISONO_OK);
    CHECK(unisono_attach(memory, sizeof memory, 0, &world) == UNISONO_OK);
    CHECK(unisono_comm_dup(world, &dup) == UNISONO_ERR_HOST && dup == NULL);
    CHECK(unisono_comm_renew(&world) == UNISONO_ERR_HOST && world != NULL);
    CHECK(unisono_free(world) == UNISONO_OK);
    return 0;
}
