#!/bin/sh
# Installs what the tests run beside Python. $1: the h2t2 command; $2: `quick` for what `make test` runs (a broker, QEMU, MicroPython),
# `whole` for the rest as well (a browser, compilers, boards built from source).
# Without root or sudo it says what to run and goes on: the tests that need it skip, with that reason. With root and apt, whatever
# cannot be had is an error.
set -eu
h2t2=$1
suite=$2
missing=""
want() { # package, and what it brings: a path, or a command
    case "$2" in
        /*) [ -e "$2" ] || missing="$missing $1" ;;
        *) command -v "$2" >/dev/null || missing="$missing $1" ;;
    esac
}
want mosquitto /usr/sbin/mosquitto
want qemu-system-arm qemu-system-arm
want qemu-user qemu-arm
want faketime faketime
want nodejs node
want npm npm
if [ "$suite" = whole ]; then
    want chromium chromium
    want chromium-driver chromedriver
    want qemu-system-misc qemu-system-riscv32
    # each board says what its firmware is built with, unless it is built already
    missing="$missing $("$h2t2" emulators --needs)"
fi
missing=$(echo $missing)
may=""
if [ -n "$missing" ]; then
    if ! command -v apt-get >/dev/null; then
        echo "h2t2 setup: no apt-get here; tests that need $missing will skip" >&2
    elif [ "$(id -u)" = 0 ]; then
        may=env
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        may="sudo env"
    else
        echo "h2t2 setup: tests that need $missing will skip; to run them: sudo apt-get install $missing" >&2
    fi
    if [ -n "$may" ]; then
        $may apt-get update -q
        $may DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
    fi
fi
quick="unix arm32 wasm microbit pi"
if [ "$suite" = quick ]; then
    "$h2t2" emulators $quick --install || echo "h2t2 setup: tests on those emulators will skip" >&2
elif command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || [ -n "$may" ]; }; then
    "$h2t2" emulators --install
else
    "$h2t2" emulators --install || echo "h2t2 setup: tests on those emulators will skip" >&2
fi
