"""Verdicts on contacts: against closed forms, a search with many starts, combinations counted, modes that runs meet."""

import functools
import itertools

import numpy as np
import pytest
from scipy.optimize import least_squares

import fsm_dyn
from fsm_dyn.automaton import geometric_feasibility as geometry
from fsm_dyn.automaton.geometric_feasibility import EXACT, MARGIN, assess_geometry
from fsm_dyn.automaton.initial_values import parameter_vector
from fsm_dyn.spec.values import parameter_values

SMALL = ("box_on_table", "latch", "latch_door", "newtons_cradle", "push_button", "toggle_switch", "twelve_contacts")


def slide(**contacts):
    """A block on a rail with stops given by gaps."""
    return {
        "fsm_dyn": 1, "name": "slide", "coordinates": {"x": "m"}, "points": {"P": {"from": "O", "at": "x*N.x"}},
        "bodies": {"block": {"center": "P", "mass": "1 kg"}}, "parameters": {"width": "0.3 m"},
        "contacts": {name: {"gap": gap} for name, gap in contacts.items()},
    }  # fmt: skip


@functools.cache
def shipped(name):
    return assess(name)


def assess(model, **parameters):
    graph = fsm_dyn.compile(model if isinstance(model, str) else fsm_dyn.load(model))
    automaton = graph.automaton
    numbers = parameter_vector(parameter_values(automaton.mechanism, parameters))
    return automaton, assess_geometry(automaton, numbers, graph.start.x[: len(automaton.terms.layout.q)])


def verdicts(found):
    return {(item.contacts, item.closed): item.verdict for item in found.verdicts}


def test_opposite_stops_exclude_each_other_and_the_reason_names_both_places():
    _, found = assess(slide(left="x + 0.1 m", right="width - x"))
    item = next(item for item in found.verdicts if item.closed == (True, True))
    assert item.verdict == "impossible"
    assert item.reason == "x would be -0.1 with left closed and 0.3 with right closed (SI units)"
    assert (found.combinations, found.remaining) == (4, 3)


@pytest.mark.parametrize(
    ("width", "verdict"), [("-0.1 m", "possible"), ("-0.1 m + 1e-12 m", "possible"), ("-0.0999 m", "impossible")]
)
def test_stops_in_one_place_are_told_apart_by_more_than_rounding(width, verdict):
    model = slide(left="x + 0.1 m", right=f"({width}) - x")
    _, found = assess(model)
    assert verdicts(found)[("left", "right"), (True, True)] == verdict


def test_a_stop_behind_another_is_never_reached():
    _, found = assess(slide(near="x", far="x + 0.2 m"))
    assert verdicts(found) == {(("near",), (True,)): "possible", (("far",), (True,)): "impossible"}
    assert found.remaining == 2


def test_an_implication():
    """A block that touches the wedge's end also touches its side: closed there and open here is impossible."""
    _, found = assess(slide(first="x", second="2*x"))
    assert verdicts(found)[("first", "second"), (True, True)] == "possible"
    assert verdicts(found)[("first", "second"), (True, False)] == "possible"  # open contacts may have no gap yet


def test_angles_come_round():
    """A rod on a pivot reaches its lower and its upper stop a turn apart; a coordinate in sines alone has one turn."""
    rod = {
        "fsm_dyn": 1, "name": "rod", "coordinates": {"q": "rad"},
        "points": {"P": {"from": "O", "at": "1 m*cos(q)*N.x + 1 m*sin(q)*N.y"}},
        "bodies": {"bob": {"center": "P", "mass": "1 kg"}},
        "contacts": {"top": {"gap": "0.5 m - dot(pos(P, O), N.y)"}, "side": {"gap": "2 m - dot(pos(P, O), N.x)"}},
    }  # fmt: skip
    _, found = assess(rod)
    assert verdicts(found) == {(("top",), (True,)): "possible", (("side",), (True,)): "impossible"}


def test_parameters_decide():
    model = slide(left="x + 0.1 m", right="width - x")
    assert assess(model, width=-0.1)[1].remaining == 4


def test_what_takes_too_many_boxes_is_undecided(monkeypatch):
    monkeypatch.setattr(geometry, "MOST_BOXES", 0)
    monkeypatch.setattr(geometry, "FIRST_BOXES", 0)
    _, found = assess(slide(left="x + 0.1 m", right="width - x"))
    assert verdicts(found)[("left", "right"), (True, True)] == "undecided"
    assert found.remaining == 4


