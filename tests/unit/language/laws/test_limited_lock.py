"""A lock with a limit releases when its force reaches it, and at no other time; against closed forms."""

import copy

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.analysis.sensitivities import sensitivities
from fsm_dyn.core.errors import ModelError

RAMP, LIMIT, MASS = 10.0, 5.0, 2.0

BLOCK = {
    "fsm_dyn": 1,
    "name": "magnet",
    "parameters": {"m": "2 kg", "F": "5 N", "k": "10 N/s"},
    "coordinates": {"x": "m"},
    "points": {"P": {"from": "O", "at": "x*N.x"}},
    "bodies": {"block": {"center": "P", "mass": "m"}},
    "speeds": {"v": "rate(x)"},
    "contacts": {"magnet": {"lock": {"position": "x", "holds_to": "F"}}},
    "loads": [{"force": "k*t*N.x", "at": "P"}],
    "modes": {"held": {"magnet": "engaged"}, "loose": {"magnet": "released"}},
    "initial": {"mode": "held", "x": "0 m"},
}


def changed(**parts):
    return copy.deepcopy(BLOCK) | parts


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_lets_go_where_a_ramp_of_force_reaches_the_limit(run, sign):
    """And in the mirror; the supplied energy is the energy of the following motion."""
    ended = run(changed(parameters=BLOCK["parameters"] | {"k": f"{sign * RAMP} N/s"}), 2.0)
    (gone,) = ended.transitions
    assert gone.time == pytest.approx(LIMIT / RAMP, abs=run.off)
    assert gone.cause == "magnet lets go (force limit reached)"
    assert [text for text, _, _ in gone.fired] == ["magnet lets go"]
    assert (gone.source, gone.target) == ("held", "loose")
    since = 2.0**2 - (LIMIT / RAMP) ** 2
    assert ended["v"][-1] == pytest.approx(sign * RAMP / (2 * MASS) * since, abs=6 * run.off)
    assert np.abs(ended.energy.residual).max() < 10 * run.off
    held = ended.t < LIMIT / RAMP - run.off
    assert ended.multipliers["magnet"][held, 0] == pytest.approx(-sign * RAMP * ended.t[held], abs=20 * run.off)


def test_holds_below_its_limit_for_ever(run):
    steady = changed(loads=[{"force": "(4.9999 N)*N.x", "at": "P"}])
    ended = run(steady, 1.0)
    assert ended.transitions == ()
    assert ended["x"] == pytest.approx(0.0, abs=1e-12)


def test_two_locks_of_one_row_let_go_together(run):
    """Their shares of the load are indeterminate: they release when both are at their limits, and not before."""
    pair = {"a": {"lock": {"position": "x", "holds_to": "F"}}, "b": {"lock": {"velocity": "v", "holds_to": "3 N"}}}
    ended = run(changed(contacts=pair, modes={"held": {"a": "engaged", "b": "engaged"}}), 1.0)
    assert ended.transitions[-1].time == pytest.approx((LIMIT + 3.0) / RAMP, abs=run.off)
    assert len({item.time for item in ended.transitions}) == 1
    assert ended.modes[-1] == "all_free"


def test_an_electromagnet_lets_go_where_it_is_switched_off(run):
    """With a load of 2.5 N on it by then."""
    switched = {"inputs": {"current": {"steps": [["0 s", 1.0], ["0.25 s", 0.0]]}}}
    ended = run(changed(contacts={"magnet": {"lock": {"position": "x", "holds_to": "F*current"}}}, **switched), 1.0)
    (gone,) = ended.transitions
    assert gone.time == pytest.approx(0.25, abs=run.off)
    assert ended["v"][-1] == pytest.approx(RAMP / (2 * MASS) * (1.0 - 0.25**2), abs=6 * run.off)


HIT = changed(
    coordinates={"x": "m", "y": "m"},
    points={"P": {"from": "O", "at": "x*N.x"}, "Q": {"from": "O", "at": "y*N.x"}},
    bodies={"block": {"center": "P", "mass": "m"}, "ball": {"center": "Q", "mass": "1 kg"}},
    speeds={"v": "rate(x)", "w": "rate(y)"},
    contacts={**BLOCK["contacts"], "bump": {"gap": "x - y", "restitution": 0.5}},
    loads=[],
    initial={"mode": "held", "x": "0 m", "y": "-1 m", "w": "2 m/s"},
)


def test_an_impact_is_more_than_any_force(run):
    """The block is struck as if it were free; e = 1/2, masses 2 and 1."""
    ended = run(HIT, 1.0)
    assert ended.transitions[-1].time == pytest.approx(0.5, abs=run.off)
    assert [ended["v"][-1], ended["w"][-1]] == pytest.approx([1.0, 0.0], abs=run.off)


