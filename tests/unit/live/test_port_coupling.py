"""Ports as part of the model: the coupler against Hooke and Newton, and ports refused."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.language.loader import load
from fsm_dyn.live.device_map import add_couplers, coupled_ports

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
    (port,) = coupled_ports(fsm_dyn.load("shopping_cart"))
    assert [axis.name for axis in port.axes] == ["handle_1", "handle_2", "handle_rotation"]
    assert [axis.is_rotational for axis in port.axes] == [False, False, True]


def test_the_text_of_a_coupled_model_is_that_of_its_file():
    """Comments and all: couplers are data, made of one line; read again it is the same mechanism."""
    model = fsm_dyn.load("virtual_wall")
    assert "#" in model.text
    held = add_couplers(model)
    assert held.text.rstrip() == f"{model.text.rstrip()}\nport_coupling: impedance"
    again = load("again", text=held.text)
    assert (again.digest, again.coupled_ports) == (held.digest, held.coupled_ports)
    assert add_couplers(model, admittance=True).coupled_ports[0].inputs == (
        "handle_1_applied_force",
        "handle_2_applied_force",
    )


def test_a_variant_chosen_is_coupled_without_the_others():
    text = fsm_dyn.load("virtual_wall").text + "\nvariants:\n  light: {parameters: {m: 0.1 kg}}\n"
    held = add_couplers(load("wall", text=text, variant="light"))
    assert (held.variants, held.parameters["m"].values[0].text) == ((), "0.1 kg")
    assert add_couplers(load("wall", text=text)).variants == ()


def test_the_coupler_pulls_as_hooke_says():
    graph = fsm_dyn.compile(add_couplers(fsm_dyn.load(PARTICLE)), {"hand_1_stiffness": 50.0, "hand_1_damping": 3.0})
    w = {"hand_1_device": 0.4, "hand_1_device_rate": 1.5, "hand_1_engagement": 0.5}
    (mode,) = graph.modes.values()
    _, u_dot = mode.derivatives(0.0, [0.1, 0.0], [0.25, 0.0], w)
    force = 0.5 * (50.0 * (0.4 - 0.1) + 3.0 * (1.5 - 0.25))
    np.testing.assert_allclose(u_dot, [force / 2.0, 0.0], rtol=1e-14)


def test_a_slanted_axis_pulls_along_itself():
    graph = fsm_dyn.compile(add_couplers(fsm_dyn.load(PARTICLE)), {"hand_2_stiffness": 50.0})
    (mode,) = graph.modes.values()
    _, u_dot = mode.derivatives(0.0, [0.1, 0.2], [0.0, 0.0], {"hand_2_device": 0.5, "hand_2_engagement": 1.0})
    force = 50.0 * (0.5 - (0.6 * 0.1 + 0.8 * 0.2))
    np.testing.assert_allclose(u_dot, np.array([0.6, 0.8]) * force / 2.0, rtol=1e-14)


def test_an_open_grip_leaves_the_model_alone():
    model = fsm_dyn.load("shopping_cart")
    free = fsm_dyn.simulate(fsm_dyn.compile(model), until=6.0)
    loose = fsm_dyn.simulate(
        fsm_dyn.compile(add_couplers(model)), until=6.0, inputs={"handle_1_device": 3.0, "handle_2_device_rate": 1.0}
    )
    assert [x.target for x in free.transitions] == [x.target for x in loose.transitions]
    # two orders above the tolerance of the runs: their steps differ, the motion does not
    np.testing.assert_allclose(loose.q[-1], free.q[-1], atol=1e-7)


@pytest.mark.parametrize("device", [0.3, 3.0, -3.0])
def test_the_twist_is_free_of_jumps_where_the_angle_wraps(device):
    """The torque follows the angle from body to device between -pi and pi, wherever the body stands."""
    graph = fsm_dyn.compile(add_couplers(fsm_dyn.load("shopping_cart")), {"handle_rotation_stiffness": 2.0})
    names = list(graph.automaton.mechanism.outputs)
    c = np.zeros(graph.automaton.terms.layout.n_c)
    c[: len(graph.parameters)] = graph.parameters
    layout = graph.automaton.terms.layout
    for name, value in {"handle_rotation_device": device, "handle_rotation_engagement": 1.0}.items():
        c[layout.w_slice.start + layout.w.index(name)] = value
    x = np.zeros(layout.n_x)
    for angle in (3.1, 3.2, -3.1, 6.5):
        x[layout.q.index("q3")] = angle
        torque = graph.automaton.report.evaluate(0.0, x, c)["outputs"][names.index("handle_rotation_force")]
        lead = (device - angle + np.pi) % (2.0 * np.pi) - np.pi
        assert torque == pytest.approx(2.0 * lead, abs=1e-12)


def test_a_coordinate_as_a_port_follows_its_unit():
    held = add_couplers(fsm_dyn.load("latch"))
    assert held.parameters["handle_1_stiffness"].values[0].text == "200.0 N/m"
    model = {**PARTICLE, "coordinates": {"x": "m", "y": "m"}, "ports": {"hand": {"coordinate": "y"}}}
    graph = fsm_dyn.compile(add_couplers(fsm_dyn.load(model)), {"hand_1_stiffness": 8.0})
    (mode,) = graph.modes.values()
    _, u_dot = mode.derivatives(0.0, [0.0, 0.1], [0.0, 0.0], {"hand_1_device": 0.6, "hand_1_engagement": 1.0})
    np.testing.assert_allclose(u_dot, [0.0, 2.0], rtol=1e-14)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ports": {}}, "no port"),
        ({"ports": {"hand": {"point": "P", "body": "b", "axes": ["N.x"], "rotation": "N.z"}}}, "rotation"),
        ({"parameters": {"m": "2 kg", "hand_1_stiffness": "3 N/m"}}, "taken"),
    ],
)
def test_what_cannot_be_held_is_refused(change, words):
    with pytest.raises(InputError, match=words):
        add_couplers(fsm_dyn.load({**PARTICLE, **change}))


def cart_along_itself():
    text = fsm_dyn.load("shopping_cart").text
    return load("cart", text=text.replace("axes: [N.x, N.y], rotation: N.z", "axes: [B.x, N.y], rotation: B.z"))


def test_an_axis_that_turns_with_a_body_pulls_along_the_body():
    """Against the same force written by hand along B.x, wherever the basket points."""
    graph = fsm_dyn.compile(add_couplers(cart_along_itself()), {"handle_1_stiffness": 50.0, "handle_1_damping": 3.0})
    free = fsm_dyn.compile("shopping_cart")
    names, n_u = graph.automaton.terms.layout, len(free.automaton.terms.layout.u)
    sense = {"caster_axis": 1.0}
    push = {"handle_1_device": 0.3, "handle_1_device_rate": 0.2, "handle_1_engagement": 1.0}
    for angle in (0.0, 1.1, -2.5):
        q = np.zeros(len(names.q))
        q[names.q.index("q3")], q[names.q.index("q4")], q[names.q.index("handle_1_displacement")] = angle, 0.4, 0.1
        u = np.zeros(len(names.u))
        u[names.u.index("u1")] = 0.5
        force = 50.0 * (0.3 - 0.1) + 3.0 * (0.2 - 0.5)
        mode = free.modes["rolling"]
        _, wanted = mode.derivatives(0.0, [0.0, 0.0, angle, 0.4], u[:n_u], {"push": force}, directions=sense)
        _, found = graph.modes["rolling"].derivatives(0.0, q, u, push, directions=sense)
        np.testing.assert_allclose(found[:n_u], wanted, rtol=1e-11)


def test_the_way_along_a_body_is_the_integral_of_the_velocity():
    """Uncoupled, the way is the integral of the cart's speed along itself, and the angle its rotation."""
    graph = fsm_dyn.compile(add_couplers(cart_along_itself()))
    run = fsm_dyn.simulate(graph, until=3.0, rtol=1e-10, atol=1e-12, inputs={"push": 5.0, "turn": "sin(3*t)"})
    names = graph.automaton.terms.layout
    way, turned = (run.q[:, names.q.index(f"handle_{what}_displacement")] for what in ("1", "rotation"))
    speed = run.u[:, names.u.index("u1")]
    # trapezoids over the steps of the run: second order in them
    t = np.linspace(0.0, 3.0, 20_001)
    added = np.trapezoid(np.interp(t, run.t, speed), t)
    assert way[-1] == pytest.approx(added, abs=2e-3)
    assert turned[-1] == pytest.approx(run.q[-1, names.q.index("q3")] - run.q[0, names.q.index("q3")], abs=1e-9)


