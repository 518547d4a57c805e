"""The moving drawing of a run for viewers, and its messages with their JSON schemas.

Outlines of bodies are sent once, each in a frame of coordinates that moves with its body; transforms of the frames,
symbols and loads follow at instants.  Times are those of the model, from zero.
Names and fields of ``foxglove.*`` are those of the schemas that viewers know (https://docs.foxglove.dev/docs/sdk/schemas).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np

from fsm_dyn.core.arrays import Floats
from fsm_dyn.draw.svg import INPUT, SPRING, STEEL, body_colours
from fsm_dyn.run.run_timeline import Placed, place_scene
from fsm_dyn.run.samples import Samples
from fsm_dyn.run.scene import NEWTONIAN, Scene, SceneShape, Symbol
from fsm_dyn.run.scene_inference import with_symbols
from fsm_dyn.run.transitions import Transition

INTERVAL: Final = 0.01  # s between transforms
FEWEST: Final = 300  # instants with transforms
MOST: Final = 20_000
LONGEST_ARROW: Final = 0.4  # of the mechanism's size, for the largest load
FAR: Final = 2.0  # of the mechanism's size, as far as outlines without end are drawn
_NANO: Final = 1_000_000_000
_LINE, _LOOP = 0, 1  # types of a line primitive
_ALL: Final = 1  # type of a deletion

_NUMBER: Final = {"type": "number"}
_TEXT: Final = {"type": "string"}


def _object(title: str = "", **properties: Any) -> dict[str, Any]:
    return {**({"title": title} if title else {}), "type": "object", "properties": properties}


def _list(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_TIME: Final = _object("time", sec={"type": "integer", "minimum": 0}, nsec={"type": "integer", "minimum": 0})
_VECTOR: Final = _object("foxglove.Vector3", x=_NUMBER, y=_NUMBER, z=_NUMBER)
_QUATERNION: Final = _object("foxglove.Quaternion", x=_NUMBER, y=_NUMBER, z=_NUMBER, w=_NUMBER)
_POSE: Final = _object("foxglove.Pose", position=_VECTOR, orientation=_QUATERNION)
_COLOUR: Final = _object("foxglove.Color", r=_NUMBER, g=_NUMBER, b=_NUMBER, a=_NUMBER)
_ARROW: Final = _object(
    "foxglove.ArrowPrimitive", pose=_POSE, shaft_length=_NUMBER, shaft_diameter=_NUMBER, head_length=_NUMBER,
    head_diameter=_NUMBER, color=_COLOUR,
)  # fmt: skip
_LINES: Final = _object(
    "foxglove.LinePrimitive", type={"type": "integer"}, pose=_POSE, thickness=_NUMBER,
    scale_invariant={"type": "boolean"}, points=_list(_VECTOR), color=_COLOUR, colors=_list(_COLOUR),
    indices=_list({"type": "integer"}),
)  # fmt: skip
_SPHERE: Final = _object("foxglove.SpherePrimitive", pose=_POSE, size=_VECTOR, color=_COLOUR)
_TEXTS: Final = _object(
    "foxglove.TextPrimitive", pose=_POSE, billboard={"type": "boolean"}, font_size=_NUMBER,
    scale_invariant={"type": "boolean"}, color=_COLOUR, text=_TEXT,
)  # fmt: skip
_ENTITY: Final = _object(
    "foxglove.SceneEntity", timestamp=_TIME, frame_id=_TEXT, id=_TEXT, lifetime=_object("duration"),
    frame_locked={"type": "boolean"}, metadata=_list(_object(key=_TEXT, value=_TEXT)), arrows=_list(_ARROW),
    lines=_list(_LINES), spheres=_list(_SPHERE), texts=_list(_TEXTS),
)  # fmt: skip
_TRANSFORM: Final = _object(
    "foxglove.FrameTransform", timestamp=_TIME, parent_frame_id=_TEXT, child_frame_id=_TEXT, translation=_VECTOR,
    rotation=_QUATERNION,
)  # fmt: skip
_DELETION: Final = _object("foxglove.SceneEntityDeletion", timestamp=_TIME, type={"type": "integer"}, id=_TEXT)
SCENE: Final = _object("foxglove.SceneUpdate", deletions=_list(_DELETION), entities=_list(_ENTITY))
TRANSFORMS: Final = _object("foxglove.FrameTransforms", transforms=_list(_TRANSFORM))
LOG: Final = _object(
    "foxglove.Log", timestamp=_TIME, level={"type": "integer"}, message=_TEXT, name=_TEXT, file=_TEXT,
    line={"type": "integer"},
)  # fmt: skip
TRANSITION: Final = _object(
    "fsm_dyn.Transition", time={**_NUMBER, "description": "s"}, source=_TEXT, target=_TEXT, cause=_TEXT,
    energy_before={"type": ["number", "null"], "description": "kinetic and potential energy, J"},
    energy_after={"type": ["number", "null"], "description": "kinetic and potential energy, J"},
    impulse={"type": "object", "description": "by contact or constraint, N s or N m s", "additionalProperties":
             _list({"type": ["number", "null"]})},
)  # fmt: skip
_KINDS: Final = {"lambda": "forces", "energy": "energy"}  # topics of columns by their prefix; others are of the state


Message: TypeAlias = tuple[float, str, Mapping[str, Any], Any]
"""Time (s), topic, schema, content."""


def moving_scene(rows: Samples, sample: Callable[[Floats], Samples]) -> MovingScene | None:
    """Return the drawing of a run at even times, None for a model without one.

    ``sample``: gives rows at other times, shape (n,), s.
    """
    model = rows.model
    if model.scene is None or model.automaton is None:
        return None
    scene = with_symbols(model.scene, model.automaton, model.values, rows.t, rows.x, rows.context)
    span = float(rows.t[-1] - rows.t[0])
    count = min(max(FEWEST, math.ceil(span / INTERVAL)), MOST)
    return MovingScene(scene, sample(np.linspace(rows.t[0], rows.t[-1], count + 1)))


def row_messages(rows: Samples) -> Iterator[Message]:
    """Yield the rows of a run by topic: state, forces, energy."""
    tables: dict[str, dict[str, list[float]]] = {}
    for name, column in rows.columns():
        prefix, _, rest = name.partition(".")
        topic = _KINDS.get(prefix, "state")
        tables.setdefault(topic, {})[rest if topic != "state" else name] = column.tolist()
    units = rows.model.units
    times, modes = rows.t.tolist(), rows.modes
    for topic, table in tables.items():
        known = {"forces": "N or N m", "energy": "J"}.get(topic)
        about = {
            name: {"type": ["number", "null"], "description": known or units.get(name, "")} for name in table
        }  # fmt: skip
        schema = _object(f"fsm_dyn.{topic}", t={**_NUMBER, "description": "s"}, mode=_TEXT, **about)
        for k, values in enumerate(zip(*table.values(), strict=True)):
            yield (
                times[k],
                f"/{topic}",
                schema,
                {"t": times[k], "mode": modes[k], **dict(zip(table, values, strict=True))},
            )


def transition_messages(one: Transition, name: str) -> Iterator[Message]:
    """Yield a transition as data, and as a line of a log."""
    fields = {key: getattr(one, key) for key in ("time", "cause", "energy_before", "energy_after")}
    modes = {"source": one.source_label or one.source, "target": one.target_label or one.target}
    impulse = {key: np.atleast_1d(value).tolist() for key, value in one.impulse.items()}
    yield one.time, "/transitions", TRANSITION, {**fields, **modes, "impulse": impulse}
    line = {"timestamp": _stamp(one.time), "level": 2, "message": str(one), "name": name, "file": "", "line": 0}
    yield one.time, "/log", LOG, line


class MovingScene:
    """Outlines, their frames, symbols and loads of a mechanism at some instants.

    ``before``: at earlier instants of the same run: its size is kept, and its largest load counts.
    """

    def __init__(self, scene: Scene, samples: Samples, before: MovingScene | None = None) -> None:
        self.scene, self.samples = scene, samples
        self.placed: Placed = place_scene(scene, samples)
        self.anchors = self.placed.anchors()
        self.colours = body_colours(scene.bodies)
        self.frames = tuple(dict.fromkeys((shape.frame, shape.origin) for shape in scene.shapes))
        self.size: float
        self._load_before = 0.0 if before is None else before.largest_load
        extent = np.ptp(self.placed.positions, axis=(0, 1)) if self.placed.positions.size else np.zeros(3)
        reach = max(
            (float(np.abs(shape.points).max(initial=0.0)) for shape in scene.shapes if shape.bounded), default=0.0
        )
        self.size = max(float(extent.max()), reach, 1e-9) if before is None else before.size

    def messages(self) -> Iterator[Message]:
        """Yield the outlines once, then transforms, symbols and loads of each instant."""
        yield self.outline_message()
        yield from self.motion_messages()

    def outline_message(self) -> Message:
        """Return the outlines, in their frames."""
        time = float(self.samples.t[0])
        shapes = [self._shape(k, shape, time) for k, shape in enumerate(self.scene.shapes)]
        return time, "/scene", SCENE, {"deletions": [], "entities": shapes}

    def anew_messages(self) -> Iterator[Message]:
        """Yield the removal of all that a viewer has of other scenes, and the outlines."""
        time, _, _, outlines = self.outline_message()
        removal = {"deletions": [{"timestamp": _stamp(time), "type": _ALL, "id": ""}], "entities": []}
        yield from ((time, topic, SCENE, removal) for topic in ("/symbols", "/loads"))
        yield time, "/scene", SCENE, {**outlines, "deletions": removal["deletions"]}

    def motion_messages(self) -> Iterator[Message]:
        """Yield transforms, symbols and loads of each instant."""
        times = self.samples.t.tolist()
        paths = [self.placed.point(origin) for _, origin in self.frames]
        turns = [self.turns(frame) for frame, _ in self.frames]
        loads = self.loads()
        for k, time in enumerate(times):
            frames = zip(self.frames, paths, turns, strict=True)
            moved = [self._transform(time, name, path[k], turn[k]) for name, path, turn in frames]
            yield time, "/tf", TRANSFORMS, {"transforms": moved}
            symbols = [self._symbol(number, one, k, time) for number, one in enumerate(self.scene.symbols)]
            if symbols:
                yield time, "/symbols", SCENE, {"deletions": [], "entities": symbols}
            if loads:
                arrows = [self._arrow(time, name, at[k], force[k]) for name, (at, force) in loads.items()]
                yield time, "/loads", SCENE, {"deletions": [], "entities": arrows}

    def turns(self, frame: str) -> Floats:
        """Return the orientation of a frame as quaternions x, y, z, w, shape (n, 4)."""
        if frame == NEWTONIAN:
            return np.tile([0.0, 0.0, 0.0, 1.0], (len(self.samples), 1))
        return quaternions(self.placed.rotations[:, self.scene.frames.index(frame)])

    def _transform(self, time: float, name: tuple[str, str], place: Floats, turn: Floats) -> dict[str, Any]:
        return {
            "timestamp": _stamp(time), "parent_frame_id": NEWTONIAN, "child_frame_id": frame_name(*name),
            "translation": _vector(place), "rotation": dict(zip("xyzw", turn.tolist(), strict=True)),
        }  # fmt: skip

    def outline(self, shape: SceneShape) -> Floats:
        """Return the points of an outline in its frame, shape (k, 3), m; planes and lines without ends are cut off."""
        points = np.hstack([shape.points, np.zeros((len(shape.points), 3 - shape.points.shape[1]))])
        if shape.plane:
            one, other = self.size * points
            return np.array([one + other, other - one, -one - other, one - other])
        if shape.endless:
            far = FAR * self.size
            points = points * np.minimum(1.0, far / np.maximum(np.linalg.norm(points, axis=1), far))[:, None]
        return points

    def _shape(self, number: int, shape: SceneShape, time: float) -> dict[str, Any]:
        """Return an outline: lines, a sphere for a silhouette or a dot, and its text."""
        points = self.outline(shape)
        fill, edge = self.colours_of(shape.owner)
        found = self._entity(f"{shape.body} {number}", frame_name(shape.frame, shape.origin), time, shape.body)
        if shape.facing or len(points) == 1:
            radius = float(np.linalg.norm(points, axis=1).max()) if shape.facing else 0.01 * self.size
            place = np.zeros(3) if shape.facing else points[0]
            ball = {"pose": _pose(place), "size": _vector(np.full(3, 2.0 * radius)), "color": _colour(fill)}
            found["spheres"] = [ball]
        else:
            closed = shape.closed or shape.plane
            found["lines"] = [self._line(points, _LOOP if closed else _LINE, edge)]
        if shape.text:
            found["texts"] = [
                {"pose": _pose(points[0]), "billboard": True, "font_size": 14.0, "scale_invariant": True,
                 "color": _colour(edge), "text": shape.text}
            ]  # fmt: skip
        return found

    def _symbol(self, number: int, one: Symbol, k: int, time: float) -> dict[str, Any]:
        """Return a symbol at an instant: a line through its anchors, a dot for a pivot."""
        places = self.anchors[k, list(one.anchors)]
        colour = {"spring": SPRING, "damper": SPRING, "spiral": SPRING, "input": INPUT}.get(one.kind)
        colour = colour or self.colours_of(one.owner)[1]
        found = self._entity(f"{one.kind} {one.name} {number}", NEWTONIAN, time, one.name)
        if len(places) == 1:
            size = _vector(np.full(3, 0.02 * self.size))
            found["spheres"] = [{"pose": _pose(places[0]), "size": size, "color": _colour(colour)}]
        else:
            found["lines"] = [self._line(places, _LINE, colour)]
        return found

    def loads(self) -> dict[str, tuple[Floats, Floats]]:
        """Return place and force of each connection that has a place, at all instants."""
        pins = self.samples.pins
        return {name: (pin.at, pin.force) for name, pin in pins.items() if np.isfinite(pin.at).all()}

    def _arrow(self, time: float, name: str, place: Floats, force: Floats) -> dict[str, Any]:
        """Return the arrow of a load, none for a force that is zero or unknown."""
        found = self._entity(name, NEWTONIAN, time, name)
        norm = float(np.linalg.norm(force))
        length = norm * self.per_newton
        if math.isfinite(length) and length > 1e-6 * self.size:
            turn = quaternions(_along(force / norm)[None])[0]
            found["arrows"] = [
                {"pose": _pose(place, turn), "shaft_length": 0.8 * length, "shaft_diameter": 0.01 * self.size,
                 "head_length": 0.2 * length, "head_diameter": 0.03 * self.size, "color": _colour(INPUT)}
            ]  # fmt: skip
            found["metadata"].append({"key": "force, N", "value": f"{norm:.6g}"})
        return found

    @property
    def per_newton(self) -> float:
        """Length of arrows, m/N."""
        return LONGEST_ARROW * self.size / self.largest_load if self.largest_load > 0.0 else 0.0

    @cached_property
    def largest_load(self) -> float:
        """Largest force in a connection up to the last instant, N."""
        norms = [np.linalg.norm(force, axis=1) for _, force in self.loads().values()]
        return max([self._load_before, *(float(np.nanmax(norm, initial=0.0)) for norm in norms)])

    def colours_of(self, owner: str) -> tuple[str, str]:
        """Return the colours of a body's areas and edges."""
        return self.colours.get(owner, (STEEL, STEEL))

    def _line(self, points: Floats, kind: int, colour: str) -> dict[str, Any]:
        return {
            "type": kind, "pose": _pose(np.zeros(3)), "thickness": 2.0, "scale_invariant": True,
            "points": [_vector(point) for point in points], "color": _colour(colour), "colors": [], "indices": [],
        }  # fmt: skip

    def _entity(self, name: str, frame: str, time: float, owner: str) -> dict[str, Any]:
        return {
            "timestamp": _stamp(time), "frame_id": frame, "id": name, "lifetime": {"sec": 0, "nsec": 0},
            "frame_locked": True, "metadata": [{"key": "part", "value": owner}], "arrows": [], "cubes": [],
            "spheres": [], "cylinders": [], "lines": [], "triangles": [], "texts": [], "models": [],
        }  # fmt: skip


