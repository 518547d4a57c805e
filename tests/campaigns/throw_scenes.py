"""Scenes of aimed throws: a thing thrown at a target that stands, turns or is driven, and their true distance.

A scene is a mapping of a model, compiled once for all throws: sizes are parameters, positions and speeds are initial.
Until they touch, the thing falls freely and spins evenly, and so does the target: their motion is known in closed form,
and with it their distance (:mod:`tests.campaigns.plane_distances`).
"""

from typing import NamedTuple

import numpy as np

from tests.campaigns import plane_distances as plane

MASS = 0.5  # kg, of the thing
L_SHAPE = np.array([(-1.0, -1.0), (1.0, -1.0), (1.0, 0.2), (0.1, 0.2), (0.1, 1.0), (-1.0, 1.0)])
SQUARE = np.array([(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)])
ARC = (np.radians(25.0), np.radians(160.0))
BULGE = 0.12  # of the radius of a curve: it is convex


def outline(corners, size):
    """Corners of an outline as text, in units of a parameter."""
    return [[f"{x!r}*{size}", f"{y!r}*{size}"] for x, y in corners.tolist()]


class Target(NamedTuple):
    """A target in its own frame F about O.

    Attributes
    ----------
    shape : dict
        Its entry in a model.
    far : callable
        Distance (m) of points, shape (n, 2), with its size R.
    extent : float
        Greatest distance of its outline from O, in units of R.
    free : callable, optional
        At which points, with its size R, a touch counts: the back of a thin face is none.
    """

    shape: dict
    far: object
    extent: float
    free: object = None


def _curve(places, size):
    return plane.to_curve(
        places,
        lambda phi: size * (1.0 + BULGE * np.cos(2.0 * phi)),
        lambda phi: -2.0 * size * BULGE * np.sin(2.0 * phi),
        lambda phi: -4.0 * size * BULGE * np.cos(2.0 * phi),
    )


TARGETS = {
    "circle": Target({"circle": {"frame": "F", "center": "A", "radius": "R"}},
                     lambda p, R: np.hypot(p[:, 0] - 0.4 * R, p[:, 1]) - R, 1.4),
    "segment": Target({"segment": {"frame": "F", "from": "O", "points": [["-R", "0"], ["R", "0"]]}, "side": "F.y"},
                      lambda p, R: plane.to_segment(p, (-R, 0.0), (R, 0.0)), 1.0, lambda p, R: p[:, 1] > 0.0),
    "arc": Target({"arc": {"frame": "F", "center": "O", "radius": "R", "angles": list(ARC)}},
                  lambda p, R: plane.to_arc(p, R, ARC), 1.0, lambda p, R: np.hypot(*p.T) > R),
    "polygon": Target({"polygon": {"frame": "F", "from": "O", "points": outline(L_SHAPE, "R")}},
                      lambda p, R: plane.to_polygon(p, R * L_SHAPE), np.sqrt(2.0)),
    "curve": Target({"curve": {"frame": "F", "from": "O", "r": f"R*(1 + {BULGE}*cos(2*phi))"}}, _curve, 1.0 + BULGE),
    "line": Target({"line": {"frame": "F", "from": "O", "along": "F.x"}, "side": "F.y"}, lambda p, R: p[:, 1], 1.0),
}  # fmt: skip

# how what is thrown is held: its entry in a model
THROWN = {
    "ball": {"circle": {"frame": "T", "center": "P", "radius": "r"}},
    "square": {"polygon": {"frame": "T", "from": "P", "points": outline(SQUARE, "r")}},
}
EXTENT = {"ball": 1.0, "square": np.sqrt(2.0), "point": 0.0}
LAWS = {
    "rigid": {"restitution": "e"},
    "rough": {"restitution": "e", "friction": "mu"},
    "compliant": {"compliant": {"stiffness": "k"}},
}
PARAMETERS = {
    "R": 0.1, "r": 0.03, "e": 0.5, "mu": 0.3, "k": 2e4, "g": 10.0, "h": 0.0, "w": 0.0, "sway": 0.0, "v": 1.0,
}  # fmt: skip


