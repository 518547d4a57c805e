"""A run as files for viewers: MCAP with JSON schemas, a recording of Rerun, glTF 2.0, USD."""

from __future__ import annotations

import itertools
import json
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import msgspec
import numpy as np

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, optional_library
from fsm_dyn.core.files import whole_file
from fsm_dyn.core.records import dataclass
from fsm_dyn.draw.svg import INPUT
from fsm_dyn.run.record import RunModel
from fsm_dyn.run.samples import Samples
from fsm_dyn.run.scene import NEWTONIAN, SceneShape
from fsm_dyn.run.transitions import Transition
from fsm_dyn.run.viewer_scene import (
    MovingScene,
    frame_name,
    moving_scene,
    nanoseconds,
    row_messages,
    transition_messages,
)


def write_mcap(
    rows: Samples, transitions: Sequence[Transition], sample: Callable[[Floats], Samples], path: Path
) -> Path:
    """Write a run; see :meth:`Trajectory.to_mcap`.

    ``sample`` gives rows at other times, shape (n,), s.
    """
    writer = optional_library("mcap.writer", "live").Writer
    scene = moving_scene(rows, sample)
    messages = [*row_messages(rows), *(scene.messages() if scene is not None else ())]
    for one in transitions:
        messages += transition_messages(one, rows.model.name)
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
        at = nanoseconds(time)
        self._writer.add_message(self._channels[topic], at, msgspec.json.encode(message), at)

    def finish(self) -> None:
        """Write the index."""
        self._writer.finish()


# -- A recording for the viewer Rerun, .rrd --------------------------------------------------------------------


EXTRA: Final = "rerun"
TIMELINE: Final = "time"  # s of the model


def write_rrd(
    rows: Samples, transitions: Sequence[Transition], sample: Callable[[Floats], Samples], path: Path
) -> Path:
    """Write a run; see :meth:`Trajectory.to_rerun`.

    ``sample``: gives rows at other times, shape (n,), s; ``path``: file to write.
    """
    log = RerunLog(optional_library("rerun", EXTRA), rows.model.name)
    log.rows(rows)
    log.transitions(transitions)
    moving = moving_scene(rows, sample)
    if moving is not None:
        log.scene(moving)
    with whole_file(path) as temporary:
        log.recording.save(temporary)
        log.recording.disconnect()
    return path


class RerunLog:
    """Entities of a recording; ``number`` tells recordings of a model apart that a viewer is to show as two."""

    def __init__(self, library: Any, name: str, number: str = "") -> None:
        self.library = library
        # a fixed id: two files of a run differ in times of writing alone
        self.recording = library.RecordingStream(f"fsm_dyn {name}", recording_id=f"{name}{number}")
        self._mode = ""  # of the last row

    def columns(self, entity: Sequence[str], times: Floats, columns: Any) -> None:
        """Send values of an entity at times (n,), s."""
        path = self.library.new_entity_path(entity)
        index = [self.library.TimeColumn(TIMELINE, duration=times)]
        self.library.send_columns(path, indexes=index, columns=columns, recording=self.recording)

    def rows(self, rows: Samples) -> None:
        """Log every column of the rows, and the mode where it changes."""
        for name, column in rows.columns():
            entity = ("run", *name.split(".", 1))
            self.columns(entity, rows.t, self.library.Scalars.columns(scalars=np.asarray(column, float)))
        begins = [
            k for k, (mode, last) in enumerate(zip(rows.modes, (self._mode, *rows.modes), strict=False)) if mode != last
        ]
        self._mode = rows.modes[-1] if rows.modes else self._mode
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
        self.outlines(moving)
        self.motion(moving)

    def outlines(self, moving: MovingScene) -> None:
        """Log outlines in their frames."""
        for k, shape in enumerate(moving.scene.shapes):
            entity = ("scene", frame_name(shape.frame, shape.origin), f"{shape.body} {k}")
            self.recording.log(self.library.new_entity_path(entity), self._shape(moving, shape), static=True)

    def motion(self, moving: MovingScene) -> None:
        """Log the motion of the frames, and loads as arrows."""
        times = moving.samples.t
        for frame, origin in moving.frames:
            motion = self.library.Transform3D.columns(
                translation=moving.placed.point(origin), quaternion=moving.turns(frame)
            )
            self.columns(("scene", frame_name(frame, origin)), times, motion)
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


