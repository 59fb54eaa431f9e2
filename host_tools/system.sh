#!/bin/sh
# Installs what the tests run beside Python: brokers, emulators, MicroPython. $1: the h2t2 command.
# Without root or sudo it says what to run and goes on: the tests that need it skip, with that reason.
set -eu
missing=""
for pair in mosquitto:/usr/sbin/mosquitto qemu-system-arm:/usr/bin/qemu-system-arm qemu-user:/usr/bin/qemu-arm faketime:/usr/bin/faketime; do
    [ -e "${pair#*:}" ] || missing="$missing ${pair%%:*}"
done
for pair in nodejs:node npm:npm; do
    command -v "${pair#*:}" >/dev/null || missing="$missing ${pair%%:*}"
done
if [ -n "$missing" ]; then
    if ! command -v apt-get >/dev/null; then
        echo "h2t2 setup: no apt-get here; tests that need$missing will skip" >&2
    elif [ "$(id -u)" = 0 ]; then
        apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        sudo apt-get update -q && sudo DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
    else
        echo "h2t2 setup: tests that need$missing will skip; to run them: sudo apt-get install$missing" >&2
    fi
fi
"$1" emulators --install
