/* Calls the collectives that liar.c lies about: doubles, whose sums depend on the order. Exits 0 if all is well. With -DWAITED they are
 * nonblocking, with -DPERSISTENT persistent. */
#include "../waited.h"

enum { N = 24, MOST = 8 };

int main(int argc, char **argv) {
    int rank, size, counts[MOST], starts[MOST];
    double mine[N], all[N * MOST];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > MOST) MPI_Abort(MPI_COMM_WORLD, 2);
    for (int i = 0; i < N; i++) mine[i] = (i % 2 ? -0.1 : 0.1) / (rank + 3);
    for (int r = 0; r < size; r++) counts[r] = N - r, starts[r] = r * N;
    MPI_Bcast(mine, N, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Allreduce(mine, all, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Alltoall(mine, N / MOST, MPI_DOUBLE, all, N / MOST, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Scan(mine, all, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Exscan(mine, all, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double many[N * MOST];
    int parts[MOST], from[MOST], to[MOST], ones[MOST];
    MPI_Datatype types[MOST], pairs;
    for (int i = 0; i < N * MOST; i++) many[i] = (i + 1) * mine[i % N];
    for (int r = 0; r < size; r++) parts[r] = 2 * r + 1;
    MPI_Reduce_scatter(many, all, parts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Reduce_scatter_block(MPI_IN_PLACE, many, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    /* From pairs that have a hole, to rows. */
    MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &pairs);
    MPI_Type_commit(&pairs);
    for (int r = 0; r < size; r++) from[r] = 8 * 3 * r, to[r] = 8 * 2 * r, ones[r] = 1, parts[r] = 2, types[r] = MPI_DOUBLE;
    MPI_Datatype sent[MOST];
    for (int r = 0; r < size; r++) sent[r] = pairs;
    MPI_Alltoallw(mine, ones, from, sent, all, parts, to, types, MPI_COMM_WORLD);
    MPI_Gatherv(mine, N - rank, MPI_DOUBLE, all, counts, starts, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