# -- glTF 2.0, one binary file (.glb) for viewers of scenes in space (The Khronos Group, Specification, 2021) ---


KEY_INTERVAL: Final = 1.0 / 60.0  # s, between two keys of an animation
FEWEST_KEYS, MOST_KEYS = 30, 20_000
_DEPTH: Final = 0.005  # of the drawing's size: half the thickness of the thinnest plate
_LINE_LOOP, _LINE_STRIP, _TRIANGLES = 2, 3, 4
_FLOAT, _UNSIGNED = 5126, 5125
_MAGIC, _JSON, _BINARY = 0x46546C67, 0x4E4F534A, 0x004E4942
_Z_UP: Final = [-math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)]  # the turn that brings z up, where glTF has y


def write_glb(rows: Samples, sample: Callable[[Floats], Samples], path: Path) -> Path:
    """Write the outlines of a run with their motion; see :meth:`Trajectory.to_gltf`.

    ``sample`` gives rows at other times, shape (n,), s. Raises InputError: the model has no drawing.
    """
    document = _Document(rows.model.name)
    document.add(_keyed_scene(rows, sample))
    with whole_file(path) as temporary:
        temporary.write_bytes(document.packed())
    return path


def _keyed_scene(rows: Samples, sample: Callable[[Floats], Samples]) -> MovingScene:
    """Return the outlines of a run at the times of keys; raise InputError for a model without a drawing."""
    if rows.model.scene is None or rows.model.automaton is None:
        raise InputError("the run has no drawing", remedy="open it with its model")
    span = float(rows.t[-1] - rows.t[0])
    count = min(max(FEWEST_KEYS, math.ceil(span / KEY_INTERVAL)), MOST_KEYS)
    return MovingScene(rows.model.scene, sample(np.linspace(rows.t[0], rows.t[-1], count + 1)))


@dataclass(frozen=True)
class _Part:
    """Part of an outline in its frame: a line through points (n, 3), m, a closed one, or triangles of them."""

    kind: int
    points: Floats
    colour: str
    triangles: Sequence[int] = ()


