"""Scenes of aimed throws: a thing thrown at a target that stands, turns or is driven, and their true distance.

A scene is a model as a mapping, compiled once for all throws: sizes are parameters, places and speeds initial values.
Until they touch, the thing falls freely and spins evenly, and so does the target: their motion is known in closed form,
and with it their distance (:mod:`tests.campaigns.plane_distances`).
"""

from typing import NamedTuple

import numpy as np

from tests.campaigns import plane_distances as plane

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
        Distance (m) of places, shape (n, 2), with its size R.
    extent : float
        Greatest distance of its outline from O, in units of R.
    free : callable, optional
        At which places, with its size R, a touch counts: the back of a thin face is none.
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
DRIVEN = "h + w*t + sway*sin(v*t)"
PARAMETERS = {
    "R": 0.1, "r": 0.03, "e": 0.5, "mu": 0.3, "k": 2e4, "g": 10.0, "h": 0.0, "w": 0.0, "sway": 0.0, "v": 1.0,
}  # fmt: skip


class Scene(NamedTuple):
    """What is thrown at what, how that moves, and by which law they touch."""

    thrown: str
    target: str
    moves: str  # fixed, turning, driven
    law: str

    @property
    def name(self):
        return f"{self.thrown} at {self.moves} {self.target}, {self.law}"

    def model(self):
        """The model as a mapping."""
        turns = {"fixed": "h", "turning": "q", "driven": "turn"}[self.moves]
        contact = {"point": "P", "on": "b"} if self.thrown == "point" else {"between": ["a", "b"]}
        return {
            "fsm_dyn": 1, "name": "thrown",
            "parameters": PARAMETERS,
            "coordinates": ["x", "y", "p", *(["q"] if self.moves == "turning" else [])],
            "frames": {"T": {"parent": "N", "rotate": {"z": "p"}}, "F": {"parent": "N", "rotate": {"z": turns}}},
            "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}, "A": {"from": "O", "at": "0.4*R*F.x"}},
            "bodies": {
                "thing": {"frame": "T", "center": "P", "mass": 0.5, "inertia": {"zz": "0.2*r**2 + 1e-6"}},
                **({"wheel": {"frame": "F", "center": "O", "mass": 1.0, "inertia": {"zz": "R**2"}}}
                   if self.moves == "turning" else {}),
            },
            "shapes": {"b": TARGETS[self.target].shape} | ({"a": THROWN[self.thrown]} if self.thrown in THROWN else {}),
            "contacts": {"hit": {**contact, **LAWS[self.law]}},
            "loads": [{"gravity": "-g*N.y"}],
            **({"inputs": ["turn"], "schedule": {"turn": {"expression": DRIVEN}}} if self.moves == "driven" else {}),
            "initial": {"x": 9.0, "y": 9.0},
        }  # fmt: skip

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


L_PARTS = [np.array([(-1.0, -1.0), (1.0, -1.0), (1.0, 0.2), (-1.0, 0.2)]),
           np.array([(-1.0, -1.0), (0.1, -1.0), (0.1, 1.0), (-1.0, 1.0)])]  # fmt: skip


def scenes():
    """All pairs, moved and held in all ways that the shapes allow."""
    pairs = [
        (a, b) for a in ("ball", "square") for b in TARGETS if (a, b) not in (("square", "arc"), ("square", "curve"))
    ]
    pairs += [("point", b) for b in ("circle", "polygon", "curve", "line")]
    ways = [("fixed", "rigid"), ("turning", "rigid"), ("driven", "rigid"), ("fixed", "rough"), ("turning", "compliant")]
    return [Scene(*pair, *way) for way in ways for pair in pairs]


class Throw(NamedTuple):
    """One throw: the parameters, initial values and end of its run."""

    numbers: dict
    initial: dict
    until: float


