#!/bin/sh
# run.sh DIRECTORY: does UNISONO_VERIFY=1 see a difference, and none where there is none? Under each MPI that is here, with
# DIRECTORY/libunisono_<mpi>.so preloaded, and liar.c as the MPI that differs. Ends with "N passed, N failed".
set -u

here=$(cd "$(dirname "$0")" && pwd)
libraries=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

# run MPI LIAR LIAR_AT LIAR_BY
run() {
    preload="$libraries/libunisono_$1.so:$work/liar_$1.so"
    case $1 in
    openmpi)
        timeout 60 mpirun.openmpi --allow-run-as-root --oversubscribe -x "LD_PRELOAD=$preload" -x UNISONO_VERIFY=1 \
            -x "LIAR=$2" -x "LIAR_AT=$3" -x "LIAR_BY=$4" -n 3 "$work/victim_$1"
        ;;
    mpich)
        timeout 60 mpirun.mpich -genv LD_PRELOAD "$preload" -genv UNISONO_VERIFY 1 -genv LIAR "$2" -genv LIAR_AT "$3" \
            -genv LIAR_BY "$4" -n 3 "$work/victim_$1"
        ;;
    esac >"$work/output" 2>&1
}

# expect good|WORDS MPI LIAR LIAR_AT LIAR_BY: it ends well, or ends with a line that has the words
expect() {
    wanted=$1
    shift
    run "$@"
    status=$?
    said=$(grep 'unisono: verify:' "$work/output" | head -1)
    if [ "$wanted" = good ] && [ $status -eq 0 ] && [ -z "$said" ]; then passed=$((passed + 1))
    elif [ "$wanted" != good ] && [ $status -ne 0 ] && echo "$said" | grep -q "$wanted"; then passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "run.sh: $*: wanted $wanted, status $status, said: $said" >&2
        head -20 "$work/output" >&2
    fi
}

for mpi in openmpi mpich; do
    if ! command -v "mpicc.$mpi" >/dev/null || [ ! -e "$libraries/libunisono_$mpi.so" ]; then
        echo "run.sh: no mpicc.$mpi or no libunisono_$mpi.so: left out" >&2
        continue
    fi
    "mpicc.$mpi" -std=c11 -O1 -Wall -Wextra -Werror -fPIC -shared "$here/liar.c" -o "$work/liar_$mpi.so" -ldl -lm &&
        "mpicc.$mpi" -std=c11 -O1 -Wall -Wextra -Werror "$here/victim.c" -o "$work/victim_$mpi" || exit 1
    ranks="among 3 ranks, rank 1"
    expect good $mpi Nothing 0 1
    expect "MPI_Bcast $ranks: element 23 of block 0 of 1 differs" $mpi Bcast 23 1e-12
    expect "MPI_Bcast $ranks: element 5 " $mpi Bcast 5 ulp
    # An order of the ranks explains the last bit, not more.
    expect good $mpi Allreduce 7 ulp
    expect "MPI_Allreduce $ranks: element 7 of block 0 of 1 differs" $mpi Allreduce 7 1e-12
    expect "MPI_Alltoall $ranks: element 2 of block 1 of 3 differs" $mpi Alltoall 5 1
    expect "MPI_Gatherv $ranks: element 21 of block 2 of 3 differs" $mpi Gatherv 69 1
    # A block's end, which is in a hole: not compared, the MPI may do there what it likes.
    expect good $mpi Gatherv 71 1
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
