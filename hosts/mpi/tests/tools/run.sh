#!/bin/sh
# run.sh DIRECTORY: profiling tools beside Unisono, under each MPI that is here, with DIRECTORY/libunisono_<mpi>.so preloaded: loaded
# before it, after it, linked with the program, with some of the ranks' programs only. The tool must see all calls, Unisono
# must run them, and the program's results must be right. Ends with "N passed, N failed".
set -u

. "$(dirname "$0")/../common.sh"

ranks=3
seen="init 1, bcast 10, allreduce 10, ibarrier 10, comm_split 1, comm_free 1, send 10"

# Were the calls of all ranks taken over? The program's, and those of the tool's own, on so many ranks: one broadcast, ten barriers.
taken() {
    barriers=$1
    for line in "MPI_Bcast  *$((10 * ranks + barriers)) calls" "MPI_Allreduce  *$((10 * ranks)) calls" "MPI_Ibarrier  *$((10 * ranks)) calls" \
        "MPI_Reduce  *$ranks calls" "MPI_Barrier  *$((10 * barriers)) calls"; do
        [ "$line" != "MPI_Barrier  *0 calls" ] || continue
        grep -q "unisono:  *$line" "$work/output" || { wrong "$what: not taken over: $line"; return; }
    done
    passed=$((passed + 1))
}

# check WHAT MPI PROGRAM TOOLS BARRIERS LD_PRELOAD: on so many ranks the tool sees all calls,
# and on so many it calls collectives of its own that are taken over.
check() {
    what="$2, $1" tools=$4 barriers=$5
    start "$2" $ranks "$3" "LD_PRELOAD=$6" UNISONO_STATS=1
    status=$?
    if [ $status -eq 0 ] && grep -q '^result: right$' "$work/output"; then passed=$((passed + 1))
    else wrong "$what: exit status $status"; head -20 "$work/output" >&2; fi
    count=$(grep -c "tool: rank [0-9]*: $seen" "$work/output")
    if [ "$count" = "$tools" ]; then passed=$((passed + 1))
    else wrong "$what: the tool saw everything on $count ranks, not $tools: $(grep tool: "$work/output")"; fi
    taken "$barriers"
}

build() { "mpicc.$mpi" -std=gnu11 -O1 -Wall -Wextra -Werror "$@"; }

for mpi in openmpi mpich; do
    present $mpi mpicc || continue
    lib=$libraries/libunisono_$mpi.so
    build "$here/program.c" -o "$work/plain_$mpi" &&
        build "$here/program.c" "$here/tool.c" -o "$work/linked_$mpi" &&
        build -DWAITS -fPIC -shared "$here/tool.c" -o "$work/tool_$mpi.so" &&
        build -DNEXT -DWAITS -fPIC -shared "$here/tool.c" -o "$work/next_$mpi.so" -ldl &&
        build -DNEXT -fPIC -shared "$here/tool.c" -o "$work/quiet_$mpi.so" -ldl || exit 1

    check "no tool" $mpi "$work/plain_$mpi" 0 0 "$lib"
    check "a tool before" $mpi "$work/plain_$mpi" $ranks $ranks "$work/tool_$mpi.so:$lib"
    check "a tool after" $mpi "$work/plain_$mpi" $ranks $ranks "$lib:$work/tool_$mpi.so"
    check "a linked tool" $mpi "$work/linked_$mpi" $ranks 0 "$lib"
    check "a tool before that looks up the next function" $mpi "$work/plain_$mpi" $ranks $ranks "$work/next_$mpi.so:$lib"

    # Here it can't see what is taken over, and is told so; it still sees the rest.
    seen_all=$seen seen="init 1, bcast 0, allreduce 0, ibarrier 0, comm_split 1, comm_free 0, send 10"
    check "a tool after that looks up the next function" $mpi "$work/plain_$mpi" $ranks 0 "$lib:$work/next_$mpi.so"
    if [ "$(grep -c '^unisono: a tool that is loaded after' "$work/output")" = 1 ]; then passed=$((passed + 1))
    else wrong "$what: no line that says so, or several"; fi
    seen=$seen_all

    # One of the executables is instrumented: the ranks must do the same.
    cat >"$work/mixed_$mpi" <<END
#!/bin/sh
rank=\${OMPI_COMM_WORLD_RANK:-\$PMI_RANK}
if [ "\$rank" = 1 ]; then exec "$work/linked_$mpi"; fi
if [ "\$rank" = 2 ]; then LD_PRELOAD=$lib:$work/quiet_$mpi.so; fi
exec "$work/plain_$mpi"
END
    chmod +x "$work/mixed_$mpi"
    check "tools on some ranks" $mpi "$work/mixed_$mpi" 1 0 "$lib"

    # A tool of other people's, which writes a trace of each rank: its own collectives are taken over, too.
    eztrace=$(ls /usr/lib/*/libeztrace-$mpi.so 2>/dev/null | head -1)
    if [ -n "$eztrace" ]; then
        for order in "$eztrace:$lib" "$lib:$eztrace"; do
            what="$mpi, $order"
            (cd "$work" && start $mpi $ranks "$work/plain_$mpi" "LD_PRELOAD=$order" UNISONO_STATS=1 "EZTRACE_TRACE=$mpi")
            if [ $? -eq 0 ] && grep -q '^result: right$' "$work/output" && [ -s "$work/plain_${mpi}_trace/eztrace_log.otf2" ]; then
                passed=$((passed + 1))
            else wrong "$what: no right result, or no trace"; head -20 "$work/output" >&2; fi
            if grep -q "unisono:  *MPI_Bcast  *[3-9][0-9] calls" "$work/output"; then passed=$((passed + 1))
            else wrong "$what: MPI_Bcast was not taken over"; fi
            rm -rf "$work/plain_${mpi}_trace"
        done
    else echo "run.sh: no eztrace here: left out" >&2; fi

    # Both of Unisono's libraries: the one that fits does the work.
    other=$libraries/libunisono_mpich.so
    [ $mpi = openmpi ] || other=$libraries/libunisono_openmpi.so
    [ -e "$other" ] || continue
    check "the other MPI's library after" $mpi "$work/plain_$mpi" 0 0 "$lib:$other"
    check "the other MPI's library before" $mpi "$work/plain_$mpi" 0 0 "$other:$lib"
done
finish
