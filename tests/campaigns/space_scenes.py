"""Scenes of aimed throws in space: balls, points, disks and boxes at planes and at spheres, from outside and inside."""

import numpy as np

from tests.campaigns.throw_scenes import MASS, PARAMETERS, Pair, Throw, ended, joined, laws, lob, plain

TILTS = {"T": -0.5, "F": 0.7}  # rad, about x: the axes about which the thing and the target turn
CORNERS = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-0.6, 0.6) for z in (-0.4, 0.4)])  # of a box, units of r
BALL = {"sphere": {"frame": "T", "center": "P", "radius": "r"}}
THROWN = {
    "ball": BALL,
    "disk": {"disk": {"frame": "T", "center": "P", "axis": "T.x", "radius": "r"}},
    "box": {"box": {"frame": "T", "center": "P", "size": ["2.0*r", "1.2*r", "0.8*r"]}},
}
TARGETS = {
    "sphere": {"sphere": {"frame": "F", "center": "A", "radius": "R"}},
    "inside of sphere": {"sphere": {"frame": "F", "center": "A", "radius": "R"}, "side": "inside"},
    "plane": {"plane": {"frame": "F", "from": "O"}, "side": "F.y"},
}
EXTENT = {"point": 0.0, "ball": 1.0, "disk": 1.0, "box": float(np.linalg.norm(CORNERS[0]))}
ECCENTRIC = 0.4  # of R: the distance of the centre of a sphere from the axis


def axes(frame, angle):
    """The unit vectors of a frame by instant, shape (n, 3, 3), the last axis that of the vector's components."""
    c, s = np.cos(angle), np.sin(angle)
    a, b = np.cos(TILTS[frame]), np.sin(TILTS[frame])
    zero, one = np.zeros_like(c), np.ones_like(c)
    x, y, z = (c, a * s, b * s), (-s, a * c, b * c), (zero, -b * one, a * one)
    return np.stack([np.stack(vector, axis=-1) for vector in (x, y, z)], axis=1)


