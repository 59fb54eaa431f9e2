# open_ldl() picks a local model's back end by the name of its file.
from .buffers import in_flash, release, reserve, take
from .ldl import Ldl

if 0:  # for type checkers: MicroPython compiles nothing here
    from ..annotations import Any


def open_ldl(model: "Any", event: int = 1, resolver: str = "reference", stream: bool = False) -> Ldl:
    """Open a local model.

    Args:
        model: path of a .h2m bundle (integer interpreter) or of a .tflite (CPython: LiteRT or tflite-runtime;
            of decision trees the bundle beside it). An Ldl is
            returned as it is.
        event: index of the event's class among the outputs.
        resolver: a .tflite's kernels, "reference" or "optimised".
        stream: read a bundle's weights from its file, a layer at a time, at every inference: less RAM, and slower. A bundle
            that lies in flash anyway (ROMFS) is used from there.

    Returns:
        The model, an Ldl.

    Raises:
        ValueError: the model cannot be used; the message names the file.
        OSError: the file cannot be read.
    """
    if isinstance(model, Ldl):
        return model
    path = str(model)
    if path.endswith(".h2m"):
        file = open(path, "rb")
        try:
            return _open_bundle(file, event, stream)
        except ValueError as error:
            raise ValueError("%s: %s" % (path, error)) from None
        finally:
            release()
    if path.endswith(".tflite"):
        from ..cpython.tflite import TFLiteModel, bundle_of_trees

        bundle = bundle_of_trees(path)
        return open_ldl(bundle, event) if bundle else TFLiteModel(path, event, resolver)
    raise ValueError("%s: want a .tflite or a .h2m bundle" % path)


def _open_bundle(file: "Any", event: int, stream: bool) -> Ldl:
    reserve(file, stream)  # before the modules that it needs
    if in_flash(file):
        content = memoryview(file)
    elif stream:
        from .streamed import StreamedModel

        return StreamedModel(file, event)
    else:
        content = memoryview(take(file.seek(0, 2)))  # at once: read() would take up to twice as much on its way
        file.seek(0)
        file.readinto(content)
    file.close()
    from .bundle import Int8Model

    return Int8Model(content, event)
