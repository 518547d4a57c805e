"""Random drawings of other programs: moments and corners are those of the curves as these programs trace them."""

import math
import random

import numpy as np
import pytest

from fsm_dyn.language.drawings import moments, read_outline
from fsm_dyn.language.yaml import Location

pytestmark = pytest.mark.long
FINE = 2500  # chords of a curve


def holds(folder, name, layer, outline, scale, holes=(), unit=""):
    """Compare the moments of a drawing with those of dense polygons, lengths in m after the scale."""
    found = read_outline(name, layer, unit, 0.0, Location(str(folder / "model.yaml"), 1, 1))
    dense = [scale * np.array(points) for points in (outline, *holes)]
    whole = moments([complex(*point) for point in dense[0]])
    area = whole.area - sum(moments([complex(*point) for point in hole]).area for hole in dense[1:])
    size = math.sqrt(whole.area)
    assert found.moments.area == pytest.approx(area, rel=5e-6)
    if not holes:
        for key in ("x", "y"):
            assert getattr(found.moments, key) == pytest.approx(getattr(whole, key), abs=5e-6 * size)
        for key in ("xx", "yy", "xy"):
            assert getattr(found.moments, key) == pytest.approx(getattr(whole, key), abs=5e-6 * size**4)
    places = dense[0] @ [1.0, 1j]
    for corner in found.corners:
        assert np.min(np.abs(places - corner)) < 2e-3 * size


def corners(rng):
    """Corners of a random star-shaped polygon."""
    count, radius, x, y = rng.randint(4, 9), rng.uniform(5, 50), rng.uniform(-100, 100), rng.uniform(-100, 100)
    turns = [2 * math.pi * (k + 0.6 * rng.random()) / count for k in range(count)]
    sizes = [radius * (0.7 + 0.3 * rng.random()) for _ in turns]
    return [(x + r * math.cos(a), y + r * math.sin(a)) for r, a in zip(sizes, turns, strict=True)]


def traced(entity):
    """Points along an entity of ezdxf, by its own curves."""
    kind, at = entity.dxftype(), entity.dxf
    if kind == "LINE":
        return [(at.start.x, at.start.y), (at.end.x, at.end.y)]
    if kind == "SPLINE":
        return [(point.x, point.y) for point in entity.construction_tool().approximate(FINE)]
    if kind == "ELLIPSE":
        return [(p.x, p.y) for p in entity.vertices(np.linspace(at.start_param, at.end_param, FINE + 1))]
    begin, end = (math.radians(at.start_angle), math.radians(at.end_angle)) if kind == "ARC" else (0.0, 2 * math.pi)
    turns = np.linspace(begin, end + 2 * math.pi * (end < begin), FINE + 1)
    return [(at.center.x + at.radius * math.cos(a), at.center.y + at.radius * math.sin(a)) for a in turns]


def joined(entities):
    """One closed line along entities in any order and sense."""
    parts = [traced(entity) for entity in entities]
    chain = parts.pop(0)
    while parts:
        k = min(range(len(parts)), key=lambda k: min(math.dist(chain[-1], parts[k][e]) for e in (0, -1)))
        part = parts.pop(k)
        chain += part if math.dist(chain[-1], part[0]) <= math.dist(chain[-1], part[-1]) else part[::-1]
    return chain


