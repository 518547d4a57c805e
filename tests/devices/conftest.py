"""Emulated devices behind the makers' libraries."""

import pytest

from tests.devices.makers.emulated_library import Device


@pytest.fixture
def device(tmp_path, monkeypatch):
    """Return a function that starts an emulated device."""
    monkeypatch.setenv("FSM_EMULATED_DEVICE", str(tmp_path / "memory"))
    started = []

    def start(**options):
        started.append(Device(tmp_path / "memory", **options))
        return started[-1]

    yield start
    for each in started:
        each.close()