class Pair(NamedTuple):
    """What is thrown at what, how that moves, and by which law they touch.

    Attributes
    ----------
    moves : str
        How the target is held: ``fixed``, ``turning``, ``driven`` by an input, or ``used``: turning, as a component.
    """

    thrown: str
    target: str
    moves: str
    law: str

    @property
    def name(self):
        return f"{self.thrown} at {self.moves} {self.target}, {self.law}"

    @property
    def turns(self):
        """Whether the target has a coordinate, its angle q."""
        return self.moves in ("turning", "used")

    @property
    def driven(self):
        return self.moves == "driven"

    def counts(self, q, numbers):
        """Whether a touch there is one that the shapes promise: not from behind a thin face."""
        del q, numbers
        return True

    def throw(self, seed):
        """A random throw that passes near the target: sizes, speeds and times over decades."""
        rng = np.random.default_rng([seed, 37])
        while True:
            one = self.drawn(rng)
            q = np.array([[*list(one.initial.values())[: self.moving], one.initial.get("q", one.numbers["h"])]])
            if self.distance(q, one.numbers)[0] > 0.1 * one.numbers["R"] and self.counts(q, one.numbers):
                return one


class Scene(Pair):
    """A scene in the plane; ``moves`` may be any of :class:`Pair`."""

    moving = 3  # coordinates of the thing: x, y, p

    def size(self, numbers):
        """The smallest size, m."""
        return min(numbers["R"], numbers["r"] if self.thrown in THROWN else np.inf)

    def model(self):
        """The model as a mapping."""
        thing = {
            "coordinates": ["x", "y", "p"],
            "frames": {"T": {"parent": "N", "rotate": {"z": "p"}}},
            "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}},
            "bodies": {"thing": {"frame": "T", "center": "P", "mass": MASS, "inertia": {"zz": "0.2*r**2 + 1e-6"}}},
            "shapes": {"a": THROWN[self.thrown]} if self.thrown in THROWN else {},
        }  # fmt: skip
        target = {
            "parameters": PARAMETERS,
            "coordinates": ["q"] if self.turns else [],
            "frames": {"F": {"parent": "N", "rotate": {"z": "q" if self.turns else "turn" if self.driven else "h"}}},
            "points": {"A": {"from": "O", "at": "0.4*R*F.x"}},
            "bodies": {"wheel": {"frame": "F", "center": "O", "mass": 1.0, "inertia": {"zz": "R**2"}}},
            "shapes": {"b": TARGETS[self.target].shape},
        }
        return joined(self, thing, target)

    def distance(self, q, numbers):
        """The distance, m, where x, y, p and the angle of the target are the columns of ``q``."""
        target, R, r = TARGETS[self.target], numbers["R"], numbers["r"]
        center = plane.turned(q[:, :2], -q[:, 3])
        if self.thrown != "square":
            return target.far(center, R) - (r if self.thrown == "ball" else 0.0)
        corners = center[:, None] + plane.turned(r * SQUARE[None], (q[:, 2] - q[:, 3])[:, None])
        if self.target == "circle":
            back = plane.turned(np.array([0.4 * R, 0.0]) - center, q[:, 3] - q[:, 2])
            return plane.to_polygon(back, r * SQUARE) - R
        if self.target == "line":
            return corners[..., 1].min(axis=1)
        if self.target == "segment":
            ends = np.broadcast_to([(-R, 0.0), (R, 0.0)], (len(q), 2, 2))
            return plane.between_convex(corners, ends)
        parts = [np.broadcast_to(R * part, (len(q), len(part), 2)) for part in L_PARTS]
        return np.minimum(*(plane.between_convex(corners, part) for part in parts))

    def counts(self, q, numbers):
        """Whether a touch there is one that the shapes promise: not from behind a thin face."""
        free = TARGETS[self.target].free
        return free is None or bool(free(plane.turned(q[:, :2], -q[:, 3]), numbers["R"])[0])

    def rate(self, motion, end):
        """The greatest rate of the distance on a motion up to an instant, m/s."""
        n, u = motion.numbers, motion.u
        fallen = u[1] - n["g"] * (end - motion.begin)
        turn = abs(u[3]) if self.turns else abs(n["w"]) + abs(n["sway"] * n["v"])
        fastest = np.hypot(u[0], max(abs(u[1]), abs(fallen)))
        reach = TARGETS[self.target].extent * n["R"]
        if self.target == "line":  # a line has no end: any point of it may be near
            reach = np.abs(motion(np.linspace(motion.begin, end, 33))[:, :2]).max() * np.sqrt(2.0) * 1.1 + n["r"] * 2.0
        return 1.0001 * (fastest + abs(u[2]) * EXTENT[self.thrown] * n["r"] + turn * reach)

    def drawn(self, rng):
        """A random throw, from anywhere."""
        R = 10 ** rng.uniform(-2.5, -0.3)
        r = R * 10 ** rng.uniform(-1.0, 0.3)
        reach = 1.1 * (TARGETS[self.target].extent * R + EXTENT[self.thrown] * r)
        strikes = 10 ** rng.uniform(-1.5, 1.0)
        far, way = reach * 10 ** rng.uniform(0.1, 2.0), rng.uniform(0.0, 2.0 * np.pi)
        start, rates, g = lob(
            rng, far * np.array([np.cos(way), np.sin(way)]), rng.uniform(-0.8 * reach, 0.8 * reach, 2), strikes
        )
        until = ended(rng, strikes)
        flung = self.turns and self.target == "line" and self.law == "compliant"
        if flung:  # from ever farther along a line without end: soon no clock resolves how a light wheel swings
            until = min(until, 1.3 * strikes)
        most = 2.5 if self.target != "line" else np.log10(2.0 * strikes / until)  # the end of a line is fast otherwise
        turns = rng.choice([-1.0, 1.0]) * 10 ** rng.uniform(-1.5, most) / strikes
        spin = rng.choice([0.0, rng.normal(0.0, 8.0) / strikes])
        facing = np.arctan2(g * strikes - rates[1], -rates[0]) - 0.5 * np.pi + rng.uniform(-1.2, 1.2)
        fastest = np.linalg.norm(rates) + g * strikes + abs(turns) * (reach if self.target != "line" else far)
        numbers = laws(rng, fastest, min(R, r)) | {
            "R": R, "r": r, "g": g, "h": facing, "w": 0.0, "sway": 0.0, "v": abs(turns),
        }  # fmt: skip
        if flung:
            numbers["k"] *= 1.0 / (1.0 + MASS * (far / R) ** 2)  # of the mass that the wheel has there
        angle = rng.choice([0.0, rng.uniform(-3.0, 3.0)])
        initial = {"x": start[0], "y": start[1], "p": angle, "x_dot": rates[0], "y_dot": rates[1], "p_dot": spin}
        if self.driven:
            numbers |= {"h": facing - turns * strikes, "w": turns, "sway": rng.uniform(-1.0, 1.0)}
        if self.turns:
            initial |= {"q": facing - turns * strikes, "q_dot": turns}
        return Throw(plain(numbers), plain(initial), until)


