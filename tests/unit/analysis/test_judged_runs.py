"""Runs made and judged together have the same bits as alone."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.analysis import judged_runs as together
from fsm_dyn.analysis.judged_runs import RunPreparation, judged_alone, judged_runs
from fsm_dyn.analysis.study import grid_points
from fsm_dyn.language.loader import load
from fsm_dyn.language.models import find
from fsm_dyn.run.simulator import Simulator

BALL = """
fsm_dyn: 1
name: drop
parameters: {h: 1 m +- 5 cm, e: {normal: 0.5, sigma: 0.02}, g: 9.81 m/s^2}
coordinates: {y: m}
points: {C: {from: O, at: y*N.y}}
bodies: {ball: {center: C, mass: 1 kg}}
contacts: {ground: {gap: y, restitution: e}}
loads: [{gravity: -g*N.y}]
initial: {y: h}
outputs: {square: y**2}
requirements:
"""
CLAIMS = """
  fast: peak(y_dot) > 2.1 m/s
  early: eventually ground closes before 0.46 s
  often: count(ground closes) >= 3
  apart: never ground closes twice within 0.1*h/(1 m/s)
  low: peak(square) < h**2 + 1 mm^2
  falls: eventually y < h/2 before 0.4 s
  free: never ground is closed
  up: always y > -1 mm while ground is open
  last: final(square) < 0.2 m^2
  pressed: peak(ground.normal) < 20 N
