"""Outlines from drawings: corners within the tolerance, moments against closed forms, damaged files refused by name."""

import cmath
import itertools
import math

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import Location, ModelError
from fsm_dyn.language import loader
from fsm_dyn.language.drawings import moments, read_outline
from fsm_dyn.language.evaluate import evaluate_expression
from fsm_dyn.language.values import parameter_values


def dxf(*entities, unit=4):
    """Return an ASCII DXF file of entities, each as its group codes and values."""
    head = ["0", "SECTION", "2", "HEADER", "9", "$INSUNITS", "70", str(unit), "0", "ENDSEC"]
    body = [str(x) for entity in entities for x in entity]
    return "\n".join([*head, "0", "SECTION", "2", "ENTITIES", *body, "0", "ENDSEC", "0", "EOF", ""])


def line(ax, ay, bx, by, layer="0"):
    return (0, "LINE", 8, layer, 10, ax, 20, ay, 11, bx, 21, by)


def arc(x, y, r, begin, end, layer="0"):
    return (0, "ARC", 8, layer, 10, x, 20, y, 40, r, 50, begin, 51, end)


def svg(body, head='width="100mm" height="80mm" viewBox="0 0 100 80"'):
    return f'<svg xmlns="http://www.w3.org/2000/svg" {head}>{body}</svg>'


INCH = 25.4  # mm

#: Two straight sides of 40 mm and two half circles of 10 mm, in several notations, orders and senses.
STADIUM = {
    "lines.dxf": dxf(line(0, 0, 40, 0), arc(0, 10, 10, 90, 270), line(0, 20, 40, 20), arc(40, 10, 10, 270, 90)),
    "bulges.dxf": dxf(
        (0, "LWPOLYLINE", 8, "0", 70, 1, 10, 0, 20, 0, 42, 0, 10, 40, 20, 0, 42, 1,
         10, 40, 20, 20, 42, 0, 10, 0, 20, 20, 42, 1)
    ),
    "old.dxf": dxf(
        (0, "POLYLINE", 8, "0", 70, 1), (0, "VERTEX", 8, "0", 10, 0, 20, 0),
        (0, "VERTEX", 8, "0", 10, 40, 20, 0, 42, 1), (0, "VERTEX", 8, "0", 10, 40, 20, 20),
        (0, "VERTEX", 8, "0", 10, 0, 20, 20, 42, 1), (0, "SEQEND", 8, "0"),
    ),
    "inches.dxf": dxf(
        line(0, 0, 40 / INCH, 0), arc(40 / INCH, 10 / INCH, 10 / INCH, 270, 90),
        line(40 / INCH, 20 / INCH, 0, 20 / INCH), arc(0, 10 / INCH, 10 / INCH, 90, 270), unit=1,
    ),
    "path.svg": svg('<path d="M0,-20 h40 a10,10 0 0 1 0,20 H0 a10 10 0 0 1 0-20z"/>'),
    "moved.svg": svg(
        '<g transform="translate(3,4) rotate(90)"><path transform="matrix(0 -1 1 0 -4 3)" '
        'd="M0-20L40-20A10 10 0 0140 0L0 0A10 10 0 010-20Z"/></g>'
    ),
    "scaled.svg": svg('<path d="M0-40 h80 a20,20 0 0 1 0,40 H0 a20 20 0 0 1 0-40z"/>',
                      'width="50mm" height="40mm" viewBox="0 0 100 80"'),
}  # fmt: skip


def read(tmp_path, name, text, layer="", unit="", tolerance=1e-5):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return read_outline(name, layer, unit, tolerance, Location(str(tmp_path / "model.yaml"), 3, 7))


@pytest.mark.parametrize("name", STADIUM)
def test_a_stadium_in_every_notation(tmp_path, name):
    """Second moments about the centre: rectangle, and half circles at a distance."""
    found = read(tmp_path, name, STADIUM[name])
    r, a = 0.01, 0.04
    area = 2.0 * r * a + math.pi * r**2
    xx = a * (2.0 * r) ** 3 / 12.0 + math.pi * r**4 / 4.0
    away = a / 2.0 + 4.0 * r / (3.0 * math.pi)
    yy = 2.0 * r * a**3 / 12.0 + math.pi * r**4 / 4.0 - math.pi * r**2 * (4.0 * r / (3.0 * math.pi)) ** 2
    yy += math.pi * r**2 * away**2
    m = found.moments
    assert (m.area, m.x, m.y, m.xx, m.yy) == pytest.approx((area, 0.02, 0.01, xx, yy), rel=1e-6)
    assert abs(m.xy) < 1e-9 * m.yy
    for corner in found.corners:
        x = min(max(corner.real, 0.0), a)
        assert abs(abs(corner - complex(x, r)) - r) < 1e-9 or (
            0 <= corner.real <= a and min(corner.imag, 0.02 - corner.imag) < 1e-9
        )
    chords = zip(found.corners, (*found.corners[1:], found.corners[0]), strict=True)
    middles = [0.5 * (p + q) for p, q in chords if max(p.real, q.real) <= 1e-9]
    assert max(r - abs(z - complex(0, r)) for z in middles) <= 1e-5


