"""Drawing of a mechanism on the page from tick rows: outlines, solids, ground planes, by compiled programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import DerivedMode
from fsm_dyn.automaton.initial_values import initial_state
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.mode_programs import ModePrograms
from fsm_dyn.derive.unconstrained_system import ContactInfo
from fsm_dyn.draw.svg import STEEL, STEEL_FILL, body_colours
from fsm_dyn.language.contacts import FeatureContact, GapContact
from fsm_dyn.language.evaluate import evaluate_expression
from fsm_dyn.language.shape_geometry import solid_corners
from fsm_dyn.language.shapes import SolidShape
from fsm_dyn.live.mode_pool import PooledExecutable
from fsm_dyn.live.tick import FIXED, TickColumns
from fsm_dyn.run.contact_forces import ContactLocation, Kinematics, contact_at, neighbours
from fsm_dyn.run.online import ModeEvaluator, OnlineMode
from fsm_dyn.run.samples import Samples, reported_forces
from fsm_dyn.run.scene import NEWTONIAN, ORIGIN, Outlines, PlacedFeature, Scene, SceneShape, scene_of, vector_of
from fsm_dyn.run.scene_inference import with_symbols

# -- State and context of a tick row, and the compiled programs at them --------------------------------------


TIME: Final = FIXED.index("t")
MODE: Final = FIXED.index("mode")


@dataclass(frozen=True)
class ModeReader:
    """Evaluator of one mode; ``number`` is its index in the order of first use."""

    number: int
    mode: OnlineMode
    reading: ModeEvaluator


class RowEvaluator(Kinematics):
    """Evaluator of the programs of a coupled graph at rows of a live run; microseconds per evaluation.

    All modes are embedded online: derivation and compilation would block the pages for a fraction of a second.
    ``graph``: coupled, with the parameters of the run; ``columns``: of the run's rows.
    """

    def __init__(self, graph: ModeGraph, columns: TickColumns) -> None:
        super().__init__(graph.automaton)
        self.parameters: Floats = graph.parameters.copy()  # parameters set during the run are written here
        self._places = columns.places
        self._smooth = np.array([columns.inputs.index(name) for name in columns.smooth], dtype=np.int64)
        start = initial_state(graph.automaton, graph.values, graph.parameters)
        self._executable = PooledExecutable(graph.automaton, (start.x, start.context))
        self.values, self.start = graph.values, (start.x, start.context)
        self.readers: list[ModeReader] = []
        self._readers: dict[tuple[int, ...], ModeReader] = {}
        self._numbers: dict[tuple[int, ...], int] = {}
        self._labels: dict[str, int] = {}
        for known in self.automaton.modes:
            self._add(known.states)

    def state(self, row: Floats, before: Floats | None = None) -> tuple[Floats, Floats]:
        """Return state and context of a row; ``before`` is the previous row, for input rates."""
        layout, places = self.layout, self._places
        c = np.zeros(layout.n_c)
        c[layout.p_slice] = self.parameters
        c[layout.w_slice] = row[places["inputs"]]
        c[layout.sigma_slice.start : layout.memory_slice.stop] = row[places["discrete"]]
        if before is not None and row[TIME] > before[TIME]:
            # inputs are linear from tick to tick
            rate = (row[places["inputs"]] - before[places["inputs"]]) / (row[TIME] - before[TIME])
            c[layout.w_rate_slice] = rate
        if len(self._smooth):  # except cubic ones
            motion = row[places["motion"]]
            c[layout.w_rate_slice.start + self._smooth] = motion[: len(self._smooth)]
            c[layout.w_rate2_slice.start + self._smooth] = motion[len(self._smooth) :]
        return row[places["state"]], c

    def full(self, states: Sequence[int], x: Floats, c: Floats) -> tuple[ModeReader, dict[str, Floats]]:
        """Return guards and multipliers of a mode at a state, in a chart well conditioned there.

        Indeterminate multipliers are those of minimum norm that satisfy the contact laws.
        """
        key = tuple(int(code) for code in states)
        reader = self._readers.get(key)
        if reader is None:
            mode = self._executable.mode_of(key)
            reader = self._readers[key] = ModeReader(len(self.readers), mode, ModeEvaluator(mode.full))
            self.readers.append(reader)
        out = reader.reading(0.0, x, c)
        if reader.reading.redundant:
            values = self.terms.outputs(0.0, x, c)
            forces, _ = reported_forces(
                self.layout, self.automaton.contacts, key,
                lambda which, only: {
                    name: (values[name] if rows is None else values[name][list(rows)])[None]
                    for name, rows in only.items()
                },
                x[None], c[None], out["multipliers"][None],
            )  # fmt: skip
            out = {**out, "multipliers": forces[0]}
        return reader, out

    def number(self, states: Sequence[int]) -> int:
        """Return the number of a mode in the page's mode graph; an unknown mode is added to the automaton.

        Modes different by handovers alone share a number.
        """
        key = tuple(int(code) for code in states)
        if key not in self._numbers:
            name = self.automaton.name_of(key)
            # states and guards, which the graph shows, do not require a derived mode
            mode = DerivedMode(name.name, name.pattern, cast(ModePrograms, self._executable.mode_of(key)))
            self.automaton = self.automaton.with_mode(mode)
            self._add(key)
        return self._numbers[key]

    def _add(self, states: tuple[int, ...]) -> None:
        self._numbers[states] = self._labels.setdefault(self.automaton.labels.of(states), len(self._labels))


# -- Outlines, solids, ground planes -------------------------------------------------------------------------

# -- Scene drawing of a mechanism: outlines sent once, their placements per display frame --------------------

LONGEST_LINE: Final = 50.0  # m, half length of infinite lines

AZIMUTH, ELEVATION = 0.36, 0.35  # rad, initial view direction of spatial mechanisms
PLANAR: Final = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


def seen_from(azimuth: float, elevation: float) -> Floats:
    """Return the directions in N of right and up on the page, shape (2, 3), for a view direction, rad; z is up.

    ``azimuth``: about z, rad; ``elevation``: above the plane of x and y, rad.
    """
    (sa, ca), (se, ce) = ((np.sin(angle), np.cos(angle)) for angle in (azimuth, elevation))
    return np.array([[-sa, ca, 0.0], [-ca * se, -sa * se, ce]])


@dataclass(frozen=True)
class Picture:
    """Drawn scene of a mechanism."""

    scene: Scene
    flat: Floats  # shape (2, 3): projection from N to the page: x to the right, y up
    body_frames: tuple[tuple[str, str], ...] = ()  # names of bodies with their frames
    has_travel: bool = False  # whether its springs and grounds are as long as the travel of a run tells

    @classmethod
    def of(
        cls, graph: ModeGraph, evaluator: RowEvaluator, x: Floats, c: Floats, travel: Samples | None = None
    ) -> Picture:
        """Return the picture of a graph.

        ``x``, ``c``, shapes (n_x,) and (n_c,): initial state and context; ``travel``: of a finished run, whose travel
        tells how long springs and grounds are.
        """
        scene = scene_of(graph.automaton, graph.parameters, graph.values, solids=False)
        seen = (np.zeros(1), x[None], c[None]) if travel is None else (travel.t, travel.x, travel.context)
        scene = with_symbols(scene, graph.automaton, graph.values, *seen)
        bodies = graph.automaton.mechanism.bodies.values()
        flat = PLANAR if _is_planar(evaluator, x, c) else seen_from(AZIMUTH, ELEVATION)
        return cls(scene, flat, tuple((body.name, body.frame or NEWTONIAN) for body in bodies), travel is not None)

    @property
    def planar(self) -> bool:
        """Whether all motion is in planes normal to N.z."""
        return self.flat is PLANAR

    def look(self, azimuth: float, elevation: float) -> None:
        """Set the view direction of a spatial mechanism, rad."""
        if not self.planar:
            self.flat[:] = seen_from(azimuth, elevation)

    def payload(self) -> dict[str, Any]:
        """Return the payload: outlines, each in its own plane."""
        return {
            "planar": self.planar,
            "shapes": [{**_payload(shape), **self._colours(shape.owner)} for shape in self.scene.shapes],
            "anchors": len(self.scene.anchors),
            "symbols": [
                {**vars(symbol), **self._colours(symbol.owner)}
                for symbol in self.scene.symbols
                if symbol.kind != "input"
            ],
            "unit": self.scene.unit,
            "missing": self.scene.missing,
        }

    def colours(self, frame: str) -> dict[str, str]:
        """Return fill and edge for the shapes of a frame: of its body, or of the ground."""
        return self._colours(next((name for name, own in self.body_frames if own == frame), NEWTONIAN))

    def _colours(self, owner: str) -> dict[str, str]:
        fill, edge = body_colours(self.scene.bodies).get(owner, (STEEL_FILL, STEEL))
        return {"fill": fill, "edge": edge}

    def moving_corners(self, evaluator: RowEvaluator, x: Floats, c: Floats) -> Floats:
        """Return the corners of all outlines of parts that can move, and their anchors, in N, m, shape (n, 2)."""
        points, frames = evaluator.points(x, c)
        linear, angular = evaluator.partial_velocities(x, c)
        found = [np.zeros((0, 2))]
        fixed = [(shape.frame, shape.origin, shape.points) for shape in self.scene.shapes if not shape.endless]
        fixed += [(anchor.frame, anchor.origin, anchor.offset[None]) for anchor in self.scene.anchors]
        for frame, origin, own in fixed:
            turn, moves = np.eye(3), origin != ORIGIN and linear[self.scene.points.index(origin)].any()
            if frame != NEWTONIAN:
                number = self.scene.frames.index(frame)
                turn, moves = frames[number], moves or angular[number].any()
            if moves:
                found.append((self.point(points, origin) + own @ turn[:, : own.shape[1]].T)[:, :2])
        return np.concatenate(found)

    def placed(self, points: Floats, frames: Floats) -> Floats:
        """Return where everything is: per shape the matrix ``a b c d e f`` of SVG, then the anchors."""
        out = np.empty(6 * len(self.scene.shapes) + 2 * len(self.scene.anchors))
        for i, shape in enumerate(self.scene.shapes):
            turn = np.eye(3) if shape.frame == NEWTONIAN else frames[self.scene.frames.index(shape.frame)]
            out[6 * i : 6 * i + 4] = (self.flat @ turn[:, :2]).T.ravel()
            out[6 * i + 4 : 6 * i + 6] = self.flat @ self.point(points, shape.origin)
        at = 6 * len(self.scene.shapes)
        for anchor in self.scene.anchors:
            turn = np.eye(3) if anchor.frame == NEWTONIAN else frames[self.scene.frames.index(anchor.frame)]
            out[at : at + 2] = self.flat @ (self.point(points, anchor.origin) + turn @ anchor.offset)
            at += 2
        return out

    def point(self, points: Floats, name: str) -> Floats:
        """Return a point's position in N, m, shape (3,)."""
        return np.zeros(3) if name == ORIGIN else points[self.scene.points.index(name)]


