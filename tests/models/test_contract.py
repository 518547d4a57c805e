"""One contract over every shipped model: it compiles, runs, stays finite, keeps its rows and explains itself."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.automaton.labels import LONGEST
from fsm_dyn.language import models
from fsm_dyn.run import structures as state

MOST_FLOATS, MOST_INTEGERS = 2, 3  # entries of ``Work.top``
UNTIL = {"seven_body_mechanism": 0.03}


@pytest.fixture(scope="module")
def work():
    """The workspaces of the run."""
    made, plain = [], state.new_work

    def new(*args):
        new_one = plain(*args)
        made.append(new_one[0])
        return new_one

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "new_work", new)
        yield made


@pytest.fixture(scope="module", params=models.names())
def run(request, work):
    work.clear()
    graph = fsm_dyn.compile(request.param)
    return graph, fsm_dyn.simulate(graph, until=UNTIL.get(request.param, 4.0), rtol=1e-9, atol=1e-11)


def test_reaches_the_end_and_stays_finite(run):
    _, trajectory = run
    assert trajectory.outcome.name == "done"
    assert np.isfinite(trajectory.q).all()
    assert np.isfinite(trajectory.u).all()
    assert all(np.isfinite(values).all() for values in trajectory.multipliers.values())


def test_the_room_counted_out_for_transitions_is_enough(run, work):
    graph, _ = run
    most = 0
    for each in work:
        assert each.top[MOST_FLOATS] <= len(each.floats)
        assert each.top[MOST_INTEGERS] <= len(each.integers)
        most = max(most, each.top[MOST_FLOATS])
    assert most > 0 or len(graph.modes) == 1  # what has no contact never resolves any


def test_last_row_is_exactly_at_until(run):
    graph, trajectory = run
    assert trajectory.t[-1] == UNTIL.get(graph.name, 4.0)
    assert (np.diff(trajectory.t) >= 0.0).all()


def test_active_rows_are_kept(run):
    """Active rows vanish on speeds to rounding and on coordinates to the projection's tolerance."""
    graph, trajectory = run
    automaton = graph.automaton
    terms = automaton.terms.evaluate(trajectory.t, trajectory.rows.x, trajectory.rows.context)
    speeds = np.einsum("trj,tj->tr", terms["A"][..., : trajectory.u.shape[1]], trajectory.u) + terms["b"]
    scale = 1.0 + np.abs(trajectory.u).max()
    for number, chart in enumerate(trajectory.model.charts):
        here = trajectory.record.mode == number
        starts = trajectory.record.starts
        here &= ~np.roll(starts, -1) | (
            np.arange(len(here)) == len(here) - 1
        )  # states before an impact are checked by it
        rows = [i for i, row in enumerate(automaton.rows) if row.role in ("velocity", "position")]
        for contact, code in zip(automaton.contacts, chart.states, strict=True):
            if contact.kind == "compliant":  # it yields: only what sticks is held
                rows += contact.tangent_rows if code == 1 else ()
            elif code == 1:
                rows += [r for r in (contact.normal_row, *contact.tangent_rows) if r >= 0]
            elif code == 2 and contact.kind == "gap":
                rows.append(contact.normal_row)
        if rows and here.any():
            assert np.abs(speeds[here][:, rows]).max() <= 1e-9 * scale
            positional = [r for r in rows if automaton.rows[r].positional]
            if positional:
                assert np.abs(terms["residual"][here][:, positional]).max() <= 1e-9


