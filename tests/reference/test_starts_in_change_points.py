"""Runs that start with a speed where all bars of their linkages lie on one line, against one pendulum."""

import numpy as np
import pytest

import fsm_dyn
from tests.reference.linkages import four_bar, parallelogram_angle, parallelograms

TOLERANCES = (1e-6, 1e-8, 1e-10)


def in_line(n, speed, angle=0.0, joining=0.0):
    """n loops whose bars lie on one line at the start, turning at ``speed`` (rad/s)."""
    rockers = {f"r{i}": angle for i in range(1, n + 1)} | {f"r{i}_dot": speed for i in range(1, n + 1)}
    bars = {f"c{i}": joining for i in range(1, n + 1)} | {f"c{i}_dot": 0.0 for i in range(1, n + 1)}
    return parallelograms(n, r0=angle, r0_dot=speed, **rockers, **bars)


def renumbered(model):
    """The same mechanism, its coordinates, bodies and constraints listed the other way round."""
    turned = {key: dict(reversed(model[key].items())) for key in ("bodies", "constraints")}
    return {**model, **turned, "coordinates": model["coordinates"][::-1]}


def run_of(model, rtol, until=1.0, **settings):
    return fsm_dyn.simulate(fsm_dyn.compile(model), until, rtol=rtol, atol=1e-2 * rtol, **settings)


def rockers(run):
    return np.stack([run.q[:, run.columns.index(name)] for name in run.columns if name in {"r0", "r1", "r2", "r3"}])


def accurate(run, n, rtol, speed, angle=0.0):
    """Whether all rockers turn as one pendulum does, with an error in proportion to the tolerance."""
    exact = parallelogram_angle(n, run.t, r0=angle, r0_dot=speed)
    size = max(1.0, np.abs(exact).max())  # tolerances are relative to it
    np.testing.assert_allclose(rockers(run), np.tile(exact, (n + 1, 1)), rtol=0, atol=3 * rtol * size)
    assert run.energy.relative_residual <= rtol * size
    assert all(np.isfinite(force).all() for force in run.multipliers.values())


@pytest.mark.parametrize("speed", [-3.0, 3.0])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_error_follows_the_tolerance(n, speed):
    graph = fsm_dyn.compile(in_line(n, speed))
    for rtol in TOLERANCES:
        run = fsm_dyn.simulate(graph, 1.0, rtol=rtol, atol=1e-2 * rtol)
        accurate(run, n, rtol, speed)
        assert len(run.change_points) == 1  # the next one; the run begins in one and does not pass it


@pytest.mark.parametrize("rtol", TOLERANCES)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_linkages_folded_to_the_other_side(n, rtol):
    accurate(run_of(in_line(n, 3.0, angle=np.pi), rtol), n, rtol, 3.0, np.pi)


@pytest.mark.parametrize("rtol", TOLERANCES)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_order_of_the_bars_does_not_matter(n, rtol):
    accurate(run_of(renumbered(in_line(n, -3.0)), rtol), n, rtol, -3.0)


@pytest.mark.parametrize("rtol", TOLERANCES)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_start_in_the_change_point_is_as_good_as_one_before_it(n, rtol):
    """Both runs have the same motion: the other one begins 0.05 s earlier and passes the change point."""
    speed, early = -3.0, 0.05
    # backwards in time the pendulum has the opposite speed
    times = np.array([0.0, early - 1e-5, early, early + 1e-5])
    back = parallelogram_angle(n, times, r0=0.0, r0_dot=-speed)
    before = in_line(n, (back[1] - back[3]) / 2e-5, angle=back[2])
    exact = parallelogram_angle(n, [0.0, 1.0], r0=0.0, r0_dot=speed)[-1]
    passing = run_of(before, rtol, 1.0 + early)
    starting = run_of(in_line(n, speed), rtol)
    assert len(passing.change_points) == 2
    assert len(starting.change_points) == 1
    np.testing.assert_allclose(rockers(passing)[:, -1], exact, rtol=0, atol=3 * rtol + 1e-8)  # the early state's error
    np.testing.assert_allclose(rockers(starting)[:, -1], exact, rtol=0, atol=3 * rtol)


