#!/usr/bin/env bash
# Runs a target of the Makefile beside busy loops, which end with it: tests may be slow then, but not fail.
# Usage: ci/load.sh TARGET [LOOPS]
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1:?usage: ci/load.sh TARGET [LOOPS]}

loops=()
trap 'kill "${loops[@]}"' EXIT
for _ in $(seq "${2:-4}"); do
    while :; do :; done &
    loops+=($!)
done
make --no-print-directory "$target"
