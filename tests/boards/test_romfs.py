"""A model in ROMFS stays in flash, a streamed one in its file; `h2t2 inspect` says what opening each allocates on a board."""

import pytest
from interpreters import in_machine_code
from support import ROOT, need

from h2t2_tools.boards.emulators import catalogue
from h2t2_tools.model import bundle
from h2t2_tools.model.footprint import FILE, footprint

UNIX_FILE = 16  # bytes of an open file there, whose buffer is the system's; on a board's littlefs it is more
MODELS = ["models/digits/ldl.tflite", "models/chest_xray/ldl.tflite", "tests/material/dense_relu.tflite"]
MEASURE = """import gc, vfs
from h2t2.ldl.open import open_ldl
from h2t2.ldl.bundle import Int8Model
import h2t2.ldl.streamed
with open("FOLDER/image", "rb") as file:
    rom = file.read()
vfs.mount(vfs.VfsRom(rom), "/rom")
x = [(n * 37 & 255) - 128 for n in range(4000)]
open_ldl("MODEL", 0, stream=STREAM)  # loads the code of its operators
gc.collect()
before = gc.mem_alloc()
ldl = open_ldl("MODEL", 0, stream=STREAM)
gc.collect()
print(gc.mem_alloc() - before, ldl.run(memoryview(bytes([n & 255 for n in x[: ldl.input_size]]))))
"""


@pytest.mark.parametrize("model", MODELS)
def test_a_model_in_romfs_stays_in_flash(model, tmp_path):
    need(catalogue.ARM32)
    romfs = pytest.importorskip("mpremote.romfs")
    content = bundle.from_tflite(ROOT / model)
    (tmp_path / "ldl.h2m").write_bytes(content)
    image = romfs.VfsRomWriter()
    image.mkfile("ldl.h2m", content)
    (tmp_path / "image").write_bytes(image.finalise())
    runtime = in_machine_code(catalogue.ARM32, tmp_path)
    said = []
    for path, stream in ((tmp_path / "ldl.h2m", "False"), ("/rom/ldl.h2m", "True"), (tmp_path / "ldl.h2m", "True")):
        script = MEASURE.replace("FOLDER", str(tmp_path)).replace("MODEL", str(path)).replace("STREAM", stream)
        (tmp_path / "measure.py").write_text(script)
        said.append(catalogue.ARM32.run(tmp_path / "measure.py", [], runtime).split())
    (copied, score), (mapped, same), (streamed, again) = said
    assert score == same == again
    on_unix = footprint(content, streamed=True) - FILE + UNIX_FILE
    reckoned = footprint(content), footprint(content, mapped=True), on_unix
    for measured, expected in zip((copied, mapped, streamed), reckoned):
        assert int(measured) <= expected <= 1.08 * int(measured) + 128
