"""A free polyhedron above a fixed one, and their separation by brute force."""

import numpy as np
from scipy.spatial import ConvexHull

MASS, G = 2.0, 9.81
SIZE, TABLE = (0.3, 0.2, 0.1), (0.5, 0.4, 0.2)


def two(friction=None, upper=None, lower=None, restitution=0.2, **more):
    """A body with the inertia of a box of `SIZE`, turned by Euler parameters, above a fixed box of `TABLE`."""
    touch = {"between": ["block", "table"], "restitution": "bounce"}
    if friction is not None:
        touch["friction"] = "mu"
    a, b, c = (f"{s} m" for s in SIZE)
    p, q, r = (f"{s} m" for s in TABLE)
    return {
        "fsm_dyn": 1,
        "name": "two_polyhedra",
        "parameters": {"m": f"{MASS} kg", "a": a, "b": b, "c": c, "p": p, "q": q, "r": r, "g": f"{G} m/s^2",
                       "mu": friction or 0.0, "bounce": restitution},
        "coordinates": {"x": "m", "y": "m", "z": "m"},
        "frames": {"B": {"parent": "N", "euler_parameters": "e"}},
        "points": {"P": {"from": "O", "at": "x*N.x + y*N.y + z*N.z"}},
        "bodies": {"brick": {"frame": "B", "center": "P", "mass": "m", "inertia": {
            "xx": "m*(b**2 + c**2)/12", "yy": "m*(a**2 + c**2)/12", "zz": "m*(a**2 + b**2)/12"}}},
        "speeds": {"vx": "rate(x)", "vy": "rate(y)", "vz": "rate(z)", "w1": "dot(omega(B), B.x)",
                   "w2": "dot(omega(B), B.y)", "w3": "dot(omega(B), B.z)"},
        "shapes": {"block": upper or {"box": {"frame": "B", "size": ["a", "b", "c"]}},
                   "table": lower or {"box": {"center": "O", "size": ["p", "q", "r"]}}},
        "contacts": {"rubs": touch},
        "loads": [{"gravity": "-g*N.z"}],
        "initial": {"z": "1 m"},
        **more,
    }  # fmt: skip


def polyhedron(places, **more):
    """A shape from its corners, m."""
    return {"polyhedron": {"corners": [[f"{float(x)!r} m" for x in place] for place in places], **more}}


def random_corners(random, count):
    """Corners on an ellipsoid: all of them are corners of their hull."""
    places = random.normal(size=(count, 3))
    return places / np.linalg.norm(places, axis=1)[:, None] * [0.2, 0.15, 0.1]


def rotation(e):
    """Return the rotation matrix of unit Euler parameters."""
    s, x, y, z = e
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + 2.0 * s * cross + 2.0 * cross @ cross


def separation(first, second):
    """Return the largest gap between parallel planes, negative for the depth of an overlap, and the distance, m.

    The hull of the differences of all corners contains the origin if the bodies overlap; its nearest triangle has their
    distance.  Inputs: corners, shape (n, 3) and (m, 3).
    """
    differences = (first[:, None] - second[None]).reshape(-1, 3)
    hull = ConvexHull(differences)
    return float(hull.equations[:, 3].max()), _nearest(differences[hull.simplices])


def _nearest(triangles):
    """Return the distance of the origin from the nearest triangle, shape (k, 3, 3)."""
    a, b, c = triangles.transpose(1, 0, 2)
    normal = np.cross(b - a, c - a)
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    height = (a * normal).sum(axis=1)
    foot = height[:, None] * normal
    inside, best = np.ones(len(triangles), bool), np.full(len(triangles), np.inf)
    for start, end in ((a, b), (b, c), (c, a)):
        along = end - start
        inside &= (np.cross(along, foot - start) * normal).sum(axis=1) >= 0.0
        share = np.clip(-(start * along).sum(axis=1) / (along * along).sum(axis=1), 0.0, 1.0)
        best = np.minimum(best, np.linalg.norm(start + share[:, None] * along, axis=1))
    return float(np.where(inside, np.abs(height), best).min())


def on_free_base(model):
    """Let the lower box of a pair be a free body of three times the mass."""
    model["frames"]["L"] = {"parent": "N", "euler_parameters": "f"}
    model["coordinates"] |= {"x2": "m", "y2": "m", "z2": "m"}
    model["points"]["Q"] = {"from": "O", "at": "x2*N.x + y2*N.y + z2*N.z"}
    model["bodies"]["base"] = {"frame": "L", "center": "Q", "mass": "3*m", "inertia": {
        "xx": "m*(q**2 + r**2)/4", "yy": "m*(p**2 + r**2)/4", "zz": "m*(p**2 + q**2)/4"}}  # fmt: skip
    model["speeds"] |= {"vx2": "rate(x2)", "vy2": "rate(y2)", "vz2": "rate(z2)", "n1": "dot(omega(L), L.x)",
                        "n2": "dot(omega(L), L.y)", "n3": "dot(omega(L), L.z)"}  # fmt: skip
    model["shapes"]["table"] = {"box": {"frame": "L", "size": ["p", "q", "r"]}}
