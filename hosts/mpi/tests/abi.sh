#!/bin/sh
# abi.sh FOLDER: has ../abi/mpi.h the constants, handles, types' sizes and functions of the mpi.h in FOLDER, which is another one for the
# standard's ABI (MPICH 5's, with -DMPI_ABI)? Prints what differs. Ends with "N passed, N failed".
set -u

abi=$(cd "$(dirname "$0")/../abi" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Each name and its value as this header has them, and the sizes of types.
names=$(sed -nE 's/^(#define| ) *(MPI_[A-Z0-9_]+) .*/\2/p' "$abi/mpi.h" | grep -v '^MPI_ABI_FUNCTION$')
{
    printf '#include <mpi.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n'
    for name in $names; do printf '    printf("%s %%lld\\n", (long long)(intptr_t)(%s));\n' "$name" "$name"; done
    for type in MPI_Aint MPI_Offset MPI_Count MPI_Comm MPI_Status; do printf '    printf("%s %%zu\\n", sizeof(%s));\n' $type $type; done
    for field in SOURCE TAG ERROR; do printf '    printf("%s %%zu\\n", offsetof(MPI_Status, MPI_%s));\n' $field $field; done
    printf '    return 0;\n}\n'
} >"$work/values.c"
echo '#include <mpi.h>' >"$work/functions.c"

# facts KIND FOLDER: the lines to compare.
facts() {
    gcc -DMPI_ABI "-I$2" "$work/values.c" -o "$work/values.$1" && "$work/values.$1" >"$work/$1.values" &&
        gcc -DMPI_ABI "-I$2" -c "$work/functions.c" -o /dev/null -aux-info "$work/all" &&
        sed -nE 's|^/\*[^*]*\*/ extern ([^(]*PMPI_[A-Za-z_]+ \(.*\));.*|\1|p' "$work/all" | sort -u >"$work/$1.functions"
}
facts own "$abi" && facts other "$1" || { echo "0 passed, 1 failed"; exit 1; }
passed=0 failed=0
for kind in values functions; do
    while read -r fact; do
        if grep -qxF -- "$fact" "$work/other.$kind"; then passed=$((passed + 1)); else echo "not in $1: $fact"; failed=$((failed + 1)); fi
    done <"$work/own.$kind"
done
[ $passed -gt 150 ] || failed=$((failed + 1))
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
