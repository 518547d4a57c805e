"""A copy that runs ahead of a live run: its expectations, on which no result depends."""

import itertools
import math
import time

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.language.loader import with_settings
from fsm_dyn.live import mode_pool
from fsm_dyn.live.device_map import Limits, add_couplers
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.replay import Foresight
from fsm_dyn.live.session import LiveSession
from fsm_dyn.live.tick import FIXED
from fsm_dyn.live.tick_process import columns_of, new_stepper, time_to_event

G = 9.81  # m/s^2


@pytest.fixture(scope="module")
def ball(held):
    graph = held("bouncing_ball")
    settings = LiveSettings(axes=1)
    stepper = new_stepper(settings, graph)
    columns, flight = columns_of(stepper), stepper.executable.charts[0].programs.states
    return Foresight(settings, graph, columns), columns, flight


def row(columns, t, y, v):
    found = np.zeros(columns.width)
    found[FIXED.index("t")] = t
    found[columns.places["state"]] = y, v
    return found


@pytest.mark.parametrize(("y", "v"), [(1e-3, -1.0), (0.02, -3.0), (1e-3, 0.05), (5e-4, -0.01)])
def test_a_falling_ball_strikes_when_the_closed_form_does(ball, y, v):
    foresight, columns, flight = ball
    found = foresight.look(row(columns, 7.0, y, v), flight, 0.03)
    fall = (v + math.sqrt(v * v + 2.0 * G * y)) / G
    assert found.time == pytest.approx(7.0 + fall, abs=1e-9)
    assert (found.source, found.states[0]) == (flight, found.target)
    assert foresight.look(row(columns, 7.0, y, v), flight, 0.5 * fall) is None or fall < 1e-3


def test_a_hand_keeps_its_velocity(held):
    """The coupler's end moves on: without a mass to speak of, the tool comes with it and meets the plate."""
    graph = held("virtual_wall")
    settings = LiveSettings(axes=2)
    stepper = new_stepper(settings, graph)
    columns, layout = columns_of(stepper), graph.automaton.terms.layout
    foresight = Foresight(settings, graph, columns)
    tick, found = stepper.tick_data, np.zeros(columns.width)
    begin = columns.places["inputs"].start
    found[columns.places["state"]] = [{"y": 4e-3, "vy": -0.5}.get(name, 0.0) for name in layout.x]
    n_a = len(stepper.axes)
    for k, value in ((0, 4e-3), (1, -0.5), (2, 1.0)):  # position, velocity, engagement of the second axis
        found[begin + tick.slot[k * n_a + 1]] = value
    free = stepper.executable.charts[0].programs.states
    expected = foresight.look(found, free, 0.02)
    assert expected.time == pytest.approx(4e-3 / 0.5, abs=3e-4)  # gravity is not in this model


class Twins:
    """The same run with and without expectations, right and wrong ones."""

    def __init__(self, bench, graph, ticks):
        self.runs = [bench(graph, motion=[[0, 0.3, 1.1, 0.0]], stall_ticks=10**6) for _ in range(2)]
        for run in self.runs:
            run.stepper.prepare()
        other = self.runs[1]
        codes = [contact.codes for contact in graph.automaton.contacts]
        random = np.random.default_rng(3)
        for k in range(ticks):
            if k % 5 == 0:
                other.controller.command({"do": "expect", "states": [[int(random.choice(c)) for c in codes]]})
            if k % 120 == 60:
                for run in self.runs:
                    run.controller.command(
                        {"do": "constrain", "kind": "pin", "a": ["lower", [0.2, 0.0]], "b": "ground"}
                    )
            if k % 120 == 110:
                for run in self.runs:
                    run.controller.command({"do": "release"})
            for run in self.runs:
                run.run(1)
                if run.controller.wants(run.stepper.tick_data.counts[9]):
                    run.controller.supply(run.stepper.tick_data.counts[9])
            other.controller.prepare_expected()
        assert other.controller.expected.maxlen


