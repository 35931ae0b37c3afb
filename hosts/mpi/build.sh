#!/bin/sh
# Builds libunisono_openmpi.so and libunisono_mpich.so, to be preloaded, for each MPI whose compiler is installed, into
# ${CARGO_TARGET_DIR:-target}/release. They are not linked with the MPI (shim/shim.h says why); -z defs proves it.
# With SimGrid also libunisono_smpi.so, of which only the messages are useful (docs/results/simgrid.md): SimGrid's
# MPI_COMM_WORLD is a variable, so it is linked.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
release=$target/release

(cd "$root" && cargo build --locked --release -p unisono-mpi -p unisono-heap)

# The exported names: the MPI's, for C and Fortran, and those of include/unisono_messages.h.
exports=$release/unisono_mpi_exports
cat >"$exports" <<'END'
{ global: MPI_*; mpi_*; ompi_*_f; unisono_messages_connect; local: *; };
END

built=0
for mpi in openmpi mpich smpi; do
    compiler=mpicc.$mpi underlying=
    if [ "$mpi" = smpi ]; then
        compiler=smpicc underlying=-lsimgrid
        command -v smpicc >/dev/null || continue
    fi
    if ! command -v $compiler >/dev/null; then
        echo "build.sh: no $compiler here: libunisono_$mpi.so is left out" >&2
        continue
    fi
    # What the wrapper adds to find mpi.h, without the libraries it links.
    case $mpi in
    openmpi) flags=$(mpicc.openmpi --showme:compile) ;;
    mpich | smpi) flags=$($compiler -show -c | tr ' ' '\n' | grep '^-[ID]' | tr '\n' ' ') ;;
    esac
    # shellcheck disable=SC2086 # several words
    ${CC:-gcc} -std=gnu11 -O2 -g -fPIC -fvisibility=default -Wall -Wextra -Werror $flags \
        -I"$here/../capi/include" -I"$here/include" -I"$here/shim" -include "$here/shim/shim.h" "$here"/shim/*.c \
        -shared -Wl,-z,defs -Wl,--gc-sections -Wl,--version-script="$exports" \
        "$release/libunisono_mpi.a" $underlying -lpthread -ldl -lm -lgcc_s \
        -o "$release/libunisono_$mpi.so.new"
    mv "$release/libunisono_$mpi.so.new" "$release/libunisono_$mpi.so"
    echo "$release/libunisono_$mpi.so"
    built=$((built + 1))
done
[ "$built" -gt 0 ]
