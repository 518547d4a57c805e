"""Verdicts on contacts: against closed forms, a search with many starts, counted combinations, modes reached by
runs.
"""

import copy
import functools
import itertools
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import least_squares

import fsm_dyn
from fsm_dyn.automaton import configuration_search as combined_contacts
from fsm_dyn.automaton import feasibility as geometry
from fsm_dyn.automaton.configuration_search import EXACT, MARGIN
from fsm_dyn.automaton.feasibility import assess_geometry
from fsm_dyn.automaton.initial_values import parameter_vector
from fsm_dyn.language import models
from fsm_dyn.language.values import parameter_values

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
    said = re.fullmatch(
        r"in every configuration the gap of far is more than (.*) \(SI units\)", found.verdicts[1].reason
    )
    assert 0.05 < float(said[1]) < 0.2
    assert found.remaining == 2


def test_an_implication():
    """A block at the wedge's end also touches its side: closed there and open here is impossible."""
    _, found = assess(slide(first="x", second="2*x"))
    assert verdicts(found)[("first", "second"), (True, True)] == "possible"
    assert verdicts(found)[("first", "second"), (True, False)] == "possible"  # open contacts may have no gap yet


def test_angles_wrap_around():
    """A rod on a pivot reaches its lower and its upper stop a turn apart; a coordinate in sines alone has one turn."""
    rod = {
        "fsm_dyn": 1, "name": "rod", "coordinates": {"q": "rad"},
        "points": {"P": {"from": "O", "at": "1 m*cos(q)*N.x + 1 m*sin(q)*N.y"}},
        "bodies": {"bob": {"center": "P", "mass": "1 kg"}},
        "contacts": {"top": {"gap": "0.5 m - dot(pos(P, O), N.y)"}, "side": {"gap": "2 m - dot(pos(P, O), N.x)"}},
    }  # fmt: skip
    _, found = assess(rod)
    assert verdicts(found) == {(("top",), (True,)): "possible", (("side",), (True,)): "impossible"}


def test_what_depends_on_differences_of_coordinates_is_decided():
    """A pad does not reach both ends of a longer side, at any place of both."""
    _, found = assess("gripper")
    verdict = {(item.contacts, item.closed): item.verdict for item in found.verdicts}
    for side in ("left", "right"):
        assert verdict[(f"{side}_grip_start_face", f"{side}_grip_end_face"), (True, True)] == "impossible"
    assert found.undecided == 0


@pytest.mark.long
def test_a_pad_longer_than_the_side_may_reach_both_ends():
    """The block is 60 mm high, the pad 70 mm."""
    _, longer = assess("gripper", left_length=0.07)
    verdict = {(item.contacts, item.closed): item.verdict for item in longer.verdicts}
    assert verdict[("left_grip_start_face", "left_grip_end_face"), (True, True)] == "possible"


def test_parameters_decide():
    model = slide(left="x + 0.1 m", right="width - x")
    assert assess(model, width=-0.1)[1].remaining == 4


def test_what_takes_too_many_boxes_is_undecided(monkeypatch):
    monkeypatch.setattr(geometry, "MOST_BOXES", 0)
    monkeypatch.setattr(geometry, "FIRST_BOXES", 0)
    _, found = assess(slide(left="0.01 m + x**2/1 m - 2*x*sin(x/1 m) + 1 m*sin(x/1 m)**2"))  # at least 0.01 m
    assert verdicts(found) == {(("left",), (True,)): "undecided"}
    assert found.remaining == 2


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
        terms = automaton.terms.evaluate(0.0, x, context)
        gap = terms["residual"] / (automaton.units.rows * automaton.units.scales.length)
        reach = terms["reach"] / automaton.units.scales.length
        parts = list(np.minimum(gap[walls], 0.0))
        for name, closed in zip(item.contacts, item.closed, strict=True):
            value = gap[index[name].normal_row]
            compliant = index[name].contact_law.compliant
            parts.append((max(value, 0.0) if compliant else value) if closed else min(value, 0.0))
            if closed and not compliant and index[name] in ends:
                parts.append(min(reach[automaton.contacts.index(index[name])], 0.0))
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


@pytest.mark.parametrize(
    "name", [*SMALL, "rocking_block", "ratchet", pytest.param("piano_action_simple", marks=pytest.mark.long)]
)
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


