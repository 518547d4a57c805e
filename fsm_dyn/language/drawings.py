"""Outlines from drawings: the closed chain of a DXF layer, an SVG element or a cut solid, with its area moments.

Closed chains within it are holes: they count for the moments alone.

Readers of data alone: nothing is executed or loaded, sizes are bounded, and an unknown entity is refused by name.
Sources: AutoCAD DXF Reference (group codes of ENTITIES); SVG 1.1, chapter 8 and appendix F.6 (arcs by their ends).
"""

from __future__ import annotations

import cmath
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from xml.etree.ElementTree import Element, ParseError, fromstring

from fsm_dyn.core.errors import InputError, Location, ModelError, did_you_mean
from fsm_dyn.core.files import read_file
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.units import LENGTH, TABLE

MAX_BYTES: Final = 20 * 2**20
MOST_CORNERS: Final = 500
MOST_PIECES: Final = 2000
MOST_HOLES: Final = 50
_DEPTH: Final = 9  # halvings of a part of a curve
_PARTS: Final = 8  # at least, of a curve between two places, for its moments

Point = complex  # x + iy, in units of the drawing
Curve = Callable[[float], Point]  # over 0 to 1
Map = Callable[[Point], Point]


@dataclass(frozen=True)
class Piece:
    """A curve over 0 to 1 that is smooth between the given places; two places: a line or one smooth arc."""

    curve: Curve
    places: tuple[float, ...] = (0.0, 1.0)
    straight: bool = False

    @property
    def ends(self) -> tuple[Point, Point]:
        """Its first and last point."""
        return self.curve(self.places[0]), self.curve(self.places[-1])

    def corners(self, tolerance: float) -> list[Point]:
        """Return points on it, of which the chords keep within the tolerance, the last one left out."""
        found = []
        for begin, end in itertools.pairwise(self.places):
            found += [self.curve(begin)] if self.straight else self._halved(begin, end, tolerance, _DEPTH)
        return found

    def divided(self, parts: int) -> list[Point]:
        """Return equally spaced points on it, `parts` between its places, the last one left out."""
        count = 1 if self.straight else parts
        pairs = itertools.pairwise(self.places)
        return [self.curve(begin + (end - begin) * k / count) for begin, end in pairs for k in range(count)]

    def _halved(self, begin: float, end: float, tolerance: float, depth: int) -> list[Point]:
        a, b = self.curve(begin), self.curve(end)
        inner = [self.curve(begin + (end - begin) * k / 8.0) for k in range(1, 8)]
        if depth == 0 or max(_distance(point, a, b) for point in inner) <= tolerance:
            return [a]
        middle = 0.5 * (begin + end)
        return self._halved(begin, middle, tolerance, depth - 1) + self._halved(middle, end, tolerance, depth - 1)


def _distance(point: Point, a: Point, b: Point) -> float:
    """Return the distance of a point from a segment."""
    length = abs(b - a)
    if length == 0.0:
        return abs(point - a)
    along = ((point - a) * (b - a).conjugate()).real / length**2
    return abs(point - (a + min(1.0, max(0.0, along)) * (b - a)))


def line(a: Point, b: Point) -> Piece:
    """Return a straight piece."""
    return Piece(lambda s: a + s * (b - a), straight=True)


def arc(center: Point, radius: complex, begin: float, sweep: float, across: complex | None = None) -> Piece:
    """Return an arc of a circle, or of an ellipse with the half axes `radius` and `across`; angles in rad."""
    other = 1j * radius if across is None else across
    count = max(2, math.ceil(abs(sweep) / (0.5 * math.pi)) + 1)
    places = tuple(k / (count - 1) for k in range(count))
    return Piece(lambda s: center + radius * math.cos(begin + s * sweep) + other * math.sin(begin + s * sweep), places)


def bulged(a: Point, b: Point, bulge: float) -> Piece:
    """Return the piece of a polyline: `bulge` is the tangent of a quarter of the arc's angle, positive to the left."""
    if abs(bulge) < 1e-12:
        return line(a, b)
    sweep = 4.0 * math.atan(bulge)
    center = 0.5 * (a + b) + 0.5j * (b - a) / math.tan(0.5 * sweep)
    return arc(center, abs(a - center), cmath.phase(a - center), sweep)


def bezier(points: Sequence[Point]) -> Piece:
    """Return a Bézier curve of two to four points."""

    def curve(s: float) -> Point:
        row = list(points)
        while len(row) > 1:
            row = [a + s * (b - a) for a, b in itertools.pairwise(row)]
        return row[0]

    return Piece(curve, (0.0, 0.5, 1.0), len(points) == 2)