def frame_name(frame: str, origin: str) -> str:
    """Return the name of the frame of coordinates with the axes of a frame and its origin at a point."""
    return f"{frame} at {origin}"


def quaternions(rotations: Floats) -> Floats:
    """Return rotation matrices (n, 3, 3) as quaternions x, y, z, w, shape (n, 4), with w not negative.

    From the largest component, so that no digits are lost (Shepperd 1978, J. Guidance and Control 1).
    """
    m = rotations
    trace = np.trace(m, axis1=1, axis2=2)
    squares = np.column_stack([1.0 - trace + 2.0 * m[:, i, i] for i in range(3)] + [1.0 + trace])
    best = np.argmax(squares, axis=1)
    minus = [m[:, 2, 1] - m[:, 1, 2], m[:, 0, 2] - m[:, 2, 0], m[:, 1, 0] - m[:, 0, 1]]
    plus = {(i, j): m[:, i, j] + m[:, j, i] for i, j in ((0, 1), (0, 2), (1, 2))}
    options = [
        np.column_stack([squares[:, 0], plus[0, 1], plus[0, 2], minus[0]]),
        np.column_stack([plus[0, 1], squares[:, 1], plus[1, 2], minus[1]]),
        np.column_stack([plus[0, 2], plus[1, 2], squares[:, 2], minus[2]]),
        np.column_stack([*minus, squares[:, 3]]),
    ]
    chosen = np.choose(best[:, None], options)
    chosen = chosen / np.linalg.norm(chosen, axis=1)[:, None]
    found: Floats = np.where(chosen[:, 3:] < 0.0, -chosen, chosen)
    return found


def _along(direction: Floats) -> Floats:
    """Return a rotation matrix whose first column is a unit vector."""
    helper = np.eye(3)[int(np.argmin(np.abs(direction)))]
    second = np.cross(helper, direction)
    second /= np.linalg.norm(second)
    return np.column_stack([direction, second, np.cross(direction, second)])


def nanoseconds(time: float) -> int:
    """Return a time (s) in ns, zero for one before zero."""
    return max(0, round(time * _NANO))


def _stamp(time: float) -> dict[str, int]:
    seconds, rest = divmod(nanoseconds(time), _NANO)
    return {"sec": seconds, "nsec": rest}


def _vector(values: Floats) -> dict[str, float]:
    return dict(zip("xyz", values.tolist(), strict=True))


def _pose(place: Floats, turn: Floats | Sequence[float] = (0.0, 0.0, 0.0, 1.0)) -> dict[str, Any]:
    return {"position": _vector(place), "orientation": dict(zip("xyzw", map(float, turn), strict=True))}


def _colour(text: str) -> dict[str, float]:
    """Return ``#RRGGBB`` as parts of one."""
    return {**{name: int(text[1 + 2 * i : 3 + 2 * i], 16) / 255.0 for i, name in enumerate("rgb")}, "a": 1.0}