def throw(scene, seed):
    """A random throw that passes near the target: sizes, speeds and times over decades."""
    rng = np.random.default_rng([seed, 37])
    target = TARGETS[scene.target]
    while True:
        R = float(10 ** rng.uniform(-2.5, -0.3))
        r = R * float(10 ** rng.uniform(-1.0, 0.3))
        reach = 1.1 * (target.extent * R + EXTENT[scene.thrown] * r)
        strikes = float(10 ** rng.uniform(-1.5, 1.0))
        far, way = reach * float(10 ** rng.uniform(0.1, 2.0)), rng.uniform(0.0, 2.0 * np.pi)
        aim = rng.uniform(-reach, reach, 2)
        g = far / strikes**2 * float(rng.choice([0.0, *10 ** rng.uniform(0.0, 2.0, 3)]))
        start = far * np.array([np.cos(way), np.sin(way)])
        turns = float(rng.choice([-1, 1]) * 10 ** rng.uniform(-1.0, 2.5)) / strikes
        sway = float(rng.uniform(-1.0, 1.0))
        spin = float(rng.choice([0.0, rng.normal(0.0, 8.0) / strikes]))
        rates = (aim - start) / strikes + np.array([0.0, 0.5 * g * strikes])  # that it passes the aim at that time
        coming = np.arctan2(g * strikes - rates[1], -rates[0]) - 0.5 * np.pi + float(rng.uniform(-1.2, 1.2))
        numbers = {
            "R": R, "r": r, "e": float(rng.uniform(0.1, 0.9)), "mu": float(rng.uniform(0.0, 0.6)), "k": 2e4, "g": g,
            "h": coming, "w": 0.0, "sway": 0.0, "v": abs(turns),
        }  # fmt: skip
        initial = {"x": float(start[0]), "y": float(start[1]), "p": float(rng.choice([0.0, rng.uniform(-3.0, 3.0)]))}
        initial |= {"x_dot": float(rates[0]), "y_dot": float(rates[1]), "p_dot": spin}
        if scene.moves == "driven":
            numbers |= {"h": coming - turns * strikes, "w": turns, "sway": sway}
        if scene.moves == "turning":
            initial |= {"q": coming - turns * strikes, "q_dot": turns}
        q = np.array([[initial["x"], initial["y"], initial["p"], initial.get("q", numbers["h"])]])
        if scene.distance(q, numbers)[0] > 0.1 * reach and scene.counts(q, numbers):
            return Throw(
                numbers, initial, strikes * float(rng.choice([rng.uniform(1.05, 2.0), *10 ** rng.uniform(0.3, 1.3, 3)]))
            )


def driven(numbers, t):
    """The angle of a target that is driven, or fixed."""
    return numbers["h"] + numbers["w"] * t + numbers["sway"] * np.sin(numbers["v"] * t)


class Motion(NamedTuple):
    """Free motion from an instant on: columns x, y, p and the angle of the target."""

    scene: Scene
    numbers: dict
    begin: float
    q: np.ndarray
    u: np.ndarray

    def __call__(self, t):
        s = np.asarray(t) - self.begin
        places = self.q[:3] + s[:, None] * self.u[:3]
        places[:, 1] -= 0.5 * self.numbers["g"] * s**2
        return np.column_stack([places, self._turned(np.asarray(t))])

    def _turned(self, t):
        if self.scene.moves == "turning":
            return self.q[3] + self.u[3] * (t - self.begin)
        return driven(self.numbers, t)

    def rate(self, end):
        """The greatest rate of the distance up to an instant, m/s."""
        n = self.numbers
        fallen = self.u[1] - n["g"] * (end - self.begin)
        turn = abs(self.u[3]) if self.scene.moves == "turning" else abs(n["w"]) + abs(n["sway"] * n["v"])
        fastest = np.hypot(self.u[0], max(abs(self.u[1]), abs(fallen)))
        reach = TARGETS[self.scene.target].extent * n["R"]
        if self.scene.target == "line":  # a line has no end: the place that is near may be any
            reach = np.abs(self(np.linspace(self.begin, end, 33))[:, :2]).max() * np.sqrt(2.0) * 1.1 + n["r"] * 2.0
        return 1.0001 * (fastest + abs(self.u[2]) * EXTENT[self.scene.thrown] * n["r"] + turn * reach)