@pytest.mark.parametrize("name", SMALL)
def test_every_combination_has_a_verdict_and_the_possible_ones_a_configuration(name):
    automaton, found = shipped(name)
    index = {contact.name: contact for contact in automaton.contacts}
    numbers, layout = parameter_vector(parameter_values(automaton.mechanism)), automaton.terms.layout
    x, context = np.zeros(layout.n_x), np.zeros(layout.n_c)
    context[: len(numbers)] = numbers
    seen = Counter()
    for closed in itertools.product(*(sorted({c > 0 for c in index[name].codes}) for name in found.contacts)):
        verdict = found.verdict_on(dict(zip(found.contacts, closed, strict=True)))
        ways = np.prod(
            [sum((c > 0) == shut for c in index[n].codes) for n, shut in zip(found.contacts, closed, strict=True)]
        )
        seen[verdict.verdict] += int(ways)
        if verdict.verdict != "possible":
            continue
        x[: len(layout.q)] = [verdict.configuration[q] for q in layout.q]
        gap = automaton.terms.evaluate(0.0, x, context)["residual"]
        gap = gap / (automaton.units.rows * automaton.units.scales.length)
        for contact, shut in zip(found.contacts, closed, strict=True):
            info, value = index[contact], gap[index[contact].normal_row]
            bounded = info.gated or info.bounded_face or info.outlined or info.ends[0] >= 0
            if shut:
                assert value <= EXACT if info.contact_law.compliant else abs(value) <= EXACT
            elif not bounded:
                assert value >= -EXACT
    others = [c for c in automaton.contacts if c.name not in found.contacts]
    factor = int(np.prod([len(c.codes) for c in others], dtype=int))
    counted = {verdict: factor * number for verdict, number in seen.items()}
    assert counted.get("possible", 0) == found.possible
    assert counted.get("undecided", 0) == found.undecided
    assert counted.get("impossible", 0) == found.combinations - found.remaining
    assert found.remaining == found.possible + found.undecided


def test_three_stops_that_exclude_each_other_only_together():
    """A block in a corner touches two walls; the third, oblique one cuts the corner off by 1 cm."""
    block = slide()
    block["coordinates"] = {"x": "m", "y": "m"}
    block["points"] = {"P": {"from": "O", "at": "x*N.x + y*N.y"}}
    block["contacts"] = {"left": {"gap": "x"}, "below": {"gap": "y"}, "oblique": {"gap": "x + y - 0.01 m"}}
    _, found = assess(block)
    assert found.verdict_on({"left": True, "below": True, "oblique": False}).verdict == "impossible"
    for two in (("left", "oblique"), ("below", "oblique")):
        states = {name: name in two for name in found.contacts}
        assert found.verdict_on(states).verdict == "possible"
    block["contacts"] = {"left": {"gap": "x"}, "below": {"gap": "y"}, "oblique": {"gap": "0.01 m - x - y"}}
    _, found = assess(block)
    (item,) = [item for item in found.verdicts if len(item.contacts) == 3]
    said = re.fullmatch(
        r"no configuration has the gaps of left and below and oblique within (.*) of zero \(SI units\)", item.reason
    )
    assert 1e-4 < float(said[1]) < 0.01 / 3  # the violation of all three at x = y = 1 cm / 3
    assert (found.combinations, found.remaining, found.undecided) == (8, 7, 0)
    with pytest.raises(fsm_dyn.InputError, match="contacts without a state"):
        found.verdict_on({"left": True})


BOUNDS = re.compile(r"(?:gaps? of ([\w ]+?) (within|above|is more than) (-?[\d.e-]+))")


@pytest.mark.parametrize("name", ["box_on_table", "latch_door", "cart_on_ramp"])
def test_bounds_that_reasons_quote_hold_in_configurations_that_are_shown(name):
    """A reason is of use to a person if it can be looked up in any configuration."""
    automaton, found = shipped(name)
    numbers, layout = parameter_vector(parameter_values(automaton.mechanism)), automaton.terms.layout
    x, context, gaps = np.zeros(layout.n_x), np.zeros(layout.n_c), []
    context[: len(numbers)] = numbers
    index = {contact.name: contact.normal_row for contact in automaton.contacts}
    for shown in found.configurations:
        x[: len(layout.q)] = [shown[q] for q in layout.q]
        gaps.append(automaton.terms.evaluate(0.0, x, context)["residual"])
    quoted = 0
    for item in found.verdicts:
        assert (item.verdict == "impossible") == bool(item.reason)
        assert not item.reason or "would be" in item.reason or BOUNDS.search(item.reason), item.reason
        if "ends of their faces" in item.reason:
            continue  # beyond the end of a face its gap has no meaning
        bounds = [(of.split(" and "), how, float(size)) for of, how, size in BOUNDS.findall(item.reason)]
        for gap in gaps if bounds else ():
            met = [
                abs(gap[index[name]]) <= size if how == "within" else gap[index[name]] >= size if how == "above"
                else gap[index[name]] <= size
                for of, how, size in bounds for name in of
            ]  # fmt: skip
            assert not all(met), item.reason
            quoted += 1
    assert quoted or name == "cart_on_ramp"


