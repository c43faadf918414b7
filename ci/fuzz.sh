#!/usr/bin/env bash
# Runs every fuzz target for SECONDS seconds, and shows that each finds the fault that is planted in it.
# Usage: ci/fuzz.sh SECONDS
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
seconds=${1:?usage: ci/fuzz.sh SECONDS}

program=${CARGO_TARGET_DIR:-../target}/debug/imori-fuzz

# Seconds in which a planted fault has to be found. A few are the rule, and 30 of a quick machine the exception.
planted_seconds=400

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# fuzz TARGET CORPUS SECONDS
fuzz() {
    local target=$1 corpus=$2 seconds=$3 dict=${1%%_*}.dict
    local options=(-max_len=1024 "-max_total_time=$seconds" "-artifact_prefix=${artifacts:-artifacts/$target/}")
    [ ! -e "$dict" ] || options+=("-dict=$dict")
    mkdir -p "$corpus" "artifacts/$target"
    IMORI_FUZZ_TARGET=$target "$program" "${options[@]}" "$corpus"
}

# check TARGET: both of its runs; prints one line, and the end of the log where something is wrong.
check() {
    local target=$1 log=$folder/$1.log runs begin
    if ! fuzz "$target" "corpus/$target" "$seconds" >"$log" 2>&1; then
        tail -n 40 "$log"
        echo "$target: a fault is found; the input is in fuzz/artifacts/$target"
        return 1
    fi
    runs=$(sed -n 's/^Done \([0-9]*\) runs in \([0-9]*\) second.*/\1 runs in \2 s/p' "$log")
    begin=$SECONDS
    if artifacts=$folder/$target- IMORI_FUZZ_PLANTED=1 fuzz "$target" "$folder/corpus/$target" "$planted_seconds" >"$log" 2>&1 \
        || ! grep -q 'the planted fault is found' "$log"; then
        tail -n 40 "$log"
        echo "$target: ${runs:-no run}, no fault, but the planted one is not found in $planted_seconds s"
        return 1
    fi
    echo "$target: ${runs:-no run}, no fault; the planted one is found in $((SECONDS - begin)) s"
}

# The dependencies are those of the tests; what the workspace has itself is compiled anew. Nothing here is unsafe, so
# there is no sanitizer.
RUSTC_WORKSPACE_WRAPPER=$PWD/../ci/coverage.sh cargo build --quiet --locked --bins
echo "built in $SECONDS s"

export -f check fuzz
export folder seconds planted_seconds program
"$program" | xargs -P 2 -I '{}' bash -c 'check {}'
