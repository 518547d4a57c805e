"""Mechanisms with one freedom against S. K. Saha and J. Angeles, The formulation of kinematic constraints.

Their equation of motion (35) is ``I ψ'' = C ψ' + τ``.  As ``C ψ' = -½ dI/dψ ψ'²``, the closed form of I and of the
joint rates, (31)-(34), (42)-(45), (54)-(55), gives everything; derivatives by ψ are central differences of closed
forms, with a step of 1e-5 good to 1e-9 of their size, which sets the tolerance.
"""

import re
from pathlib import Path

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.language import models
from fsm_dyn.language.loader import load

STEP = 1e-5
LIMIT = 2e-8  # relative: the differences of closed forms
RIGHT_ANGLES = [0.0, 0.5 * np.pi, np.pi, -0.5 * np.pi]
ANGLES = [*RIGHT_ANGLES, 0.3, 1.1, 2.4, -2.0]


def slope(function, at):
    return (function(at + STEP) - function(at - STEP)) / (2.0 * STEP)


def length2(v):
    return float(v @ v)


def along(angle):
    return np.array([np.cos(angle), np.sin(angle)])


def across(v):
    return np.array([-v[1], v[0]])  # E v of the paper


# -- four-bar, section 4.1 ------------------------------------------------------------------------------------


class FourBar:
    """Closed form of the four-bar with the coupler above: angles of coupler and rocker, ratios, inertia, potential."""

    def __init__(self, p):
        self.p = p

    def angles(self, psi):
        p = self.p
        d = np.array([p["a0"], 0.0]) - p["a1"] * along(psi)
        r = np.hypot(*d)
        theta = np.arctan2(d[1], d[0]) + np.arccos((r**2 + p["a2"] ** 2 - p["a3"] ** 2) / (2.0 * r * p["a2"]))
        end = p["a1"] * along(psi) + p["a2"] * along(theta) - np.array([p["a0"], 0.0])
        return theta, np.arctan2(end[1], end[0])

    def ratios(self, psi):
        p = self.p
        theta, phi = self.angles(psi)
        # a1 E e(psi) + r_theta a2 E e(theta) = r_phi a3 E e(phi): (30) with the rocker drawn from the ground
        J = np.column_stack([p["a2"] * across(along(theta)), -p["a3"] * across(along(phi))])
        return np.linalg.solve(J, -p["a1"] * across(along(psi)))

    def inertia(self, psi):
        p = self.p
        theta, _ = self.angles(psi)
        r_theta, r_phi = self.ratios(psi)
        a1, r2 = p["a1"] * along(psi), 0.5 * p["a2"] * along(theta)
        bars = [p[f"m{i}"] * p[f"a{i}"] ** 2 / 12.0 for i in (1, 2, 3)]
        return (
            bars[0] + r_theta**2 * bars[1] + r_phi**2 * bars[2] + p["m1"] * length2(a1 / 2.0)
            + p["m2"] * length2(a1 + r_theta * r2) + p["m3"] * r_phi**2 * (p["a3"] / 2.0) ** 2
        )  # fmt: skip  # (32)

    def potential(self, psi):
        p = self.p
        theta, phi = self.angles(psi)
        y1, y3 = p["a1"] / 2.0 * np.sin(psi), p["a3"] / 2.0 * np.sin(phi)
        y2 = p["a1"] * np.sin(psi) + p["a2"] / 2.0 * np.sin(theta)
        return p["g"] * (p["m1"] * y1 + p["m2"] * y2 + p["m3"] * y3)


@pytest.fixture(scope="module")
def four_bar(bench):
    return bench("four_bar")


@pytest.mark.parametrize("psi", ANGLES)
def test_four_bar_moves_as_the_closed_form_does(four_bar, psi):
    closed = FourBar(four_bar.p)
    theta, phi = closed.angles(psi)
    rate = 3.0
    q, u = four_bar.state({"crank_pin": psi}, {"crank_pin_dot": rate}, {"elbow": theta - psi, "rocker_pin": phi})
    r_theta, r_phi = closed.ratios(psi)
    np.testing.assert_allclose(u, [rate, (r_theta - 1.0) * rate, r_phi * rate], rtol=0, atol=1e-11)  # (31)
    inertia = closed.inertia(psi)
    wanted = (-0.5 * slope(closed.inertia, psi) * rate**2 - slope(closed.potential, psi)) / inertia  # (33)-(35)
    found = four_bar.rates(q, u)["crank_pin_dot"]
    assert abs(found - wanted) <= LIMIT * max(1.0, abs(wanted))


