"""Newton's and Euler's laws of every body of random trees and loops, with the forces in their connections.

Positions, velocities and accelerations of the bodies are found here, joint by joint from the ground outwards; nothing
of the derivation is used but the motion of the coordinates.  The same mechanism written otherwise, with its bodies in
parts, in another order with other names, or in a mirror, has the same forces.
"""

import re
from typing import NamedTuple

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.derive.derivation import derive
from fsm_dyn.programs.program import Program
from fsm_dyn.run.pins import pin_programs

FEW, MANY, BODIES = 14, 1000, 3
GRAVITY = np.array([0.7, -9.81, 2.0])
AXES = {"x": 0, "y": 1, "z": 2}


def turn(axis, angle):
    c, s = np.cos(angle), np.sin(angle)
    i, j, k = AXES[axis], (AXES[axis] + 1) % 3, (AXES[axis] + 2) % 3
    R = np.zeros((3, 3))
    R[i, i], R[j, j], R[k, k], R[j, k], R[k, j] = 1.0, c, c, -s, s
    return R


def text(vector, frame):
    return " + ".join(f"({x!r} m)*{frame}.{a}" for x, a in zip(map(float, vector), "xyz", strict=True))


class Body:
    """A body of the tree: its joint, and how it moves."""

    def __init__(self, random, number, parent, planar):
        self.name, self.parent = f"b{number}", parent
        self.slides = bool(random.random() < 0.25)
        if planar:
            self.axis = "xy"[random.integers(2)] if self.slides else "z"
        else:
            self.axis = "xyz"[random.integers(3)]
        flat = np.array([1.0, 1.0, 0.0 if planar else 1.0])
        self.at = random.uniform(-0.5, 0.5, 3) * flat  # of the joint, on the parent
        self.center = random.uniform(-0.3, 0.3, 3) * flat
        self.mass = float(random.uniform(0.2, 2.0))
        root = random.uniform(-0.2, 0.2, (3, 3))
        self.inertia = root @ root.T + 0.02 * np.eye(3)
        if planar:
            self.inertia = np.diag([0.0, 0.0, self.inertia[2, 2]])
        self.q, self.u = (float(x) for x in random.uniform(-1.2, 1.2, 2))

    def place(self):
        """Find position and attitude."""
        base = self.parent
        R, p = (np.eye(3), np.zeros(3)) if base is None else (base.R, base.p)
        self.carrier = R
        along = R[:, AXES[self.axis]]
        self.line = along
        self.hinge = p + R @ self.at
        self.p = self.hinge + (self.q * along if self.slides else 0.0)
        self.R = R if self.slides else R @ turn(self.axis, self.q)
        self.c = self.p + self.R @ self.center

    def move(self, u_dot):
        """Find velocities and accelerations, outwards."""
        base, zero = self.parent, np.zeros(3)
        w, al, a, p = (zero, zero, zero, zero) if base is None else (base.w, base.al, base.a, base.p)
        e, arm = self.line, self.hinge - p
        at = a + np.cross(al, arm) + np.cross(w, np.cross(w, arm))
        if self.slides:
            out = self.p - self.hinge
            at = at + np.cross(al, out) + np.cross(w, np.cross(w, out)) + 2 * np.cross(w, self.u * e) + u_dot * e
            self.w, self.al = w, al
        else:
            self.w, self.al = w + self.u * e, al + u_dot * e + np.cross(w, self.u * e)
        self.a = at
        arm = self.c - self.p
        self.ac = at + np.cross(self.al, arm) + np.cross(self.w, np.cross(self.w, arm))
        J = self.R @ self.inertia @ self.R.T
        self.moment = J @ self.al + np.cross(self.w, J @ self.w)


