"""Shares of redundant contacts against closed forms and against scipy's solvers, which go other ways.

SLSQP minimises the norm under the laws from many starts; whether any shares are admissible at all is asked of a linear
program in the plane.
"""

from __future__ import annotations

import csv

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

import fsm_dyn
from fsm_dyn.live.tick import TickColumns
from fsm_dyn.page.scene_drawing import RowEvaluator
from fsm_dyn.run.explanation import explain
from fsm_dyn.run.samples import KEPT, Samples, ShareLaw, reported_forces, smallest_admissible

G = 9.81


def block(feet, mu, **more):
    """A block on feet at the given places (m) on level ground, pushed at the height of its centre."""
    points = {f"P{i}": {"from": "C", "at": f"{place}*B.x - 0.15*B.y"} for i, place in enumerate(feet)}
    return {
        "fsm_dyn": 1,
        "name": "block",
        "parameters": {"m": 2.0, "J": 0.05, "g": G, "mu": mu},
        "coordinates": ["x", "y", "q"],
        "frames": {"B": {"parent": "N", "rotate": {"z": "q"}}},
        "points": {"C": {"from": "O", "at": "x*N.x + (y + 0.15)*N.y"}, **points},
        "bodies": {"block": {"frame": "B", "center": "C", "mass": "m", "inertia": {"zz": "J"}}},
        "inputs": ["push"],
        "contacts": {
            f"c{i}": {"gap": f"dot(pos(P{i}), N.y)", "slip": f"dot(vel(P{i}), N.x)", "friction": "mu"}
            for i in range(len(feet))
        },
        "loads": [{"gravity": "-g*N.y"}, {"force": "push*N.x", "at": "C"}],
        **more,
    }


@pytest.mark.parametrize(("pull", "counts"), [(1e-8, False), (1e-5, True)])
def test_forces_of_a_flight_are_judged_against_the_loads(pull, counts):
    """Bodies that fly together press each other with next to nothing: against the weight that is no force at all."""
    graph = fsm_dyn.compile(block([-0.1, 0.1], 0.3))
    automaton = graph.automaton
    run = fsm_dyn.simulate(graph, 0.0)
    x, c = run.record.x[-1:], run.rows.context[-1:]
    forces = np.zeros((1, len(automaton.rows)))
    forces[0, [contact.normal_row for contact in automaton.contacts]] = -pull

    def terms(which, only):
        return automaton.terms.evaluate(np.zeros(len(which)), x[which], c[which], only)

    found, admissible = reported_forces(automaton.terms.layout, automaton.contacts, (1, 1), terms, x, c, forces)
    assert admissible.all() != counts
    np.testing.assert_array_equal(found, forces)


def test_two_feet_share_a_push_equally_until_the_lighter_one_is_at_its_limit():
    """In closed form: the moment of the push at 0.15 m unloads the rear foot, whose friction is then mu times that."""
    mu, a = 0.4, 0.2
    run = fsm_dyn.simulate(
        fsm_dyn.compile(block([-a / 2, a / 2], mu)), 1.0, inputs={"push": {"linear": [[0.0, 0.0], [1.0, 7.8]]}}
    )
    assert set(run.modes) == {"c0_stick+c1_stick"}
    at = run.sample(np.linspace(0.0, 1.0, 101))
    push = 7.8 * at.t
    rear, front = 0.5 * 2.0 * G - push * 0.15 / a, 0.5 * 2.0 * G + push * 0.15 / a
    equal = 0.5 * push <= mu * rear
    assert 20 < equal.sum() < 80
    expected = np.where(equal, 0.5 * push, mu * rear)
    np.testing.assert_allclose(at.multipliers["c0"], np.stack([rear, -expected], axis=1), atol=2e-7)
    np.testing.assert_allclose(at.multipliers["c1"], np.stack([front, expected - push], axis=1), atol=2e-7)
    assert at.admissible.all()


