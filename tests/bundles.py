"""int8 models that several tests read."""

from struct import pack_into
from zlib import crc32

import pytest
from support import ROOT

from h2t2_tools.checks import oracle
from h2t2_tools.common import places

# small networks as people put them on microcontrollers: tests/material/make_networks.py
NETWORKS = sorted((ROOT / "tests/material/networks").glob("*.tflite"))
TEST_MODELS = sorted((ROOT / "tests/material").glob("*.tflite")) + NETWORKS
SHIPPED = sorted(places.models().glob("*/ldl.tflite"))


def need_oracle():
    if oracle.name() != "tflite_runtime":
        pytest.skip("byte for byte beside a Pi's interpreter: with tflite-runtime 2.14 alone, as `make test-all` has it")


def resealed(blob, at, value):
    """The bundle with one 32-bit word changed and the checksum made right again: a stranger's, not a damaged one."""
    bad = bytearray(blob)
    pack_into("<i", bad, at, value)
    pack_into("<I", bad, 12, crc32(bytes(bad[16:])))
    return bytes(bad)


class Guarded(bytearray):
    """An arena as machine code sees it: what reaches outside raises here, a negative place as well."""

    def __getitem__(self, at):
        assert isinstance(at, slice) or 0 <= at < len(self)
        return super().__getitem__(at)

    def __setitem__(self, at, value):
        assert isinstance(at, slice) or 0 <= at < len(self)
        super().__setitem__(at, value)
