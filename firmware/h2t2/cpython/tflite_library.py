# Which library runs a .tflite here: LiteRT (ai-edge-litert), or tflite-runtime where that is.
import numpy as np

try:
    # tflite-runtime was built against NumPy 1, and fails with another once a model is opened
    if int(np.__version__.split(".")[0]) > 1:
        raise ImportError
    from tflite_runtime.interpreter import Interpreter, OpResolverType
except ImportError:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

__all__ = ["Interpreter", "OpResolverType"]
