"""Shapes and outlines as data, one class each: their numbers, directions and features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import field, replace
from typing import ClassVar, Final, Literal, Self, TypeAlias

from fsm_dyn.core.errors import NOWHERE, Location
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.keyed import KeyedMapping, exactly_one, only_with
from fsm_dyn.language.keys import expression, key, reference, whole_number
from fsm_dyn.language.units import DIMENSIONLESS, LENGTH

# -- Shapes, one class each ----------------------------------------------------------------------------------
#
# Outlines for contacts: their numbers, directions and features.

Corners: TypeAlias = tuple[tuple[Text, ...], ...]


MOST_COPIES = 1000


@dataclass(frozen=True, kw_only=True)
class Repeat(KeyedMapping):
    """Copies of a shape, turned about a point or moved along a vector from one to the next."""

    what: ClassVar[str] = "a repetition"
    example: ClassVar[str] = "repeat: {count: 8, about: P}"

    count: int = key(whole_number(1, MOST_COPIES, "a number of copies is wanted"), "number of copies", example=8)
    about: str | None = reference("a point", "of the shape's frame, about which the copies are turned", None)
    angle: Text | None = expression(
        "from one copy to the next", None, unit=DIMENSIONLESS, noun="an angle of {of}",
        usual="evenly over a whole turn", example="10 deg",
    )  # fmt: skip
    step: Text | None = expression(
        "vector from one copy to the next, instead of a turn", None, unit=LENGTH, scope="axes", type="vector",
        example="10 mm*N.x", later=True,
    )  # fmt: skip

    def checked(self) -> Self:
        """Return the repetition if its copies are turned or moved, and not both.

        Raises ModelError: they are neither, or both.
        """
        if exactly_one(self, ("about", "step")) == "step":
            only_with(self, "step", ("count",))
        return self


@dataclass(frozen=True, slots=True)
class Feature:
    """A part of a shape for contact: ``part`` number ``index`` of the copy ``copy`` of a shape.

    ``part`` is ``point`` (``shape`` names a point of the model), ``face`` (of a line, segment, polygon or polyhedron),
    ``round`` (circle, arc or sphere), ``corner`` (of a polygon, or an end of a segment or arc), ``curve``, ``rim`` (of
    a disk), ``vertex`` or ``edge`` (of a polyhedron).
    ``label`` distinguishes it in names.
    """

    shape: str
    part: Literal["point", "face", "round", "corner", "curve", "rim", "vertex", "edge"]
    index: int = 0
    copy: int = 0
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape(ABC):
    """A rigid outline for contacts: it moves with the point ``origin`` and turns with ``frame``."""

    kind: ClassVar[str]  # the key of the language
    # whether it is a shape in space; the others lie in the plane of the x and y axes of their frame
    spatial: ClassVar[bool] = False
    bounded: ClassVar[bool] = False  # whether it is a face with two ends, or several

    name: str
    frame: str
    origin: str
    repeat: Repeat | None = None
    # tuple of two str each: labels of features, and the names given to them instead
    feature_names: tuple[tuple[str, str], ...] = ()
    # what is written, the entry and the outline in it: all its keys
    mappings: tuple[KeyedMapping, ...] = field(default=(), compare=False, repr=False)
    where: Location = NOWHERE

    @property
    def lengths(self) -> tuple[Text, ...]:
        """The expressions of its coordinates and radii (m)."""
        return ()

    @property
    def angles_given(self) -> tuple[Text, ...]:
        """The expressions of its angles (rad)."""
        return ()

    @property
    def vectors(self) -> tuple[tuple[str, Text], ...]:
        """Its directions, each with a word for messages."""
        return ()

    @property
    def straight_faces(self) -> int:
        """The number of its straight faces with ends."""
        return 0

    @abstractmethod
    def features_of_one(self) -> list[Feature]:
        """Return the features of a single copy."""

    def features(self) -> list[Feature]:
        """Return the features of all copies."""
        names = dict(self.feature_names)
        single = [replace(one, label=names.get(one.label, one.label)) for one in self.features_of_one()]
        if self.repeat is None:
            return single
        found = []
        for copy in range(self.repeat.count):
            for feature in single:
                label = "_".join(part for part in (str(copy + 1), feature.label) if part)
                found.append(replace(feature, copy=copy, label=label))
        return found

    def name_of(self, part: str, index: int) -> str:
        """Return the name given to a feature, empty without one."""
        one = next((one for one in self.features_of_one() if (one.part, one.index) == (part, index)), None)
        return "" if one is None else dict(self.feature_names).get(one.label, "")

    def _between_ends(self, face: Feature) -> list[Feature]:
        return [face, Feature(self.name, "corner", 0, 0, "start"), Feature(self.name, "corner", 1, 0, "end")]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineShape(Shape):
    """A line without ends through the origin; ``side`` is a vector to its free side."""

    kind: ClassVar[str] = "line"

    along: Text
    side: Text

    @property
    def vectors(self) -> tuple[tuple[str, Text], ...]:
        """Its direction and its free side."""
        return ("direction", self.along), ("free side", self.side)

    def features_of_one(self) -> list[Feature]:
        """Return its face."""
        return [Feature(self.name, "face")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentShape(Shape):
    """A straight face between two ``points``, or between the points of the model named in ``ends``."""

    kind: ClassVar[str] = "segment"
    bounded: ClassVar[bool] = True

    points: Corners = ()
    ends: tuple[str, str] | None = None
    side: Text

    @property
    def lengths(self) -> tuple[Text, ...]:
        """The coordinates of its ends, if given."""
        return tuple(text for point in self.points for text in point)

    @property
    def vectors(self) -> tuple[tuple[str, Text], ...]:
        """Its free side."""
        return (("free side", self.side),)

    @property
    def straight_faces(self) -> int:
        """One."""
        return 1

    def features_of_one(self) -> list[Feature]:
        """Return its face and its ends."""
        return self._between_ends(Feature(self.name, "face", 0, 0, "face"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundShape(Shape):
    """A shape with a radius about the origin; ``inside``: the free side is the inner one."""

    radius: Text
    inside: bool = False

    @property
    def lengths(self) -> tuple[Text, ...]:
        """The radius."""
        return (self.radius,)

    def features_of_one(self) -> list[Feature]:
        """Return the whole."""
        return [Feature(self.name, "round")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CircleShape(RoundShape):
    """A whole circle."""

    kind: ClassVar[str] = "circle"

    @property
    def is_point(self) -> bool:
        """Whether its radius is written as 0: a corner without faces."""
        return self.radius.text.split()[:1] == ["0"]

    def features_of_one(self) -> list[Feature]:
        """Return the whole; a corner if it is a point."""
        return [Feature(self.name, "corner" if self.is_point else "round")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArcShape(RoundShape):
    """A part of a circle, anticlockwise between two ``angles`` from the frame's x axis."""

    kind: ClassVar[str] = "arc"
    bounded: ClassVar[bool] = True

    angles: tuple[Text, Text]

    @property
    def angles_given(self) -> tuple[Text, ...]:
        """Its two angles, and the angle of its copies."""
        return (*self.angles, *Shape.angles_given.__get__(self))

    def features_of_one(self) -> list[Feature]:
        """Return its face and its ends."""
        return self._between_ends(Feature(self.name, "round", 0, 0, "face"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SphereShape(RoundShape):
    """A sphere."""

    kind: ClassVar[str] = "sphere"
    spatial: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PolygonShape(Shape):
    """A closed chain of straight faces.

    ``turn`` is +1 if its points follow each other anticlockwise, else -1; ``concave`` holds the corners out of reach
    from the free side.
    """

    kind: ClassVar[str] = "polygon"
    bounded: ClassVar[bool] = True

    points: Corners
    inside: bool = False
    turn: int = 1
    concave: tuple[int, ...] = ()

    @property
    def lengths(self) -> tuple[Text, ...]:
        """The coordinates of its corners."""
        return tuple(text for point in self.points for text in point)

    @property
    def straight_faces(self) -> int:
        """As many as it has corners."""
        return len(self.points)

    def features_of_one(self) -> list[Feature]:
        """Return its faces and its convex corners."""
        count = len(self.points)
        faces = [Feature(self.name, "face", i, 0, f"face{i + 1}") for i in range(count)]
        return faces + [Feature(self.name, "corner", i, 0, f"{i + 1}") for i in range(count) if i not in self.concave]


@dataclass(frozen=True, slots=True)
class CurvePiece:
    """A part of a curve with one sense of curvature and a turn of less than two right angles."""

    # start, end: the parameter at its ends (rad)
    start: float
    end: float
    facing: float  # the direction of the outward normal in its middle, from the x axis of the frame (rad)
    speed: float  # its length by the parameter (m/rad)
    bulges: bool  # whether it bends outwards
    hollows: tuple[bool, bool]  # tuple of two bool: whether a hollow precedes it, and follows it


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveShape(Shape):
    """A smooth closed outline.

    ``formula``: the distance from the origin as a function of ``phi``, or x and y as functions of ``s``, both over a
    whole turn; or a periodic cubic spline through ``points``.  ``turn`` is +1 if it runs anticlockwise, else -1;
    ``pieces``: of a curve with hollows.
    """

    kind: ClassVar[str] = "curve"

    points: Corners = ()
    formula: tuple[Text, ...] = ()
    turn: int = 1
    pieces: tuple[CurvePiece, ...] = ()

    @property
    def lengths(self) -> tuple[Text, ...]:
        """The coordinates of the points of its spline."""
        return tuple(text for point in self.points for text in point)

    def features_of_one(self) -> list[Feature]:
        """Return the whole, or its pieces."""
        if not self.pieces:
            return [Feature(self.name, "curve")]
        return [Feature(self.name, "curve", i, 0, f"{i + 1}") for i in range(len(self.pieces))]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneShape(Shape):
    """A plane without ends through the origin; ``side`` is a vector to its free side."""

    kind: ClassVar[str] = "plane"
    spatial: ClassVar[bool] = True

    side: Text

    @property
    def vectors(self) -> tuple[tuple[str, Text], ...]:
        """Its free side."""
        return (("free side", self.side),)

    def features_of_one(self) -> list[Feature]:
        """Return its face."""
        return [Feature(self.name, "face")]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskShape(Shape):
    """A thin disk about ``axis``, touched at its rim, and at three points close to it if it is flat on a plane."""

    kind: ClassVar[str] = "disk"
    spatial: ClassVar[bool] = True

    axis: Text
    radius: Text

    @property
    def lengths(self) -> tuple[Text, ...]:
        """The radius."""
        return (self.radius,)

    @property
    def vectors(self) -> tuple[tuple[str, Text], ...]:
        """Its axis."""
        return (("axis", self.axis),)

    def features_of_one(self) -> list[Feature]:
        """Return its rim, and its points of support."""
        return [Feature(self.name, "rim")] + [Feature(self.name, "vertex", i, 0, f"{i + 1}") for i in range(FEET)]


FEET: Final = 3  # points of support of a disk: as many as a plane needs

#: Signs of the corners of a box: those below anticlockwise about z, then those above.
VERTICES: Final = tuple((x, y, z) for z in (-1, 1) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1)))