def spline(degree: int, knots: Sequence[float], points: Sequence[Point], weights: Sequence[float]) -> Piece:
    """Return a rational B-spline, by de Boor's algorithm."""
    first, last = knots[degree], knots[-degree - 1]

    def curve(s: float) -> Point:
        u = first + s * (last - first)
        k = max(degree, min(len(points) - 1, sum(knot <= u for knot in knots) - 1))
        rows = [(weights[j] * points[j], weights[j]) for j in range(k - degree, k + 1)]
        for level in range(1, degree + 1):
            for j in range(degree, level - 1, -1):
                i = j + k - degree
                width = knots[i + degree - level + 1] - knots[i]
                share = (u - knots[i]) / width if width else 0.0
                (place, weight), (other, second) = rows[j - 1], rows[j]
                rows[j] = ((1.0 - share) * place + share * other, (1.0 - share) * weight + share * second)
        return rows[degree][0] / rows[degree][1]

    inner = sorted({(knot - first) / (last - first) for knot in knots if first <= knot <= last})
    return Piece(curve, tuple(inner))


# -- DXF -----------------------------------------------------------------------------------------------------

_INSUNITS: Final = {1: "inch", 2: "ft", 4: "mm", 5: "cm", 6: "m", 13: "um"}
_NO_OUTLINES: Final = frozenset({"TEXT", "MTEXT", "DIMENSION", "POINT", "LEADER", "ATTDEF"})


@dataclass
class _Entity:
    """An entity of a DXF file: its kind, and its values by group code."""

    kind: str
    values: dict[int, list[str]]

    def number(self, code: int, default: float | None = None) -> float:
        """Return the first value of a group code."""
        found = self.values.get(code)
        if not found:
            if default is None:
                raise ValueError(f"{self.kind} has no group {code}")
            return default
        return float(found[0])

    def points(self, x: int = 10) -> list[Point]:
        """Return the points of the group codes of x and y."""
        return [complex(float(a), float(b)) for a, b in zip(self.values[x], self.values[x + 10], strict=True)]


def _entities(text: str) -> tuple[str, list[_Entity]]:
    """Return the unit of a DXF file, empty if it has none, and its entities."""
    lines = text.splitlines()
    pairs = [(int(code), value.strip()) for code, value in zip(lines[::2], lines[1::2], strict=False)]
    unit, section, found = "", "", []
    for at, (code, value) in enumerate(pairs):
        if code == 2 and at and pairs[at - 1] == (0, "SECTION"):
            section = value
        if code == 9 and value == "$INSUNITS" and section == "HEADER":
            unit = _INSUNITS.get(int(pairs[at + 1][1]), "")
        if section == "ENTITIES" and code == 0 and value != "ENDSEC":
            found.append(_Entity(value, {}))
        elif section == "ENTITIES" and found and code != 0:
            found[-1].values.setdefault(code, []).append(value)
        if (code, value) == (0, "ENDSEC"):
            section = ""
    return unit, found


def _pieces_of_entity(entity: _Entity, vertices: Sequence[_Entity]) -> list[Piece]:
    """Return the pieces of an entity; `vertices` are those of a POLYLINE."""
    if entity.number(230, 1.0) < 0.0:
        raise ValueError(f"{entity.kind} is mirrored (its extrusion points down)")
    match entity.kind:
        case "LINE":
            return [line(entity.points()[0], entity.points(11)[0])]
        case "CIRCLE":
            return [arc(entity.points()[0], entity.number(40), 0.0, 2.0 * math.pi)]
        case "ARC":
            begin, end = math.radians(entity.number(50)), math.radians(entity.number(51))
            return [arc(entity.points()[0], entity.number(40), begin, (end - begin) % (2.0 * math.pi))]
        case "ELLIPSE":
            axis, begin = entity.points(11)[0], entity.number(41, 0.0)
            sweep = (entity.number(42, 2.0 * math.pi) - begin) % (2.0 * math.pi) or 2.0 * math.pi
            return [arc(entity.points()[0], axis, begin, sweep, 1j * axis * entity.number(40))]
        case "LWPOLYLINE":
            points = entity.points()
            return _chain(points, _bulges(entity, len(points)), int(entity.number(70, 0.0)) & 1 == 1)
        case "POLYLINE":
            points = [vertex.points()[0] for vertex in vertices]
            return _chain(points, [v.number(42, 0.0) for v in vertices], int(entity.number(70, 0.0)) & 1 == 1)
        case "SPLINE":
            points = entity.points()
            weights = [float(weight) for weight in entity.values.get(41, ["1"] * len(points))]
            knots = [float(knot) for knot in entity.values[40]]
            return [spline(int(entity.number(71)), knots, points, weights)]
    raise ValueError(f"{entity.kind} is no outline: explode blocks and hatches, and put texts on another layer")