class SpaceScene(Pair):
    """A scene in space; the axes of the thing and of the target are tilted, and fixed."""

    moving = 4  # coordinates of the thing: x, y, z, p

    def size(self, numbers):
        """The smallest size, m."""
        return min(numbers["R"], numbers["r"] if self.thrown != "point" else np.inf)

    def model(self):
        """The model as a mapping."""
        turn = "q" if self.turns else "turn" if self.driven else "h"
        thing = {
            "coordinates": ["x", "y", "z", "p"],
            "frames": {
                "S": {"parent": "N", "rotate": {"x": TILTS["T"]}}, "T": {"parent": "S", "rotate": {"z": "p"}},
            },
            "points": {"P": {"from": "O", "at": "x*N.x + y*N.y + z*N.z"}},
            "bodies": {"thing": {
                "frame": "T", "center": "P", "mass": MASS,
                "inertia": {"xx": "0.2*r**2 + 1e-6", "yy": "0.2*r**2 + 1e-6", "zz": "0.2*r**2 + 1e-6"},
            }},
            "shapes": {"a": THROWN[self.thrown]} if self.thrown in THROWN else {},
        }  # fmt: skip
        target = {
            "parameters": PARAMETERS,
            "coordinates": ["q"] if self.turns else [],
            "frames": {
                "G": {"parent": "N", "rotate": {"x": TILTS["F"]}}, "F": {"parent": "G", "rotate": {"z": turn}},
            },
            "points": {"A": {"from": "O", "at": f"{ECCENTRIC}*R*F.x"}},
            "bodies": {"wheel": {
                "frame": "F", "center": "O", "mass": 1.0, "inertia": {"xx": "R**2", "yy": "R**2", "zz": "R**2"},
            }},
            "shapes": {"b": TARGETS[self.target]},
        }  # fmt: skip
        return joined(self, thing, target)

    def distance(self, q, numbers):
        """The distance, m, where x, y, z, p and the angle of the target are the columns of ``q``."""
        R, r = numbers["R"], numbers["r"]
        own, other = axes("T", q[:, 3]), axes("F", q[:, 4])
        if self.target == "plane":
            normal = other[:, 1]
            high = np.einsum("ni,ni->n", normal, q[:, :3])
            if self.thrown == "box":
                return high + (r * np.einsum("ki,nij,nj->nk", CORNERS, own, normal)).min(axis=1)
            if self.thrown == "disk":
                along = np.einsum("ni,ni->n", normal, own[:, 0])
                return high - r * np.sqrt(np.maximum(0.0, 1.0 - along**2))
            return high - (r if self.thrown == "ball" else 0.0)
        arm = q[:, :3] - ECCENTRIC * R * other[:, 0]
        if self.thrown == "box":
            return R - np.linalg.norm(arm[:, None] + r * np.einsum("ki,nij->nkj", CORNERS, own), axis=-1).max(axis=1)
        away, thick = np.linalg.norm(arm, axis=-1), r if self.thrown == "ball" else 0.0
        return away - R - thick if self.target == "sphere" else R - thick - away

    def rate(self, motion, end):
        """The greatest rate of the distance on a motion up to an instant, m/s."""
        n, u = motion.numbers, motion.u
        fallen = u[1] - n["g"] * (end - motion.begin)
        turn = abs(u[4]) if self.turns else abs(n["w"]) + abs(n["sway"] * n["v"])
        fastest = np.sqrt(u[0] ** 2 + max(abs(u[1]), abs(fallen)) ** 2 + u[2] ** 2)
        reach = ECCENTRIC * n["R"]
        if self.target == "plane":
            t = np.linspace(motion.begin, end, 33)
            reach = 1.1 * np.linalg.norm(motion(t)[:, :3], axis=1).max() + 2.0 * n["r"]
        return 1.0001 * (fastest + abs(u[3]) * EXTENT[self.thrown] * n["r"] + turn * reach)

    def drawn(self, rng):
        """A random throw, from anywhere, or from inside a sphere."""
        inside = self.target == "inside of sphere"
        R = 10 ** rng.uniform(-2.5, -0.3)
        r = R * 10 ** rng.uniform(-1.0, -0.4 if inside else 0.3)
        reach = 0.5 * R if inside else 1.4 * R + EXTENT[self.thrown] * r
        strikes = 10 ** rng.uniform(-1.5, 1.0)
        far, way = reach * (rng.uniform(0.0, 1.0) if inside else 10 ** rng.uniform(0.1, 2.0)), rng.normal(size=3)
        start, rates, g = lob(rng, far * way / np.linalg.norm(way), rng.uniform(-0.8, 0.8, 3) * reach, strikes)
        until = ended(rng, strikes)
        most = 2.5 if self.target != "plane" else np.log10(2.0 * strikes / until)
        turns = rng.choice([-1.0, 1.0]) * 10 ** rng.uniform(-1.5, most) / strikes
        angle = rng.uniform(-3.0, 3.0)
        fastest = np.linalg.norm(rates) + g * strikes + abs(turns) * (reach if self.target != "plane" else far)
        numbers = laws(rng, fastest, 0.4 * min(R, r)) | {
            "R": R,
            "r": r,
            "g": g,
            "h": angle,
            "w": 0.0,
            "sway": 0.0,
            "v": abs(turns),
        }
        spin = rng.choice([0.0, rng.normal(0.0, 8.0) / strikes])
        initial = dict(zip(("x", "y", "z", "p"), (*start, rng.choice([0.0, rng.uniform(-3.0, 3.0)])), strict=True))
        initial |= dict(zip(("x_dot", "y_dot", "z_dot", "p_dot"), (*rates, spin), strict=True))
        if self.driven:
            numbers |= {"w": turns, "sway": rng.uniform(-1.0, 1.0)}
        if self.turns:
            initial |= {"q": angle, "q_dot": turns}
        return Throw(plain(numbers), plain(initial), until)


def space_scenes():
    """All pairs, moved and held in all ways."""
    pairs = [(a, b) for a in ("ball", "point") for b in TARGETS]
    pairs += [("disk", "plane"), ("box", "plane"), ("box", "inside of sphere")]
    ways = [("fixed", "rigid"), ("turning", "rigid"), ("driven", "rigid"), ("used", "rigid"), ("turning", "compliant")]
    return [SpaceScene(*pair, *way) for way in ways for pair in pairs]
