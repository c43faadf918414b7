#!/bin/sh
# Acts on a service: act service
set -eu
if command -v systemctl >/dev/null; then
    exec systemctl "$1" -- "$2"
fi
exec service "$2" "$1"
