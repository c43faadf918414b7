#!/usr/bin/env bash
# Builds the responders that need no broker, zeromq-responder and grpc-responder.
# Usage: bench/brokerless/build.sh OUTPUT_FOLDER
# What is missing for a responder is named, and the other is built; only a failed build is an error.
set -euo pipefail
[ $# = 1 ] || { echo "usage: bench/brokerless/build.sh OUTPUT_FOLDER" >&2; exit 2; }
mkdir -p "$1"
output=$(cd "$1" && pwd)
cd "$(dirname "$0")"
PATH="$PWD/../../.tools/go/bin:$PATH"

if ! command -v cc >/dev/null; then
    echo "zeromq-responder is left out: it needs a C compiler; apt-get install build-essential" >&2
elif ! printf '#include <zmq.h>\n' | cc -E -x c - >/dev/null 2>&1; then
    echo "zeromq-responder is left out: it needs libzmq; apt-get install libzmq3-dev" >&2
else
    cc -O2 -Wall -Wextra -o "$output/zeromq-responder" zeromq-responder.c -lzmq
fi

if ! command -v go >/dev/null; then
    echo "grpc-responder is left out: it needs Go, which ci/setup.sh installs into .tools/go" >&2
else
    (cd grpc && go build -o "$output/grpc-responder" .)
fi
