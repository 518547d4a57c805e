"""Contacts in space that share friction hold as long as any forces within their cones do, by every method.

In closed form for a ball in a straight groove, and by linear programs on cones of many faces for one in a corner.
"""

from math import atan, cos, pi, radians, sin, sqrt

import numpy as np
import pytest
from scipy.optimize import linprog

import fsm_dyn
from fsm_dyn.analysis.sensitivities import sensitivities
from fsm_dyn.core.errors import InputError
from tests.exports.building import built
from tests.exports.test_c99 import check_same

M, R, G = 2.0, 0.1, 9.81
WAYS = [
    {}, {"strategy": "online"}, {"strategy": "compiled"}, {"method": "rk4", "step": 1e-3}, {"method": "radau"},
    {"method": "bdf"}, {"method": "moreau_jean", "step": 1e-3},
]  # fmt: skip
EXACT = [way for way in WAYS if way.get("method") not in ("moreau_jean", "bdf")]


def ball(normals, weight, **more):
    """A ball on planes through the origin, with these normals; each is named, its normal a vector."""
    contacts, points = {}, {}
    for name, normal in normals.items():
        along = np.linalg.svd(np.array([normal]))[2][1:]
        out, first, second = (" + ".join(f"({x!r})*A.{i}" for x, i in zip(v.tolist(), "xyz", strict=True))
                              for v in (np.asarray(normal), *along))  # fmt: skip
        points[f"P{name}"] = {"from": "C", "at": f"-r*({out})"}
        contacts[name] = {
            "gap": f"dot(pos(C), {out}) - r", "friction": "mu",
            "slip": [f"dot(vel(P{name}, B), {axis})" for axis in (first, second)],
        }  # fmt: skip
    return {
        "fsm_dyn": 1, "name": "ball",
        "parameters": {"m": f"{M} kg", "r": f"{R} m", "g": f"{G} m/s^2", "mu": 0.5, "b": "0.2 rad", "p": "0 rad/s",
                       "turned": 0.4},
        "coordinates": {"x": "m", "y": "m", "z": "m"},
        "frames": {"A": {"parent": "N", "rotate": {"z": "turned"}}, "B": {"parent": "N", "euler_parameters": "e"}},
        "points": {"C": {"from": "O", "at": "x*A.x + y*A.y + z*A.z"}, **points},
        "bodies": {"ball": {"frame": "B", "center": "C", "mass": "m",
                            "inertia": dict.fromkeys(("xx", "yy", "zz"), "0.4*m*r**2")}},
        "speeds": {**{f"v{i}": f"rate({i})" for i in "xyz"}, **{f"w{i}": f"dot(omega(B), N.{i})" for i in "xyz"}},
        "contacts": contacts,
        "loads": [{"force": weight, "at": "C"}],
        "initial": {axis: f"{x!r} m" for axis, x in zip("xyz", place_of(normals).tolist(), strict=True)},
        **more,
    }  # fmt: skip


def place_of(normals):
    """The center of the ball that touches all planes."""
    return np.linalg.lstsq(np.array([*normals.values()]), np.full(len(normals), R), rcond=None)[0]


def groove(order, faces, mirrored=False):
    """A ball in a groove along x whose faces have the normals leaning by an angle to either side."""
    sides = {"L": (0.0, -sin(faces), cos(faces)), "R": (0.0, sin(faces), cos(faces))}
    way = "-" if mirrored else ""
    return ball({name: sides[name] for name in order}, f"m*g*({way}sin(b + p*t)*A.x - cos(b + p*t)*A.z)")


def rolling(faces):
    """Part of its weight along the groove that accelerates the ball."""
    return 1.0 / (1.0 + 0.4 / cos(faces) ** 2)


@pytest.mark.parametrize(("order", "mirrored", "degrees"), [("LR", False, 45.0), ("RL", True, 60.0)])
def test_a_ball_rolls_down_a_groove(order, mirrored, degrees):
    """The forces of least norm are vertical, beyond the cones; others within them hold."""
    faces = radians(degrees)
    simulator = fsm_dyn.Simulator(fsm_dyn.compile(groove(order, faces, mirrored)))
    for way in WAYS:
        run = simulator.run(0.5, **way)
        expected = (-1 if mirrored else 1) * 0.125 * G * sin(0.2) * rolling(faces)
        assert not run.transitions
        assert run.q[-1, 0] == pytest.approx(expected, rel=1e-7), way
        assert run.energy.relative_residual < 1e-6
        assert run.admissible.all()


