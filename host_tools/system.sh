#!/bin/sh
# Installs the programs that the tests need. $1: the h2t2-lab command; $2: `quick` for `make test` (a broker, QEMU, MicroPython), `whole`
# for all tests (also a browser, compilers, boards built from source).
# Without root or sudo it prints the commands to run and continues: tests skip with that reason. With root and apt, a missing
# program is an error.
set -eu
lab=$1
suite=$2
missing=""
want() { # package, and its path or command
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
# containers and installers write this name, debootstrap does not; libraries connect to it by default
if ! getent hosts localhost >/dev/null; then
    if [ "$(id -u)" = 0 ]; then
        echo "127.0.0.1 localhost" >>/etc/hosts
        echo "h2t2 setup: /etc/hosts names localhost now" >&2
    else
        echo "h2t2 setup: this system does not know localhost; tests that connect to it will skip" >&2
    fi
fi
if [ "$suite" = whole ]; then
    want chromium chromium
    want chromium-driver chromedriver
    want qemu-system-misc qemu-system-riscv32
    want fish fish
    want zsh zsh
    # packages of Home Assistant have no wheels for Python 3.12 and newer
    want gcc gcc
    # programs with the library of h2t2 export-c
    want g++ g++
    want clang clang
    want gcc-arm-none-eabi arm-none-eabi-gcc
    want gcc-riscv64-unknown-elf riscv64-unknown-elf-gcc
    want python3-dev "$("$(dirname "$lab")/python" -c 'import sysconfig; print(sysconfig.get_path("include") + "/Python.h")')"
    # the packages that build each board's firmware, unless it is built already
    missing="$missing $("$lab" emulators all --needs)"
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
    "$lab" emulators $quick || echo "h2t2 setup: tests on those emulators will skip" >&2
elif command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || [ -n "$may" ]; }; then
    "$lab" emulators all
else
    "$lab" emulators all || echo "h2t2 setup: tests on those emulators will skip" >&2
fi
