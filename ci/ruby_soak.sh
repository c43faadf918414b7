#!/usr/bin/env bash
# Runs the tests of imori-ruby for long: a million scripts in one VM, then all tests with AddressSanitizer in mruby and
# its shim, where every allocation fails once. Usage: ci/ruby_soak.sh [RUNS]
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-1000000}

IMORI_RUBY_RUNS=$runs cargo test -p imori-ruby --locked --quiet --test it soak

# A folder of its own, so that neither build throws the other away.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/asan IMORI_MRUBY_SANITIZE=address
test=$(cargo test -p imori-ruby --locked --no-run --test it --message-format json |
    python3 -c 'import json, sys; print([e for l in sys.stdin if (e := json.loads(l).get("executable"))][-1])')
# Rust's test harness keeps some blocks until it exits, which is no leak of mruby.
runtime=$(cc -print-file-name=libasan.so)
IMORI_RUBY_RUNS=$((runs / 20)) ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=$runtime "$test"
