#!/bin/bash
# run.sh RUNS [LIBRARY]: ScaLAPACK's xdsep (Debian's scalapack-mpi-test), tests 1 to 7, on four ranks, under each MPI; with DIRECTORY
# LIBRARY also with LIBRARY/libunisono_<mpi>.so preloaded. As it is, and with combines that add in a fixed order (repeat.c): how many
# runs failed a residual check, and how many tables of residuals are different.
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
for mpi in openmpi mpich; do
    program=/usr/lib/$(uname -m)-linux-gnu/scalapack/$mpi-tests/xdsep
    [ -x "$program" ] || { echo "no $program"; continue; }
    # Without the yield MPICH takes half a minute and more for what takes seconds, where ranks outnumber cores.
    "mpicc.$mpi" -O2 -shared -fPIC "$here/repeat.c" "$here/../../../bench/c/shim/mpich_yield.c" -o "$mpi.so" -ldl || exit 1
    sed "/^'TEST 8/,/^' '/d; /^'TEST 9/,/^' '/d" /usr/share/scalapack/SEP.dat >SEP.dat
    for order in arrival fixed; do
        for library in "" ${2:+"$2/libunisono_$mpi.so"}; do
            preload=${library:+$library:}$work/$mpi.so
            case $mpi in
            openmpi) words=(mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -x "LD_PRELOAD=$preload") ;;
            mpich) words=(mpirun.mpich -genv LD_PRELOAD "$preload") ;;
            esac
            failed=0 tables=()
            for ((run = 0; run < $1; run++)); do
                BLACS_REPEAT=1 OPENBLAS_NUM_THREADS=1 timeout 600 \
                    env $([ $order = fixed ] || echo -u BLACS_REPEAT) "${words[@]}" -n 4 "$program" >out 2>&1 || { tail -3 out; exit 1; }
                # Without the times.
                tables+=("$(awk '/^ +[0-9]+ +[0-9]+ +[0-9]+ / { print $1, $2, $3, $4, $5, $6, $9, $10, $11, $12 }' out | md5sum)")
                grep -aqE '^ +[0-9].* FAILED' out && failed=$((failed + 1))
            done
            echo "$mpi${library:+, preloaded}, order of $order: $1 runs, $failed failed, $(printf '%s\n' "${tables[@]}" | sort -u | wc -l)" \
                "tables of residuals: $(printf '%s\n' "${tables[@]}" | sort -u | cut -c1-6 | tr '\n' ' ')"
        done
    done
done