def test_no_penetration_no_pulling_no_friction_beyond_its_cone(run):
    graph, trajectory = run
    automaton = graph.automaton
    times = np.linspace(trajectory.t[0], trajectory.t[-1], 4001)
    samples = trajectory.sample(times)
    terms = automaton.terms.evaluate(samples.t, samples.x, samples.context)
    forces = samples.multiplier_table
    for i, contact in enumerate(automaton.contacts):
        shape = (len(times),)
        static = np.broadcast_to(terms["static"][..., i], shape)
        if contact.kind == "gap":
            may_close = np.broadcast_to(terms["closes_if"][..., i], shape) != 0.0
            gap = np.broadcast_to(terms["residual"][..., contact.normal_row], shape)
            if contact.bounded_face:  # behind a face is no violation: but nobody gets there through it
                within = np.broadcast_to(terms["reach"][..., i], shape) > 1e-6
                may_close = may_close & within & np.roll(within & (gap >= -1e-9), 1)
                may_close[0] = False
            assert gap[may_close].min(initial=0.0) >= -1e-9
            normal = forces[:, contact.normal_row]
            assert normal.min() >= -1e-6 * (1.0 + np.abs(forces).max())
            static = static * normal
        if contact.kind == "compliant":
            normal = forces[:, contact.normal_row]
            assert normal.min() >= -1e-9 * (1.0 + np.abs(forces).max())
            gap = np.broadcast_to(terms["residual"][..., contact.normal_row], shape)
            assert (normal[gap > 1e-9] == 0.0).all()
            static = static * normal
        if contact.tangent_row >= 0 and not contact.sticks_always:
            friction = np.linalg.norm(forces[:, contact.tangent_rows], axis=1)
            # what contacts share is theirs together; the guards watch it, and the smallest forces are reported
            friction = np.where(_shared(trajectory.model, samples, contact), 0.0, friction)
            assert (friction <= static * (1 + 1e-6) + 1e-6 * (1.0 + friction.max())).all()


def _shared(model, samples, contact):
    open_rows = dict(zip(model.modes, model.indeterminate, strict=True))
    return np.array([contact.tangent_row in open_rows[name] for name in samples.modes])


def test_energy_balance_closes(run):
    _, trajectory = run
    assert trajectory.energy.relative_residual <= 1e-7


def test_every_transition_is_explained(run):
    graph, trajectory = run
    for x in trajectory.transitions:
        assert x.cause
        assert x.source
        assert x.target
        assert str(x)
        gained = x.energy_after - x.energy_before - work_of_moving_rows(graph.automaton, trajectory, x)
        assert gained <= 1e-9 * (1.0 + abs(x.energy_before))


def work_of_moving_rows(automaton, trajectory, transition):
    """What rows moved by time or inputs put in at an impact: ``-Σ Λ b``, since a row's speed is ``A u + b`` (J)."""
    now = trajectory.sample([transition.time])
    b = automaton.terms.evaluate(now.t, now.x, now.context)["b"].reshape(-1, len(automaton.rows))[0]
    taken = dict.fromkeys(transition.impulse, 0)
    work = 0.0
    for row, rate in zip(automaton.rows, b, strict=True):
        if row.name in taken:
            work -= transition.impulse[row.name][taken[row.name]] * rate
            taken[row.name] += 1
    return work


def test_labels_of_modes_are_short_and_distinct(run):
    """Every mode that was compiled or met has a label within the bound, and no other mode's."""
    graph, trajectory = run
    automaton = graph.automaton
    met = {tuple(chart.states) for chart in trajectory.model.charts} | {tuple(mode.states) for mode in automaton.modes}
    full = {}
    for states in met:
        label = automaton.labels.of(states)
        assert len(label) <= LONGEST
        assert label == " ".join(label.split())
        full.setdefault(label, set()).add(automaton.labels.in_full(states))
    assert all(len(texts) == 1 for texts in full.values())
    assert {*trajectory.labels} <= full.keys()
    assert all({item.source_label, item.target_label} <= full.keys() for item in trajectory.transitions)


def test_text_round_trip(run):
    graph, _ = run
    mechanism = graph.automaton.mechanism
    from fsm_dyn.language.loader import load

    assert load("again", text=mechanism.text).digest == mechanism.digest


def test_saved_automaton_runs_the_same(run, tmp_path):
    graph, trajectory = run
    graph.save(tmp_path / "automaton.json")
    again = fsm_dyn.open_graph(tmp_path / "automaton.json")
    other = fsm_dyn.simulate(again, until=trajectory.t[-1], rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(other.t, trajectory.t)
    np.testing.assert_array_equal(other.q, trajectory.q)
