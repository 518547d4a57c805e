"""Guards of the states, their zeros, and their slopes along the motion."""

from itertools import pairwise

import numpy as np
import pytest

from fsm_dyn.language import models
from fsm_dyn.runtime.abi import Event

OPENS, CLOSES, SLIDES, STICKS = Event.OPENS, Event.CLOSES, Event.SLIDES, Event.STICKS


def mass(contact, **sections):
    return {
        "fsm_dyn": 1,
        "name": "mass",
        "coordinates": ["x", "y"],
        "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}},
        "bodies": {"ball": {"center": "P", "mass": 2}},
        "contacts": {"tip": contact},
        "inputs": {"push": None, "press": None},
        "loads": [{"force": "push*N.x - press*N.y", "at": "P"}],
        **sections,
    }


SMOOTH = {"gap": "y"}
ROUGH = {"gap": "y", "slip": "dot(vel(P), N.x)", "friction": {"static": 0.5, "kinetic": 0.4}}
STICKY = {"gap": "y", "slip": "dot(vel(P), N.x)", "friction": "inf"}
RUB = {"dry_friction": {"speed": "x_dot", "static": 3, "kinetic": 1}}
LATCH = {"lock": {"velocity": "x_dot"}}


@pytest.mark.parametrize(
    ("contact", "table"),
    [
        (SMOOTH, {"open": [(CLOSES, 0)], "closed": [(OPENS, 0)]}),
        (
            ROUGH,
            {
                "open": [(CLOSES, 0)],
                "stick": [(OPENS, 0), (SLIDES, -1), (SLIDES, 1)],
                "slide": [(OPENS, 0), (STICKS, 0)],
            },
        ),
        (STICKY, {"open": [(CLOSES, 0)], "stick": [(OPENS, 0)]}),
        (RUB, {"stick": [(SLIDES, -1), (SLIDES, 1)], "slide": [(STICKS, 0)]}),
        (LATCH, {"released": [], "engaged": []}),
    ],
    ids=["smooth", "rough", "sticky", "dry friction", "lock"],
)
def test_the_table(mode_graph, contact, table):
    """The states of each kind of contact and their guards (docs/theory.md, "Contacts: states and guards")."""
    modes = mode_graph(mass(contact)).automaton.modes
    (info,) = mode_graph(mass(contact)).automaton.contacts
    found = {info.states[mode.states[0]]: [(g.event, g.direction) for g in mode.guards] for mode in modes}
    assert found == table
    assert all(guard.subject == 0 for mode in modes for guard in mode.guards)


def guards(mode_graph, contact, state, q=(0, 0), u=(0, 0), w=None, **kwargs):
    graph = mode_graph(mass(contact))
    (view,) = [view for view in graph.modes.values() if view.states["tip"] == state]
    return [value for _, value, _ in view.guards(0.0, q, u, w, **kwargs)]


def test_values(mode_graph):
    """Positive in the state, zero at its end."""
    assert guards(mode_graph, SMOOTH, "open", q=(0, 0.3)) == [0.3]
    assert guards(mode_graph, SMOOTH, "closed", w={"press": 7}) == [7]
    # normal force 10, friction limit 5, friction force -push
    assert guards(mode_graph, ROUGH, "stick", w={"press": 10, "push": 4}) == [10, 9, 1]
    assert guards(mode_graph, ROUGH, "stick", w={"press": 10, "push": -5}) == [10, 0, 10]
    assert guards(mode_graph, ROUGH, "slide", u=(-2, 0), w={"press": 10}) == [10, 2]
    # a slip turned round since the direction was fixed
    assert guards(mode_graph, ROUGH, "slide", u=(-2, 0), w={"press": 10}, directions={"tip": 1}) == [10, -2]
    assert guards(mode_graph, RUB, "stick", w={"push": 3}) == [6, 0]
    assert guards(mode_graph, RUB, "slide", u=(0.5, 0)) == [0.5]


