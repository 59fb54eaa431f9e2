#!/bin/sh
# Runs make targets on a bare Debian: a minimal system from debootstrap with python3, python3-venv, make and git, in a chroot.
# sh host_tools/bare_debian.sh RELEASE USER FOLDER TARGET...   RELEASE: bookworm, trixie, forky; USER: root, or a name for a user without
# rights; FOLDER: where the system is made, or stays from the last run. As root. Each target leaves its output and its time in
# results/bare, its tests also in results/suites; `make times` writes them to docs/testing.md.
set -eu
release=$1
user=$2
folder=$3
shift 3
mirror=${MIRROR:-http://deb.debian.org/debian}
here=$(cd "$(dirname "$0")/.." && pwd)
if [ ! -e "$folder/.complete" ]; then
    script=/usr/share/debootstrap/scripts/$release
    [ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid # a release newer than this machine's debootstrap
    debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv,make,git "$release" "$folder" "$mirror" "$script"
    touch "$folder/.complete"
fi
home=/root
if [ "$user" != root ]; then
    home=/home/$user
    chroot "$folder" id "$user" >/dev/null 2>&1 || chroot "$folder" useradd --create-home --shell /bin/sh "$user"
fi
# what this machine needs to reach a package index: certificates, addresses, proxies
cp /etc/resolv.conf "$folder/etc/resolv.conf"
mkdir -p "$folder/usr/local/share/ca-certificates"
cp /usr/local/share/ca-certificates/*.crt "$folder/usr/local/share/ca-certificates/" 2>/dev/null || true
chroot "$folder" update-ca-certificates >/dev/null 2>&1
echo 'Acquire::Check-Valid-Until "false";' >"$folder/etc/apt/apt.conf.d/99-mirror" # a mirror may be weeks old; apt checks its signature
[ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$folder/etc/pip.conf"
settings=$(env | grep -E '^(PIP_(CERT|INDEX_URL|EXTRA_INDEX_URL|DEFAULT_TIMEOUT)|UV_[A-Z_]*|SSL_CERT_FILE|https?_proxy|no_proxy)=' || true)

rm -rf "$folder$home/h2t2"
git clone -q --no-hardlinks "$here" "$folder$home/h2t2"
chroot "$folder" chown -R "$user" "$home/h2t2"

results=$here/results
mkdir -p "$results/bare" "$results/suites"
status=0
for target; do
    name="Debian $(sed "s/[./].*//" "$folder/etc/debian_version"), $user, $target"
    began=$(date +%s)
    # namespaces of its own: mounts and processes end with the command
    # shellcheck disable=SC2016,SC2086
    unshare --mount --pid --fork sh -c '
        folder=$1 user=$2 home=$3 target=$4
        shift 4
        mount -t proc proc "$folder/proc"
        mount --rbind /sys "$folder/sys"
        mount --rbind /dev "$folder/dev"
        cd /
        exec chroot --userspec="$user" "$folder" env -i HOME="$home" USER="$user" LANG=C.UTF-8 \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@" sh -c "cd && cd h2t2 && exec make $target"
    ' sh "$folder" "$user" "$home" "$target" $settings >"$results/bare/$name.txt" 2>&1 </dev/null && code=0 || code=$?
    printf 'exit %s after %s s\n' "$code" $(($(date +%s) - began)) | tee -a "$results/bare/$name.txt"
    [ "$code" = 0 ] || status=1
    for suite in "$folder$home"/h2t2/results/suites/*.xml; do
        [ ! -e "$suite" ] || cp "$suite" "$results/suites/$(basename "${suite%-*}") on a bare Debian as $user-${suite##*-}"
    done
done
exit $status
