#!/bin/bash
# The only plugin of these tests: one request, its body and the links in it. It follows and reports redirects.
# It is cheap, so that the tests do not measure the plugin.
for argument; do
  case $argument in --url=*) url=${argument#--url=} ;; esac
done
while :; do
  rest=${url#http://}
  authority=${rest%%/*}
  exec 3<>"/dev/tcp/${authority%:*}/${authority#*:}" || { echo '{"type":"ArchiveResult","status":"failed","output_str":"no connection"}'; exit 1; }
  printf 'GET /%s HTTP/1.0\r\nHost: %s\r\n\r\n' "${rest#*/}" "$authority" >&3
  read -r _ status _ <&3
  after= location=
  while read -r line <&3; do
    line=${line%$'\r'}
    [ -n "$line" ] || break
    case $line in Retry-After:*) after=${line#*: } ;; Location:*) location=${line#*: } ;; esac
  done
  cat <&3 >page.txt
  [ "$status" = 302 ] || break
  echo "{\"type\":\"Redirect\",\"url\":\"$url\",\"location\":\"$location\",\"status\":302}"
  url=$location
done
case $status in
  200)
    [ "$(head -c 5 page.txt)" != "link " ] || sed 's/^link \(.*\)/{"type":"Snapshot","url":"\1"}/' page.txt
    echo '{"type":"ArchiveResult","status":"succeeded","output_str":"page.txt"}' ;;
  429 | 503)
    echo "{\"type\":\"RateLimit\",\"host\":\"${authority%:*}\",\"status\":$status${after:+,\"retry_after\":$after}}"
    echo "{\"type\":\"ArchiveResult\",\"status\":\"failed\",\"output_str\":\"HTTP $status\"}" ;;
  *) echo "{\"type\":\"ArchiveResult\",\"status\":\"failed\",\"output_str\":\"HTTP $status\"}" ;;
esac