def _bulges(entity: _Entity, count: int) -> list[float]:
    """Return the bulges of a polyline, all given or none."""
    given = entity.values.get(42, [])
    if given and len(given) != count:
        raise ValueError("LWPOLYLINE gives a bulge to some of its vertices alone")
    return [float(value) for value in given] or [0.0] * count


def _chain(points: Sequence[Point], bulges: Sequence[float], closed: bool) -> list[Piece]:
    following = [*points[1:], *points[:1]] if closed else points[1:]
    return [bulged(a, b, bulge) for a, b, bulge in zip(points, following, bulges, strict=False) if a != b]


def pieces_of_dxf(text: str, layer: str) -> tuple[str, list[Piece]]:
    """Return the unit of a DXF file and the pieces of a layer; ValueError if a piece cannot be read."""
    if text.startswith("AutoCAD Binary DXF"):
        raise ValueError("a binary DXF: save it as ASCII")
    unit, entities = _entities(text)
    layers = list(dict.fromkeys(entity.values.get(8, ["0"])[0] for entity in entities))
    if layer and layer not in layers:
        raise LookupError(f"there is no layer {layer!r}", ", ".join(layers) or "none", did_you_mean(layer, layers))
    pieces: list[Piece] = []
    for at, entity in enumerate(entities):
        if entity.kind in ("VERTEX", "SEQEND") or (layer and entity.values.get(8, ["0"])[0] != layer):
            continue
        if not layer and entity.kind in _NO_OUTLINES:
            continue
        vertices = []
        for other in entities[at + 1 :]:
            if other.kind != "VERTEX":
                break
            vertices.append(other)
        pieces += _pieces_of_entity(entity, vertices)
    return unit, pieces


# -- SVG -----------------------------------------------------------------------------------------------------

_NUMBER: Final = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_COMMANDS: Final = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "S": 4, "Q": 4, "T": 2, "A": 7, "Z": 0}
_LENGTHS: Final = {"mm": "mm", "cm": "cm", "in": "inch", "m": "m"}
_CALLS: Final = re.compile(r"(matrix|translate|scale|rotate)\s*\(([^)]*)\)")


def pieces_of_path(text: str) -> list[Piece]:
    """Return the pieces of the data of an SVG path."""
    pieces: list[Piece] = []
    at = begin = handle = 0j
    before = ""
    for word, body in re.findall(r"([MLHVCSQTAZmlhvcsqtaz])([^MLHVCSQTAZmlhvcsqtaz]*)", text):
        values = _path_numbers(word.upper(), body)
        size = _COMMANDS[word.upper()]
        for k in range(0, max(len(values), 1), max(size, 1)):
            command = "L" if word.upper() == "M" and k else word.upper()
            found, at, handle = _segment(command, values[k : k + size], at if word.islower() else 0j, at, begin,
                                         handle if before in ("CS" if command in "CS" else "QT") else at)  # fmt: skip
            begin = at if command == "M" else begin
            pieces += [piece for piece in found if not piece.straight or piece.ends[0] != piece.ends[1]]
            before = command
    return pieces


def _path_numbers(command: str, body: str) -> list[float]:
    flags = rf"({_NUMBER})[\s,]*({_NUMBER})[\s,]*({_NUMBER})[\s,]*([01])[\s,]*([01])[\s,]*({_NUMBER})[\s,]*({_NUMBER})"
    texts = [x for row in re.findall(flags, body) for x in row] if command == "A" else re.findall(_NUMBER, body)
    if _COMMANDS[command] and (not texts or len(texts) % _COMMANDS[command]):
        raise ValueError(f"a path with {len(texts)} numbers after {command!r}")
    return [float(x) for x in texts]


