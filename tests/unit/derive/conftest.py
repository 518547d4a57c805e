"""An oracle independent of the package: Lagrange's equations by sympy, in coordinates only."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

from fsm_dyn.derive.derivation import derive
from fsm_dyn.language import loader
from fsm_dyn.language.model import Mechanism

MODELS = Path(__file__).parents[3] / "yaml_models"


def turn(axis, angle):
    """Matrix from the turned frame's components to the unturned one's."""
    c, s = sp.cos(angle), sp.sin(angle)
    return {
        "x": sp.Matrix([[1, 0, 0], [0, c, -s], [0, s, c]]),
        "y": sp.Matrix([[c, 0, s], [0, 1, 0], [-s, 0, c]]),
        "z": sp.Matrix([[c, -s, 0], [s, c, 0], [0, 0, 1]]),
    }[axis]


@dataclass
class Lagrange:
    """T and V of a system of bodies, and the generalized forces of loads, as functions of q and its rates."""

    q: list
    symbols: list = field(default_factory=list)  # parameters and inputs
    T: sp.Expr = sp.S.Zero
    V: sp.Expr = sp.S.Zero

    def __post_init__(self):
        self.qd = [sp.Symbol(f"{q.name}__rate") for q in self.q]
        self.Q = [sp.Integer(0)] * len(self.q)

    def rate(self, expression):
        return sum(
            (sp.diff(expression, q) * qd for q, qd in zip(self.q, self.qd, strict=True)), sp.zeros(*expression.shape)
        )

    def spin(self, R):
        """Angular velocity resolved in the body."""
        S = R.T * self.rate(R)
        return sp.Matrix([S[2, 1], S[0, 2], S[1, 0]])

    def body(self, mass, r, R=None, inertia=None):
        v = self.rate(r)
        self.T += mass * v.dot(v) / 2
        if R is not None:
            w = self.spin(R)
            self.T += (w.T * inertia * w)[0] / 2

    def force(self, F, r):
        v = self.rate(r)
        for i, qd in enumerate(self.qd):
            self.Q[i] += sp.diff(v, qd).dot(F)

    def torque(self, T_in_body, R):
        w = self.spin(R)
        for i, qd in enumerate(self.qd):
            self.Q[i] += sp.diff(w, qd).dot(T_in_body)

    def compiled(self):
        """Function of (q, qd, symbols) to M (n, n), h (n), V and Q (n): M q'' + h = Q - dV/dq."""
        T = self.T
        n = len(self.q)
        p = [sp.diff(T, qd) for qd in self.qd]
        M = sp.Matrix(n, n, lambda i, j: sp.diff(p[i], self.qd[j]))
        h = sp.Matrix(
            n,
            1,
            lambda i, _: (
                sum(sp.diff(p[i], q) * qd for q, qd in zip(self.q, self.qd, strict=True)) - sp.diff(T, self.q[i])
            ),
        )
        right = sp.Matrix(n, 1, lambda i, _: self.Q[i] - sp.diff(self.V, self.q[i]))
        return sp.lambdify([self.q, self.qd, self.symbols], [M, h, right, T, self.V], cse=True)


@pytest.fixture
def lagrange():
    return Lagrange


@pytest.fixture
def turned():
    return turn


class Model:
    """A mechanism with its terms and numbers for its symbols."""

    def __init__(self, mechanism, seed=1):
        self.mechanism = mechanism
        self.terms = derive(mechanism)
        self.layout = self.terms.layout
        self.random = np.random.default_rng(seed)

    def state(self):
        """Arbitrary t, x, c; Euler parameters of unit norm."""
        t = self.random.uniform(0.1, 1)
        x = self.random.uniform(-2, 2, self.layout.n_x)
        for start in self.terms.quaternions:
            x[start : start + 4] /= np.linalg.norm(x[start : start + 4])
        return t, x, self.random.uniform(0.5, 1.5, self.layout.n_c)

    def evaluate(self, outputs, state):
        return self.terms.program(outputs).evaluate(*state)

    def values(self, state):
        t, x, c = state
        return {"t": t, **dict(zip(self.layout.x, x, strict=True)), **dict(zip(self.layout.c, c, strict=True))}

    def accelerations(self, state):
        """Derivative of x without any constraint; kinematic speeds held at zero."""
        out = self.evaluate(["q_dot", "M", "f"], state)
        n_u = self.terms.n_u
        return np.concatenate([out["q_dot"], np.linalg.solve(out["M"][:n_u, :n_u], out["f"][:n_u])])


def load(source, **changes):
    """A shipped model by name or one given as a mapping; ``changes`` pass by the checks of the language."""
    mechanism = loader.load(MODELS / f"{source}.yaml") if isinstance(source, str) else loader.load(source)
    return replace(mechanism, **changes)


@pytest.fixture(name="load")
def load_fixture():
    return load


@pytest.fixture
def model():
    def build(source, **kwargs):
        return Model(source if isinstance(source, Mechanism) else load(source), **kwargs)

    return build


@pytest.fixture
def agrees():
    """Compare Kane's terms in speeds with Lagrange's in coordinates at random states.

    With q' = W u (square): W^T M_q W = M and W^T (Q - dV/dq - h - M_q W' u) = f, W' by the chain rule.
    """

    def check(model, oracle, angles=None, count=20, tolerance=1e-11):
        terms = model.terms
        function = oracle.compiled()
        directions = _rates_of_W(model)
        for _ in range(count):
            state = model.state()
            values = model.values(state)
            out = model.evaluate(["W", "X", "q_dot", "M", "f", "kinetic_energy", "potential_energy"], state)
            Wdot = directions(state)
            u = np.concatenate([state[1][model.layout.u_slice], np.zeros(terms.n_k)])
            W, qd = out["W"], out["W"] @ u
            np.testing.assert_allclose(out["q_dot"], qd, rtol=1e-12, atol=1e-12)
            Mq, h, right, T, V = function(
                [values[q.name] for q in oracle.q], qd, [values[s.name] for s in oracle.symbols]
            )
            M = W.T @ Mq @ W
            f = W.T @ (right.ravel() - h.ravel() - Mq @ (Wdot @ u))
            np.testing.assert_allclose(out["M"], M, rtol=tolerance, atol=tolerance * np.abs(M).max())
            np.testing.assert_allclose(out["f"], f, rtol=tolerance, atol=tolerance * np.abs(f).max())
            np.testing.assert_allclose(out["kinetic_energy"], T, rtol=tolerance)
            np.testing.assert_allclose(out["potential_energy"], V, rtol=tolerance, atol=1e-12)

    return check


def _rates_of_W(model):
    """W' along the motion, by sympy from the printed W."""
    from fsm_dyn.derive.printing import to_sympy

    terms = model.terms
    entries = to_sympy([node for row in terms.W for node in row])
    rates = to_sympy(list(terms.q_dot))
    q = [sp.Symbol(name) for name in terms.layout.q]
    derivative = [sum(sp.diff(entry, s) * rate for s, rate in zip(q, rates, strict=True)) for entry in entries]
    symbols = [sp.Symbol(name) for name in model.layout.arguments]
    function = sp.lambdify([symbols], derivative, cse=True)

    def evaluate(state):
        t, x, c = state
        return np.array(function([t, *x, *c]), dtype=float).reshape(terms.n_q, terms.n)

    return evaluate
