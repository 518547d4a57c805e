"""Matrices of a mode as numbers with names: against energies, finite differences and the mode's own accelerations."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.automaton.mode_view import NamedArray
from fsm_dyn.core.errors import InputError

MODELS = ["rolling_disk", "shopping_cart", "spherical_wrist", "felt_drop", "rolling_coin", "stick_slip_belt", "latch"]
STEP = 1e-6  # of coordinates: central differences are then good to 1e-9 of positions of the order of 1


@pytest.fixture(scope="module", params=MODELS)
def graph(request):
    return fsm_dyn.compile(request.param)


@pytest.fixture
def state(graph):
    """A state near the start with its context; no constraint need hold there."""
    layout = graph.automaton.terms.layout
    rng = np.random.default_rng(7)
    x, c = graph.start.x + 0.05 * rng.uniform(-1, 1, layout.n_x), np.zeros(layout.n_c)
    c[layout.p_slice] = graph.parameters
    return x[layout.q_slice], x[layout.u_slice], c


def test_mass_matrix_is_that_of_the_kinetic_energy(graph, state):
    q, u, c = state
    for mode in graph.modes.values():
        M = np.asarray(mode.mass_matrix(q))
        np.testing.assert_allclose(M, M.T, atol=1e-14 * np.abs(M).max())
        energy = [
            graph.automaton.report.evaluate(0.0, [*q, *(s * u)], c)["kinetic_energy"] for s in (1.0, -1.0, 0.0)
        ]  # the even part in u: with moving frames one part remains at u = 0, another is odd
        np.testing.assert_allclose(u @ M @ u, energy[0] + energy[1] - 2 * energy[2], rtol=1e-11)


def test_partial_velocities_by_central_differences(graph, state):
    q, u, c = state
    automaton = graph.automaton
    W = automaton.terms.evaluate(0.0, [*q, *u], c)["W"][:, : len(u)]
    mode = graph.modes[graph.initial]
    points, frames = mode.partial_velocities(q), mode.partial_angular_velocities(q)
    for s, speed in enumerate(automaton.terms.layout.u):
        ahead, behind = (
            automaton.geometry.evaluate(0.0, [*(q + sign * STEP * W[:, s]), *u], c) for sign in (1.0, -1.0)
        )
        moved = (ahead["points"] - behind["points"]) / (2 * STEP)
        np.testing.assert_allclose(np.asarray(points)[:, s], moved, atol=1e-8)
        for name, a, b in zip(automaton.frame_names, ahead["frames"], behind["frames"], strict=True):
            spin = (a - b) @ ((a + b) / 2).T / (2 * STEP)
            expected = [spin[2, 1], spin[0, 2], spin[1, 0]]
            np.testing.assert_allclose(np.asarray(frames[name, speed]), expected, atol=1e-7)


def test_equations_of_motion_hold_with_the_matrices(graph, state):
    """``M u̇ = f + G λ`` and ``A u̇ + γ = 0`` with the accelerations of the mode, at speeds on its rows."""
    q, u, _ = state
    for mode in graph.modes.values():
        directions = {name: 1.0 for name, s in mode.states.items() if s in ("slide", "slide_under")}
        values = mode._evaluate(0.0, q, u, None, directions)
        u, u_dot = values["u"], values["x_dot"][len(q) :]
        x, c = mode._arguments(q, u, None)
        c[graph.automaton.terms.layout.sigma_slice] = mode._directions(0.0, x, c, directions)
        matrices = mode.matrices.evaluate(0.0, x, c)
        f = np.asarray(mode.forcing(0.0, q, u, directions=directions))
        reactions = np.asarray(mode.mass_matrix(q)) @ u_dot - f
        scale = max(np.abs(f).max(), np.abs(reactions).max())
        # directions without rows have no reaction, and the rows hold
        np.testing.assert_allclose(matrices["S"].T @ reactions, 0.0, atol=1e-9 * scale)
        A = np.asarray(mode.constraint_matrix(q))
        assert A.shape == (len(mode.active_rows), len(u))
        np.testing.assert_allclose(A @ u_dot, -matrices["gamma"], atol=1e-8 * (1.0 + np.abs(u_dot).max()))
        np.testing.assert_allclose(A @ np.asarray(mode.orthogonal_complement(q)), 0.0, atol=1e-10)


def test_names():
    graph = fsm_dyn.compile("shopping_cart")
    q = graph.start.x[:4]
    M = graph.modes["rolling"].mass_matrix(q)
    assert M.names == (("u1", "u2", "u3"),) * 2
    assert M["u1", "u1"] == 20.8  # mB + mC
    assert M["u1"].names == (("u1", "u2", "u3"),)
    assert graph.modes["sticking"].active_rows == ("front_wheel", "caster_axis.friction")
    assert graph.modes["sticking"].partial_velocities(q)["P3", "u1"].names == (("x", "y", "z"),)
    assert str(graph.modes["rolling"].constraint_matrix(q)).splitlines()[0].split() == ["u1", "u2", "u3"]
    with pytest.raises(InputError, match="axis 1 has no 'u4'"):
        M["u1", "u4"]
    with pytest.raises(InputError, match="more names than axes"):
        M["u1", "u1", "u1"]
    with pytest.raises(InputError, match="wrong shape"):
        graph.modes["rolling"].mass_matrix(q[:3])
    with pytest.raises(ValueError, match="names for"):
        NamedArray(np.zeros((2, 2)), (("a", "b"), ("a",)))


def test_inputs_are_read():
    wall = fsm_dyn.compile("shopping_cart").modes["rolling"]
    q, u = np.zeros(4), np.zeros(3)
    pushed = wall.forcing(0.0, q, u, {"push": 3.0}, directions={"caster_axis": 1})
    assert pushed["u1"] == 3.0


@pytest.mark.parametrize(
    "name", ["gripper", "ball_in_corner", "box_on_table", "planetary_gear", "four_bar", "rolling_coin"]
)
def test_names_on_every_axis_are_different(name):
    graph = fsm_dyn.compile(name)
    q = graph.start.x[graph.automaton.terms.layout.q_slice]
    for mode in graph.modes.values():
        made = (mode.mass_matrix, mode.constraint_matrix, mode.orthogonal_complement, mode.partial_velocities,
                mode.partial_angular_velocities)  # fmt: skip
        for axis in [axis for make in made for axis in make(q).names] + [mode.redundant_rows]:
            assert len(set(axis)) == len(axis)
        assert set(mode.redundant_rows) <= set(mode.active_rows)


def test_a_negative_zero_is_printed_as_zero():
    text = str(NamedArray(np.array([[-0.0, 1.0], [0.0, -2.0]]), (("a", "b"), ("x", "y"))))
    assert text.split() == ["x", "y", "a", "0", "1", "b", "0", "-2"]
