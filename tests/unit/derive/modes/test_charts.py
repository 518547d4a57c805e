"""Charts at right angles, the usual starts of models: a four-bar with every angle in {0, ±90°, 180°}."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fsm_dyn.derive.assembly import PrescribedValues
from fsm_dyn.derive.mode_programs import derive_mode

RIGHT_ANGLES = (0.0, np.pi / 2, -np.pi / 2, np.pi)
CONFIGURATIONS = list(itertools.product(RIGHT_ANGLES, repeat=3))
FLAT = 1e-9


@pytest.fixture(scope="module")
def graph(mode_graph, four_bar):
    """The four-bar at its initial configuration: all angles zero except for those required by the loop."""
    return mode_graph(four_bar)


def closed_at(graph, context, ends, q, drive=0.7):
    """The context of a closed loop at ``q``: F is the end of the third link."""
    c = context(graph, drive)
    names = graph.automaton.terms.layout.p
    c[names.index("gx")], c[names.index("gy")] = ends(q)
    return c


def is_flat(q):
    """All links in one line: the two rows depend on each other, and the mechanism may go either way."""
    return abs(np.sin(q[1])) < FLAT and abs(np.sin(q[2])) < FLAT


def moving(graph, q, c, speed=1.3):
    """A state with speeds on the rows, from the null space of A."""
    A = graph.automaton.terms.evaluate(0.0, [*q, 0, 0, 0], c)["A"]
    rank = np.linalg.matrix_rank(A, tol=1e-9)
    direction = np.linalg.svd(A)[2][rank]
    return np.array([*q, *(speed * direction)])


def solve_augmented(graph, x, c):
    """u' and the multipliers by NumPy from M, f, A, gamma."""
    terms = graph.automaton.terms.evaluate(0.0, x, c)
    A, m = terms["A"], len(terms["A"])
    left = np.block([[terms["M"], -A.T], [A, np.zeros((m, m))]])
    solution = np.linalg.solve(left, [*terms["f"], *-terms["gamma"]])
    return solution[:3], solution[3:]


@pytest.mark.parametrize("q", [q for q in CONFIGURATIONS if not is_flat(q)], ids=lambda q: str(np.round(np.degrees(q))))
def test_a_chart_chosen_there_works(graph, context, ends, q):
    c = closed_at(graph, context, ends, q)
    x = moving(graph, q, c)
    mode = graph.automaton.derive((), 0.0, x, c)
    assert mode.programs.redundant == ()
    found = mode.programs.full.evaluate(0.0, x, c)
    assert found["pivot"][0] > 0.05
    u_dot, forces = solve_augmented(graph, x, c)
    np.testing.assert_allclose(found["u"], x[3:], atol=1e-13)
    np.testing.assert_allclose(found["x_dot"][3:], u_dot, rtol=1e-11, atol=1e-11 * np.abs(u_dot).max())
    np.testing.assert_allclose(found["multipliers"], forces, rtol=1e-11, atol=1e-11 * np.abs(forces).max())


@pytest.mark.parametrize("q", [q for q in CONFIGURATIONS if is_flat(q)], ids=lambda q: str(np.round(np.degrees(q))))
def test_a_flat_linkage_has_a_redundant_row(graph, context, ends, q):
    """The choice of the dropped row does not matter there, and the numbers stay finite; elsewhere the pivot refuses."""
    c = closed_at(graph, context, ends, q)
    x = moving(graph, q, c)
    mode = graph.automaton.derive((), 0.0, x, c)
    assert len(mode.programs.redundant) == 1
    assert len(mode.programs.independent) == 2
    found = mode.programs.full.evaluate(0.0, x, c)
    assert all(np.isfinite(values).all() for values in found.values())
    np.testing.assert_allclose(found["u"], x[3:], atol=1e-12)
    assert found["pivot"][0] > 0.05
    x[1] += 1e-3
    assert mode.programs.full.evaluate(0.0, x, c)["pivot"][0] == 0.0


def test_a_naive_order_fails_at_many_of_them(graph, context, ends):
    """The rows and the last columns in the order of the file: a third of the configurations has a zero pivot.

    The pivot of the program shows it: a bad chart is noticed in every state.
    """
    automaton = graph.automaton
    order = [(0, 1), (1, 2)]
    failed = 0
    for q in CONFIGURATIONS:
        if is_flat(q):
            continue
        c = closed_at(graph, context, ends, q)
        x = moving(graph, q, c)
        naive = derive_mode(automaton.system, (), (), automaton.samples((), 0.0, x, c), order)
        assert naive.chart == tuple(order)
        with np.errstate(all="ignore"):
            found = naive.full.evaluate(0.0, x, c)
        right = np.allclose(found["x_dot"][3:], solve_augmented(graph, x, c)[0], rtol=1e-9, atol=1e-9)
        bad = not found["pivot"][0] > 1e-6
        assert right or bad
        failed += bad
    assert failed >= 12


def test_modes_as_users_have_them_change_the_chart_by_themselves(graph, context, ends):
    """``derivatives`` is right at every right angle, whatever chart the mode was compiled with."""
    for q in CONFIGURATIONS:
        if is_flat(q):
            continue
        c = closed_at(graph, context, ends, q)
        x = moving(graph, q, c)
        view = replace(graph, parameters=c[graph.automaton.terms.layout.p_slice]).modes["motion"]
        u_dot, forces = solve_augmented(graph, x, c)
        np.testing.assert_allclose(view.derivatives(0.0, x[:3], x[3:], [0.7])[1], u_dot, rtol=1e-9, atol=1e-9)
        found = np.concatenate(list(view.contact_forces(0.0, x[:3], x[3:], [0.7]).values()))
        np.testing.assert_allclose(found, forces, rtol=1e-9, atol=1e-9 * np.abs(forces).max())


def test_started_there_by_assembly(graph, context, ends):
    """Coordinates given at a right angle, the others solved from nearby: assembled, then a chart derived there."""
    automaton = graph.automaton
    for q in CONFIGURATIONS:
        if is_flat(q):
            continue
        c = closed_at(graph, context, ends, q)
        x = automaton.assemble((), PrescribedValues(dict(zip("abc", q, strict=True)), {"a_dot": 0.0}, 0.0, c))
        np.testing.assert_allclose(x[:3], q)
        assert np.abs(automaton.terms.evaluate(0.0, x, c)["residual"]).max() < 1e-14
