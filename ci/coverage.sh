#!/usr/bin/env bash
# Cargo's RUSTC_WORKSPACE_WRAPPER for fuzzing: runs the compiler with libFuzzer's coverage, which `cargo fuzz` has too.
# Dependencies come from the build of the tests, without.
# Usage: ci/coverage.sh RUSTC ARGUMENT…
exec "$@" --cfg fuzzing -C codegen-units=1 -C passes=sancov-module \
    -C llvm-args=-sanitizer-coverage-level=4 \
    -C llvm-args=-sanitizer-coverage-inline-8bit-counters \
    -C llvm-args=-sanitizer-coverage-pc-table \
    -C llvm-args=-sanitizer-coverage-trace-compares \
    -C llvm-args=-simplifycfg-branch-fold-threshold=0
