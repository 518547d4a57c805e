"""Modes embedded online move as modes with kernels of their own do, transition by transition.

From every state that a run records after a transition, both go on to the next transition.  Whole runs cannot be
compared where they are chaotic: rounding moves the events of a box by more than 1e-8 s after nine impacts.  What the
two have in common is the resolution at the instant, which time stepping checks (``test_time_stepping.py``); the flow,
dependent speeds, charts, guards, their slopes and so the instants are worked out apart.

A piece is a *tie* where rounding in its start decides how the same strategy goes on: grazing, two guards at once.
``FSM_DYN_CAMPAIGN=20`` makes twenty times as many starts.
"""

import os
import zlib
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.analysis.variations import AnalysisSetup
from fsm_dyn.core.errors import InputError
from fsm_dyn.language import models
from fsm_dyn.run.online import EarnedExecutable, OnlineExecutable
from fsm_dyn.runtime.abi import Reason
from tests.physics.starts import STARTS
from tests.physics.variants import VARIANTS
from tests.shipped import mechanism

TIMES = float(os.environ.get("FSM_DYN_CAMPAIGN", "1"))
RUNS = 10  # of each model
MORE_RUNS = 4  # of each variant
TRANSITIONS = 10  # of each run
LATER = 0.5  # s; where no transition comes until then, the states there are compared
EVENT = 1e-9  # s
STATE = 1e-9  # of the largest entry: rounding, carried over a few hundred steps of a piece
LEVEL = 1e-12  # zero of a guard, in its unit: worth more time than ``EVENT`` where the guard grazes
# s; where a piece begins on the surface of a guard, as friction at its limit, this is what the tolerance of forces
# (1e-9 of the largest) is worth at the slopes of these models
AT_ONCE = 1e-8
EARNED = 100  # evaluations after which a mode embedded online is derived
ROUNDING = 1e-13  # by how much a start is moved to see whether a piece is a tie
TIES = 0.01  # of all pieces


def settings(graph, strategy, **given):
    """The setting of a study with kernels, and the same with the strategy, whose kernels are taken over early."""
    own = AnalysisSetup.of(graph, **given)
    automaton, home = graph.automaton, own.executable.home
    if strategy == "online":
        return own, replace(own, executable=OnlineExecutable(automaton, home))
    return own, replace(own, executable=EarnedExecutable(automaton, home, derived=automaton.modes, derive_after=EARNED))


class Piece(NamedTuple):
    """A state after a transition, and until when to go on from there."""

    x: np.ndarray
    c: np.ndarray
    states: tuple
    since: float
    until: float


class Met(NamedTuple):
    """Where a piece ends: how, when, in which mode and state; how fast the state and the guards that fired change."""

    outcome: str
    t: float
    mode: str
    x: np.ndarray
    rate: float
    slope: float


def next_transition(setting, piece):
    """Go on to the next transition, or to the end; the resolution at the start is none."""
    setting.executable.reset_charts()
    raw = setting.run(piece.x, piece.c, piece.states, piece.until, piece.since)
    found = raw.transitions
    later = np.flatnonzero(found.reason != Reason.START)
    k = later[0] if len(later) else None
    row = -1 if k is None else found.row[k]
    slope = np.inf if k is None else np.nanmin(np.abs(found.slope[k]), initial=np.inf)
    return Met(
        raw.outcome.name if k is None else "transition", raw.t[row], setting.executable.chart_names[raw.mode[row]],
        raw.x[row], np.abs(raw.x_dot[row]).max(), slope,
    )  # fmt: skip


def pieces(own, start, until):
    """Where each piece of a run begins."""
    raw = own.run(start.x, start.context, start.states, until)
    charts = own.executable.charts
    return [
        Piece(raw.x[row], own.context(raw.held[row]), charts[target].programs.states, t, min(until, t + LATER))
        for row, target in zip(raw.transitions.row[:TRANSITIONS], raw.transitions.target[:TRANSITIONS], strict=True)
        if (t := raw.t[row]) < until
    ]