PLANK = {
    "fsm_dyn": 1, "name": "plank", "parameters": {"a": 0.5, "s": 0.1, "mu": 0.4, "v": 0.2},
    "coordinates": ["x", "y", "phi"], "frames": {"B": {"parent": "N", "rotate": {"z": "phi"}}},
    "points": {"C": {"from": "O", "at": "x*N.x + y*N.y"}, "L": {"from": "C", "at": "-(a + s)*B.x"},
               "R": {"from": "C", "at": "(a - s)*B.x"}},
    "bodies": {"plank": {"frame": "B", "center": "C", "mass": 2.0, "inertia": {"zz": 0.05}}},
    "loads": [{"gravity": "-9.81*N.y"}],
    "contacts": {"left": {"gap": "dot(pos(L, O), N.y)", "slip": "dot(vel(L), N.x)", "friction": "mu"},
                 "right": {"gap": "dot(pos(R, O), N.y)", "slip": "dot(vel(R), N.x) - v", "friction": "mu"}},
}  # fmt: skip


def holding(found):
    return {item.contacts: item.verdict for item in found.held_contacts}


def test_a_plank_cannot_stick_to_two_belts_of_different_speeds():
    """Its weights depend on the angle, zero or half a turn by the two gaps."""
    _, found = assess(PLANK)
    assert holding(found) == {("right",): "possible", ("left", "right"): "impossible"}
    item = found.held_contacts[1]
    assert item.states == "left held and right held"
    assert (
        item.reason == "left.tangent - right.tangent is 0.2 at any speeds, and each of these rows vanishes (SI units)"
    )
    assert (found.combinations, found.remaining, found.possible, found.undecided) == (9, 8, 8, 0)
    assert found.excluded({"left": 1, "right": 1}) == item.reason
    assert not found.excluded({"left": 1, "right": 2})
    assert found.verdict_on({"left": True, "right": True}).verdict == "possible"  # one of them slides
    shown = found.held_contacts[0].configuration
    assert shown["x_dot"] - shown["phi_dot"] * 0.4 * np.sin(shown["phi"]) == pytest.approx(0.2)


def test_belts_of_one_speed_hold_a_plank_and_inputs_may_bring_others_together():
    assert holding(assess(PLANK, v=0.0)[1])["left", "right"] == "possible"
    driven = copy.deepcopy(PLANK)
    driven["inputs"] = ["belt"]
    driven["contacts"]["right"]["slip"] = "dot(vel(R), N.x) - belt"
    assert holding(assess(driven)[1])["left", "right"] == "possible"


def test_where_nothing_moves_by_itself_no_speeds_contradict_each_other():
    for name in ("box_on_table", "rocking_block", "shopping_cart"):
        assert shipped(name)[1].held_contacts == ()


def test_modes_and_counts_leave_out_what_cannot_be_held(monkeypatch):
    model = PLANK | {
        "modes": {"carried": {"left": "stick", "right": "stick"}, "drawn": {"left": "slide", "right": "stick"}}
    }
    graph = fsm_dyn.compile(fsm_dyn.load(model))
    found = graph.assess_geometry()
    verdict = found.modes.get("carried")
    assert "carried" in graph.infeasible or verdict.verdict == "impossible"
    assert "carried" not in graph.with_geometry(found).modes
    assert found.modes["drawn"].verdict == "possible"
    proofs = graph.prove_geometry()
    assert [proof.without_sliding for proof in proofs.proofs] == [True]
    assert graph.check_proofs(proofs) == proofs.leaves > 0
    (proof,) = proofs.proofs
    for change in ({"weights": ()}, {"without_sliding": False}, {"weights": (((9, 1.0),),) * proofs.leaves}):
        with pytest.raises(fsm_dyn.InputError, match="does not hold"):
            graph.check_proofs(replace(proofs, proofs=(replace(proof, **change),)))
    monkeypatch.setattr(combined_contacts, "MOST_COMBINATIONS", 2)
    assert assess(PLANK)[1].remaining == 8  # counted contact by contact