@pytest.mark.parametrize(("order", "mirrored", "mu"), [("LR", False, 0.1), ("RL", True, 0.3)])
def test_a_ball_slips_in_a_groove_that_is_tilted(order, mirrored, mu):
    """At F = mu L / sqrt(c² - mu² s²) along each face, of a load L on each, pressed together by friction across."""
    faces = radians(45.0)
    limit = atan(mu / sqrt(cos(faces) ** 2 - (mu * sin(faces)) ** 2) / (1.0 - rolling(faces)))
    simulator = fsm_dyn.Simulator(fsm_dyn.compile(groove(order, faces, mirrored)))
    for way in EXACT:
        run = simulator.run(limit + 0.02, parameters={"b": 0.0, "p": 1.0, "mu": mu}, **way)
        assert run.transitions[0].time == pytest.approx(limit, rel=1e-7), way
        assert set(str(run.transitions[0].target).split("+")) == {"L_slide", "R_slide"}
        assert run.outcome.name == "done"
    for step in (1e-3, 2e-4):
        stepped = simulator.run(
            limit + 0.02, parameters={"b": 0.0, "p": 1.0, "mu": mu}, method="moreau_jean", step=step
        )
        assert 0.0 <= stepped.transitions[0].time - limit < 2.0 * step
        assert set(str(stepped.transitions[0].target).split("+")) == {"L_slide", "R_slide"}
        assert stepped.q[-1, 0] == pytest.approx(run.q[-1, 0], abs=step * abs(run.u[-1, 0]))
        assert not stepped.warnings


def release(points, normals, mu, weight, faces=720):
    """The angle at which the weight, a function of it, leaves the sum of the cones at some points, by bisection."""
    columns = []
    for point, normal in zip(points, normals, strict=True):
        along = np.linalg.svd(np.array([normal]))[2][1:]
        for angle in np.arange(faces) * 2.0 * pi / faces:
            force = np.asarray(normal) + mu * (cos(angle) * along[0] + sin(angle) * along[1])
            columns.append([*force, *np.cross(point, force)])
    matrix = np.array(columns).T

    def holds(angle):
        right = np.array([*-weight(angle), 0.0, 0.0, 0.0])
        return linprog(np.ones(matrix.shape[1]), A_eq=matrix, b_eq=right, method="highs").status == 0

    low, high = 0.0, pi / 2
    assert holds(low)
    assert not holds(high)
    while high - low > 1e-7:
        low, high = (0.5 * (low + high), high) if holds(0.5 * (low + high)) else (low, 0.5 * (low + high))
    return low


@pytest.mark.parametrize("seed", range(3))
def test_a_ball_leaves_a_corner_when_no_forces_hold_it(seed):
    """Three planes, the weight turned about an axis: nothing moves before, so balance alone decides."""
    rng = np.random.default_rng(seed)
    leans, mu = rng.uniform(0.5, 0.9, 3), float(rng.uniform(0.15, 0.4))
    angles = np.arange(3) * 2.0 * pi / 3 + rng.uniform(-0.3, 0.3, 3)
    normals = {
        name: (sin(lean) * cos(angle), sin(lean) * sin(angle), cos(lean))
        for name, lean, angle in zip("ijk", leans, angles, strict=True)
    }
    normals = {name: tuple(map(float, normals[name])) for name in ("ijk", "kij", "jki")[seed]}
    direction = rng.uniform(0.0, 2.0 * pi)
    axis = np.array([cos(direction), sin(direction), 0.0])
    x, y = (float(v) for v in np.cross(axis, [0.0, 0.0, -1.0])[:2])
    graph = fsm_dyn.compile(ball(normals, f"m*g*(sin(p*t)*(({x!r})*A.x + ({y!r})*A.y) - cos(p*t)*A.z)"))
    side = np.array([x, y, 0.0])
    expected = release(
        [-np.array(n) for n in normals.values()], normals.values(), mu,
        lambda angle: sin(angle) * side - cos(angle) * np.array([0.0, 0.0, 1.0]),
    )  # fmt: skip
    for way in EXACT:
        run = fsm_dyn.simulate(graph, expected + 0.01, parameters={"mu": mu, "p": 1.0}, **way)
        moving = np.flatnonzero(np.abs(run.u).max(axis=1) > 1e-9)
        assert run.t[moving[0] - 1] == pytest.approx(expected, abs=1e-5), way
        assert run.transitions[0].time == pytest.approx(expected, abs=1e-5), way
    run = fsm_dyn.simulate(graph, expected + 0.01, parameters={"mu": mu, "p": 1.0}, method="moreau_jean", step=1e-3)
    assert 0.0 <= run.transitions[0].time - expected < 2e-3