@pytest.mark.parametrize("count", [3, 4, 5])
def test_feet_on_one_line_push_and_never_pull(count):
    """Near tipping the least norm of three feet and more pulls at the rear; what is reported has the same effect."""
    feet = np.linspace(-0.1, 0.1, count)
    run = fsm_dyn.simulate(
        fsm_dyn.compile(block([f"({x!r})" for x in feet.tolist()], 5.0)),
        1.0,
        inputs={"push": {"linear": [[0, 0], [1.0, 13.0]]}},
    )
    at = run.sample(np.linspace(0.0, 1.0, 41))
    assert len(set(at.modes)) == 1
    assert at.admissible.all()
    normal = np.stack([at.multipliers[f"c{i}"][:, 0] for i in range(count)], axis=1)
    friction = np.stack([at.multipliers[f"c{i}"][:, 1] for i in range(count)], axis=1)
    assert normal.min() >= -1e-7
    np.testing.assert_allclose(normal.sum(axis=1), 2.0 * G, rtol=1e-9)
    np.testing.assert_allclose(normal @ feet, 0.15 * 13.0 * at.t, atol=1e-7)
    np.testing.assert_allclose(friction.sum(axis=1), -13.0 * at.t, atol=1e-7)
    for i in (10, 25, 40):
        effect = np.array([2.0 * G, 0.15 * 13.0 * at.t[i], -13.0 * at.t[i]])

        def missed(z, effect=effect):
            return np.array([z[:count].sum(), z[:count] @ feet, z[count:].sum()]) - effect

        start = np.concatenate([np.full(count, 2.0 * G / count), np.full(count, effect[2] / count)])
        least = minimize(
            lambda z: z @ z, start, method="SLSQP", bounds=[(0.0, None)] * count + [(None, None)] * count,
            constraints=[
                {"type": "eq", "fun": missed},
                {"type": "ineq", "fun": lambda z: 5.0 * z[:count] - z[count:]},
                {"type": "ineq", "fun": lambda z: 5.0 * z[:count] + z[count:]},
            ],
            options={"ftol": 1e-14, "maxiter": 500},
        )  # fmt: skip
        assert np.abs(missed(least.x)).max() < 1e-5
        np.testing.assert_allclose(normal[i], least.x[:count], atol=2e-4)
        np.testing.assert_allclose(friction[i], least.x[count:], atol=2e-4)


def random_laws(random, count, spatial):
    """Contacts with a normal row and one or two tangent rows each, some of them frictionless."""
    rows = 3 if spatial else 2
    laws = []
    for k in range(count):
        normal = np.zeros((1, rows * count))
        normal[0, rows * k] = 1.0
        laws.append(ShareLaw(normal, np.zeros(1)))
        laws.append(
            ShareLaw(random.uniform(0.1, 1.0) * normal, np.zeros(1), tuple(range(rows * k + 1, rows * k + rows)))
        )
    return laws


def margins(laws, forces):
    return np.array([law.margin(forces[None])[0] for law in laws])


def admissible_somewhere(laws, forces, free):
    """Whether some shares satisfy all contact laws of a plane problem: a linear program for the widest margin."""
    G_, h = [], []
    for law in laws:
        for sign in (-1.0, 1.0) if law.tangents else (0.0,):
            row = law.normal[0].copy()
            if law.tangents:
                row[law.tangents[0]] += sign
            G_.append(row)
            h.append(0.0)
    G_ = np.array(G_)
    columns = np.hstack([-(G_ @ free), np.ones((len(G_), 1))])
    found = linprog(
        np.append(np.zeros(free.shape[1]), -1.0), A_ub=columns, b_ub=G_ @ forces,
        bounds=[(None, None)] * free.shape[1] + [(None, 1.0)],
    )  # fmt: skip
    return found.x[-1]


@pytest.mark.parametrize("spatial", [False, True])
@pytest.mark.parametrize("seed", range(16))
def test_random_contacts_get_the_smallest_admissible_shares(seed, spatial):
    random = np.random.default_rng([seed, spatial])
    count = int(random.integers(2, 7))
    laws = random_laws(random, count, spatial)
    n = laws[0].normal.shape[1]
    k = int(random.integers(1, n - 1))
    free = np.linalg.qr(random.normal(size=(n, k)))[0]
    forces = random.normal(size=n)
    if seed % 2:  # a right side that some admissible forces have
        rows = n // count
        inside = np.concatenate(
            [[p, *(random.uniform(-0.05, 0.05, rows - 1) * p)] for p in random.uniform(0, 1, count)]
        )
        forces = inside + free @ random.normal(size=k)
    forces /= np.abs(forces).max()
    found = smallest_admissible(forces, free, laws, 1.0)
    if not spatial:
        widest = admissible_somewhere(laws, forces, free)
        assert (found is not None) == (widest >= -1e-9) or abs(widest) < 1e-7
    if found is None:
        assert seed % 2 == 0
        return
    away = found - forces
    np.testing.assert_allclose(away, free @ (free.T @ away), atol=1e-9)  # the effect is the same
    assert margins(laws, found).min() >= -1e-8
    best = np.inf
    for _ in range(2):
        guess = found if best == np.inf else forces + free @ random.normal(size=k)
        other = minimize(
            lambda s: (forces + free @ s) @ (forces + free @ s), free.T @ (guess - forces), method="SLSQP",
            constraints={"type": "ineq", "fun": lambda s: margins(laws, forces + free @ s)},
            options={"ftol": 1e-13, "maxiter": 300},
        )  # fmt: skip
        if margins(laws, forces + free @ other.x).min() >= -1e-8:
            best = min(best, float(other.fun))
    assert found @ found <= best + 1e-6


