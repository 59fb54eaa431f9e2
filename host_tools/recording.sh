#!/bin/sh
# Records `h2t2 demo` in a terminal of 108 columns as an animated picture. $1: a folder with the programs h2t2's environment has;
# $2: one with asciinema, which records, and termtosvg, which draws; $3: the .svg to write.
set -eu
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
cast=$home/demo.cast
bin=$(cd "$1" && pwd)
tools=$(cd "$2" && pwd)
picture=$(cd "$(dirname "$3")" && pwd)/$(basename "$3")
cd "$home" # where the demo leaves its pictures
TERM=xterm-256color PATH=$bin:$PATH "$tools/asciinema" rec -q --cols 108 --rows 32 -i 1.5 \
    -c "printf '\$ h2t2 demo\r\n'; sleep 1; h2t2 demo; sleep 4" "$cast"
"$tools/termtosvg" render "$cast" "$picture" -m 200 -D 4000
