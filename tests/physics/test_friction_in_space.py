"""Friction in space against closed forms; runs are asked for 1e-10 or better, and compared to 1e-8."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import fsm_dyn

CLOSE = 1e-8
FINE = {"rtol": 1e-11, "atol": 1e-13}
G, R, MU = 9.81, 0.0286, 0.2


@pytest.fixture(scope="module")
def ball():
    return fsm_dyn.compile("billiard_ball")


@pytest.mark.parametrize("spin", [0.0, 30.0, -80.0])
def test_a_billiard_ball_slides_on_a_parabola_and_rolls_on_straight(ball, spin):
    """The slip s = v + r spin keeps its direction and shrinks by 7/2 mu g t; v loses 2/7 of the first slip."""
    v0 = 2.0
    run = fsm_dyn.simulate(ball, 2.0, initial={"vx": v0, "wx": spin}, **FINE)
    slip = np.array([v0, R * spin])
    direction, end = slip / np.linalg.norm(slip), 2.0 * np.linalg.norm(slip) / (7.0 * MU * G)
    (sticks,) = run.transitions
    assert sticks.target == "rolling"
    assert sticks.time == pytest.approx(end, rel=CLOSE)
    for t in np.linspace(0.0, end, 11)[:-1]:
        place = np.array([v0 * t, 0.0]) - 0.5 * MU * G * t**2 * direction
        np.testing.assert_allclose(run.at(t).q[:2], place, atol=CLOSE)
    final = np.array([v0, 0.0]) - 2.0 / 7.0 * slip
    np.testing.assert_allclose(run.u[-1, :2], final, atol=CLOSE)
    np.testing.assert_allclose(run["slip_x"][-1], 0.0, atol=1e-12)
    if spin == 0.0:
        assert run.u[-1, 0] == pytest.approx(5.0 / 7.0 * v0, rel=CLOSE)
        assert np.abs(run["y"]).max() <= 1e-15
    heat = 0.5 * 0.17 * 2.0 / 7.0 * np.linalg.norm(slip) ** 2  # the reduced mass of the contact is 2/7 m
    assert run.energy.friction["cloth"][-1] == pytest.approx(heat, rel=CLOSE)
    assert run.energy.relative_residual <= CLOSE


@pytest.mark.parametrize(("method", "options", "close"), [("rk4", {"step": 1e-4}, 1e-7), ("radau", {}, 1e-6)])
def test_other_methods_find_the_same_end_of_slip(ball, method, options, close):
    run = fsm_dyn.simulate(ball, 0.5, method=method, **options)
    slip = np.hypot(2.0, R * 30.0)
    assert run.transitions[0].time == pytest.approx(2.0 * slip / (7.0 * MU * G), rel=close)


def test_time_stepping_converges_to_the_same_motion(ball):
    """Another route, which knows neither modes nor directions: its error falls with the step."""
    exact = fsm_dyn.simulate(ball, 1.0, **FINE).q[-1, :2]
    errors = []
    for step in (4e-3, 1e-3):
        stepped = fsm_dyn.simulate(ball, 1.0, method="moreau_jean", step=step)
        errors.append(np.abs(stepped.q[-1, :2] - exact).max())
    assert errors[1] < 0.5 * errors[0]
    assert errors[1] < 1e-4


def puck(**contact):
    """A point mass on a plane in space, inclined by `tilt` down along x; slip and gap by hand."""
    return {
        "fsm_dyn": 1,
        "name": "puck",
        "parameters": {"m": "0.3 kg", "g": "9.81 m/s^2", "mu": "0.4", "tilt": "0 rad"},
        "coordinates": {"x": "m", "y": "m", "z": "m"},
        "points": {"P": {"from": "O", "at": "x*N.x + y*N.y + z*N.z"}},
        "bodies": {"puck": {"center": "P", "mass": "m"}},
        "speeds": {"vx": "rate(x)", "vy": "rate(y)", "vz": "rate(z)"},
        "inputs": {"push": "N"},
        "contacts": {"floor_": {"gap": "z", "slip": ["vx", "vy"], "friction": "mu", **contact}},
        "loads": [{"force": "m*g*(sin(tilt)*N.x - cos(tilt)*N.z)", "at": "P"},
                  {"force": "push*(0.6*N.x + 0.8*N.y)", "at": "P"}],
    }  # fmt: skip


def test_slip_on_an_incline_turns_downhill():
    """With mu = tan(tilt) friction takes from the speed what the slope gives downhill: |v| + v_down stays as it was."""
    tilt = 0.3
    graph = fsm_dyn.compile(puck())
    run = fsm_dyn.simulate(
        graph, 3.0, parameters={"tilt": tilt, "mu": np.tan(tilt)}, initial={"vy": 1.5, "vx": -0.5}, **FINE
    )
    assert not run.transitions
    speed = np.hypot(run.u[:, 0], run.u[:, 1])
    np.testing.assert_allclose(speed + run.u[:, 0], np.hypot(1.5, 0.5) - 0.5, rtol=CLOSE)
    assert run.energy.relative_residual <= CLOSE


def test_slip_that_turns_comes_to_rest_where_an_integration_by_hand_does():
    """Against a direct integration of v' = g sin(tilt) - mu g cos(tilt) v/|v| to a speed of 1e-7 m/s."""
    tilt, mu, start = 0.3, 0.5, (-1.0, 1.2)
    graph = fsm_dyn.compile(puck())
    run = fsm_dyn.simulate(
        graph, 3.0, parameters={"tilt": tilt, "mu": mu}, initial=dict(zip(("vx", "vy"), start, strict=True)), **FINE
    )

    def rates(t, v):
        return np.array([G * np.sin(tilt), 0.0]) - mu * G * np.cos(tilt) * v[:2] / np.hypot(*v[:2])

    def slow(t, v):
        return np.hypot(*v) - 1e-7

    slow.terminal = True
    byhand = solve_ivp(rates, (0.0, 3.0), start, method="DOP853", rtol=1e-12, atol=1e-14, events=slow)
    sticks = next(x for x in run.transitions if x.target.endswith("stick"))
    # what is left of 1e-7 m/s takes another 1e-7 s
    assert sticks.time == pytest.approx(byhand.t[-1], abs=3e-7)
    assert np.abs(run.u[-1]).max() <= 1e-12
    assert run.energy.relative_residual <= 1e-7


