#!/bin/sh
# All subscribers get each message; one that was down gets what it has missed.
export IMORI_URL="$1"
subscribe() { imori sub --header durable:"$1" --count "$2" /topic/rates | sed "s/^/$1 has /"; }
imori sub --header durable:office --timeout 100ms /topic/rates 2>/dev/null
imori sub --header durable:branch --timeout 100ms /topic/rates 2>/dev/null
imori pub /topic/rates "rate 1"
subscribe office 1
subscribe branch 1
echo "the branch is down"
for number in 2 3 4; do imori pub /topic/rates "rate $number"; done
subscribe office 3
echo "the branch is back"
subscribe branch 3
