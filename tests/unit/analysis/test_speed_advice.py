"""Advice on speeds: finds the paper's choice for the wrist, counts truly, changes nothing."""

import numpy as np
import pytest
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.analysis.method_counts import advise_speeds
from fsm_dyn.cli.console import app
from fsm_dyn.language.memory import with_speeds


def test_the_wrist_is_advised_what_the_paper_chooses():
    """Gillespie (2003), Example 2: along the body's axes instead of rates; Table 3 compares the same two."""
    advice = advise_speeds("spherical_wrist_rates")
    assert advice.best.speeds == {f"u{k}": f"dot(omega(C), C.{axis})" for k, axis in enumerate("xyz", start=1)}
    own, best = advice.choices[0], advice.best
    assert own.together == fsm_dyn.compile("spherical_wrist_rates").modes["motion"].counts
    assert best.together == fsm_dyn.compile("spherical_wrist").modes["motion"].counts
    assert best.together.total < 0.5 * own.together.total
    assert best.strongest < 1e-9 < 0.99 < own.strongest
    assert "no two speeds are coupled: the mass matrix is diagonal" in str(advice)
    assert own.reason.startswith("u1 and u3 are coupled up to 1.00")
    assert [c.together.total for c in advice.choices[1:]] == sorted(c.together.total for c in advice.choices[1:])


def test_absolute_speeds_of_a_pendulum_leave_no_products():
    """Of a chain the angular velocities against N are shorter than the rates of its joints: only squares are left."""
    advice = advise_speeds("double_pendulum_with_stop")
    own, best = advice.choices[0], advice.best
    assert best.speeds == {"u1": "dot(omega(A), A.z)", "u2": "dot(omega(B), B.z)"}
    assert (own.products, best.products) == ({("w1", "w2"): True}, {("u1", "u2"): False})
    assert best.together.total <= 46 < own.together.total
    assert "no product of two speeds occurs" in best.reason
    assert "products of speeds: w1 w2" in own.reason
    assert "Mitiguy and Kane" in str(advice)


def test_a_good_choice_is_left_as_it_is():
    advice = advise_speeds("shopping_cart")
    assert advice.best is advice.choices[0]
    assert str(advice).endswith("no shorter choice was found than the model's own")


@pytest.mark.parametrize("model", ["shopping_cart", "rolling_coin", "planar_three_body"])
def test_other_speeds_describe_the_same_mechanism(model):
    """Mass matrices are congruent by the change of speeds, ``W u = W' u'``, and rows with old speeds stay equal."""
    mechanism = fsm_dyn.load(model)
    own = fsm_dyn.compile(mechanism)
    q, layout = own.start.x[own.automaton.terms.layout.q_slice], own.automaton.terms.layout
    q = q + 0.1 * np.random.default_rng(4).uniform(-1, 1, len(q)) * (0 if own.automaton.quaternions else 1)
    for choice in advise_speeds(mechanism).choices[1:3]:
        other = fsm_dyn.compile(with_speeds(mechanism, choice.speeds), cache=False)
        x = np.array([*q, *np.zeros(len(layout.u))])
        W, W_other = (graph.automaton.terms.evaluate(0.0, x, _context(graph))["W"] for graph in (own, other))
        n = len(layout.u)
        change = np.linalg.lstsq(W_other[:, :n], W[:, :n], rcond=None)[0]
        M = np.asarray(other.modes[own.initial].mass_matrix(q))
        expected = np.asarray(own.modes[own.initial].mass_matrix(q))
        np.testing.assert_allclose(change.T @ M @ change, expected, atol=1e-10 * np.abs(expected).max())
        A = np.asarray(other.modes[own.initial].constraint_matrix(q)) @ change
        np.testing.assert_allclose(A, np.asarray(own.modes[own.initial].constraint_matrix(q)), atol=1e-10)


def _context(graph):
    c = np.zeros(graph.automaton.terms.layout.n_c)
    c[graph.automaton.terms.layout.p_slice] = graph.parameters
    return c


def test_the_command_line_prints_definitions():
    printed = CliRunner().invoke(app, ["equations", "spherical_wrist_rates", "--advise"])
    assert printed.exit_code == 0
    assert '  u1: "dot(omega(C), C.x)"' in printed.stdout