def test_rest_holds_on_a_circle_and_gives_way_along_the_load():
    """Pushed along (0.6, 0.8) ever harder it slips at mu m g, whatever the direction, and goes where it is pushed."""
    graph = fsm_dyn.compile(puck())
    run = fsm_dyn.simulate(graph, 1.0, inputs={"push": {"linear": [[0.0, 0.0], [1.0, 2.0]]}}, **FINE)
    (slides,) = run.transitions
    assert slides.time == pytest.approx(0.4 * 0.3 * 9.81 / 2.0, rel=CLOSE)
    after = 1.0 - slides.time  # v' = 2 (t - slides) / m along the push
    np.testing.assert_allclose(run.u[-1, :2], after**2 / 0.3 * np.array([0.6, 0.8]), rtol=CLOSE)
    forces = run.multipliers["floor_"]
    assert (np.hypot(forces[:, 1], forces[:, 2]) <= 0.4 * forces[:, 0] * (1.0 + 1e-9)).all()
    assert run.energy.relative_residual <= CLOSE


ONSETS = {
    "dopri5": {},
    "online": {"strategy": "online"},
    "radau": {"method": "radau"},
    "bdf": {"method": "bdf"},
    "fine": FINE,
}


@pytest.mark.parametrize(("options"), ONSETS.values(), ids=ONSETS)
def test_a_slip_that_begins_smoothly_takes_no_tiny_steps(options):
    """A push that turns as it grows, against the same motion in polar coordinates, from its asymptote at the onset.

    There the speed is P' T**2/2 m of the time T since, and the direction lags behind the push by mu m g/s of its rate.
    """
    mass, weight, growth, turn = 0.3, 0.4 * 0.3 * G, 2.0, 3.0
    model = puck()
    model["loads"] += [{"force": f"{growth} N/s*t*(cos({turn} rad/s*t)*N.x + sin({turn} rad/s*t)*N.y)", "at": "P"}]
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 1.0, **options)
    (slides,) = run.transitions
    onset = weight / growth
    assert slides.time == pytest.approx(onset, abs=1e-6 if options.get("method") == "bdf" else 1e-8)

    def rates(t, state):
        behind = turn * t - state[1]
        return [(growth * t * np.cos(behind) - weight) / mass, growth * t * np.sin(behind) / (mass * state[0])]

    begin = onset + 1e-5
    first = [growth * 1e-10 / (2.0 * mass), turn * onset + 1e-5 * turn / 3.0]
    byhand = solve_ivp(rates, (begin, 1.0), first, method="Radau", rtol=1e-10, atol=1e-14).y[:, -1]
    place = byhand[0] * np.array([np.cos(byhand[1]), np.sin(byhand[1])])
    np.testing.assert_allclose(run.u[-1, :2], place, atol=1e-7 if options is FINE else 3e-6)
    assert len(run.t) < 3000
    assert run.energy.relative_residual <= 1e-6


