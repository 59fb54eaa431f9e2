"""A float ONNX network, as PyTorch and others export it, translated to a float .tflite.

`network` reads the file, and `translation` holds the growing .tflite. `layers`, `elementwise` and `shapes` each translate one
kind of node. `source` compares the result with onnxruntime.
"""