def _payload(shape: SceneShape) -> dict[str, Any]:
    points = shape.points
    if shape.endless:
        middle, along = points.mean(axis=0), points[-1] - points[0]
        points = middle + np.outer([-LONGEST_LINE, LONGEST_LINE], along / np.linalg.norm(along))
    return {
        "body": shape.body,
        "points": [[round(float(x), 7) for x in point] for point in points],
        "closed": shape.closed,
        "endless": shape.endless,
        "behind": shape.behind,
        "text": shape.text,
    }


def _is_planar(evaluator: RowEvaluator, x: Floats, c: Floats) -> bool:
    """Return whether all motion is in planes normal to N.z, for every speed."""
    points, frames = evaluator.points(x, c)
    if len(points) and np.ptp(points[:, 2]) > 1e-9:
        return False
    if np.abs(frames[:, 2, 2] - 1.0).max(initial=0.0) > 1e-9:
        return False
    linear, angular = evaluator.partial_velocities(x, c)
    return bool(np.abs(linear[:, 2]).max(initial=0.0) < 1e-6 and np.abs(angular[:, :2]).max(initial=0.0) < 1e-6)


# -- Solids of a spatial mechanism: spheres, disks, planes and boxes for the page's 3-D scene ----------------

PLACED = 12  # numbers of a placement: rotation matrix of a frame, then its origin