def test_static_above_kinetic_friction():
    graph = fsm_dyn.compile(puck(friction={"static": "1.5*mu", "kinetic": "mu"}))
    run = fsm_dyn.simulate(graph, 1.0, inputs={"push": {"linear": [[0.0, 0.0], [1.0, 2.0]]}}, **FINE)
    assert run.transitions[0].time == pytest.approx(1.5 * 0.4 * 0.3 * 9.81 / 2.0, rel=CLOSE)
    assert run.transitions[0].target.endswith("slide")


def test_a_push_across_turns_the_slip_without_a_transition():
    """Reversed by a strong push, the slip passes through rest only where it has to."""
    graph = fsm_dyn.compile(puck())
    run = fsm_dyn.simulate(graph, 1.0, inputs={"push": 4.0}, initial={"vx": -0.6, "vy": -0.8}, **FINE)
    (turns,) = run.transitions  # straight against it: to rest, and on with the push
    weight, m = 0.4 * 0.3 * G, 0.3
    assert turns.time == pytest.approx(1.0 / ((4.0 + weight) / m), rel=CLOSE)
    assert turns.source == turns.target
    assert np.hypot(*run.u[-1, :2]) == pytest.approx((4.0 - weight) / m * (1.0 - turns.time), rel=CLOSE)


@pytest.mark.parametrize("spin", [(0.0, 0.0), (120.0, 40.0), (5.0, 60.0)])
def test_an_impact_with_friction_keeps_the_direction_of_slip(ball, spin):
    """A ball thrown on the table: slip that the impulse cannot stop loses 7/2 mu (1 + e) v_n, else it rolls off."""
    model = fsm_dyn.load("billiard_ball").text.replace("friction: mu}", "friction: mu, restitution: 0.5}")
    from fsm_dyn.language.loader import load

    graph = fsm_dyn.compile(load("thrown", text=model.replace("name: billiard_ball", "name: thrown")))
    start = {"mode": "flying", "z": R + 0.05, "vx": 0.4, "vy": -0.2, "wx": spin[0], "wy": spin[1]}
    run = fsm_dyn.simulate(graph, 0.15, initial=start, **FINE)
    hit = run.transitions[0]
    down = np.sqrt(2.0 * G * 0.05)
    slip = np.array([0.4 - R * spin[1], -0.2 + R * spin[0]])
    lost = min(3.5 * MU * 1.5 * down, np.linalg.norm(slip))
    left = slip * (1.0 - lost / np.linalg.norm(slip))
    after = np.array([hit.u_after[0] - R * hit.u_after[4], hit.u_after[1] + R * hit.u_after[3]])
    np.testing.assert_allclose(after, left, atol=1e-8)
    assert hit.u_after[2] == pytest.approx(0.5 * down, rel=CLOSE)
    normal, first, second = hit.impulse["cloth"]
    assert np.hypot(first, second) <= MU * normal * (1.0 + 1e-9)


def test_a_ball_rolls_off_a_ball_at_ten_seventeenths():
    """From rest at the angle a from the top, rolling without slip: it leaves where cos = 10/17 cos a."""
    text = fsm_dyn.load("billiard_ball").text
    text = text.replace("table: {plane: {from: O}, side: N.z}", "dome: {sphere: {center: O, radius: 0.5 m}}")
    text = text.replace("[sphere_of_ball, table], friction: mu", "[sphere_of_ball, dome], friction: inf")
    text = text.replace("  sliding: {cloth: slide}\n", "").replace("name: billiard_ball", "name: off_a_ball")
    a, b, total = 0.3, 1.1, 0.5286  # angle from the top, azimuth
    x, y, z = total * np.array([np.sin(a) * np.cos(b), np.sin(a) * np.sin(b), np.cos(a)])
    start = f"initial: {{mode: rolling, x: {x:.17g} m, y: {y:.17g} m, z: {z:.17g} m}}"
    text = text.replace("initial: {mode: sliding, z: r, vx: v0, wx: spin}", start)
    from fsm_dyn.language.loader import load

    run = fsm_dyn.simulate(fsm_dyn.compile(load("off", text=text)), 2.0, **FINE)
    off = run.transitions[0]
    q = run.at(off.time).q
    assert off.target == "flying"
    assert q[2] / np.linalg.norm(q[:3]) == pytest.approx(10.0 / 17.0 * np.cos(a), rel=1e-7)
    assert np.arctan2(q[1], q[0]) == pytest.approx(b, abs=1e-7)
    assert run.energy.relative_residual <= CLOSE


