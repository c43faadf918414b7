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
if ! is_current oslo oslo/requirements.txt; then
    python3 -m venv --clear "$installed/oslo"
    "$installed/oslo/bin/pip" install -q --disable-pip-version-check -r oslo/requirements.txt
    note oslo oslo/requirements.txt
fi
