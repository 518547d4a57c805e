"""Models compiled without the user's cache, and the numbers of their terms."""

import numpy as np
import pytest

from fsm_dyn.automaton.compilation import compile as compile_model
from tests.planar_models import THREE_LINKS


@pytest.fixture(scope="session")
def mode_graph():
    """Return a function to compile a shipped model or a mapping."""

    def build(model, **parameters):
        return compile_model(model, parameters, cache=False)

    return build


@pytest.fixture(scope="session")
def context():
    """Return a function from a graph, inputs, slip directions and memory to the kernels' argument c."""

    def build(graph, inputs=0.0, sigma=1.0, memory=0.0):
        layout = graph.automaton.terms.layout
        c = np.zeros(layout.n_c)
        c[layout.p_slice], c[layout.w_slice] = graph.parameters, inputs
        c[layout.sigma_slice], c[layout.memory_slice] = sigma, memory
        return c

    return build


FOUR_BAR = {
    **THREE_LINKS,
    "fsm_dyn": 1,
    "name": "four_bar",
    "parameters": {"l": [1.0, 2.0, 1.5], "m": [1.0, 1.5, 1.2], "gx": 1.8, "gy": 0.4, "g": 9.81},
    "points": {
        **THREE_LINKS["points"],
        "F": {"from": "O", "at": "gx*N.x + gy*N.y"},
        "GA": {"from": "O", "at": "0.5*l[0]*A.x"},
        "GB": {"from": "P", "at": "0.5*l[1]*B.x"},
        "GC": {"from": "Q", "at": "0.5*l[2]*C.x"},
    },
    "bodies": {
        "crank": {"frame": "A", "center": "GA", "mass": "m[0]", "inertia": {"zz": 0.1}},
        "coupler": {"frame": "B", "center": "GB", "mass": "m[1]", "inertia": {"zz": 0.4}},
        "rocker": {"frame": "C", "center": "GC", "mass": "m[2]", "inertia": {"zz": 0.2}},
    },
    "constraints": {
        "loop_x": {"position": "dot(pos(R, F), N.x)"},
        "loop_y": {"position": "dot(pos(R, F), N.y)"},
    },
    "inputs": {"drive": None},
    "loads": [{"gravity": "-g*N.y"}, {"torque": "drive*N.z", "on": "crank"}],
}


@pytest.fixture(scope="session")
def four_bar():
    """A crank, a coupler and a rocker with relative angles; the loop closes at F = (gx, gy)."""
    return FOUR_BAR


@pytest.fixture(scope="session")
def ends():
    """The end of the third link of the four-bar."""

    def end(q, lengths=(1.0, 2.0, 1.5)):
        angles = np.cumsum(q)
        return float(np.cos(angles) @ lengths), float(np.sin(angles) @ lengths)

    return end
