#!/usr/bin/env bash
# Installs into .tools/amqp, by name and version, what the tests of AMQP 0-9-1 bring from others.
# What is up to date costs nothing; one whose compiler or interpreter is missing is left out.
set -euo pipefail
cd "$(dirname "$0")"
installed=$(cd ../../.. && pwd)/.tools/amqp
mkdir -p "$installed"

# Tells whether a part was installed for these files as they are now.
is_current() {
    [ "$(cat "$installed/$1.sha256" 2>/dev/null)" = "$(cat "${@:2}" | sha256sum)" ]
}

note() {
    cat "${@:2}" | sha256sum >"$installed/$1.sha256"
}

# oslo.messaging's tests patch the standard library, so that no other client may be beside them.
oslo() {
    if ! is_current oslo oslo/requirements.txt; then
        python3 -m venv --clear "$installed/oslo"
        "$installed/oslo/bin/pip" install -q --disable-pip-version-check -r oslo/requirements.txt
        note oslo oslo/requirements.txt
    fi
}

# kombu's tests of brokers are in its source distribution alone. Its code stays there: the installed one is tested.
kombu() {
    local version fetched
    version=$(sed -n 's/^kombu==//p' ../requirements.txt)
    if [ ! -d "$installed/kombu-$version" ]; then
        fetched=$(mktemp -d)
        ../../../.venv/bin/pip download -q --disable-pip-version-check --no-deps --no-binary kombu -d "$fetched" "kombu==$version"
        tar -xzf "$fetched/kombu-$version.tar.gz" -C "$installed" "kombu-$version/t" "kombu-$version/setup.cfg"
        rm -r "$fetched"
    fi
}

# Go includes a module's tests, so that they are compiled from there and run beside their data.
amqp091_go() {
    if command -v go >/dev/null; then
        cd go
        go build -o "$installed/driver-go" .
        go test -c -tags integration -o "$installed/amqp091-go.test" github.com/rabbitmq/amqp091-go
        ln -sfn "$(go list -m -f '{{.Dir}}' github.com/rabbitmq/amqp091-go)" "$installed/amqp091-go"
    fi
}

# A crate includes its tests too. What they and the program depend on is compiled once.
lapin() {
    local folder crate
    if command -v cargo >/dev/null; then
        folder=$installed/lapin-$(sed -n 's/^lapin = .*"=\([0-9.]*\)".*/\1/p' rust/Cargo.toml)
        export CARGO_TARGET_DIR=$installed/target CARGO_PROFILE_DEV_DEBUG=false CARGO_INCREMENTAL=0
        cargo build -q --locked --manifest-path rust/Cargo.toml
        ln -sf target/debug/driver-lapin "$installed/driver-lapin"
        if [ ! -d "$folder" ]; then
            crate=$(cargo metadata --format-version 1 --locked --manifest-path rust/Cargo.toml |
                python3 -c 'import json, sys; print(*(p["manifest_path"] for p in json.load(sys.stdin)["packages"] if p["name"] == "lapin"))')
            cp -r "$(dirname "$crate")" "$folder"
        fi
        cd "$folder"
        cargo test -q --locked --no-default-features --features tokio --tests --no-run
    fi
}

amqplib() {
    if command -v npm >/dev/null && ! [ js/node_modules -nt js/package-lock.json ]; then
        npm ci --prefix js --silent --no-fund --no-audit
        touch js/node_modules
    fi
}

amqp_client() {
    if command -v mvn >/dev/null && command -v javac >/dev/null && ! is_current java java/pom.xml java/Driver.java; then
        rm -rf "$installed/java"
        mvn -q -B -f java/pom.xml dependency:copy-dependencies -DoutputDirectory="$installed/java"
        javac -d "$installed/java" -cp "$installed/java/*" java/Driver.java
        note java java/pom.xml java/Driver.java
    fi
}

# These come as packages of Debian; the marks say that they are here.
of_debian() {
    rm -f "$installed/bunny" "$installed/php-amqplib"
    ruby -e 'require "bunny"' 2>/dev/null && touch "$installed/bunny"
    php -r 'require "PhpAmqpLib/autoload.php";' 2>/dev/null && touch "$installed/php-amqplib"
    true
}

# All at once, as most of them wait for what they fetch.
running=()
for part in oslo kombu amqp091_go lapin amqplib amqp_client of_debian; do
    "$part" &
    running+=("$!")
done
for part in "${running[@]}"; do
    wait "$part"
done