@pytest.mark.parametrize("rtol", TOLERANCES)
def test_embedding_at_run_time(rtol):
    accurate(run_of(in_line(2, -3.0), rtol, strategy="online"), 2, rtol, -3.0)


def test_a_fixed_step():
    run = fsm_dyn.simulate(fsm_dyn.compile(in_line(2, -3.0)), 0.6, method="rk4", step=2e-3)
    accurate(run, 2, 1e-8, -3.0)


@pytest.mark.parametrize("strategy", ["compiled", "online"])
@pytest.mark.parametrize("speed", [-3.0, 3.0])
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("method", ["radau", "bdf"])
def test_implicit_methods(method, n, speed, strategy):
    """What several steps make of an error is larger with bdf, here as with a pendulum without a linkage."""
    strategies = {"compiled": {}, "online": {"strategy": "online"}}
    graph = fsm_dyn.compile(in_line(n, speed))
    exact = parallelogram_angle(n, [0.0, 1.2], r0=0.0, r0_dot=speed)[-1]
    for rtol in TOLERANCES:
        run = fsm_dyn.simulate(
            graph, 1.2, method=method, rtol=rtol, atol=1e-2 * rtol, max_steps=3000, **strategies[strategy]
        )
        factor = 3 if method == "radau" else 100
        np.testing.assert_allclose(rockers(run)[:, -1], exact, rtol=0, atol=factor * rtol * max(1.0, abs(exact)))
        assert run.energy.relative_residual <= factor * rtol
        assert len(run.change_points) == 1


def test_a_graph_compiled_elsewhere_starts_in_its_change_point():
    graph = fsm_dyn.compile(parallelograms(2))
    start = {name: value for name, value in in_line(2, -3.0)["initial"].items() if name != "guess"}
    run = fsm_dyn.simulate(graph, 1.0, rtol=1e-8, atol=1e-10, initial=start)
    np.testing.assert_allclose(run.q[-1, :3], parallelogram_angle(2, [0.0, 1.0], r0=0.0, r0_dot=-3.0)[-1], atol=3e-8)
    # the forces at the start are those of a chart without the rows that vanish, which the other graph has
    (mode,) = fsm_dyn.compile(in_line(2, -3.0)).automaton.modes
    there = mode.programs.full.evaluate(run.rows.t[:1], run.rows.x[:1], run.rows.context[:1])
    np.testing.assert_allclose(run.rows.multiplier_table[0], there["multipliers"][0], rtol=0, atol=1e-12)


def test_starts_repeat_to_the_last_bit():
    graph = fsm_dyn.compile(in_line(2, -3.0))
    one, two = (fsm_dyn.simulate(graph, 0.5, rtol=1e-8) for _ in range(2))
    assert one.rows.x.tobytes() == two.rows.x.tobytes()


@pytest.mark.parametrize("rtol", TOLERANCES)
def test_a_four_bar_starts_in_line(rtol):
    """Without gravity: its energy is kept, and the loop closed, on a branch whose ratios of speeds are not 1."""
    crank, (coupler, rocker) = 1.0, four_bar_ratios()
    model = four_bar()
    model["initial"] = {
        "q1": 0.0, "q2": 0.0, "q3": 0.0, "q1_dot": crank, "q2_dot": coupler * crank, "q3_dot": rocker * crank,
    }  # fmt: skip
    run = run_of(model, rtol)
    assert run.energy.relative_residual <= 30 * rtol
    graph = fsm_dyn.compile(model)
    fine = fsm_dyn.simulate(graph, 1.0, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(run.q[-1], fine.q[-1], rtol=0, atol=30 * rtol)


def four_bar_ratios(a=1.0, b=2.0, c=1.5):
    """Speeds of coupler and rocker per speed of the crank, all in line: a + b k2 = c k3, a + b k2^2 = c k3^2."""
    # k3 = (a + b k2) / c in the second: (b - b^2/c) k2^2 - 2 a b/c k2 + a - a^2/c = 0
    roots = np.roots([b - b * b / c, -2 * a * b / c, a - a * a / c])
    coupler = float(min(roots.real))
    return coupler, (a + b * coupler) / c