def _segment(
    command: str, v: Sequence[float], base: Point, at: Point, begin: Point, handle: Point
) -> tuple[list[Piece], Point, Point]:
    """Return the pieces of one command, its end, and its last handle; `handle` is that of the command before."""
    pairs = [base + complex(a, b) for a, b in zip(v[::2], v[1::2], strict=False)]
    match command:
        case "M":
            return [], pairs[0], pairs[0]
        case "Z":
            return [line(at, begin)], begin, begin
        case "H":
            end = complex(base.real + v[0], at.imag)
        case "V":
            end = complex(at.real, base.imag + v[0])
        case "L":
            end = pairs[0]
        case "C" | "S":
            points = [at, *([2 * at - handle] if command == "S" else []), *pairs]
            return [bezier(points)], points[-1], points[-2]
        case "Q" | "T":
            middle = 2 * at - handle if command == "T" else pairs[0]
            return [bezier([at, middle, pairs[-1]])], pairs[-1], middle
        case _:
            end = base + complex(v[5], v[6])
            return [_arc_by_ends(at, end, v)], end, end
    return [line(at, end)], end, end


def _arc_by_ends(a: Point, b: Point, v: Sequence[float]) -> Piece:
    """Return an elliptical arc given by its ends (SVG 1.1, F.6.5)."""
    rx, ry, turn = abs(v[0]), abs(v[1]), cmath.exp(1j * math.radians(v[2]))
    if rx == 0.0 or ry == 0.0 or a == b:
        return line(a, b)
    half = 0.5 * (a - b) / turn
    excess = (half.real / rx) ** 2 + (half.imag / ry) ** 2
    if excess > 1.0:
        rx, ry, excess = rx * math.sqrt(excess), ry * math.sqrt(excess), 1.0
    size = math.sqrt(max(0.0, 1.0 / excess - 1.0)) * (-1.0 if bool(v[3]) == bool(v[4]) else 1.0)
    center = size * complex(rx * half.imag / ry, -ry * half.real / rx)
    begin, end = (cmath.phase(complex((z - center).real / rx, (z - center).imag / ry)) for z in (half, -half))
    sweep = (end - begin) % (2.0 * math.pi) if v[4] else -((begin - end) % (2.0 * math.pi))
    return arc(center * turn + 0.5 * (a + b), rx * turn, begin, sweep, 1j * ry * turn)


def _pieces_of_element(element: Element) -> list[Piece]:
    """Return the pieces of an SVG element in its own coordinates, none of a group or a text."""
    kind = element.tag.rpartition("}")[2]

    def number(name: str) -> float:
        return float(element.get(name, "0"))

    match kind:
        case "path":
            return pieces_of_path(element.get("d", ""))
        case "polygon" | "polyline":
            flat = [float(x) for x in re.findall(_NUMBER, element.get("points", ""))]
            points = [complex(a, b) for a, b in zip(flat[::2], flat[1::2], strict=True)]
            return _chain(points, [0.0] * len(points), kind == "polygon")
        case "line":
            return [line(complex(number("x1"), number("y1")), complex(number("x2"), number("y2")))]
        case "rect":
            if element.get("rx") or element.get("ry"):
                raise ValueError("a rect with round corners: turn it into a path")
            x, y, w, h = (number(name) for name in ("x", "y", "width", "height"))
            return _chain([complex(x, y), complex(x + w, y), complex(x + w, y + h), complex(x, y + h)], [0.0] * 4, True)
        case "circle":
            return [arc(complex(number("cx"), number("cy")), number("r"), 0.0, 2.0 * math.pi)]
        case "ellipse":
            center = complex(number("cx"), number("cy"))
            return [arc(center, number("rx"), 0.0, 2.0 * math.pi, 1j * number("ry"))]
        case "use" | "image" | "symbol" | "clipPath" | "mask":
            raise ValueError(f"an element {kind}: turn it into paths")
    return []


def _transform(text: str) -> Map:
    """Return the affine map of a `transform` attribute."""
    if re.sub(_CALLS, "", text).strip(" ,\n\t"):
        raise ValueError(f"a transform {text[:40]!r}: apply it in the drawing program")
    maps = []
    for word, body in _CALLS.findall(text):
        v = [float(x) for x in re.findall(_NUMBER, body)]
        match word:
            case "translate":
                maps.append((1.0 + 0j, 1j, complex(v[0], v[1] if len(v) > 1 else 0.0)))
            case "scale":
                maps.append((v[0] + 0j, 1j * (v[1] if len(v) > 1 else v[0]), 0j))
            case "rotate":
                turn, about = cmath.exp(1j * math.radians(v[0])), complex(*v[1:3]) if len(v) == 3 else 0j
                maps.append((turn, 1j * turn, about - turn * about))
            case _:
                maps.append((complex(v[0], v[1]), complex(v[2], v[3]), complex(v[4], v[5])))

    def moved(z: Point) -> Point:
        for x, y, shift in reversed(maps):
            z = x * z.real + y * z.imag + shift
        return z

    return moved


