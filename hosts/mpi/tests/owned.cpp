// A C++ program's own blocks, by new and containers, are lent where libunisono_heap.so is preloaded:
// they grow, move, are freed by another thread, and collectives read them in between. Rank 0 prints how many checks passed.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <thread>
#include <vector>

static long passed, failed;

static void check(bool holds, const char *what) {
    holds ? passed++ : failed++;
    if (!holds) std::fprintf(stderr, "owned.cpp: %s\n", what);
}

struct alignas(256) Wide {
    double values[32];
};

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    // A vector that grows by and by: each time it lies elsewhere.
    std::vector<long> mine;
    for (int round = 0; round < 8; round++) {
        mine.resize(mine.size() * 2 + 10000 + round, rank + 1);
        std::fill(mine.begin(), mine.end(), rank + 1 + round);
        std::vector<long> sum(mine.size(), -1);
        MPI_Allreduce(mine.data(), sum.data(), static_cast<int>(mine.size()), MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        long expected = static_cast<long>(ranks) * (ranks + 1) / 2 + static_cast<long>(round) * ranks;
        check(std::count(sum.begin(), sum.end(), expected) == static_cast<long>(sum.size()), "allreduce of a vector");
        if (round % 3 == 2) mine.shrink_to_fit();
    }

    // Blocks of aligned elements, one for each rank; another thread frees them.
    for (int round = 0; round < 4; round++) {
        const int each = 100 + round;
        std::unique_ptr<Wide[]> from(new Wide[each * ranks]), to(new Wide[each * ranks]);
        check(reinterpret_cast<std::uintptr_t>(from.get()) % 256 == 0, "alignment");
        for (int i = 0; i < each * ranks; i++) std::fill_n(from[i].values, 32, rank * 1000 + i / each + round);
        MPI_Alltoall(from.get(), each * 32, MPI_DOUBLE, to.get(), each * 32, MPI_DOUBLE, MPI_COMM_WORLD);
        bool right = true;
        for (int i = 0; i < each * ranks; i++) right = right && to[i].values[31] == (i / each) * 1000 + rank + round;
        check(right, "alltoall of aligned elements");
        std::thread([blocks = std::move(from)]() mutable { blocks.reset(); }).join();
    }

    // What new can't give is told as ever, and memory is as it was.
    try {
        std::unique_ptr<char[]> all(new char[static_cast<std::size_t>(1) << 46]);
        check(false, "64 TiB");
    } catch (const std::bad_alloc &) {
        check(true, "64 TiB");
    }
    std::vector<char> text(300000, rank == 0 ? 'x' : 'y');
    MPI_Bcast(text.data(), static_cast<int>(text.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
    check(std::count(text.begin(), text.end(), 'x') == 300000, "bcast of a vector");

    long sums[2] = {passed, failed}, all[2];
    MPI_Reduce(sums, all, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) std::printf("owned: %ld passed, %ld failed\n", all[0], all[1]);
    MPI_Finalize();
    return failed > 0;
}