def body(shapes, contacts, inertia, weight, **points):
    """A free body of 2 kg at the origin, under its weight, a vector."""
    return {
        "fsm_dyn": 1, "name": "body",
        "parameters": {"m": f"{M} kg", "g": f"{G} m/s^2", "mu": 0.3, "p": "1 rad/s"},
        "coordinates": {"x": "m", "y": "m", "z": "m"},
        "frames": {"B": {"parent": "N", "euler_parameters": "e"}},
        "points": {"C": {"from": "O", "at": "x*N.x + y*N.y + z*N.z"}, **points},
        "bodies": {"solid": {"frame": "B", "center": "C", "mass": "m", "inertia": inertia}},
        "speeds": {**{f"v{i}": f"rate({i})" for i in "xyz"}, **{f"w{i}": f"dot(omega(B), B.{i})" for i in "xyz"}},
        "shapes": shapes,
        "contacts": {f"on_{name}": {"between": ["body", name], "friction": "mu"} for name in contacts},
        "loads": [{"force": weight, "at": "C"}],
        "initial": {"x": "0 m"},
    }  # fmt: skip


def vector(parts):
    return "(" + " + ".join(f"({float(part)!r})*N.{axis}" for part, axis in zip(parts, "xyz", strict=True)) + ")"


@pytest.mark.parametrize(("order", "mirrored", "degrees"), [("LR", False, 45.0), ("RL", True, 60.0)])
def test_a_wheel_rolls_in_the_bottom_of_a_groove(order, mirrored, degrees):
    """A thin disk stands on both faces in one point: six forces, of which three count."""
    sides = {name: (0.0, sign * sin(radians(degrees)), cos(radians(degrees))) for name, sign in (("L", -1), ("R", 1))}
    shapes = {"body": {"disk": {"frame": "B", "center": "C", "axis": "B.y", "radius": f"{R} m"}}}
    shapes |= {name: {"plane": {"from": "O"}, "side": vector(side)} for name, side in sides.items()}
    along = -0.3 if mirrored else 0.3
    inertia = {"xx": f"m*{R}**2*(1 m)**2/4", "yy": f"m*{R}**2*(1 m)**2/2", "zz": f"m*{R}**2*(1 m)**2/4"}
    wheel = body(shapes, order, inertia, f"m*g*{vector((sin(along), 0.0, -cos(along)))}")
    wheel["initial"]["z"] = f"{R} m"
    simulator = fsm_dyn.Simulator(fsm_dyn.compile(wheel))
    for way in WAYS:
        run = simulator.run(0.3, **way)
        assert not run.transitions
        assert run.q[-1, 0] == pytest.approx(0.5 * 0.3**2 * G * sin(along) * 2.0 / 3.0, rel=1e-7), way
        assert np.abs(run.q[-1, 1]) < 1e-8


@pytest.mark.parametrize(("order", "sense", "heading"), [("ijk", 1.0, 0.4), ("kij", -1.0, 2.0)])
def test_a_ball_leaves_three_spheres_when_no_forces_hold_it(order, sense, heading):
    rng = np.random.default_rng(order == "kij")
    angles, leans = np.arange(3) * 2.0 * pi / 3 + rng.uniform(-0.3, 0.3, 3), rng.uniform(0.5, 0.8, 3)
    normals = {name: np.array([sin(lean) * cos(angle), sense * sin(lean) * sin(angle), cos(lean)])
               for name, lean, angle in zip("ijk", leans, angles, strict=True)}  # fmt: skip
    normals = {name: normals[name] for name in order}
    shapes = {"body": {"sphere": {"frame": "B", "center": "C", "radius": f"{R} m"}}}
    shapes |= {name: {"sphere": {"center": f"S{name}", "radius": "0.08 m"}} for name in order}
    side = np.array([cos(heading), sense * sin(heading), 0.0])
    model = body(
        shapes, order, dict.fromkeys(("xx", "yy", "zz"), f"0.4*m*{R}**2*(1 m)**2"),
        f"m*g*(sin(p*t)*{vector(side)} - cos(p*t)*N.z)",
        **{f"S{name}": {"from": "O", "at": f"(1 m)*{vector(-0.18 * n)}"} for name, n in normals.items()},
    )  # fmt: skip
    expected = release([-R * n for n in normals.values()], normals.values(), 0.3,
                       lambda angle: sin(angle) * side - cos(angle) * np.array([0.0, 0.0, 1.0]))  # fmt: skip
    graph = fsm_dyn.compile(model)
    for way in ({}, {"strategy": "online"}, {"method": "radau"}, {"method": "moreau_jean", "step": 1e-3}):
        run = fsm_dyn.simulate(graph, expected + 0.005, **way)
        late = run.transitions[0].time - expected
        assert 0.0 <= late < 2e-3 if "step" in way else abs(late) < 1e-5, way


