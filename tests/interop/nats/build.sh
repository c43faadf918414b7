#!/usr/bin/env bash
# Builds the programs of the compiled clients, and of go-stomp, into .tools/nats, with what they need by version.
# A program that is up to date costs under a second; one whose compiler is missing is left out.
set -euo pipefail
cd "$(dirname "$0")"
built=$(cd ../../.. && pwd)/.tools/nats
mkdir -p "$built"

if command -v go >/dev/null; then
    (cd go && go build -o "$built/driver-go" . && go build -o "$built/" tool &&
        go build -o "$built/driver-jetstream" ./jetstream && go build -o "$built/driver-schemas" ./schemas)
    (cd ../go && go build -o "$built/stomp-go" .)
fi
if command -v cargo >/dev/null; then
    cargo build -q --locked --manifest-path rust/Cargo.toml --target-dir "$built/target"
    ln -sf target/debug/driver-rust "$built/driver-rust"
fi
if command -v mvn >/dev/null && command -v javac >/dev/null; then
    wanted=$(cat java/pom.xml java/JetStreamDriver.java | sha256sum)
    if [ "$(cat "$built/java.sha256" 2>/dev/null)" != "$wanted" ]; then
        rm -rf "$built/java"
        mvn -q -B -f java/pom.xml dependency:copy-dependencies -DoutputDirectory="$built/java"
        javac -d "$built/java" -cp "$built/java/*" java/JetStreamDriver.java
        echo "$wanted" >"$built/java.sha256"
    fi
fi