def random_mechanism(seed):
    """Return bodies, loops, the spring and the model."""
    random = np.random.default_rng(seed)
    planar = bool(seed % 2)
    bodies = []
    for number in range(int(random.integers(2, 6))):
        parent = bodies[random.integers(number)] if number and random.random() < 0.85 else None
        bodies.append(Body(random, number, parent, planar))
        bodies[-1].place()
    model = {"fsm_dyn": 1, "name": "random", "joints": {}, "points": {}, "bodies": {}, "loads": [], "initial": {}}
    for b in bodies:
        base = "N" if b.parent is None else b.parent.name
        model["points"][f"P{b.name}"] = {"from": "O" if b.parent is None else f"{base}_origin", "at": text(b.at, base)}
        model["points"][f"C{b.name}"] = {"from": f"{b.name}_origin", "at": text(b.center, b.name)}
        kind = "prismatic" if b.slides else "revolute"
        joint = {"child": b.name, "at": f"P{b.name}", "axis": f"{base}.{b.axis}"}
        model["joints"][f"j{b.name}"] = {kind: joint if base == "N" else {"parent": base, **joint}}
        names = {"xx": (0, 0), "yy": (1, 1), "zz": (2, 2), "xy": (0, 1), "yz": (1, 2), "xz": (0, 2)}
        inertia = {k: f"{float(b.inertia[ij])!r} kg*m^2" for k, ij in names.items() if b.inertia[ij]}
        model["bodies"][f"m{b.name}"] = {"frame": b.name, "center": f"C{b.name}", "mass": f"{b.mass!r} kg",
                                         "inertia": inertia}  # fmt: skip
    g = " + ".join(
        f"({x!r} m/s^2)*N.{a}" for x, a in zip(GRAVITY.tolist(), "xyz", strict=True) if not (planar and a == "z")
    )
    model["loads"].append({"gravity": g})
    first, last = random.choice(len(bodies), 2, replace=False)
    spring = (bodies[first], bodies[last], 300.0)
    ends = [f"C{bodies[first].name}", f"C{bodies[last].name}"]
    model["loads"].append({"spring": {"between": ends, "stiffness": "300 N/m", "free": "0.1 m"}})
    loop = None
    if random.random() < 0.5 and len(bodies) > 3:
        one, other = bodies[-2], bodies[-1]
        at = random.uniform(-0.5, 0.5, 3) * np.array([1.0, 1.0, 0.0 if planar else 1.0])
        model["points"]["L1"] = {"from": f"{one.name}_origin", "at": text(one.R.T @ (at - one.p), one.name)}
        model["points"]["L2"] = {"from": f"{other.name}_origin", "at": text(other.R.T @ (at - other.p), other.name)}
        pair = {"parent": one.name, "child": other.name, "at": ["L1", "L2"]}
        model["joints"]["loop"] = {"revolute": {**pair, "axis": f"{one.name}.z"}} if planar else {"ball": pair}
        loop = (one, other, at)
    return bodies, loop, spring, model, planar


def state_of(bodies):
    """Return coordinate and speed of each joint by name."""
    return {f"j{b.name}": (b.q, b.u) for b in bodies}


def wrenches(model, state):
    """Return accelerations, and force and torque in N, place, of each connection by name; none without a loop's rank.

    The forces of a loop that is not independent of the joints are indeterminate.
    """
    mechanism = fsm_dyn.load(model)
    terms = derive(mechanism)
    layout = terms.layout
    x = np.zeros(layout.n_x)
    for name, (q, u) in state.items():
        x[layout.q.index(name)], x[len(layout.q) + layout.u.index(f"{name}_dot")] = q, u
    p = np.zeros(layout.n_c)
    found = Program.from_nodes(layout, {"M": terms.M, "f": terms.f}).evaluate(0.0, x, p)
    M, f, n = found["M"], found["f"], len(found["f"])
    rows = [(row.name, row.role) for row in terms.rows]
    A, gamma = np.zeros((len(rows), n)), np.zeros(len(rows))
    if rows:
        more = Program.from_nodes(
            layout, {"A": [row.A for row in terms.rows], "g": [row.gamma for row in terms.rows]}
        ).evaluate(0.0, x, p)
        A, gamma = more["A"], more["g"]
    whole = np.block([[M, -A.T], [A, np.zeros((len(rows), len(rows)))]])
    solved = np.linalg.lstsq(whole, np.concatenate([f, -gamma]), rcond=1e-12)[0]
    pins = pin_programs(mechanism, rows, cache=False)
    out = pins.program.evaluate(0.0, np.concatenate([x, solved]), p)
    return Loaded(
        dict(zip(layout.u, solved, strict=False)),
        {pin.name: (pin, out["wrench"][i], out["place"][i]) for i, pin in enumerate(pins.pins)},
        not rows or np.linalg.cond(A @ np.linalg.solve(M, A.T)) < 1e8,
    )


class Loaded(NamedTuple):
    """Accelerations, connections with their wrenches and places, and whether these are determined."""

    u_dot: dict
    pins: dict
    determined: bool


