"""Modes embedded on line move as modes with kernels of their own do, transition by transition.

From every state that a run records after a transition, both go on to the next transition.  Whole runs cannot be
compared where they are chaotic: rounding moves the events of a box by more than 1e-8 s after nine impacts.
``FSM_DYN_CAMPAIGN=20`` makes twenty times as many starts.
"""

import os
import zlib
from dataclasses import replace

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn import models
from fsm_dyn.analysis.runs import Setting
from fsm_dyn.errors import InputError
from fsm_dyn.online.machine import OnlineMachine
from tests.physics.starts import STARTS

TIMES = float(os.environ.get("FSM_DYN_CAMPAIGN", "1"))
RUNS = 12  # of each model
TRANSITIONS = 10  # of each run
LATER = 0.5  # s; where no transition comes until then, the states there are compared
EVENT = 1e-9  # s
AT_ONCE = (
    1e-8  # s; where a piece begins on a guard's surface (friction at its limit) rounding says when that is noticed
)
STATE = 1e-10  # of the largest entry: rounding, carried over a few hundred steps of a piece
TIES = 0.01  # share of pieces in which two events so close to each other may change places


def settings(graph, strategy, **given):
    """The setting of a study with kernels, and the same with the strategy."""
    own = Setting.of(graph, **given)
    derived = graph.automaton.modes[: graph.derived] if strategy == "mixed" else ()
    return own, replace(own, machine=OnlineMachine(graph.automaton, own.machine.home, derived=derived))


def next_transition(setting, x, c, states, since, until):
    """Time, mode and state after the next transition, or those at the end; the resolution at the start is one too."""
    setting.machine.forget_charts()
    raw = setting.run(x, c, states, until, since)
    names, found = setting.machine.chart_names, raw.transitions
    outcome = "transition" if len(found) > 1 else raw.outcome.name
    row = found.row[1] if len(found) > 1 else -1
    # where a mode has another chart, rounding is in other speeds; a tie shows in time or mode
    return raw.t[row], (outcome, names[raw.mode[row]]), raw.x[row], np.abs(raw.x_dot[row]).max()


def pieces(own, start, until):
    """Where each piece of a run begins: state, context, contact states, time."""
    raw = own.run(start.x, start.context, start.states, until)
    for k in range(min(len(raw.transitions), TRANSITIONS)):
        row = raw.transitions.row[k]
        states = own.machine.charts[raw.transitions.target[k]].programs.states
        if raw.t[row] < until:
            yield raw.x[row], own.context(raw.held[row]), states, raw.t[row], min(until, raw.t[row] + LATER)


def differences(own, other, start, until):
    """In words, what differs in each piece of a run; empty where nothing does."""
    for x, c, states, since, end in pieces(own, start, until):
        (t, mode, state, rate), (t2, mode2, state2, _) = (
            next_transition(setting, x, c, states, since, end) for setting in (own, other)
        )
        size = max(1.0, np.abs(state).max())
        error = np.abs(state - state2).max()
        allowed = AT_ONCE if max(t, t2) - since <= AT_ONCE else EVENT
        if mode != mode2 or abs(t - t2) > allowed or error > STATE * size + rate * abs(t - t2):
            yield f"from t = {since:.12g} s: {t:.12g} {mode}, on line {t2 - t:+.3g} s {mode2}, {error / size:.2g}"
        else:
            yield ""


@pytest.mark.parametrize("strategy", ["online", "mixed"])
@pytest.mark.parametrize("name", STARTS)
def test_the_same_transitions(name, strategy):
    graph = fsm_dyn.compile(name)
    told = []
    for seed in range(max(1, round(RUNS * TIMES))):
        given, until = STARTS[name](np.random.default_rng([seed, zlib.crc32(name.encode())]))
        values = {key: given.get(key) for key in ("parameters", "inputs")}
        own, other = settings(graph, strategy, **values)
        found = differences(own, other, own.start(given["initial"]), until)
        told += [f"seed {seed} {line}" if line else "" for line in found]
    wrong = [line for line in told if line]
    print(f"{name} {strategy}: {len(told)} pieces, {len(wrong)} differ")  # noqa: T201 - shown by pytest -rP
    assert told
    assert len(wrong) <= TIES * len(told), "\n".join(wrong)


@pytest.mark.parametrize("name", sorted(set(models.names()) - set(STARTS)))
def test_shipped_starts(name):
    graph = fsm_dyn.compile(name)
    own, other = settings(graph, "online")
    assert [line for line in differences(own, other, own.start(), 2.0) if line] == []


def test_whole_runs():
    """Where nothing is chaotic whole runs agree too, whatever strategy: a ball, until it rests."""
    graph = fsm_dyn.compile("bouncing_ball")
    own = fsm_dyn.simulate(graph, 4.0)
    for strategy in ("online", "mixed"):
        run = fsm_dyn.simulate(graph, 4.0, strategy=strategy)
        assert [item.target for item in run.transitions] == [item.target for item in own.transitions]
        times, expected = ([item.time for item in each.transitions] for each in (run, own))
        np.testing.assert_allclose(times, expected, rtol=0, atol=EVENT)
        np.testing.assert_allclose(run.q[-1], own.q[-1], rtol=0, atol=STATE)


def test_nothing_is_derived():
    graph = fsm_dyn.compile("twelve_contacts")
    before = len(graph.automaton.modes)
    fsm_dyn.simulate(graph, 1.0, strategy="mixed", on_failure="return")
    fsm_dyn.simulate(graph, 1.0, strategy="online", on_failure="return")
    assert len(graph.automaton.modes) == before


def test_runs_do_not_depend_on_the_runs_before():
    graph = fsm_dyn.compile("box_on_table")
    first, again = (fsm_dyn.simulate(graph, 1.0, strategy="online") for _ in range(2))
    np.testing.assert_array_equal(first.q, again.q)
    np.testing.assert_array_equal(first.u, again.u)
    np.testing.assert_array_equal(first.t, again.t)


def test_forces_can_be_read():
    """What a trajectory works out afterwards comes from the mode embedded on line."""
    graph = fsm_dyn.compile("box_on_table")
    runs = [fsm_dyn.simulate(graph, 0.3, strategy=strategy) for strategy in ("graph", "online")]
    times = np.linspace(0.0, 0.29, 40)
    own, online = (run.sample(times).multiplier_table for run in runs)
    np.testing.assert_allclose(online, own, rtol=0, atol=1e-8 * np.abs(own).max(initial=1.0))


def test_a_strategy_that_is_none():
    with pytest.raises(InputError, match="'on-line'"):
        fsm_dyn.simulate(fsm_dyn.compile("bouncing_ball"), strategy="on-line")
