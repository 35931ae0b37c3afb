#!/bin/sh
# Fuzzes each target for SECONDS_EACH (60 unless told). Needs stable Rust and a C++ compiler.
# The last line sums up; the exit status is 0 only if nothing was found. What is found lies in fuzz/artifacts.
set -eu

cd "$(dirname "$0")"
each=${1:-60}
case $each in '' | *[!0-9]*) echo "usage: fuzz/run.sh [SECONDS_EACH]" >&2; exit 2 ;; esac
triple=$(rustc -vV | sed -n 's/^host: //p')
target=${CARGO_TARGET_DIR:-$PWD/target}
most=4096

# libFuzzer's coverage by LLVM's own pass: works with a stable compiler, without clang.
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
coverage="$coverage -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
coverage="$coverage -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Clink-dead-code"
RUSTFLAGS="--cfg fuzzing $coverage" cargo build --quiet --release --bins --target "$triple"

count=0 failures=0 executions=0
for name in interleave attach corrupt; do
    mkdir -p "corpus/$name" "artifacts/$name"
    log="artifacts/$name.log"
    echo "fuzz: $name, $each seconds"
    # -timeout: a poll that never returns is a failure too.
    if ! "$target/$triple/release/$name" "corpus/$name" -max_total_time="$each" -max_len=$most -len_control=20 \
        -timeout=20 -print_final_stats=1 -artifact_prefix="artifacts/$name/" >"$log" 2>&1; then
        failures=$((failures + 1))
        tail -n 60 "$log"
    fi
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
    # A target that did not run is a failure, not zero executions.
    if [ "${runs:-0}" -eq 0 ]; then
        echo "fuzz: $name executed nothing"
        failures=$((failures + 1))
    fi
    echo "fuzz: $name, ${runs:-0} executions"
    executions=$((executions + ${runs:-0}))
    count=$((count + 1))
done
echo "fuzz: $count targets, $each seconds each, $executions executions, $failures failures"
[ "$failures" -eq 0 ]