def least_violation(automaton, item, random, starts=6):
    """Return by how much two contacts at least miss their conditions, in own units, after a search from many starts."""
    index = {contact.name: contact for contact in automaton.contacts}
    numbers, layout = parameter_vector(parameter_values(automaton.mechanism)), automaton.terms.layout
    context = np.concatenate([numbers, np.zeros(layout.n_c - len(numbers))])
    ends = [c for c in automaton.contacts if c.gated or c.bounded_face or c.outlined or c.ends[0] >= 0]
    walls = [
        c.normal_row for c in automaton.contacts
        if c.normal_row >= 0 and automaton.rows[c.normal_row].positional and c.contact_law.rigid and c not in ends
        and not c.bilateral
    ]  # fmt: skip

    def missed(scaled):
        x = np.concatenate([scaled * automaton.units.q, np.zeros(len(layout.u))])
        gap = automaton.terms.evaluate(0.0, x, context)["residual"] / (
            automaton.units.rows * automaton.units.scales.length
        )
        parts = list(np.minimum(gap[walls], 0.0))
        for name, closed in zip(item.contacts, item.closed, strict=True):
            value = gap[index[name].normal_row]
            compliant = index[name].contact_law.compliant
            parts.append((max(value, 0.0) if compliant else value) if closed else min(value, 0.0))
        return np.nan_to_num(np.array(parts), nan=1e3)

    found = (
        least_squares(missed, random.normal(size=len(layout.q)) * 10.0 ** random.uniform(-2, 1), max_nfev=50)
        for _ in range(starts)
    )
    return min(np.abs(each.fun).max() for each in found)


@pytest.mark.parametrize("name", SMALL)
def test_a_search_from_many_starts_comes_nowhere_near_what_is_impossible(name):
    automaton, found = shipped(name)
    random = np.random.default_rng(5)
    impossible = [item for item in found.verdicts if item.verdict == "impossible"]
    for number in random.permutation(len(impossible))[:4]:
        assert least_violation(automaton, impossible[number], random) > MARGIN / 2
    possible = [item for item in found.verdicts if item.verdict == "possible"]
    assert least_violation(automaton, possible[0], random) < 1e-6  # the search itself can find


@pytest.mark.parametrize("name", SMALL)
def test_shown_configurations_meet_their_conditions(name):
    automaton, found = shipped(name)
    numbers = parameter_vector(parameter_values(automaton.mechanism))
    layout, rows = automaton.terms.layout, automaton.units.rows * automaton.units.scales.length
    index = {contact.name: contact for contact in automaton.contacts}
    x, context = np.zeros(layout.n_x), np.zeros(layout.n_c)
    context[: len(numbers)] = numbers
    for item in found.verdicts:
        if item.verdict == "possible":
            x[: len(layout.q)] = [item.configuration[q] for q in layout.q]
            gap = automaton.terms.evaluate(0.0, x, context)["residual"] / rows
            for contact, closed in zip(item.contacts, item.closed, strict=True):
                value = gap[index[contact].normal_row]
                if closed and not index[contact].contact_law.compliant:
                    assert abs(value) <= EXACT
                else:
                    assert (value <= EXACT) if closed else (value >= -EXACT)
        else:
            assert item.verdict == "impossible"  # nothing is left undecided in these models
    assert found.combinations == np.prod([len(contact.codes) for contact in automaton.contacts])


@pytest.mark.parametrize("name", SMALL)
def test_combinations_are_counted_as_one_by_one(name):
    automaton, found = shipped(name)
    if found.combinations > 600_000:
        pytest.skip("too many to count one by one")
    names = [contact.name for contact in automaton.contacts]
    impossible = [
        [(names.index(contact), closed) for contact, closed in zip(item.contacts, item.closed, strict=True)]
        for item in found.verdicts
        if item.verdict == "impossible"
    ]
    table = np.array(list(itertools.product(*(contact.codes for contact in automaton.contacts))))
    kept = np.ones(len(table), bool)
    for atoms in impossible:
        kept &= ~np.all([(table[:, i] > 0) == closed for i, closed in atoms], axis=0)
    assert found.remaining == kept.sum()


@pytest.mark.parametrize("name", [*SMALL, "rocking_block", "ratchet", "piano_action_simple"])
def test_no_run_meets_what_is_impossible(name):
    automaton, found = shipped(name)
    graph = fsm_dyn.compile(name)
    run = fsm_dyn.simulate(graph, 2.0, on_failure="return")
    modes = dict(zip(run.model.modes, (chart.states for chart in run.model.charts), strict=True))
    states = [modes[mode] for mode in set(run.modes)]
    assert len(states) > 1
    names = [contact.name for contact in automaton.contacts]
    for item in found.verdicts:
        if item.verdict == "impossible":
            atoms = [(names.index(contact), closed) for contact, closed in zip(item.contacts, item.closed, strict=True)]
            assert not any(all((mode[i] > 0) == closed for i, closed in atoms) for mode in states), item