"""


def requirements(name, claims, changes=()):
    """Return a shipped model with other requirements."""
    text = find(name).read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    head = text.partition("\nrequirements:")[0]
    return fsm_dyn.compile(load(name, text=f"{head}\nrequirements:\n{claims}"))


def both(graph, vary, runs, seed, run, monkeypatch):
    """Return runs judged together and alone, and how many were made together."""
    random = np.random.default_rng(seed)
    columns = {name: random.uniform(*ends, runs) for name, ends in vary.items()}
    cases = [{name: float(column[k]) for name, column in columns.items()} for k in range(runs)]
    mechanism = graph.automaton.mechanism
    outputs = (*mechanism.outputs, graph.automaton.terms.layout.u[0])
    options = {"requirements": (*mechanism.requirements,), "outputs": outputs, "times": np.empty(0), "run": run}
    counted = []
    original = together._made_together

    def counting(*given):
        found = original(*given)
        counted.append(len(found))
        return found

    monkeypatch.setattr(together, "_made_together", counting)
    many = judged_runs(Simulator(graph), options, cases)
    alone = Simulator(graph)
    return many, [judged_alone(alone, options, case) for case in cases], sum(counted)


def test_all_kinds_of_claims(monkeypatch):
    graph = fsm_dyn.compile(load("drop", text=BALL + CLAIMS))
    many, one, count = both(graph, {"h": (0.9, 1.1), "e": (0.4, 0.6)}, 24, 1, {"until": 1.2}, monkeypatch)
    assert count == 24
    assert repr(many) == repr(one)  # nan among margins
    verdicts = {name: {run.verdicts[name] for run in many} for name in many[0].verdicts}
    assert sum(len(found) == 2 for found in verdicts.values()) >= 3


def test_contacts_that_close_by_a_jump(monkeypatch):
    """Set on the ground at 0.1 s, a ball closes its contact there first, and again by motion if it is slow."""
    placed = "transitions: [{from: '*', when: t - 0.1 s, reset: {y: 0, y_dot: -1 m/s}, because: placed}]\n"
    claims = "\n  early: eventually ground closes before 0.2 s\n  once: count(ground closes) <= 1\n"
    model = BALL.replace("requirements:", placed + "requirements:")
    many, one, count = both(
        fsm_dyn.compile(load("drop", text=model + claims)), {"e": (0.5, 0.9)}, 8, 3, {"until": 0.25}, monkeypatch
    )
    assert count == 8
    assert repr(many) == repr(one)
    assert {run.verdicts["early"] for run in many} == {"met"}
    assert {run.verdicts["once"] for run in many} == {"met", "violated"}


SHIPPED = {
    "latch": (
        "  slow: peak(vx) < 0.8 m/s\n  snaps: eventually ramp closes before 1 s\n  in: eventually latched before 1 s\n",
        {"m_door": (1.4, 1.6), "preload": (0.008, 0.012), "alpha": (0.6, 0.75)}, {}, 16,
    ),
    "bouncing_ball": (
        "  hits: count(ground closes) <= 4\n", {"e": (0.3, 0.9), "initial.y": (0.5, 1.5)}, {"until": 1.5}, 16,
    ),
    "shopping_cart": ("  sticks: count(caster_axis sticks) <= 1\n", {"tau_stick": (0.3, 0.6)}, {"until": 4.0}, 12),
    "gripper": ("  firm: count(stand closes) <= 1\n  up: peak(y) > 1 mm\n", {"mu": (0.3, 0.5)}, {"until": 1.0}, 6),
    "latch_door": (None, {"mu": (0.05, 0.6)}, {"until": 1.0, "inputs": {"push": 10.0, "handle": 0.0}}, 8),
    "escapement_deadbeat": (None, {"m_weight": (0.015, 0.025), "c": (1.5e-3, 2.5e-3)}, {"until": 1.0}, 8),
}  # fmt: skip


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_models(name, monkeypatch):
    claims, vary, run, runs = SHIPPED[name]
    graph = fsm_dyn.compile(name) if claims is None else requirements(name, claims)
    many, one, count = both(graph, vary, runs, 2, run, monkeypatch)
    assert repr(many) == repr(one)
    assert count == runs


def test_full_buffers(monkeypatch):
    """Room for less than a run: it grows, and interrupted runs begin again."""
    for name, count in (("ROWS", 300), ("_TRANSITIONS", 8), ("_PASSAGES", 2)):
        monkeypatch.setattr(f"fsm_dyn.run.run.{name}", count)
    claims, vary, run, runs = SHIPPED["latch"]
    many, one, count = both(requirements("latch", claims), vary, runs, 4, run, monkeypatch)
    assert repr(many) == repr(one)
    assert count == runs


@pytest.mark.parametrize("strategy", ["online", "compiled"])
def test_strategies(strategy, monkeypatch):
    """Modes embedded online choose their charts in each run, and modes reached first are derived for all."""
    _, vary, run, _ = SHIPPED["latch_door"]
    graph = fsm_dyn.compile("latch_door")
    many, one, _ = both(graph, vary, 6, 5, {**run, "strategy": strategy}, monkeypatch)
    assert repr(many) == repr(one)


def test_runs_that_cannot_begin_or_end(monkeypatch):
    """Impossible parameters, too few steps allowed, and a settled start: made alone, or ended in the batch."""
    graph = fsm_dyn.compile(load("drop", text=BALL + CLAIMS))
    many, one, count = both(graph, {"e": (0.5, 1.5)}, 16, 3, {"until": 1.0}, monkeypatch)
    assert repr(many) == repr(one)
    assert 0 < count < 16
    assert {run.outcome for run in many if run.outcome != "done"}.pop().startswith("failed: these parameters")
    short = {"until": 1.0, "max_steps": 4}
    many, one, count = both(graph, {"e": (0.5, 0.9)}, 8, 3, short, monkeypatch)
    assert repr(many) == repr(one)
    assert "too many steps" in {run.outcome for run in many}


def test_what_runs_may_not_share():
    graph = fsm_dyn.compile(load("drop", text=BALL + CLAIMS))
    for options in ({"method": "radau"}, {"method": "rk4", "step": 1e-3}, {"initial": {"settle": True}}):
        assert not RunPreparation(Simulator(graph), {}, {"until": 1.0, **options}, ("e",)).together
    assert not RunPreparation(Simulator(graph), {}, {"until": 1.0}, ("none",)).together
    latch = fsm_dyn.compile("latch")
    assert not RunPreparation(Simulator(latch), {}, {"inputs": {"push": "m_door*9.81 m/s^2"}}, ("m_door",)).together
    assert RunPreparation(Simulator(latch), {}, {"inputs": {"push": "m_bolt*9.81 m/s^2"}}, ("m_door",)).together


def test_other_units_of_the_mechanism_are_noticed():
    """A ball 20,000 times as heavy has other units, so its run has other tolerances."""
    graph = fsm_dyn.compile("bouncing_ball")
    preparation = RunPreparation(Simulator(graph), {}, {"until": 1.0}, ("m",))
    assert preparation.of([{"m": 0.1}, {"m": 0.11}, {"m": 2000.0}]).numbers == (0, 1)


GRIDS = {
    "parameters": ({"e": ["0.4", 0.5, "0.6"], "h": ["0.9 m", "1 m", "110 cm"]}, 9),
    "initial values": ({"initial.y": [0.8, 0.9, 1.0, 1.1, 1.2], "e": [0.5, 0.9]}, 10),
    "texts": ({"initial.y": ["0.8 m", "0.9 m", 1.0, 1.1, 1.2, 1.3]}, 4),
    "impossible": ({"e": [0.4, 0.5, 0.6, 0.7, 0.8]}, 5),
}


@pytest.mark.parametrize("name", GRIDS)
def test_a_grid(name, monkeypatch):
    """Rows of a grid, with curves: those of a run by itself, to the last bit."""
    graph = fsm_dyn.compile(load("drop", text=BALL + CLAIMS))
    vary, most = GRIDS[name]
    run = {"until": 1.2} | ({"max_steps": 12} if name == "impossible" else {})
    (part,) = grid_points(graph, vary, run, 100).parts
    claims = tuple(graph.automaton.mechanism.requirements)
    outputs, times = ("square", "y", "y_dot"), np.linspace(0.0, 1.2, 50)
    given = {"requirements": claims, "outputs": outputs, "times": times, "run": run}
    counted, original = [], together._made_together

    def counting(*arguments):
        found = original(*arguments)
        counted.append(len(found))
        return found

    monkeypatch.setattr(together, "_made_together", counting)
    many = judged_runs(Simulator(graph), given, part.cases)
    alone = Simulator(graph)
    for found, case in zip(many, part.cases, strict=True):
        expected = judged_alone(alone, given, case)
        assert repr(found) == repr(expected)
        assert found.curves == expected.curves
        assert found.curves.keys() == {*outputs}
    assert sum(counted) == most


def test_a_search_makes_its_populations_together(monkeypatch):
    """The margins are those of single runs, and violating runs are kept as before."""
    graph = fsm_dyn.compile(load("drop", text=BALL + CLAIMS))
    counted, original = [], together._made_together

    def counting(*arguments):
        found = original(*arguments)
        counted.append(len(found))
        return found

    monkeypatch.setattr(together, "_made_together", counting)
    found = [fsm_dyn.worst_case(graph, "early", runs=40, seed=3, until=1.0)]
    assert sum(counted) >= 16
    monkeypatch.setattr(together, "FEWEST", 10**6)
    found.append(fsm_dyn.worst_case(graph, "early", runs=40, seed=3, until=1.0))
    assert found[0].values == found[1].values
    assert repr(found[0].margin) == repr(found[1].margin)
    assert [item.values for item in found[0].violations] == [item.values for item in found[1].violations]
    assert (found[0].runs, found[0].undecided, found[0].failed) == (40, 0, 0)
