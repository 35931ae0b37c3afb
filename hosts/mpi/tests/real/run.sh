#!/bin/sh
# run.sh DIRECTORY: programs of Debian's packages lammps, hpcc, nwchem and scalapack-mpi-test on four ranks under Open MPI, with
# DIRECTORY/libunisono_openmpi.so preloaded. Each must end well, with the results that it has by itself or says are right, and of its
# collectives on several ranks Unisono must run nearly all. A line for each: how many of how many. Ends with "N passed, N failed".
set -u

. "$(dirname "$0")/../common.sh"
cd "$work" || exit 1
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

# alone: the calls on one rank, which are the MPI's.
shares() {
    awk -v what="$what" '
        /^unisono: +MPI_/ { taken += $3 }
        /^unisono: +to the MPI:/ && $5 != "alone" { left += $6; reasons = reasons " " $5 " " $6 }
        END {
            printf "%s: %d of %d calls on several ranks%s\n", what, taken, taken + left, reasons
            exit !(taken > 0 && 1000 * left <= taken)
        }' "$work/output"
}

# check WHAT RESULT COMMAND...: RESULT is a command that looks at $work/output.
check() {
    what=$1 result=$2
    shift 2
    command -v "$1" >/dev/null || { echo "run.sh: no $1: $what is left out" >&2; return; }
    seconds=600 started "LD_PRELOAD=$libraries/libunisono_openmpi.so" "$@"
    status=$?
    if [ $status -eq 0 ] && $result; then passed=$((passed + 1)); else wrong "$what: exit status $status"; tail -5 "$work/output" >&2; fi
    if shares; then passed=$((passed + 1)); else wrong "$what: not taken over"; fi
}
started() { # SETTING PROGRAM...
    setting=$1
    shift
    timeout -k 5 "$seconds" mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -x "$setting" \
        -x UNISONO_STATS=1 -n 4 "$@" >"$work/output" 2>&1
}

# alike LEAST FILTER PROGRAM...: the filter finds so many lines in the output at least, and the same when the program runs by itself.
alike() {
    least=$1 filter=$2
    shift 2
    rm -f without
    "$filter" <"$work/output" >with
    cp "$work/output" kept
    seconds=600 started UNISONO=off "$@" && "$filter" <"$work/output" >without
    mv kept "$work/output"
    [ "$(wc -l <with)" -ge "$least" ] && cmp with without
}
# To the last digit that is printed.
steps() { awk '/^Step/ { f = 1 } /^Loop/ { f = 0 } f'; }
lammps() { alike 21 steps lmp -in "$here/lammps.in"; }
# To a tenth of what it calls converged, 1e-6.
energies() { awk '/Total DFT energy/ { printf "%.7f\n", $NF }'; }
nwchem() { alike 5 energies nwchem.openmpi "$example" && ! grep -qiE 'did not converge|error' "$work/output"; }
benchmark() { grep -q '^Success=1$' hpccoutf.txt; }
residuals() { grep -qE ' PASSED' "$work/output" && ! grep -qE '^ *(WALL|CPU|BOTH).* FAILED' "$work/output"; }
flags() { grep -q '^Passed ' "$work/output" && ! grep -qi '^Failed' "$work/output"; }

if command -v mpirun.openmpi >/dev/null; then
    check "lammps, Lennard-Jones, balanced by RCB" lammps lmp -in "$here/lammps.in"
    cp /usr/share/doc/hpcc/examples/_hpccinf.txt hpccinf.txt 2>/dev/null
    check "hpcc, its example" benchmark hpcc
    example=/usr/share/doc/nwchem/examples/h2o_dft.nw
    check "nwchem, h2o_dft.nw of its package" nwchem nwchem.openmpi "$example"
    tests=/usr/lib/$(uname -m)-linux-gnu/scalapack/openmpi-tests
    cp "$tests"/*.dat . 2>/dev/null
    for test in xdbrd xzqr; do check "scalapack, $test" residuals "$tests/$test"; done
    check "scalapack, xdsvd" flags "$tests/xdsvd"
fi
finish
