"""A run as files for viewers: MCAP, glTF 2.0, Rerun.

Outlines of bodies are sent once, each in a frame of coordinates that moves with its body; transforms of the frames,
symbols and loads are sampled evenly.  Rows and transitions are those of the run, all of them.  Times are those of the
model, from zero.
Names and fields of ``foxglove.*`` are those of the schemas that viewers know (https://docs.foxglove.dev/docs/sdk/schemas).
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from fsm_dyn.core.arrays import FloatArray
from fsm_dyn.core.errors import InputError, optional_library
from fsm_dyn.core.files import whole_file
from fsm_dyn.draw.svg import INPUT, SPRING, STEEL, body_colours
from fsm_dyn.run.record import RunModel
from fsm_dyn.run.run_timeline import Placed, place_scene
from fsm_dyn.run.samples import Samples
from fsm_dyn.run.scene import NEWTONIAN, Scene, SceneShape, Symbol
from fsm_dyn.run.scene_inference import with_symbols
from fsm_dyn.run.transitions import Transition

# -- MCAP with JSON schemas, for viewers such as Foxglove ------------------------------------------------------


INTERVAL: Final = 0.01  # s between transforms
FEWEST: Final = 300  # instants with transforms
MOST: Final = 20_000
LONGEST_ARROW: Final = 0.4  # of the mechanism's size, for the largest load
FAR: Final = 2.0  # of the mechanism's size, as far as outlines without end are drawn
_NANO: Final = 1_000_000_000
_LINE, _LOOP = 0, 1  # types of a line primitive

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
SCENE: Final = _object("foxglove.SceneUpdate", deletions=_list(_object()), entities=_list(_ENTITY))
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


def write_mcap(
    rows: Samples, transitions: Sequence[Transition], sample: Callable[[FloatArray], Samples], path: Path
) -> Path:
    """Write a run; see :meth:`Trajectory.to_mcap`.

    ``sample`` gives rows at other times, shape (n,), s.
    """
    writer = optional_library("mcap.writer", "live").Writer
    scene = moving_scene(rows, sample)
    messages = [*_row_messages(rows), *(scene.messages() if scene is not None else ())]
    for one in transitions:
        messages += _transition_messages(one, rows.model.name)
    with whole_file(path) as temporary, temporary.open("wb") as file:
        log = _Messages(writer(file), rows.model)
        for time, topic, schema, message in sorted(messages, key=lambda item: item[0]):
            log.write(time, topic, schema, message)
        log.finish()
    return path


class _Messages:
    """Messages of an open file, each topic with its schema."""

    def __init__(self, writer: Any, model: RunModel) -> None:
        self._writer = writer
        self._channels: dict[str, int] = {}
        writer.start(profile="", library="fsm_dyn")
        writer.add_metadata("fsm_dyn", {"model": model.name, "time": "s of the model", "frame": NEWTONIAN})

    def write(self, time: float, topic: str, schema: Mapping[str, Any], message: Any) -> None:
        """Write a message at a time (s); numbers that are none become null."""
        if topic not in self._channels:
            text = msgspec.json.encode(schema)
            number = self._writer.register_schema(name=schema["title"], encoding="jsonschema", data=text)
            self._channels[topic] = self._writer.register_channel(topic, "json", number)
        at = _nanoseconds(time)
        self._writer.add_message(self._channels[topic], at, msgspec.json.encode(message), at)

    def finish(self) -> None:
        """Write the index."""
        self._writer.finish()


_Message = tuple[float, str, Mapping[str, Any], Any]


def moving_scene(rows: Samples, sample: Callable[[FloatArray], Samples]) -> MovingScene | None:
    """Return the drawing of a run at even times, None for a model without one.

    Parameters
    ----------
    rows : Samples
    sample : callable
        Gives rows at other times, shape (n,), s.
    """
    model = rows.model
    if model.scene is None or model.automaton is None:
        return None
    scene = with_symbols(model.scene, model.automaton, model.values, rows.t, rows.x, rows.context)
    span = float(rows.t[-1] - rows.t[0])
    count = min(max(FEWEST, math.ceil(span / INTERVAL)), MOST)
    return MovingScene(scene, sample(np.linspace(rows.t[0], rows.t[-1], count + 1)))


def _row_messages(rows: Samples) -> Iterator[_Message]:
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


def _transition_messages(one: Transition, name: str) -> Iterator[_Message]:
    """Yield a transition as data, and as a line of a log."""
    fields = {key: getattr(one, key) for key in ("time", "cause", "energy_before", "energy_after")}
    modes = {"source": one.source_label or one.source, "target": one.target_label or one.target}
    impulse = {key: np.atleast_1d(value).tolist() for key, value in one.impulse.items()}
    yield one.time, "/transitions", TRANSITION, {**fields, **modes, "impulse": impulse}
    line = {"timestamp": _stamp(one.time), "level": 2, "message": str(one), "name": name, "file": "", "line": 0}
    yield one.time, "/log", LOG, line


class MovingScene:
    """Outlines, their frames, symbols and loads of a mechanism at some instants."""

    def __init__(self, scene: Scene, samples: Samples) -> None:
        self.scene, self.samples = scene, samples
        self.placed: Placed = place_scene(scene, samples)
        self.anchors = self.placed.anchors()
        self.colours = body_colours(scene.bodies)
        self.frames = tuple(dict.fromkeys((shape.frame, shape.origin) for shape in scene.shapes))
        extent = np.ptp(self.placed.positions, axis=(0, 1)) if self.placed.positions.size else np.zeros(3)
        reach = max(
            (float(np.abs(shape.points).max(initial=0.0)) for shape in scene.shapes if shape.bounded), default=0.0
        )
        self.size = max(float(extent.max()), reach, 1e-9)

    def messages(self) -> Iterator[_Message]:
        """Yield the outlines once, then transforms, symbols and loads of each instant."""
        times = self.samples.t.tolist()
        shapes = [self._shape(k, shape, times[0]) for k, shape in enumerate(self.scene.shapes)]
        yield times[0], "/scene", SCENE, {"deletions": [], "entities": shapes}
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

    def turns(self, frame: str) -> FloatArray:
        """Return the orientation of a frame as quaternions x, y, z, w, shape (n, 4)."""
        if frame == NEWTONIAN:
            return np.tile([0.0, 0.0, 0.0, 1.0], (len(self.samples), 1))
        return quaternions(self.placed.rotations[:, self.scene.frames.index(frame)])

    def _transform(self, time: float, name: tuple[str, str], place: FloatArray, turn: FloatArray) -> dict[str, Any]:
        return {
            "timestamp": _stamp(time), "parent_frame_id": NEWTONIAN, "child_frame_id": frame_name(*name),
            "translation": _vector(place), "rotation": dict(zip("xyzw", turn.tolist(), strict=True)),
        }  # fmt: skip

    def outline(self, shape: SceneShape) -> FloatArray:
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

    def loads(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Return place and force of each connection that has a place, at all instants."""
        pins = self.samples.pins
        return {name: (pin.at, pin.force) for name, pin in pins.items() if np.isfinite(pin.at).all()}

    def _arrow(self, time: float, name: str, place: FloatArray, force: FloatArray) -> dict[str, Any]:
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
        if not hasattr(self, "_per_newton"):
            norms = [np.linalg.norm(force, axis=1) for _, force in self.loads().values()]
            largest = max((float(np.nanmax(norm, initial=0.0)) for norm in norms), default=0.0)
            self._per_newton = LONGEST_ARROW * self.size / largest if largest > 0.0 else 0.0
        return self._per_newton

    def colours_of(self, owner: str) -> tuple[str, str]:
        """Return the colours of a body's areas and edges."""
        return self.colours.get(owner, (STEEL, STEEL))

    def _line(self, points: FloatArray, kind: int, colour: str) -> dict[str, Any]:
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