ROUNDED = {
    "closing line of SVG": ("r.svg", svg('<path d="M0 0h40v20.000001h-40.000002v-20z"/>')),
    "closing line of length rounding": ("r.svg", svg('<path d="M-16.3 49.7l40.1 .2l-.3 20.4l-39.8 -.1v-20.5z"/>')),
    "short pieces": ("r.dxf", dxf(*(line(0.02 * k, 0, 0.02 * (k + 1), 0) for k in range(1000)), line(20, 0, 20, 40),
                                  line(0, 40, 20, 40), line(0, 40, 0, 0))),
    "short pieces, turned": ("r.dxf", dxf(*(line(*(0.02 * (k + (k % 3 == 1)), 0, 0.02 * (k + (k % 3 != 1)), 0))
                                            for k in range(1000)),
                                          line(20, 0, 20, 40), line(0, 40, 20, 40), line(0, 40, 0, 0))),
    "a hole smaller than the joints": ("r.dxf", dxf(line(0, 0, 40, 0), line(40, 0, 40, 20), line(40, 20, 0, 20),
                                                    line(0, 20, 0, 0),
                                                    (0, "CIRCLE", 8, "0", 10, 20, 20, 10, 40, 0.01))),
}  # fmt: skip


@pytest.mark.parametrize("case", ROUNDED)
@pytest.mark.parametrize("tolerance", [0.0, 1e-3])
def test_pieces_shorter_than_the_joints(tmp_path, case, tolerance):
    """Rounded coordinates close a path by a line of their last digit; a tolerance of 1 mm joins across 0.1 mm."""
    m = read(tmp_path, *ROUNDED[case], tolerance=tolerance).moments
    area = 8e-4 if case != "closing line of length rounding" else 0.5e-6 * (39.8 * 20.4 + 40.1 * 20.5)
    hole = math.pi * 1e-10 if case.startswith("a hole") else 0.0
    assert m.area == pytest.approx(area - hole, rel=2e-3 if "rounding" in case else 1e-7)


def test_outlines_of_many_lines_keep_corners_within_the_tolerance(tmp_path):
    """A circle of 1,500 lines has more corners than contacts may have: those left are on it, its moments are whole."""
    places = [20.0 * cmath.exp(2j * math.pi * k / 1500) for k in range(1500)]
    text = dxf(*(line(a.real, a.imag, b.real, b.imag) for a, b in zip(places, places[1:] + places[:1], strict=True)))
    found = read(tmp_path, "many.dxf", text, tolerance=2e-5)
    assert 60 < len(found.corners) < 150
    assert found.moments.area == pytest.approx(750 * 0.02**2 * math.sin(2 * math.pi / 1500), rel=1e-6)  # to 6 digits
    chords = zip(found.corners, (*found.corners[1:], found.corners[0]), strict=True)
    assert max(0.02 - abs(0.5 * (a + b)) for a, b in chords) <= 2e-5 + 1e-9
    with pytest.raises(ModelError, match="larger `tolerance`"):
        read(tmp_path, "many.dxf", text, tolerance=1e-9)


