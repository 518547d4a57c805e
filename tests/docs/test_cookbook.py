"""The cookbook: every file runs and agrees with its hand calculation, for all values of the parameters it reads.

A calculation notes which parameters it reads.  Each of these is then changed by 7 %, and the run has to follow it: a
calculation that is a number, or a measurement that does not depend on the model, fails here.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import acos, asin, cos, pi, sqrt
from pathlib import Path

import pytest

import fsm_dyn

COOKBOOK = Path(__file__).parents[2] / "docs" / "cookbook"
PAGE = (COOKBOOK / "index.md").read_text(encoding="utf-8")
CHANGE = 1.07  # small enough that every recipe goes through the same modes
TOLERANCE = 1e-9  # relative: steps have 1e-8 of a step's own error, which such short runs stay far below
SENSITIVE = 1e-4


class Read(dict):
    """Parameters that remember which of them were asked for."""

    def __init__(self, values):
        super().__init__(values)
        self.names = set()

    def __getitem__(self, name):
        self.names.add(name)
        return super().__getitem__(name)


@dataclass(frozen=True)
class Recipe:
    """How long to run, what to measure on the run, and what it should be by hand."""

    until: float
    measured: Callable
    by_hand: Callable


def time_of(words, which=0):
    """Return a measurement: the time, s, of a transition whose cause contains these words."""
    return lambda run: [x.time for x in run.transitions if words in x.cause][which]


def string_speed(p):
    fallen = sqrt(p["L"] ** 2 - p["a"] ** 2)
    return sqrt(2 * p["g"] * fallen) * p["a"] / p["L"]


def snap_speed(p):
    def energy(q):
        return p["k"] / 2 * (sqrt(p["a"] ** 2 + p["l"] ** 2 - 2 * p["a"] * p["l"] * cos(q)) - p["free"]) ** 2

    return sqrt(2 * (energy(p["q0"]) - energy(p["stop"])) / p["J"])


def end_position(p):
    slowing = p["F"] / p["m"]
    back = p["e"] ** 2 * (p["v0"] ** 2 - 2 * slowing * p["d"])
    return p["d"] - back / (2 * slowing)


def driven_speed(p):
    ratio = p["r1"] / p["r2"]
    meets = sqrt(2 * p["T"] / p["J1"] * p["play"] / p["r1"])
    return ratio * meets * p["J1"] / (p["J1"] + p["J2"] * ratio**2)


def tipping_time(p):
    slowing = p["mu"] * p["g"]
    way = -p["x0"] - p["mu"] * p["c"] / 2
    return (p["v0"] - sqrt(p["v0"] ** 2 - 2 * slowing * way)) / slowing


RECIPES = {
    "one_way_clutch": Recipe(1.0, time_of("frees"), lambda p: acos(-p["T"] / (p["J"] * p["W"] * p["w"])) / p["w"]),
    "ball_point_pen": Recipe(0.6, time_of("cam opens"), lambda p: 0.3 + (p["F0"] + p["k"] * p["out"]) / (4 / 0.1)),
    "magnet": Recipe(1.5, time_of("lets go"), lambda p: p["hold"] / (15 / 0.5)),
    "string": Recipe(1.0, lambda run: float((run.transitions[0].u_after ** 2).sum() ** 0.5), string_speed),
    "brake": Recipe(3.0, time_of("sticks"), lambda p: 0.2 + p["J"] * p["w0"] / (p["mu"] * p["r"] * 100)),
    "break_away_coupling": Recipe(
        0.8, time_of("lets go"), lambda p: p["limit"] * (p["J1"] + p["J2"]) / (p["J2"] * p["slope"])
    ),
    "over_centre_spring": Recipe(0.03, lambda run: run.transitions[0].u_before[0], snap_speed),
    "ratchet_teeth": Recipe(
        1.5, time_of("a tooth passes", 2), lambda p: sqrt(2 * 3 * 2 * pi / p["teeth"] * p["J"] / 0.4)
    ),
    "cam_follower_jump": Recipe(
        0.1,
        time_of("opens"),
        lambda p: asin((p["g"] + p["F0"] / p["m"]) / (p["A"] * (p["w"] ** 2 - p["k"] / p["m"]))) / p["w"],
    ),
    "end_stops": Recipe(1.5, lambda run: run["x"][-1], end_position),
    "stack_of_boxes": Recipe(
        1.2,
        time_of("rests_1"),
        lambda p: p["g"] * (p["m1"] + p["m2"]) * (p["mu"] + p["mu_floor"]) / p["slope"],
    ),
    "brick_over_an_edge": Recipe(0.1, time_of("opens"), tipping_time),
    "gear_backlash": Recipe(0.05, lambda run: run.transitions[0].u_after[1], driven_speed),
}


def section(name):
    """Return the part of the page about a recipe."""
    return next(
        part for part in re.split(r"^## ", PAGE, flags=re.MULTILINE) if f'"docs/cookbook/{name}.yaml"\n' in part
    )


def test_every_file_has_a_recipe_a_section_and_a_picture():
    assert {path.stem for path in COOKBOOK.glob("*.yaml")} == set(RECIPES)
    for name in RECIPES:
        assert f"../pictures/cookbook/{name}.png" in section(name)
        assert (COOKBOOK.parent / "pictures" / "cookbook" / f"{name}.png").is_file()
        assert len((COOKBOOK / f"{name}.yaml").read_text(encoding="utf-8").splitlines()) <= 30


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_agrees_with_its_hand_calculation(name):
    recipe = RECIPES[name]
    graph = fsm_dyn.compile(COOKBOOK / f"{name}.yaml")
    begin = fsm_dyn.simulate(graph, until=recipe.until)
    values = Read(graph.values)
    by_hand = recipe.by_hand(values)
    assert recipe.measured(begin) == pytest.approx(by_hand, rel=TOLERANCE)
    assert f"**{by_hand:.4g} " in section(name), "the page states the value"
    assert values.names, "the calculation reads no parameter"
    for parameter in sorted(values.names):
        changed = {parameter: CHANGE * values[parameter]}
        expected = recipe.by_hand({**values, **changed})
        assert abs(expected / by_hand - 1) > SENSITIVE, f"{parameter} makes no difference"
        run = fsm_dyn.simulate(graph, until=recipe.until, parameters=changed)
        assert recipe.measured(run) == pytest.approx(expected, rel=TOLERANCE), parameter
