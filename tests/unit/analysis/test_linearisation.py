"""Linearised modes against closed forms and against differences of the mode's own derivatives."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.analysis.linearisation import linearise
from fsm_dyn.derive.assembly import PrescribedValues


def test_pendulum_that_hangs():
    found = linearise(fsm_dyn.compile("pendulum_with_stop"), "swinging", at={"theta": 0.0})
    assert found.states == ("theta", "omega_b")
    np.testing.assert_allclose(found.A, [[0.0, 1.0], [-9.81 / 0.4, 0.0]], atol=1e-12)
    np.testing.assert_allclose(np.sort(found.eigenvalues.imag), [-np.sqrt(9.81 / 0.4), np.sqrt(9.81 / 0.4)])
    np.testing.assert_allclose(found.rates, 0.0, atol=1e-12)


def test_rows_leave_only_what_is_free():
    """A wheel on a spoke: one angle's worth of coordinate and one speed; upright it falls with sqrt(g cos s / l)."""
    found = linearise(fsm_dyn.compile("rimless_wheel"), "rolling", at={"x": 0.0, "y": 1.0, "vx": 0.0, "vy": 0.0})
    assert len(found.states) == 2
    np.testing.assert_allclose(np.sort(found.eigenvalues.real), np.array([-1, 1]) * np.sqrt(9.81 * np.cos(0.08)))


def test_nonholonomic_rows_and_inputs():
    graph = fsm_dyn.compile("shopping_cart")
    at = {"q3": 0.3, "q4": 0.2, "u1": 0.7}
    found = linearise(graph, "rolling", at=at, inputs={"push": 30.0, "turn": 0.0})
    mode = graph.modes["rolling"]
    names = graph.automaton.terms.layout
    run = fsm_dyn.simulate(graph, until=1e-6, initial={**at, "mode": "rolling"})
    q, u = run.q[0], run.u[0]

    states = next(known.states for known in graph.automaton.modes if known.name == "rolling")
    context = np.zeros(names.n_c)
    context[names.p_slice] = graph.parameters

    def rates(values, w):
        """Rates of the independent states; the dependent speeds follow from the rows, whatever the mode's chart."""
        given = PrescribedValues(
            {n: values[n] for n in names.q}, {n: values[n] for n in names.u if n in values}, 0.0, context
        )
        x = graph.automaton.assemble(states, given)
        directions = {"caster_axis": float(np.sign(u[2] - u[1]))}
        rate = np.concatenate(mode.derivatives(0.0, x[: len(q)], x[len(q) :], w, directions=directions))
        return np.array([rate[names.x.index(name)] for name in found.states])

    w0 = np.array([30.0, 0.0])
    here = {n: float(v) for n, v in zip(names.x, [*q, *u], strict=True) if n in names.q or n in found.states}
    for j, name in enumerate(found.states):
        ends = [rates({**here, name: here[name] + step}, w0) for step in (1e-6, -1e-6)]
        np.testing.assert_allclose(found.A[:, j], (ends[0] - ends[1]) / 2e-6, atol=1e-6)
    for j in range(2):
        step = np.eye(2)[j] * 1e-3
        np.testing.assert_allclose(found.B[:, j], (rates(here, w0 + step) - rates(here, w0 - step)) / 2e-3, atol=1e-8)


def test_unknown_mode():
    with pytest.raises(fsm_dyn.InputError, match="no mode 'swining'"):
        linearise(fsm_dyn.compile("pendulum_with_stop"), "swining")
