#!/bin/sh
# Subscribers name a condition, and get the messages that fulfil it.
export IMORI_URL="$1"
found=$(mktemp -d)
number=0
for condition in "volume <> 'small'" "symbol IN ('A', 'C')" "symbol LIKE 'B%' AND volume = 'small'"; do
    number=$((number + 1))
    imori sub --timeout 3s --header selector:"$condition" /topic/trades 2>/dev/null | sed "s/^/$condition: /" >"$found/$number" &
done
# The subscribers are there before the trades are.
sleep 1
trade() { imori pub --header symbol:"$1" --header volume:"$2" /topic/trades "$2 trade of $1"; }
trade A small
trade B small
trade C large
trade BB large
wait
cat "$found"/*
rm -r "$found"
