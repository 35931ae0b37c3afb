#!/bin/sh
# run.sh DIRECTORY: Fortran programs under each MPI that is here, with DIRECTORY/libunisono_<mpi>.so preloaded.
# They check values; this also checks that Unisono did the work, and that its results are the MPI's (UNISONO_VERIFY).
# Ends with "N passed, N failed".
set -u

. "$(dirname "$0")/../common.sh"

# Builds $work/<program>-<mpi>-<binding>. Sentinels are integers to the compiler, buffers are not: hence allow-argument-mismatch.
build() {
    case $3 in f08) define=-DF08 ;; *) define=-UF08 ;; esac
    if [ "$2" = openmpi ]; then extension=-DEXTENSION; else extension=-UEXTENSION; fi
    "mpifort.$2" "$extension" -std=f2018 -O1 -g -w -fallow-argument-mismatch "$define" -J "$work" "$here/$1.F90" -o "$work/$1-$2-$3"
}

# Those that are taken over, blocking and nonblocking.
collectives=$(sed -n 's/^COLLECTIVE[A-Z_]*([A-Z_]*, *\([A-Za-z_]*\),.*/\1/p' "$here/../../shim/collectives.def")
nonblocking=$(sed -n 's/^COLLECTIVE[A-Z_]*([A-Z_]*, *[A-Za-z_]*, *\([a-z_]*\),.*/I\1/p' "$here/../../shim/collectives.def")
[ -n "$collectives" ] || { echo "no collectives in collectives.def" >&2; exit 1; }

# What is not taken over here: Fortran's logical, wrong arguments, communicators of one rank, none, or
# that are being freed.
taken() {
    if [ "$1" = window ]; then
        if grep -q "unisono:  *messages lent [1-9]" "$work/output"; then passed=$((passed + 1)); else wrong "$*: nothing was lent"; fi
        return
    fi
    case $1 in
    collectives) names=$collectives ;;
    nonblocking) names=$nonblocking ;;
    *) names="Barrier_init Bcast_init Allreduce_init Allgather_init" ;;
    esac
    for name in $names; do
        if grep -q "unisono:  *MPI_$name  *[1-9][0-9]* calls" "$work/output"; then passed=$((passed + 1))
        else wrong "$*: no call of MPI_$name was taken over"; fi
    done
    others=$(grep 'unisono:  *to the MPI:' "$work/output" | grep -vE ': (element|arguments|alone|intercommunicator|freed) ')
    if [ -z "$others" ]; then passed=$((passed + 1)); else wrong "$*: $others"; fi
}

# check PROGRAM MPI BINDING RANKS [VARIABLE=VALUE]: with the library for $library.
check() {
    start "$2" "$4" "$work/$1-$2-$3" "LD_PRELOAD=$libraries/libunisono_$library.so" UNISONO_STATS=1 ${5:+"$5"}
    status=$?
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$work/output" | tail -1)
    if [ $status -ne 0 ] || [ -z "$line" ]; then
        wrong "$*: exit status $status"
        grep -v '^$' "$work/output" | head -20 >&2
    fi
    if [ -n "$line" ]; then
        passed=$((passed + ${line%% *}))
        failed=$((failed + $(echo "$line" | cut -d' ' -f3)))
    fi
    if [ "$4" -gt 1 ] && [ "$library" = "$2" ]; then taken "$@"; fi
}

for mpi in openmpi mpich; do
    present $mpi mpifort || continue
    for binding in mpi f08; do
        for program in collectives nonblocking persistent window; do
            if ! build $program $mpi $binding; then
                wrong "$program for $mpi $binding does not build"
                continue
            fi
            library=$mpi
            if [ $program = persistent ]; then # the MPI's own are wrong under MPICH 4.0: not those of one rank, nor without the preload
                for ranks in 2 3 4; do check $program $mpi $binding $ranks; done
                check $program $mpi $binding 3 UNISONO_VERIFY=1
                continue
            fi
            for ranks in 1 2 3 4; do check $program $mpi $binding $ranks; done
            [ $program = window ] || check $program $mpi $binding 3 UNISONO_VERIFY=1
            library=mpich
            [ $mpi = openmpi ] || library=openmpi
            [ ! -e "$libraries/libunisono_$library.so" ] || check $program $mpi $binding 3
        done
    done
done
finish
