"""Models of equal bricks: towers, floors of tiles, rows of dominoes on slabs; whatever can lie flush does.

Models are mappings, so that the number of bricks is a number.  Bricks are rectangles; how deep two of them overlap is
worked out from the positions alone, by separating axes.
"""

import numpy as np

WIDTH, HEIGHT = 0.2, 0.1  # of a brick, m
THIN, TALL = 0.04, 0.2  # of a domino
TILE = 0.2  # m
DEPTH = 0.1  # of slabs
MASS = 1.0  # kg


def _rectangle(frame, origin, a, b, middle=(0.0, 0.0)):
    x, y = middle
    corners = [(x - a / 2, y - b / 2), (x + a / 2, y - b / 2), (x + a / 2, y + b / 2), (x - a / 2, y + b / 2)]
    return {"polygon": {"frame": frame, "from": origin, "points": [[float(x), float(y)] for x, y in corners]}}


def _bricks(name, size, places):
    """A model of equal bricks with their centres at these places, and nothing to stand on yet."""
    a, b = size
    n = len(places)
    return {
        "fsm_dyn": 1, "name": name,
        "parameters": {"m": MASS, "J": MASS * (a * a + b * b) / 12.0, "mu": 0.5, "e": 0.0},
        "coordinates": [f"{c}{i}" for i in range(n) for c in "xyq"],
        "frames": {f"B{i}": {"parent": "N", "rotate": {"z": f"q{i}"}} for i in range(n)},
        "points": {f"C{i}": {"from": "O", "at": f"x{i}*N.x + y{i}*N.y"} for i in range(n)},
        "bodies": {
            f"brick{i}": {"frame": f"B{i}", "center": f"C{i}", "mass": "m", "inertia": {"zz": "J"}} for i in range(n)
        },
        "speeds": {f"{v}{i}": f"rate({c}{i})" for i in range(n) for v, c in (("vx", "x"), ("vy", "y"), ("w", "q"))},
        "shapes": {f"s{i}": _rectangle(f"B{i}", f"C{i}", a, b) for i in range(n)},
        "contacts": {},
        "loads": [{"gravity": "-9.81*N.y"}],
        "initial": {f"{c}{i}": float(at[k]) for i, at in enumerate(places) for k, c in enumerate("xy")},
    }  # fmt: skip


def _touch(model, first, second):
    name = f"{first}_on_{second}"
    model["contacts"][name] = {"between": [first, second], "friction": "mu", "restitution": "e"}


def tower(n):
    """Bricks on each other, flush, on a table of their own width; the input pushes the one that is on top."""
    model = _bricks(f"tower_{n}", (WIDTH, HEIGHT), [(0.0, (i + 0.5) * HEIGHT) for i in range(n)])
    model["shapes"]["table"] = _rectangle("N", "O", WIDTH, DEPTH, (0.0, -DEPTH / 2))
    _touch(model, "s0", "table")
    for i in range(1, n):
        _touch(model, f"s{i}", f"s{i - 1}")
    model["inputs"] = ["push"]
    model["loads"].append({"force": "push*N.x", "at": f"C{n - 1}", "name": "pushing"})
    return model


def tiles(n):
    """A brick on a floor of flush tiles; the input pushes it."""
    model = _bricks(f"tiles_{n}", (WIDTH, HEIGHT), [(0.0, HEIGHT / 2)])
    for k in range(n):
        middle = (k - 0.5 * (n - 1)) * TILE
        model["shapes"][f"tile{k}"] = _rectangle("N", "O", TILE, DEPTH, (middle, -DEPTH / 2))
        _touch(model, "s0", f"tile{k}")
    model["inputs"] = ["push"]
    model["loads"].append({"force": "push*N.x", "at": "C0", "name": "pushing"})
    return model


def dominoes(n, rows=1, apart=64.0):
    """Dominoes on a row of slabs, each in the middle of its own; the first is knocked.

    Of several rows each is ``apart`` (m) from the one before, and nothing of it touches another.
    """
    at = [(r * apart + (i + 0.5) * 0.5 * TILE, i, r * n) for r in range(rows) for i in range(n)]
    model = _bricks(f"dominoes_{n}", (THIN, TALL), [(x, TALL / 2) for x, _, _ in at])
    for k, (x, _, _) in enumerate(at):
        model["shapes"][f"slab{k}"] = _rectangle("N", "O", 0.5 * TILE, DEPTH, (x, -DEPTH / 2))
    for _, i, first in at:
        for k in range(max(i - 1, 0), min(i + 3, n)):
            _touch(model, f"s{first + i}", f"slab{first + k}")
        if i:
            _touch(model, f"s{first + i - 1}", f"s{first + i}")
    model["inputs"] = ["push"]
    model["loads"].append({"force": "push*N.x", "at": "C0", "name": "pushing"})
    return model


def rectangles(model, q):
    """Corners of all rectangles at positions q (T, n_q), those that move first: shape (T, count, 4, 2)."""
    found = []
    for shape in model["shapes"].values():
        polygon = shape["polygon"]
        corners = np.array(polygon["points"])
        if polygon["frame"] == "N":
            found.append(np.broadcast_to(corners, (len(q), 4, 2)))
            continue
        x, y, angle = q[:, 3 * int(polygon["frame"][1:]) :][:, :3].T
        c, s = np.cos(angle), np.sin(angle)
        turn = np.array([[c, -s], [s, c]])
        found.append(np.einsum("ijt,kj->tki", turn, corners) + np.stack([x, y], axis=-1)[:, None])
    return np.stack(found, axis=1)


def deepest(model, q):
    """How deep (m) two shapes with a contact between them overlap at the most, by separating axes; <= 0: nowhere."""
    corners = rectangles(model, q)
    names = list(model["shapes"])
    worst = -np.inf
    for contact in model["contacts"].values():
        a, b = (corners[:, names.index(name)] for name in contact["between"])
        worst = max(worst, float(_overlap(a, b).max()))
    return worst


def _overlap(a, b):
    """How far two convex outlines (T, 4, 2) have to be moved to be apart, negative where they are; per instant."""
    least = np.full(len(a), np.inf)
    for outline in (a, b):
        edges = (np.roll(outline, -1, axis=1) - outline)[:, :2]  # a rectangle has two directions
        axes = np.stack([edges[..., 1], -edges[..., 0]], axis=-1)
        axes = axes / np.linalg.norm(axes, axis=-1, keepdims=True)
        for k in range(2):
            pa, pb = (np.einsum("tkj,tj->tk", shape, axes[:, k]) for shape in (a, b))
            least = np.minimum(least, np.minimum(pa.max(1) - pb.min(1), pb.max(1) - pa.min(1)))
    return least