DISK = """
fsm_dyn: 1
name: coin
parameters: {m: 0.05 kg, r: 0.04 m, g: 9.81 m/s^2, mu: 1}
coordinates: {x: m, y: m, z: m}
frames:
  B: {parent: N, euler_parameters: e}
points:
  C: {from: O, at: x*N.x + y*N.y + z*N.z}
bodies:
  coin: {frame: B, center: C, mass: m, inertia: {xx: m*r**2/4, yy: m*r**2/4, zz: m*r**2/2}}
speeds:
  wx: "dot(omega(B), N.x)"
  wy: "dot(omega(B), N.y)"
  wz: "dot(omega(B), N.z)"
  vx: rate(x)
  vy: rate(y)
  vz: rate(z)
shapes:
  rim: {disk: {frame: B, center: C, axis: B.z, radius: r}}
  table: {plane: {from: O}, side: N.z}
contacts:
  edge: {between: [rim, table], friction: mu}
loads: [{gravity: -g*N.z}]
modes: {rolling: {edge: stick}}
initial: {mode: rolling, z: r*sin(1.2), e0: cos(0.6), e1: sin(0.6), e2: 0, e3: 0}
"""


def test_a_coin_rolls_as_the_equations_of_the_rolling_disk_say():
    """Against Euler's equations of the thin disk, its axis at the angle a from the vertical, integrated by hand.

    With A = m r²/4, C = m r²/2, the precession p and the spin s about the axis (E. J. Routh, Advanced Rigid Dynamics):
    (A + m r²) a'' = A p² sin a cos a - (C + m r²) s p sin a - m g r cos a,  (C + m r²) s' = m r² p a' sin a,
    A p' sin a = C s a' - 2 A p a' cos a.
    """
    from fsm_dyn.language.loader import load

    m, r = 0.05, 0.04
    A, C = m * r**2 / 4.0, m * r**2 / 2.0
    a, rate, p, s = 1.2, 0.5, 3.0, -20.0

    def rates(t, y):
        a, a1, p, s = y
        bend = A * p**2 * np.sin(a) * np.cos(a) - (C + m * r**2) * s * p * np.sin(a) - m * G * r * np.cos(a)
        turn = (C * s * a1 - 2.0 * A * p * a1 * np.cos(a)) / (A * np.sin(a))
        return [a1, bend / (A + m * r**2), turn, m * r**2 * p * a1 * np.sin(a) / (C + m * r**2)]

    axis, across, out = np.array([0.0, -np.sin(a), np.cos(a)]), np.array([0.0, np.cos(a), np.sin(a)]), [1.0, 0.0, 0.0]
    omega = rate * np.array(out) + p * np.sin(a) * across + s * axis
    start = {"z": r * np.sin(a), "e0": np.cos(a / 2), "e1": np.sin(a / 2), "e2": 0.0, "e3": 0.0}
    start |= dict(zip(("wx", "wy", "wz"), omega, strict=True))
    run = fsm_dyn.simulate(fsm_dyn.compile(load("coin", text=DISK)), 1.0, initial=start, **FINE)
    times = np.linspace(0.0, 1.0, 101)
    byhand = solve_ivp(rates, (0.0, 1.0), [a, rate, p, s], method="DOP853", rtol=1e-12, atol=1e-13, t_eval=times)
    assert not run.transitions
    np.testing.assert_allclose(run.sample(times)["z"], r * np.sin(byhand.y[0]), atol=1e-9)
    assert run.energy.relative_residual <= CLOSE


