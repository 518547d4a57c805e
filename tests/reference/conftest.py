"""Compiled models and states that satisfy their rows."""

import numpy as np
import pytest

from fsm_dyn.automaton.compilation import compile as compile_model
from fsm_dyn.derive.assembly import PrescribedValues


class Bench:
    """One mode of a shipped model, evaluated at states by name."""

    def __init__(self, name, **parameters):
        self.graph = compile_model(name, parameters, cache=False)
        (self.mode,) = self.graph.modes.values()
        self.layout = self.graph.automaton.terms.layout
        self.p = dict(zip(self.layout.p, self.graph.parameters, strict=True))
        self.context = np.zeros(self.layout.n_c)
        self.context[self.layout.p_slice] = self.graph.parameters

    def state(self, coordinates, speeds, guess=None):
        """q and u in which what is given is held and the rest satisfies the rows."""
        x = self.graph.automaton.assemble([], PrescribedValues(coordinates, speeds, 0.0, self.context, guess or {}))
        n = len(self.layout.q)
        return x[:n], x[n:]

    def rates(self, q, u, t=0.0):
        """The speeds' derivatives, by name."""
        return dict(zip(self.layout.u, self.mode.derivatives(t, q, u)[1], strict=True))

    def named(self, q):
        """Coordinates by name."""
        return dict(zip(self.layout.q, q, strict=True))


@pytest.fixture(scope="session")
def bench():
    """Return a function that compiles a shipped model with one mode."""
    return Bench
