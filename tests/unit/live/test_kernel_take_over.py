"""Modes reached by a live run are derived in parallel and taken over at a tick, the same in replays and offline."""

import os
import signal
import time

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.automaton.hybrid_automaton import successors
from fsm_dyn.automaton.initial_values import model_start
from fsm_dyn.core.errors import InputError
from fsm_dyn.live import mode_pool
from fsm_dyn.live.derivation_process import message
from fsm_dyn.live.device_map import Limits
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.recording import read_recording
from fsm_dyn.live.replay import _own_kernels, off_line, replay
from fsm_dyn.live.session import LiveSession
from fsm_dyn.live.tick import ADVANCED
from fsm_dyn.live.tick_process import received
from fsm_dyn.runtime.abi import RecordColumn
from tests.marked import PATIENT

MOTION = [[0, 0.08, 0.9, 0.0], [0, 0.027, 7.3, 0.0]]
HAND = {"motion": MOTION, "stop": "watchdog"}
QUIET = {"realtime_privileges": False, "watchdog_timeout": 60.0, "owner_timeout": 0.0}
TICKS = 3000


def met(run):
    return [tuple(s) for event in run.events if event["event"] == "mode_added" for s in event["states"]]


def taken(events):
    return [event for event in events if event["event"] == "kernel_adopted"]


def taking_over_at(bench, tick):
    """Run for TICKS, and at one of them take over kernels of all modes met until then; None: never."""
    run = bench("latch_door", motion=MOTION)
    run.stepper.prepare()
    run.states = []

    def go(count):
        for _ in range(count):
            before = len(run.times)
            run.run(1)
            run.states += [run.stepper.loop.state.x.copy()] * (len(run.times) - before)

    go(TICKS if tick is None else tick)
    if tick is not None:
        for states in dict.fromkeys(met(run)):
            kernels = _own_kernels(run.stepper.graph, states)
            if kernels is not None:  # its contacts share no forces
                run.controller.take_over(states, kernels)
        go(TICKS - tick)
    return run


@pytest.mark.parametrize("tick", [400, 700, 1000])
def test_offline_takes_over_where_the_ticks_did(bench, tick):
    """To the last bit, with the kernels taken over and without."""
    run, other = taking_over_at(bench, tick), taking_over_at(bench, None)
    events = taken(run.events)
    assert events
    assert all(event["tick"] == tick + 1 for event in events)
    executable, name_of = run.stepper.executable, run.stepper.graph.automaton.name_of
    entered = [chart for chart in executable.charts if chart.full in {own.full for own in executable._own.values()}]
    assert entered, "no mode that was taken over was met again"
    after = {name_of(event["states"]).name: event["evaluations"] for event in events}
    for ticks, how in ((run, after), (other, np.inf)):
        found = fsm_dyn.simulate(
            run.stepper.graph, until=ticks.times[-1], method="rk4", step=1e-3, inputs=ticks.tables(), derive_after=how
        )
        at = np.searchsorted(found.t, ticks.times[1:], side="right") - 1
        assert np.array_equal(found.t[at], ticks.times[1:])
        assert np.array_equal(found.rows.x[at], ticks.states)
        # the bench keeps no transitions of unfinished ticks
        assert {x[0] for x in ticks.transitions} <= {x.time for x in found.transitions}


def test_a_reset_keeps_kernels_and_begins_online(bench):
    run = taking_over_at(bench, 1000)
    executable = run.stepper.executable
    own = dict(executable._own)
    run.stepper.reset()
    assert executable._own == own
    assert executable._pending == frozenset(own)
    assert executable._left == mode_pool.ROOM - len(own)
    for states in own:
        number = executable._numbers[states]
        assert executable.tables.mode_allowance[number] == executable.charts[number].allowance == mode_pool.LEAST
    assert not run.stepper.loop.state.spent.any()


def test_what_cannot_be_taken_over_is_left_online(bench, monkeypatch):
    run = taking_over_at(bench, None)
    stepper = run.stepper
    made = {states: _own_kernels(stepper.graph, states) for states in met(run)}
    states = [each for each, kernels in made.items() if kernels is not None]
    kernels = [made[each] for each in states]
    known = stepper.graph.automaton.modes[0].states
    assert stepper.take_over(known, kernels[0]) is None  # of the graph
    assert stepper.take_over(tuple(1 - code for code in known), kernels[0]) is None  # never met
    assert stepper.take_over(states[0], kernels[0]) is not None
    assert stepper.take_over(states[0], kernels[0]) is None  # twice
    stepper.executable._left = stepper.executable._free
    assert stepper.take_over(states[1], kernels[1]) is None


