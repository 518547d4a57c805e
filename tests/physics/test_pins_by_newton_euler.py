"""Loads of connections against Newton and Euler with accelerations by differences of positions alone.

Positions of centres and frames are taken at equidistant rows of a run with a fixed step; velocities and accelerations
are their differences of sixth order, so neither speeds, partial velocities nor equations of the package enter.
"""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.run.contact_forces import Kinematics

H = 1e-3  # s
FIRST = np.array([-1 / 60, 3 / 20, -3 / 4, 0, 3 / 4, -3 / 20, 1 / 60])
SECOND = np.array([1 / 90, -3 / 20, 3 / 2, -49 / 18, 3 / 2, -3 / 20, 1 / 90])
INERTIA = {"xx": (0, 0), "yy": (1, 1), "zz": (2, 2), "xy": (0, 1), "yz": (1, 2), "xz": (0, 2)}


def body(random, frame, at):
    """Return a body with all moments and products of inertia, and its matrix."""
    root = random.uniform(-0.1, 0.1, (3, 3))
    matrix = root @ root.T + 0.01 * np.eye(3)
    return {"frame": frame, "center": at, "mass": f"{float(random.uniform(0.3, 2))!r} kg",
            "inertia": {key: f"{float(matrix[ij])!r} kg*m^2" for key, ij in INERTIA.items()}}  # fmt: skip


def arm(random, frame):
    return " + ".join(
        f"({float(x)!r} m)*{frame}.{axis}" for x, axis in zip(random.uniform(-0.3, 0.3, 3), "xyz", strict=True)
    )


def directed(value, parent, child):
    """Return an axis with ``<`` for the parent and ``>`` for the child, or each of several."""
    if isinstance(value, list):
        return [directed(each, parent, child) for each in value]
    return value.replace("<", parent).replace(">", child)


def values(text):
    return dict(item.strip().split(": ") for item in text.split(","))


def mechanism(random, joints, initial):
    """Return a chain of joints, each on the body before; a body's centre and the next joint have random arms."""
    model = {"fsm_dyn": 1, "name": "chain", "joints": {}, "points": {}, "bodies": {}, "initial": initial,
             "loads": [{"gravity": "(1 m/s^2)*N.x - (9 m/s^2)*N.y + (2 m/s^2)*N.z"}]}  # fmt: skip
    base, origin = "N", "O"
    for number, (kind, more) in enumerate(joints):
        name = "ABCDE"[number]
        model["points"][f"P{name}"] = {"from": origin, "at": arm(random, base)}
        axis = {key: directed(value, base, name) for key, value in more.items()}
        model["joints"][f"j{name}"] = {kind: {"child": name, "at": f"P{name}", "parent": base, **axis}}
        base, origin = name, f"{name}_origin"
        model["points"][f"C{name}"] = {"from": origin, "at": arm(random, name)}
        model["bodies"][f"m{name}"] = body(random, name, f"C{name}")
    return model


def helical(random):
    """A screw on a turning arm, a hinge on the screw."""
    start = "jA: 0.4 rad, jA_dot: 2 rad/s, jB: -0.7 rad, jB_dot: 9 rad/s, jC: 1 rad, jC_dot: -3 rad/s"
    screw = {"axis": "<.x", "lead": f"{float(random.uniform(0.1, 0.4))!r} m"}
    joints = [("revolute", {"axis": "<.z"}), ("helical", screw), ("revolute", {"axis": "<.y"})]
    return mechanism(random, joints, values(start))


def balls(random):
    """A ball joint, a universal joint on it, a guide on that."""
    start = (
        "jA_1: 0.3 rad, jA_2: -0.5 rad, jA_3: 0.2 rad, jA_1_dot: 1 rad/s, jA_2_dot: -2 rad/s, jA_3_dot: 3 rad/s, "
        "jB_1: 0.6 rad, jB_2: 0.4 rad, jB_1_dot: 2 rad/s, jB_2_dot: 1 rad/s, jC: 0.1 m, jC_dot: 0.7 m/s"
    )
    joints = [("ball", {"angles": "xyz"}), ("universal", {"axis": ["<.x", ">.y"]}), ("prismatic", {"axis": "<.z"})]
    return mechanism(random, joints, values(start))


