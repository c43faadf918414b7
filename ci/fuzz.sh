#!/usr/bin/env bash
# Runs every fuzz target for SECONDS seconds, and shows that each finds the fault that is planted in it.
# Usage: ci/fuzz.sh SECONDS
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
seconds=${1:?usage: ci/fuzz.sh SECONDS}
shopt -s nullglob

# Seconds in which a planted fault has to be found. A few are the rule.
planted_seconds=120

export PATH="$PWD/../.tools/bin:$PATH"
# The fuzzer's coverage needs flags that only this variable opens in the stable compiler.
export RUSTC_BOOTSTRAP=1

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# run TARGET CORPUS SECONDS [OPTION_OF_CARGO_FUZZ...]: nothing here is unsafe, so there is no sanitizer.
run() {
    local target=$1 corpus=$2 seconds=$3 dict=${1%%_*}.dict
    shift 3
    local options=(-max_len=1024 "-max_total_time=$seconds")
    [ ! -e "$dict" ] || options+=("-dict=$dict")
    mkdir -p "$corpus"
    cargo fuzz run --sanitizer none --fuzz-dir . "$@" "$target" "$corpus" -- "${options[@]}" \
        ${artifacts:+"-artifact_prefix=$artifacts"}
}

failed=0
for file in fuzz_targets/*.rs; do
    target=$(basename "$file" .rs)
    log=$folder/$target.log
    if ! run "$target" "corpus/$target" "$seconds" >"$log" 2>&1; then
        tail -n 40 "$log"
        echo "$target: a fault is found; the input is in fuzz/artifacts/$target"
        failed=1
        continue
    fi
    runs=$(sed -n 's/^Done \([0-9]*\) runs in \([0-9]*\) second.*/\1 runs in \2 s/p' "$log")
    begin=$SECONDS
    if artifacts=$folder/ run "$target" "$folder/$target" "$planted_seconds" --features planted >"$log" 2>&1 \
        || ! grep -q 'the planted fault is found' "$log"; then
        tail -n 40 "$log"
        echo "$target: ${runs:-no run}, no fault, but the planted one is not found in $planted_seconds s"
        failed=1
        continue
    fi
    echo "$target: ${runs:-no run}, no fault; the planted one is found in $((SECONDS - begin)) s, its build included"
done
exit "$failed"