def test_machine_code_that_was_sent_is_that_of_the_replay(held, tmp_path):
    automaton = held("latch_door").automaton
    begin = model_start(automaton)
    sent = {
        states: message(automaton, states, (begin.x, begin.context))
        for states in successors(automaton, automaton.modes[0].states)
    }
    states, data = next((states, data) for states, data in sent.items() if data is not None)
    path = tmp_path / "sent"
    path.write_bytes(data)
    with path.open("rb") as file:
        found, kernels = received(file)
        assert received(file) is None
    assert found == states
    assert kernels.rhs != kernels.full
    path.write_bytes(data[:-1])
    with path.open("rb") as file:
        assert received(file) is None, "what was cut off is not loaded"


def wait_for_take_over(session):
    until, told = time.monotonic() + PATIENT, []
    while not taken(told):
        assert time.monotonic() < until, session.log()
        assert session.alive, session.log()
        time.sleep(0.05)
        told += session.events()
    return told


def child_of_guard(session):
    """The process number of the deriver."""
    with open(f"/proc/{session.watchdog_pid}/task/{session.watchdog_pid}/children") as file:
        found = [int(pid) for pid in file.read().split()]
    return next(pid for pid in found if pid != session.tick_pid)


@pytest.mark.skipif(os.name != "posix", reason="derivation beside a live run is not on Windows")
@pytest.mark.parametrize("period", [1e-3, 2e-4])  # by Python, and in compiled code
def test_live_replay_and_offline_are_one_run(held, tmp_path, period):
    path = tmp_path / "door.mcap"
    settings = LiveSettings(period=period, limits=Limits(ramp=0.05), **QUIET)
    hand = {**HAND, "period": period}
    with LiveSession.start(held("latch_door"), "scripted", hand, settings=settings, record=path) as session:
        wait_for_take_over(session)
        session.wait_for_ticks(session.snapshot()["tick"] + 2000)
        deriver = child_of_guard(session)
        assert os.getpriority(os.PRIO_PROCESS, deriver) > 0
        assert os.sched_getscheduler(deriver) == os.SCHED_OTHER
        report = session.close()
    assert report["kernels_adopted"] > 0
    assert not os.path.exists(f"/proc/{deriver}")
    recorded = read_recording(path)
    again, stepper = replay(recorded)
    moved = recorded.rows[recorded.rows[:, ADVANCED] != 0.0]
    state = moved[-1, recorded.columns.places["state"]]
    assert np.array_equal(again, recorded.records, equal_nan=True)
    assert np.array_equal(stepper.loop.state.x, state)
    assert stepper.executable._own.keys() == {tuple(event["states"]) for event in taken(recorded.events)}
    trajectory = off_line(recorded)
    assert np.array_equal(trajectory.rows.x[-1], state)
    assert [x.time for x in trajectory.transitions] == recorded.records[:, 1 + RecordColumn.TIME].tolist()


@pytest.mark.skipif(os.name != "posix", reason="derivation beside a live run is not on Windows")
def test_a_deriver_that_is_killed_does_no_harm_and_is_reported(held):
    settings = LiveSettings(paced=False, derive=True, limits=Limits(ramp=0.05), **QUIET)
    with LiveSession.start(held("latch_door"), "scripted", HAND, settings=settings) as session:
        session.wait_for_ticks(10)
        os.kill(child_of_guard(session), signal.SIGKILL)
        until, told = time.monotonic() + PATIENT, []
        while not [event for event in told if event["event"] == "deriver"]:
            assert time.monotonic() < until
            time.sleep(0.02)
            told += session.events()
        at = session.snapshot()["tick"]
        session.wait_for_ticks(at + 500)
        report = session.close()
    assert report["fault"] == report["watchdog_action"] == ""
    assert "log" not in report


@pytest.mark.parametrize(("name", "derive"), [("latch_door", False), ("latch_door", None), ("latch", True)])
def test_without_need_or_wish_there_is_no_deriver(held, name, derive):
    settings = LiveSettings(paced=False, derive=derive, **QUIET)
    with LiveSession.start(held(name), "scripted", HAND, settings=settings) as session:
        session.wait_for_ticks(10)
        with open(f"/proc/{session.watchdog_pid}/task/{session.watchdog_pid}/children") as file:
            assert file.read().split() == [str(session.tick_pid)]


def test_evaluations_by_the_names_of_modes_are_checked(held):
    with pytest.raises(InputError, match="derive_after"):
        fsm_dyn.simulate(held("latch"), until=0.1, derive_after={"mid": -1})