@dataclass(frozen=True)
class Solid:
    """A sphere (``radius``), a disk (``radius``, across ``axis``), a plane (facing ``axis``) or a polyhedron.

    Each is fixed in a frame.  The radius of a polyhedron is the distance of its farthest corner (m); ``corners`` (m)
    and the corners of its ``faces`` are empty of all else.
    """

    name: str
    kind: str
    frame: str
    origin: str
    radius: float
    axis: tuple[float, float, float]
    corners: tuple[tuple[float, float, float], ...] = ()
    faces: tuple[tuple[int, ...], ...] = ()

    def payload(self) -> dict[str, Any]:
        """Return the payload."""
        about = {"name": self.name, "kind": self.kind, "radius": self.radius, "axis": list(self.axis)}
        return {**about, "corners": self.corners, "faces": self.faces} if self.faces else about


def find_faces(evaluator: RowEvaluator, picture: Picture, x: Floats, c: Floats) -> list[dict[str, Any]]:
    """Return the straight faces of planar shapes with their contacts, which light them while they touch.

    Each has its ends in the coordinates of an outline of the same frame, by its number, or in N, -1; those of frames
    without an outline are left out.
    """
    if not picture.planar:
        return []
    automaton, found = evaluator.automaton, []
    placed = [evaluator.points(there, c) for there in neighbours(evaluator, x)]
    outlines = Outlines(automaton, evaluator.parameters, evaluator.values)
    for name, contact in automaton.mechanism.contacts.items():
        for feature in contact.features if isinstance(contact, FeatureContact) else ():
            bounded = feature.part == "face" and automaton.mechanism.shapes[feature.shape].straight_faces > 0
            face = outlines.feature(feature) if bounded else None
            if face is None or face.along is None:
                continue
            carried = _carrier(picture, face, placed)
            if carried is not None:
                number, shift = carried
                ends = np.array([face.offset, face.offset + face.along]) + shift
                found.append({"contact": name, "shape": number, "points": ends[:, :2].tolist()})
    return found


