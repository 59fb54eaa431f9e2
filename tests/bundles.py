"""What the tests of int8 share."""

import pytest
from support import ROOT

from h2t2_tools.common import places
from h2t2_tools.proof import oracle

# small forms of what people put on microcontrollers: tests/material/make_networks.py
NETWORKS = sorted((ROOT / "tests/material/networks").glob("*.tflite"))
MADE = sorted((ROOT / "tests/material").glob("*.tflite")) + NETWORKS
SHIPPED = sorted(places.models().glob("*/ldl.tflite"))


def need_oracle():
    if oracle.name() != "tflite_runtime":
        pytest.skip("byte for byte beside a Pi's interpreter: with tflite-runtime 2.14 alone, as `make test-all` has it")
