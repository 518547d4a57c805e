"""Newton's and Euler's laws of every body of random trees and loops, with the forces in their connections.

Positions, velocities and accelerations of the bodies are found here, joint by joint from the ground outwards; nothing
of the derivation is used but the motion of the coordinates.
"""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.derive.derivation import derive
from fsm_dyn.programs.program import Program
from fsm_dyn.run.pins import pin_programs

FEW, MANY, BODIES = 50, 1000, 3
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


def wrenches(bodies, model):
    """Return accelerations, and force and torque in N, place, of each connection by name."""
    mechanism = fsm_dyn.load(model)
    terms = derive(mechanism)
    layout = terms.layout
    x = np.zeros(layout.n_x)
    for b in bodies:
        x[layout.q.index(f"j{b.name}")], x[len(layout.q) + layout.u.index(f"j{b.name}_dot")] = b.q, b.u
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
    return dict(zip(layout.u, solved, strict=False)), {
        pin.name: (pin, out["wrench"][i], out["place"][i]) for i, pin in enumerate(pins.pins)
    }


def balances(seed):
    """Return what Newton's and Euler's laws of all bodies leave over, and the largest force."""
    bodies, loop, (first, last, k), model, planar = random_mechanism(seed)
    u_dot, pins = wrenches(bodies, model)
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
    rest = [np.concatenate([force[b.name] - b.mass * b.ac, moment[b.name] - b.moment]) for b in bodies]
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


def test_every_body_obeys_newton_and_euler():
    """Fifty mechanisms: those of few bodies, and two with loops, one of them in a plane."""
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
