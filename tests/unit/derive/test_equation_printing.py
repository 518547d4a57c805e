"""Programs as sympy and LaTeX."""

import numpy as np
import pytest
import sympy

from fsm_dyn.derive.kinematics import NO_DISTANCE
from fsm_dyn.derive.printing import read_equations, to_sympy
from fsm_dyn.programs.traversal import reachable

LOGIC = {
    "fsm_dyn": 1,
    "name": "logic",
    "parameters": {"k": 0.1},
    "coordinates": ["x", "y"],
    "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}},
    "bodies": {"ball": {"center": "P", "mass": 1}},
    "speeds": {"u": "rate(x)", "v": "rate(y)"},
    "inputs": {"w": None},
    "contacts": {"wall": {"gap": "x", "closes_if": "y > 0 and not v < w"}},
    "outputs": {
        "many": "where(x > y, min(x, 2), max(y, u)) + atan2(x, y)**2 + abs(u)*sign(v) + mod(x, 3) + floor(y)",
        "more": "sqrt(x + 9) + exp(y)*log(x + 9) + asin(x/9) + acos(y/9)",
        "rest": "atan(u) + tan(k) + sinh(x) - cosh(y)/tanh(u)",
    },
}


def test_with_and_without_intermediate_symbols(model):
    cart = model("shopping_cart")
    program = cart.terms.program(["q_dot", "M", "f", "kinetic_energy"])
    whole, parts = read_equations(program, expand_symbols=True), read_equations(program)
    assert not whole.definitions
    assert len(parts.definitions) > 5
    assert whole.counts == program.counts()
    state = cart.state()
    values = cart.values(state)
    expected = program.evaluate(*state)
    known = {}
    for symbol, value in parts.definitions:
        known[symbol] = value.subs(known).subs(values)
    for name in ("q_dot", "M", "f"):
        for equations, extra in ((whole, {}), (parts, known)):
            entries = np.array(equations.results[name].subs(extra).subs(values).tolist(), dtype=float)
            np.testing.assert_allclose(entries.reshape(expected[name].shape), expected[name], rtol=1e-12)


def test_every_operation_keeps_its_meaning(model):
    logic = model(LOGIC)
    program = logic.terms.program({**logic.terms.outputs, "closes": logic.terms.contacts[0].closes_if})
    equations = read_equations(program, expand_symbols=True)
    for _ in range(10):
        state = logic.state()
        out = program.evaluate(*state)
        for name, expression in equations.results.items():
            np.testing.assert_allclose(float(expression.subs(logic.values(state))), out[name], rtol=1e-12)


def test_rates_have_the_names_of_the_states(model):
    terms = model("shopping_cart").terms
    program = terms.program({"x_dot": [*terms.q_dot, *terms.f[:3]], "z": terms.kinetic_energy})
    equations = read_equations(program, expand_symbols=True)
    assert list(equations.rates) == ["q1", "q2", "q3", "q4", "u1", "u2", "u3"]
    assert str(equations.rates["q1"]) == "u1*cos(q3)"
    text = str(equations).splitlines()
    assert text[0] == "q1' = u1*cos(q3)"
    assert "products" in text[-1]
    assert equations.latex().splitlines()[1] == r"\dot{q_{1}} &= u_{1} \, \cos{(q_{3})} \\"
    assert r"m_{C}" in equations.latex()
    assert equations._repr_latex_().startswith("$$")


def test_names_in_latex(model):
    logic = model(LOGIC)
    graph = logic.terms.graph
    program = logic.terms.program({"y": graph.symbol("w.rate") + graph.symbol("wall.sigma") * graph.symbol("w.rate2")})
    latex = read_equations(program).latex()
    for name in (r"\dot{w}", r"\ddot{w}", r"\sigma_{\mathrm{wall}}"):
        assert name in latex


@pytest.mark.parametrize(
    "output", ["norm(pos(P))", "norm(pos(P))**2*k", "1/norm(x*N.x + v*N.y)", "norm(vel(P))/(x + y)"]
)
def test_roots_show_no_constant_that_keeps_them_differentiable(model, output):
    program = model({**LOGIC, "outputs": {"length": output}}).terms.outputs["length"]
    assert any(node.constant_value == NO_DISTANCE for node in reachable([program]))
    (shown,) = to_sympy([program])
    assert not [number for number in shown.atoms(sympy.Float) if abs(number) < 1e-50]
    assert "e-" not in str(shown)
