"""Embedded modes against their definition: for every mode of every shipped model, at random states."""

import numpy as np
import pytest

from fsm_dyn.derive.embedding import ActiveSet, embed
from fsm_dyn.language import models
from fsm_dyn.programs.kernels import ObjectCache, compile_programs
from fsm_dyn.programs.program import Program

HELD, SLIDING = 1, 2
STATES = 20
GOOD = 0.05  # a smaller pivot magnifies rounding more than these comparisons allow for


@pytest.fixture(scope="module")
def graphs(mode_graph):
    return {name: mode_graph(name) for name in models.names()}


@pytest.fixture(scope="module")
def states(random_states, context):
    """Return a function from a graph to random x and c: speeds, inputs and slip directions too."""

    def draw(graph, count=STATES):
        layout = graph.automaton.terms.layout
        rng = np.random.default_rng(12)
        c = np.array(
            [
                context(
                    graph,
                    rng.uniform(-10, 10, len(layout.w)),
                    rng.choice([-1.0, 1.0], len(layout.contacts)),
                    rng.integers(0, 2, len(layout.memory)),
                )
                for _ in range(count)
            ]
        )
        near = count // 2  # rows that are redundant in positions of the mechanism alone have small pivots far away
        return np.concatenate([random_states(graph, count - near, 11, 1.5), random_states(graph, near, 13, 0.1)]), c

    return draw


def balances(found, size):
    """Whether sums vanish to rounding; ``size`` is the sum of the terms' magnitudes."""
    assert np.isfinite(found).all()
    assert (np.abs(found) <= 1e-11 * (size + 1e-3)).all(), np.abs(found) / size


@pytest.mark.parametrize("name", models.names())
def test_every_mode_satisfies_its_equations(graphs, states, name):
    """``M u' = f + sum A^T lambda`` in all equations, kinematic ones too; ``A u' + gamma = 0``; ``A u + b = 0``."""
    graph = graphs[name]
    automaton = graph.automaton
    layout = automaton.terms.layout
    n_q, n_u = len(layout.q), len(layout.u)
    drawn = states(graph)
    for mode in automaton.modes:
        active = ActiveSet.of(automaton.system, mode.states)
        checked = 0
        for x, c in zip(*drawn, strict=True):
            full = mode.programs.full.evaluate(0.0, x, c)
            if not full["pivot"][0] > GOOD:
                mode = automaton.derive(mode.states, 0.0, x, c)  # another chart, as a run would take
                full = mode.programs.full.evaluate(0.0, x, c)
            if not full["pivot"][0] > GOOD:
                continue
            checked += 1
            consistent = np.concatenate([x[:n_q], full["u"]])
            terms = automaton.terms.evaluate(0.0, consistent, c)
            M, A, u_dot = terms["M"][:, :n_u], terms["A"], full["x_dot"][n_q:]
            forces = full["multipliers"]
            balances(
                M @ u_dot - terms["f"] - A.T @ forces,
                np.abs(M) @ np.abs(u_dot) + np.abs(terms["f"]) + np.abs(A.T) @ np.abs(forces),
            )
            # rows found redundant at the initial state need not be so at a random one
            rows = [r for r in active.rows if r not in mode.programs.redundant]
            H = A[rows, :n_u]
            balances(H @ u_dot + terms["gamma"][rows], np.abs(H) @ np.abs(u_dot) + np.abs(terms["gamma"][rows]))
            balances(H @ full["u"] + terms["b"][rows], np.abs(H) @ np.abs(full["u"]) + np.abs(terms["b"][rows]))
            np.testing.assert_allclose(full["x_dot"][:n_q], terms["q_dot"], rtol=1e-12, atol=1e-12)
            independent = list(mode.programs.independent)
            assert (full["u"][independent] == x[n_q:][independent]).all()
            check_forces_of_contacts(automaton, mode, terms, forces, c, terms["A"][:, :n_u] @ full["u"] + terms["b"])
        assert checked >= STATES // 4


