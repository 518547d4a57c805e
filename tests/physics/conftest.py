"""Compiled models, random states, and a second derivation that shares nothing with the package."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from fsm_dyn.automaton.compilation import compile as compile_model


@pytest.fixture(scope="session")
def mode_graph():
    """Return a function that compiles a shipped model or a mapping, without the user's cache."""

    def build(model, **parameters):
        return compile_model(model, parameters, cache=False)

    return build


class Lagrange:
    """Lagrange's equations with multipliers, in coordinates: ``M q'' + h = Q + C^T lambda``, ``C q'' + h_C = 0``.

    Parameters
    ----------
    q, rates : symbols of the coordinates and of their rates
    T, V : kinetic and potential energy
    power : power of the loads without a potential; its derivative by a rate is the generalized force
    rows : constraints, linear in the rates and zero when they hold
    symbols : parameters, inputs and whatever else is given as numbers
    """

    def __init__(self, q, rates, T, V, power, rows, symbols):
        q, rates = sp.Matrix(q), sp.Matrix(rates)
        p = sp.Matrix([T]).jacobian(rates)
        rows = sp.Matrix(rows)
        C = rows.jacobian(rates)
        drift = (rows.jacobian(q) * rates) if len(rows) else rows
        h = p.jacobian(q) * rates - sp.Matrix([T]).jacobian(q).T
        Q = sp.Matrix([power]).jacobian(rates).T - sp.Matrix([V]).jacobian(q).T
        self._function = sp.lambdify(
            [list(q), list(rates), list(symbols)], [p.jacobian(rates), h, Q, C, drift], cse=True
        )

    def terms(self, q, rates, values):
        """M, h, Q, C, h_C at a state."""
        M, h, Q, C, drift = self._function(q, rates, values)
        return M, h.ravel(), Q.ravel(), C, drift.ravel()

    def solve(self, q, rates, values, held):
        """Second derivatives of the coordinates, and the multipliers of the rows ``held``."""
        M, h, Q, C, drift = self.terms(q, rates, values)
        C, drift = C[held], drift[held]
        n, m = len(h), len(drift)
        left = np.block([[M, -C.T], [C, np.zeros((m, m))]])
        # one step of refinement, so that the oracle is not what limits the comparison
        right = np.concatenate([Q - h, -drift])
        solution = np.linalg.solve(left, right)
        solution += np.linalg.solve(left, right - left @ solution)
        return solution[:n], solution[n:]


@pytest.fixture(scope="session")
def lagrange():
    return Lagrange


class Errors:
    """The largest relative error of each compared quantity: ``max|a - b| / max|b|`` per state."""

    def __init__(self):
        self.worst = {}

    def compare(self, name, found, expected, scale=0.0):
        """Note the error of ``found``; ``scale`` is the size of the terms that ``expected`` is a sum of, if known."""
        found, expected = np.atleast_1d(found), np.atleast_1d(expected)
        assert found.shape == expected.shape
        size = max(float(np.abs(expected).max(initial=0.0)), float(scale), 1e-300)
        error = float(np.abs(found - expected).max(initial=0.0)) / size
        assert np.isfinite(error), f"{name}: {found} for {expected}"
        self.worst[name] = max(self.worst.get(name, 0.0), error)

    def check(self, limit):
        """Show the errors and hold them to ``limit``."""
        print({name: f"{error:.1e}" for name, error in self.worst.items()})  # noqa: T201 - shown by pytest -rP
        assert self.worst
        assert max(self.worst.values()) <= limit, self.worst


@pytest.fixture
def errors():
    return Errors()
