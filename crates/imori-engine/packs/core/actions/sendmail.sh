#!/bin/sh
# Sends a mail: sendmail_binary from to subject send_empty_body content_type body [attachments]
set -eu

binary=$1 from=$2 to=$3 subject=$4 send_empty=$5 type=$6 body=$7 attachments=${8:-}

case $binary in
'' | None) binary=$(command -v sendmail || echo /usr/sbin/sendmail) ;;
esac
if [ ! -x "$binary" ]; then
    echo "\`$binary\` is not there; install a mail transfer agent or set sendmail_binary" >&2
    exit 2
fi
case $send_empty in
0 | [Ff]alse)
    if [ -z "$body" ]; then
        echo "the text is empty, so nothing is sent"
        exit 0
    fi
    ;;
esac
case $from in
*@*) ;;
*) from="$from@$(hostname)" ;;
esac

# A line break would add headers of a sender's choice.
line() {
    printf '%s' "$1" | tr '\r\n' '  '
}

encoded_subject="=?UTF-8?B?$(printf '%s' "$subject" | base64 -w 0)?="
boundary="imori-$$-$(date +%s)"
{
    printf 'From: %s\nTo: %s\nSubject: %s\nMIME-Version: 1.0\n' "$(line "$from")" "$(line "$to")" "$encoded_subject"
    printf 'Content-Type: multipart/mixed; boundary="%s"\n\n' "$boundary"
    printf -- '--%s\nContent-Type: %s; charset=UTF-8\n' "$boundary" "$(line "$type")"
    printf 'Content-Transfer-Encoding: base64\n\n'
    printf '%s' "$body" | base64
    printf '%s' "$attachments" | tr ',' '\n' | while IFS= read -r file || [ -n "$file" ]; do
        [ -n "$file" ] || continue
        name=$(line "$(basename "$file")" | tr -d '"')
        printf -- '--%s\nContent-Type: application/octet-stream\n' "$boundary"
        printf 'Content-Disposition: attachment; filename="%s"\n' "$name"
        printf 'Content-Transfer-Encoding: base64\n\n'
        base64 "$file"
    done
    printf -- '--%s--\n' "$boundary"
} | "$binary" -t
echo "handed the mail to $binary"
