"""Gap, normal and slip of every pair of features, against closest points found numerically."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize, root

from fsm_dyn.core.errors import ModelError
from fsm_dyn.language.loader import load
from tests.planar_models import TWO_BODIES

# two free bodies in the plane, a shape of each kind on both
CORNERS = [(-0.5, -0.3), (0.6, -0.2), (0.4, 0.5), (0.1, 0.1), (-0.3, 0.4)]
SHAPES = {
    "rim": {"circle": {"frame": "A", "radius": "ra"}},
    "box": {"polygon": {"frame": "A", "points": [[str(x), str(y)] for x, y in CORNERS]}},
    "blade": {"segment": {"frame": "A", "points": [["-0.4", "0.1"], ["0.5", "0.3"]]}, "side": "-A.y"},
    "plane": {"line": {"frame": "B", "along": "2*B.x + B.y"}, "side": "B.y"},
    "step": {"segment": {"frame": "B", "ends": ["E", "F"]}, "side": "B.y"},
    "disk": {"circle": {"frame": "B", "center": "E", "radius": "0.25"}},
    "bowl": {"circle": {"frame": "B", "radius": "3.5"}, "side": "inside"},
    "arch": {"arc": {"frame": "B", "radius": "0.8", "angles": ["0.3", "2.2"]}},
    "dish": {"arc": {"frame": "B", "radius": "3", "angles": ["2.5", "6.1"]}, "side": "inside"},
    "block": {"polygon": {"frame": "B", "points": [[str(-x), str(y)] for x, y in CORNERS]}},
    "pegs": {"circle": {"frame": "B", "center": "E", "radius": "0.1"}, "repeat": {"count": 5, "about": "F"}},
}
POINTED = ("plane", "step", "disk", "bowl", "arch", "block", "pegs")
PAIRS = {f"P_{name}": {"point": "P", "on": name} for name in POINTED}
PAIRS |= {
    f"{a}_{b}": {"between": [a, b]}
    for a, others in {
        "rim": ("plane", "step", "disk", "bowl", "arch", "dish", "block", "pegs"),
        "box": ("plane", "step", "disk", "bowl", "arch", "block"),
        "blade": ("plane", "disk", "bowl", "block"),
    }.items()
    for b in others
}
MODEL = {
    **TWO_BODIES,
    "points": {
        **TWO_BODIES["points"],
        "P": {"from": "Ao", "at": "0.3*A.x - 0.2*A.y"},
        "E": {"from": "Bo", "at": "-0.4*B.x + 0.1*B.y"},
        "F": {"from": "Bo", "at": "0.7*B.x + 0.3*B.y"},
    },
    "shapes": SHAPES,
    "contacts": {name: {**entry, "friction": 0.3} for name, entry in PAIRS.items()},
}


def at(pose, place):
    """A place of a body in the fixed frame."""
    x, y, q = pose
    c, s = np.cos(q), np.sin(q)
    return np.array([x + c * place[0] - s * place[1], y + s * place[0] + c * place[1]])


def turned(place, angle, about):
    d = np.subtract(place, about)
    c, s = np.cos(angle), np.sin(angle)
    return np.array([about[0] + c * d[0] - s * d[1], about[1] + s * d[0] + c * d[1]])


def outline(feature):
    """The feature as a function of a parameter to a place in its body, with the range of the parameter."""
    name, part, i = feature.shape, feature.part, feature.index
    E, F = np.array([-0.4, 0.1]), np.array([0.7, 0.3])
    if part == "point":
        return (lambda s: np.array([0.3, -0.2])), (0.0, 0.0)
    corners = {"box": CORNERS, "block": [(-x, y) for x, y in CORNERS]}.get(name)
    ends = {"blade": ([-0.4, 0.1], [0.5, 0.3]), "step": (E, F), "plane": ([-40.0, -20.0], [40.0, 20.0])}.get(name)
    if corners is not None:
        ends = corners[i], corners[(i + 1) % len(corners)]
    if part == "corner" and ends is not None:
        return (lambda s: np.array(ends[0 if corners is not None else i])), (0.0, 0.0)
    if ends is not None:
        return (lambda s: (1 - s) * np.array(ends[0]) + s * np.array(ends[1])), (0.0, 1.0)
    radius, center, span = {
        "rim": (0.35, (0.0, 0.0), None),
        "disk": (0.25, E, None),
        "bowl": (3.5, (0.0, 0.0), None),
        "arch": (0.8, (0.0, 0.0), (0.3, 2.2)),
        "dish": (3.0, (0.0, 0.0), (2.5, 6.1)),
        "pegs": (0.1, turned(E, 2 * np.pi * feature.copy / 5, F), None),
    }[name]
    if part == "corner":
        return (lambda s: np.array(center) + radius * np.array([np.cos(span[i]), np.sin(span[i])])), (0.0, 0.0)
    span = span or (-20.0, 20.0)
    return (lambda s: np.array(center) + radius * np.array([np.cos(s), np.sin(s)])), span


def closest(features, poses, near=None):
    """Closest places (in the fixed frame) of two features, whether the parameters are inside their ranges, and these.

    They are searched from everywhere, or from the parameters `near` alone.
    """
    curves = [outline(feature) for feature in features]

    def place(k, s):
        return at(poses[k], curves[k][0](s))

    def distance(s):
        return np.sum((place(0, s[0]) - place(1, s[1])) ** 2)

    best = None
    grids = [np.linspace(*(np.clip(span, -4, 4) if span[1] > 10 else span), 7 if span[1] > span[0] else 1)
             for _, span in curves]  # fmt: skip
    starts = [tuple(near)] if near is not None else sorted(itertools.product(*grids), key=distance)[:2]
    for start in starts:
        found = minimize(distance, start, bounds=[span for _, span in curves], method="L-BFGS-B",
                         options={"ftol": 1e-30, "gtol": 1e-13})  # fmt: skip
        if best is None or found.fun < best.fun:
            best = found
    free = [k for k, (_, span) in enumerate(curves) if span[1] > span[0]]
    clear = all(curves[k][1][0] + 1e-3 < best.x[k] < curves[k][1][1] - 1e-3 for k in free)
    if free and clear:  # the gradient to zero: the minimum alone gives the places to half the digits

        def gradient(z):
            s = best.x.copy()
            s[free] = z
            apart = place(0, s[0]) - place(1, s[1])
            return [apart @ (place(k, s[k] + 1e-30j).imag / 1e-30) for k in free]

        best.x[free] = root(gradient, best.x[free], tol=1e-14).x
    inside = all(
        span[0] == span[1] or span[0] + 1e-3 < s < span[1] - 1e-3 for s, (_, span) in zip(best.x, curves, strict=True)
    )
    return place(0, best.x[0]), place(1, best.x[1]), inside, best.x


@pytest.fixture(scope="module")
def shapes():
    from tests.unit.derive.conftest import Model

    return Model(load(MODEL))


def numbers(model, q, u):
    x = np.concatenate([q, u])
    c = np.zeros(model.layout.n_c)
    c[model.layout.p_slice] = 0.35
    contacts = model.terms.contacts
    one, zero = model.terms.graph.one, model.terms.graph.zero
    if not hasattr(model, "ready"):
        model.ready = model.terms.program(
            {
                **{name: model.terms._term(name) for name in ("A", "b", "gamma", "residual")},
                "reach": [one if k.reach is None else k.reach for k in contacts],
                "reach_rate": [zero if k.reach_rate is None else k.reach_rate for k in contacts],
            }
        )
    return model.ready.evaluate(0.0, x, c)


def material(pose, rate, place):
    """Velocity of the material of a body at a place."""
    return rate[:2] + rate[2] * np.array([-(place[1] - pose[1]), place[0] - pose[0]])


def test_every_pair_is_as_far_apart_as_its_closest_points(shapes):
    random = np.random.default_rng(4)
    met = dict.fromkeys(range(len(shapes.terms.contacts)), 0)
    for _ in range(60):
        q = random.uniform(-1, 1, 6) * [1.5, 1.5, 3, 1.5, 1.5, 3]
        u = random.uniform(-1, 1, 6)
        out = numbers(shapes, q, u)
        poses, rates = (q[:3], q[3:]), (u[:3], u[3:])
        for index, contact in enumerate(shapes.terms.contacts):
            gap = out["residual"][contact.normal_row]
            if not 0.01 < gap < 2.0 or out["reach"][index] < 0.01 or met[index]:
                continue
            features = contact.spec.features
            a, b, inside, near = closest(features, poses)
            if not inside and not any(f.part == "corner" for f in features):
                continue  # the closest place is an end, though the foot on the other is within
            apart = np.linalg.norm(a - b)
            if (
                any(f.part in ("face", "round") and not f.shape.startswith("P") for f in features)
                and apart < gap - 1e-9
            ):
                continue  # behind another part of the same outline: the pair is not the closest one
            met[index] += 1
            assert gap == pytest.approx(apart, abs=1e-10), contact.name
            normal = (a - b) / apart
            speeds = out["A"] @ u + out["b"]
            place = a if features[0].part != "face" and not _larger(features) else b
            relative = material(poses[0], rates[0], place) - material(poses[1], rates[1], place)
            sign = -1.0 if features[0].part == "face" or _larger(features) else 1.0
            n = sign * normal
            tangent = np.array([n[1], -n[0]])
            assert speeds[contact.tangent_row] == pytest.approx(relative @ tangent, abs=1e-9), contact.name
            assert speeds[contact.normal_row] == pytest.approx(_rate_of_gap(features, poses, rates, near), abs=1e-6)
    assert sum(count > 0 for count in met.values()) > 0.8 * len(met)


def _larger(features):
    """Whether the normal belongs to the first of two round features."""
    second_is_point = features[1].part in ("point", "corner")
    return features[0].part == "round" and second_is_point


def _rate_of_gap(features, poses, rates, near, h=1e-4):
    def apart(t):  # the shift of time is small: the places are near those of the pair
        a, b, *_ = closest(features, [p + t * r for p, r in zip(poses, rates, strict=True)], near)
        return np.linalg.norm(a - b)

    return (apart(h) - apart(-h)) / (2 * h)


def test_rates_are_derivatives(shapes):
    """Rows against differences of gaps and of their own values, and the rate of the reach."""
    random = np.random.default_rng(5)
    h = 1e-3
    for _ in range(10):
        q, u = random.uniform(-2, 2, 6), random.uniform(-1, 1, 6)
        out = numbers(shapes, q, u)
        near = {k: numbers(shapes, q + k * h * u, u) for k in (-2, -1, 1, 2)}

        def rate(value):
            return (8 * (value(near[1]) - value(near[-1])) - (value(near[2]) - value(near[-2]))) / (12 * h)  # noqa: B023

        # short distances have large derivatives: differences have fewer digits there
        far = np.array([abs(value) > 0.3 for value in out["residual"]])
        speeds = out["A"] @ u + out["b"]
        normal = np.array([row.role == "normal" for row in shapes.terms.rows])
        np.testing.assert_allclose(rate(lambda o: o["residual"])[normal & far], speeds[normal & far], atol=1e-8)
        gamma = rate(lambda o, u=u: o["A"] @ u + o["b"])
        np.testing.assert_allclose(gamma[far], out["gamma"][far], atol=1e-7)
        slopes, edge = rate(lambda o: o["reach"]), np.abs(out["reach_rate"] - rate(lambda o: o["reach"])) > 1e-6
        assert edge.sum() <= 0.1 * edge.size  # a least of two: the differences may straddle the change
        np.testing.assert_allclose(slopes[~edge], out["reach_rate"][~edge], atol=1e-6)


def test_names_and_numbers_of_contacts():
    names = list(load(MODEL).contacts)
    assert [n for n in names if n.startswith("rim_step")] == ["rim_step_face", "rim_step_start", "rim_step_end"]
    assert [n for n in names if n.startswith("P_pegs")] == [f"P_pegs_{k}" for k in range(1, 6)]
    assert [n for n in names if n.startswith("box_plane")] == [
        "box_plane_1",
        "box_plane_2",
        "box_plane_3",
        "box_plane_5",
    ]
    assert {"rim_plane", "P_plane"} <= set(names)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"line": {"frame": "A", "along": "A.x"}, "side": "A.x"}, "lies along it"),
        ({"line": {"frame": "A", "along": "N.x"}, "side": "A.y"}, "is not fixed in frame 'A'"),
        ({"line": {"frame": "A", "along": "A.x + A.z"}, "side": "A.y"}, "leaves the plane"),
        ({"segment": {"frame": "N", "ends": ["E", "F"]}, "side": "N.y"}, "is not fixed in frame 'N'"),
    ],
)
def test_directions_must_be_fixed_and_tell_the_sides(model, shape, message):
    changed = {**MODEL, "shapes": {"odd": shape}, "contacts": {"c": {"point": "P", "on": "odd"}}}
    with pytest.raises(ModelError, match=message):
        model(load(changed))


def test_planar_shapes_share_a_plane(model):
    changed = {
        **MODEL,
        "frames": {**MODEL["frames"], "T": {"rotate": {"x": "0.3"}}},
        "shapes": {
            "rim": SHAPES["rim"],
            "tilted": {"line": {"frame": "T", "from": "O", "along": "T.x"}, "side": "T.y"},
        },
        "contacts": {"c": {"between": ["rim", "tilted"]}},
    }
    with pytest.raises(ModelError, match="do not lie in one plane"):
        model(load(changed))
