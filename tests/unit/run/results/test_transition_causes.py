"""What causes of transitions say of impacts: a contact rebounds only where it has a restitution."""

import pytest
import yaml

import fsm_dyn
from fsm_dyn.language.laws import FREE
from fsm_dyn.run.transitions import cause_words
from fsm_dyn.runtime.abi import Event

BAR = """
fsm_dyn: 1
name: bar
summary: A bar with heavy ends that falls flat onto two posts, of which the right one returns it.
parameters: {m: 1 kg, k: 2 m**2, a: 0.5 m, g: 9.81 m/s**2, e: 0}
coordinates: {y: m, turn: rad}
frames:
  B: {parent: N, rotate: {z: turn}}
points:
  P: {from: O, at: y*N.y}
bodies:
  bar: {center: P, mass: m, frame: B, inertia: {zz: m*k}}
loads:
  - {gravity: -g*N.y}
contacts:
  left: {gap: y - a*turn, restitution: e}
  right: {gap: y + a*turn, restitution: 0.9}
  end: {gap: y + 1 m}
initial: {y: 0.2 m}
"""


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile(yaml.safe_load(BAR))


def test_without_restitution_an_impact_is_no_rebound(graph):
    first = fsm_dyn.simulate(graph, until=0.25).transitions[0]
    assert first.target == "all_free"  # the impact at the right end lifts the left one
    assert "left impacts and opens" in first.cause
    assert "right impacts and rebounds" in first.cause


def test_the_run_s_own_restitution_decides(graph):
    first = fsm_dyn.simulate(graph, until=0.25, parameters={"e": 0.5}).transitions[0]
    assert "left impacts and rebounds" in first.cause


def test_edges_say_the_same(graph):
    causes = {edge["cause"] for *_, edge in graph.nx.edges(data=True)}
    assert {"left impacts and opens", "right impacts and rebounds", "end impacts and opens"} <= causes
    assert "left impacts and rebounds" not in causes


@pytest.mark.parametrize("model", ["box_on_table", "magnetic_latch", "latch_door", "felt_drop", "ratchet"])
def test_words_agree_with_the_state_after(model):
    automaton = fsm_dyn.compile(model).automaton
    for contact, words in zip(automaton.contacts, cause_words(automaton)["contacts"], strict=True):
        law = contact.contact_law
        for event in (Event.OPENS, Event.CLOSES, Event.STICKS, Event.SLIDES, Event.LEAVES):
            reached = {code for guard in law.guards if guard.event is event for code in guard.leads_to}
            said = f"{contact.name} {law.verb(event)} ("
            for before in range(len(contact.states)):
                for after in range(len(contact.states)):
                    text = words["moved"][event.value][before][after]
                    assert text.startswith(said) <= (after in reached), text
                    assert text.startswith(contact.name) or contact.name in text
                    if event is Event.STICKS and after == FREE:
                        assert "sticks" not in text


def test_a_transition_that_waits_for_an_event_does_not_repeat_it():
    model = {
        "fsm_dyn": 1, "name": "counted", "coordinates": {"y": "m"}, "points": {"P": {"from": "O", "at": "y*N.y"}},
        "bodies": {"ball": {"center": "P", "mass": "1 kg"}}, "loads": [{"gravity": "-9.81 m/s^2*N.y"}],
        "contacts": {"ground": {"gap": "y", "restitution": 0.5}}, "memory": {"n": 0}, "initial": {"y": "0.2 m"},
    }  # fmt: skip
    silent = {"from": "*", "on": "ground closes", "set": {"n": "n + 1"}}
    for transition, said in ((silent, ""), ({**silent, "because": "one more"}, ", one more")):
        graph = fsm_dyn.compile(fsm_dyn.load({**model, "transitions": [transition]}))
        run = fsm_dyn.simulate(graph, until=0.3)
        assert run.transitions[0].cause == f"ground impacts and rebounds{said}"
