#!/bin/sh
# Installs what the tests run beside Python: brokers, emulators, MicroPython, a browser. $1: the h2t2 command.
# Without root or sudo it says what to run and goes on: the tests that need it skip, with that reason.
set -eu
missing=""
for pair in mosquitto:/usr/sbin/mosquitto qemu-system-arm:/usr/bin/qemu-system-arm qemu-user:/usr/bin/qemu-arm faketime:/usr/bin/faketime; do
    [ -e "${pair#*:}" ] || missing="$missing ${pair%%:*}"
done
for pair in nodejs:node npm:npm qemu-system-misc:qemu-system-riscv32 chromium:chromium chromium-driver:chromedriver; do
    command -v "${pair#*:}" >/dev/null || missing="$missing ${pair%%:*}"
done
# the compilers that build boards' firmware, unless it is built already
boards=${XDG_CACHE_HOME:-$HOME/.cache}/h2t2
if ! [ -e "$boards/pico/firmware.bin" ] || ! [ -e "$boards/cortex-m3/firmware.elf" ] || ! [ -e "$boards/rv32/firmware.elf" ]; then
    for package in g++ make cmake ninja-build gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib \
        gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf; do
        dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
    done
fi
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
