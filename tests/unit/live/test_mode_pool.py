"""Unlisted modes: available within the tick, the same as listed modes embedded offline."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.derive.guards import list_guards
from fsm_dyn.language import models
from fsm_dyn.language.loader import load
from fsm_dyn.live import mode_pool
from fsm_dyn.live.controller import RUNNING
from fsm_dyn.live.device_map import Limits, add_couplers
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.recording import read_recording
from fsm_dyn.live.replay import off_line, replay
from fsm_dyn.live.session import LiveSession
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.runtime.abi import Status

HAND = {"motion": [[0, 0.2, 0.7, 0.0]], "stop": "watchdog"}


@pytest.fixture(scope="module")
def board():
    """Twelve contacts without rebound, held by the board: 531,441 combinations, of which two are derived."""
    text = models.find("twelve_contacts").read_text().replace("  e: 0.5", "  e: 0.0")
    return fsm_dyn.compile(add_couplers(load("board", text=f"{text}\nports: {{hand: {{coordinate: x}}}}\n")))


def test_a_mode_first_reached_in_the_run_costs_no_step(board, tmp_path):
    """No tick is left unfinished, the grip stays closed, and offline the same modes follow at the same instants."""
    path = tmp_path / "board.mcap"
    settings = LiveSettings(
        paced=False, realtime_privileges=False, watchdog_timeout=60.0, ticks=1500, limits=Limits(ramp=0.05)
    )
    with LiveSession.start(board, "scripted", HAND, settings=settings, record=path) as session:
        assert session.wait(120.0), session.log()
        told = session.events()
        transitions, _ = session.transitions()
    supplied = [name for event in told if event["event"] == "mode_added" for name in event["modes"]]
    assert len(supplied) >= 3
    assert set(supplied) <= {x["target"] for x in transitions}
    recorded = read_recording(path)
    rows = recorded.rows[recorded.rows[:, 9] == 1.0]
    assert not rows[:, 10].any(), "a tick was left unfinished"
    np.testing.assert_allclose(np.diff(rows[:, 1]), 1e-3, rtol=1e-9)
    grip = rows[60:-60, 12]
    assert (grip == 1.0).all(), "the device was let go"
    assert set(rows[:, 6]) == {Status.DONE}

    trajectory = off_line(recorded)
    live = [(x["time"], x["source"], x["target"]) for x in transitions]
    assert [(x.time, x.source, x.target) for x in trajectory.transitions] == live
    assert np.array_equal(trajectory.rows.x[-1], rows[-1, recorded.columns.places["state"]])

    again, _ = replay(recorded)
    assert np.array_equal(again, recorded.records, equal_nan=True)


def test_guards_put_together_are_those_listed(board):
    executable = LiveStepper(board, 1).executable
    executable.prepare()
    random = np.random.default_rng(12)
    for _ in range(20):
        states = tuple(int(random.choice(contact.codes)) for contact in board.automaton.contacts)
        leaving = board.automaton.outgoing_transitions(board.automaton.name_of(states))
        assert executable.list_guards(states) == list_guards(board.automaton.system, states, leaving)


@pytest.mark.parametrize("name", ["shopping_cart", "latch", "virtual_wall", "bouncing_ball"])
def test_guards_of_shipped_modes(held, name):
    """User-defined transitions included; modes without redundant rows list the same guards as derived ones."""
    stepper = LiveStepper(held(name), 3)
    stepper.prepare()
    for mode in stepper.graph.automaton.modes:
        assert stepper.executable.list_guards(mode.states) == mode.guards


def test_an_empty_stock_is_filled_while_the_device_is_released(board, monkeypatch, bench):
    monkeypatch.setattr(mode_pool, "STOCK", 2)
    run = bench(board, motion=HAND["motion"], limits=Limits(ramp=0.02))
    run.stepper.prepare()
    for _ in range(1500):
        status = run.one(run.hand.read())
        if run.controller.wants(status):
            assert run.controller.supply(status)
            run.controller.disengage()
    assert run.controller.phase == RUNNING
    assert not run.stepper.executable.stocked
    assert run.stepper.t > 1.4
    assert len([e for e in run.events if e["event"] == "mode_added"]) >= 3


def rows_of_run(bench, stock, monkeypatch):
    """States of 500 ticks, rewound once, with machine code for so many modes; and the run."""
    monkeypatch.setattr(mode_pool, "STOCK", stock)
    monkeypatch.setattr(mode_pool, "RECENT", 1)
    run = bench("piano_action_simple", limits=Limits(ramp=0.02))
    run.stepper.prepare()
    states = []
    for k in range(500):
        if k == 300:
            run.stepper.rewind(0.1)
        status = run.one(run.hand.read())
        assert not run.controller.wants(status), "a request that was not met within the tick"
        states.append(run.stepper.loop.state.x.copy())
    return np.array(states), run


def test_modes_share_machine_code_and_nothing_shows(bench, monkeypatch):
    """Modes not evaluated lately rest, and are woken with the chart they had: the bits are those of a run without."""
    few, run = rows_of_run(bench, 2, monkeypatch)
    many, other = rows_of_run(bench, 96, monkeypatch)
    assert len(run.stepper.executable.charts) == len(other.stepper.executable.charts) > 6
    assert len(run.stepper.executable._resting) >= 1
    assert not other.stepper.executable._resting
    assert np.array_equal(few, many)
    run.stepper.reset()
    assert run.stepper.loop.state.counters[0] == run.stepper.executable.mode_index(run.stepper._start.states)


def test_a_reset_gives_charts_back(board):
    stepper = LiveStepper(board, 1)
    stepper.prepare()
    executable = stepper.executable
    free = len(executable._shelf.free)
    executable.provide_chart(0, 0.0, *executable.home)
    assert len(executable._shelf.free) == free - 1
    assert executable.chart_names[-1] == executable.chart_names[0]
    stepper.reset()
    assert len(executable._shelf.free) == free
    assert executable.tables.sizes[8] == len(executable.charts)


def test_a_mode_that_is_not_listed_fails_by_name(bench):
    """The latch lists its modes; all of its contacts at once is none of them."""
    run = bench("latch")
    run.stepper.prepare()
    run.stepper.loop.work.wanted[:] = 1
    assert run.stepper.supply(Status.NEED_MODE) == Status.MODE_NOT_LISTED
