"""Contacts that yield, against closed forms.

A mass m strikes with v0 a surface with the force K δ^p (1 + c δ') and no other force acts.  Then

- m φ(v) + K δ^(p + 1) / (p + 1) is constant with φ(v) = v/c - ln(1 + c v)/c² for the speed v inwards (φ = v²/2 for
  c = 0), so the greatest depth is ((p + 1) m φ(v0) / K)^(1/(p + 1)) and the speed of rebound v1 solves φ(-v1) = φ(v0);
- for p = 1, c = 0 the contact lasts half a period, π sqrt(m/K).

Integration is asked for 1e-10 and gives some 1e-9; tolerances are 1e-8 of the quantity unless said otherwise.
"""

import numpy as np
import pytest
from scipy.optimize import brentq

import fsm_dyn

CLOSE = 1e-8
FINE = {"rtol": 1e-11, "atol": 1e-13}


@pytest.fixture(scope="module")
def felt():
    return fsm_dyn.compile("felt_drop")


def strike(graph, v0, until=0.1, **parameters):
    """Run a mass that flies with v0 onto the surface from 1 mm above it, without gravity."""
    values = {"g": 0.0, **parameters}
    return fsm_dyn.simulate(graph, until, parameters=values, initial={"y": 1e-3, "v": -v0}, **FINE)


def phi(v, c):
    return v / c - np.log1p(c * v) / c**2


def test_linear_spring_holds_half_a_period_and_returns_the_speed(felt):
    m, k, v0 = 0.008, 5e3, 2.0
    run = strike(felt, v0, p=1.0, c=0.0, K=k, m=m)
    closes, opens = (x.time for x in run.transitions)
    assert closes == pytest.approx(1e-3 / v0, rel=CLOSE)
    assert opens - closes == pytest.approx(np.pi * np.sqrt(m / k), rel=CLOSE)
    assert run.u[-1, 0] == pytest.approx(v0, rel=CLOSE)
    middle = run.at(0.5 * (closes + opens))
    assert -middle.q[0] == pytest.approx(v0 * np.sqrt(m / k), rel=CLOSE)


@pytest.mark.parametrize("p", [1.5, 2.0, 2.3, 3.7])
def test_power_law_keeps_energy_and_reaches_its_depth(felt, p):
    m, K, v0 = 0.008, 2e7, 1.5
    run = strike(felt, v0, p=p, c=0.0, K=K)
    depth = (m * v0**2 * (p + 1.0) / (2.0 * K)) ** (1.0 / (p + 1.0))
    deepest = brentq(lambda t: run.at(t).u[0], run.transitions[0].time, run.transitions[1].time, xtol=1e-15)
    assert -run.at(deepest).q[0] == pytest.approx(depth, rel=CLOSE)
    assert run.u[-1, 0] == pytest.approx(v0, rel=CLOSE)
    assert np.ptp(run.energy.total) <= CLOSE * run.energy.total[0]
    assert run.energy.relative_residual <= CLOSE


@pytest.mark.parametrize(("p", "c"), [(1.0, 0.2), (2.3, 0.3), (2.3, 2.0)])
def test_loss_gives_the_rebound_of_hunt_and_crossley(felt, p, c):
    v0, m, K = 1.5, 0.008, 2e6
    run = strike(felt, v0, p=p, c=c, K=K)
    v1 = brentq(lambda v: phi(-v, c) - phi(v0, c), 1e-9, min(v0, 1.0 / c - 1e-12), xtol=1e-15)
    assert run.u[-1, 0] == pytest.approx(v1, rel=CLOSE)
    heat = run.energy.friction["felt"]
    assert heat[-1] == pytest.approx(0.5 * m * (v0**2 - v1**2), rel=1e-7)  # by quadrature between the rows
    assert (np.diff(heat) >= -1e-12 * heat[-1]).all()
    assert run.energy.relative_residual <= 1e-7
    force = run.multipliers["felt"][:, 0]
    assert force.min() >= 0.0
    assert force.max() > 1.0


def test_what_leaves_faster_than_the_surface_follows_is_released_and_caught_again():
    """The force ends at δ' = -1/c with the surface still pressed in; what it had stored is lost."""
    graph = fsm_dyn.compile(drop(c="5 s/m", pull=True))
    run = fsm_dyn.simulate(graph, 0.05, parameters={"g": 0.0}, initial={"y": 1e-3, "v": -1.0}, **FINE)
    opened = next(x for x in run.transitions if x.target == "flight")
    leaving = run.at(opened.time)
    assert leaving.q[0] < -1e-5
    assert leaving.u[0] == pytest.approx(1.0 / 5.0, rel=CLOSE)
    assert run.energy.relative_residual <= 1e-7
    assert run.multipliers["felt"].min() >= -1e-9  # N, of 30: the instant of release is known to rounding
    # pushed back before its gap has opened, it is met again where the force begins, at δ' = -1/c
    back = {"pull": {"steps": [[0.0, 0.0], [0.0012, 40.0], [opened.time + 1e-5, -400.0]]}}
    start = {"y": 1e-3, "v": -1.0}
    again = fsm_dyn.simulate(graph, 0.05, parameters={"g": 0.0}, initial=start, inputs=back, **FINE)
    order = [(x.target, again.at(x.time).q[0], again.at(x.time).u[0]) for x in again.transitions]
    returned = [(q, u) for target, q, u in order if target == "pressed" and q < -1e-6]
    assert returned
    assert returned[0][1] == pytest.approx(0.2, rel=CLOSE)
    assert again.energy.relative_residual <= 1e-7


