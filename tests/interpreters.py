"""What the tests of micropython share."""

import pytest


def need(emulator):
    reason = emulator.missing()
    if reason:
        pytest.skip(reason)
    return emulator
