#!/bin/sh
# run.sh DIRECTORY: does UNISONO_VERIFY=1 see a difference, and none where there is none? Under each MPI that is here, with
# DIRECTORY/libunisono_<mpi>.so preloaded, and liar.c as the MPI that differs. Ends with "N passed, N failed".
set -u

. "$(dirname "$0")/../common.sh"

# expect good|WORDS MPI LIAR LIAR_AT LIAR_BY: it ends well, or ends with a line that has the words
expect() {
    wanted=$1
    shift
    start "$1" 3 "$work/victim_$1" "LD_PRELOAD=$libraries/libunisono_$1.so:$work/liar_$1.so" UNISONO_VERIFY=1 \
        "LIAR=$2" "LIAR_AT=$3" "LIAR_BY=$4"
    status=$?
    said=$(grep 'unisono: verify:' "$work/output" | head -1)
    if [ "$wanted" = good ] && [ $status -eq 0 ] && [ -z "$said" ]; then passed=$((passed + 1))
    elif [ "$wanted" != good ] && [ $status -ne 0 ] && echo "$said" | grep -q "$wanted"; then passed=$((passed + 1))
    else
        wrong "$*: wanted $wanted, status $status, said: $said"
        head -20 "$work/output" >&2
    fi
}

for mpi in openmpi mpich; do
    present $mpi mpicc || continue
    "mpicc.$mpi" -std=c11 -O1 -Wall -Wextra -Werror -fPIC -shared "$here/liar.c" -o "$work/liar_$mpi.so" -ldl -lm &&
        "mpicc.$mpi" -std=c11 -O1 -Wall -Wextra -Werror "$here/victim.c" -o "$work/victim_$mpi" || exit 1
    ranks="among 3 ranks, rank 1"
    expect good $mpi Nothing 0 1
    expect "MPI_Bcast $ranks: element 23 of block 0 of 1 differs" $mpi Bcast 23 1e-12
    expect "MPI_Bcast $ranks: element 5 " $mpi Bcast 5 ulp
    # An order of the ranks explains the last bit, not more.
    expect good $mpi Allreduce 7 ulp
    expect "MPI_Allreduce $ranks: element 7 of block 0 of 1 differs" $mpi Allreduce 7 1e-12
    expect good $mpi Scan 7 ulp
    expect "MPI_Scan $ranks: element 7 of block 0 of 1 differs" $mpi Scan 7 1e-12
    expect "MPI_Exscan $ranks: element 4 of block 0 of 1 differs" $mpi Exscan 4 1e-12
    expect good $mpi Reduce_scatter 2 ulp
    expect "MPI_Reduce_scatter $ranks: element 2 of block 0 of 1 differs" $mpi Reduce_scatter 2 1e-9
    expect "MPI_Reduce_scatter_block $ranks: element 1 of block 0 of 1 differs" $mpi Reduce_scatter_block 1 1e-9
    # What is behind the result is undefined in place.
    expect good $mpi Reduce_scatter_block 3 1
    expect "MPI_Alltoallw $ranks: element [0-9]* of block 1 of 3 differs" $mpi Alltoallw 3 1
    expect "MPI_Alltoall $ranks: element 2 of block 1 of 3 differs" $mpi Alltoall 5 1
    expect "MPI_Gatherv $ranks: element 21 of block 2 of 3 differs" $mpi Gatherv 69 1
    # A block's end, which is in a hole: not compared, the MPI may do there what it likes.
    expect good $mpi Gatherv 71 1
done
finish