def balances(seed):
    """Return what Newton's and Euler's laws of all bodies leave over, and the largest force."""
    bodies, loop, (first, last, k), model, planar = random_mechanism(seed)
    u_dot, pins, _ = wrenches(model, state_of(bodies))
    for b in bodies:
        b.move(u_dot[f"j{b.name}_dot"])
    gravity = GRAVITY * (np.array([1.0, 1.0, 0.0]) if planar else 1.0)
    force = {b.name: b.mass * gravity for b in bodies}
    moment = {b.name: np.zeros(3) for b in bodies}

    def push(b, F, M, at):
        force[b.name] = force[b.name] + F
        moment[b.name] = moment[b.name] + M + np.cross(at - b.c, F)

    along = last.c - first.c
    pull = k * (np.linalg.norm(along) - 0.1) * along / np.linalg.norm(along)
    push(first, pull, np.zeros(3), first.c)
    push(last, -pull, np.zeros(3), last.c)
    size = 1.0
    links = [(f"j{b.name}", b, b.parent) for b in bodies] + ([("loop", loop[1], loop[0])] if loop else [])
    for name, child, parent in links:
        pin, w, at = pins[name]
        assert pin.child == child.name
        size = max(size, float(np.abs(w).max()))
        push(child, w[:3], w[3:], at)
        if parent is not None:
            push(parent, -w[:3], -w[3:], at)
    ground = [pins[name][1:] for name, _, parent in links if parent is None]
    momentum = sum(b.mass * (b.ac - gravity) for b in bodies)
    spin = sum(b.moment + np.cross(b.c, b.mass * (b.ac - gravity)) for b in bodies)
    whole = np.concatenate([
        sum(w[:3] for w, _ in ground) - momentum,
        sum(w[3:] + np.cross(at, w[:3]) for w, at in ground) - spin,
    ])  # fmt: skip
    rest = [whole] + [np.concatenate([force[b.name] - b.mass * b.ac, moment[b.name] - b.moment]) for b in bodies]
    kept = [0, 1, 5] if planar else list(range(6))
    return float(np.abs(np.array(rest)[:, kept]).max()), size, pins, loop, bodies


def check(seed):
    """Check the laws of all bodies, the places of loops, and that nothing drives the joints."""
    left, size, pins, loop, bodies = balances(seed)
    assert left < 1e-10 * size, seed
    if loop is not None:  # the loop is held at its point
        np.testing.assert_allclose(pins["loop"][2], loop[2], atol=1e-12)
    for b in bodies:  # a hinge gives no moment about its axis, a guide no force along it
        _, w, _ = pins[f"j{b.name}"]
        assert abs((w[:3] if b.slides else w[3:]) @ b.line) < 1e-10 * size, seed


# -- The same mechanism written otherwise --------------------------------------------------------------------

MIRROR = np.array([-1.0, 1.0, 1.0])


def in_parts(model, state, bodies, planar):
    """Put a third of each body elsewhere on its frame, or on a frame fixed to it, with the same mass and inertia."""
    found = {**model, "points": dict(model["points"]), "bodies": {}, "frames": {}}
    for number, b in enumerate(bodies):
        away = np.array([0.03, -0.02, 0.0 if planar else 0.025])
        own = f"{b.name}_part" if number % 2 else b.name
        if number % 2:
            found["frames"][own] = {"parent": b.name, "rotate": {"z": "0.7 rad"}}
        turned = turn("z", 0.7) if number % 2 else np.eye(3)
        arms = {"whole": (2.0 / 3.0, -away, b.name, np.eye(3)), "part": (1.0 / 3.0, 2.0 * away, own, turned)}
        carried = sum(k * b.mass * (r @ r * np.eye(3) - np.outer(r, r)) for k, r, _, _ in arms.values())
        for part, (share, arm, frame, R) in arms.items():
            at = f"C{b.name}_{part}"
            found["points"][at] = {"from": f"C{b.name}", "at": text(arm, b.name)}
            tensor = R.T @ (share * (b.inertia - (np.diag([0.0, 0.0, carried[2, 2]]) if planar else carried))) @ R
            found["bodies"][f"m{b.name}_{part}"] = {
                "frame": frame, "center": at, "mass": f"{share * b.mass!r} kg", "inertia": tensor_text(tensor),
            }  # fmt: skip
    return found, state, lambda name: name, lambda w: w


def tensor_text(tensor):
    names = {"xx": (0, 0), "yy": (1, 1), "zz": (2, 2), "xy": (0, 1), "yz": (1, 2), "xz": (0, 2)}
    return {k: f"{float(tensor[ij])!r} kg*m^2" for k, ij in names.items() if tensor[ij]}


