"""Limit cycles against closed forms: rimless wheel, belt oscillator, a ball between walls."""

import numpy as np
import pytest

import fsm_dyn

WALLS = {
    "fsm_dyn": 1,
    "name": "walls",
    "parameters": {"m": 2, "c": 0.3, "a": 1.0, "e": 0.7},
    "coordinates": ["x"],
    "points": {"P": {"from": "O", "at": "x*N.x"}},
    "bodies": {"ball": {"center": "P", "mass": "m"}},
    "speeds": {"v": "rate(x)"},
    "contacts": {"left": {"gap": "x + a", "restitution": "e"}, "right": {"gap": "a - x", "restitution": "e"}},
    "loads": [{"force": "c*v*N.x", "at": "P"}],
    "initial": {"x": 0, "v": 1.0},
}


@pytest.fixture(scope="module")
def wheel():
    return fsm_dyn.compile("rimless_wheel")


@pytest.fixture(scope="module")
def walls():
    return fsm_dyn.compile(WALLS)


@pytest.mark.parametrize("section", ["next closes", "the next spoke takes over", "x rising"])
def test_rimless_wheel(wheel, section):
    """Steady speed, time of a step and multiplier cos²(2 alpha); tolerances ten times what the runs' rtol leaves."""
    cycle = fsm_dyn.limit_cycle(wheel, section)
    alpha, slope = np.pi / 8, 0.08
    after = np.sqrt(4 * 9.81 * np.sin(alpha) * np.sin(slope)) / np.tan(2 * alpha)
    np.testing.assert_allclose(after, 1.0954628396476571, rtol=1e-15)
    np.testing.assert_allclose(cycle.period, 1.034549811423279, rtol=1e-10)
    np.testing.assert_allclose(cycle.floquet_multipliers, [0.5], rtol=1e-9)
    assert cycle.stable
    if section != "x rising":
        spin = cycle.u[0] * cycle.q[1] - cycle.u[1] * cycle.q[0]
        np.testing.assert_allclose(spin, after, rtol=1e-10)
        assert cycle.mode == "rolling"


@pytest.mark.parametrize("spokes", [9, 12])
def test_rimless_wheel_of_other_spokes(wheel, spokes):
    slope = 0.15
    cycle = fsm_dyn.limit_cycle(wheel, "next closes", parameters={"n": spokes, "slope": slope}, initial={"vx": 2.0})
    alpha = np.pi / spokes
    np.testing.assert_allclose(cycle.floquet_multipliers, [np.cos(2 * alpha) ** 2], rtol=1e-8)
    after = np.sqrt(4 * 9.81 * np.sin(alpha) * np.sin(slope)) / np.tan(2 * alpha)
    np.testing.assert_allclose(np.hypot(*cycle.u), after, rtol=1e-9)


def test_rimless_wheel_runs_into_its_cycle(wheel):
    """The multiplier is what a run shows: deviations halve from step to step."""
    cycle = fsm_dyn.limit_cycle(wheel, "next closes")
    run = fsm_dyn.simulate(wheel, until=12.0)
    energy = np.array([0.5 * np.dot(x.u_after, x.u_after) for x in run.transitions]) - 0.5 * np.dot(cycle.u, cycle.u)
    np.testing.assert_allclose(energy[1:8] / energy[:7], 0.5, rtol=1e-4)


@pytest.mark.parametrize("section", ["belt sticks", "belt slides", "v falling"])
def test_belt_oscillator(section):
    graph = fsm_dyn.compile("stick_slip_belt")
    values = {"m": 1.0, "k": 1.0, "press": 1.0, "mu_s": 1.0, "mu_k": 0.5}
    cycle = fsm_dyn.limit_cycle(graph, section, parameters=values, inputs={"v_belt": 0.2}, initial={"x": -0.2})
    np.testing.assert_allclose(cycle.period, 8.902605407814523, rtol=1e-10)
    np.testing.assert_allclose(cycle.floquet_multipliers, 0.0, atol=1e-9)  # what sticks forgets where it came from
    assert len(cycle.floquet_multipliers) <= 1


