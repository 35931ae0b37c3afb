"""Python's processes, whose blocks are their own: run with libunisono_heap.so preloaded by .ci/test-mpi."""

import multiprocessing
import os
import subprocess
import sys

block = bytearray(b"x" * 3_000_000)


def change(queue):
    block[5] = ord("c")
    queue.put((bytes(block[:8]), len(block), bytes(range(200)) * 1000))


def length(part):
    block[:] = b"y" * len(block)
    return len(part)


if __name__ == "__main__":
    assert "memfd:unisono" in open("/proc/self/maps").read(), "the library is not preloaded"
    passed = 0
    for method in ["fork", "spawn", "forkserver"]:
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        child = context.Process(target=change, args=(queue,))
        child.start()
        assert queue.get(timeout=60) == (b"xxxxxcxx", 3_000_000, bytes(range(200)) * 1000)
        child.join()
        assert child.exitcode == 0 and block == b"x" * 3_000_000
        with context.Pool(3) as pool:
            assert pool.map(length, [bytes(block[: 100_000 + i]) for i in range(20)]) == [100_000 + i for i in range(20)]
        assert block == b"x" * 3_000_000
        passed += 1
    assert subprocess.run([sys.executable, "-c", "print(len(bytearray(5_000_000)))"], capture_output=True).stdout == b"5000000\n"
    assert os.system("exit 3") >> 8 == 3
    print(f"children: {passed + 1} passed, 0 failed")
