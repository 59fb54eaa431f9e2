"""A model in ROMFS stays in flash, and what `h2t2 inspect` says of a board's RAM is what opening a model allocates there."""

import pytest
from support import ROOT

from h2t2_tools.boards import emulators
from h2t2_tools.model import bundle
from h2t2_tools.model.footprint import footprint

MODELS = ["models/digits/ldl.tflite", "models/chest_xray/ldl.tflite", "tests/material/dense_relu.tflite"]
MEASURE = """import gc, vfs
from h2t2.ldl.open import open_ldl
from h2t2.ldl.bundle import Int8Model
with open("FOLDER/image", "rb") as file:
    rom = file.read()
vfs.mount(vfs.VfsRom(rom), "/rom")
x = [(n * 37 & 255) - 128 for n in range(4000)]
gc.collect()
before = gc.mem_alloc()
ldl = open_ldl("MODEL", 0, 4)
gc.collect()
print(gc.mem_alloc() - before, ldl.run(memoryview(bytes([n & 255 for n in x[: ldl.input_size]]))))
"""


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_a_model_in_romfs_stays_in_flash(model, tmp_path):
    if emulators.ARM32.missing():
        pytest.skip(emulators.ARM32.missing())
    romfs = pytest.importorskip("mpremote.romfs")
    content = bundle.from_tflite(ROOT / model)
    (tmp_path / "ldl.h2m").write_bytes(content)
    image = romfs.VfsRomWriter()
    image.mkfile("ldl.h2m", content)
    (tmp_path / "image").write_bytes(image.finalise())
    said = []
    for path in (tmp_path / "ldl.h2m", "/rom/ldl.h2m"):
        (tmp_path / "measure.py").write_text(MEASURE.replace("FOLDER", str(tmp_path)).replace("MODEL", str(path)))
        said.append(emulators.ARM32.run(tmp_path / "measure.py", [], ROOT / "firmware").split())
    (copied, score), (mapped, same) = said
    assert score == same
    for measured, reckoned in ((copied, footprint(content)), (mapped, footprint(content, mapped=True))):
        assert abs(int(measured) - reckoned) <= 0.05 * reckoned + 96