#: Faces of a box: across x, y and z, the lower one first.
BOX_FACES: Final = ((0, 4, 7, 3), (1, 2, 6, 5), (0, 1, 5, 4), (3, 7, 6, 2), (0, 3, 2, 1), (4, 5, 6, 7))


@dataclass(frozen=True, slots=True)
class SolidEdge:
    """An edge between the corners ``start`` and ``end``; seen from outside, ``left`` and ``right`` are its faces."""

    start: int
    end: int
    left: int
    right: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SolidShape(Shape):
    """A convex polyhedron, touched at corners, faces and edges."""

    spatial: ClassVar[bool] = True
    bounded: ClassVar[bool] = True

    @property
    @abstractmethod
    def corners_of_faces(self) -> tuple[tuple[int, ...], ...]:
        """The corners of each face, anticlockwise seen from outside."""

    @property
    def edges(self) -> tuple[SolidEdge, ...]:
        """Its edges, each from its lower corner on, in the order of these corners."""
        on_left = {
            (first, second): number
            for number, face in enumerate(self.corners_of_faces)
            for first, second in zip(face, (*face[1:], face[0]), strict=True)
        }
        return tuple(
            SolidEdge(first, second, face, on_left[second, first])
            for (first, second), face in sorted(on_left.items()) if first < second and (second, first) in on_left
        )  # fmt: skip

    def edges_at(self, corner: int) -> tuple[int, ...]:
        """Return the other ends of the edges at a corner."""
        return tuple(e.end if e.start == corner else e.start for e in self.edges if corner in (e.start, e.end))

    def features_of_one(self) -> list[Feature]:
        """Return its corners, its faces and its edges."""
        faces = self.corners_of_faces
        corners = sorted({corner for face in faces for corner in face})
        return [
            *(Feature(self.name, "vertex", i, 0, f"{i + 1}") for i in corners),
            *(Feature(self.name, "face", i, 0, f"face{i + 1}") for i in range(len(faces))),
            *(Feature(self.name, "edge", i, 0, f"edge{i + 1}") for i in range(len(self.edges))),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxShape(SolidShape):
    """A box about the origin, of ``size`` along the axes of its frame."""

    kind: ClassVar[str] = "box"

    size: tuple[Text, Text, Text]

    @property
    def lengths(self) -> tuple[Text, ...]:
        """The lengths of its edges."""
        return self.size

    @property
    def corners_of_faces(self) -> tuple[tuple[int, ...], ...]:
        """The corners of each face, anticlockwise seen from outside."""
        return BOX_FACES


@dataclass(frozen=True, slots=True, kw_only=True)
class PolyhedronShape(SolidShape):
    """The convex hull of ``points``, with the ``faces`` that these have with the parameters of the file."""

    kind: ClassVar[str] = "polyhedron"

    points: Corners
    faces: tuple[tuple[int, ...], ...] = ()

    @property
    def lengths(self) -> tuple[Text, ...]:
        """The coordinates of its corners."""
        return tuple(text for point in self.points for text in point)

    @property
    def corners_of_faces(self) -> tuple[tuple[int, ...], ...]:
        """The corners of each face, anticlockwise seen from outside."""
        return self.faces


# -- Outlines to draw a body with, one class each ------------------------------------------------------------

DrawnPoint: TypeAlias = tuple[Text, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnOutline(ABC):
    """One outline to draw a body with, in its frame, from its centre (m).

    A point is 2 or 3 expressions of parameters.  ``frame``: frame of the outline's x-y plane, if not the body's.
    """

    kind: ClassVar[str]  # the key of the language
    closed: ClassVar[bool] = False  # whether its line is closed

    frame: str | None = None

    @property
    def places(self) -> tuple[DrawnPoint, ...]:
        """Its given points; none if it is about the body's centre."""
        return ()

    @property
    def label(self) -> str:
        """Its text; empty for lines."""
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineOutline(DrawnOutline):
    """A line through ``points``."""

    kind: ClassVar[str] = "line"

    points: tuple[DrawnPoint, ...]

    @property
    def places(self) -> tuple[DrawnPoint, ...]:
        """Its points."""
        return self.points


@dataclass(frozen=True, slots=True, kw_only=True)
class PolygonOutline(LineOutline):
    """A closed line."""

    kind: ClassVar[str] = "polygon"
    closed: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedOutline(DrawnOutline):
    """An outline about one point ``at``, by default the body's centre."""

    at: DrawnPoint | None = None

    @property
    def places(self) -> tuple[DrawnPoint, ...]:
        """Its point, if given."""
        return () if self.at is None else (self.at,)


@dataclass(frozen=True, slots=True, kw_only=True)
class CircleOutline(PlacedOutline):
    """A circle of a ``radius`` (m)."""

    kind: ClassVar[str] = "circle"
    closed: ClassVar[bool] = True

    radius: Text


CORDS: Final = "cords"  # the key of the section ``view`` that no body has


@dataclass(frozen=True, slots=True, kw_only=True)
class CordOutline(DrawnOutline):
    """A belt or rope through ``points`` of the model, wavy while ``contact`` is open."""

    kind: ClassVar[str] = "cord"

    contact: str
    points: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOutline(PlacedOutline):
    """A ``text`` at a point."""

    kind: ClassVar[str] = "text"

    text: str

    @property
    def label(self) -> str:
        """Its text."""
        return self.text
