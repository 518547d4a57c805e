"""Implicit methods on a stiff model with an event, with and without a Jacobian kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.run.input_signals import assemble_inputs, steps
from fsm_dyn.runtime.abi import Status
from tests.unit.run import fakes

RATE = 1e4


@pytest.fixture(scope="module")
def follower() -> Any:
    """u follows cos(t) within 1e-4 s, so q = sin(t); a transition stops the run where q falls through 1/2."""
    return fakes.written(
        lambda t, q, u: -RATE * (u - np.cos(t)) - np.sin(t),
        [(lambda t, q, u: q - 0.5, lambda t, q, u: u)],
        stop=True,
    )


@pytest.mark.parametrize("method", ["radau", "bdf"])
def test_stiff_model_stops_where_it_should(follower: Any, method: str) -> None:
    raw = fakes.run_automaton(follower, [0.0, 1.0], [], 0, 0.0, 10.0, method=method, rtol=1e-8, atol=1e-10)
    assert raw.outcome.code == Status.STOPPED
    assert raw.t[-1] == pytest.approx(5 * np.pi / 6, abs=2e-6)
    assert raw.x[-1, 0] == pytest.approx(0.5, abs=1e-11)
    assert raw.steps < 400


def test_explicit_method_agrees_at_many_times_the_cost(follower: Any) -> None:
    raw = fakes.run_automaton(follower, [0.0, 1.0], [], 0, 0.0, 10.0, rtol=1e-8, atol=1e-10)
    assert raw.t[-1] == pytest.approx(5 * np.pi / 6, abs=1e-8)
    assert raw.steps > 5000


@pytest.mark.parametrize("method", ["radau", "bdf"])
def test_guard_between_the_ends_of_a_long_implicit_step(method: str) -> None:
    tables = fakes.written(
        lambda t, q, u: -RATE * u,
        [(lambda t, q, u: (t - 3.0) * (t - 3.01), lambda t, q, u: 2 * t - 6.01)],
    )
    raw = fakes.run_automaton(tables, [0.0, 0.0], [], 0, 0.0, 8.0, method=method, rtol=1e-6, atol=1e-9)
    assert raw.transitions.time == pytest.approx([3.0], abs=1e-10)
    assert raw.outcome.code == Status.DONE


def test_blowing_up_is_named() -> None:
    raw = fakes.run_automaton(fakes.written(lambda t, q, u: u * u, []), [0.0, 1.0], [], 0, 0.0, 2.0, method="radau")
    assert raw.outcome.code in (Status.STEP_TOO_SMALL, Status.NON_FINITE)
    assert raw.t[-1] == pytest.approx(1.0, abs=1e-3)


def test_steps_run_out() -> None:
    raw = fakes.run_automaton(
        fakes.written(lambda t, q, u: -q, []), [1.0, 0.0], [], 0, 0.0, 100.0, method="bdf", max_steps=20
    )
    assert raw.outcome.code == Status.TOO_MANY_STEPS


def test_input_steps_are_landed_on() -> None:
    @fakes.kernel
    def rhs(t, x, c, out):  # type: ignore[no-untyped-def]
        out[0] = x[1]
        out[1] = -RATE * (x[1] - c[0])

    @fakes.kernel
    def full(t, x, c, out):  # type: ignore[no-untyped-def]
        out[0] = x[1]
        out[1] = -RATE * (x[1] - c[0])
        out[2] = x[1]
        out[3] = 1.0

    tables = fakes.make_tables(1, 1, n_w=1, modes=[(rhs, full, [], [])])
    drive = assemble_inputs(["w"], 0, {"w": steps([[0.0, 1.0], [0.5, -1.0]])})
    raw = fakes.run_automaton(
        tables, [0.0, 1.0], [0.0] * 4, 0, 0.0, 1.0, method="radau", drive=drive, rtol=1e-8, atol=1e-10
    )
    assert np.count_nonzero(raw.t == 0.5) == 2
    assert raw.x[-1, 1] == pytest.approx(-1.0, abs=1e-8)
    assert raw.x[-1, 0] == pytest.approx(2.0 / RATE, abs=1e-7)


@pytest.mark.parametrize("method", ["radau", "bdf"])
def test_projection_leaves_the_order_of_the_solver(method):
    """A wheel that rolls is drawn back onto its row after every step; begun anew each time, bdf took 16,000 steps."""
    graph = fsm_dyn.compile("rimless_wheel")
    run = fsm_dyn.simulate(graph, 0.1, method=method, rtol=1e-9, atol=1e-11)
    assert len(run.t) <= 400
    assert run.energy.relative_residual <= 1e-6


def test_bdf_comes_to_rest_where_bounces_become_lower_and_lower():
    """The first order with which bdf begins after every stroke does not know bounces below its tolerance."""
    graph = fsm_dyn.compile("sliding_rod")
    flat = {"mode": "in_air", "q": 0.3, "y": 0.25, "w": 0.5}
    ends = []
    for method in ("radau", "bdf"):
        run = fsm_dyn.simulate(graph, 0.6, method=method, rtol=1e-9, atol=1e-11, initial=flat)
        assert run.outcome.name == "done"
        ends.append((run.modes[-1], *run.q[-1]))
    assert ends[0][0] == ends[1][0]
    np.testing.assert_allclose(ends[1][1:], ends[0][1:], atol=1e-5)
