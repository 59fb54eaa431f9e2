#!/bin/sh
# Tests on every other Python of this machine than $1, 3.10 to 3.14. $2: the lock file. The newest runs the quick suite; $3 (a marker
# expression of pytest) selects the tests of the others.
set -eu
here=$(dirname "$0")
others=$("$1" -m h2t2_tools.common.pythons)
ran=""
for python in $others; do
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    marker=$3
    case "$others" in *"$python") marker="not whole" ;; esac
    echo "h2t2 pythons: $version, tests that are: $marker"
    PYTHON=$python sh "$here/setup.sh" ".venv-$version" "$2"
    ".venv-$version/bin/pytest" -q -n auto --dist worksteal --quick -m "$marker" --junitxml="results/suites/quick-$version.xml"
    ran="$ran $version"
done
echo "h2t2 pythons: passed on${ran:- no other Python: this machine has none}"
sh host_tools/setup.sh .venv host_tools/locks/dev.txt
touch .venv/.done