def drop(c="0 s/m", pull=False, **contact):
    """A ball over felt with a push upwards, as data."""
    model = {
        "fsm_dyn": 1,
        "name": "drop",
        "parameters": {"m": "8 g", "g": "9.81 m/s^2", "mu": "0.3"},
        "coordinates": {"y": "m"},
        "points": {"P": {"from": "O", "at": "y*N.y"}},
        "bodies": {"ball": {"center": "P", "mass": "m"}},
        "speeds": {"v": "dot(vel(P), N.y)"},
        "contacts": {
            "felt": {"gap": "y", "compliant": {"stiffness": "2e6 N/m^2", "exponent": 2, "dissipation": c}, **contact}
        },
        "loads": [{"gravity": "-g*N.y"}],
        "modes": {"flight": {"felt": "open"}, "pressed": {"felt": "compressed"}},
        "initial": {"y": "1 mm"},
    }
    if pull:
        model["inputs"] = {"pull": "N"}
        model["schedule"] = {"pull": {"steps": [["0 s", "0 N"], ["1.2 ms", "40 N"]]}}
        model["loads"].append({"force": "pull*N.y", "at": "P"})
    return model


def puck(friction, **contact):
    """A point mass over felt that may slide along it, as data."""
    model = drop()
    model["coordinates"] = {"x": "m", "y": "m"}
    model["points"]["P"]["at"] = "x*N.x + y*N.y"
    model["speeds"] = {"u": "rate(x)", "v": "rate(y)"}
    law = {"stiffness": "2e6 N/m^2", "exponent": 2, "dissipation": "0.2 s/m"}
    model["contacts"] = {"felt": {"gap": "y", "slip": "u", "friction": friction, "compliant": law, **contact}}
    model["modes"] = {"flight": {"felt": "open"}}
    return model


def test_friction_on_felt_is_a_part_of_its_force():
    """While it slides, the momentum lost along the felt is μ times that gained across it."""
    graph = fsm_dyn.compile(puck("mu"))
    run = fsm_dyn.simulate(graph, 0.1, parameters={"g": 0.0}, initial={"y": 1e-3, "u": 3.0, "v": -1.0}, **FINE)
    v1 = brentq(lambda v: phi(-v, 0.2) - phi(1.0, 0.2), 1e-9, 1.0, xtol=1e-15)
    assert run.u[-1, 1] == pytest.approx(v1, rel=CLOSE)
    assert run.u[-1, 0] == pytest.approx(3.0 - 0.3 * (1.0 + v1), rel=CLOSE)
    assert [x.target for x in run.transitions] == ["felt_slide", "flight"]
    normal, along = run.multipliers["felt"].T
    assert (np.abs(along) <= 0.3 * normal * (1.0 + 1e-12)).all()
    assert run.energy.relative_residual <= 1e-7


def test_slow_slip_on_felt_comes_to_rest_and_stays_within_its_bound():
    graph = fsm_dyn.compile(puck({"static": 0.4, "kinetic": 0.3}))
    run = fsm_dyn.simulate(graph, 0.1, parameters={"g": 0.0}, initial={"y": 1e-3, "u": 0.1, "v": -1.0}, **FINE)
    assert [x.target for x in run.transitions] == ["felt_slide", "felt_stick", "flight"]
    assert abs(run.u[-1, 0]) <= 1e-12
    # it stops when the felt has given 0.1/0.3 of m: the speed across is then v0 - 0.1/0.3
    assert run.at(run.transitions[1].time).u[1] == pytest.approx(-1.0 + 0.1 / 0.3, rel=CLOSE)
    assert run.energy.relative_residual <= 1e-7


def test_begins_to_slip_where_the_load_reaches_mu_times_the_force():
    """At rest on felt, pushed along ever harder: it slips at μ_s m g."""
    model = puck({"static": 0.4, "kinetic": 0.3})
    model["inputs"] = {"push": "N"}
    model["schedule"] = {"push": {"linear": [["0 s", "0 N"], ["1 s", "0.1 N"]]}}
    model["loads"].append({"force": "push*N.x", "at": "P"})
    model["initial"] = {"y": "0 m", "settle": True}
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 0.5)
    assert [x.target for x in run.transitions] == ["felt_slide"]
    assert run.transitions[0].time == pytest.approx(0.4 * 0.008 * 9.81 / 0.1, rel=1e-6)