def same(one, two, since):
    """Whether two ways to go on agree in mode, time and state."""
    apart = abs(one.t - two.t)
    at_once = max(one.t, two.t) - since <= AT_ONCE
    allowed = max(AT_ONCE if at_once else EVENT, LEVEL / max(min(one.slope, two.slope), 1e-9))
    size = max(1.0, np.abs(one.x).max())
    # a step in time is a step in the state, at the speed it has there
    close = np.abs(one.x - two.x).max() <= STATE * size + one.rate * apart
    return (one.outcome, one.mode) == (two.outcome, two.mode) and apart <= allowed and close


def is_a_tie(own, piece, expected):
    """Whether the strategy disagrees with itself where the start is moved within rounding."""
    rng = np.random.default_rng(1)
    for _ in range(6):
        moved = piece.x * (1.0 + ROUNDING * rng.choice([-1.0, 1.0], len(piece.x)))
        if not same(expected, next_transition(own, piece._replace(x=moved)), piece.since):
            return True
    return False


def compare(own, other, start, until):
    """Count the outcomes of the pieces of a run; the second is what went wrong, in words."""
    counts, wrong = Counter(), []
    for piece in pieces(own, start, until):
        expected, found = next_transition(own, piece), next_transition(other, piece)
        counts["pieces"] += 1
        counts["transitions"] += expected.outcome == "transition"
        counts["late" if expected.t - piece.since <= AT_ONCE else "grazing"] += int(abs(found.t - expected.t) > EVENT)
        if same(expected, found, piece.since):
            continue
        if is_a_tie(own, piece, expected):
            counts["ties"] += 1
        else:
            size = max(1.0, np.abs(expected.x).max())
            wrong.append(
                f"from t = {piece.since:.12g} s: {expected.outcome} at {expected.t:.12g} s into {expected.mode}, slope "
                f"{expected.slope:.2g}; on line {found.outcome} {found.t - expected.t:+.3g} s later into {found.mode}, "
                f"{np.abs(found.x - expected.x).max() / size:.2g} apart"
            )
    return counts, wrong


@pytest.mark.parametrize("strategy", ["online", "auto"])
@pytest.mark.parametrize("name", [*STARTS, *VARIANTS])
def test_the_same_transitions(name, strategy):
    model, make, runs = (name, STARTS[name], RUNS) if name in STARTS else (*VARIANTS[name], MORE_RUNS)
    graph = fsm_dyn.compile(model)
    counts, wrong = Counter(), []
    for seed in range(max(1, round(runs * TIMES))):
        given, until = make(np.random.default_rng([seed, zlib.crc32(name.encode())]))
        values = {key: given.get(key) for key in ("parameters", "inputs")}
        own, other = settings(graph, strategy, **values)
        fared, told = compare(own, other, own.start(given["initial"]), until)
        counts += fared
        wrong += [f"seed {seed} {line}" for line in told]
    print(f"{name} {strategy}: {dict(counts)}")  # noqa: T201 - shown by pytest -rP
    assert not wrong, "\n".join(wrong)
    assert counts["pieces"] > 0
    assert counts["ties"] + counts["grazing"] <= max(2, TIES * counts["pieces"])  # one that grazes may be a tie, too


# the comparison weighs differences by derivatives of runs, which there are not across samples: see test_magnetic_latch
SAMPLED = {name for name in models.names() if mechanism(name).controllers}


@pytest.mark.parametrize("name", sorted(set(models.names()) - set(STARTS) - SAMPLED))
def test_shipped_starts(name):
    graph = fsm_dyn.compile(name)
    own, other = settings(graph, "online")
    counts, wrong = compare(own, other, own.start(), 1.2)
    assert wrong == []
    assert counts["ties"] == 0


