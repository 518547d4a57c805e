"""Options that an emulator does not take are bad input, before any process is started."""

from __future__ import annotations

from typing import Any

import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.devices.emulators.emulated_device import emulation


@pytest.mark.parametrize(
    ("driver", "options", "words"),
    [
        ("udp", {"mass": "abc"}, "mass of the emulated udp"),
        ("udp", {"mass": 0.0}, "mass of the emulated udp"),
        ("udp", {"watchdog": True}, "watchdog of the emulated udp"),
        ("udp", {"axes": 7}, "axes of the emulated udp"),
        ("udp", {"hand": {"grip": 1.0}}, "hand of the emulated udp"),
        ("udp", {"speed": 1.0}, "no option 'speed'"),
        ("inverse3", {"damping": -1.0}, "damping of the emulated inverse3"),
        ("inverse3", {"axes": 2}, "axes of an Inverse3"),
        ("gamepad", {"rate": 0.0}, "rate of the emulated gamepad"),
        ("gamepad", {"axes": 2}, "axes of the gamepad"),
        ("hapkit", {"mass": "abc"}, "mass of the emulated hapkit"),
        ("hapkit", {"power": "none"}, "power none"),
        ("pointer", {}, "no emulator for the driver 'pointer'"),
    ],
)
def test_wrong_options_are_named(driver: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        emulation(driver, options)
