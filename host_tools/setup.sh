#!/bin/sh
# Installs the packages of the lock file $2 and this project into the virtual environment $1. It creates the environment if needed.
# Needs python3 3.10 to 3.14.
set -eu
venv=$1
lock=$2
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' || {
    echo "h2t2 setup: $python is $("$python" --version 2>&1); Python 3.10 to 3.14 is needed (set PYTHON=...)" >&2
    exit 2
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then sudo "$@"; else return 1; fi
}

here=$(dirname "$0")

# Prints how $python runs pip: its own, or the one that ensurepip holds, unpacked into the folder $1.
pip_of_python() {
    if "$python" -m pip --version >/dev/null 2>&1; then
        echo "-m pip"
    else
        "$python" - "$1" <<'END'
import sys, zipfile
from pathlib import Path
import ensurepip
folders = [getattr(ensurepip, "_WHEEL_PKG_DIR", None), Path(ensurepip.__file__).parent / "_bundled"]
wheel = next(wheel for folder in folders if folder for wheel in Path(folder).glob("pip-*.whl"))
zipfile.ZipFile(wheel).extractall(sys.argv[1])
print(Path(sys.argv[1], "pip"))
END
    fi 2>/dev/null
}

make_venv() {
    rm -rf "$venv"
    # that pip puts pip and uv there in half the time that ensurepip takes
    if "$python" -m venv --without-pip "$venv" && pip=$(pip_of_python "$venv/.pip") && "$python" $pip --python "$venv/bin/python" \
        install -q --no-compile --require-hashes -r "$here/locks/uv.txt" 2>/dev/null; then
        rm -rf "$venv/.pip"
        return
    fi
    rm -rf "$venv"
    # Debian's python3 lacks ensurepip without python3-venv
    if "$python" -c 'import ensurepip' 2>/dev/null; then
        "$python" -m venv "$venv"
    elif "$python" -m pip --version >/dev/null 2>&1; then
        "$python" -m venv --without-pip "$venv"
        "$python" -m pip --python "$venv/bin/python" install -q pip
    elif command -v apt-get >/dev/null && as_root apt-get update -q \
        && as_root apt-get install -y -q --no-install-recommends python3-venv; then
        "$python" -m venv "$venv"
    else
        echo "h2t2 setup: python3 has neither venv nor pip; run: sudo apt-get install python3-venv" >&2
        exit 1
    fi
}

# Another Python or another lock file needs a new environment: packages of the old lock would stay.
same='import sys; print(sys.version_info[:2])'
cmp -s "$lock" "$venv/.lock" && [ "$("$venv/bin/python" -c "$same" 2>/dev/null)" = "$("$python" -c "$same")" ] || make_venv

# uv takes seconds, pip minutes. uv does not read pip's configuration: pip installs where that names an index, or where uv lacks a
# wheel for this machine.
fast() {
    ! "$venv/bin/python" -m pip config list 2>/dev/null | grep -q '\.index-url=' || return 1
    [ -x "$venv/bin/uv" ] || "$venv/bin/python" -m pip install -q --no-compile --require-hashes -r "$here/locks/uv.txt" 2>/dev/null || return 1
    set -- "$venv/bin/uv" pip install -q --no-config --python "$venv/bin/python"
    "$@" --require-hashes -r "$lock" && "$@" --no-deps --no-build-isolation --no-index -e "$here/.."
}
if ! fast; then
    "$venv/bin/python" -m pip install -q --no-compile --require-hashes -r "$lock"
    "$venv/bin/python" -m pip install -q --no-deps --no-build-isolation --no-index -e "$here/.."
fi
# the lab's command, which no wheel has
printf '#!%s/bin/python\nimport sys\n\nfrom h2t2_lab.command_line import main\n\nsys.exit(main())\n' "$(cd "$venv" && pwd)" > "$venv/bin/h2t2-lab"
chmod +x "$venv/bin/h2t2-lab"
cp "$lock" "$venv/.lock"
