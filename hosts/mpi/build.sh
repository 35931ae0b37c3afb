#!/bin/sh
# Builds the libraries to be preloaded, libunisono_openmpi.so, libunisono_mpich.so and libunisono_abi.so (for MPIs with the handles of
# MPI 5's standard ABI), for each MPI whose compiler is installed, into ${CARGO_TARGET_DIR:-target}/release, and prints their places.
# MPICC=COMPILER...: for these MPIs alone; which library it is, their mpi.h says. Exits with 3 if no compiler is here. The libraries are not linked with the MPI (shim/shim.h says why); -z defs proves it.
# With SimGrid also libunisono_smpi.so, of which only the messages are useful (docs/results/simgrid.md): SimGrid's
# MPI_COMM_WORLD is a variable, so it is linked.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
release=$target/release

# Debian's names of several MPIs beside each other; the name that one MPI alone has.
found=
for compiler in ${MPICC:-mpicc.openmpi mpicc.mpich mpicc_abi smpicc}; do
    if command -v "$compiler" >/dev/null; then found="$found $compiler"
    elif [ -n "${MPICC:-}" ]; then echo "build.sh: no $compiler here" >&2; exit 1; fi
done
case $found in *mpicc*) ;; *) if command -v mpicc >/dev/null; then found="$found mpicc"; fi ;; esac
[ -n "$found" ] || { echo "build.sh: no compiler of an MPI here (mpicc, mpicc.openmpi, mpicc.mpich, mpicc_abi, smpicc)" >&2; exit 3; }

(cd "$root" && cargo build --locked --release -p unisono-mpi -p unisono-heap)

# The exported names: the MPI's, which its functions for Fortran call, too; that of include/unisono_messages.h; and that of shim/compare.c.
exports=$release/unisono_mpi_exports
cat >"$exports" <<'END'
{ global: MPI_*; PMPI_*; MPIX_*_init; PMPIX_*_init; unisono_messages_connect; unisono_time; local: *; };
END

# What a compiler's wrapper adds to find mpi.h, without the libraries it links.
flags_of() {
    "$1" --showme:compile 2>/dev/null || "$1" -show -c 2>/dev/null | tr ' ' '\n' | grep '^-[ID]' | tr '\n' ' '
}

# The library's name by the macros of mpi.h, given its flags.
name_of() {
    # shellcheck disable=SC2086 # several words
    echo '#include <mpi.h>' | ${CC:-gcc} $1 -E -dM - 2>/dev/null | awk '
        $2 == "MPI_ABI_VERSION" { name = "abi" } $2 == "OPEN_MPI" { name = "openmpi" }
        $2 == "SMPI_H" { name = "smpi" } $2 == "MPICH_VERSION" && name == "" { name = "mpich" } END { print name }'
}

for compiler in $found; do
    flags=$(flags_of "$compiler")
    mpi=$(name_of "$flags")
    [ -n "$mpi" ] || { echo "build.sh: $compiler finds no mpi.h of an MPI that is known" >&2; exit 1; }
    underlying=
    [ "$mpi" != smpi ] || underlying=-lsimgrid
    # shellcheck disable=SC2086 # several words
    ${CC:-gcc} -std=gnu11 -O2 -g -fPIC -fvisibility=hidden -Wall -Wextra -Werror $flags \
        -I"$here/../capi/include" -I"$here/include" -I"$here/shim" -include "$here/shim/shim.h" "$here"/shim/*.c \
        -shared -Wl,-z,defs -Wl,--gc-sections -Wl,--version-script="$exports" \
        "$release/libunisono_mpi.a" $underlying -lpthread -ldl -lm -lgcc_s \
        -o "$release/libunisono_$mpi.so.new"
    mv "$release/libunisono_$mpi.so.new" "$release/libunisono_$mpi.so"
    echo "$release/libunisono_$mpi.so"
done
