#!/usr/bin/env bash
# Installs what the package-lock.json of each folder names, unless that is there already.
# Usage: ci/npm.sh FOLDER...
set -euo pipefail
cd "$(dirname "$0")/.."
# Targets that run beside each other ask for the same folders.
mkdir -p .tools
exec 9>>.tools/npm.lock
flock 9
for folder in "$@"; do
    if ! [ "$folder/node_modules" -nt "$folder/package-lock.json" ]; then
        npm ci --prefix "$folder" --silent --no-fund --no-audit
        touch "$folder/node_modules"
    fi
done