@pytest.mark.parametrize("kind", ["bulges", "old bulges", "mixed", "spline", "ellipse", "hole"])
def test_dxf_of_ezdxf(tmp_path, kind):
    ezdxf = pytest.importorskip("ezdxf")
    for seed in range(12):
        rng = random.Random(seed)
        drawing = ezdxf.new(rng.choice(["R2000", "R2010", "R2018"]))
        drawing.units = rng.choice([4, 5, 6, 1])
        space, on, points = drawing.modelspace(), {"layer": "outline"}, corners(rng)
        if kind in ("bulges", "hole"):
            space.add_lwpolyline([(*p, 0, 0, rng.uniform(-0.25, 0.25)) for p in points], close=True, dxfattribs=on)
        elif kind == "old bulges":
            rows = [(*p, 0, 0, rng.uniform(-0.25, 0.25)) for p in points]
            space.add_polyline2d(rows, format="xyseb", close=True, dxfattribs=on)
        elif kind == "mixed":
            round_ = ezdxf.math.ConstructionArc.from_2p_angle(*points[:2], rng.uniform(10, 50))
            space.add_arc(round_.center, round_.radius, round_.start_angle, round_.end_angle, dxfattribs=on)
            space.add_spline(dxfattribs=on).set_open_uniform([(*p, 0) for p in points[1:4]], degree=2)
            for a, b in zip(points[3:], points[4:] + points[:1], strict=True):
                space.add_line(b, a, dxfattribs=on)
        elif kind == "spline":
            space.add_spline(dxfattribs=on).set_closed([(*p, 0) for p in points])
        else:
            axis = (rng.uniform(5, 20), rng.uniform(-20, 20))
            space.add_ellipse(points[0], major_axis=axis, ratio=rng.uniform(0.2, 1), dxfattribs=on)
        holes = []
        if kind == "hole":
            holes = [traced(space.add_circle(np.mean(points, axis=0), 1.0, dxfattribs=on))]
        space.add_text("a note", dxfattribs={"layer": "0"})
        drawing.saveas(tmp_path / "part.dxf")
        read = [e for e in ezdxf.readfile(tmp_path / "part.dxf").modelspace() if e.dxf.layer == "outline"]
        outer = [e for e in read if e.dxftype() != "CIRCLE"]
        lines = [part for e in outer for part in (e.virtual_entities() if "POLYLINE" in e.dxftype() else [e])]
        scale = {4: 1e-3, 5: 1e-2, 6: 1.0, 1: 0.0254}[drawing.units]
        holds(tmp_path, "part.dxf", "outline", joined(lines), scale, holes)


def path_of(rng, points):
    """Data of a path through the points with six decimals, as drawing programs write it."""
    relative, letters, last, before = rng.random() < 0.5, [], points[0], ""
    data = f"M{last[0]:.6f},{last[1]:.6f}"
    last = tuple(round(x, 6) for x in last)
    for point in points[1:] + points[:1]:
        kind = rng.choice("LQCASTL")
        kind = (
            {"S": "S" if before in "CS" else "C", "T": "T" if before in "QT" else "Q"}.get(kind, kind)
            if before
            else "L"
        )
        middle = (0.5 * (point[0] + last[0]) + 0.1 * (point[1] - last[1]),
                  0.5 * (point[1] + last[1]) - 0.1 * (point[0] - last[0]))  # fmt: skip
        given = {"L": [point], "T": [point], "A": [point], "Q": [middle, point], "S": [middle, point],
                 "C": [middle, middle, point]}[kind]  # fmt: skip
        base = last if relative else (0.0, 0.0)
        places = " ".join(f"{x - base[0]:.6f},{y - base[1]:.6f}" for x, y in given)
        shape = (
            f"{rng.uniform(40, 60):.3f} {rng.uniform(40, 60):.3f} {rng.uniform(-90, 90):.2f} 0 1 "
            if kind == "A"
            else ""
        )
        data += (kind.lower() if relative else kind) + shape + places
        letters.append(kind)
        last, before = point, kind
    return data + ("z" if relative else "Z")


def test_svg_of_svgelements(tmp_path):
    svg = pytest.importorskip("svgelements")
    millimetre = 25.4 * 0.0393701  # of svgelements, rounded
    for seed in range(40):
        rng = random.Random(seed)
        # svgelements shears no arcs, so no transform does here
        inner = rng.choice(
            ["", "translate(3,4)", "rotate(20 5 6)", "scale(1,-1)", "translate(1 2) rotate(45) scale(.5)"]
        )
        outer = rng.choice(["", "translate(-5 3)", "scale(1.5)"])
        width, box = rng.choice([("200mm", "0 0 200 200"), ("10cm", "0 0 200 200")])
        (tmp_path / "part.svg").write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{width}" viewBox="{box}">'
            f'<g transform="{outer}"><path id="part" transform="{inner}" d="{path_of(rng, corners(rng))}"/></g></svg>'
        )
        (path,) = (e for e in svg.SVG.parse(str(tmp_path / "part.svg"), ppi=25.4).elements() if isinstance(e, svg.Path))
        path.reify()
        points = []
        for segment in path:
            if isinstance(segment, svg.Line | svg.Close):
                points.append((segment.start.x, -segment.start.y))
            elif not isinstance(segment, svg.Move):
                steps = np.linspace(0.0, 1.0, FINE, endpoint=False)
                points += [(segment.point(s).x, -segment.point(s).y) for s in steps]
        holds(tmp_path, "part.svg", "part", points, 1e-3 / millimetre)