def test_circles_ellipses_and_splines(tmp_path):
    """A rational spline of degree 2 is a circle, Bézier curves of degree 3 nearly."""
    circle = read(tmp_path, "circle.dxf", dxf((0, "CIRCLE", 8, "0", 10, 3, 20, 4, 40, 2)), tolerance=1e-6).moments
    assert (circle.area, circle.xx) == pytest.approx((math.pi * 4e-6, math.pi * 4e-12), rel=1e-6)
    ellipse = (0, "ELLIPSE", 8, "0", 10, 1, 20, 2, 11, 3, 21, 0, 40, 0.5, 41, 0, 42, 2 * math.pi)
    found = read(tmp_path, "ellipse.dxf", dxf(ellipse), tolerance=1e-6).moments
    assert (found.area, found.xx) == pytest.approx((math.pi * 4.5e-6, math.pi / 4 * 3 * 1.5**3 * 1e-12), rel=1e-6)
    points = [(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1), (1, 0)]
    spline = [0, "SPLINE", 8, "0", 70, 4, 71, 2]
    spline += [x for knot in (0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4) for x in (40, knot)]
    spline += [x for weight in [1, math.sqrt(0.5)] * 4 + [1] for x in (41, weight)]
    spline += [x for a, b in points for x in (10, a, 20, b, 30, 0)]
    assert read(tmp_path, "spline.dxf", dxf(spline), tolerance=1e-6).moments.area == pytest.approx(
        math.pi * 1e-6, rel=1e-6
    )
    k = 0.5522847498
    bezier = f"M1 0C1 {k} {k} 1 0 1S-1 {k}-1 0-{k}-1 0-1 1-{k} 1 0Z"
    assert read(tmp_path, "round.svg", svg(f'<path d="{bezier}"/>'), tolerance=1e-6).moments.area == pytest.approx(
        math.pi * 1e-6, rel=3e-4
    )


def test_moments_are_those_of_triangles():
    """Random polygons about their first corner, by sums over triangles; moved, turned and reversed."""
    random = np.random.default_rng(5)
    for _ in range(50):
        angles = np.sort(random.uniform(0.0, 2.0 * np.pi, 7))
        corners = list(random.uniform(0.5, 2.0, 7) * np.exp(1j * angles) + complex(*random.normal(size=2)))
        found = moments(corners)
        area = first = 0.0
        second = np.zeros((2, 2))
        for a, b in itertools.pairwise(corners[1:]):
            p = np.array([[z.real, z.imag] for z in (corners[0], a, b)])
            part = 0.5 * np.linalg.det(np.column_stack([p, np.ones(3)]))
            area, first = area + part, first + part * p.mean(axis=0)
            middles = 0.5 * (p + np.roll(p, 1, axis=0))
            second += part / 3.0 * sum(np.outer(m, m) for m in middles)  # exact for quadratic functions
        center = first / area
        second -= area * np.outer(center, center)
        expected = (abs(area), *center, *(np.sign(area) * np.array([second[1, 1], second[0, 0], second[0, 1]])))
        for given in (corners, corners[::-1], [*corners[3:], *corners[:3]]):
            m = moments(given)
            assert (m.area, m.x, m.y, m.xx, m.yy, m.xy) == pytest.approx(expected, rel=1e-9, abs=1e-11)
        assert found.area > 0.0


@pytest.mark.parametrize(
    ("name", "text", "options", "words"),
    [
        ("a.dxf", STADIUM["lines.dxf"], {"layer": "outlin"}, "there is no layer 'outlin'"),
        ("a.dxf", dxf((0, "INSERT", 8, "0", 2, "block", 10, 0, 20, 0)), {}, "INSERT is no outline: explode blocks"),
        ("a.dxf", dxf(line(0, 0, 1, 0), line(1, 0, 1, 1)), {}, r"the outline is open at \(1, 1\)"),
        (
            "a.dxf",
            dxf(arc(0, 0, 1, 0, 180), line(-1, 0, 1, 0), (0, "CIRCLE", 8, "0", 10, 9, 20, 9, 40, 1)),
            {},
            "more than one",
        ),
        ("a.dxf", dxf(line(0, 0, 1, 0), line(1, 0, 0, 0)), {}, "it encloses nothing"),
        ("a.dxf", dxf((0, "CIRCLE", 8, "0", 10, "nan", 20, 0, 40, 1)), {}, "a number in it is not finite"),
        ("a.dxf", dxf((0, "CIRCLE", 8, "0", 10, 0, 20, 0)), {}, "CIRCLE has no group 40"),
        ("a.dxf", dxf((*arc(0, 0, 1, 0, 180), 230, -1)), {}, "is mirrored"),
        ("a.dxf", dxf(*[line(k, 0, k + 1, 0) for k in range(2500)]), {}, "2500 pieces"),
        ("a.dxf", dxf((0, "CIRCLE", 8, "0", 10, 0, 20, 0, 40, 1000)), {"tolerance": 1e-9}, "give a larger `tolerance`"),
        ("a.dxf", dxf((0, "CIRCLE", 8, "0", 10, 0, 20, 0, 40, 1), unit=0), {}, "it has no unit"),
        ("a.dxf", STADIUM["lines.dxf"], {"unit": "kg"}, "no length 'kg'"),
        ("a.dxf", "AutoCAD Binary DXF\r\n", {}, "save it as ASCII"),
        ("a.dxf", "0\nSECTION\nx\ny\n", {}, "invalid literal"),
        ("a.dxf", dxf(), {}, "nothing is drawn there"),
        ("a.svg", svg('<path d="M0 0L1 1 2"/>'), {}, "3 numbers after 'L'"),
        ("a.svg", svg('<use href="#a"/>'), {}, "an element use"),
        ("a.svg", svg('<path transform="skewX(3)" d="M0 0"/>'), {}, "apply it in the drawing program"),
        ("a.svg", '<!DOCTYPE svg [<!ENTITY a "b">]><svg/>', {}, "declares entities"),
        ("a.svg", "<svg", {}, "no XML"),
        ("a.iges", "ISO-10303", {}, "a format that is not read"),
        ("../a.dxf", None, {}, "out of the folder of the model"),
        ("/a.dxf", None, {}, "out of the folder of the model"),
        ("none.dxf", None, {}, "no such file"),
    ],
)
def test_a_drawing_that_cannot_be_read_is_refused_by_name(tmp_path, name, text, options, words):
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    settings = {"layer": "", "unit": "", "tolerance": 1e-5, **options}
    with pytest.raises(ModelError, match=words) as caught:
        read_outline(name, where=Location(str(tmp_path / "model.yaml"), 3, 7), **settings)
    assert str(caught.value).startswith(f"{tmp_path / 'model.yaml'}:3:7: the drawing {name!r}")


