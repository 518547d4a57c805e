"""What the page tells of a device that holds the mechanism, and what it lets happen to one that is emulated."""

import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError, RunError
from fsm_dyn.language.elements import CoupledPort
from fsm_dyn.live.device_map import DeviceMap, Limits, coupled_ports
from fsm_dyn.live.driver_protocol import NOTHING, SAFE_FRAME, DeviceSpec
from fsm_dyn.page.ports import CouplingDevice, stops, without_run

(PORT,) = coupled_ports(fsm_dyn.load("virtual_wall"))


class Emulated:
    commands = ("unplug", "plug", "stall", "hand", "watchdog")

    def __init__(self):
        self.done = []

    def do(self, command, **arguments):
        self.done.append((command, arguments))

    def state(self):
        if ("unplug", {}) in self.done:
            raise RunError("it has ended")
        return {"hand": {"target": [0.1, 0.2]}, "position": [1.0], "velocity": [2.0], "force": [3.0]}


def held_by(emulation=None, axes=(-1, 0)):
    options = {"axes": 1, "stop": "safe_frame"}
    return CouplingDevice("scripted", options, DeviceMap("handle", axes), Limits(force=3.0), 0.05, emulation)


def test_what_is_reported_once():
    payload = held_by(Emulated()).payload(PORT)
    assert payload["axes"] == [{"number": 0, "turns": False}]
    assert payload["couplers"] == ["handle_2_stiffness"], "only the springs that the device feels"
    assert payload["force"] == 3.0
    assert payload["commands"] == list(Emulated.commands)
    assert held_by().payload(PORT)["commands"] is None


def test_force_shutdown_chain():
    assert stops(DeviceSpec("x", 1, SAFE_FRAME, 0.02, zero_frame=b"0"), 0.1, 0.012) == [
        "tick process: zero force on fault, 12 ms without samples or watchdog process",
        "watchdog process: zero force after 4 ms without heartbeat",
        "watchdog process: safe packet after 100 ms without heartbeat",
        "device watchdog: 20 ms without a force packet",
    ]
    without = stops(DeviceSpec("x", 1, SAFE_FRAME), 0.1, 0.012)
    assert without[-1] == "no device watchdog: no stop if tick and watchdog process both end"
    assert stops(DeviceSpec("x", 1, NOTHING, 0.0), 0.1, 0.012)[1] == "no further stop: force limited to 20 %"


def test_what_can_happen_to_an_emulated_device():
    device = Emulated()
    held = held_by(device)
    held.carry_out({"do": "emulate", "what": "stall", "on": True})
    held.carry_out({"do": "emulate", "what": "watchdog", "on": False})
    held.carry_out({"do": "emulate", "what": "plug", "on": True})
    held.carry_out({"do": "hand", "axis": 1, "value": -0.03})
    assert device.done == [
        ("stall", {"on": True}),
        ("watchdog", {"on": False}),
        ("plug", {}),
        ("hand", {"target": [0.1, -0.03]}),
    ]
    with pytest.raises(InputError, match="unknown axis"):
        held.carry_out({"do": "hand", "axis": 2, "value": 0.0})
    with pytest.raises(InputError, match="not emulated"):
        held_by().carry_out({"do": "emulate", "what": "unplug", "on": True})


def test_without_a_run_an_emulated_device_tells_where_it_is():
    device = Emulated()
    assert without_run(held_by(device).now()) == {
        "position": [1.0],
        "velocity": [2.0],
        "force": [3.0],
        "engagement": 0.0,
    }
    device.do("unplug")
    assert held_by(device).now() == {}
    assert without_run({})["force"] is None


class Playing(Emulated):
    commands = (*Emulated.commands, "play")


def test_a_key_is_pressed_by_the_hand_of_an_emulated_device():
    """By the mapping's ratio: a key of 12 mm is 24 mm of a paddle that is twice as far from its axis."""
    emulation = Playing()
    by = CouplingDevice("scripted", {"axes": 1}, DeviceMap("tip", (0,), -0.5), emulation=emulation)
    port, places = CoupledPort("tip", PORT.axes[:1]), (0.0, -0.012)
    assert by.payload(port, True)["press"] is True
    assert by.payload(port, False)["press"] is False
    by.press(port, places, True, 0.3)
    by.press(port, places, False, 0.4)
    by.play(port, places)
    hand = {"stiffness": 300.0, "damping": 3.0}
    assert emulation.done == [
        ("hand", {**hand, "target": 0.024, "speed": 0.6}), ("hand", {**hand, "target": 0.0, "speed": 0.8}),
        ("hand", hand), ("play", {"rate": 6.7, "notes": 8, "pressed": 0.024, "lifted": 0.0}),
    ]  # fmt: skip
    with pytest.raises(InputError, match="press its handle"):
        held_by(Emulated()).press(PORT, places, True, 0.3)