@pytest.mark.parametrize("psi", ANGLES)
def test_force_in_the_loop_is_what_the_rocker_needs(four_bar, psi):
    """Newton and Euler for the rocker alone, (22)-(23): moments about its fixed hinge."""
    p, closed = four_bar.p, FourBar(four_bar.p)
    theta, phi = closed.angles(psi)
    q, u = four_bar.state({"crank_pin": psi}, {"crank_pin_dot": 3.0}, {"elbow": theta - psi, "rocker_pin": phi})
    forces = four_bar.mode.contact_forces(0.0, q, u)
    force = np.array(
        [float(np.ravel(forces["loop_x"])[0]), float(np.ravel(forces["loop_y"])[0])]
    )  # on the rocker, at its end
    arm = p["a3"] * along(phi)
    moment = arm[0] * force[1] - arm[1] * force[0] - p["m3"] * p["g"] * p["a3"] / 2.0 * np.cos(phi)
    inertia = p["m3"] * p["a3"] ** 2 / 3.0
    wanted = inertia * four_bar.rates(q, u)["rocker_pin_dot"]
    assert abs(moment - wanted) <= 1e-10 * max(1.0, np.abs(force).max())


def test_a_crank_comes_through_all_of_a_turn(four_bar):
    """The crank is driven past the dead points of the rocker; energy stays, the loop stays closed."""
    run = fsm_dyn.simulate(four_bar.graph, 3.0, initial={"crank_pin_dot": 20.0}, rtol=1e-10, atol=1e-12)
    assert run.outcome.name == "done"
    assert run.q[-1, 0] - run.q[0, 0] > 4.0 * np.pi
    assert run.energy.relative_residual < 1e-7


def test_change_points_of_a_parallelogram_are_passed():
    """All four bars in one line: the loop loses a row there.  A parallelogram that goes through as one has a constant
    inertia and is a pendulum, I ψ'' = -dV/dψ, integrated here by itself."""
    equal = {"a2": 0.3, "a3": 0.1}
    graph = fsm_dyn.compile("four_bar", parameters=equal)
    begin = {"crank_pin": 1.0, "crank_pin_dot": 25.0}
    mechanism = fsm_dyn.load("four_bar")
    assert mechanism.joints["loop"].rows[:2] == ("loop_x", "loop_y")
    run = fsm_dyn.simulate(graph, 1.0, initial=begin, rtol=1e-11, atol=1e-12)
    assert run.outcome.name == "done"
    p = dict(zip(graph.automaton.terms.layout.p, graph.parameters, strict=True))
    m1, m2, m3, a1, g = p["m1"], p["m2"], p["m3"], p["a1"], p["g"]
    inertia = (m1 / 3.0 + m2 + m3 / 3.0) * a1**2
    weight = g * a1 * (m1 / 2.0 + m2 + m3 / 2.0)
    psi, rate, h = 1.0, 25.0, 1e-4
    for _ in range(10000):  # Runge and Kutta; 1e-4 s at 25 rad/s leaves 1e-10
        k = []
        for c in (0.0, 0.5, 0.5, 1.0):
            at = (psi + c * h * (k[-1][0] if k else 0.0), rate + c * h * (k[-1][1] if k else 0.0))
            k.append((at[1], -weight * np.cos(at[0]) / inertia))
        psi += h / 6.0 * (k[0][0] + 2.0 * k[1][0] + 2.0 * k[2][0] + k[3][0])
        rate += h / 6.0 * (k[0][1] + 2.0 * k[1][1] + 2.0 * k[2][1] + k[3][1])
    assert psi > 4.0 * np.pi
    assert abs(run.q[-1, 0] - psi) < 1e-6
    np.testing.assert_allclose(run.q[:, 0] + run.q[:, 1], 0.0, atol=1e-6)  # the coupler stays level
    np.testing.assert_allclose(run.q[:, 2], run.q[:, 0], atol=1e-6)


# -- slider-crank, section 4.2 --------------------------------------------------------------------------------


class SliderCrank:
    def __init__(self, p):
        self.p = p

    def rod(self, psi):
        return np.arcsin(-self.p["a1"] * np.sin(psi) / self.p["a2"])

    def reach(self, psi):
        return self.p["a1"] * np.cos(psi) + self.p["a2"] * np.cos(self.rod(psi))

    def ratios(self, psi):
        p = self.p
        J = np.column_stack([p["a2"] * across(along(self.rod(psi))), [-1.0, 0.0]])
        return np.linalg.solve(J, -p["a1"] * across(along(psi)))  # (42)

    def inertia(self, psi):
        p = self.p
        r_theta, r_s = self.ratios(psi)
        a1, r2 = p["a1"] * along(psi), p["a2"] / 3.0 * along(self.rod(psi))
        return (
            p["I1"] + p["m1"] * length2(a1 / 2.0) + r_theta**2 * p["m2"] * p["a2"] ** 2 / 12.0
            + p["m2"] * length2(a1 + r_theta * r2) + p["m3"] * r_s**2
        )  # fmt: skip  # (43)

    def potential(self, psi):
        p = self.p
        y2 = p["a1"] * np.sin(psi) + p["a2"] / 3.0 * np.sin(self.rod(psi))
        return p["g"] * (p["m1"] * p["a1"] / 2.0 * np.sin(psi) + p["m2"] * y2)