def test_shares_that_satisfy_every_contact_law_are_left_as_they_are():
    free = np.array([[1.0, -1.0, 0.0, 0.0]]).T / np.sqrt(2.0)
    laws = [ShareLaw(np.eye(4)[i : i + 1], np.zeros(1)) for i in range(4)]
    forces = np.array([0.5, 0.5, 0.2, 1.0])
    np.testing.assert_array_equal(smallest_admissible(forces, free, laws, 3.0), forces)


def test_no_shares_are_found_where_there_are_none():
    """Two normal forces whose sum pulls."""
    free = np.array([[1.0, -1.0]]).T / np.sqrt(2.0)
    laws = [ShareLaw(np.eye(2)[i : i + 1], np.zeros(1)) for i in range(2)]
    assert smallest_admissible(np.array([-1.0, 0.5]), free, laws, 1.0) is None
    barely = smallest_admissible(np.array([-1.0, 1.0]), free, laws, 1.0)
    assert barely is not None
    assert np.abs(barely).max() <= 2.0 * KEPT


@pytest.fixture(scope="module")
def pushed():
    """A block on two feet, pushed with 7.5 N: the rear foot bears 4.185 N, and half of the push is beyond its cone."""
    graph = fsm_dyn.compile(block([-0.1, 0.1], 0.4))
    return graph, fsm_dyn.simulate(graph, 1.0, inputs={"push": {"linear": [[0.0, 0.0], [1.0, 7.5]]}})


REAR = 0.5 * 2.0 * G - 7.5 * 0.15 / 0.2
EXPECTED = [REAR, -0.4 * REAR, 2.0 * G - REAR, 0.4 * REAR - 7.5]


def test_tables_files_and_explanations_give_the_same_shares(pushed, tmp_path):
    _, run = pushed
    np.testing.assert_allclose(np.concatenate([run.multipliers[c][-1] for c in ("c0", "c1")]), EXPECTED, atol=1e-7)
    with run.to_csv(tmp_path / "run.csv").open(encoding="utf-8", newline="") as file:
        last = {heading.partition(" [")[0]: value for heading, value in list(csv.DictReader(file))[-1].items()}
    columns = ["lambda.c0.normal", "lambda.c0.tangent", "lambda.c1.normal", "lambda.c1.tangent"]
    np.testing.assert_allclose([float(last[column]) for column in columns], EXPECTED, atol=1e-7)
    found = run.explain(1.0)
    np.testing.assert_allclose([x for c in found.contacts for x in (c.normal, c.friction)], EXPECTED, atol=1e-7)
    assert all(c.indeterminate and c.admissible and abs(c.friction) <= c.limit + 1e-7 for c in found.contacts)


def test_the_page_shows_the_shares_of_the_tables(pushed):
    graph, run = pushed
    layout = graph.automaton.terms.layout
    evaluator = RowEvaluator(graph, TickColumns(layout.w, layout.x, 0, ()))
    states = run.model.charts[run.rows.mode[-1]].states
    _, full = evaluator.full(states, run.rows.x[-1], run.rows.context[-1].copy())
    np.testing.assert_allclose(full["multipliers"], EXPECTED, atol=1e-7)


def test_shares_that_no_law_admits_are_reported(pushed):
    """The same instant with a push beyond all the friction there is."""
    _, run = pushed
    context = run.rows.context[-2:].copy()
    context[1, run.model.layout.w_slice] = 9.0
    at = Samples(run.model, run.t[-2:], run.rows.x[-2:], run.rows.mode[-2:], context)
    np.testing.assert_array_equal(at.admissible, [True, False])
    friction = at.multiplier_table[1, [1, 3]]
    np.testing.assert_allclose(friction, [-4.5, -4.5], rtol=1e-9)  # the smallest
    found = explain(run.model, Samples(run.model, at.t[1:], at.x[1:], at.mode[1:], context[1:]), ())
    assert not any(contact.admissible for contact in found.contacts)


def test_the_work_of_shares_is_that_of_all_forces(pushed):
    _, run = pushed
    assert run.energy.relative_residual <= 1e-9
