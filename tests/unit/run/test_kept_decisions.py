"""Guards watched on after a decision that kept the mode: one that changed speeds by rounding alone counts as kept.

The arming of a mode is called by itself at a made-up instant: a ball that touches the floor at 3 nm/s is to stay open,
and the impact of other contacts has left the speed of a second ball different by some amount.
"""

import ctypes

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.run import loop
from fsm_dyn.run.loop_state import Workspace, begin
from fsm_dyn.run.run_options import RunOptions
from fsm_dyn.run.simulator import Simulator
from fsm_dyn.runtime.abi import Counters, Event, GuardStatus, Notes, Reason
from tests.runtime.internals import internals

BALLS = {
    "fsm_dyn": 1,
    "name": "two_balls",
    "parameters": {"m": 1.0},
    "coordinates": ["y1", "y2"],
    "points": {f"P{i}": {"from": "O", "at": f"y{i}*N.y"} for i in (1, 2)},
    "bodies": {f"ball{i}": {"center": f"P{i}", "mass": "m"} for i in (1, 2)},
    "speeds": {f"v{i}": f"rate(y{i})" for i in (1, 2)},
    "contacts": {f"floor{i}": {"gap": f"y{i}", "restitution": 0} for i in (1, 2)},
    "loads": [{"gravity": "-9.81*N.y"}],
    "initial": {"y1": 1.0, "y2": 1.0},
}
CREEP = -3e-9  # m/s


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile(BALLS)


def fired_again(graph, change, written=-1):
    """Return how many guards fire at once after a decision that changed the second ball's speed by ``change`` (m/s).

    And how far below zero the guard of the first ball has not fired, m; ``written``: the transition that was taken.
    """
    simulator = Simulator(graph)
    executable = simulator.take("compiled")
    given = simulator.setup(RunOptions(1.0))
    numerics = simulator.numerics(given.numbers, given.vector)
    executable.use(numerics)
    mode = executable.mode_index(given.start.states)
    x = np.array([0.0, 1.0, CREEP, 0.0])
    state = begin(executable.tables, 0.0, x, given.start.context, mode, given.drive, 7, Workspace())
    tables, run = state.tables, state.state
    first = int(tables.mode_guard_start[mode])
    falling = int(np.flatnonzero(tables.guard_contact[first:] == 0)[0])
    assert tables.guard_event[first + falling] == Event.CLOSES
    guards, most = run.guards, len(run.armed)
    guards[:2], guards[most : most + 2] = 1.0, -1.0
    guards[falling], guards[most + falling] = 0.0, CREEP
    run.fired[0], run.counters[Counters.FIRED] = first + falling, 1
    run.counters[Counters.INSTANT] = 1
    run.counters[Counters.REASON] = Reason.EVENT
    state.work.u_before[:] = [*x[2:3], change]
    state.work.notes[Notes.CHANGED], state.work.notes[Notes.WRITTEN_TRANSITION] = change != 0.0, written
    method = loop.tableau("dopri5")[1]
    handle = state.run(given.drive.packed, method, loop.set_options(state, RunOptions(1.0), 1)[1])
    fires = internals().arm(ctypes.addressof(handle), mode)
    assert run.armed[falling] == GuardStatus.ARMED
    return fires, guards[2 * most + falling]


def test_a_decision_that_changed_rounding_is_kept(graph):
    nothing = fired_again(graph, 0.0)
    assert nothing[0] == 0
    assert nothing[1] > 0.0, "it is watched from below zero on"
    for rounding in (2e-21, -2e-21, 1e-18):
        assert fired_again(graph, rounding) == nothing


def test_a_decision_that_changed_a_speed_is_none(graph):
    for change in (1e-8, -1e-3):
        assert fired_again(graph, change)[0] == 1
    assert fired_again(graph, 2e-21, written=0)[0] == 1, "a written transition was made"
