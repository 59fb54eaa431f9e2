"""A node takes as much of a board's memory as `h2t2 flash` says."""

import pytest
from board_features import needs

from h2t2_lab.bench import memory
from h2t2_tools.boards import flash, node_heap
from h2t2_tools.boards.emulators import flash_image
from h2t2_tools.boards.emulators.pico import Pico
from h2t2_tools.boards.kinds import KINDS
from h2t2_tools.boards.repl import RawRepl


@pytest.mark.slow
@pytest.mark.timeout(1200)
@needs("memory")
def test_the_heap_is_what_flash_says(board, make_material, figures):
    """Compare gc.mem_free() on the Pico before and after a node is assembled with the figures of `flash --dry-run`."""
    material = make_material(20, snapshot="", log_file="")
    heap = node_heap.needed(KINDS["pico"], material.contents_serial())
    if heap is None:
        pytest.skip("the figure is measured on emulated ARM: h2t2-lab emulators arm32")
    flash_image.runtime_on_a_pico(material.folder / "flash.bin")
    with Pico(material.folder / "flash.bin") as pico:
        report = flash.flash(KINDS["pico"], pico.port, material.contents_serial(), False, lambda *_: None, start=False)
        with RawRepl(pico.port, pace=False) as repl:
            free, free_after = (int(n) for n in repl.run(memory.STARTED, 120).split())
    expected = sum(heap.values()) - heap["work"]
    figures.update(heap_free=report["found"]["heap"], heap_before=free, heap_after=free_after, said=expected)
    assert abs(free - free_after - expected) <= 0.05 * expected, (free, free_after, heap)
    assert report["found"]["heap"] >= KINDS["pico"].heap
