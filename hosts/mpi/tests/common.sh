# Sourced by the scripts beside it, which are called with the DIRECTORY of libunisono_<mpi>.so: where things are, how a
# program is started under an MPI, what is counted. All of a program's output goes to $work/output.

here=$(cd "$(dirname "$0")" && pwd)
libraries=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

wrong() {
    echo "run.sh: $*" >&2
    failed=$((failed + 1))
}

# present MPI COMPILER: are they here, with a library to preload?
present() {
    command -v "$2.$1" >/dev/null && [ -e "$libraries/libunisono_$1.so" ] && return
    echo "run.sh: no $2.$1 or no libunisono_$1.so: left out" >&2
    false
}

# start MPI RANKS PROGRAM [VARIABLE=VALUE …]
start() (
    mpi=$1 ranks=$2 program=$3
    shift 3
    for setting in "$@"; do
        shift
        case $mpi in
        openmpi) set -- "$@" -x "$setting" ;;
        mpich) set -- "$@" -genv "${setting%%=*}" "${setting#*=}" ;;
        esac
    done
    if [ "$mpi" = openmpi ]; then set -- --allow-run-as-root --oversubscribe "$@"; fi
    timeout -k 5 "${seconds:-120}" "mpirun.$mpi" "$@" -n "$ranks" "$program" >"$work/output" 2>&1
)

# The last line: the counts; success if nothing failed.
finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