@pytest.mark.parametrize("psi", ANGLES)
def test_slider_crank_moves_as_the_closed_form_does(bench, psi):
    model = bench("slider_crank")
    closed, rate, p = SliderCrank(model.p), -8.0, model.p
    guess = {"big_end": closed.rod(psi) - psi, "guide": closed.reach(psi)}
    q, u = model.state({"crank_pin": psi}, {"crank_pin_dot": rate}, guess)
    r_theta, r_s = closed.ratios(psi)
    np.testing.assert_allclose(u, [rate, (r_theta - 1.0) * rate, r_s * rate], rtol=0, atol=1e-11)
    torque = -slope(closed.potential, psi) - p["c"] * rate  # (45), no pressure at t = 0
    wanted = (-0.5 * slope(closed.inertia, psi) * rate**2 + torque) / closed.inertia(psi)  # (44), (35)
    rates = model.rates(q, u)
    assert abs(rates["crank_pin_dot"] - wanted) <= LIMIT * max(1.0, abs(wanted))
    # (39): along the guide only the rod pushes the slider
    push = float(np.ravel(model.mode.contact_forces(0.0, q, u)["small_end_x"])[0])
    assert abs(push - p["m3"] * rates["guide_dot"]) <= 1e-10 * max(1.0, abs(push))


# -- cam with a roller, section 4.4 ---------------------------------------------------------------------------


class RollerCam:
    def __init__(self, p):
        self.p = p

    def lift(self, psi):
        p = self.p
        return p["d"] * np.sin(psi) + np.sqrt((p["R"] + p["b"]) ** 2 - (p["d"] * np.cos(psi)) ** 2)

    def turn(self, psi):
        """dθ/dψ of the roller from ``s' j + θ' E r2 = ψ' E a1`` at the place of contact, across the line of centres."""
        p = self.p
        centre = p["d"] * along(psi)
        n = (np.array([0.0, self.lift(psi)]) - centre) / (p["R"] + p["b"])
        tangent = across(n)
        place = centre + p["R"] * n
        speed = tangent @ (across(place) - np.array([0.0, slope(self.lift, psi)]))
        return speed / (tangent @ across(-p["b"] * n))

    def inertia(self, psi):
        p = self.p
        rise = slope(self.lift, psi)
        return p["I1"] + p["m1"] * p["d"] ** 2 + p["I2"] * self.turn(psi) ** 2 + (p["m2"] + p["m3"]) * rise**2

    def potential(self, psi):
        p, s = self.p, self.lift(psi)
        weight = p["m1"] * p["d"] * np.sin(psi) + (p["m2"] + p["m3"]) * s
        return p["g"] * weight + 0.5 * p["k"] * (s - 0.03) ** 2


@pytest.mark.parametrize("psi", ANGLES)
def test_roller_follower_moves_as_the_closed_form_does(bench, psi):
    model = bench("cam_roller_follower")
    closed, rate = RollerCam(model.p), 12.0
    q, u = model.state({"shaft": psi}, {"shaft_dot": rate}, {"guide": closed.lift(psi)})
    np.testing.assert_allclose(u, [rate, slope(closed.lift, psi) * rate, closed.turn(psi) * rate], atol=1e-8)
    wanted = (-0.5 * slope(closed.inertia, psi) * rate**2 - slope(closed.potential, psi)) / closed.inertia(psi)
    # a difference of differences with a step of 1e-5: rounding leaves 1e-6
    assert abs(model.rates(q, u)["shaft_dot"] - wanted) <= 1e-5 * max(1.0, abs(wanted))


# -- three bodies, thesis chapter III -------------------------------------------------------------------------