def quaternions(rotations: FloatArray) -> FloatArray:
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
    found: FloatArray = np.where(chosen[:, 3:] < 0.0, -chosen, chosen)
    return found


def _along(direction: FloatArray) -> FloatArray:
    """Return a rotation matrix whose first column is a unit vector."""
    helper = np.eye(3)[int(np.argmin(np.abs(direction)))]
    second = np.cross(helper, direction)
    second /= np.linalg.norm(second)
    return np.column_stack([direction, second, np.cross(direction, second)])


def _nanoseconds(time: float) -> int:
    return max(0, round(time * _NANO))


def _stamp(time: float) -> dict[str, int]:
    seconds, rest = divmod(_nanoseconds(time), _NANO)
    return {"sec": seconds, "nsec": rest}


def _vector(values: FloatArray) -> dict[str, float]:
    return dict(zip("xyz", values.tolist(), strict=True))


def _pose(place: FloatArray, turn: FloatArray | Sequence[float] = (0.0, 0.0, 0.0, 1.0)) -> dict[str, Any]:
    return {"position": _vector(place), "orientation": dict(zip("xyzw", map(float, turn), strict=True))}


def _colour(text: str) -> dict[str, float]:
    """Return ``#RRGGBB`` as parts of one."""
    return {**{name: int(text[1 + 2 * i : 3 + 2 * i], 16) / 255.0 for i, name in enumerate("rgb")}, "a": 1.0}


