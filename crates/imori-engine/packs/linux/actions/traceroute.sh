#!/bin/sh
# Tells the way to a host: host hops queries
set -eu
command -v traceroute >/dev/null || { echo "traceroute is not there; install it" >&2; exit 2; }
exec traceroute -m "${2:-30}" -q "${3:-3}" -- "$1"