def _moved(piece: Piece, *by: Map) -> Piece:
    """Return a piece after maps, the last one first."""

    def curve(s: float) -> Point:
        z = piece.curve(s)
        for one in reversed(by):
            z = one(z)
        return z

    return Piece(curve, piece.places, piece.straight)


def _walk(element: Element, maps: tuple[Map, ...]) -> Iterator[tuple[Element, tuple[Map, ...]]]:
    own = (*maps, _transform(element.get("transform", "")))
    yield element, own
    for child in element:
        if child.tag.rpartition("}")[2] not in ("defs", "clipPath", "metadata"):
            yield from _walk(child, own)


def pieces_of_svg(text: str, layer: str) -> tuple[str, list[Piece]]:
    """Return the unit of an SVG file and the pieces of an element by its id or label; y points up."""
    if "<!ENTITY" in text:
        raise ValueError("an SVG that declares entities")
    try:
        root = fromstring(text)
    except ParseError as error:
        raise ValueError(f"no XML: {error}") from None
    labels = {}
    for element in root.iter():
        for name in ("id", "{http://www.inkscape.org/namespaces/inkscape}label"):
            if element.get(name):
                labels[element.get(name)] = element
    if layer and layer not in labels:
        known = [str(label) for label in labels]
        allowed = ", ".join(known[:20]) or "none has an id"
        raise LookupError(f"there is no element {layer!r}", allowed, did_you_mean(layer, known))
    chosen = set(labels[layer].iter()) if layer else None
    size = re.fullmatch(rf"({_NUMBER})\s*([a-z]*)", root.get("width", ""))
    box = [float(x) for x in re.findall(_NUMBER, root.get("viewBox", ""))]
    unit, scale = "", 1.0
    if size and size[2] in _LENGTHS and len(box) == 4:
        unit, scale = _LENGTHS[size[2]], float(size[1]) / box[2]
    pieces = [
        _moved(piece, lambda z: scale * z.conjugate(), *maps)
        for element, maps in _walk(root, ())
        if chosen is None or element in chosen
        for piece in _pieces_of_element(element)
    ]
    return unit, pieces


# -- STEP ----------------------------------------------------------------------------------------------------
#
# The closed chains in which a plane across an axis cuts the one solid of a part. The readers are those of Open CASCADE
# (the extra `step`), which convert lengths to mm; the file is data, and other files that it names are not opened.

MOST_FACES: Final = 5000
_AXES: Final = "xyz"
_PLANE: Final = re.compile(r"([xyz])\s*=\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-z]+)")
_QUARTERS: Final = 4  # parts of a curve between two knots


def plane_of(text: str) -> tuple[int, float]:
    """Return the axis across a plane, 0 to 2, and its distance along it (m); ValueError if the `text` is no plane."""
    found = _PLANE.fullmatch(text.strip())
    if found is None or TABLE.get(found[3], (0.0, None))[1] != LENGTH:
        raise ValueError(f"no plane {text!r}: an axis and a length, such as `plane: z = 2.5 mm`")
    return _AXES.index(found[1]), float(found[2]) * TABLE[found[3]][0]


def pieces_of_step(path: Path, plane: str) -> list[Piece]:
    """Return the curves in which a `plane` cuts the solid of a STEP file at a `path`.

    Across z they are seen in x and y, across x in y and z, across y in z and x.  Raises ValueError: the package is
    missing, the file has not one solid, or the plane misses it.
    """
    try:
        from OCP.BRepAdaptor import BRepAdaptor_Curve  # the extra alone brings the package
        from OCP.BRepAlgoAPI import BRepAlgoAPI_Section
        from OCP.gp import gp_Dir, gp_Pln, gp_Pnt
        from OCP.TopAbs import TopAbs_EDGE
        from OCP.TopoDS import TopoDS
    except ImportError:
        raise ValueError('STEP is read by a package that is missing: pip install "fsm-dyn[step]"') from None
    axis, place = plane_of(plane)
    place /= TABLE["mm"][0]
    point, normal = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
    point[axis], normal[axis] = place, 1.0
    section = BRepAlgoAPI_Section(_solid(path), gp_Pln(gp_Pnt(*point), gp_Dir(*normal)), False)
    section.Build()
    edges = [TopoDS.Edge(edge) for edge in _parts(section.Shape(), TopAbs_EDGE)] if section.IsDone() else []
    if not edges:
        raise ValueError(f"the plane {plane!r} misses the solid")
    return [_piece(BRepAdaptor_Curve(edge), (axis + 1) % 3, (axis + 2) % 3) for edge in edges]


