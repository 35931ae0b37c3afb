/*
 * placed: communicators of all kinds, used by short and long messages with every root, and freed in turn, so that later
 * ones get memory that other ranks had before. UNISONO_STATS=1 then says how many pages lie on another NUMA node than the
 * rank that owns them (.ci/numa).
 */
#include "test.h"

enum { LONG = 300000 };
static unsigned char send[16 * 4096], receive[16 * 4096], data[LONG];

static unsigned char byte(int from, int at, int seed) { return (unsigned char)(from * 37 + at * 7 + seed); }

/* Roots write what others read, and read what others write: blocks differ from rank to rank. */
static void use(MPI_Comm comm, int seed, const char *what) {
    static const int lengths[] = {5, 3000, LONG};
    int me = rank_in(comm), size = size_of(comm), block = 1000 + seed % 7;
    for (int root = 0; root < size; root++) {
        int bytes = lengths[(root + seed) % 3], wrong = 0;
        for (int i = 0; i < bytes; i++) data[i] = me == root ? byte(root, i, seed) : 0;
        MPI_Bcast(data, bytes, MPI_BYTE, root, comm);
        for (int i = 0; i < bytes; i++) wrong += data[i] != byte(root, i, seed);
        expect(!wrong, "%s: bcast of %d bytes from %d", what, bytes, root);
        for (int i = 0; i < size * block; i++) send[i] = byte(me, i, seed);
        MPI_Scatter(send, block, MPI_BYTE, receive, block, MPI_BYTE, root, comm);
        for (int i = wrong = 0; i < block; i++) wrong += receive[i] != byte(root, me * block + i, seed);
        expect(!wrong, "%s: scatter from %d", what, root);
        MPI_Gather(send, block, MPI_BYTE, receive, block, MPI_BYTE, root, comm);
        for (int i = wrong = 0; me == root && i < size * block; i++)
            wrong += receive[i] != byte(i / block, i % block, seed);
        expect(!wrong, "%s: gather to %d", what, root);
    }
    MPI_Alltoall(send, block, MPI_BYTE, receive, block, MPI_BYTE, comm);
    int wrong = 0, sum = 0, mine = me + seed;
    for (int i = 0; i < size * block; i++) wrong += receive[i] != byte(i / block, me * block + i % block, seed);
    expect(!wrong, "%s: alltoall", what);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
    expect(sum == size * seed + size * (size - 1) / 2, "%s: allreduce", what);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int me = rank_in(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD);
    if (size > 16) return fprintf(stderr, "placed: at most 16 ranks\n"), MPI_Abort(MPI_COMM_WORLD, 2);
    use(MPI_COMM_WORLD, 1, "world");
    for (int round = 0; round < 6; round++) {
        MPI_Comm dup, split, group;
        MPI_Group all, half;
        MPI_Comm_dup(MPI_COMM_WORLD, &dup);
        use(dup, round, "dup");
        /* Neighbours, then ranks half of all apart; in turn the other way round. */
        int color = round % 2 ? me % ((size + 1) / 2) : me / 2;
        MPI_Comm_split(MPI_COMM_WORLD, color, round % 3 == 2 ? -me : me, &split);
        use(split, round + 10, "split");
        MPI_Comm_group(split, &all);
        MPI_Group_incl(all, 1 + (size_of(split) > 1), (int[]){0, 1}, &half);
        if (rank_in(split) < 2) {
            MPI_Comm_create_group(split, half, round, &group);
            use(group, round + 20, "group");
            MPI_Comm_free(&group);
        }
        MPI_Group_free(&half);
        MPI_Group_free(&all);
        MPI_Comm_free(&split);
        MPI_Comm_free(&dup);
    }
    return finish("placed");
}
