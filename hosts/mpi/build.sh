#!/bin/sh
# Builds the libraries to be preloaded and prints their places, in ${CARGO_TARGET_DIR:-target}/release: libunisono_openmpi.so and
# libunisono_mpich.so for the MPIs whose compilers are installed, and libunisono_abi.so for MPIs with the standard's ABI (MPI 5), which
# needs none: abi/mpi.h has what the ABI fixes. MPICC=COMPILER...: for these MPIs alone; which library it is, their mpi.h says; the word
# abi is for the standard's. Exits with 3 if there is no C compiler. The libraries are not linked with the MPI (shim/shim.h says why);
# -z defs proves it. With SimGrid also libunisono_smpi.so, of which only the messages are useful (docs/results/simgrid.md): SimGrid's
# MPI_COMM_WORLD is a variable, so it is linked.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
release=$target/release

command -v "${CC:-gcc}" >/dev/null || { echo "build.sh: no C compiler here (${CC:-gcc})" >&2; exit 3; }

# Debian's names of several MPIs beside each other; the name that one MPI alone has.
found=
for compiler in ${MPICC:-mpicc.openmpi mpicc.mpich smpicc}; do
    if [ "$compiler" = abi ] || command -v "$compiler" >/dev/null; then found="$found $compiler"
    elif [ -n "${MPICC:-}" ]; then echo "build.sh: no $compiler here" >&2; exit 1; fi
done
if [ -z "${MPICC:-}" ]; then
    case $found in *mpicc*) ;; *) if command -v mpicc >/dev/null; then found="$found mpicc"; fi ;; esac
    found="$found abi"
fi

# Where it does not build, no library of an earlier build stays to be taken for this one.
(cd "$root" && cargo build --locked --release -p unisono-mpi -p unisono-heap) ||
    { for mpi in openmpi mpich abi smpi; do rm -f "$release/libunisono_$mpi.so"; done; exit 1; }

# The exported names: the MPI's, which its functions for Fortran call, too; that of include/unisono_messages.h; and that of shim/compare.c.
exports=$release/unisono_mpi_exports
cat >"$exports" <<'END'
{ global: MPI_*; PMPI_*; MPIX_*_init; PMPIX_*_init; unisono_messages_connect; unisono_time; local: *; };
END

# What a compiler's wrapper adds to find mpi.h, without the libraries it links.
flags_of() {
    [ "$1" != abi ] || { echo "-I$here/abi"; return; }
    "$1" --showme:compile 2>/dev/null || "$1" -show -c 2>/dev/null | tr ' ' '\n' | grep '^-[ID]' | tr '\n' ' '
}

# The macros after mpi.h, given its flags.
macros() {
    # shellcheck disable=SC2086 # several words
    echo '#include <mpi.h>' | ${CC:-gcc} $1 -E -dM - 2>/dev/null
}

# The library's name by these macros.
name_of() {
    awk '$2 == "MPI_ABI_VERSION" { name = "abi" } $2 == "OPEN_MPI" { name = "openmpi" }
        $2 == "SMPI_H" { name = "smpi" } $2 == "MPICH_VERSION" && name == "" { name = "mpich" } END { print name }'
}

# build MPI FLAGS: its library, unless it stands there, made by the same command with the same macros from nothing newer.
build() {
    library=$release/libunisono_$1.so
    headers=$(macros "$2" | cksum)
    underlying=
    [ "$1" != smpi ] || underlying=-lsimgrid
    # shellcheck disable=SC2086 # several words
    set -- ${CC:-gcc} -std=gnu11 -O2 -g -fPIC -fvisibility=hidden -Wall -Wextra -Werror $2 \
        -I"$here/../capi/include" -I"$here/include" -I"$here/shim" -include "$here/shim/shim.h" "$here"/shim/*.c \
        -shared -Wl,-z,defs -Wl,--gc-sections -Wl,--version-script="$exports" \
        "$release/libunisono_mpi.a" $underlying -lpthread -ldl -lm -lgcc_s
    made="$* $headers"
    [ -e "$library" ] && [ "$made" = "$(cat "$library.made" 2>/dev/null)" ] && [ -z "$(find "$here/build.sh" "$here/shim" "$here/abi" \
        "$here/include" "$here/../capi/include" "$release/libunisono_mpi.a" -newer "$library.made" -print -quit)" ] && return
    rm -f "$library" "$library.made"
    # Written before the compiler reads: what is edited meanwhile is newer.
    echo "$made" >"$library.making"
    "$@" -o "$library.new"
    mv "$library.new" "$library"
    mv "$library.making" "$library.made"
}

# Side by side, since each takes half a minute.
builds=
for compiler in $found; do
    flags=$(flags_of "$compiler")
    mpi=$(macros "$flags" | name_of)
    [ "$mpi" != abi ] || flags=$(flags_of abi)
    [ -n "$mpi" ] || { echo "build.sh: $compiler finds no mpi.h of an MPI that is known" >&2; exit 1; }
    case " $builds" in *" $mpi:"*) echo "build.sh: $compiler has the handles of a compiler before it: one library for both" >&2; continue ;; esac
    build "$mpi" "$flags" &
    builds="$builds $mpi:$!"
done
status=0
for each in $builds; do
    if wait "${each#*:}"; then echo "$release/libunisono_${each%:*}.so"; else status=1; fi
done
exit $status