def cylinder(random):
    """A cylindrical joint on a hinge, and a joint in a plane on it."""
    start = (
        "jA: 0.4 rad, jA_dot: 2 rad/s, jB_slide: 0.2 m, jB_turn: 0.5 rad, jB_slide_dot: -1 m/s, jB_turn_dot: 4 rad/s, "
        "jC_x: 0.1 m, jC_y: 0.2 m, jC_turn: 0.3 rad, jC_x_dot: 1 m/s, jC_turn_dot: 2 rad/s"
    )
    joints = [("revolute", {"axis": "<.y"}), ("cylindrical", {"axis": "<.x"}), ("planar", {"axis": "<.z"})]
    return mechanism(random, joints, values(start))


def differences(run):
    """Return, by body: centre, force and moment about it that its motion takes at all inner rows."""
    automaton = run.model.automaton
    kinematics, scene = Kinematics(automaton), run.model.scene
    poses = [kinematics.points(x, c) for x, c in zip(run.rows.x, run.rows.context, strict=True)]
    points, frames = (np.array(part) for part in zip(*poses, strict=True))
    assert np.allclose(np.diff(run.t), H, rtol=1e-6)
    inner = np.arange(3, len(run.t) - 3)

    def over(weights, values, power):
        return sum(w * values[inner + k - 3] for k, w in enumerate(weights)) / H**power

    found = {}
    for name, item in automaton.mechanism.bodies.items():
        centre, turn = points[:, scene.points.index(item.center)], frames[:, scene.frames.index(item.frame)]
        turn = turn if np.allclose(turn[0] @ turn[0].T, np.eye(3)) else None
        rate, second = over(FIRST, turn, 1), over(SECOND, turn, 2)
        spin = np.einsum("nij,nkj->nik", rate, turn[inner])
        more = np.einsum("nij,nkj->nik", second, turn[inner]) + np.einsum("nij,nkj->nik", rate, rate)

        def vector(skew):
            pairs = ((2, 1), (0, 2), (1, 0))
            return 0.5 * np.stack([skew[:, i, j] - skew[:, j, i] for i, j in pairs], axis=1)

        w, al = vector(spin), vector(more)
        mass, own = float(str(item.mass).split()[0]), np.zeros((3, 3))
        for key, ij in INERTIA.items():
            own[ij] = own[ij[::-1]] = float(str(item.inertia[key]).split()[0])
        J = np.einsum("nij,jk,nlk->nil", turn[inner], own, turn[inner])
        momentum = np.einsum("nij,nj->ni", J, w)
        moment = np.einsum("nij,nj->ni", J, al) + np.cross(w, momentum)
        found[name] = centre[inner], mass * (over(SECOND, centre, 2) - np.array([1.0, -9.0, 2.0])), moment
    return inner, found


@pytest.mark.parametrize("make", [helical, balls, cylinder])
@pytest.mark.parametrize("seed", [1])
def test_bodies_on_joints_in_space_obey_newton_and_euler(make, seed):
    model = make(np.random.default_rng(seed))
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 0.03, step=H)
    inner, wanted = differences(run)
    pins = run.pins
    assert len(pins) == 3
    sums = {name: [np.zeros((len(inner), 3)), np.zeros((len(inner), 3))] for name in wanted}
    bodies = {item.frame: name for name, item in run.model.automaton.mechanism.bodies.items()}
    for pin in pins.values():
        for segment, sign in ((pin.info.child, 1.0), (pin.info.parent, -1.0)):
            if segment != "N":
                name = bodies[segment]
                force, torque = sign * pin.force[inner], sign * pin.torque[inner]
                sums[name][0] += force
                sums[name][1] += torque + np.cross(pin.at[inner] - wanted[name][0], force)
    size = max(1.0, *(float(np.abs(force).max()) for _, force, _ in wanted.values()))
    for name, (_, force, moment) in wanted.items():
        np.testing.assert_allclose(sums[name][0], force, atol=1e-7 * size, err_msg=name)
        np.testing.assert_allclose(sums[name][1], moment, atol=1e-7 * size, err_msg=name)