def test_damaged_files_end_with_a_message(tmp_path):
    """Lines of a DXF and letters of an SVG removed, doubled or exchanged."""
    random = np.random.default_rng(11)
    refused = []
    for k in range(150):
        name = ("lines.dxf", "bulges.dxf", "path.svg")[k % 3]
        parts = STADIUM[name].splitlines(keepends=True) if name.endswith("dxf") else list(STADIUM[name])
        for _ in range(int(random.integers(1, 4))):
            at = int(random.integers(len(parts)))
            parts[at : at + 1] = [[], [parts[at]] * 2, ["9\n" if name.endswith("dxf") else "z"]][
                int(random.integers(3))
            ]
        try:
            area = read(tmp_path, name, "".join(parts)).moments.area
        except ModelError as error:
            refused.append(str(error))
        else:
            assert area > 0.0
    assert 20 < len(refused) < 150
    assert all("the drawing" in text for text in refused)


LATCH = """\
fsm_dyn: 1
name: pawl
parameters: {rho: 7850 kg/m^3, thick: 5 mm, e: 0.2}
coordinates: {x: m, y: m, q: rad}
frames: {B: {parent: N, rotate: {z: q}}}
points:
  A: {from: O, at: x*N.x + y*N.y}
  G: {from: A, at: pawl_x*B.x + pawl_y*B.y}
bodies:
  pawl_body: {frame: B, center: G, mass: rho*thick*pawl_area, inertia: {zz: rho*thick*(pawl_xx + pawl_yy)}}
shapes:
  pawl: {polygon: {frame: B, from: A, file: drawings/lines.dxf, tolerance: 0.2 mm}}
  ground: {line: {along: N.x}, side: N.y}
contacts: {lands: {between: [pawl, ground], restitution: e}}
loads: [{gravity: -9.81 m/s^2*N.y}]
initial: {y: 20 mm}
"""


def test_a_part_of_a_drawing_falls_and_lands(tmp_path):
    (tmp_path / "drawings").mkdir()
    (tmp_path / "drawings" / "lines.dxf").write_text(STADIUM["lines.dxf"], encoding="utf-8")
    path = tmp_path / "pawl.yaml"
    path.write_text(LATCH, encoding="utf-8")
    graph = fsm_dyn.compile(path)
    run = fsm_dyn.simulate(graph, 0.1)
    first = run.transitions[0]
    assert first.time == pytest.approx(math.sqrt(2.0 * 0.02 / 9.81), rel=1e-6)
    area = 2.0 * 0.01 * 0.04 + math.pi * 0.01**2
    assert run.energy.total[0] == pytest.approx(7850 * 0.005 * area * 9.81 * 0.03, rel=1e-5)
    digest = loader.load(path).digest
    path.write_text(LATCH.replace("0.2 mm", "0.02 mm"), encoding="utf-8")
    assert loader.load(path).digest != digest


