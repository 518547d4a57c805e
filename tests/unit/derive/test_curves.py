"""Contacts along curves: gap, slip and rates at the closest place, against closest points found numerically."""
# ruff: noqa: B023 - the functions are called before their variables change

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from fsm_dyn.core.errors import ModelError
from fsm_dyn.derive.assembly import curve_parameter_solver
from fsm_dyn.derive.derivation import build_shared_programs
from fsm_dyn.language.loader import load
from fsm_dyn.language.shape_geometry import periodic_spline
from tests.planar_models import TWO_BODIES

DROP = [(0.5, 0.0), (0.35, 0.3), (0.0, 0.4), (-0.4, 0.25), (-0.5, 0.0), (-0.3, -0.3), (0.1, -0.35)]
CURVES = {
    "cam": {"r": "ra + 0.05*cos(phi) + 0.02*sin(2*phi)"},
    "ellipse": {"x": "2*ra*cos(s)", "y": "-ra*sin(s)"},
    "drop": {"points": [[str(x), str(y)] for x, y in DROP]},
}
PLACES = {
    "cam": lambda s: (0.35 + 0.05 * np.cos(s) + 0.02 * np.sin(2 * s)) * np.array([np.cos(s), np.sin(s)]),
    "ellipse": lambda s: np.array([0.7 * np.cos(s), -0.35 * np.sin(s)]),
    "drop": lambda s: periodic_spline(DROP)(s % (2 * np.pi)),
}
MODEL = {
    **TWO_BODIES,
    "points": {
        **TWO_BODIES["points"],
        "P": {"from": "Bo", "at": "0.3*B.x - 0.2*B.y"},
    },
    "shapes": {
        **{name: {"curve": {"frame": "A", **curve}} for name, curve in CURVES.items()},
        "plate": {"line": {"frame": "B", "along": "2*B.x + B.y"}, "side": "B.y"},
        "rim": {"circle": {"frame": "B", "center": "P", "radius": "0.25"}},
    },
    "contacts": {
        **{f"{name}_P": {"point": "P", "on": name, "friction": 0.3} for name in CURVES},
        **{f"{name}_plate": {"between": [name, "plate"], "friction": 0.3} for name in CURVES},
        **{f"{name}_rim": {"between": [name, "rim"], "friction": 0.3} for name in CURVES},
    },
}


def at(pose, place):
    c, s = np.cos(pose[2]), np.sin(pose[2])
    return pose[:2] + np.array([c * place[0] - s * place[1], s * place[0] + c * place[1]])


def rate_at(pose, rate, place):
    return rate[:2] + rate[2] * np.array([-(place[1] - pose[1]), place[0] - pose[0]])


def nearest(function):
    grid = np.linspace(0, 2 * np.pi, 400)
    best = grid[np.argmin([function(s) for s in grid])]
    return minimize_scalar(function, bracket=(best - 0.02, best, best + 0.02), tol=1e-14).x


@pytest.fixture(scope="module")
def curves():
    from tests.unit.derive.conftest import Model

    model = Model(load(MODEL))
    model.shared = build_shared_programs(model.terms)
    return model


def followed(model, q, u):
    """The terms with the curve parameters of contacts at their solutions; ``q`` holds the six coordinates."""
    c = np.zeros(model.layout.n_c)
    c[model.layout.p_slice] = 0.35
    whole = np.concatenate([q, np.zeros(len(model.layout.q) - 6)])
    curve_parameters = range(6, len(model.layout.q))
    whole = curve_parameter_solver(model.shared.geometry, curve_parameters, 0.0, c)(whole)
    x = np.concatenate([whole, u])
    return x, model.shared.terms.evaluate(0.0, x, c)


def poses():
    random = np.random.default_rng(8)
    for _ in range(12):
        angle = random.uniform(-3, 3)
        centre = random.uniform(0.9, 1.5) * np.array([np.cos(angle), np.sin(angle)])
        yield np.array([*centre, random.uniform(-3, 3), 0, 0, random.uniform(-3, 3)]), random.uniform(-1, 1, 6)


