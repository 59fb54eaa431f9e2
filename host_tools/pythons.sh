#!/bin/sh
# Tests on every other Python of this machine than $1, 3.10 to 3.14. $2: the lock file; $3: the tests, a marker expression of pytest.
# The newest checks the types against its newer libraries. The others run those of the core and the models.
set -eu
here=$(dirname "$0")
others=$("$1" -m h2t2_lab.pythons)
ran=""
for python in $others; do
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    PYTHON=$python sh "$here/setup.sh" ".venv-$version" "$2"
    case "$others" in
        *"$python")
            echo "h2t2 pythons: $version, tests that are: $3"
            ".venv-$version/bin/mypy"
            make fast BIN=".venv-$version/bin" FAST="$3"
            ;;
        *)
            echo "h2t2 pythons: $version, tests of the core and the models that are: $3"
            ".venv-$version/bin/pytest" -q -n auto --dist worksteal -m "$3" tests/core tests/ldl
            ;;
    esac
    ran="$ran $version"
done
if [ -z "$ran" ]; then
    echo "h2t2 pythons: this machine has no other Python"
else
    echo "h2t2 pythons: passed on$ran"
fi