def _solid(path: Path) -> Any:
    """Return the only solid of a file."""
    from OCP.IFSelect import IFSelect_ReturnStatus
    from OCP.STEPControl import STEPControl_Reader
    from OCP.TopAbs import TopAbs_FACE, TopAbs_SOLID

    reader = STEPControl_Reader()
    if reader.ReadFile(str(path)) != IFSelect_ReturnStatus.IFSelect_RetDone or not reader.TransferRoots():
        raise ValueError("it is damaged, or no STEP file")
    solids = _parts(reader.OneShape(), TopAbs_SOLID)
    if len(solids) != 1:
        raise ValueError(f"{len(solids)} solids, where one is read: export the part alone")
    count = len(_parts(solids[0], TopAbs_FACE))
    if count > MOST_FACES:
        raise ValueError(f"a solid with {count} faces, where at most {MOST_FACES} are read")
    return solids[0]


def _parts(shape: Any, kind: Any) -> list[Any]:
    """Return the parts of a kind of a shape."""
    from OCP.TopExp import TopExp_Explorer

    found, explorer = [], TopExp_Explorer(shape, kind)
    while explorer.More():
        found.append(explorer.Current())
        explorer.Next()
    return found


def _piece(curve: Any, across: int, up: int) -> Piece:
    """Return an edge as a piece, seen with one axis to the right and one upwards."""
    from OCP.GeomAbs import GeomAbs_CurveType

    first, last = curve.FirstParameter(), curve.LastParameter()

    def at(s: float) -> complex:
        point = curve.Value(first + s * (last - first)).Coord()
        return complex(point[across], point[up])

    if curve.GetType() == GeomAbs_CurveType.GeomAbs_Line:
        return line(at(0.0), at(1.0))
    inner: list[float] = []
    if curve.GetType() == GeomAbs_CurveType.GeomAbs_BSplineCurve:
        spline = curve.BSpline()
        knots = [(spline.Knot(k) - first) / (last - first) for k in range(1, spline.NbKnots() + 1)]
        inner = [share for share in knots if 0.0 < share < 1.0]
    places = [a + (b - a) * k / _QUARTERS for a, b in itertools.pairwise([0.0, *inner, 1.0]) for k in range(_QUARTERS)]
    return Piece(at, (*places, 1.0))


# -- Outlines ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Moments:
    """Area (m²), its centre (m), and second moments about it along x and y (m⁴): ``xx`` is the integral of y²."""

    area: float
    x: float
    y: float
    xx: float
    yy: float
    xy: float


def moments(corners: Sequence[Point]) -> Moments:
    """Return the moments of a polygon; the sense of its corners has no influence.

    ``corners``, sequence of complex: x + iy, m. Raises ValueError: it encloses nothing.
    """
    return _about_center(_integrals(corners, corners[0]), corners[0])


def _integrals(corners: Sequence[Point], origin: Point) -> list[float]:
    """Return the integrals of 1, x, y, y², x², xy over a polygon, by Green's formula; negative clockwise."""
    area = x = y = xx = yy = xy = 0.0
    for a, b in zip(corners, (*corners[1:], corners[0]), strict=True):
        ax, ay, bx, by = (a - origin).real, (a - origin).imag, (b - origin).real, (b - origin).imag
        turn = ax * by - bx * ay
        area += turn / 2.0
        x += turn * (ax + bx) / 6.0
        y += turn * (ay + by) / 6.0
        xx += turn * (ay * ay + ay * by + by * by) / 12.0
        yy += turn * (ax * ax + ax * bx + bx * bx) / 12.0
        xy += turn * (ax * by + 2.0 * ax * ay + 2.0 * bx * by + bx * ay) / 24.0
    return [area, x, y, xx, yy, xy]


def _about_center(integrals: Sequence[float], origin: Point) -> Moments:
    area, x, y, xx, yy, xy = (math.copysign(1.0, integrals[0]) * value for value in integrals)
    if not area > 0.0:
        raise ValueError("it encloses nothing")
    x, y = x / area, y / area
    return Moments(area, origin.real + x, origin.imag + y, xx - area * y * y, yy - area * x * x, xy - area * x * y)