@pytest.mark.parametrize("stock", [96, 1])
def test_no_bit_depends_on_what_was_expected(bench, monkeypatch, stock):
    """Nor when the mode pool is exhausted."""
    from tests.unit.live.test_hand_constraints import RODS

    monkeypatch.setattr(mode_pool, "STOCK", stock)
    graph = fsm_dyn.compile(with_settings(add_couplers(fsm_dyn.load(RODS)), imposable=1))
    plain, other = Twins(bench, graph, 700).runs
    assert other.stepper.executable._ready, "something was made ready"
    assert plain.stepper.executable.stocked == other.stepper.executable.stocked == (stock > 1)
    assert plain.stepper.executable.chart_names == other.stepper.executable.chart_names
    np.testing.assert_array_equal(plain.stepper.loop.state.x, other.stepper.loop.state.x)
    np.testing.assert_array_equal(np.array(plain.forces), np.array(other.forces))
    assert plain.transitions == other.transitions
    assert len(plain.transitions) >= 10


def test_what_is_expected_wrongly_is_forgotten(bench):
    """More expectations than there is room for; those of other models are none."""
    from tests.unit.live.test_hand_constraints import RODS

    graph = fsm_dyn.compile(with_settings(add_couplers(fsm_dyn.load(RODS)), imposable=1))
    run = bench(graph, motion=())
    run.stepper.prepare()
    executable, contacts = run.stepper.executable, graph.automaton.contacts
    sets = list(itertools.islice(itertools.product(*(c.codes for c in contacts)), 1, 60))
    for states in sets:
        run.controller.command({"do": "expect", "states": [states, [7] * len(contacts), [0]]})
        run.controller.prepare_expected()
    assert len(executable._ready) == mode_pool.READY
    assert executable._free == mode_pool.STOCK
    assert [event["event"] for event in run.events] == []


@pytest.mark.parametrize(
    ("event", "t", "speed", "left"),
    [(-1, 0.0, 1.0, None), (2_000_000_000, 1.5, 1.0, 0.5), (2_000_000_000, 1.5, 0.1, 5.0), (10**9, 1.5, 1.0, None)],
)
def test_the_time_to_an_event_is_by_the_clock(event, t, speed, left):
    assert time_to_event(event, t, speed) == left


ASKING = """
from fsm_dyn.devices import scripted

class Driver(scripted.Driver):
    def __init__(self, options, transport=None):
        super().__init__({"axes": options["axes"], "motion": []})
        self._answers, self._file, self._ticks = [], options["file"], 0

    @classmethod
    def describe(cls, options):
        return scripted.Driver.describe({"axes": options["axes"]})

    def foresee(self, time_to_event):
        self._ask = time_to_event

    def write(self, force):
        self._ticks += 1
        left = self._ask()
        if left is not None:
            self._answers.append(f"{self._ticks} {left!r}")
        return super().write(force)

    def close(self):
        with open(self._file, "w", encoding="utf-8") as file:
            file.write("\\n".join(self._answers))
"""


@pytest.mark.long
def test_session_and_driver_have_the_next_event(held, tmp_path):
    """A hand that never engages: the ball bounces by itself, so that every answer is near a transition."""
    driver, answers = tmp_path / "asking.py", tmp_path / "answers"
    driver.write_text(ASKING)
    free = Limits(dead_man_button=0)  # never pressed
    settings = LiveSettings(look_ahead=0.05, realtime_privileges=False, ticks=2500, limits=free)
    options = {"axes": 1, "file": str(answers)}
    with LiveSession.start(held("bouncing_ball"), str(driver), options, settings=settings) as session:
        told = []
        while session.alive:
            snapshot = session.snapshot()
            if snapshot is not None and snapshot["next_event"] is not None:
                told.append(snapshot["next_event"])
            time.sleep(0.005)
        times = np.array([item["time"] for item in session.transitions()[0]])
    assert len(told) > 5
    assert np.median([np.abs(times - when).min() for when in told]) < 2e-3
    asked = [line.split() for line in answers.read_text().splitlines()]
    expected = [settings.period * int(tick) + float(left) for tick, left in asked]
    assert len(expected) > 5
    assert np.median([np.abs(times - when).min() for when in expected]) < 2e-3
