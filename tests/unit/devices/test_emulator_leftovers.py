"""What an emulator writes goes with it, however it ends."""

import os
import signal
import sys
import tempfile

import pytest

from fsm_dyn.devices.emulators.emulated_device import emulation

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="emulated across POSIX")
OPTIONS = {"hapkit": {}, "pantograph": {}, "gamepad": {"axes": ["x"]}, "udp": {"axes": 2}, "inverse3": {}}


@pytest.mark.parametrize("driver", OPTIONS)
@pytest.mark.parametrize("ended", [signal.SIGTERM, signal.SIGKILL, None])
def test_no_file_stays(driver, ended, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    device = emulation(driver, OPTIONS[driver])
    if ended is not None:
        os.kill(device.pid, ended)
    device.close()
    assert os.listdir(tmp_path) == []