def _carrier(
    picture: Picture, face: PlacedFeature, placed: Sequence[tuple[Floats, Floats]]
) -> tuple[int, Floats] | None:
    """Return an outline that moves as a face does (-1: N), and the way from its origin to that of the face (m)."""
    scene = picture.scene
    owners = [(-1, ORIGIN)] if face.frame == NEWTONIAN else []
    owners += [(number, shape.origin) for number, shape in enumerate(scene.shapes) if shape.frame == face.frame]
    for number, origin in owners:
        shifts = []
        for points, frames in placed:
            turn = np.eye(3) if face.frame == NEWTONIAN else frames[scene.frames.index(face.frame)]
            shifts.append(turn.T @ (picture.point(points, face.origin) - picture.point(points, origin)))
        if np.allclose(shifts, shifts[0], rtol=0.0, atol=1e-9 * (1.0 + float(np.abs(shifts[0]).max()))):
            return number, shifts[0]
    return None


def find_solids(graph: ModeGraph, evaluator: RowEvaluator, x: Floats, c: Floats) -> tuple[Solid, ...]:
    """Return the spatial shapes of a model; the state resolves their axes.

    ``evaluator``: evaluates rows of the model; ``x``, shape (n_x,): a state, SI; ``c``, shape (n_c,): its context, SI.
    """
    _, frames = evaluator.points(x, c)
    turns = dict(zip(evaluator.automaton.frame_names, frames, strict=True))
    found = []
    for shape in graph.automaton.mechanism.shapes.values():
        if not shape.spatial:
            continue
        text = next((text for _, text in shape.vectors), None)  # the axis of a disk, the free side of a plane
        own = turns.get(shape.frame, np.eye(3))
        axis = np.array([0.0, 0.0, 1.0]) if text is None else own.T @ vector_of(text, graph.values, turns)
        axis = axis / max(float(np.linalg.norm(axis)), 1e-12)
        corners: Floats = np.zeros((0, 3))
        faces: tuple[tuple[int, ...], ...] = ()
        if isinstance(shape, SolidShape):
            corners, faces = solid_corners(shape, graph.values), shape.corners_of_faces
            radius = float(np.linalg.norm(corners, axis=1).max())
        else:
            radius = float(
                sum(np.sum(evaluate_expression(text, graph.values)) for text in shape.lengths)
            )  # a plane has none
        places = tuple(_triple(corner) for corner in corners)
        found.append(Solid(shape.name, shape.kind, shape.frame, shape.origin, radius, _triple(axis), places, faces))
    return tuple(found)


def _triple(vector: Floats) -> tuple[float, float, float]:
    x, y, z = vector.tolist()
    return x, y, z


# -- Ground planes: planes of N that bodies can touch, identified from the equations -------------------------
#
# If a gap is the distance ``n · r_P - h`` of a point P from a plane of N, its normal row gives the same ``n`` and
# ``h`` at every configuration. Faces that end are drawn as the shapes they are. A stop, and a plane behind which
# other parts of the mechanism are, is drawn as a short piece where its point is.