# -- glTF 2.0, one binary file (.glb) for viewers of scenes in space (The Khronos Group, Specification, 2021) ---


KEY_INTERVAL: Final = 1.0 / 60.0  # s, between two keys of an animation
FEWEST_KEYS, MOST_KEYS = 30, 20_000
_DEPTH: Final = 0.005  # of the drawing's size: half the thickness of the thinnest plate
_LINE_LOOP, _LINE_STRIP, _TRIANGLES = 2, 3, 4
_FLOAT, _UNSIGNED = 5126, 5125
_MAGIC, _JSON, _BINARY = 0x46546C67, 0x4E4F534A, 0x004E4942
_Z_UP: Final = [-math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)]  # the turn that brings z up, where glTF has y


def write_glb(rows: Samples, sample: Callable[[FloatArray], Samples], path: Path) -> Path:
    """Write the outlines of a run with their motion; see :meth:`Trajectory.to_gltf`.

    ``sample`` gives rows at other times, shape (n,), s.

    Raises
    ------
    InputError
        The model has no drawing.
    """
    if rows.model.scene is None or rows.model.automaton is None:
        raise InputError("the run has no drawing", remedy="open it with its model")
    span = float(rows.t[-1] - rows.t[0])
    count = min(max(FEWEST_KEYS, math.ceil(span / KEY_INTERVAL)), MOST_KEYS)
    moving = MovingScene(rows.model.scene, sample(np.linspace(rows.t[0], rows.t[-1], count + 1)))
    document = _Document(rows.model.name)
    document.add(moving)
    with whole_file(path) as temporary:
        temporary.write_bytes(document.packed())
    return path