def _integrals_within(chain: Sequence[Piece], scale: float, origin: Point) -> list[float]:
    """Return the integrals within a chain of curves, positive, extrapolated from chords of four lengths (Richardson).

    The error of chords is even in their length: the rest is of the eighth order, rounding for arcs and splines.
    """
    rows = []
    for level in range(4):
        corners = [scale * corner for piece in chain for corner in piece.divided(_PARTS << level)]
        rows.append(_integrals(corners, origin))
    for order in (4.0, 16.0, 64.0):
        rows = [
            [(order * fine - coarse) / (order - 1.0) for coarse, fine in zip(*pair, strict=True)]
            for pair in itertools.pairwise(rows)
        ]
    return [math.copysign(1.0, rows[0][0]) * value for value in rows[0]]


def thinned(corners: Sequence[Point], tolerance: float) -> list[Point]:
    """Return corners of a closed polygon such that the others are no farther than a tolerance from their chords.

    D. H. Douglas and T. K. Peucker (1973), Cartographica 10(2); the first two corners kept are far from each other.
    """
    closed = [*corners, corners[0]]
    far = max(range(len(corners)), key=lambda k: abs(corners[k] - corners[0]))
    kept, spans = {0, far}, [(0, far), (far, len(corners))]
    while spans:
        begin, end = spans.pop()
        away = [_distance(closed[k], closed[begin], closed[end]) for k in range(begin + 1, end)]
        if away and max(away) > tolerance:
            middle = begin + 1 + away.index(max(away))
            kept.add(middle)
            spans += [(begin, middle), (middle, end)]
    return [corners[k] for k in sorted(kept)]


def closed_chains(pieces: Sequence[Piece], gap: float) -> list[list[Piece]]:
    """Return the pieces as closed chains, ends joined up to a gap; ValueError if they make none.

    Pieces shorter than the gap belong to the chain that reaches their ends. One that is left over is dropped: drawing
    programs close a path whose coordinates are rounded by a line of that length.
    """
    rest, found = list(pieces), []
    while rest:
        chain = [rest.pop(0)]
        first, at = chain[0].ends
        while not (closed := _is_closed(chain, first, at, gap)):
            near = min(rest, key=lambda piece: min(abs(end - at) for end in piece.ends), default=None)
            if near is None or min(abs(end - at) for end in near.ends) > gap:
                break
            rest.remove(near)
            if abs(near.ends[1] - at) < abs(near.ends[0] - at):
                near = _reversed(near)
            chain.append(near)
            at = near.ends[1]
        if closed:
            found.append(chain)
        elif _leaves(chain, first, gap):
            raise ValueError(f"the outline is open at ({at.real:.6g}, {at.imag:.6g})")
    return found


def _leaves(chain: Sequence[Piece], first: Point, gap: float) -> bool:
    """Whether a chain goes farther from its beginning than the gap."""
    return any(abs(piece.curve(k / 4.0) - first) > gap for piece in chain for k in range(5))


def _is_closed(chain: Sequence[Piece], first: Point, at: Point, gap: float) -> bool:
    """Whether a chain ends where it began, after it has left; a hole smaller than the gap is closed by its own ends."""
    if abs(at - first) <= 1e-12 * abs(at) and not (len(chain) < 3 and all(piece.straight for piece in chain)):
        return True
    return abs(at - first) <= gap and _leaves(chain, first, gap)


def _encloses(corners: Sequence[Point], point: Point) -> bool:
    """Whether a point is in a polygon."""
    inside = False
    for a, b in zip(corners, (*corners[1:], corners[0]), strict=True):
        if (a.imag > point.imag) != (b.imag > point.imag):
            inside ^= point.real < a.real + (point.imag - a.imag) * (b.real - a.real) / (b.imag - a.imag)
    return inside


def _check_holes(chains: Sequence[Sequence[Point]]) -> None:
    """Refuse chains that are no holes in the first one, each in no other; ValueError."""
    for k, hole in enumerate(chains[1:], 1):
        others = [chain for j, chain in enumerate(chains[1:], 1) if j != k]
        lies_within = all(_encloses(chains[0], corner) for corner in hole)
        crosses = any(_encloses(hole, corner) for chain in (chains[0], *others) for corner in chain)
        if not lies_within or crosses or any(_encloses(chain, hole[0]) for chain in others):
            at = hole[0]
            raise ValueError(f"there is more than one outline: that at ({at.real:.6g}, {at.imag:.6g}) m is no hole")


def _reversed(piece: Piece) -> Piece:
    return Piece(lambda s: piece.curve(1.0 - s), tuple(1.0 - place for place in reversed(piece.places)), piece.straight)


@dataclass(frozen=True)
class Outline:
    """The corners of an outline (m), and the moments of the area within."""

    corners: tuple[Point, ...]
    moments: Moments