def test_settles_where_the_force_carries_the_weight(felt):
    rest = fsm_dyn.static_equilibrium(felt)
    assert rest.mode == "pressed"
    assert -rest.q[0] == pytest.approx((0.008 * 9.81 / 1e8) ** (1.0 / 2.3), rel=1e-9)
    assert rest.forces["felt"][0] == pytest.approx(0.008 * 9.81, rel=1e-9)
    run = fsm_dyn.simulate(felt, 0.1, initial=rest.initial)
    assert not run.transitions
    np.testing.assert_allclose(run.q[:, 0], rest.q[0], rtol=1e-6)


def test_closes_only_where_it_may():
    graph = fsm_dyn.compile(drop(closes_if="v > -0.5 m/s"))
    fast = fsm_dyn.simulate(graph, 0.01, parameters={"g": 0.0}, initial={"y": 1e-3, "v": -1.0})
    assert fast.q[-1, 0] == pytest.approx(1e-3 - 0.01, rel=1e-9)
    slow = fsm_dyn.simulate(graph, 0.02, parameters={"g": 0.0}, initial={"y": 1e-3, "v": -0.4})
    assert slow.u[-1, 0] == pytest.approx(0.4, rel=1e-7)


def test_a_compliant_joint_stop_is_a_torsion_spring():
    model = drop()
    model["coordinates"] = {"q": "rad"}
    model["frames"] = {"B": {"parent": "N", "rotate": {"z": "q"}}}
    model["points"] = {"P": {"from": "O", "at": "0*N.x"}}
    model["bodies"] = {"arm": {"frame": "B", "center": "P", "mass": "1 kg", "inertia": {"zz": "0.02 kg*m^2"}}}
    model["speeds"] = {"w": "rate(q)"}
    model["contacts"] = {
        "stop": {"joint_stop": {"coordinate": "q", "upper": "10 deg"}, "compliant": {"stiffness": "50 N*m"}}
    }
    model["modes"], model["initial"] = {}, {"w": "2 rad/s"}
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 0.5, **FINE)
    closes, opens = (x.time for x in run.transitions)
    assert closes == pytest.approx(np.radians(10.0) / 2.0, rel=CLOSE)
    assert opens - closes == pytest.approx(np.pi * np.sqrt(0.02 / 50.0), rel=CLOSE)
    assert run.u[-1, 0] == pytest.approx(-2.0, rel=CLOSE)


def test_hands_over_where_a_face_ends():
    """A disk pressed into felt glides round a corner of 20 degrees: the force takes no notice of who bears it."""
    model = puck("mu")
    model["shapes"] = {
        "mat": {"polygon": {"points": [["-1 m", "0 m"], ["-1 m", "-1 m"], ["1 m", "-1 m"], ["1 m", "-0.364 m"],
                                         ["0 m", "0 m"]]}},
        "disk": {"circle": {"center": "P", "radius": "2 cm"}},
    }  # fmt: skip
    model["contacts"] = {"pad": {"between": ["disk", "mat"], "compliant": {"stiffness": "500 N/m"}}}
    model["modes"] = {}
    model["initial"] = {"x": "-0.05 m", "y": "2 cm", "u": "0.2 m/s"}
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 0.4, **FINE)
    leaves = [x for x in run.transitions if "leaves" in x.cause]
    assert len(leaves) >= 2  # the face, then the corner
    total = sum(np.abs(values[:, 0]) for values in run.multipliers.values())
    for x in leaves:
        before, after = np.flatnonzero(run.t == x.time)[[0, -1]]
        assert total[before] > 1e-3
        assert total[after] == pytest.approx(total[before], rel=1e-9)
    assert run.energy.relative_residual <= 1e-7


def test_the_law_must_fit_the_units():
    with pytest.raises(fsm_dyn.ModelError, match="stiffness"):
        fsm_dyn.load({**drop(), "contacts": {"felt": {"gap": "y", "compliant": {"stiffness": "2 N/m", "exponent": 2}}}})
    root = {"stiffness": "2 kg*m^0.5/s^2", "exponent": 0.5}
    with pytest.raises(fsm_dyn.ModelError, match="below 1"):
        fsm_dyn.load({**drop(), "contacts": {"felt": {"gap": "y", "compliant": root}}})
    with pytest.raises(fsm_dyn.ModelError, match="dissipation"):
        fsm_dyn.load(
            {**drop(), "contacts": {"felt": {"gap": "y", "restitution": 0.5, "compliant": {"stiffness": "2 N/m"}}}}
        )


