#!/bin/sh
# Plays four random scripts a second of $2 with the library in C. Then it runs every target of tests/fuzz under coverage
# (atheris), two at a time. $1: the folder of python, $2: seconds a target.
# Without atheris for this machine it prints that and ends: hypothesis runs the same targets in the tests.
set -eu
H2T2_FUZZ_CASES=$((4 * $2)) "$1/pytest" -q -n0 -k no_options tests/boards/test_c_library.py
if ! "$1/python" -c "import atheris" 2>/dev/null; then
    "$1/python" -m pip install -q --only-binary :all: --no-deps "atheris>=2.3" 2>/dev/null ||
        { echo "h2t2 fuzz: no atheris for this system: left out" >&2; exit 0; }
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export PY="$1/python" S="$2" OUT="$out"
"$1/python" tests/fuzz/fuzz.py 2>/dev/null | sed 's/^targets: //' | tr ' ' '\n' | xargs -P 2 -I{} sh -c '
    if "$PY" tests/fuzz/fuzz.py {} -max_total_time="$S" -seed=1 -artifact_prefix="$OUT/" >"$OUT/{}.log" 2>&1; then
        echo "fuzz {}: $(grep -c "#" "$OUT/{}.log") lines of progress, $(sed -n "s/^Done \\([0-9]*\\) runs.*/\\1/p" "$OUT/{}.log") runs"
    else
        tail -40 "$OUT/{}.log" >&2
        exit 255
    fi'
