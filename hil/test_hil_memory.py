"""What `h2t2 flash` says a node takes of a board's memory is what it takes."""

import pytest
from marks import needs

from h2t2_tools.boards import flash
from h2t2_tools.boards.emulators import drive
from h2t2_tools.boards.emulators.pico import Pico
from h2t2_tools.boards.kinds import KINDS
from h2t2_tools.boards.repl import RawRepl


@pytest.mark.slow
@pytest.mark.timeout(1200)
@needs("memory")
def test_the_heap_is_what_flash_says(board, material, figures):
    """gc.mem_free() on the Pico before and after a node is put together, beside what `flash --dry-run` says."""
    made = material(20, snapshot="", log_file="")
    said = flash.needed(KINDS["pico"], made.contents_serial())
    if said is None:
        pytest.skip("the figure is measured on emulated ARM: h2t2 emulators --install")
    drive.runtime_on_a_pico(made.folder / "flash.bin")
    with Pico(made.folder / "flash.bin") as pico:
        report = flash.flash(KINDS["pico"], pico.port, made.contents_serial(), False, lambda *_: None, start=False)
        with RawRepl(pico.port, pace=False) as repl:
            free, left = (int(n) for n in repl.run(STARTED, 120).split())
    wanted = sum(said.values()) - said["work"]
    figures.update(heap_free=report["found"]["heap"], heap_before=free, heap_after=left, said=wanted)
    assert abs(free - left - wanted) <= 0.05 * wanted, (free, left, said)
    assert report["found"]["heap"] >= KINDS["pico"].heap


# as flash measures it: the link, the runtime and the model, of the configuration that was copied
STARTED = """import gc
import json
gc.collect()
free = gc.mem_free()
from h2t2.modules import forget
from h2t2.node.run import ONLY_AT_START
from h2t2.node.start import service
from h2t2.link.serial import SerialLink
import h2t2.link.stdio
class Line:
    def write(self, data):
        pass
with open("config.json") as file:
    config = json.load(file)
file = None  # an object of 1,168 bytes on littlefs, closed or not
running = service(config, SerialLink(Line(), "d"), sensor=lambda: None, watchdog=lambda: None)
service = None
for name in ONLY_AT_START:
    forget(name)
gc.collect()
print(free, gc.mem_free())
"""
