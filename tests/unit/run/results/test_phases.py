"""Phases of runs against motions in closed form, merging, and requirements that name phases."""

import math
from itertools import pairwise

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.language.loader import load
from fsm_dyn.run.phases import PhaseVisit, merged

# x = a sin(t), by a spring
SPRING = """fsm_dyn: 1
name: swing
parameters: {m: 1 kg, k: 1 N/m, a: 1 m}
coordinates: {x: m}
points: {P: {from: O, at: x*N.x}}
bodies: {ball: {center: P, mass: m}}
speeds: {v: rate(x)}
loads: [{spring: {coordinate: x, stiffness: k}}]
initial: {x: 0 m, v: 1 m/s}
outputs: {square: x**2}
phases:
  far:    {when: x > a/2, shortest: 0 s}
  behind: {when: x < -0.5 m, shortest: 0 s}
  back:   {when: otherwise, after: far, until: x < 0 m, shortest: 0 s}
  near:   {when: otherwise, shortest: 0 s}
requirements:
  twice: count(far begins) <= 1
  high: always x < 0.9 m while far
  low: always square > 0.2 m^2 while far
  turning: always v > -0.5 m/s while phase == back
  in_time: eventually phase == behind before 4 s
  seldom: never far begins twice within 6 s
  not_behind: never behind
"""
SIXTH = math.pi / 6


@pytest.fixture(scope="module")
def swing():
    return fsm_dyn.simulate(fsm_dyn.compile(load("swing.yaml", text=SPRING)), 10.0, rtol=1e-12, atol=1e-13)


def test_phases_begin_where_their_conditions_do(swing):
    wanted = [("near", 0.0), ("far", SIXTH), ("back", 5 * SIXTH), ("near", 6 * SIXTH), ("behind", 7 * SIXTH)]
    wanted += [("near", 11 * SIXTH), ("far", 13 * SIXTH), ("back", 17 * SIXTH), ("near", 18 * SIXTH)]
    wanted += [("behind", 19 * SIXTH)]
    assert [visit.name for visit in swing.visits] == [name for name, _ in wanted]
    assert [visit.begin for visit in swing.visits] == pytest.approx([time for _, time in wanted], abs=1e-9)
    assert swing.visits[-1].end == swing.t[-1]
    assert all(one.end == other.begin for one, other in pairwise(swing.visits))


def test_causes_of_phases_by_quantities(swing):
    causes = [visit.cause for visit in swing.visits]
    assert causes[:5] == [
        "start",
        "x rises above a/2",
        "x falls below a/2",
        "x falls below 0 m",
        "x falls below -0.5 m",
    ]


def test_requirements_with_phases(swing):
    judged = swing.judge()
    wanted = {
        "twice": ("violated", -1.0), "high": ("violated", -0.1), "low": ("met", 0.05), "turning": ("violated", -0.5),
        "in_time": ("met", 4 - 7 * SIXTH), "seldom": ("met", 2 * math.pi - 6.0),
        "not_behind": ("violated", -(4 * SIXTH + 10 - 19 * SIXTH)),
    }  # fmt: skip
    for name, (verdict, margin) in wanted.items():
        assert judged[name].verdict == verdict, name
        assert judged[name].margin == pytest.approx(margin, abs=1e-8), name


def test_phases_of_runs_judged_together_are_those_of_each():
    graph = fsm_dyn.compile(load("swing.yaml", text=SPRING))
    values = [0.5, 1.0, 1.5, 2.0, 2.5]
    found = fsm_dyn.study(graph, {"k": values}, until=10.0, jobs=1)
    for number, value in enumerate(values):
        alone = fsm_dyn.simulate(graph, 10.0, parameters={"k": value}).judge()
        for name, item in alone.items():
            assert found.margins[name][number] == item.margin, (value, name)


def test_short_visits_are_a_part_of_those_before():
    lengths = [(0, 1.0), (1, 0.08), (0, 0.05), (2, 1.0), (1, 0.05), (2, 0.2), (1, 2.0)]
    visits, time = [], 0.0
    for phase, length in lengths:
        visits.append(PhaseVisit(phase, time, time + length))
        time += length
    found = merged(visits, lambda _: 0.15)
    assert [(v.phase, v.merged) for v in found] == [(0, 3), (2, 3), (1, 1)]
    assert [v.end - v.begin for v in found] == pytest.approx([1.13, 1.25, 2.0])
    first = merged([PhaseVisit(0, 0.0, 0.01), PhaseVisit(1, 0.01, 1.0)], lambda _: 0.15)
    assert [(v.phase, v.begin, v.merged) for v in first] == [(1, 0.0, 2)]
    only = [PhaseVisit(0, 0.0, 1.0), PhaseVisit(3, 1.0, 1.001), PhaseVisit(0, 1.001, 2.0)]
    assert len(merged(only, lambda _: 0.15)) == 1
    assert [v.phase for v in merged(only, lambda _: 0.15, kept=True)] == [0, 3, 0]


def test_merging_many_visits_takes_no_quadratic_time():
    random = np.random.default_rng(3)
    ends = np.cumsum(random.uniform(0.0, 1e-3, 40_000))
    begins = np.concatenate([[0.0], ends[:-1]])
    visits = [PhaseVisit(k % 5, a, b) for k, (a, b) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True))]
    found = merged(visits, lambda _: 2e-3)
    assert (found[0].begin, found[-1].end) == (0.0, ends[-1])
    assert sum(visit.merged for visit in found) == len(visits)
    assert all(one.end == other.begin and one.phase != other.phase for one, other in pairwise(found))
    assert all(visit.end - visit.begin >= 2e-3 for visit in found)
