#!/bin/sh
# Each receiver has a queue, and the sender chooses by the queue who gets a message.
export IMORI_URL="$1"
for order in tokyo:1 osaka:2 tokyo:3 nagoya:4 osaka:5 tokyo:6; do
    imori pub --header persistent:true "/queue/orders.${order%:*}" "order ${order#*:}"
done
imori sub --count 3 /queue/orders.tokyo | sed 's/^/tokyo has /'
imori sub --count 2 /queue/orders.osaka | sed 's/^/osaka has /'
imori sub --count 1 /queue/orders.nagoya | sed 's/^/nagoya has /'