def test_three_bodies_satisfy_the_printed_equation(bench):
    """(3.91), its terms as printed, with the load Q1 on body 1; S1 and S2 turn components to the body before."""
    model = bench("planar_three_body")
    p = model.p
    h, a, b, c = (np.array([p[f"{name}[0]"], p[f"{name}[1]"]]) for name in "habc")
    m1, m2, m3, i1, i2, i3 = (p[name] for name in ("m1", "m2", "m3", "I1", "I2", "I3"))
    random = np.random.default_rng(3)
    for _ in range(10):
        q, u = random.uniform(-1.5, 1.5, 3), random.uniform(-3.0, 3.0, 3)
        load = random.uniform(0.0, 50.0)
        rates = dict(zip(model.layout.u, model.mode.derivatives(0.0, q, u, [load])[1], strict=True))
        (w1, w2, v3), (A1, A2, A3) = u, (rates["q1_dot"], rates["q2_dot"], rates["q3_dot"])
        S1, S2 = (np.array([[np.cos(x), -np.sin(x)], [np.sin(x), np.cos(x)]]) for x in q[:2])
        r3 = np.array([q[2] + c[0], c[1]])
        E, H = across(h), h
        terms = [
            A1 * (i1 + i2 + i3), A2 * (i2 + i3), m1 * A1 * length2(a),
            m2 * A1 * length2(h), m2 * (2 * A1 + A2) * (E @ S2 @ across(b)),
            m2 * (2 * w1 + w2) * w2 * (-(E @ S2 @ b)), m2 * (A1 + A2) * length2(b),
            m3 * A1 * length2(h), m3 * A3 * (E @ S2 @ [1.0, 0.0]), m3 * (2 * A1 + A2) * (E @ S2 @ across(r3)),
            m3 * 2 * (w1 + w2) * v3 * (H @ S2 @ [1.0, 0.0]), m3 * (2 * w1 + w2) * w2 * (-(E @ S2 @ r3)),
            -m3 * A3 * c[1], m3 * (A1 + A2) * length2(r3), m3 * 2 * (w1 + w2) * v3 * (q[2] + c[0]),
        ]  # fmt: skip
        terms += [p["k1"] * q[0], -np.array([0.0, -load]) @ S1 @ across(a)]
        assert abs(sum(terms)) <= 1e-11 * max(abs(term) for term in terms)


def test_the_load_of_three_bodies_is_a_scenario():
    run = fsm_dyn.simulate(fsm_dyn.compile("planar_three_body"), 0.5, scenario="loaded")
    assert run.energy.work["weight"][-1] == pytest.approx(-30 * (height(run, -1) - height(run, 0)), rel=1e-8)


def height(run, row):
    """Return the height of the mass centre of body 1."""
    q = run["q1"][row]
    return 0.3 * np.sin(q) + 0.05 * np.cos(q)


# -- cam with a flat face, section 4.3 ---------------------------------------------------------------------------


@pytest.mark.parametrize("psi", ANGLES)
def test_flat_follower_moves_as_the_corrected_closed_form_does(psi):
    """I as printed, ``I1 + m1 |r1|² + m2 (i·a1)²``.  The C printed after (53) has ``m1 |r1|²`` in it and the wrong
    sign: it must be ``-½ dI/dψ ψ' = m2 (i·a1)(j·a1) ψ'``, m1 being on a circle and ``s' = (i·a1) ψ'``."""
    text = Path(models.find("cam_flat_follower")).read_text(encoding="utf-8")
    for section in ("constraints", "inputs", "schedule", "modes", "initial", "names", "view"):
        text = re.sub(rf"^{section}:.*\n(?:^[ ].*\n)*", "", text, flags=re.MULTILINE)
    mechanism = load(text=text + "modes: {following: {face: closed}}\n")
    graph = fsm_dyn.compile(mechanism)
    p = dict(zip(graph.automaton.terms.layout.p, graph.parameters, strict=True))
    rate, a1 = 9.0, p["d"] * along(psi)
    rise = a1[1] + p["r"]
    q, u = [psi, rise], [rate, a1[0] * rate]
    mode = graph.modes["following"]
    inertia = p["J"] + 0.5 * p["d"] ** 2 + p["m"] * a1[0] ** 2
    push = p["k"] * (rise - p["r"]) + p["preload"] + p["c"] * u[1]
    weight = 0.5 * p["g"] * a1[0] + a1[0] * (p["m"] * p["g"] + push)
    onward = (p["m"] * a1[0] * a1[1] * rate**2 - weight) / inertia
    found = mode.derivatives(0.0, q, u)[1]
    assert abs(found[0] - onward) <= 1e-11 * abs(onward)
    # (50)-(52): the force on the face lifts the follower against weight and spring
    lift = p["m"] * (a1[0] * onward - a1[1] * rate**2 + p["g"]) + push
    assert abs(float(np.ravel(mode.contact_forces(0.0, q, u)["face"])[0]) - lift) <= 1e-11 * abs(lift)
