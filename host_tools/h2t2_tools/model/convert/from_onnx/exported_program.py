"""PyTorch's exported programs, of torch.export.save(): torch itself makes an ONNX network of them."""

from dataclasses import replace
from pathlib import Path

from ....common.errors import UserError
from ....common.places import temporary_folder
from ..quiet import quiet
from ..trained_model import Source
from .onnx_network import onnx_file


def program_file(path: Path) -> Source:
    """Open a .pt2. UserError where torch is missing or refuses the file, or for what onnx_file() refuses."""
    with temporary_folder("torch") as folder:
        network = exported(path, Path(folder))
        try:
            source = onnx_file(network)
        except UserError as error:
            error.args = (str(error).replace(str(network), str(path)),)
            raise
    return replace(source, kind="PyTorch", path=path, file_bytes=path.stat().st_size)


def exported(path: Path, folder: Path) -> Path:
    """Write the ONNX network of a .pt2 to a folder. UserError where torch is missing or refuses the file."""
    with quiet():
        try:
            import onnxscript  # noqa: F401
            import torch
        except ImportError:
            raise UserError(f"{path}: an exported program needs PyTorch: pip install torch onnxscript") from None
        network = folder / path.with_suffix(".onnx").name
        try:
            torch.onnx.export(torch.export.load(path), (), network, dynamo=True, external_data=False)
        except Exception as error:  # torch raises errors of many types
            raise UserError(f"{path}: torch cannot export it to ONNX: {str(error).splitlines()[0]}") from None
    return network
