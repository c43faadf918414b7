#!/usr/bin/env bash
# Prints the target of a static program for this machine, and nothing if Rust or the C compiler lacks it.
# Usage: ci/static.sh
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(uname -m)-unknown-linux-musl
command -v musl-gcc >/dev/null || exit 0
[ ! -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || echo "$target"