def _parts(moving: MovingScene, shape: SceneShape, number: int) -> list[_Part]:
    """Return an outline as lines, a face or plate as triangles, a sphere for a silhouette or a dot."""
    points, (fill, edge) = moving.outline(shape), moving.colours_of(shape.owner)
    if shape.facing or len(points) == 1:
        radius = float(np.linalg.norm(points, axis=1).max()) if shape.facing else 0.01 * moving.size
        corners, triangles = _ball()
        place = np.zeros(3) if shape.facing else points[0]
        return [_Part(_TRIANGLES, place + radius * corners, fill, triangles)]
    found = [_Part(_LINE_LOOP if shape.closed or shape.plane else _LINE_STRIP, points, edge)]
    if shape.outward or shape.plane:
        fan = [k for i in range(1, len(points) - 1) for k in (0, i, i + 1)]
        found.append(_Part(_TRIANGLES, points, fill, fan))
    elif shape.closed and shape.points.shape[1] == 2 and len(points) >= 3:
        depth = _DEPTH * moving.size * (1.0 + number / len(moving.scene.shapes))  # no faces coincide
        corners, triangles = extruded(points, depth)
        found.append(_Part(_TRIANGLES, corners, fill, triangles))
    return found


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

    def animate(self, node: int, target: str, times: int, values: Floats) -> None:
        """Let a node follow values (n, 3) or quaternions (n, 4), linear between the times."""
        output = self.accessor(values, "VEC3" if target == "translation" else "VEC4")
        self.samplers.append({"input": times, "output": output, "interpolation": "LINEAR"})
        self.channels.append({"sampler": len(self.samplers) - 1, "target": {"node": node, "path": target}})

    def shape(self, moving: MovingScene, shape: SceneShape, number: int) -> int:
        """Add an outline."""
        name = f"{shape.body} {number}"
        parts = [self.primitive(part) for part in _parts(moving, shape, number)]
        self.meshes.append({"name": name, "primitives": parts})
        return self.node({"name": name, "mesh": len(self.meshes) - 1})

    def primitive(self, part: _Part) -> dict[str, Any]:
        """Return a part of a mesh."""
        found: dict[str, Any] = {"attributes": {"POSITION": self.accessor(part.points, "VEC3")}, "mode": part.kind}
        found["material"] = self.material(part.colour)
        if part.triangles:
            found["indices"] = self.accessor(np.array(part.triangles)[:, None], "SCALAR", _UNSIGNED)
        return found

    def material(self, colour: str) -> int:
        """Return the number of the material of a colour, ``#RRGGBB``."""
        if colour not in self.colours:
            self.colours[colour] = len(self.materials)
            self.materials.append(
                {"name": colour, "doubleSided": True,
                 "pbrMetallicRoughness": {"baseColorFactor": [*_linear(colour), 1.0], "metallicFactor": 0.0}}
            )  # fmt: skip
        return self.colours[colour]

    def accessor(self, values: Floats, kind: str, component: int = _FLOAT) -> int:
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


def _linear(colour: str) -> list[float]:
    """Return ``#RRGGBB``, which is sRGB, as linear parts of one."""
    return [(int(colour[k : k + 2], 16) / 255.0) ** 2.2 for k in (1, 3, 5)]


def continuous(turns: Floats) -> Floats:
    """Return quaternions (n, 4) with signs by which each is next to the one before."""
    products = np.einsum("ni,ni->n", turns[1:], turns[:-1])
    signs = np.concatenate([[1.0], np.cumprod(np.where(products < 0.0, -1.0, 1.0))])
    return turns * signs[:, None]


def triangulated(outline: Floats) -> list[tuple[int, int, int]]:
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


def extruded(points: Floats, depth: float) -> tuple[Floats, list[int]]:
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


def _ball(rings: int = 12, sectors: int = 20) -> tuple[Floats, list[int]]:
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


# -- USD (Alliance for OpenUSD, Core Specification), for programs of scenes in space ----------------------------


USD: Final = (".usda", ".usdc", ".usd")
_THIN: Final = 0.004  # of the drawing's size: lines


def write_usd(rows: Samples, sample: Callable[[Floats], Samples], path: Path) -> Path:
    """Write the outlines of a run with their motion; see :meth:`Trajectory.to_usd`.

    ``sample`` gives rows at other times, shape (n,), s. Raises InputError: the model has no drawing, the name of the
    file ends otherwise, or the package usd-core is not installed.
    """
    if path.suffix not in USD:
        raise InputError("the name of a USD file ends otherwise", found=path.name, allowed=", ".join(USD))
    usd = {name: optional_library(f"pxr.{name}", "usd") for name in ("Usd", "UsdGeom", "Gf", "Tf")}
    scene = _UsdScene(SimpleNamespace(**usd), rows.model.name)
    scene.add(_keyed_scene(rows, sample))
    with whole_file(path) as temporary:
        scene.stage.GetRootLayer().Export(str(temporary))
    return path