@pytest.mark.parametrize("options", [{}, {"strategy": "online"}])
def test_an_impact_beside_it_leaves_it_engaged(options):
    """The ball strikes a stop of its own: no share of the impulse passes through the lock."""
    beside = copy.deepcopy(HIT)
    beside["contacts"]["bump"] = {"gap": "-y", "restitution": 0.5}
    ended = fsm_dyn.simulate(fsm_dyn.compile(beside), until=0.8, **options)
    (struck,) = ended.transitions
    assert struck.source == struck.target == "held"
    assert "magnet" not in struck.impulse
    assert ended["w"][-1] == pytest.approx(-1.0)


CATCH = changed(
    contacts={"magnet": {"lock": {"velocity": "v", "holds_to": "F"}}},
    transitions=[{"from": "loose", "to": "held", "when": "t > 0.5 s"}],
    initial={"mode": "loose", "x": "0 m", "v": "1 m/s"},
)


@pytest.mark.parametrize("options", [{}, {"strategy": "online"}, {"method": "radau"}])
@pytest.mark.parametrize(("force", "holds"), [(4.0, True), (6.0, False)])
def test_engaging_is_an_impact_and_then_the_force_counts(options, force, holds):
    """The engaged body comes to rest; with more force than the limit the lock releases in the same instant."""
    model = CATCH | {"loads": [{"force": f"({force} N)*N.x", "at": "P"}]}
    ended = fsm_dyn.simulate(fsm_dyn.compile(model), until=0.6, **options)
    caught = ended.transitions[0]
    assert caught.time == pytest.approx(0.5)
    assert caught.impulse["magnet"] == pytest.approx(-MASS * (1.0 + force / MASS * 0.5))
    assert (len(ended.transitions) == 1) == holds
    assert ended.modes[-1] == ("held" if holds else "loose")
    if not holds:
        assert ended.transitions[1].time == caught.time
        assert ended.transitions[1].cause.startswith("magnet lets go")


def test_a_transition_waits_for_it():
    model = changed(memory={"count": 0}, transitions=[{"from": "held", "on": "magnet lets go", "set": {"count": "1"}}])
    ended = fsm_dyn.simulate(fsm_dyn.compile(model), until=1.0)
    assert ended["count"][0] == 0
    assert ended["count"][-1] == 1


def test_explained_drawn_and_kept(tmp_path):
    graph = fsm_dyn.compile(BLOCK)
    ended = fsm_dyn.simulate(graph, until=1.0)
    (magnet,) = ended.explain(0.3).contacts
    assert (magnet.state, magnet.normal, magnet.limit) == ("engaged", pytest.approx(-3.0), 5.0)
    assert {guard.guard for guard in ended.explain(0.3).guards} == {"holding limit of magnet"}
    ((_, _, edge),) = graph.nx.edges(data=True)
    assert (edge["cause"], edge["event"], edge["reset"]) == ("magnet lets go", "lets go", "")
    graph.save(tmp_path / "graph.json")
    again = fsm_dyn.simulate(fsm_dyn.open_graph(tmp_path / "graph.json"), until=1.0)
    assert again.q.tobytes() == ended.q.tobytes()
    assert fsm_dyn.verify(BLOCK).passed


def test_sensitivities_pass_where_it_lets_go():
    """A stronger magnet holds for longer: v = k (t² - (F/k)²) / 2m."""
    found = sensitivities(fsm_dyn.compile(BLOCK), until=2.0, by_parameters=["F"]).by_parameters["F"]
    assert found[1] == pytest.approx(-LIMIT / RAMP / MASS)


def test_equilibrium_only_within_the_limit():
    hung = changed(loads=[{"force": "k*(0.3 s)*N.x", "at": "P"}])
    assert fsm_dyn.static_equilibrium(fsm_dyn.compile(hung)).forces["magnet"] == pytest.approx(-3.0)
    with pytest.raises(ModelError, match="no static equilibrium"):
        fsm_dyn.static_equilibrium(fsm_dyn.compile(hung | {"parameters": BLOCK["parameters"] | {"F": "2.9 N"}}))


WRONG = {
    "unit": ("{position: x, holds_to: 5 m}", "the holding force of 'magnet'"),
    "negative": ("{position: x, holds_to: -5 N}", "the holding force of 'magnet' is negative"),
    "alone": ("{holds_to: 5 N}", "a lock needs one of position, velocity"),
    "both": ("{position: x, velocity: v, holds_to: 5 N}", "a lock has both 'position' and 'velocity'"),
    "key": ("{position: x, holds: 5 N}", "a lock has no key 'holds'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_are_reported_with_their_place(message_of_block, case):
    text, message = WRONG[case]
    assert message in message_of_block(f"magnet: {{lock: {text}}}")


def test_the_event_that_locks_do_not_have():
    with pytest.raises(ModelError, match="never closes") as told:
        fsm_dyn.load(changed(transitions=[{"from": "held", "on": "magnet closes", "to": "loose"}]))
    assert "magnet lets go" in str(told.value)