def test_corners_are_given_in_one_way(tmp_path):
    (tmp_path / "pawl.yaml").write_text(
        LATCH.replace("tolerance: 0.2 mm", "points: [[0 m, 0 m], [1 m, 0 m]]"), encoding="utf-8"
    )
    with pytest.raises(ModelError, match="has both 'file' and 'points'"):
        loader.load(tmp_path / "pawl.yaml")


#: A pawl as a drawing program writes it: a body with a round back and a nose, a round pivot hole, a slot; mm.
PAWL_LINES = (
    line(0, 0, 40, 0), line(40, 0, 50, 12), line(50, 12, 40, 20), line(40, 20, 0, 20),
    arc(0, 10, 10, 90, 270), (0, "CIRCLE", 8, "0", 10, 0, 20, 10, 40, 4),
    line(15, 8, 30, 8), arc(30, 10, 2, 270, 90), line(30, 12, 15, 12), arc(15, 10, 2, 90, 270),
)  # fmt: skip
PAWL = dxf(*PAWL_LINES)
TEN_LINES = """
fsm_dyn: 1
coordinates: {q: rad}
frames: {B: {rotate: {z: q}}}
points: {A: {from: O, at: -10 mm*B.y}, S: {from: O, at: -12 mm*N.y}}
shapes: {pawl: {polygon: {frame: B, from: A, file: pawl.dxf}}, stop: {line: {from: S, along: N.x}, side: N.y}}
bodies: {lever: {outline: pawl, thickness: 3 mm, density: 7850 kg/m^3}}
contacts: {rest: {between: [pawl, stop]}}
loads: [{gravity: -9.81 m/s^2*N.y}]
initial: {q: 10 deg}
"""


def _plate(mechanism, name="lever"):
    """Return mass, centre from `A` along the frame, and moments of inertia of a body."""
    values, body = parameter_values(mechanism), mechanism.bodies[name]
    x, y = (values[f"{body.outline}_{word}"] for word in "xy")
    return (
        evaluate_expression(body.mass, values),
        x,
        y,
        {k: evaluate_expression(t, values) for k, t in body.inertia.items()},
    )


def test_a_latch_in_ten_lines_has_the_mass_of_its_drawing(tmp_path):
    """Rectangle, triangle, half discs, holes: sums of closed forms; arcs are exact."""
    (tmp_path / "pawl.dxf").write_text(PAWL)
    (tmp_path / "latch.yaml").write_text(TEN_LINES)
    mechanism = fsm_dyn.load(tmp_path / "latch.yaml")
    half, pi = 4.0 / (3.0 * math.pi), math.pi

    def disc(x, y, r, sign=1.0):
        return sign * pi * r**2, x, y, sign * pi * r**4 / 4, sign * pi * r**4 / 4, 0.0

    def half_disc(x, y, r, side, sign=1.0):
        about = pi * r**4 / 8 - pi * r**2 / 2 * (half * r) ** 2
        return sign * pi * r**2 / 2, x + side * half * r, y, sign * pi * r**4 / 8, sign * about, 0.0

    def box(x, y, a, b, sign=1.0):
        return sign * a * b, x, y, sign * a * b**3 / 12, sign * a**3 * b / 12, 0.0

    nose = moments([40 + 0j, 50 + 12j, 40 + 20j])
    parts = [
        box(20, 10, 40, 20), (nose.area, nose.x, nose.y, nose.xx, nose.yy, nose.xy), half_disc(0, 10, 10, -1),
        disc(0, 10, 4, -1), box(22.5, 10, 15, 4, -1), half_disc(30, 10, 2, 1, -1), half_disc(15, 10, 2, -1, -1),
    ]  # fmt: skip
    area = sum(part[0] for part in parts)
    x, y = (sum(part[0] * part[k] for part in parts) / area for k in (1, 2))
    xx = sum(part[3] + part[0] * (part[2] - y) ** 2 for part in parts)
    yy = sum(part[4] + part[0] * (part[1] - x) ** 2 for part in parts)
    xy = sum(part[5] + part[0] * (part[1] - x) * (part[2] - y) for part in parts)
    mass, x_found, y_found, inertia = _plate(mechanism)
    rho, t = 7850.0, 3e-3
    assert (mass, x_found, y_found) == pytest.approx((rho * t * area * 1e-6, 1e-3 * x, 1e-3 * y), rel=1e-12)
    wanted = {
        "xx": rho * t * (xx * 1e-12 + area * 1e-6 * t**2 / 12), "yy": rho * t * (yy * 1e-12 + area * 1e-6 * t**2 / 12),
        "zz": rho * t * (xx + yy) * 1e-12, "xy": -rho * t * xy * 1e-12,
    }  # fmt: skip
    assert inertia == pytest.approx(wanted, rel=1e-11)
    run = fsm_dyn.simulate(fsm_dyn.compile(mechanism), until=0.02)
    y_found -= 0.01  # from the pivot
    torque = mass * 9.81 * (x_found * math.cos(math.radians(10)) - y_found * math.sin(math.radians(10)))
    about_pin = inertia["zz"] + mass * (x_found**2 + y_found**2)
    u, t_end = run.rows.x[1, -1], run.t[1]
    assert u == pytest.approx(-torque / about_pin * t_end, rel=1e-3)


