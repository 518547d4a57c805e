"""Explorations: required findings, reproducibility, and lists."""

import json
import time
from collections import Counter

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.automaton.mode_graph import grouped
from fsm_dyn.core.errors import InputError
from fsm_dyn.language import models
from fsm_dyn.plot import drawing

MUST = ["latch", "shopping_cart", "escapement_deadbeat", "piano_action_simple"]


def met_by_schedules(graph):
    """Modes visited under the shipped schedule and scenarios of a model."""
    found = set()
    for scenario in (None, *graph.automaton.mechanism.scenarios):
        run = fsm_dyn.simulate(graph, scenario=scenario, on_failure="return")
        found |= set(run.modes)
    return found


@pytest.mark.parametrize("name", MUST)
def test_every_mode_of_the_shipped_schedules_is_found(name):
    graph = fsm_dyn.compile(name)
    found = fsm_dyn.explore(graph, depth=1 if name != "piano_action_simple" else 0)
    assert met_by_schedules(graph) <= set(found.modes)
    assert not found.instant_cycles
    for edge in found.edges:
        assert 1 <= edge.seen <= edge.runs <= found.modes[edge.source].runs


@pytest.mark.parametrize("name", ["latch", "shopping_cart"])
def test_modes_are_found_without_the_schedules(name):
    """From a start without inputs, random inputs alone lead to all modes visited under the schedules."""
    graph = fsm_dyn.compile(name)
    quiet = dict.fromkeys(graph.automaton.terms.layout.w, 0.0)
    known = met_by_schedules(graph)
    ranges = dict.fromkeys(quiet, (-20.0, 20.0))
    found = fsm_dyn.explore(graph, depth=3, samples=12, inputs=ranges, schedules=False, duration=1.0)
    assert known <= set(found.modes)


def random_drives(graph, number):
    """Yield inputs of up to 10 N with three random breakpoints; without inputs, random starts of the clock."""
    inputs, random = graph.automaton.terms.layout.w, np.random.default_rng(7)
    for _ in range(number):
        times = np.sort(random.uniform(0.0, 1.0, 3)).tolist()
        drawn = {
            name: {"linear": [[0.0, 0.0], *[[t, float(random.uniform(-10, 10))] for t in times]]} for name in inputs
        }
        start = {"p": 0.2, "p_dot": 1.5, "w": 0.2} if not inputs else {}
        yield drawn, {name: float(random.uniform(-most, most)) for name, most in start.items()}


@pytest.mark.parametrize(
    ("name", "depth", "samples", "drives"),
    # a slice of it always; of the teeth, met one a round, and of the piano none of the rounds can be spared
    [(name, 2, 6, 50) for name in MUST if name not in ("escapement_deadbeat", "piano_action_simple")]
    + [pytest.param(name, 4, 24, 1000, marks=pytest.mark.long) for name in MUST],
)
@pytest.mark.timeout(7200)
def test_every_mode_of_random_drives_is_found(name, depth, samples, drives):
    graph = fsm_dyn.compile(name)
    found = fsm_dyn.explore(graph, depth=depth, samples=samples, jobs=None)
    met, times = {}, []
    for number, (inputs, start) in enumerate(random_drives(graph, drives)):
        began = time.process_time()
        run = fsm_dyn.simulate(graph, 1.5, inputs=inputs, initial=start, on_failure="return")
        times.append(time.process_time() - began)
        for mode in run.modes:
            met.setdefault(mode, number)
    counts = f"{len(found.modes)} modes in {found.runs} runs, {len(met)} in {drives} drives"
    print(f"{name}: {counts}; a drive takes {np.median(times):.3f} s, at most {max(times[1:]):.3f} s")  # noqa: T201 - -rP
    assert not met.keys() - found.modes.keys()
    assert len(met) > 1


def test_the_same_seed_gives_the_same_exploration_in_any_number_of_processes():
    graph = fsm_dyn.compile("latch")
    texts = [
        json.dumps(fsm_dyn.explore(graph, depth=2, samples=3, seed=seed, jobs=jobs).to_data())
        for seed, jobs in ((5, 1), (5, 1), (5, 2), (6, 1))
    ]
    assert texts[0] == texts[1] == texts[2]
    assert texts[3] != texts[0]


def well():
    """A ball falling into a sticky well: one mode without a guard to another."""
    return {
        "fsm_dyn": 1, "name": "well", "coordinates": {"y": "m"}, "points": {"P": {"from": "O", "at": "y*N.y"}},
        "bodies": {"ball": {"center": "P", "mass": "1 kg"}}, "loads": [{"gravity": "-9.81 m/s^2*N.y"}],
        "contacts": {"glue": {"lock": {"position": "y"}}},
        "modes": {"falling": {"glue": "released"}, "caught": {"glue": "engaged"}},
        "transitions": [{"from": "falling", "when": "y", "crossing": "falling", "to": "caught"}],
        "initial": {"y": "1 m"},
    }  # fmt: skip


def test_modes_that_nothing_leads_out_of_are_listed():
    graph = fsm_dyn.compile(fsm_dyn.load(well()))
    found = fsm_dyn.explore(graph, depth=1, samples=4, duration=1.0)
    assert set(found.modes) == {"falling", "caught"}
    assert found.terminal_modes == ("caught",)
    assert found.never_left == ("caught",)
    assert found.never_entered == ()
    assert [(edge.source, edge.target) for edge in found.edges] == [("falling", "caught")]