_Reader = Callable[[str, str], tuple[str, list[Piece]]]
_READERS: Final[Mapping[str, _Reader]] = {".dxf": pieces_of_dxf, ".svg": pieces_of_svg}
_SOLIDS: Final = (".step", ".stp")


def read_outline(name: str, layer: str, unit: str, tolerance: float, where: Location, plane: str = "") -> Outline:
    """Read the closed outline of a drawing.

    ``name``: path of the drawing, from the folder of the model's file. ``layer``: a layer of DXF, or an id or label of
    SVG; empty: all of it. ``unit``: of the drawing, if the file itself has none. ``tolerance``: largest distance of an
    arc or spline from its chords, m; 0: a thousandth of the outline's size. ``where``: of the name. ``plane``: that
    cuts the solid of a STEP file, which has no layers. Raises ModelError: the path leaves the folder, or the file
    has no such outline, or none that can be read.
    """

    def refused(message: str, allowed: str = "", remedy: str = "") -> ModelError:
        return ModelError(f"the drawing {name!r}: {message}", where, found=name, allowed=allowed, remedy=remedy)

    path = Path(name)
    if path.is_absolute() or ".." in path.parts:
        raise refused("a path out of the folder of the model", "a path below this folder")
    solid = path.suffix.lower() in _SOLIDS
    reader = _READERS.get(path.suffix.lower())
    if reader is None and not solid:
        raise refused("a format that is not read", ", ".join((*_READERS, *_SOLIDS)), "save it as DXF (ASCII) or SVG")
    if solid != bool(plane) or (solid and layer):
        raise refused("a plane cuts a solid, and drawings have layers", "`plane` with STEP, `layer` with DXF and SVG")
    full = Path(where.file or ".").parent / path
    try:
        text = read_file(full, MAX_BYTES, "a drawing").decode("utf-8", "replace")
    except InputError as error:
        raise refused(error.message, remedy=error.remedy) from None
    try:
        own_unit, pieces = ("mm", pieces_of_step(full, plane)) if reader is None else reader(text, layer)
        return _outline(pieces, unit or own_unit, tolerance)
    except LookupError as error:
        if len(error.args) == 3:
            raise refused(*error.args) from None
        raise refused("it is damaged", remedy="save it again") from None
    except (ValueError, OverflowError, ZeroDivisionError, RecursionError) as error:
        raise refused(str(error), remedy="correct the drawing, or the keys that it is read by") from None


def _outline(pieces: Sequence[Piece], unit: str, tolerance: float) -> Outline:
    """Return the outline of pieces; LookupError for the unit, ValueError for all else."""
    if unit not in TABLE or TABLE[unit][1] != LENGTH:
        raise LookupError(f"no length {unit!r}" if unit else "it has no unit", "mm, cm, m, inch", "add `unit: mm`")
    if len(pieces) > MOST_PIECES:
        raise ValueError(f"{len(pieces)} pieces, where at most {MOST_PIECES} are read")
    if not pieces:
        raise ValueError("nothing is drawn there")
    scale = TABLE[unit][0]
    places = [piece.curve(k / 4.0) for piece in pieces for k in range(5)]
    if not all(map(cmath.isfinite, places)):
        raise ValueError("a number in it is not finite")
    size = max((abs(place - places[0]) for place in places), default=0.0)
    fine = tolerance / scale or 1e-3 * size
    if not 0.0 < fine < math.inf:
        raise ValueError("it encloses nothing")
    origin, found = scale * places[0], []
    for chain in closed_chains(pieces, max(1e-6 * size, 0.1 * fine)):
        corners = [scale * corner for piece in chain for corner in piece.corners(fine)]
        integrals = _integrals_within(chain, scale, origin)
        if len(corners) < 3 or not integrals[0] > 1e-12 * (scale * size) ** 2:
            raise ValueError("it encloses nothing")
        found.append((integrals, corners))
    found.sort(key=lambda item: -item[0][0])
    if len(found[0][1]) > MOST_CORNERS:
        found[0] = found[0][0], thinned(found[0][1], scale * fine)
    count = len(found[0][1])
    if count > MOST_CORNERS:
        raise ValueError(f"{count} corners, where at most {MOST_CORNERS} are allowed: give a larger `tolerance`")
    if len(found) > MOST_HOLES:
        raise ValueError(f"{len(found) - 1} holes, where at most {MOST_HOLES - 1} are read")
    _check_holes([corners for _, corners in found])
    outer, *holes = (integrals for integrals, _ in found)
    left = [whole - sum(parts) for whole, *parts in zip(outer, *holes, strict=True)]
    return Outline(tuple(found[0][1]), _about_center(left, origin))