def pressed_against_wall(side):
    """Return the model of a ball that flies at a hard, lossy wall on one ``side`` (1 or -1) and is pressed on it."""
    return {
        "fsm_dyn": 1, "name": "pressed_against_wall", "parameters": {"side": side}, "coordinates": {"x": "m"},
        "points": {"P": {"from": "O", "at": "x*N.x"}}, "bodies": {"ball": {"center": "P", "mass": "1 g"}},
        "contacts": {"wall": {"gap": "10 mm - side*x", "compliant": {"stiffness": "2e4 N/m", "dissipation": "3 s/m"}}},
        "loads": [{"force": "20 N*side*N.x", "at": "P"}], "initial": {"x_dot": "2 m/s*side"},
    }  # fmt: skip


@pytest.mark.parametrize("method", ["rk4", "heun"])
def test_a_fixed_step_at_which_the_wall_is_too_stiff_is_shortened(method):
    """The damper of the wall grows with the depth: at 1 mm its time is 17 us, and steps of 50 us are not stable."""
    there, mirrored = (fsm_dyn.compile(pressed_against_wall(side)) for side in (1.0, -1.0))
    until, times = 0.02, np.linspace(0.0, 0.02, 201)
    fine = fsm_dyn.simulate(there, until, **FINE).sample(times).q
    assert 1e-3 > fine.max() - 0.01 > 0.9e-3
    for step in (2e-3, 1e-3, 2.5e-4, 1e-4, 6.25e-5):
        run = fsm_dyn.simulate(there, until, method=method, step=step)
        assert np.abs(run.sample(times).q - fine).max() < 5e-5  # a twentieth of the depth
        twin = fsm_dyn.simulate(mirrored, until, method=method, step=step)
        assert np.array_equal(twin.q, -run.q)


@pytest.mark.parametrize("step", [1e-3, 1.25e-4, 6.25e-5])
@pytest.mark.parametrize("force", [4.0, 20.0, 60.0])
def test_a_button_is_struck_hard_at_any_fixed_step(force, step):
    graph = fsm_dyn.compile("push_button")
    stroke = {"finger": {"steps": [[0.0, 0.0], [0.02, force], [0.1, 0.0]]}}
    fine = fsm_dyn.simulate(graph, 0.2, inputs=stroke, **FINE).q
    run = fsm_dyn.simulate(graph, 0.2, inputs=stroke, method="rk4", step=step)
    assert run.q.max() == pytest.approx(fine.max(), rel=0.01)
    assert run.q.min() == pytest.approx(0.0, abs=1e-9)


BESIDE = """
fsm_dyn: 1
name: bouncing_beside_a_cushion
summary: A ball chatters to rest on a floor while a cushion pushes it sideways.
source: closed form
parameters: {m: 1 kg, g: 9.81 m/s^2, e: 0.5, h: 0.05 m, k: 4 N/m, d: 0.1 m}
coordinates: {x: m, y: m}
points:
  P: {from: O, at: x*N.x + y*N.y}
bodies:
  ball: {center: P, mass: m}
speeds:
  a: "dot(vel(P), N.x)"
  b: "dot(vel(P), N.y)"
contacts:
  ground: {gap: y, restitution: e}
  cushion: {joint_stop: {coordinate: x, lower: 0 m}, compliant: {stiffness: k}}
loads:
  - {gravity: -g*N.y}
modes:
  flight: {ground: open, cushion: compressed}
initial: {mode: flight, x: -d, y: h}
"""


def test_a_train_of_impacts_ends_while_a_cushion_pushes(tmp_path):
    """The ball rests from sqrt(2 h / g) (1 + e) / (1 - e) on; sideways it swings to where the cushion ends, as ever."""
    path = tmp_path / "beside.yaml"
    path.write_text(BESIDE)
    run = fsm_dyn.simulate(fsm_dyn.compile(path), 1.2, **FINE)
    fall, e, d, rate = np.sqrt(2 * 0.05 / 9.81), 0.5, 0.1, 2.0  # s, -, m, rad/s
    rests = next(x.time for x in run.transitions if "ground_closed" in x.target)
    assert rests == pytest.approx(fall * (1 + e) / (1 - e), rel=1e-6)  # where the train is cut short by tolerances
    opens = run.transitions[-1].time
    assert opens == pytest.approx(np.pi / 2 / rate, rel=CLOSE)
    for t in np.linspace(0.0, opens, 50):
        state = run.at(t)
        assert state.q[0] == pytest.approx(-d * np.cos(rate * t), abs=CLOSE * d)
        assert state.u[0] == pytest.approx(d * rate * np.sin(rate * t), abs=CLOSE * d * rate)
    assert run.u[-1] == pytest.approx([d * rate, 0.0], abs=CLOSE)