def test_half_cycle_by_symmetry(walls):
    """Pushed by its own speed the ball gains 2 a c/m from wall to wall and keeps the part e at each."""
    speed = 0.7 * 0.3 / 2 * 2 / (1 - 0.7)
    half = np.log(1 / 0.7) / (0.3 / 2)
    whole = fsm_dyn.limit_cycle(walls, "left closes")
    np.testing.assert_allclose(whole.period, 2 * half, rtol=1e-10)
    np.testing.assert_allclose(whole.floquet_multipliers, [0.49], rtol=1e-9)
    step = fsm_dyn.limit_cycle(walls, "left closes", symmetry={"x": "-x", "v": "-v"})
    np.testing.assert_allclose(step.period, half, rtol=1e-10)
    np.testing.assert_allclose(step.floquet_multipliers, [0.7], rtol=1e-9)
    np.testing.assert_allclose(step.u, [speed], rtol=1e-10)
    crossing = fsm_dyn.limit_cycle(walls, "x falling", symmetry={"x": "-x", "v": "-v"})
    np.testing.assert_allclose(crossing.floquet_multipliers, [0.7], rtol=1e-9)


def test_advancing_coordinates_are_left_out_of_the_return():
    """A ball that bounces on a driven-less floor loses; with a gain above it keeps a height while it travels."""
    model = {
        **WALLS,
        "name": "skipping",
        "coordinates": ["x", "y"],
        "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}},
        "speeds": {"w": "rate(x)", "v": "rate(y)"},
        "contacts": {"left": {"gap": "y + a", "restitution": "e"}, "right": {"gap": "a - y", "restitution": "e"}},
        "loads": [{"force": "c*v*N.y + (1 - w)*N.x", "at": "P"}],
        "initial": {"x": 0, "v": 1.0, "w": 0.3},
    }
    graph = fsm_dyn.compile(model)
    cycle = fsm_dyn.limit_cycle(graph, "left closes", advancing=["x"])
    period = 2 * np.log(1 / 0.7) / (0.3 / 2)
    np.testing.assert_allclose(cycle.period, period, rtol=1e-10)
    np.testing.assert_allclose(cycle.floquet_multipliers, [0.49, np.exp(-period / 2)], rtol=1e-8)
    np.testing.assert_allclose(cycle.u[0], 1.0, rtol=1e-9)
    with pytest.raises(fsm_dyn.RunError, match="advancing"):
        fsm_dyn.limit_cycle(graph, "left closes", max_return_time=20)


def test_a_cycle_goes_round_again(walls):
    cycle = fsm_dyn.limit_cycle(walls, "left closes")
    run = fsm_dyn.simulate(walls, until=3.1 * cycle.period, initial=cycle.initial, rtol=1e-11, atol=1e-13)
    strikes = [x.time for x in run.transitions if x.cause.startswith("left")]
    np.testing.assert_allclose(np.array(strikes[-2:]) / cycle.period, [2, 3], rtol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"section": "left opens"}, "does not return to 'left opens' within 20 s"),
        ({"section": "up closes"}, "no contact 'up'"),
        ({"section": "left"}, "the section is not valid"),
        ({"section": "x + y falling"}, "y"),
        ({"section": "left closes", "advancing": ["y"]}, "no coordinate 'y'"),
        ({"section": "left closes", "symmetry": {"x": "-x"}}, "rates of the coordinates do not follow"),
        ({"section": "left closes", "symmetry": {"x": "z"}}, "unknown 'z'"),
        ({"section": "left closes", "guess": {"x": 0.0, "v": 0.0}}, "does not return"),
    ],
)
def test_says_what_is_wrong(walls, arguments, words):
    with pytest.raises(fsm_dyn.FsmDynError, match=words):
        fsm_dyn.limit_cycle(walls, max_return_time=20, **arguments)


def test_motions_that_depend_on_time_are_refused():
    with pytest.raises(fsm_dyn.InputError, match="depends on the time"):
        fsm_dyn.limit_cycle(fsm_dyn.compile("rolling_disk"), "ramp closes")
