"""Jacobians of modes against central differences of the same programs."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.analysis.linearisation import mode_derivatives
from fsm_dyn.programs.kernels import compile_programs


@pytest.fixture(scope="module", params=["rolling_disk", "shopping_cart", "pendulum_with_stop"])
def graph(request):
    return fsm_dyn.compile(request.param)


def differences(function, x, step=1e-6):
    columns = []
    for j in range(len(x)):
        ahead, behind = x.copy(), x.copy()
        ahead[j] += step
        behind[j] -= step
        columns.append((function(ahead) - function(behind)) / (2 * step))
    return np.array(columns).T


def test_flow_guards_and_speeds(graph):
    layout = graph.automaton.terms.layout
    random = np.random.default_rng(5)
    x = random.uniform(0.2, 0.8, layout.n_x)
    c = np.zeros(layout.n_c)
    c[layout.p_slice] = graph.parameters
    c[layout.sigma_slice] = 1.0
    for mode in graph.automaton.modes:
        derivatives = mode_derivatives(mode.programs, layout.p)
        found = derivatives.flow.evaluate(0.3, x, c) | derivatives.ends.evaluate(0.3, x, c)
        full = mode.programs.full

        def of_state(at, name, full=full):
            return full.evaluate(0.3, at, c)[name]

        def of_parameters(at, name, full=full):
            return full.evaluate(0.3, x, np.concatenate([at, c[len(at) :]]))[name]

        for output, name in (("x_dot", ""), ("guards", "guards_"), ("u", "u_")):
            size = 1.0 + np.abs(full.evaluate(0.3, x, c)[output]).max(initial=0.0)
            by_state = differences(lambda at, o=output: of_state(at, o), x)
            np.testing.assert_allclose(found[f"{name}by_state"], by_state, atol=2e-7 * size, rtol=1e-6)
            by_parameters = differences(lambda at, o=output: of_parameters(at, o), graph.parameters)
            np.testing.assert_allclose(found[f"{name}by_parameters"], by_parameters, atol=2e-6 * size, rtol=1e-6)


def test_compiled_jacobian_is_the_same(graph):
    layout = graph.automaton.terms.layout
    x = np.random.default_rng(6).uniform(0.2, 0.8, layout.n_x)
    c = np.ones(layout.n_c)
    c[layout.p_slice] = graph.parameters
    programs = graph.automaton.modes[0].programs
    program = mode_derivatives(programs).flow
    values = compile_programs([program])[0](0.0, x, c)
    wanted = program.evaluate(0.0, x, c)
    np.testing.assert_allclose(values, np.concatenate([wanted[name].ravel() for name in program.outputs]), rtol=1e-12)
    found = wanted["by_state"]
    dependent = [i for i in range(len(layout.u)) if i not in programs.independent]
    assert (found[:, len(layout.q) :][:, dependent] == 0.0).all()
