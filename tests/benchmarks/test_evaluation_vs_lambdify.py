"""One evaluation of a mode against ``lambdify(cse=True)`` of M and f with ``numpy.linalg.solve``, in one run."""

import time

import numpy as np
import pytest
import sympy

import fsm_dyn
from fsm_dyn.derive.printing import read_equations
from fsm_dyn.programs.kernels import compile_programs
from tests.benchmarks.repeating import evaluate_all

pytestmark = pytest.mark.benchmark
STATES = 2000


@pytest.mark.parametrize("model", ["rolling_disk", "shopping_cart", "spherical_wrist"])
def test_kernel_against_lambdify(model):
    graph = fsm_dyn.compile(model)
    automaton = graph.automaton
    layout = automaton.terms.layout
    mode = automaton.modes[0]
    kernel = compile_programs([mode.programs.rhs])[0]
    read = read_equations(automaton.terms, ["M", "f", "A", "gamma"], expand_symbols=True)
    symbols = [sympy.Symbol(name) for name in layout.arguments]
    reference = sympy.lambdify(symbols, [read.results[name] for name in ("M", "f", "A", "gamma")], cse=True)

    random = np.random.default_rng(5)
    x = random.uniform(0.2, 1.0, (STATES, layout.n_x))
    c = np.zeros(layout.n_c)
    c[layout.p_slice] = graph.parameters
    c[layout.sigma_slice] = 1.0
    out = np.zeros((STATES, layout.n_x))
    rows = [i for i, row in enumerate(automaton.rows) if row.role in ("velocity", "kinematic")]

    def theirs():
        for state in x:
            M, f, A, gamma = reference(0.0, *state, *c)
            n, m = len(M), len(rows)
            if not m:
                np.linalg.solve(M, f[:, 0])
                continue
            K = np.zeros((n + m, n + m))
            K[:n, :n] = M
            K[:n, n:] = -A[rows].T
            K[n:, :n] = A[rows]
            np.linalg.solve(K, np.concatenate([f[:, 0], -gamma[rows, 0]]))

    evaluate_all(kernel.address, x[:2], c, out)
    ratios = []
    for _ in range(9):
        begin = time.perf_counter()
        evaluate_all(kernel.address, x, c, out)
        middle = time.perf_counter()
        theirs()
        ratios.append((time.perf_counter() - middle) / (middle - begin))
    found = float(np.median(ratios))
    assert found >= 50