def test_too_many_combinations_are_not_looked_at(monkeypatch):
    monkeypatch.setattr(combined_contacts, "MOST_COMBINATIONS", 2)
    _, found = assess(slide(left="x + 0.1 m", right="width - x"))
    assert (found.possible, found.undecided, found.remaining) == (-1, -1, 3)
    with pytest.raises(fsm_dyn.InputError, match="no verdicts on combinations"):
        found.verdict_on({"left": True, "right": False})


def test_stated_ranges_bound_the_search():
    model = slide(left="x + 0.1 m", right="width - x")
    model["coordinates"] = {"x": {"unit": "m", "range": ["-1 m", "0.2 m"]}}
    _, found = assess(model)
    assert verdicts(found) == {(("left",), (True,)): "possible", (("right",), (True,)): "impossible"}
    assert found.remaining == 2


def test_an_assessment_is_kept_and_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("FSM_DYN_CACHE", str(tmp_path))
    graph = fsm_dyn.compile("box_on_table")
    first = graph.assess_geometry()
    monkeypatch.setattr(geometry, "assess_geometry", lambda *_: pytest.fail("assessed again"))
    assert graph.assess_geometry() == first
    assert geometry.GeometricFeasibility.from_bytes(first.to_bytes()) == first


def stops():
    """A graph with all four modes of a block between two stops, and the verdicts on them."""
    model = slide(left="x + 0.1 m", right="width - x")
    model["modes"] = {
        "between": {"left": "open", "right": "open"}, "at_left": {"left": "closed", "right": "open"},
        "at_right": {"left": "open", "right": "closed"}, "jammed": {"left": "closed", "right": "closed"},
    }  # fmt: skip
    return fsm_dyn.compile(fsm_dyn.load(model))


def test_modes_have_verdicts_and_impossible_ones_are_not_listed():
    graph = stops()
    found = graph.assess_geometry()
    assert {name: item.verdict for name, item in found.modes.items()} == {
        name: "possible" for name in graph.modes if name != "jammed"
    } | ({"jammed": "impossible"} if "jammed" in graph.modes else {})
    smaller = graph.with_geometry(found)
    assert "jammed" not in smaller.modes
    assert "jammed" in smaller.infeasible
    assert set(smaller.nx) == set(smaller.modes)
    assert dict(smaller.nx.nodes(data="verdict")) == dict.fromkeys(smaller.modes, "possible")
    assert smaller.automaton is graph.automaton  # runs are the same


def test_a_run_that_meets_what_is_excluded_warns_and_continues():
    graph = stops()
    wrong = replace(graph.assess_geometry().modes["at_right"], verdict="impossible", reason="as the test says")
    found = replace(graph.assess_geometry(), modes={"at_right": wrong})
    with pytest.warns(UserWarning, match="the run met 'at_right', which the geometry excludes: as the test says"):
        run = fsm_dyn.simulate(graph.with_geometry(found), 1.0, initial={"x_dot": 1.0})
    plain = fsm_dyn.simulate(graph, 1.0, initial={"x_dot": 1.0})
    assert run.record.x.tobytes() == plain.record.x.tobytes()


@pytest.mark.parametrize(
    "name", ["box_on_table", "latch_door", pytest.param("piano_action_simple", marks=pytest.mark.long)]
)
def test_shown_configurations_lie_within_the_ends_of_faces(name):
    automaton, found = shipped(name)
    numbers = parameter_vector(parameter_values(automaton.mechanism))
    layout = automaton.terms.layout
    x, context = np.zeros(layout.n_x), np.zeros(layout.n_c)
    context[: len(numbers)] = numbers
    looked_at = 0
    for item in (*found.verdicts, *found.modes.values()):
        if item.verdict != "possible":
            continue
        x[: len(layout.q)] = [item.configuration[q] for q in layout.q]
        reach = automaton.terms.evaluate(0.0, x, context)["reach"] / automaton.units.scales.length
        for contact, closed in zip(item.contacts, item.closed, strict=True):
            info = automaton.contacts[layout.contacts.index(contact)]
            if closed and info.contact_law.rigid and (info.bounded_face or info.ends[0] >= 0):
                assert reach[layout.contacts.index(contact)] >= -EXACT
                looked_at += 1
    assert looked_at > 0 or not any(c.bounded_face for c in automaton.contacts)