SAME: Final = 1e-5
SHORT: Final = 0.18  # of the mechanism's size: half length of a stop
_ON_LINE: Final = 0.5  # units: distance of a symbol on the same line
BEHIND: Final = 0.02  # of the mechanism's size: depth of a part behind a plane that is no ground for it


@dataclass(frozen=True)
class Ground:
    """Plane drawn as a line: through ``at`` (2,), m, outward ``normal`` (2,); half length ``half``, m, 0: infinite."""

    at: Floats
    normal: Floats
    half: float = 0.0

    def payload(self) -> dict[str, Any]:
        """Return the payload."""
        return {"at": self.at.tolist(), "normal": self.normal.tolist(), "half": self.half}


def find_grounds(
    evaluator: RowEvaluator, picture: Picture, locations: tuple[ContactLocation, ...], x: Floats, c: Floats
) -> tuple[Ground, ...]:
    """Return the ground planes of a planar model; empty for a spatial one.

    ``evaluator``: evaluates rows of the model; ``picture``: the drawing; ``locations``: where contacts act; ``x``,
    shape (n_x,): a state, SI; ``c``, shape (n_c,): its context, SI.
    """
    if picture.flat is not PLANAR:
        return ()
    found: list[Ground] = []
    parts = picture.moving_corners(evaluator, x, c)
    for location in locations:
        contact = evaluator.automaton.contacts[location.contact]
        if location.kind != "force" or location.other is not None or location.on is not None:
            continue
        if contact.contact_law.has_gap and not contact.bounded_face:
            ground = _ground(evaluator, location, contact, parts, x, c)
            if ground is None or any(_same(ground, other) for other in found):
                continue
            if not _is_drawn(ground, picture.scene, whole=picture.has_travel):
                found.append(ground)
    return tuple(found)


def _ground(
    evaluator: RowEvaluator, location: ContactLocation, contact: ContactInfo, parts: Floats, x: Floats, c: Floats
) -> Ground | None:
    point, row = location.one, contact.normal_row
    rows = (row, *contact.tangent_rows)
    normals, heights, ranks = [], [], []
    for there in neighbours(evaluator, x):
        at = evaluator.configuration(there, c)
        touching, directions = contact_at(location, at, rows)
        across = directions[0]
        length = float(np.linalg.norm(across))
        if not length > 0.0:
            return None
        normals.append(across[:2] / length)
        heights.append(float(across @ touching - at.terms["residual"][row]) / length)
        ranks.append(int(np.linalg.matrix_rank(at.linear[point], tol=1e-6)))
    if np.ptp(normals, axis=0).max() > SAME or np.ptp(heights) > SAME:
        return None
    normal, height = normals[0], heights[0]
    entry = evaluator.automaton.mechanism.contacts.get(contact.name)
    stops, in_plane = isinstance(entry, GapContact) and bool(entry.limit), max(ranks) > 1
    if stops and in_plane:  # between two bodies, as far as a coordinate says
        return None
    points = evaluator.points(x, c)[0][:, :2]
    size = float(np.ptp(np.concatenate([points, parts]), axis=0).max())
    behind = float((height - parts @ normal).max(initial=0.0)) > BEHIND * size
    if not (stops or behind) and (in_plane or len(evaluator.layout.q) == 1):
        return Ground(height * normal, normal)
    return Ground(points[point] - (normal @ points[point] - height) * normal, normal, SHORT * size)


def _is_drawn(ground: Ground, scene: Scene, *, whole: bool) -> bool:
    """Return whether a symbol of the scene is on the line of a ground; one without ends needs the ``whole`` travel."""
    if not (ground.half or whole):
        return False
    for symbol in scene.symbols:
        ends = [scene.anchors[k] for k in symbol.anchors]
        if symbol.kind != "ground" or len(ends) != 2 or any(end.origin != ORIGIN for end in ends):
            continue
        one, other = (end.offset[:2] - ground.at for end in ends)
        if max(abs(ground.normal @ one), abs(ground.normal @ other)) < SAME + _ON_LINE * scene.unit:
            along = np.array([ground.normal[1], -ground.normal[0]])
            low, high = sorted((float(along @ one), float(along @ other)))
            if low <= ground.half and high >= -ground.half:
                return True
    return False


def _same(one: Ground, other: Ground) -> bool:
    return bool(
        np.abs(one.normal - other.normal).max() < SAME
        and abs(one.normal @ (one.at - other.at)) < SAME
        and one.half == other.half
    )
