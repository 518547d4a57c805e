"""Options that a driver does not take are bad input, named, before anything is opened or started."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.live.driver_protocol import DeviceSpec

HOSTILE: tuple[Any, ...] = (
    *(None, True, "x", "", [], {}, [[]], [1], [[0, 0.1]], {"x": 1}, {"x": [0, 1, 2]}, {"x": ["a", "b"]}),
    *(-1, 0, 10**400, -(10**400), 0.5, float("inf"), float("nan"), 1e308, [[7, 0.1, 1.0, 0.0]], [10**400], "\0"),
)


SHIPPED = ("scripted", "pointer", "hapkit", "inverse3", "udp", "gamepad", "force_dimension", "touch", "pantograph")


@pytest.mark.parametrize("name", SHIPPED)
def test_each_option_takes_what_it_can_and_names_what_it_cannot(name: str) -> None:
    module = import_module(f"fsm_dyn.devices.{name}")
    refusals = []
    for option in (*sorted(module._KNOWN), "nonsense"):
        for value in HOSTILE:
            try:
                assert isinstance(module.Driver.describe({option: value}), DeviceSpec)
            except InputError as error:
                refusals.append((option, str(error)))
    assert len(refusals) > 10 * len(module._KNOWN)
    assert all(re.search(rf"\b{option}\b|address", message) for option, message in refusals)


@pytest.mark.parametrize("option", ["mass", "period"])
def test_a_hand_without_mass_or_time_is_refused(option: str) -> None:
    with pytest.raises(InputError, match=f"{option} of the scripted device"):
        import_module("fsm_dyn.devices.scripted").Driver.describe({option: 0.0})
