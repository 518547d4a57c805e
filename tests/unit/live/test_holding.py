"""Ports as part of the model: the coupler against Hooke and Newton, and what cannot be held."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.errors import InputError
from fsm_dyn.live.holding import held_ports, hold

PARTICLE = {
    "fsm_dyn": 1,
    "name": "particle",
    "parameters": {"m": "2 kg"},
    "coordinates": {"x": "m", "y": "m"},
    "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}},
    "bodies": {"b": {"center": "P", "mass": "m"}},
    "ports": {"hand": {"point": "P", "body": "b", "axes": ["N.x", "0.6*N.x + 0.8*N.y"]}},
}


def test_names_of_a_port_with_a_twist():
    (port,) = held_ports(fsm_dyn.load("shopping_cart"))
    assert [axis.name for axis in port.axes] == ["handle_1", "handle_2", "handle_twist"]
    assert [axis.turns for axis in port.axes] == [False, False, True]


def test_the_coupler_pulls_as_hooke_says():
    graph = fsm_dyn.compile(hold(fsm_dyn.load(PARTICLE)), {"hand_1_stiffness": 50.0, "hand_1_damping": 3.0})
    w = {"hand_1": 0.4, "hand_1_rate": 1.5, "hand_1_grip": 0.5}
    (mode,) = graph.modes.values()
    _, u_dot = mode.derivatives(0.0, [0.1, 0.0], [0.25, 0.0], w)
    force = 0.5 * (50.0 * (0.4 - 0.1) + 3.0 * (1.5 - 0.25))
    np.testing.assert_allclose(u_dot, [force / 2.0, 0.0], rtol=1e-14)


def test_a_slanted_axis_pulls_along_itself():
    graph = fsm_dyn.compile(hold(fsm_dyn.load(PARTICLE)), {"hand_2_stiffness": 50.0})
    (mode,) = graph.modes.values()
    _, u_dot = mode.derivatives(0.0, [0.1, 0.2], [0.0, 0.0], {"hand_2": 0.5, "hand_2_grip": 1.0})
    force = 50.0 * (0.5 - (0.6 * 0.1 + 0.8 * 0.2))
    np.testing.assert_allclose(u_dot, np.array([0.6, 0.8]) * force / 2.0, rtol=1e-14)


def test_an_open_grip_leaves_the_model_alone():
    model = fsm_dyn.load("shopping_cart")
    free = fsm_dyn.simulate(fsm_dyn.compile(model), until=6.0)
    loose = fsm_dyn.simulate(fsm_dyn.compile(hold(model)), until=6.0, inputs={"handle_1": 3.0, "handle_2_rate": 1.0})
    assert [x.target for x in free.transitions] == [x.target for x in loose.transitions]
    # two orders above the tolerance of the runs: their steps differ, the motion does not
    np.testing.assert_allclose(loose.q[-1], free.q[-1], atol=1e-7)


@pytest.mark.parametrize("device", [0.3, 3.0, -3.0])
def test_the_twist_is_free_of_jumps_where_the_angle_wraps(device):
    """The torque follows the angle from body to device between -pi and pi, wherever the body stands."""
    graph = fsm_dyn.compile(hold(fsm_dyn.load("shopping_cart")), {"handle_twist_stiffness": 2.0})
    names = list(graph.automaton.mechanism.outputs)
    c = np.zeros(graph.automaton.terms.layout.n_c)
    c[: len(graph.parameters)] = graph.parameters
    layout = graph.automaton.terms.layout
    for name, value in {"handle_twist": device, "handle_twist_grip": 1.0}.items():
        c[layout.w_slice.start + layout.w.index(name)] = value
    x = np.zeros(layout.n_x)
    for angle in (3.1, 3.2, -3.1, 6.5):
        x[layout.q.index("q3")] = angle
        torque = graph.automaton.report.evaluate(0.0, x, c)["outputs"][names.index("handle_twist_force")]
        lead = (device - angle + np.pi) % (2.0 * np.pi) - np.pi
        assert torque == pytest.approx(2.0 * lead, abs=1e-12)


def test_a_coordinate_as_a_port_follows_its_unit():
    held = hold(fsm_dyn.load("latch"))
    assert held.parameters["handle_1_stiffness"].values[0].text == "200.0 N/m"
    model = {**PARTICLE, "coordinates": {"x": "m", "y": "m"}, "ports": {"hand": {"coordinate": "y"}}}
    graph = fsm_dyn.compile(hold(fsm_dyn.load(model)), {"hand_1_stiffness": 8.0})
    (mode,) = graph.modes.values()
    _, u_dot = mode.derivatives(0.0, [0.0, 0.1], [0.0, 0.0], {"hand_1": 0.6, "hand_1_grip": 1.0})
    np.testing.assert_allclose(u_dot, [0.0, 2.0], rtol=1e-14)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ports": {}}, "no port"),
        ({"ports": {"hand": {"point": "P", "body": "b", "axes": ["N.x"], "twist": "N.z"}}}, "twist"),
        ({"parameters": {"m": "2 kg", "hand_1_stiffness": "3 N/m"}}, "taken"),
    ],
)
def test_what_cannot_be_held_is_refused(change, words):
    with pytest.raises(InputError, match=words):
        hold(fsm_dyn.load({**PARTICLE, **change}))


def test_an_axis_that_turns_with_a_body_is_refused():
    text = fsm_dyn.load("shopping_cart").text.replace("axes: [N.x, N.y]", "axes: [B.x, N.y]")
    from fsm_dyn.spec import load

    with pytest.raises(InputError, match="turns with a body"):
        hold(load("cart", text=text))
