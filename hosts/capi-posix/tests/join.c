/* The C library's start-up, from C. Run by c.rs; the argument says which case. */
#include "check.h"

int main(int argc, char **argv) {
    CHECK(argc == 2);
    unisono_comm *comm = (unisono_comm *)&argc;
    CHECK(unisono_join(NULL) == UNISONO_ERR_NULL);
    if (!strcmp(argv[1], "alone")) {
        CHECK(unisono_join(&comm) == UNISONO_ERR_HOST && comm == NULL);
        CHECK(strstr(text(), "unisono run"));
        CHECK(unisono_free(comm) == UNISONO_OK);
        return 0;
    }
    CHECK(unisono_join(&comm) == UNISONO_OK);
    int rank = unisono_rank(comm), size = unisono_size(comm);
    CHECK(size == 3 && rank >= 0 && rank < size);
    if (!strcmp(argv[1], "death")) {
        CHECK(unisono_barrier(comm) == UNISONO_OK);
        if (rank == 1) return 7;
        CHECK(unisono_barrier(comm) == UNISONO_ERR_DIED);
        CHECK(strstr(text(), "rank 1"));
        return 0;
    }
    static char bytes[1 << 20];
    for (int root = 0; root < size; root++) {
        memset(bytes, rank == root ? root + 1 : 0, sizeof bytes);
        CHECK(unisono_bcast(comm, bytes, sizeof bytes, (uint32_t)root) == UNISONO_OK);
        for (size_t i = 0; i < sizeof bytes; i++) CHECK(bytes[i] == root + 1);
    }
    double mine = rank + 1, sum;
    CHECK(unisono_allreduce(comm, &mine, &sum, 1, UNISONO_F64, UNISONO_SUM) == UNISONO_OK && sum == 6);
    CHECK(unisono_barrier(comm) == UNISONO_OK);
    CHECK(unisono_free(comm) == UNISONO_OK);
    return 0;
}
