#!/bin/sh
# Runs the quick suite on every Python, 3.10 to 3.14, that this machine has beside $1. $2: the lock file.
set -eu
here=$(dirname "$0")
version='import sys; print("%d.%d" % sys.version_info[:2])'
mine=$("$1" -c "$version")
ran=""
for minor in 10 11 12 13 14; do
    python=python3.$minor
    [ "3.$minor" != "$mine" ] && [ "$("$python" -c "$version" 2>/dev/null)" = "3.$minor" ] || continue
    echo "h2t2 pythons: 3.$minor"
    PYTHON=$python sh "$here/setup.sh" ".venv-3.$minor" "$2"
    ".venv-3.$minor/bin/pytest" -q -n auto --dist worksteal --quick -m "not whole"
    ran="$ran 3.$minor"
done
echo "h2t2 pythons: passed on${ran:- no other Python: this machine has none}"