class _Document:
    """A glTF document under construction, with its one buffer."""

    def __init__(self, name: str) -> None:
        self.buffer = bytearray()
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []
        self.meshes: list[dict[str, Any]] = []
        self.materials: list[dict[str, Any]] = []
        self.nodes: list[dict[str, Any]] = [{"name": name, "children": []}]
        self.samplers: list[dict[str, Any]] = []
        self.channels: list[dict[str, Any]] = []
        self.colours: dict[str, int] = {}

    def add(self, moving: MovingScene) -> None:
        """Add the frames of a scene with their motion, and the outlines in them."""
        if any(shape.points.shape[1] == 3 for shape in moving.scene.shapes):
            self.nodes[0]["rotation"] = _Z_UP
        times = self.accessor((moving.samples.t - moving.samples.t[0])[:, None], "SCALAR")
        for frame, origin in moving.frames:
            place, turn = moving.placed.point(origin), continuous(moving.turns(frame))
            node = {"name": frame_name(frame, origin), "translation": place[0].tolist(), "children": []}
            if frame != NEWTONIAN:
                node["rotation"] = turn[0].tolist()
            number = self.node(node)
            self.nodes[0]["children"].append(number)
            for target, values in (("translation", place), ("rotation", turn)):
                if np.ptp(values, axis=0).any():
                    self.animate(number, target, times, values)
            for k, shape in enumerate(moving.scene.shapes):
                if (shape.frame, shape.origin) == (frame, origin):
                    node["children"].append(self.shape(moving, shape, k))
            if not node["children"]:
                del node["children"]

    def node(self, node: dict[str, Any]) -> int:
        """Add a node and return its number."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def animate(self, node: int, target: str, times: int, values: FloatArray) -> None:
        """Let a node follow values (n, 3) or quaternions (n, 4), linear between the times."""
        output = self.accessor(values, "VEC3" if target == "translation" else "VEC4")
        self.samplers.append({"input": times, "output": output, "interpolation": "LINEAR"})
        self.channels.append({"sampler": len(self.samplers) - 1, "target": {"node": node, "path": target}})

    def shape(self, moving: MovingScene, shape: SceneShape, number: int) -> int:
        """Add an outline as lines, a face or plate as triangles, a sphere for a silhouette or a dot."""
        points, (fill, edge) = moving.outline(shape), moving.colours_of(shape.owner)
        name = f"{shape.body} {number}"
        if shape.facing or len(points) == 1:
            radius = float(np.linalg.norm(points, axis=1).max()) if shape.facing else 0.01 * moving.size
            place = np.zeros(3) if shape.facing else points[0]
            corners, triangles = _ball()
            parts = [self.primitive(place + radius * corners, _TRIANGLES, fill, triangles)]
        else:
            closed = shape.closed or shape.plane
            parts = [self.primitive(points, _LINE_LOOP if closed else _LINE_STRIP, edge)]
            if shape.outward or shape.plane:
                fan = [k for i in range(1, len(points) - 1) for k in (0, i, i + 1)]
                parts.append(self.primitive(points, _TRIANGLES, fill, fan))
            elif shape.closed and shape.points.shape[1] == 2 and len(points) >= 3:
                depth = _DEPTH * moving.size * (1.0 + number / len(moving.scene.shapes))  # no faces coincide
                corners, triangles = extruded(points, depth)
                parts.append(self.primitive(corners, _TRIANGLES, fill, triangles))
        self.meshes.append({"name": name, "primitives": parts})
        return self.node({"name": name, "mesh": len(self.meshes) - 1})

    def primitive(self, points: FloatArray, mode: int, colour: str, indices: Sequence[int] = ()) -> dict[str, Any]:
        """Return a part of a mesh: points (n, 3), m, in the order of `indices`, if there are any."""
        part: dict[str, Any] = {"attributes": {"POSITION": self.accessor(points, "VEC3")}, "mode": mode}
        part["material"] = self.material(colour)
        if indices:
            part["indices"] = self.accessor(np.array(indices)[:, None], "SCALAR", _UNSIGNED)
        return part

    def material(self, colour: str) -> int:
        """Return the number of the material of a colour, ``#RRGGBB``."""
        if colour not in self.colours:
            self.colours[colour] = len(self.materials)
            parts = [(int(colour[k : k + 2], 16) / 255.0) ** 2.2 for k in (1, 3, 5)]  # linear, from sRGB
            self.materials.append(
                {"name": colour, "doubleSided": True,
                 "pbrMetallicRoughness": {"baseColorFactor": [*parts, 1.0], "metallicFactor": 0.0}}
            )  # fmt: skip
        return self.colours[colour]

    def accessor(self, values: FloatArray, kind: str, component: int = _FLOAT) -> int:
        """Store an array (n, k) and return the number of its accessor."""
        stored = values.astype("<f4" if component == _FLOAT else "<u4")
        self.views.append({"buffer": 0, "byteOffset": len(self.buffer), "byteLength": stored.nbytes})
        self.buffer += stored.tobytes()
        self.accessors.append(
            {"bufferView": len(self.views) - 1, "componentType": component, "count": len(stored), "type": kind,
             "min": stored.min(axis=0).tolist(), "max": stored.max(axis=0).tolist()}
        )  # fmt: skip
        return len(self.accessors) - 1

    def packed(self) -> bytes:
        """Return the file."""
        content = {
            "asset": {"version": "2.0", "generator": "fsm_dyn"}, "scene": 0, "scenes": [{"nodes": [0]}],
            "nodes": self.nodes, "meshes": self.meshes, "materials": self.materials, "accessors": self.accessors,
            "bufferViews": self.views, "buffers": [{"byteLength": len(self.buffer)}],
            "animations": [{"name": "run", "samplers": self.samplers, "channels": self.channels}],
        }  # fmt: skip
        if not self.channels:
            del content["animations"]
        text = json.dumps(content, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 4)
        data = bytes(self.buffer) + b"\0" * (-len(self.buffer) % 4)
        size = 12 + 8 + len(text) + 8 + len(data)
        head = struct.pack("<III", _MAGIC, 2, size)
        return head + struct.pack("<II", len(text), _JSON) + text + struct.pack("<II", len(data), _BINARY) + data


