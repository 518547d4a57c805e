"""States at random for tests that run over all shipped models."""

import numpy as np
import pytest

from fsm_dyn.automaton.initial_values import initial_state
from fsm_dyn.language.values import units


def length_of(graph):
    """Return a length the model is made of: the geometric mean of its parameters in metres; 1 m if it has none."""
    kinds = units(graph.automaton.mechanism)
    values = dict(zip(graph.automaton.terms.layout.p, graph.parameters, strict=True))
    lengths = [abs(value) for name, value in values.items() if kinds.get(name) == "m" and value]
    return float(np.exp(np.mean(np.log(lengths)))) if lengths else 1.0


@pytest.fixture(scope="session")
def random_states():
    """Return a function from a graph, a count, a seed and a spread to states x about the start of the model.

    Angles are spread by as many radians, lengths by as many times `length_of` the model, speeds likewise by the
    second: a button of millimetres is not pressed by a metre, where its forces are those of no button.  Euler
    parameters are of unit norm.
    """

    def draw(graph, count, seed, spread):
        automaton = graph.automaton
        layout = automaton.terms.layout
        kinds = units(automaton.mechanism)
        length = length_of(graph)
        sizes = [length if kinds.get(name) in ("m", "m/s") else 1.0 for name in (*layout.q, *layout.u)]
        start = (graph.start or initial_state(automaton, graph.values, graph.parameters)).x
        rng = np.random.default_rng(seed)
        x = start + spread * np.array([*sizes]) * rng.uniform(-1.0, 1.0, (count, layout.n_x))
        for first in automaton.quaternions:
            x[:, first : first + 4] /= np.linalg.norm(x[:, first : first + 4], axis=1, keepdims=True)
        return x

    return draw