def test_whole_runs():
    """Where nothing is chaotic whole runs agree too, whatever strategy: a ball, until it rests."""
    graph = fsm_dyn.compile("bouncing_ball")
    own = fsm_dyn.simulate(graph, 4.0)
    for strategy in ("online", "auto"):
        run = fsm_dyn.simulate(graph, 4.0, strategy=strategy)
        assert [item.target for item in run.transitions] == [item.target for item in own.transitions]
        times, expected = ([item.time for item in each.transitions] for each in (run, own))
        np.testing.assert_allclose(times, expected, rtol=0, atol=EVENT)
        np.testing.assert_allclose(run.q[-1], own.q[-1], rtol=0, atol=STATE)


LASTING = 1e-6  # s; impacts in shorter succession are chaotic: rounding decides on their number


def lasting_modes(run):
    """The modes that a run stays in, one after the other, and when it comes into them."""
    times = [each.time for each in run.transitions]
    visits = []
    for each, end in zip(run.transitions, [*times, float(run.t[-1])][1:], strict=True):
        if end - each.time > LASTING and (not visits or visits[-1][0] != each.target):
            visits.append((each.target, each.time))
    return visits


def scenarios(names):
    """Models with each of their scenarios, None for their own schedule."""
    return [(name, scenario) for name in names for scenario in (None, *mechanism(name).scenarios)]


SHORT = {"seven_body_mechanism": 0.03}  # s
FEW = (("latch_door", "handle"), ("geneva_drive", "fast"), ("seat_belt_reel", None))
ALL = [pytest.param(*each, marks=() if each in FEW else pytest.mark.long) for each in scenarios(models.names())]


@pytest.mark.parametrize(("name", "scenario"), ALL)
def test_whole_runs_of_shipped_models(name, scenario):
    graph = fsm_dyn.compile(name)
    runs = [
        fsm_dyn.simulate(graph, SHORT.get(name, 2.0), scenario=scenario, strategy=strategy, on_failure="return")
        for strategy in ("auto", "online", "compiled")
    ]
    expected = lasting_modes(runs[0])
    for run in runs[1:]:
        assert (run.outcome, float(run.t[-1])) == (runs[0].outcome, pytest.approx(float(runs[0].t[-1]), abs=LASTING))
        found = lasting_modes(run)
        assert [mode for mode, _ in found] == [mode for mode, _ in expected]
        times, others = ([time for _, time in each] for each in (found, expected))
        np.testing.assert_allclose(times, others, rtol=0, atol=LASTING)
        if not expected:
            np.testing.assert_allclose(run.q[-1], runs[0].q[-1], rtol=1e-6, atol=1e-6)


def test_nothing_is_derived():
    graph = fsm_dyn.compile("twelve_contacts")
    simulator = fsm_dyn.Simulator(graph)
    for strategy in ("auto", "online"):
        simulator.run(1.0, strategy=strategy, on_failure="return")
    assert simulator.extended_graph() is graph


def test_runs_do_not_depend_on_the_runs_before():
    graph = fsm_dyn.compile("box_on_table")
    first, again = (fsm_dyn.simulate(graph, 1.0, strategy="online") for _ in range(2))
    np.testing.assert_array_equal(first.q, again.q)
    np.testing.assert_array_equal(first.u, again.u)
    np.testing.assert_array_equal(first.t, again.t)


def test_forces_can_be_read():
    """What a trajectory works out afterwards comes from the mode embedded online."""
    graph = fsm_dyn.compile("box_on_table")
    runs = [fsm_dyn.simulate(graph, 0.3, strategy=strategy) for strategy in ("compiled", "online")]
    times = np.linspace(0.0, 0.29, 40)
    own, online = (run.sample(times).multiplier_table for run in runs)
    np.testing.assert_allclose(online, own, rtol=0, atol=1e-8 * np.abs(own).max(initial=1.0))


def test_a_strategy_that_is_none():
    with pytest.raises(InputError, match="'on-line'"):
        fsm_dyn.simulate(fsm_dyn.compile("bouncing_ball"), strategy="on-line")
