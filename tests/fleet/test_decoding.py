"""Pictures of devices: what a decoder does with hostile bytes is a sentence, and costs this process nothing."""

import io
import random
import re
import resource
import struct
import zlib

import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from h2t2.cpython import worker_wire
from h2t2.link import wire
from h2t2_tools.common import pairs
from h2t2_tools.fleet.rdl import decoding, preview
from h2t2_tools.fleet.rdl.decoding import PREVIEW_PIXELS, decoded


@pytest.fixture(autouse=True)
def unmeasured(monkeypatch):
    """A decoding child may write no file, so it cannot write what it covered."""
    monkeypatch.delenv("COVERAGE_PROCESS_START", raising=False)


def file_of(image, kind, **options):
    with io.BytesIO() as file:
        image.save(file, kind, **options)
        return file.getvalue()


def png(width, height):
    """A black picture of one bit a pixel, made without its pixels."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    packer = zlib.compressobj(9)
    row = bytes(1 + (width + 7) // 8)
    body = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP"])
def test_pictures_are_decoded_and_made_small(kind):
    assert np.abs(decoded(file_of(Image.new("RGB", (40, 20), "red"), kind)).astype(int) - (255, 0, 0)).max() < 8
    assert decoded(file_of(Image.new("RGB", (3000, 100)), kind)).shape == (34, PREVIEW_PIXELS, 3)


def test_a_small_file_of_many_pixels_is_refused_before_it_takes_memory():
    bomb = png(25000, 25000)  # 625 million pixels: 1.9 GB as RGB
    assert len(bomb) < 100_000
    before, here = (resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))
    with pytest.raises(ValueError, match="25000 x 25000 pixels are more than"):
        decoded(bomb)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 100_000 + here.ru_maxrss  # a child decodes
    assert after.ru_maxrss < 900_000 + before.ru_maxrss


@pytest.mark.slow
def test_compressed_text_that_bursts_is_refused():
    told = PngInfo()
    told.add_text("comment", "a" * (200 << 20), zip=True)
    bomb = file_of(Image.new("L", (4, 4)), "PNG", pnginfo=told)
    assert len(bomb) < wire.MAX_DATA
    pair = pairs.load("digits")
    request = worker_wire.decode_request(wire.encode_request(2, 1, 1, (len(bomb),), bomb, dtype=wire.RAW, media="image/png"))
    words = preview.preview_of(pair, request).words
    assert words.startswith("a picture that cannot be read: ") and "\n" not in words


@pytest.mark.parametrize(
    "data", [b"", b"\x89PNG\r\n\x1a\n", b"GIF89a" + bytes(50), b"%!PS-Adobe-3.0 EPSF-3.0\n", random.Random(1).randbytes(5000)]
)
def test_bytes_that_are_no_picture_are_refused(data):
    with pytest.raises(ValueError):
        decoded(data)


@pytest.mark.parametrize(
    "body, words", [("import os; os.kill(os.getpid(), 9)", "signal 9"), ("print('1 1')", "something else")]
)
def test_a_decoder_that_dies_or_lies_is_said(body, words, tmp_path, monkeypatch):
    script = tmp_path / "decoder.py"
    script.write_text(body)
    monkeypatch.setattr(decoding, "__file__", str(script))
    with pytest.raises(ValueError, match=words):
        decoded(b"x")


def test_a_decoder_that_hangs_is_ended(tmp_path, monkeypatch):
    script = tmp_path / "decoder.py"
    script.write_text("import time; time.sleep(60)")
    monkeypatch.setattr(decoding, "__file__", str(script))
    monkeypatch.setattr(decoding, "WAIT_S", 0.2)
    with pytest.raises(ValueError, match="longer than 0.2 s"):
        decoded(b"x")


# the decoder, with a library in place of Pillow that does `body` when it opens a picture
DECODER = """
import resource, runpy, sys, types

class Image:
    def open(_data, formats):
        {body}
        sys.exit("nothing stopped it")

sys.modules["PIL"] = types.SimpleNamespace(Image=Image, UnidentifiedImageError=LookupError)
runpy.run_path({path!r}, run_name="__main__")
"""


def decoded_by(body, tmp_path, monkeypatch):
    """What decoded() raises where the library does this as it opens a picture."""
    script = tmp_path / "decoder.py"
    script.write_text(DECODER.format(body=body, path=decoding.__file__))
    monkeypatch.setattr(decoding, "__file__", str(script))
    with pytest.raises(ValueError) as raised:
        decoded(b"x")
    return str(raised.value)


def test_a_picture_is_opened_with_little_memory(tmp_path, monkeypatch):
    assert re.search("MemoryError|signal", decoded_by("bytearray(1 << 30)", tmp_path, monkeypatch))


def test_no_file_is_written_as_a_picture_is_opened(tmp_path, monkeypatch):
    written = tmp_path / "written"
    assert "File too large" in decoded_by(f"open({str(written)!r}, 'w', buffering=1).write('x\\n')", tmp_path, monkeypatch)
    assert not written.read_bytes()


def test_a_picture_is_opened_with_little_time_and_leaves_no_core(tmp_path, monkeypatch):
    body = "sys.exit(' '.join(str(resource.getrlimit(getattr(resource, name))) for name in ('RLIMIT_CPU', 'RLIMIT_CORE')))"
    assert decoded_by(body, tmp_path, monkeypatch) == "(5, 5) (0, 0)"


def test_long_texts_are_cut():
    pair = pairs.load("digits")
    data = b"x" * 100_000
    request = worker_wire.decode_request(wire.encode_request(2, 1, 1, (len(data),), data, dtype=wire.RAW, media="text/plain"))
    assert preview.preview_of(pair, request).words.endswith("... (100,000 characters)")