def test_power_is_the_same_on_both_sides_along_a_body():
    """The coupler alone, without damping: the energy in its spring changes by the work of both sides."""
    graph = fsm_dyn.compile(add_couplers(cart_along_itself()), {"handle_1_damping": 0.0, "handle_1_stiffness": 80.0})
    inputs = {
        "handle_1_device": "0.2*sin(2*t)",
        "handle_1_device_rate": "0.4*cos(2*t)",
        "handle_1_engagement": 1.0,
        "turn": "sin(3*t)",
    }
    run = fsm_dyn.simulate(graph, until=2.0, rtol=1e-10, atol=1e-12, inputs=inputs)
    names = graph.automaton.terms.layout
    at = np.linspace(0.0, 2.0, 4001)
    dense = [run.at(float(t)) for t in at]
    way = np.array([x.q[names.q.index("handle_1_displacement")] for x in dense])
    speed = np.array([x.u[names.u.index("u1")] for x in dense])
    lead = 0.2 * np.sin(2 * at) - way
    put_in = np.trapezoid(80.0 * lead * (0.4 * np.cos(2 * at) - speed), at)
    stored = 40.0 * (lead[-1] ** 2 - lead[0] ** 2)
    assert np.abs(lead).max() > 0.01
    assert put_in == pytest.approx(stored, abs=1e-6)  # trapezoids of 0.5 ms