class _UsdScene:
    """A stage under construction: a transform for each frame, with its outlines as curves and meshes."""

    def __init__(self, usd: Any, name: str) -> None:
        self.usd, self.stage = usd, usd.Usd.Stage.CreateInMemory()
        self.root = f"/{usd.Tf.MakeValidIdentifier(name)}"
        self.stage.SetDefaultPrim(usd.UsdGeom.Xform.Define(self.stage, self.root).GetPrim())
        usd.UsdGeom.SetStageMetersPerUnit(self.stage, 1.0)

    def add(self, moving: MovingScene) -> None:
        """Add the frames of a scene with their motion, and the outlines in them."""
        space = any(shape.points.shape[1] == 3 for shape in moving.scene.shapes)
        tokens = self.usd.UsdGeom.Tokens
        self.usd.UsdGeom.SetStageUpAxis(self.stage, tokens.z if space else tokens.y)
        codes = ((moving.samples.t - moving.samples.t[0]) / KEY_INTERVAL).tolist()
        for set_rate in (self.stage.SetTimeCodesPerSecond, self.stage.SetFramesPerSecond):
            set_rate(1.0 / KEY_INTERVAL)
        self.stage.SetStartTimeCode(0.0)
        self.stage.SetEndTimeCode(codes[-1])
        for frame, origin in moving.frames:
            path = self.path(self.root, frame_name(frame, origin))
            form = self.usd.UsdGeom.Xform.Define(self.stage, path)
            double = self.usd.UsdGeom.XformOp.PrecisionDouble
            self.animate(form.AddTranslateOp(double), codes, moving.placed.point(origin), self.usd.Gf.Vec3d)
            x, y, z, w = continuous(moving.turns(frame)).T
            self.animate(form.AddOrientOp(double), codes, np.column_stack([w, x, y, z]), self.usd.Gf.Quatd)
            for k, shape in enumerate(moving.scene.shapes):
                if (shape.frame, shape.origin) == (frame, origin):
                    for number, part in enumerate(_parts(moving, shape, k)):
                        self.draw(self.path(path, f"{shape.body} {k} {number}"), part, _THIN * moving.size)

    def path(self, parent: str, name: str) -> str:
        """Return the path of a part beneath another one, by a name that is not taken."""
        plain = f"{parent}/{self.usd.Tf.MakeValidIdentifier(name)}"
        others = (f"{plain}_{k}" for k in itertools.count(2))
        return next(path for path in itertools.chain([plain], others) if not self.stage.GetPrimAtPath(path))

    def animate(self, operation: Any, codes: Sequence[float], values: Floats, kind: Callable[..., Any]) -> None:
        """Let a transform follow values (n, k) at time codes; one value, if they are all alike."""
        rows = values.tolist()
        if not np.ptp(values, axis=0).any():
            operation.Set(kind(*rows[0]))
            return
        for code, row in zip(codes, rows, strict=True):
            operation.Set(kind(*row), code)

    def draw(self, path: str, part: _Part, width: float) -> None:
        """Add a part of an outline as a curve or a mesh."""
        geometry, points = self.usd.UsdGeom, part.points.tolist()
        if part.kind == _TRIANGLES:
            drawn = geometry.Mesh.Define(self.stage, path)
            drawn.CreateFaceVertexCountsAttr([3] * (len(part.triangles) // 3))
            drawn.CreateFaceVertexIndicesAttr(list(part.triangles))
            drawn.CreateSubdivisionSchemeAttr(geometry.Tokens.none)
            drawn.CreateDoubleSidedAttr(True)
            margin = 0.0
        else:
            drawn = geometry.BasisCurves.Define(self.stage, path)
            drawn.CreateTypeAttr(geometry.Tokens.linear)
            wrap = geometry.Tokens.periodic if part.kind == _LINE_LOOP else geometry.Tokens.nonperiodic
            drawn.CreateWrapAttr(wrap)
            drawn.CreateCurveVertexCountsAttr([len(points)])
            drawn.CreateWidthsAttr([width])
            drawn.SetWidthsInterpolation(geometry.Tokens.constant)
            margin = width
        drawn.CreatePointsAttr(points)
        drawn.CreateExtentAttr(
            [(part.points.min(axis=0) - margin).tolist(), (part.points.max(axis=0) + margin).tolist()]
        )
        drawn.CreateDisplayColorAttr([tuple(_linear(part.colour))])
