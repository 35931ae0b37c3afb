#!/bin/sh
# run.sh DIRECTORY: does UNISONO_VERIFY=1 see a difference, and none where there is none? Of blocking, nonblocking and persistent
# collectives, under each MPI that is here, with DIRECTORY/libunisono_<mpi>.so preloaded, and liar.c as the MPI that differs. Ends with
# "N passed, N failed".
set -u

. "$(dirname "$0")/../common.sh"

# As the MPI and as the line name a collective in the form $form: ibcast is nonblocking, bcast_init persistent, which is compared with a
# nonblocking one.
lying() {
    if [ "$form" = blocking ]; then echo "$1"; else echo "I$(echo "$1" | tr '[:upper:]' '[:lower:]')"; fi
}
called() {
    case $form in
    blocking) echo "MPI_$1" ;;
    nonblocking) echo "MPI_$(lying "$1")" ;;
    persistent) echo "MPI_$1_init" ;;
    esac
}

# One run takes a second. Open MPI's mpirun hangs now and then after a rank has aborted.
seconds=30

# run_victim LIAR LIAR_AT LIAR_BY: under $mpi, in the form $form
run_victim() {
    start "$mpi" 3 "$work/victim_${mpi}_$form" "LD_PRELOAD=$libraries/libunisono_$mpi.so:$work/liar_$mpi.so" UNISONO_VERIFY=1 \
        UNISONO_STATS=1 "LIAR=$(lying "$1")" "LIAR_AT=$2" "LIAR_BY=$3"
}

# expect good|WORDS LIAR LIAR_AT LIAR_BY: it ends well, or ends with a line that has the collective's name, the ranks, and the words
expect() {
    wanted=$1
    [ "$wanted" = good ] || wanted="$(called "$2") among 3 ranks, rank 1: $1"
    shift
    run_victim "$@"
    status=$?
    said=$(grep 'unisono: verify:' "$work/output" | head -1)
    if [ "$wanted" = good ] && [ $status -eq 0 ] && [ -z "$said" ]; then passed=$((passed + 1))
    elif [ "$wanted" != good ] && [ $status -ne 0 ] && echo "$said" | grep -q "$wanted"; then passed=$((passed + 1))
    else
        wrong "$mpi, $form, $*: wanted $wanted, status $status, said: $said"
        head -20 "$work/output" >&2
    fi
}

# Were so many calls compared, in the last run?
counted() {
    if grep -q "^unisono: *verified $1 calls\$" "$work/output"; then passed=$((passed + 1))
    else wrong "$mpi, $form: not $1 calls: $(grep verified "$work/output")"; fi
}

for mpi in openmpi mpich; do
    present $mpi mpicc || continue
    "mpicc.$mpi" -std=c11 -O1 -Wall -Wextra -Werror -fPIC -shared "$here/liar.c" -o "$work/liar_$mpi.so" -ldl -lm || exit 1
    for form in blocking nonblocking persistent; do
        case $form in blocking) define=BLOCKING ;; nonblocking) define=WAITED ;; persistent) define=PERSISTENT ;; esac
        "mpicc.$mpi" -std=gnu11 -O1 -Wall -Wextra -Werror -D$define "$here/victim.c" -o "$work/victim_${mpi}_$form" || exit 1
        expect good Nothing 0 1
        counted 27
        expect "element 23 of block 0 of 1 differs" Bcast 23 1e-12
        expect "element 5 " Bcast 5 ulp
        # An order of the ranks explains the last bit, not more.
        expect good Allreduce 7 ulp
        expect "element 7 of block 0 of 1 differs" Allreduce 7 1e-12
        expect good Scan 7 ulp
        expect "element 7 of block 0 of 1 differs" Scan 7 1e-12
        expect "element 4 of block 0 of 1 differs" Exscan 4 1e-12
        expect good Reduce_scatter 2 ulp
        expect "element 2 of block 0 of 1 differs" Reduce_scatter 2 1e-9
        expect "element 1 of block 0 of 1 differs" Reduce_scatter_block 1 1e-9
        # What is behind the result is undefined in place.
        expect good Reduce_scatter_block 3 1
        expect "element [0-9]* of block 1 of 3 differs" Alltoallw 3 1
        expect "element 2 of block 1 of 3 differs" Alltoall 5 1
        expect "element 21 of block 2 of 3 differs" Gatherv 69 1
        # A block's end, which is in a hole: not compared, the MPI may do there what it likes.
        expect good Gatherv 71 1
    done
done
finish
