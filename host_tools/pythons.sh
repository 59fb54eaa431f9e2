#!/bin/sh
# Tests on every other Python of this machine than $1, 3.10 to 3.14. $2: the lock file; $3: the tests, a marker expression of pytest.
set -eu
here=$(dirname "$0")
ran=""
for python in $("$1" -m h2t2_tools.common.pythons); do
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    echo "h2t2 pythons: $version, tests that are: $3"
    PYTHON=$python sh "$here/setup.sh" ".venv-$version" "$2"
    ".venv-$version/bin/pytest" -q -n auto --dist worksteal --quick -m "$3" --junitxml="results/suites/quick-$version.xml"
    ran="$ran $version"
done
echo "h2t2 pythons: passed on${ran:- no other Python: this machine has none}"