def renumbered(model, state, bodies, planar):
    """Write joints, points, bodies and loads in the opposite order, with other names."""

    def other(word):
        return re.sub(r"(?<![A-Za-z0-9])([jmPC]?)b(\d)(_\w+)?\b", lambda m: f"{m[1]}z{9 - int(m[2])}{m[3] or ''}", word)

    def renamed(item):
        if isinstance(item, dict):
            return {other(key): renamed(value) for key, value in reversed(item.items())}
        if isinstance(item, list):
            return [renamed(value) for value in item]
        return other(item) if isinstance(item, str) else item

    found = {key: renamed(value) for key, value in model.items()}
    found["loads"] = found["loads"][::-1]
    return found, {other(name): value for name, value in state.items()}, other, lambda w: w


def mirrored(model, state, bodies, planar):
    """Exchange left and right: what turns about y or z, or slides along x, does so the other way round."""

    def flipped(item):
        if isinstance(item, dict):
            return {key: flipped(value) for key, value in item.items()}
        if isinstance(item, list):
            return [flipped(value) for value in item]
        return re.sub(r"\(([^()]*)\)\*(\w+)\.x", r"(-(\1))*\2.x", item) if isinstance(item, str) else item

    found = {**model, "points": flipped(model["points"]), "loads": flipped(model["loads"]), "bodies": {}}
    for b in bodies:
        tensor = b.inertia * np.outer(MIRROR, MIRROR)
        found["bodies"][f"m{b.name}"] = {**model["bodies"][f"m{b.name}"], "inertia": tensor_text(tensor)}
    signs = {f"j{b.name}": -1.0 if b.slides == (b.axis == "x") else 1.0 for b in bodies}
    return (
        found,
        {name: (signs[name] * q, signs[name] * u) for name, (q, u) in state.items()},
        lambda name: name,
        lambda w: np.concatenate([MIRROR * w[:3], -MIRROR * w[3:]]),
    )


WRITTEN = [in_parts, renumbered, mirrored]


def check_written_otherwise(seed, ways=WRITTEN):
    """Compare forces, torques and places of all connections; return whether they are determined."""
    bodies, _, _, model, planar = random_mechanism(seed)
    before = wrenches(model, state_of(bodies))
    if not before.determined:
        return False
    size = max(1.0, *(float(np.abs(w).max()) for _, w, _ in before.pins.values()))
    for way in ways:
        written, state, name_of, seen = way(model, state_of(bodies), bodies, planar)
        after = wrenches(written, state)
        for name, (pin, w, at) in before.pins.items():
            other, found, place = after.pins[name_of(name)]
            assert name_of(pin.child) == other.child, (seed, way.__name__)
            same = seen(np.concatenate([at, np.zeros(3)]))[:3]
            np.testing.assert_allclose(place, same, atol=1e-12, err_msg=f"{seed} {way.__name__} {name}")
            np.testing.assert_allclose(found, seen(w), atol=1e-9 * size, err_msg=f"{seed} {way.__name__} {name}")
    return True


@pytest.mark.parametrize("way", WRITTEN, ids=lambda way: way.__name__)
def test_forces_do_not_depend_on_how_a_mechanism_is_written(way):
    """A few of each: planar and spatial trees, and a loop."""
    drawn = {seed: random_mechanism(seed) for seed in range(60)}
    small = [seed for seed, (bodies, *_) in drawn.items() if len(bodies) <= BODIES]
    looped = [seed for seed, (_, loop, *_, planar) in drawn.items() if loop is not None and planar]
    assert sum(check_written_otherwise(seed, [way]) for seed in [*small[:2], looped[0]]) == 3


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_forces_of_many_mechanisms_do_not_depend_on_how_they_are_written():
    assert sum(check_written_otherwise(seed) for seed in range(MANY)) > 0.8 * MANY


def test_every_body_obeys_newton_and_euler():
    """Some mechanisms of few bodies, and two with loops, one of them in a plane."""
    drawn = {seed: random_mechanism(seed) for seed in range(3 * FEW)}
    few = [seed for seed, (bodies, *_) in drawn.items() if len(bodies) <= BODIES]
    planar, spatial = (
        next(seed for seed, found in drawn.items() if found[1] is not None and found[4] == flat)
        for flat in (True, False)
    )
    for seed in [*few[: FEW - 2], planar, spatial]:
        check(seed)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_every_body_of_many_mechanisms_obeys_newton_and_euler():
    for seed in range(MANY):
        check(seed)
