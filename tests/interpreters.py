"""Skips tests whose interpreter is missing."""

import pytest


def need(emulator):
    reason = emulator.missing()
    if reason:
        pytest.skip(reason)
    return emulator