def continuous(turns: FloatArray) -> FloatArray:
    """Return quaternions (n, 4) with signs by which each is next to the one before."""
    products = np.einsum("ni,ni->n", turns[1:], turns[:-1])
    signs = np.concatenate([[1.0], np.cumprod(np.where(products < 0.0, -1.0, 1.0))])
    return turns * signs[:, None]


def triangulated(outline: FloatArray) -> list[tuple[int, int, int]]:
    """Return the triangles of a polygon, corners (n, 2) against the clock, by cutting off one ear after the other."""

    def turn(a: int, b: int, c: int) -> float:
        (ax, ay), (bx, by), (cx, cy) = outline[a], outline[b], outline[c]
        return float((bx - ax) * (cy - ay) - (by - ay) * (cx - ax))

    def is_ear(a: int, b: int, c: int) -> bool:
        if turn(a, b, c) <= 0.0:
            return False
        others = (k for k in left if k not in (a, b, c))
        return not any(min(turn(a, b, k), turn(b, c, k), turn(c, a, k)) >= 0.0 for k in others)

    left = list(range(len(outline)))
    found = []
    while len(left) > 2:
        corners = [(left[k - 1], left[k], left[(k + 1) % len(left)]) for k in range(len(left))]
        ear = next((k for k, corner in enumerate(corners) if is_ear(*corner)), None)
        if ear is None:  # corners in line
            ear = min(range(len(left)), key=lambda k: abs(turn(*corners[k])))
        else:
            found.append(corners[ear])
        del left[ear]
    return found


def extruded(points: FloatArray, depth: float) -> tuple[FloatArray, list[int]]:
    """Return corners (2 n, 3) and triangles of a plate; outline (n, 3) across z, `depth` to each side."""
    x, y, _ = points.T
    points = points if x @ np.roll(y, -1) > y @ np.roll(x, -1) else points[::-1]
    count, up = len(points), np.array([0.0, 0.0, depth])
    faces = triangulated(points[:, :2])
    triangles = [k for face in faces for k in face] + [k + count for face in faces for k in face[::-1]]
    for k in range(count):
        after = (k + 1) % count
        triangles += [k, k + count, after, after, k + count, after + count]
    return np.vstack([points + up, points - up]), triangles


def _ball(rings: int = 12, sectors: int = 20) -> tuple[FloatArray, list[int]]:
    """Return corners (n, 3) and triangles of the unit sphere."""
    polar = np.linspace(0.0, np.pi, rings + 1)
    around = np.linspace(0.0, 2.0 * np.pi, sectors, endpoint=False)
    a, b = (angle.ravel() for angle in np.meshgrid(polar, around, indexing="ij"))
    corners = np.column_stack([np.sin(a) * np.cos(b), np.sin(a) * np.sin(b), np.cos(a)])
    triangles = []
    for ring in range(rings):
        for sector in range(sectors):
            one, other = ring * sectors + sector, ring * sectors + (sector + 1) % sectors
            triangles += [one, one + sectors, other, other, one + sectors, other + sectors]
    return corners, triangles


# -- A recording for the viewer Rerun, .rrd --------------------------------------------------------------------


EXTRA: Final = "rerun"
TIMELINE: Final = "time"  # s of the model


