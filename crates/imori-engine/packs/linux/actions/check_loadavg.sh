#!/bin/sh
# Tells the load as JSON: 1, 5, 15 or all
set -eu
read -r one five fifteen _ </proc/loadavg
case ${1:-all} in
1) printf '{"1": "%s"}\n' "$one" ;;
5) printf '{"5": "%s"}\n' "$five" ;;
15) printf '{"15": "%s"}\n' "$fifteen" ;;
*) printf '{"1": "%s", "5": "%s", "15": "%s"}\n' "$one" "$five" "$fifteen" ;;
esac
