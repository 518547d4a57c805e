"""All shipped models with shapes move the same way in the mirror and with shapes and corners in another order."""

import numpy as np
import pytest

import fsm_dyn
from tests.physics.transformations import MODELS, mapping, mirrored, renumbered, swapped

# how long, and what is moved by a hair; what starts at rest in its equilibrium is given a hair of its parameter instead
RUNS = {
    "billiard_ball": (0.4, "z"),
    "cart_on_ramp": (1.2, "x"),
    "escapement_anchor": (0.5, "p"),
    "escapement_deadbeat": (0.5, "p"),
    "geneva_drive": (0.4, "s"),
    "gripper": (0.8, "z"),
    "latch_door": (0.6, "b"),
    "piano_action": (0.12, "g"),
    "piano_action_simple": (0.12, "g"),
    "seat_belt_reel": (0.5, "x"),
    "tray": (0.5, "x1"),
}
HAIR = 1e-12
LONG = {"piano_action", "escapement_deadbeat"}  # the others of their kind are here every time
WAYS = {"mirrored": mirrored, "in another order": lambda model: renumbered(swapped(model))}


def positions(run, times):
    assert not run.outcome.failed, run.outcome
    return run.sample(times).q


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=[pytest.mark.long] if name in LONG else []) for name in RUNS]
)
def plain(request):
    """Name, mapping, run, and how far a motion that begins a hair beside it is from it after a while."""
    name = request.param
    until, moved = RUNS[name]
    graph = fsm_dyn.compile(mapping(name))
    run = fsm_dyn.simulate(graph, until, rtol=1e-9, atol=1e-12)
    times = np.linspace(0.0, until, 201)
    if moved in run.model.layout.q:
        start = {"initial": {moved: run.q[0][list(run.model.layout.q).index(moved)] + HAIR}}
    else:
        start = {"parameters": {moved: 9.81 * (1 + HAIR)}}
    twin = fsm_dyn.simulate(graph, until, rtol=1e-9, atol=1e-12, **start)
    apart = np.maximum.accumulate(np.abs(positions(twin, times) - positions(run, times)).max(axis=1))
    return name, run, times, apart


def test_a_hair_stays_a_hair(plain):
    """So that the comparisons mean something: until its end a motion is the one it began as."""
    assert plain[3].max() <= 1e-7, plain[0]


@pytest.mark.parametrize("way", WAYS)
def test_a_model_moves_as_its_image(plain, way):
    name, run, times, apart = plain
    if name == "billiard_ball" and way == "mirrored":
        return  # it is no plane model: a mirror in space turns its angles another way
    twin = fsm_dyn.simulate(fsm_dyn.compile(WAYS[way](mapping(name))), times[-1], rtol=1e-9, atol=1e-12)
    away = np.abs(positions(twin, times) - positions(run, times)).max(axis=1)
    assert (away <= 1e-9 + 100 * apart).all(), (away.max(), apart.max())
    assert len(twin.transitions) == len(run.transitions)


def test_none_is_missing():
    shown = {
        "bevel_gears",
        "compass_gait",
        "magnetic_latch",
        "rattleback",
        "rolling_coin",
        "rolling_disk",
        "sliding_rod",
    }
    others = {"gripper_finger", *shown}  # a component, and shapes that are only shown
    assert {path.stem for path in MODELS.glob("*.yaml") if "\nshapes:" in path.read_text()} == {*RUNS, *others}