def write_rrd(
    rows: Samples, transitions: Sequence[Transition], sample: Callable[[FloatArray], Samples], path: Path
) -> Path:
    """Write a run; see :meth:`Trajectory.to_rerun`.

    Parameters
    ----------
    rows : Samples
    transitions : sequence of Transition
    sample : callable
        Gives rows at other times, shape (n,), s.
    path : Path
        File to write.

    Returns
    -------
    Path
        The same.
    """
    log = _Log(optional_library("rerun", EXTRA), rows.model.name)
    log.rows(rows)
    log.transitions(transitions)
    moving = moving_scene(rows, sample)
    if moving is not None:
        log.scene(moving)
    with whole_file(path) as temporary:
        log.recording.save(temporary)
        log.recording.disconnect()
    return path


class _Log:
    """Entities of a recording."""

    def __init__(self, library: Any, name: str) -> None:
        self.library = library
        # a fixed id: two recordings of a run differ in times of writing alone
        self.recording = library.RecordingStream(f"fsm_dyn {name}", recording_id=name)

    def columns(self, entity: Sequence[str], times: FloatArray, columns: Any) -> None:
        """Send values of an entity at times (n,), s."""
        path = self.library.new_entity_path(entity)
        index = [self.library.TimeColumn(TIMELINE, duration=times)]
        self.library.send_columns(path, indexes=index, columns=columns, recording=self.recording)

    def rows(self, rows: Samples) -> None:
        """Log every column of the rows, and the mode where it changes."""
        for name, column in rows.columns():
            entity = ("run", *name.split(".", 1))
            self.columns(entity, rows.t, self.library.Scalars.columns(scalars=np.asarray(column, float)))
        begins = [k for k, mode in enumerate(rows.modes) if k == 0 or mode != rows.modes[k - 1]]
        if begins:
            texts = self.library.TextLog.columns(text=[rows.modes[k] for k in begins])
            self.columns(("run", "mode"), rows.t[begins], texts)

    def transitions(self, transitions: Sequence[Transition]) -> None:
        """Log transitions as lines of text."""
        if transitions:
            times = np.array([one.time for one in transitions])
            self.columns(("transitions",), times, self.library.TextLog.columns(text=[str(one) for one in transitions]))

    def scene(self, moving: MovingScene) -> None:
        """Log outlines in their frames, the frames' motion, and loads as arrows."""
        times, entities = moving.samples.t, dict[tuple[str, str], tuple[str, str]]()
        for frame, origin in moving.frames:
            entities[frame, origin] = ("scene", frame_name(frame, origin))
            motion = self.library.Transform3D.columns(
                translation=moving.placed.point(origin), quaternion=moving.turns(frame)
            )
            self.columns(entities[frame, origin], times, motion)
        for k, shape in enumerate(moving.scene.shapes):
            entity = (*entities[shape.frame, shape.origin], f"{shape.body} {k}")
            self.recording.log(self.library.new_entity_path(entity), self._shape(moving, shape), static=True)
        for name, (place, force) in moving.loads().items():
            arrows = self.library.Arrows3D.columns(
                origins=place,
                vectors=np.nan_to_num(force) * moving.per_newton,
                colors=[_bytes_of_colour(INPUT)] * len(times),
            )
            self.columns(("scene", "loads", name), times, arrows)

    def _shape(self, moving: MovingScene, shape: SceneShape) -> Any:
        """Return an outline: a closed line, or a ball for a silhouette or a dot."""
        points, (fill, edge) = moving.outline(shape), moving.colours_of(shape.owner)
        if shape.facing or len(points) == 1:
            radius = float(np.linalg.norm(points, axis=1).max()) if shape.facing else 0.01 * moving.size
            place = np.zeros(3) if shape.facing else points[0]
            return self.library.Ellipsoids3D(
                centers=[place], half_sizes=[[radius] * 3], colors=[_bytes_of_colour(fill)]
            )
        closed = np.vstack([points, points[:1]]) if shape.closed or shape.plane else points
        return self.library.LineStrips3D([closed], colors=[_bytes_of_colour(edge)])


def _bytes_of_colour(text: str) -> tuple[int, ...]:
    return tuple(int(text[k : k + 2], 16) for k in (1, 3, 5))
