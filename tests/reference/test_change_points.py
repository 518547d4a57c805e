"""Linkages through change points and with a row too many, against motions worked out in other ways."""

import numpy as np
import pytest

import fsm_dyn
from tests.reference.bricard_by_quadrature import motion
from tests.reference.linkages import four_bar, four_bar_crank, parallelogram_angle, parallelograms


@pytest.fixture(scope="module")
def two_loops():
    return fsm_dyn.compile(parallelograms(2))


@pytest.fixture(scope="module")
def in_line():
    return fsm_dyn.compile(four_bar())


def residual(graph, run):
    return np.abs(graph.automaton.terms.evaluate(run.t, run.rows.x, run.rows.context)["residual"]).max()


# -- A02: all bars on one line, all x rows lost at once ----------------------------------------------------------


def in_step(n, graph, rtol, angle, energy):
    """Ten seconds of n loops, which line up ten times, against one pendulum."""
    run = fsm_dyn.simulate(graph, 10.0, rtol=rtol, atol=1e-2 * rtol)
    times = np.linspace(0.0, 10.0, 101)
    q = run.sample(times).q
    np.testing.assert_allclose(q[:, : n + 1].T, np.tile(parallelogram_angle(n, times), (n + 1, 1)), rtol=0, atol=angle)
    np.testing.assert_allclose(q[:, n + 1 :], 0.0, atol=1e-13)
    assert run.energy.relative_residual <= energy
    assert [item.lost for item in run.change_points] == 10 * [n]
    assert all(item.rank == 2 * n for item in run.change_points)
    return run


@pytest.mark.parametrize(("rtol", "angle", "energy"), [(1e-6, 2e-3, 1e-5), (1e-10, 6e-8, 1e-9), (1e-11, 2e-8, 1e-10)])
def test_two_parallelograms_stay_in_step(two_loops, rtol, angle, energy):
    run = in_step(2, two_loops, rtol, angle, energy)
    assert set(run.change_points[0].rows) == {"loop1_x", "loop2_x"}
    # where the pendulum is level
    exact = parallelogram_angle(2, [item.time for item in run.change_points])
    np.testing.assert_allclose(np.sin(exact), 0.0, atol=30 * rtol**0.4)


@pytest.mark.parametrize(
    ("number", "rtol"), [(15, 1e-11), *(pytest.param(40, rtol, marks=pytest.mark.long) for rtol in (1e-10, 1e-11))]
)
def test_many_parallelograms_pass_as_one_does(number, rtol):
    """Both errors are those of rounding at the passages, and differ from build to build: 1e-8 to 4e-8."""
    in_step(number, fsm_dyn.compile(parallelograms(number)), rtol, 6e-8, 1e-9)


def test_embedding_at_run_time_passes_change_points(two_loops):
    run = fsm_dyn.simulate(two_loops, 1.5, rtol=1e-10, atol=1e-12, strategy="online")
    np.testing.assert_allclose(run.q[-1, :3], parallelogram_angle(2, [1.5])[-1], atol=1e-8)
    assert len(run.change_points) == 2


# -- a four-bar whose shortest and longest bars are as long as the others together ------------------------------


@pytest.mark.parametrize(("rtol", "error"), [(1e-6, 3e-4), (1e-7, 3e-5), (1e-8, 3e-6), (1e-9, 3e-7), (1e-10, 3e-8)])
def test_a_four_bar_in_line_goes_on_as_its_velocity_does(in_line, rtol, error):
    run = fsm_dyn.simulate(in_line, 5.0, rtol=rtol, atol=1e-2 * rtol)
    times = np.linspace(0.0, 5.0, 51)
    wanted = four_bar_crank(times)
    wanted[:, 1:] = np.unwrap(wanted[:, 1:], axis=0)
    np.testing.assert_allclose(run.sample(times).q, wanted, rtol=0, atol=error)
    assert len(run.change_points) == 3
    assert residual(in_line, run) <= 1e-12


def test_the_error_at_the_smallest_tolerances_is_that_of_rounding(in_line):
    """One run comes out with 1e-9, the next with 2e-8: what rounding makes of three passages."""
    times = np.linspace(0.0, 5.0, 51)
    wanted = four_bar_crank(times)
    wanted[:, 1:] = np.unwrap(wanted[:, 1:], axis=0)
    errors = []
    for rtol in np.linspace(0.8e-11, 1.25e-11, 40):
        run = fsm_dyn.simulate(in_line, 5.0, rtol=rtol, atol=1e-2 * rtol)
        assert len(run.change_points) == 3
        errors.append(np.abs(run.sample(times).q - wanted).max())
    assert np.median(errors) <= 1.2e-8
    assert max(errors) <= 4e-8


@pytest.mark.parametrize(
    ("method", "error"), [({"method": "rk4", "step": 2e-3}, 1e-6), ({"method": "radau", "rtol": 1e-8}, 1e-4)]
)
def test_other_methods_pass_a_change_point(in_line, method, error):
    run = fsm_dyn.simulate(in_line, 2.0, **method)
    np.testing.assert_allclose(run.q[-1], four_bar_crank([2.0])[-1], rtol=0, atol=error)
    assert len(run.change_points) == 1


@pytest.mark.parametrize("rtol", [1e-6, 1e-8, 1e-10])
@pytest.mark.parametrize(("method", "factor"), [("radau", 3), ("bdf", 100)])
def test_implicit_methods_pass_change_points(two_loops, in_line, method, factor, rtol):
    """Two parallelograms from either side, and a four-bar whose speeds have other ratios than 1."""
    settings = {"method": method, "rtol": rtol, "atol": 1e-2 * rtol, "max_steps": 5000}
    for speed in (-3.0, 3.0):
        run = fsm_dyn.simulate(two_loops, 1.5, initial={"r0_dot": speed}, **settings)
        exact = parallelogram_angle(2, [0.0, 1.5], r0_dot=speed)[-1]
        np.testing.assert_allclose(run.q[-1, :3], exact, rtol=0, atol=factor * rtol * max(1.0, abs(exact)))
        assert len(run.change_points) == 2
    run = fsm_dyn.simulate(in_line, 2.0, **settings)
    np.testing.assert_allclose(run.q[-1], four_bar_crank([2.0])[-1], rtol=0, atol=factor * rtol * 8.0)
    assert len(run.change_points) == 1


# -- A04: a row that is always redundant ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rtol", "angle", "energy"), [(1e-6, 1e-4, 1e-5), (1e-8, 1e-6, 1e-7), (1e-10, 1e-8, 1e-9), (1e-11, 3e-9, 1e-10)]
)
def test_bricards_mechanism_runs_to_its_end(bricard_run, rtol, angle, energy):
    graph, (times, first, second) = bricard_run
    run = fsm_dyn.simulate(graph, 10.0, rtol=rtol, atol=1e-12)
    q = run.sample(times).q
    np.testing.assert_allclose(q[:, ::2].T, np.tile(first, (3, 1)), rtol=0, atol=angle)
    np.testing.assert_allclose(q[:, 1::2].T, np.tile(second, (2, 1)), rtol=0, atol=angle)
    assert run.energy.relative_residual <= energy
    assert residual(graph, run) <= 1e-11
    assert run.change_points == ()


@pytest.fixture(scope="module")
def bricard_run():
    from tests.reference.linkages import bricard

    graph = fsm_dyn.compile(bricard())
    rough = fsm_dyn.simulate(graph, 10.0, rtol=1e-6).q[:, 0]
    times = np.linspace(0.0, 10.0, 101)
    return graph, (times, *motion(times, rough.min() - 0.05, rough.max() + 0.05))
