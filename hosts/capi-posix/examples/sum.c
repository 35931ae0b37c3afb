#include <stdio.h>
#include <unisono_posix.h>

static int failed(const char *call) {
    char text[160];
    unisono_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s\n", call, text);
    return 1;
}

int main(void) {
    unisono_comm *comm;
    double mine, sum;
    if (unisono_join(&comm) != UNISONO_OK) return failed("unisono_join");
    mine = unisono_rank(comm) + 1;
    if (unisono_allreduce(comm, &mine, &sum, 1, UNISONO_F64, UNISONO_SUM) != UNISONO_OK) return failed("unisono_allreduce");
    printf("rank %d of %d: the sum is %g\n", unisono_rank(comm), unisono_size(comm), sum);
    return unisono_free(comm) != UNISONO_OK;
}