def test_how_edges_were_found():
    graph = fsm_dyn.compile("latch")
    few = fsm_dyn.explore(graph, depth=0)
    drawn = few.nx
    kinds = {data["found"] for _, _, data in drawn.edges(data=True)}
    assert kinds == {"seen", "derived", "declared"}
    seen = [data for _, _, data in drawn.edges(data=True) if data["found"] == "seen"]
    assert len(seen) == len(few.edges)
    assert all(1 <= data["seen"] <= data["runs"] for data in seen)
    arrows = drawing.diagram(drawn).arrows
    assert {arrow.dashed for arrow in arrows} == {True, False}
    assert any("1 of 1: " in label for arrow in arrows if not arrow.dashed for label in arrow.labels)
    dot = drawing.to_dot(drawing.diagram(drawn))
    assert dot.count("style=dashed") == sum(arrow.dashed for arrow in arrows)
    assert drawing.to_mermaid(drawing.diagram(drawn)).count(".->") == sum(arrow.dashed for arrow in arrows)


def test_before_a_run_all_arrows_are_dashed_and_those_a_run_took_are_solid():
    graph = fsm_dyn.compile("latch")
    assert all(arrow.dashed for arrow in drawing.diagram(graph.nx).arrows)
    run = fsm_dyn.simulate(graph)
    arrows = drawing.diagram(graph.nx, trajectory=run).arrows
    solid = {(arrow.source, arrow.target) for arrow in arrows if not arrow.dashed}
    assert solid == {(x.source, x.target) for x in run.transitions}
    kinds = Counter(data["found"] for *_, data in graph.nx.edges(data=True))
    assert kinds.keys() == {"declared", "derived"}


@pytest.mark.parametrize(
    "name", ["latch_door", "geneva_drive", "escapement_deadbeat", "seat_belt_reel", "gripper", "piano_action"]
)
def test_models_that_are_not_derived_as_a_whole_are_drawn_with_what_their_guards_lead_to(name):
    graph = fsm_dyn.compile(name)
    drawn = graph.nx_with_successors()
    assert len(drawn) > 10 + len(graph.modes)  # no lonely box
    derived = {node for node, data in drawn.nodes(data=True) if data["found"] == "derived"}
    assert set(drawn) - derived == set(graph.modes)
    contacts = graph.automaton.contacts
    for node in derived:  # each is led to, and named as a run will name it
        assert drawn.in_degree(node) > 0
        states = [c.states.index(drawn.nodes[node]["states"][c.name]) for c in contacts]
        assert graph.automaton.name_of(states).name == node


def test_no_model_with_contacts_is_one_box_before_a_run():
    for name in models.names():
        graph = fsm_dyn.compile(name)
        drawn = graph.nx_with_successors()
        assert (len(drawn) > 1 and drawn.number_of_edges() > 1) == bool(graph.automaton.contacts), name


def test_successors_are_the_modes_that_runs_reach_from_the_first_one():
    """After a single event of a single contact the mode of a run is among those drawn before it."""
    graph = fsm_dyn.compile("latch_door")
    known = set(graph.nx_with_successors(depth=2))
    run = fsm_dyn.simulate(graph, on_failure="return")
    assert run.transitions[0].target in known
    every = graph.with_geometry(graph.assess_geometry()).nx_with_successors(depth=2)
    assert set(every) < known  # the geometry leaves modes out


def test_groups_by_the_names_of_the_model():
    found = fsm_dyn.explore(fsm_dyn.compile("piano_action_simple"), depth=0)
    groups = found.grouped
    assert len(groups) < len(found.nx)
    assert {"rest", "other"} <= set(groups)
    total = sum(int(label.rsplit("(", 1)[1][:-1]) for _, label in groups.nodes(data="label"))
    assert total == len(found.nx)
    assert groups.nodes["rest"]["note"] == "1 met by runs"
    inside = {node for node, group in found.nx.nodes(data="group") if group == "other"}
    opened = grouped(found.nx, ["other"])
    assert set(opened) == (set(groups) - {"other"}) | inside
    between = [data for a, b, data in opened.edges(data=True) if {a, b} <= inside]
    assert between == [data for a, b, data in found.nx.edges(data=True) if {a, b} <= inside]
    ways = {(a, b): d["seen"] for a, b, d in groups.edges(data=True) if a != b}
    counted = Counter()
    for a, b, data in found.nx.edges(data=True):
        counted[found.nx.nodes[a]["group"], found.nx.nodes[b]["group"]] += data["seen"]
    assert ways == {way: seen for way, seen in counted.items() if way[0] != way[1]}
    with pytest.raises(InputError, match="no group 'rset'"):
        grouped(found.nx, ["rset"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"depth": -1}, {"samples": 0}, {"depth": 1.5}, {"inputs": {"nothing": (0, 1)}}, {"inputs": {"push": (3, -1)}},
        {"inputs": {"push": (0, float("nan"))}}, {"inputs": {"push": 3}}, {"inputs": {"push": ("a", "b")}},
        {"duration": -1.0}, {"from_": "nowhere"}, {"from_": {"mode": "nowhere"}}, {"from_": {"nothing": 1.0}},
    ],
)  # fmt: skip
def test_wrong_arguments(wrong):
    with pytest.raises(InputError):
        fsm_dyn.explore(fsm_dyn.compile("latch"), **wrong)