def check_forces_of_contacts(automaton, mode, terms, forces, c, speeds):
    """Open contacts exert nothing; sliding ones Coulomb friction against the slip; slipping ones their bound."""
    for i, (contact, code) in enumerate(zip(automaton.contacts, mode.states, strict=True)):
        sigma = c[automaton.terms.layout.sigma_slice][i]
        for row in (contact.normal_row, *contact.tangent_rows):
            if row >= 0 and code == 0:
                assert forces[row] == 0.0
        if code == SLIDING:
            bound = terms["kinetic"][i] * (1.0 if contact.kind == "dry_friction" else forces[contact.normal_row])
            way, slips = np.array([sigma]), speeds[list(contact.tangent_rows)]
            if contact.in_space:
                kept = np.array([np.cos(sigma), np.sin(sigma)])
                way = slips / np.linalg.norm(slips) if kept @ slips > 1e-9 else kept
            np.testing.assert_allclose(forces[list(contact.tangent_rows)], -way * bound, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", models.names())
def test_determinants(graphs, states, name):
    """``det(A M^-1 G) det M = det A_D det G_D det(S^T M T)``, for sliding contacts as well (docs/theory.md)."""
    graph = graphs[name]
    automaton = graph.automaton
    system = automaton.system
    n_u = len(system.layout.u)
    first, few = states(graph, 1), states(graph, 5)
    for mode in automaton.modes:
        if not mode.programs.chart or not mode.programs.independent:
            continue
        active = ActiveSet.of(system, mode.states)
        (x, *_), (c, *_) = first
        samples = automaton.samples(mode.states, 0.0, x, c)
        with system.graph.scratch():
            embedded = embed(system, active, samples, mode.programs.chart)
            mass = Program.from_nodes(system.layout, {"mass": embedded.reduced_mass})
        rows, dependent = (list(part) for part in zip(*embedded.chart, strict=True))
        for x, c in zip(*few, strict=True):
            terms = system.evaluate(0.0, x, c)
            M, A = terms["M"][:n_u, :n_u], terms["A"][rows, :n_u]
            G = A.T.copy()
            for row, contact in active.sliding:
                friction = terms["kinetic"][contact] * c[system.layout.sigma_slice][contact]
                G[:, rows.index(row)] -= friction * terms["A"][system.contacts[contact].tangent_row, :n_u]
            scale = 1 / np.sqrt(np.diag(M))  # keeps the determinants in range
            left = np.linalg.det(A @ np.linalg.solve(M, G)) * np.linalg.det(M * np.outer(scale, scale))
            S_M_T = mass.evaluate(0.0, x, c)["mass"]
            right = np.linalg.det(A[:, dependent] * scale[dependent]) * np.linalg.det(
                G[dependent] * scale[dependent][:, None]
            )
            right *= np.linalg.det(S_M_T * np.outer(*2 * (scale[list(embedded.independent)],)))
            assert left == pytest.approx(right, rel=1e-9)


@pytest.mark.parametrize("name", models.names())
def test_numpy_and_machine_code_agree(graphs, states, tmp_path, name):
    """The programs of every mode, one state at a time in machine code and all at once in NumPy, to 1e-12.

    Their sines may differ by a rounding.  The magnification of a rounding by a state is measured with NumPy itself, by
    a change of every argument by a few roundings, and added to the tolerance.
    """
    graph = graphs[name]
    modes = graph.automaton.modes
    kernels = compile_programs([mode.programs.full for mode in modes], ObjectCache(tmp_path))
    x, c = states(graph)
    change = 1 + 1e-15 * np.random.default_rng(13).choice([-1.0, 1.0], (8, 1, x.shape[1]))
    compared = 0
    for mode, kernel in zip(modes, kernels, strict=True):
        together = mode.programs.full.evaluate(0.3, x, c)
        changed = mode.programs.full.evaluate(0.3, x * change, c)
        for k in np.flatnonzero(together["pivot"][:, 0] > GOOD):
            compared += 1
            for output, values in kernel.outputs(0.3, x[k], c[k]).items():
                expected = together[output][k]
                size = np.abs(expected).max(initial=0.0)
                magnified = np.abs(changed[output][:, k] - expected).max(initial=0.0)
                assert np.abs(values - expected).max(initial=0.0) <= 1e-12 * size + magnified, output
    assert compared >= STATES // 4


def test_slipping_dry_friction_acts_against_the_slip(graphs, context):
    graph = graphs["shopping_cart"]
    mode = graph.automaton.modes[graph.automaton.find((SLIDING,))]
    x = np.array([0, 0, 0, 0.4, 0.5, 0.0, 0.0])
    row = graph.automaton.contacts[0].tangent_row
    for sigma in (1, -1):
        forces = mode.programs.full.evaluate(0.0, x, context(graph, sigma=sigma))["multipliers"]
        assert forces[row] == -sigma * 0.25


def test_a_given_chart_is_reproduced(graphs, context):
    """Any nonsingular choice of dependent speeds gives the same motion and forces."""
    graph = graphs["shopping_cart"]
    automaton = graph.automaton
    system = automaton.system
    active = ActiveSet.of(system, (HELD,))
    wheel, caster = active.rows
    x, c = np.array([0, 0, 0.2, 0.9, 0.5, 0, 0]), context(graph, 3.0)
    s4, c4 = np.sin(0.9), np.cos(0.9)
    L2, L3 = 0.70, 0.12
    x[5:] = s4 * x[4] / (L2 * c4 - L3)
    samples = automaton.samples((HELD,), 0.0, x, c)
    results = []
    for chart in (
        [(wheel, 1), (caster, 2)],
        [(wheel, 2), (caster, 1)],
        [(caster, 2), (wheel, 0)],
        [(wheel, 0), (caster, 1)],
    ):
        with system.graph.scratch():
            embedded = embed(system, active, samples, chart)
            assert embedded.chart == tuple(chart)
            assert set(embedded.independent) == {0, 1, 2} - {column for _, column in chart}
            names = {"u": embedded.speeds, "u_dot": embedded.accelerations, "forces": embedded.multipliers}
            results.append(Program.from_nodes(system.layout, names).evaluate(0.0, x, c))
    for name, expected in results[0].items():
        for other in results[1:]:
            np.testing.assert_allclose(other[name], expected, rtol=1e-12)
