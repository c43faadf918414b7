#!/bin/sh
# Several receivers share the work of one queue: each message goes to one of them.
export IMORI_URL="$1"
done=$(mktemp -d)
for worker in 1 2 3; do
    imori sub --timeout 3s --ack client-individual --header prefetch-count:1 /queue/work >"$done/$worker" 2>"$done/$worker.end" &
done
# The workers are there before the work is.
sleep 1
seq -f 'job %.0f' 1 30 | while read -r job; do imori pub /queue/work "$job"; done
wait
echo "$(cat "$done/1" "$done/2" "$done/3" | sort -u | wc -l) jobs are done"
echo "$(find "$done" -name '?' -size +0 | wc -l) workers had some of them"
rm -r "$done"
