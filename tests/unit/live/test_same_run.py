"""A device with occasional nonsense samples and jumps, coupled again: live, replayed and offline it is the same run.

Of one model here and, at length, of every shipped model with a port.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from fsm_dyn.language.models import names
from fsm_dyn.live.device_map import Limits, coupled_ports
from fsm_dyn.live.driver_protocol import driver_class
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.recording import read_recording
from fsm_dyn.live.replay import off_line, replay
from fsm_dyn.live.session import LiveSession
from fsm_dyn.live.tick import ADVANCED, INCOMPLETE_COLUMN
from tests.shipped import mechanism
from tests.unit.live.test_session import wait_for

DRIVER = """
from fsm_dyn.devices import scripted

class Driver(scripted.Driver):
    '''Every 97th sample lies, and those from the 900th on for twenty.'''
    def read(self):
        sample = super().read()
        n = sample.sequence
        lies = n % 97 == 0 or 900 <= n < 920
        return sample._replace(position=[x + 0.5 for x in sample.position]) if lies else sample
"""
TICKS = 2000
LONG = pytest.mark.long
SMALL = {
    "push_button": 0.003,
    "piano_action": 0.01,
    "piano_action_simple": 0.01,
}  # m, of small models
WITH_PORTS = [name for name in names() if mechanism(name).ports]


@pytest.fixture
def lying(tmp_path, monkeypatch):
    (tmp_path / "lying.py").write_text(DRIVER, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]))
    assert driver_class("lying:Driver")
    return "lying:Driver"


@pytest.mark.parametrize("name", [n if n == "virtual_wall" else pytest.param(n, marks=LONG) for n in WITH_PORTS])
def test_what_was_rejected_and_a_fault_are_part_of_the_recording(held, lying, tmp_path, name):
    graph = held(name)
    axes = len(coupled_ports(graph.automaton.mechanism)[0].axes)
    hand = {"axes": axes, "motion": [[axes - 1, SMALL.get(name, 0.03), 1.3, 3.0]], "stop": "watchdog"}
    settings = LiveSettings(
        paced=False,
        realtime_privileges=False,
        watchdog_timeout=20.0,
        stall_ticks=10**6,
        limits=Limits(ramp=0.05, velocity=20.0),
    )
    path = tmp_path / "run.mcap"
    with LiveSession.start(graph, lying, hand, settings=settings, record=path) as session:
        wait_for(lambda: (session.snapshot() or {}).get("phase") == "fault", "the fault")
        tick = session.snapshot()["tick"]
        session.wait_for_ticks(tick + 30)
        session.send("clear")
        session.send("run")
        wait_for(lambda: session.snapshot()["engagement"] == 1.0, "the grip")
        session.wait_for_ticks(TICKS)
        assert session.alive, session.log()
        report = session.close()
    assert report["rejected"] >= 20
    recorded = read_recording(path)
    assert [e["reason"] for e in recorded.events if e["event"] == "fault"] == [
        "the device's position jumped farther than its velocity limit allows"
    ]
    assert any(e["event"] == "rejected" for e in recorded.events)
    again, stepper = replay(recorded)
    assert np.array_equal(again, recorded.records, equal_nan=True)
    moved = recorded.rows[recorded.rows[:, ADVANCED] != 0.0]
    state = recorded.columns.places["state"]
    assert np.array_equal(stepper.loop.state.x, moved[-1, state])
    trajectory = off_line(recorded)
    complete = moved[moved[:, INCOMPLETE_COLUMN] == 0.0][-1]  # ends of ticks of the piano actions are not, at times
    assert np.array_equal(trajectory.rows.x[-1], complete[state])
    assert [x.time for x in trajectory.transitions] == [time for time in recorded.records[:, 1] if time <= complete[1]]