def test_plates_of_points_and_circles_follow_their_parameters():
    """Either sense of the corners; an override of a length changes the mass."""
    corners = [["0", "0"], ["w", "0"], ["w", "h"], ["w/3", "h/2"]]
    for points in (corners, corners[::-1]):
        model = {
            "fsm_dyn": 1, "parameters": {"w": "60 mm", "h": "30 mm", "r": "20 mm", "rho": "2700 kg/m^3"},
            "coordinates": {"q": "rad"}, "frames": {"B": {"rotate": {"z": "q"}}},
            "points": {"A": {"from": "O", "at": "0 m*N.x"}},
            "shapes": {
                "quad": {"polygon": {"frame": "B", "from": "A", "points": points}},
                "round": {"circle": {"frame": "B", "center": "A", "radius": "r"}},
            },
            "bodies": {name: {"outline": shape, "thickness": "2 mm", "density": "rho"}
                       for name, shape in (("lever", "quad"), ("disk", "round"))},
        }  # fmt: skip
        mechanism = fsm_dyn.load(model)
        for w in (0.06, 0.09):
            values = parameter_values(mechanism, {"w": w})
            found = moments([0j, w + 0j, w + 0.03j, w / 3 + 0.015j])
            got = [values[f"quad_{word}"] for word in ("area", "x", "y", "xx", "yy", "xy")]
            assert got == pytest.approx([found.area, found.x, found.y, found.xx, found.yy, found.xy], rel=1e-11)
        mass, x, y, inertia = _plate(mechanism, "disk")
        assert (mass, x, y) == pytest.approx((2700 * 2e-3 * math.pi * 4e-4, 0, 0))
        assert inertia["zz"] == pytest.approx(mass * 0.02**2 / 2, rel=1e-13)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mass": "1 kg"}, "has the mass of its outline"),
        ({"density": None}, "lacks the key 'density'"),
        ({"outline": "stop"}, "is no outline of a plate"),
        ({"outline": "pawll"}, "there is no shape 'pawll'"),
        ({"outline": None}, "has a thickness but no outline"),
        ({"thickness": "3 kg"}, "the mass of 'lever' is in kg"),
        ({"density": "-1 kg/m^3"}, "the mass of 'lever' is negative"),
    ],
)
def test_plates_that_are_refused(tmp_path, changes, words):
    (tmp_path / "pawl.dxf").write_text(PAWL)
    lever = {"outline": "pawl", "thickness": "3 mm", "density": "7850 kg/m^3", **changes}
    text = ", ".join(f"{word}: {value}" for word, value in lever.items() if value is not None)
    body = "{outline: pawl, thickness: 3 mm, density: 7850 kg/m^3}"
    assert body in TEN_LINES
    (tmp_path / "latch.yaml").write_text(TEN_LINES.replace(body, f"{{{text}}}"))
    with pytest.raises(fsm_dyn.InputError, match=words):
        fsm_dyn.load(tmp_path / "latch.yaml")


@pytest.mark.parametrize(("x", "y", "r"), [(40, 10, 14), (22, 10, 1), (0, 10, 3), (80, 0, 2)])
def test_loops_that_are_no_holes_are_refused(tmp_path, x, y, r):
    """One that crosses the outline, two within holes, one outside."""
    drawing = dxf(*PAWL_LINES, (0, "CIRCLE", 8, "0", 10, x, 20, y, 40, r))
    with pytest.raises(ModelError, match="more than one outline"):
        read(tmp_path, "pawl.dxf", drawing)