@pytest.mark.parametrize(("push", "sigma"), [(6.0, 1), (-6.0, -1)])
def test_slip_begins_the_way_the_guard_says(mode_graph, push, sigma):
    """A push to the right passes the limit of the slide to the right, and the slide goes right."""
    graph = mode_graph(mass(ROUGH))
    stick, slide = graph.modes["tip_stick"], graph.modes["tip_slide"]
    w = {"press": 10.0, "push": push}
    directions = [guard.direction for guard in stick._mode.guards]
    fired = [d for d, (_, value, _) in zip(directions, stick.guards(0.0, [0, 0], [0, 0], w), strict=True) if value < 0]
    assert fired == [sigma]
    _, u_dot = slide.derivatives(0.0, [0, 0], [0, 0], w, directions={"tip": sigma})
    assert np.sign(u_dot[0]) == sigma
    assert u_dot[0] == pytest.approx((push - sigma * 4.0) / 2)


def test_user_defined_transitions(mode_graph):
    """Rising guards are turned over, ``both`` makes two; a mode has the guards of its outgoing transitions."""
    transitions = [
        {"from": "low", "to": "high", "when": "x - 1", "crossing": "rising"},
        {"from": "high", "to": "low", "when": "x - 1", "crossing": "falling"},
        {"from": "*", "when": "y - 2", "crossing": "both", "stop": True},
        {"from": "low", "when": "x > 3", "stop": True},
    ]
    modes = {"low": {"tip": "released"}, "high": {"tip": "engaged"}}
    graph = mode_graph(mass(LATCH, modes=modes, transitions=transitions))

    def values(mode):
        view = graph.modes[mode]
        assert {guard.event for guard in view._mode.guards} == {Event.TRANSITION}
        found = view.guards(0.0, [0.25, 0.5], [0, 0])
        return [(guard.subject, value) for guard, (_, value, _) in zip(view._mode.guards, found, strict=True)]

    assert values("low") == [(0, 0.75), (2, 1.5), (2, -1.5), (3, 2.75)]
    assert values("high") == [(1, -0.75), (2, 1.5), (2, -1.5)]


@pytest.mark.parametrize("name", models.names())
def test_slopes_along_the_motion(mode_graph, context, random_states, name):
    """The slope of every guard against a central difference along q', u' and the inputs' three rates.

    If twice the step gives another difference (a felt opening within it, forces far beyond the model's) the difference
    is no measure of a slope; nearer to the start there are states with a valid one.
    """
    graph = mode_graph(name)
    layout = graph.automaton.terms.layout
    rng = np.random.default_rng(12)
    spread = np.array([[1.0], [0.3], [0.1], [0.03], [0.01]])
    step = 3e-6
    for mode in graph.automaton.modes:
        full = mode.programs.full
        compared = np.zeros(len(mode.guards), bool)
        good = False
        for x in random_states(graph, len(spread), 11, spread):
            c = context(graph, rng.uniform(-5, 5, len(layout.w)))
            c[layout.sigma_slice] = rng.choice([-1.0, 1.0], len(layout.contacts))
            moving = [layout.w_slice, layout.w_rate_slice, layout.w_rate2_slice, layout.w_rate3_slice]
            for part in moving[1:]:
                c[part] = rng.uniform(-5, 5, len(layout.w))
            here = full.evaluate(0.4, x, c)
            if here["pivot"][0] < 0.05:
                continue
            good = True
            x[layout.u_slice] = here["u"]
            values = []
            for h in (step, -step, 2 * step, -2 * step):
                later = c.copy()
                for part, rate in pairwise(moving):
                    later[part] += h * c[rate]
                values.append(full.evaluate(0.4 + h, x + h * here["x_dot"], later)["guards"])
            slopes, check = (values[0] - values[1]) / (2 * step), (values[2] - values[3]) / (4 * step)
            size = np.abs(here["slopes"]).max(initial=1.0) + np.abs(here["guards"]).max(initial=0.0)
            smooth = np.abs(slopes - check) <= 1e-5 * np.abs(slopes) + 1e-6 * size
            compared |= smooth
            np.testing.assert_allclose(here["slopes"][smooth], slopes[smooth], rtol=1e-5, atol=1e-6 * size)
        assert compared.all() or not good, [g.text for g, seen in zip(mode.guards, compared, strict=True) if not seen]
