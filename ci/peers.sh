#!/usr/bin/env bash
# Installs what Imori is compared with: nats-server, RabbitMQ, Artemis, Qpid Broker-J, ActiveMQ, and the responders of ZeroMQ and gRPC.
# Usage: ci/peers.sh [FOLDER]   (default: .tools/peers)
# Programs go into the folder; RabbitMQ, Java, Maven, Go's absence apart, and libzmq come as Debian packages.
# What is here already is left alone. What cannot be had is named, the rest is installed, and the exit code is 1.
set -uo pipefail
cd "$(dirname "$0")/.."
mkdir -p "${1:-.tools/peers}"
peers=$(cd "${1:-.tools/peers}" && pwd)

nats_server=2.15.2
artemis=2.56.0
broker_j=9.2.1
activemq=5.18.3

PATH="$PWD/.tools/go/bin:$PATH"
log=$peers/install.log
: >"$log"
missing=0

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# packages PACKAGE...: installs Debian packages.
packages() {
    as_root apt-get update -qq && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

# peer NAME HAVE INSTALL: installs unless it is here, and says what became of it.
peer() {
    local name=$1 have=$2 install=$3
    if $have >/dev/null 2>&1; then
        echo "$name: is here"
    elif { $install && $have; } >>"$log" 2>&1; then
        echo "$name: installed"
    else
        echo "$name: could not be installed; the end of $log:"
        tail -n 3 "$log" | sed 's/^/    /'
        missing=1
    fi
}

has_nats_server() { "$peers/nats-server" --version | grep -qF "$nats_server"; }
get_nats_server() { GOBIN=$peers go install "github.com/nats-io/nats-server/v2@v$nats_server"; }

has_rabbitmq() { [ -x /usr/lib/rabbitmq/bin/rabbitmq-server ]; }
get_rabbitmq() {
    packages rabbitmq-server || return
    # The package starts a broker of the system, which nobody asked for and which would take part in every figure.
    if command -v systemctl && systemctl is-active --quiet rabbitmq-server; then
        as_root systemctl disable --now rabbitmq-server
    fi
}

# java_peer HOME ARTIFACT: unpacks the archive of a broker for Java into its folder.
java_peer() {
    command -v java || packages default-jre-headless || return
    command -v mvn || packages maven || return
    local folder
    folder=$(mktemp -d)
    mvn -q --batch-mode dependency:copy "-Dartifact=$2" "-DoutputDirectory=$folder" -Dmdep.useBaseVersion=true \
        && mkdir -p "$peers/$1" && tar -C "$peers/$1" --strip-components="${3:-1}" -xzf "$folder"/*.tar.gz
    local code=$?
    rm -rf "$folder"
    return $code
}

# Without libaio Artemis writes its journal through NIO, many times slower.
has_artemis() { command -v java && [ -x "$peers/apache-artemis-$artemis/bin/artemis" ] && ldconfig -p | grep -q libaio.so; }
get_artemis() {
    packages libaio1 || return
    java_peer "apache-artemis-$artemis" "org.apache.artemis:apache-artemis:$artemis:tar.gz:bin"
}

has_broker_j() { command -v java && [ -x "$peers/apache-qpid-broker-j-$broker_j/bin/qpid-server" ]; }
get_broker_j() { java_peer "apache-qpid-broker-j-$broker_j" "org.apache.qpid:apache-qpid-broker-j:$broker_j:tar.gz:bin" 2; }
has_activemq() { command -v java && [ -x "$peers/apache-activemq-$activemq/bin/activemq" ]; }
get_activemq() { java_peer "apache-activemq-$activemq" "org.apache.activemq:apache-activemq:$activemq:tar.gz:bin"; }

# Built from this tree, so they are built anew whenever a source is newer.
has_responder() { [ -x "$peers/$1" ] && [ -z "$(find bench/brokerless -newer "$peers/$1" -type f)" ]; }
has_zeromq() { has_responder zeromq-responder; }
has_grpc() { has_responder grpc-responder; }
get_responder() { bench/brokerless/build.sh "$peers"; }
get_zeromq() {
    command -v cc && printf '#include <zmq.h>\n' | cc -E -x c - || packages build-essential pkg-config libzmq3-dev || return
    get_responder
}

peer nats-server has_nats_server get_nats_server
peer rabbitmq has_rabbitmq get_rabbitmq
peer artemis has_artemis get_artemis
peer broker-j has_broker_j get_broker_j
peer activemq has_activemq get_activemq
peer zeromq has_zeromq get_zeromq
peer grpc has_grpc get_responder
exit "$missing"