def test_gap_and_slip_at_the_closest_place(curves):
    for q, u in poses():
        _, out = followed(curves, q, u)
        speeds = out["A"] @ u + out["b"]
        point, centre = at(q[3:], (0.3, -0.2)), at(q[3:], (0.0, 0.0))
        normal = at([0, 0, q[5]], np.array([-1, 2]) / np.sqrt(5))
        for contact in curves.terms.contacts:
            name, other = contact.name.split("_")
            place = lambda s, name=name: at(q[:3], PLACES[name](s))  # noqa: E731
            if other == "plate":
                s = nearest(lambda s: (place(s) - centre) @ normal)
                X = place(s)
                gap, n = (X - centre) @ normal, normal
                slip = rate_at(q[:3], u[:3], X) - rate_at(q[3:], u[3:], X)
            else:
                s = nearest(lambda s: np.linalg.norm(place(s) - point))
                n = (point - place(s)) / np.linalg.norm(point - place(s))
                radius = 0.25 if other == "rim" else 0.0
                gap = np.linalg.norm(point - place(s)) - radius
                X = point - radius * n
                slip = rate_at(q[3:], u[3:], X) - rate_at(q[:3], u[:3], X)
                slip = slip if other == "P" else -slip
            assert out["residual"][contact.normal_row] == pytest.approx(gap, abs=1e-10), contact.name
            tangent = np.array([n[1], -n[0]])
            assert speeds[contact.tangent_row] == pytest.approx(slip @ tangent, abs=1e-6), contact.name


def test_rates_are_derivatives_with_the_place_following(curves):
    h = 1e-3
    normal = [c.normal_row for c in curves.terms.contacts if not c.name.startswith("drop")]
    rows = sorted([*normal, *(r + 1 for r in normal)])  # a spline's third derivative jumps: no such differences there
    for q, u in poses():
        x, out = followed(curves, q, u)
        near = {k: followed(curves, q + k * h * u, u) for k in (-2, -1, 1, 2)}

        def rate(value, near=near):
            values = {k: value(*entry) for k, entry in near.items()}
            return (8 * (values[1] - values[-1]) - (values[2] - values[-2])) / (12 * h)

        np.testing.assert_allclose(
            rate(lambda x, o: o["residual"])[normal], (out["A"] @ u + out["b"])[normal], atol=1e-8
        )
        np.testing.assert_allclose(rate(lambda x, o: o["A"] @ u)[rows], out["gamma"][rows], atol=2e-6)
        turned = lambda x, o: np.stack([np.cos(x[6:15]), np.sin(x[6:15])])  # noqa: E731
        c, s = turned(x, out)
        dc, ds = rate(turned)
        expected = c * ds - s * dc  # the derivative of the angle, whole turns aside
        smooth = [i for i, k in enumerate(curves.terms.contacts) if not k.name.startswith("drop")]
        np.testing.assert_allclose(out["q_dot"][6:15][smooth], expected[smooth], atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"curve": {"frame": "A", "r": "0.1*phi + 0.1"}}, "does not close"),
        ({"curve": {"frame": "A", "x": "cos(s)"}}, "needs both 'x' and 'y'"),
        ({"curve": {"frame": "A", "r": "cos(q)"}}, "'q' is a coordinate and may not stand in a formula of phi"),
        ({"curve": {"frame": "A", "points": [["0", "0"], ["1", "0"]]}}, "at least three points"),
        ({"curve": {"frame": "A", "r": "1"}, "side": "inside"}, "touched from outside"),
    ],
)
def test_what_is_no_curve(shape, message):
    changed = {**MODEL, "shapes": {"odd": shape}, "contacts": {"c": {"point": "P", "on": "odd"}}}
    with pytest.raises(ModelError, match=message):
        load(changed)


def test_points_of_a_spline_are_numbers(model):
    odd = {"curve": {"frame": "A", "points": [["ra", "0"], ["0", "1"], ["-1", "0"]]}}
    changed = {**MODEL, "shapes": {"odd": odd}, "contacts": {"c": {"point": "P", "on": "odd"}}}
    with pytest.raises(ModelError, match="depends on a parameter"):
        model(load(changed))
