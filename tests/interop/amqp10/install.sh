#!/usr/bin/env bash
# Installs into .tools/amqp10, by name and version, what the tests of AMQP 1.0 bring from others.
# What is up to date costs nothing; one whose compiler is missing is left out.
set -euo pipefail
cd "$(dirname "$0")"
installed=$(cd ../../.. && pwd)/.tools/amqp10
mkdir -p "$installed"

# Go includes a module's tests, so that they are compiled from there.
go_amqp() {
    if command -v go >/dev/null; then
        cd go
        go test -c -o "$installed/go-amqp.test" github.com/Azure/go-amqp
    fi
}

# compile NAME POM FILE...: compiles programs, with what their POM names beside them, unless that was done for these files.
compile() {
    local name=$1 pom=$2 wanted
    shift 2
    wanted=$(cat "$pom" "$@" | sha256sum)
    if command -v mvn >/dev/null && command -v javac >/dev/null && [ "$(cat "$installed/$name.sha256" 2>/dev/null)" != "$wanted" ]; then
        rm -rf "$installed/$name-jars" "${installed:?}/$name"
        mvn -q -B -f "$pom" dependency:copy-dependencies -DoutputDirectory="$installed/$name-jars"
        javac -d "$installed/$name" -cp "$installed/$name-jars/*" "$@"
        echo "$wanted" >"$installed/$name.sha256"
    fi
}

rhea() {
    if command -v npm >/dev/null && ! [ rhea/node_modules -nt rhea/package-lock.json ]; then
        npm ci --prefix rhea --silent --no-fund --no-audit
        touch rhea/node_modules
    fi
}

# What the program depends on is compiled once, and only the program stays.
fe2o3() {
    local wanted
    wanted=$(cat fe2o3/Cargo.lock fe2o3/Cargo.toml fe2o3/src/main.rs | sha256sum)
    if command -v cargo >/dev/null && [ "$(cat "$installed/fe2o3.sha256" 2>/dev/null)" != "$wanted" ]; then
        cargo build -q --locked --manifest-path fe2o3/Cargo.toml --target-dir "$installed/target"
        mv "$installed/target/debug/driver-fe2o3" "$installed"
        rm -r "$installed/target"
        echo "$wanted" >"$installed/fe2o3.sha256"
    fi
}

# The library comes as a package of Debian.
proton_cpp() {
    local program=$installed/driver-proton-cpp
    if command -v c++ >/dev/null && [ -e /usr/include/proton/container.hpp ] && ! [ "$program" -nt proton-cpp/driver.cpp ]; then
        c++ -std=c++17 -Wall -Wextra -o "$program" proton-cpp/driver.cpp -lqpid-proton-cpp -pthread
    fi
}

(go_amqp)
rhea
fe2o3
proton_cpp
compile protonj2 protonj2/pom.xml protonj2/Driver.java
# The Joram tests of JMS, and the client that they run over.
compile joram jms/pom.xml jms/joram/BrokerAdmin.java
[ ! -d "$installed/joram" ] || cp jms/joram/provider.properties "$installed/joram"
# Tests of JMS 2.0, and the client that they run over.
compile jms2 jms2/pom.xml jms2/*.java
compile patterns ../../../examples/patterns/java/pom.xml ../../../examples/patterns/java/*.java