L_PARTS = [np.array([(-1.0, -1.0), (1.0, -1.0), (1.0, 0.2), (-1.0, 0.2)]),
           np.array([(-1.0, -1.0), (0.1, -1.0), (0.1, 1.0), (-1.0, 1.0)])]  # fmt: skip


def planar_scenes():
    """All pairs, moved and held in all ways that the shapes allow."""
    pairs = [
        (a, b) for a in ("ball", "square") for b in TARGETS if (a, b) not in (("square", "arc"), ("square", "curve"))
    ]
    pairs += [("point", b) for b in ("circle", "polygon", "curve", "line")]
    ways = [
        ("fixed", "rigid"), ("turning", "rigid"), ("driven", "rigid"),
        ("used", "rigid"), ("fixed", "rough"), ("turning", "compliant"),
    ]  # fmt: skip
    return [Scene(*pair, *way) for way in ways for pair in pairs]


# -- what planar and spatial scenes share --------------------------------------------------------------------


def joined(scene, thing, target):
    """One model of a thing and its target, which may be a component."""
    thrown = "a" in thing["shapes"]
    shared = {"fsm_dyn": 1, "name": "thrown", "parameters": PARAMETERS, "loads": [{"gravity": "-g*N.y"}]}
    if scene.driven:
        shared |= {"inputs": ["turn"], "schedule": {"turn": {"expression": "h + w*t + sway*sin(v*t)"}}}
    name = "target_b" if scene.moves == "used" else "b"
    pair = {"between": ["a", name]} if thrown else {"point": "P", "on": name}
    shared |= {"contacts": {"hit": {**pair, **LAWS[scene.law]}}, "initial": {"x": 9.0, "y": 9.0}}
    if scene.moves == "used":
        part = {"model": {"fsm_dyn": 1, "name": "target", **target}, "with": {name: name for name in PARAMETERS}}
        return thing | shared | {"use": {"target": part}}
    if not scene.turns:
        target = target | {"bodies": {}}
    whole = {key: target[key] | thing[key] for key in ("frames", "points", "bodies", "shapes")}
    return shared | whole | {"coordinates": thing["coordinates"] + target["coordinates"]}