@pytest.mark.long
def test_few_questions_stay_undecided_and_no_run_of_a_shipped_model_meets_what_is_impossible():
    """Over all shipped models of up to 12 contacts: at most a twentieth of the questions undecided, runs of 3 s.

    Of the combinations it is one in a hundred at most, also without the model with most of them.
    """
    numbers, every, met = Counter(), Counter(), 0
    for name in models.names():
        graph = fsm_dyn.compile(name)
        if not 1 <= len(graph.automaton.contacts) <= 12:
            continue
        found = graph.assess_geometry()
        numbers.update(item.verdict for item in found.verdicts)
        assert found.undecided >= 0
        every.update({name: found.combinations, "undecided": found.undecided})
        contacts = [contact.name for contact in graph.automaton.contacts]
        for scenario in (None, *graph.automaton.mechanism.scenarios):
            run = fsm_dyn.simulate(graph, 3.0, scenario=scenario, on_failure="return")
            for number in set(run.record.mode.tolist()):
                chart = run.model.charts[number]
                states = dict(zip(contacts, (code > 0 for code in chart.states), strict=True))
                assert not found.excluded(states), (name, states)
                met += 1
    assert numbers["undecided"] <= 0.05 * numbers.total()
    assert every["undecided"] <= 0.01 * (every.total() - every["undecided"] - every["twelve_contacts"])
    assert met > 100


KINKED = (
    ("-0.36*a - 0.77*b + 0.25*a**2 - 0.45", "0.73*a + 0.59*b - 0.74*abs(a - b) + 0.64",
     "0.77*a - 0.61*b + 0.15*sin(2*a) + 0.26", (-0.9, -0.3)),
    ("-0.84*a + 0.81*b - 0.46*abs(a - b) + 0.8", "0.24*a - 0.63*b - 0.13*b**2 + 0.92",
     "-0.25*a + 0.42*b - 0.81*sin(a + b) + 0.66", (0.0, 0.0)),
    ("0.52*a + 0.99*b - 0.7*b**2 + 0.78", "0.84*a - 0.75*b - 0.82*sin(a + b) + 1.17",
     "-0.77*a - 0.65*b + 0.15*max(a, b) + 0.6", (0.0, 0.0)),
)  # fmt: skip


@pytest.mark.parametrize("case", range(len(KINKED)))
def test_examples_lie_on_their_side_of_a_kink(case):
    """An example of closed and open contacts has the gaps that it should, by the formulas themselves."""
    *gaps, start = KINKED[case]
    model = {
        "fsm_dyn": 1, "name": "kinked",
        "coordinates": {name: {"unit": "rad", "range": ["-1 rad", "1 rad"]} for name in "ab"},
        "points": {"P": {"from": "O", "at": "a*N.x + b*N.y"}}, "bodies": {"bead": {"center": "P", "mass": 1}},
        "contacts": {f"c{k}": {"gap": gap} for k, gap in enumerate(gaps)},
        "initial": dict(zip("ab", start, strict=True)),
    }  # fmt: skip
    found = fsm_dyn.compile(model).assess_geometry()
    functions = {"sin": np.sin, "abs": abs, "max": max}
    shown = 0
    for closed in itertools.product((False, True), repeat=3):
        verdict = found.verdict_on({f"c{k}": shut for k, shut in enumerate(closed)})
        if verdict.verdict != "possible":
            continue
        shown += 1
        values = [eval(gap, {}, {**functions, **verdict.configuration}) for gap in gaps]  # noqa: S307
        assert all(abs(value) < 1e-6 if shut else value > -1e-9 for shut, value in zip(closed, values, strict=True))
    assert shown > 2


def test_examples_have_the_memory_of_the_start():
    """A ledge that begins two steps up, by the memory in its gap."""
    model = slide(low="x + 1 m - 0.4*level*1 m", high="0.3 m - x")
    found = fsm_dyn.compile({**model, "memory": {"level": 2}, "initial": {"x": 0}}).assess_geometry()
    ledge = next(item for item in found.verdicts if item.contacts == ("low",))
    assert ledge.verdict == "possible"
    assert ledge.configuration["x"] == pytest.approx(-0.2, abs=1e-6)