# sweeps of the time step at the release end at their bound, 5e-8 from their limit, as the run reports
@pytest.mark.filterwarnings("ignore:1 of 133 contact problems were not solved")
@pytest.mark.parametrize(("order", "sense"), [(("ground", "wall"), 1), (("wall", "ground"), -1)])
def test_a_box_leaves_a_wall_when_no_forces_hold_it(order, sense):
    """Eight corners on two planes, 24 forces of which six count; no event before."""
    graph, expected = box_in_corner(order, sense)
    for way in ({}, {"strategy": "online"}):
        run = fsm_dyn.simulate(graph, expected + 0.006, **way)
        assert abs(run.t[np.flatnonzero(np.abs(run.u).max(axis=1) > 1e-9)[0] - 1] - expected) < 1e-4, way
        assert abs(run.transitions[0].time - expected) < 1e-4
    run = fsm_dyn.simulate(graph, expected + 0.006, method="moreau_jean", step=5e-3)
    assert np.abs(run.q - run.q[0])[run.t < expected].max() < 1e-12
    slides = next(item for item in run.transitions if "slide" in str(item.target))
    assert -1e-4 < slides.time - expected < 1e-2


@pytest.mark.parametrize(("order", "sense"), [(("ground", "wall", "left"), 1), (("left", "ground", "wall"), -1)])
def test_a_box_rests_in_a_corner_of_three_planes(order, sense):
    """Twelve corners, more than are tried one by one: what rests is tried first."""
    graph, expected = box_in_corner(order, sense)
    for way in ({}, {"strategy": "online"}):
        run = fsm_dyn.simulate(graph, expected - 1e-3, **way)
        assert not run.transitions
        assert not run.u.any()
        assert run.admissible.all()


def box_in_corner(order, sense):
    """A box on a floor and one or two walls, the weight pressed into all and turned; and the angle of release."""
    size, planes = np.array([0.2, 0.16, 0.12]), {"ground": (2, 1), "wall": (0, sense), "left": (1, sense)}
    shapes = {"body": {"box": {"frame": "B", "center": "C", "size": [f"{side} m" for side in size.tolist()]}}}
    places, corners, normals = {}, [], []
    for name in order:
        axis, sign = planes[name]
        normal = sign * np.eye(3)[axis]
        shapes[name] = {"plane": {"from": f"P{name}"}, "side": vector(normal)}
        places[f"P{name}"] = {"from": "O", "at": f"(1 m)*{vector(-0.5 * size * normal)}"}
        for signs in np.ndindex(2, 2):
            corner = size * (np.insert(np.array(signs), axis, 0) - 0.5)
            corner[axis] = -0.5 * sign * size[axis]
            corners.append(corner)
            normals.append(normal)
    down = np.array([-0.5 * sense, -0.4 * sense * (len(order) > 2), -1.0])
    side = np.array([sense, 0.4 * sense, 0.0])
    down /= np.linalg.norm(down)
    side -= down * (down @ side)
    side /= np.linalg.norm(side)
    inertia = {axis: f"m*{part}*(1 m)**2" for axis, part in {"xx": 0.0033, "yy": 0.0045, "zz": 0.0055}.items()}
    model = body(
        shapes, order, inertia,
        f"m*g*(sin(p*t)*{vector(side)} + cos(p*t)*{vector(down)})", **places,
    )  # fmt: skip
    return fsm_dyn.compile(model), release(
        corners, normals, 0.3, lambda angle: sin(angle) * side + cos(angle) * down, faces=180
    )


def test_exports_embed_such_modes_online_and_refuse_a_start_they_cannot_hold(tmp_path):
    dropped = groove("LR", radians(45.0))
    dropped["initial"]["z"] = f"{1.2 * R / cos(radians(45.0))} m"
    graph = fsm_dyn.compile(dropped | {"name": "dropped"})
    check_same(graph, built(fsm_dyn.export(graph, tmp_path / "c99"), "dropped"))
    with pytest.raises(InputError, match="share friction in space"):
        fsm_dyn.export(fsm_dyn.compile(groove("LR", radians(45.0))), tmp_path / "refused")


def test_derivatives_are_refused_where_the_least_forces_slip():
    with pytest.raises(InputError, match=r"(?s)share friction in space.*L_stick\+R_stick.*differences of runs"):
        sensitivities(fsm_dyn.compile(groove("LR", radians(45.0))), 0.1, by_parameters=["b"])