def tripod(**contact):
    """A body of 2 kg on three feet, 0.3 m from the point below its centre, as data."""
    feet = [(0.3 * np.cos(2.0 * np.pi * i / 3), 0.3 * np.sin(2.0 * np.pi * i / 3)) for i in range(3)]
    points = {f"F{i}": {"from": "C", "at": f"{x:.17g}*B.x + {y:.17g}*B.y - 0.2*B.z"} for i, (x, y) in enumerate(feet)}
    return {
        "fsm_dyn": 1,
        "name": "tripod",
        "parameters": {"mu": 0.4},
        "coordinates": ["x", "y", "z"],
        "frames": {"B": {"parent": "N", "euler_parameters": "e"}},
        "points": {"C": {"from": "O", "at": "x*N.x + y*N.y + z*N.z"}, **points},
        "bodies": {"top": {"frame": "B", "center": "C", "mass": 2, "inertia": {"xx": 0.05, "yy": 0.05, "zz": 0.08}}},
        "speeds": {"vx": "rate(x)", "vy": "rate(y)", "vz": "rate(z)",
                   **{f"w{i}": f"dot(omega(B), N.{i})" for i in "xyz"}},
        "inputs": {"push": ""},
        "contacts": {
            f"f{i}": {"gap": f"dot(pos(F{i}), N.z)", "friction": "mu",
                      "slip": [f"dot(vel(F{i}), N.x)", f"dot(vel(F{i}), N.y)"], **contact}
            for i in range(3)
        },
        "loads": [{"gravity": "-9.81*N.z"}, {"force": "push*N.y", "at": "F0"}],
        "initial": {"z": 0.2},
    }  # fmt: skip


def test_three_feet_that_share_a_load_give_way_at_the_limit_load():
    """Pushed sideways at one foot, a tripod begins to turn where the load does as much work as friction can take.

    About a pole at the distance c behind the middle, away from the foot that is pushed, the load P does the work
    P (R + c) and friction takes mu m g / 3 (R + c + 2 sqrt((c - R/2)² + 3 R²/4)); the least such P is that of c = R.
    """
    weight, R = 2.0 * 9.81, 0.3
    poles = np.linspace(0.0, 1.0, 100001)
    work = 0.4 * weight / 3.0 * (R + poles + 2.0 * np.sqrt((poles - R / 2.0) ** 2 + 0.75 * R**2))
    limit = np.min(work / (R + poles))
    run = fsm_dyn.simulate(fsm_dyn.compile(tripod()), 1.0, inputs={"push": {"linear": [[0.0, 0.0], [1.0, 10.0]]}})
    moving = np.flatnonzero(np.linalg.norm(run.u, axis=1) > 1e-9)[0]
    assert run.t[moving - 1] == pytest.approx(limit / 10.0, abs=1e-4)
    assert "f0_slide+f1_slide+f2_slide" in run.modes
    assert run.energy.relative_residual <= 1e-7


@pytest.mark.parametrize("seed", range(4))
def test_a_tripod_that_is_thrown_comes_to_rest(seed):
    """Impacts of up to three feet at once with restitution and friction: energy only falls, nothing sinks or pulls."""
    random = np.random.default_rng(seed)
    graph = fsm_dyn.compile(tripod(restitution=0.4))
    start = {"z": 0.6, "vx": 1.0, **dict(zip(("wx", "wy", "wz"), random.normal(size=3) * [1.0, 1.0, 3.0], strict=True))}
    run = fsm_dyn.simulate(graph, 3.0, initial=start)
    assert run.outcome.name == "done"
    assert np.abs(run.u[-1]).max() <= 1e-9
    # where a train of impacts is summed up, what its contacts bear until its end is part of the account
    strokes = [x for x in run.transitions if "Zeno time" not in x.cause]
    assert all(x.energy_after <= x.energy_before + 1e-12 * abs(x.energy_before) for x in strokes)
    assert run.energy.relative_residual <= 1e-8
    for forces in run.multipliers.values():
        if forces.shape[1] == 3:
            assert forces[:, 0].min() >= -1e-6
            assert (np.hypot(forces[:, 1], forces[:, 2]) <= 0.4 * forces[:, 0] + 1e-6).all()


def test_what_is_not_there_is_refused():
    contact = {"gap": "z", "slip": ["vx", "vy"], "friction": 0.3}
    with pytest.raises(fsm_dyn.ModelError, match="bilateral"):
        fsm_dyn.load({**puck(), "contacts": {"c": {**contact, "bilateral": True}}})
    with pytest.raises(fsm_dyn.ModelError, match="one or two"):
        fsm_dyn.load({**puck(), "contacts": {"c": {**contact, "slip": ["vx", "vy", "vz"]}}})
    with pytest.raises(fsm_dyn.ModelError, match="rubs in space"):
        fsm_dyn.static_equilibrium(fsm_dyn.compile(puck()))
