"""Impacts that return slip, against the closed form of a ball on a plane.

With the mass ``m``, the inertia ``k m r²`` and the slip ``s`` at the contact the tangential impulse is
``-m k/(1 + k) (1 + e_t) s``, or the friction ``mu m (1 + e) v`` where that is less; the momentum about the contact
stays.
"""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.analysis.sensitivities import sensitivities
from fsm_dyn.core.errors import FsmDynError, ModelError
from tests.exports.building import built
from tests.exports.test_c99 import check_same

R, G, DROP, K = 0.03, 9.81, 0.47, 0.4
FAST = np.sqrt(2 * G * DROP)
METHODS = [
    {}, {"strategy": "online"}, {"method": "rk4", "step": 1e-3}, {"method": "radau"}, {"method": "bdf"},
    {"method": "moreau_jean", "step": 1e-4},
]  # fmt: skip
BALL = {
    "fsm_dyn": 1,
    "name": "superball",
    "parameters": {"e": 0.9, "et": 0.6, "mu": 5},
    "coordinates": ["x", "y", "q"],
    "frames": {"B": {"parent": "N", "rotate": {"z": "q"}}},
    "points": {"C": {"from": "O", "at": "x*N.x + y*N.y"}},
    "bodies": {"ball": {"frame": "B", "center": "C", "mass": 1, "inertia": {"zz": K * R**2}}},
    "shapes": {"round": {"circle": {"frame": "B", "center": "C", "radius": R}},
               "ground": {"line": {"along": "N.x"}, "side": "N.y"}},
    "contacts": {
        "bounce": {"between": ["round", "ground"], "friction": "mu", "restitution": "e", "tangential_restitution": "et"}
    },
    "loads": [{"gravity": f"-{G}*N.y"}],
    "initial": {"y": DROP + R, "x_dot": 2, "q_dot": 40},
}  # fmt: skip
SPHERE = dict.fromkeys(("xx", "yy", "zz"), K * R**2)
SPACE = {
    **BALL,
    "coordinates": ["x", "y", "z"],
    "frames": {"B": {"parent": "N", "euler_parameters": "p"}},
    "points": {"C": {"from": "O", "at": "x*N.x + y*N.y + z*N.z"}},
    "bodies": {"ball": {"frame": "B", "center": "C", "mass": 1, "inertia": SPHERE}},
    "speeds": {"vx": "rate(x)", "vy": "rate(y)", "vz": "rate(z)",
               **{f"w{a}": f"dot(omega(B), N.{a})" for a in "xyz"}},
    "shapes": {"round": {"sphere": {"frame": "B", "center": "C", "radius": R}},
               "ground": {"plane": {"from": "O"}, "side": "N.y"}},
}  # fmt: skip


def model(**contact):
    """Return the ball with other keys of its contact; None takes one out."""
    bounce = {**BALL["contacts"]["bounce"], **contact}
    return {**BALL, "contacts": {"bounce": {key: value for key, value in bounce.items() if value is not None}}}


def after(slip, mu, e=0.9, et=0.6):
    """Return the tangential impulse of the first bounce."""
    return -np.sign(slip) * min((1 + et) * abs(slip) * K / (1 + K), mu * (1 + e) * FAST)


@pytest.fixture(scope="module")
def ball():
    return fsm_dyn.compile(BALL)


@pytest.mark.parametrize("mu", [5, 0.05])
@pytest.mark.parametrize("options", METHODS, ids=lambda o: o.get("method") or o.get("strategy", "dopri5"))
def test_one_bounce_has_the_closed_form(ball, options, mu):
    run = fsm_dyn.simulate(ball, until=0.5, parameters={"mu": mu}, **options)
    impulse = after(2 + 40 * R, mu)
    bound = (
        1e-4 if "step" in options and mu < 1 else 1e-9
    )  # the instant of an impact, and with it the friction, by a step
    assert run["x_dot"][-1] == pytest.approx(2 + impulse, rel=bound)
    assert run["q_dot"][-1] == pytest.approx(40 + impulse / (K * R), rel=bound)


def test_a_superball_keeps_its_energy_and_returns_its_spin(ball):
    run = fsm_dyn.simulate(ball, until=2.0, parameters={"e": 1, "et": 1})
    blows = [event for event in run.transitions if "bounce" in str(event)]
    assert len(blows) == 3
    assert all(abs(event.energy_after - event.energy_before) < 1e-12 for event in blows)
    assert blows[1].u_after[[0, 2]] == pytest.approx([2, 40], rel=1e-12)  # slip reversed twice


def test_momentum_about_the_ground_stays_until_the_ball_rolls(ball):
    run = fsm_dyn.simulate(ball, until=4.0, parameters={"e": 0.5, "mu": 0.3})
    momentum = K * R * run["q_dot"] - run["x_dot"]
    assert np.ptp(momentum) < 1e-9
    assert run["x_dot"][-1] == pytest.approx(-momentum[0] / (1 + K), rel=1e-9)


@pytest.mark.parametrize("mu", [5, 0.05])
@pytest.mark.parametrize("options", [{}, {"method": "moreau_jean", "step": 1e-4}], ids=["dopri5", "moreau_jean"])
def test_in_space_slip_is_returned_in_its_own_direction(options, mu):
    heading = np.array([0.6, 0.8])  # of x and z
    start = {"y": DROP + R, "vx": 2 * heading[0], "vz": 2 * heading[1], "wz": 40 * heading[0], "wx": -40 * heading[1]}
    graph = fsm_dyn.compile({**SPACE, "initial": start})
    run = fsm_dyn.simulate(graph, until=0.5, parameters={"mu": mu}, **options)
    impulse = after(2 + 40 * R, mu)
    bound = 1e-4 if options and mu < 1 else 1e-9
    assert [run["vx"][-1], run["vz"][-1]] == pytest.approx(list((2 + impulse) * heading), rel=bound)
    spin = 40 + impulse / (K * R)
    assert [run["wz"][-1], -run["wx"][-1]] == pytest.approx(list(spin * heading), rel=bound)


@pytest.mark.parametrize(
    ("contact", "text"),
    [
        ({"friction": None}, "no friction"),
        ({"restitution_law": "poisson"}, "Poisson"),
        ({"restitution": None, "compliant": {"stiffness": 1e4}}, "tangential_restitution"),
        ({"tangential_restitution": 1.5}, "from 0 to 1|0 to 1"),
    ],
)
def test_what_it_does_not_go_with_is_refused(contact, text):
    with pytest.raises(ModelError, match=text):
        fsm_dyn.compile(model(**contact))


def test_derivatives_past_such_an_impact_are_refused_by_name(ball):
    with pytest.raises(FsmDynError, match="remove tangential_restitution"):
        sensitivities(ball, 0.5, by_parameters=("e",))


def test_an_export_has_the_bits_of_the_run(ball, tmp_path):
    check_same(ball, built(fsm_dyn.export(ball, tmp_path), "superball"))