class Throw(NamedTuple):
    """One throw: the parameters, initial values and end of its run."""

    numbers: dict
    initial: dict
    until: float

    def started(self, scene):
        """The initial values under their names in the model of a scene."""
        if scene.moves != "used":
            return self.initial
        return {f"target_{name}" if name[0] == "q" else name: value for name, value in self.initial.items()}


def plain(numbers):
    return {name: float(number) for name, number in numbers.items()}


def lob(rng, start, aim, strikes):
    """Start, velocity and gravity of a flight that passes a point after a time; the second component falls."""
    far = np.linalg.norm(start)
    g = far / strikes**2 * rng.choice([0.0, *10 ** rng.uniform(0.0, 2.0, 3)])
    rates = (aim - start) / strikes
    rates[1] += 0.5 * g * strikes
    return start, rates, g


def ended(rng, strikes):
    """The end of a run in which something is to happen about a time; mostly long after it."""
    return float(strikes * rng.choice([rng.uniform(1.05, 2.0), *10 ** rng.uniform(0.3, 1.3, 3)]))


def laws(rng, fastest, smallest):
    """Restitution, friction, and a stiffness that stops what is fast (m/s) within 0.1 of the smallest size (m)."""
    return {"e": rng.uniform(0.1, 0.9), "mu": rng.uniform(0.0, 0.6), "k": MASS * (fastest / (0.1 * smallest)) ** 2}


def driven(numbers, t):
    """The angle of a target that is driven, or fixed."""
    return numbers["h"] + numbers["w"] * t + numbers["sway"] * np.sin(numbers["v"] * t)


class Motion(NamedTuple):
    """Free motion from an instant on: coordinates of the thing, the second of which falls, and the target's angle."""

    scene: Scene
    numbers: dict
    begin: float
    q: np.ndarray
    u: np.ndarray

    def __call__(self, t):
        n, s = self.scene.moving, np.asarray(t) - self.begin
        q = self.q[:n] + s[:, None] * self.u[:n]
        q[:, 1] -= 0.5 * self.numbers["g"] * s**2
        angle = self.q[n] + self.u[n] * s if self.scene.turns else driven(self.numbers, np.asarray(t))
        return np.column_stack([q, angle])