PRESSER = """
fsm_dyn: 1
name: presser
parameters: {m: 0.2 kg}
coordinates: {s: m}
points: {P: {from: O, at: s*N.x}, L: {from: P, at: -0.1 m*N.y}, U: {from: P, at: 0.1 m*N.y}}
bodies: {presser: {frame: N, center: P, mass: m}}
speeds: {v: rate(s)}
shapes: {pad: {segment: {ends: [L, U]}, side: N.x}}
inputs: {push: N}
loads: [{force: push*N.x, at: P}]
"""
PRESSED = """
fsm_dyn: 1
name: pressed
parameters: {m: 1.5 kg, mu: 0.4, r: 30 mm}
coordinates: {x: m, y: m}
frames: {W: {parent: N, rotate: {z: 180 deg}}}
points: {C: {from: O, at: x*N.x + y*N.y}, left: {from: O, at: -r*N.x}, right: {from: O, at: r*N.x}}
bodies: {block: {center: C, mass: m}}
speeds: {vx: rate(x), vy: rate(y)}
use:
  l: {file: presser.yaml, attach: {point: left}}
  r: {file: presser.yaml, attach: {frame: W, point: right}}
shapes: {ball: {circle: {center: C, radius: r}}}
contacts: {one: {between: [ball, l_pad], friction: mu}, two: {between: [ball, r_pad], friction: mu}}
schedule: {l_push: 10 N, r_push: 10 N}
loads: [{gravity: -9.81 m/s^2*N.y}]
pins: {one_face: {wear: {rate: 1e-14 m^2/N, area: 100 mm^2}}}
"""


def test_contact_and_friction_of_components_on_a_block(tmp_path):
    """Two copies of a component press a block from both sides; its weight hangs on their friction, and they wear."""
    (tmp_path / "presser.yaml").write_text(PRESSER, encoding="utf-8")
    path = tmp_path / "pressed.yaml"
    path.write_text(PRESSED.replace("presser.yaml", "presser"), encoding="utf-8")
    with pytest.raises(fsm_dyn.ModelError, match=r"name a file in the same folder with its ending: presser\.yaml"):
        fsm_dyn.load(path)
    path.write_text(PRESSED, encoding="utf-8")
    m, mu, push, g = 1.5, 0.4, 10.0, 9.81
    run = fsm_dyn.simulate(fsm_dyn.compile(path), 0.1)
    down = g - 2 * mu * push / m  # it slips: 14.7 N of weight against 8 N of friction
    way = 0.5 * down * run.t[-1] ** 2
    assert run["y"][-1] == pytest.approx(-way, rel=1e-9)
    for name, side in (("one_face", 1.0), ("two_face", -1.0)):
        force = run.pins[name].force[-1] * (1.0 if run.pins[name].info.child == "block" else -1.0)
        np.testing.assert_allclose(force, [side * push, mu * push, 0.0], atol=1e-9)
        assert run.pins[name].at[-1] == pytest.approx([-side * 0.03, -way, 0.0], abs=1e-9)
    assert run.energy.friction["one_face"][-1] == pytest.approx(mu * push * way, rel=1e-8)
    assert run.wear["one_face"].depth[-1] == pytest.approx(1e-14 * push * way / 1e-4, rel=1e-8)


def test_points_on_bodies_that_do_not_turn_are_mirrored():
    """The pads of a gripper, one without a frame and one in a turned one, hold the block at mirrored points."""
    run = fsm_dyn.simulate(fsm_dyn.compile("gripper"), 1.0)
    held = run.sample([0.95])
    contacts = {name: pin for name, pin in held.pins.items() if pin.info.kind == "contact" and pin.magnitude[0] > 1e-9}
    assert sorted(contacts) == [f"{side}_grip_face_{end}" for side in ("left", "right") for end in ("end", "start")]
    centre, moment = np.array([held["x"][0], held["y"][0], 0.0]), np.zeros(3)
    for name, pin in contacts.items():
        end = {"start": "end", "end": "start"}[name.rsplit("_", 1)[1]]  # the faces run the other way round
        other = contacts[f"right_grip_face_{end}" if name.startswith("left") else f"left_grip_face_{end}"]
        np.testing.assert_allclose(pin.at[0], other.at[0] * [-1.0, 1.0, 1.0], atol=1e-9)
        assert abs(pin.at[0][1] - centre[1]) == pytest.approx(0.025, abs=1e-9)
        np.testing.assert_allclose(pin.torque[0], 0.0, atol=1e-9)
        moment += np.cross(pin.at[0] - centre, -pin.force[0])
    np.testing.assert_allclose(moment, 0.0, atol=1e-8)  # the block does not turn
