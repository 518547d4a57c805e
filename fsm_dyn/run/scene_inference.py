"""Symbols of a scene found numerically: owners of outlines, pivots, slides, springs, grounds.

The text of the model is not read: points and frames are evaluated at random configurations, and an outline constant in
a body's frame belongs to this body.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.core.arrays import Booleans, Floats
from fsm_dyn.core.records import dataclass
from fsm_dyn.language import expressions
from fsm_dyn.language.contacts import FeatureContact
from fsm_dyn.language.elements import DamperLoad, EulerFrame, ForceLoad, LawLoad, LineLoad, SpringLoad
from fsm_dyn.language.evaluate import ParameterValue, evaluate_expression
from fsm_dyn.language.expression_tree import free_names
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.shapes import CORDS, CordOutline
from fsm_dyn.run.scene import NEWTONIAN, ORIGIN, Anchor, Scene, SceneShape, Symbol, SymbolKind

CONFIGURATIONS: Final = 24
_TOLERANCE: Final = 1e-7  # of the size of the mechanism, and of a rotation matrix
_BEYOND: Final = 0.2  # of a coordinate's range, to either side of it
_LEAST_RANGE: Final = 0.05  # m or rad, for a coordinate at rest
_UNIT: Final = (0.01, 0.0035, 0.02)  # of the mechanism at an instant; of the drawing, at least; and at most
_REACH: Final = (0.55, 10.0, 25.0)  # of a spring: of its travel, units at least, and without a known travel
_GROUND_BEYOND: Final = 5.0  # units: of a ground, beyond the travel of its partner
_END: Final = 1e-3  # of a body's extent along a slide: points at its end
_TEETH: Final = 16  # of the smallest gear of a mechanism
_TOOTH: Final = ((0.0, -0.5), (0.17, 0.5), (0.5, 0.5), (0.67, -0.5))  # corners: of the pitch, of the module


def with_symbols(
    scene: Scene,
    automaton: Automaton,
    values: Mapping[str, ParameterValue],
    t: Floats,
    x: Floats,
    c: Floats,
) -> Scene:
    """Return a scene with owners of its outlines, and with symbols of joints, springs, dampers and grounds.

    ``values``: parameters by name, SI; ``t``, ``x``, ``c``, shapes (n,), (n, n_x) and (n, n_c): times, states and
    contexts of the drawn motion, or one of them, SI: they determine the start of slides' springs, the lengths of
    grounds, and the unit.
    """
    with np.errstate(all="ignore"):  # at random configurations
        return _Inference(scene, automaton, values, t, x, c).scene()


@dataclass(frozen=True)
class _Poses:
    """Points and frames at n states, then poses of bodies: ground first."""

    points: Floats  # shape (n, n_points + 1, 3): the last is the Newtonian origin
    frames: Floats  # shape (n, n_frames + 1, 3, 3): the last is the Newtonian frame
    centres: Floats  # shape (n_bodies + 1, n, 3)
    turns: Floats  # shape (n_bodies + 1, n, 3, 3)

    def local(self, body: int, positions: Floats) -> Floats:
        """Return positions (k, ..., 3) at the first k states resolved in a body's frame, from its centre."""
        count = len(positions)
        shift = positions - self.centres[body][:count].reshape(count, *[1] * (positions.ndim - 2), 3)
        return np.asarray(np.einsum("nji,n...j->n...i", self.turns[body][:count], shift))

    def relative(self, a: int, b: int) -> tuple[Floats, Floats]:
        """Return centre (n, 3) and rotation (n, 3, 3) of body ``b`` in the frame of ``a``."""
        return self.local(a, self.centres[b]), np.einsum("nji,njk->nik", self.turns[a], self.turns[b])


@dataclass(frozen=True)
class _Pair:
    """Two bodies, ground first, of which one turns about a point of the other, or slides along a line.

    ``at`` (3,) is the point in the frame of ``a``, m, of a pivot; ``along`` (3,) the direction, in the frame of ``a``,
    in which the coordinate of a slide grows.
    """

    a: int
    b: int
    coordinates: frozenset[str]
    at: Floats | None = None
    along: Floats | None = None


class _Inference:
    def __init__(
        self,
        scene: Scene,
        automaton: Automaton,
        values: Mapping[str, ParameterValue],
        t: Floats,
        x: Floats,
        c: Floats,
    ) -> None:
        self._scene, self._values = scene, values
        self._mechanism: Mechanism = automaton.mechanism
        self._names = (NEWTONIAN, *self._mechanism.bodies)
        self._coordinates = list(self._mechanism.coordinate_names)
        self._means = dict(zip(self._coordinates, x.mean(axis=0).tolist(), strict=False))
        self._anchors: list[Anchor] = []
        self._known: dict[tuple[str, str, bytes], int] = {}
        self._drawn = self._poses(t, x, c)
        self._random, self._moved = self._random_poses(t, x, c)
        self._size = max(float(np.ptp(self._random.points.reshape(-1, 3), axis=0).max()), 1e-9)
        self._tolerance = _TOLERANCE * max(self._size, 1e-3)
        self._fixed = np.array([self._still(self._random.local(b, self._random.points)) for b in self._every()])
        self._pairs = list(self._find_pairs())
        self._shapes = self._owned()
        self._outlined = {shape.owner for shape in self._shapes if shape.bounded and shape.role != "dot"}
        self._unit = self._find_unit()
        self._missing: list[str] = []

    def scene(self) -> Scene:
        """Return the scene with its symbols, in the order in which they are drawn."""
        symbols = [
            *self._grounds(), *self._rails(), *self._links(), *self._cords(), *self._springs(), *self._inputs(),
            *self._loop_pivots(), *self._pivots(),
        ]  # fmt: skip
        linked = {symbol.owner for symbol in symbols if symbol.kind in ("bar", "link")}
        shapes = [
            shape
            for shape in self._shapes
            if not (shape.role == "dot" and shape.owner in linked) and not self._is_ground(shape)
        ]
        order: tuple[SymbolKind, ...] = (
            "ground", "bar", "link", "cord", "damper", "spring", "spiral", "support", "pivot", "input",
        )  # fmt: skip
        symbols.sort(key=lambda symbol: order.index(symbol.kind))
        bars = [
            self._anchors[number] for symbol in symbols if symbol.kind in ("bar", "link") for number in symbol.anchors
        ]
        shapes = [replace(shape, behind=self._is_behind(shape, bars)) for shape in shapes]
        shapes.sort(key=self._area, reverse=True)
        return replace(
            self._scene,
            shapes=tuple(shapes),
            anchors=tuple(self._anchors),
            symbols=tuple(symbols),
            unit=self._unit,
            missing=tuple(self._missing),
        )

    # -- Configurations --------------------------------------------------------------------------------------

    def _every(self) -> range:
        return range(len(self._names))

    def _poses(self, t: Floats, x: Floats, c: Floats) -> _Poses:
        scene, n = self._scene, len(x)
        out = scene.geometry.evaluate(t, x, c)
        points = np.broadcast_to(out["points"], (n, len(scene.points), 3))
        frames = np.broadcast_to(out["frames"], (n, len(scene.frames), 3, 3))
        finite = np.isfinite(points).all(axis=(1, 2)) & np.isfinite(frames).all(axis=(1, 2, 3))
        points, frames = points[finite], frames[finite]
        n = len(points)
        points = np.concatenate([points, np.zeros((n, 1, 3))], axis=1)
        frames = np.concatenate([frames, np.broadcast_to(np.eye(3), (n, 1, 3, 3))], axis=1)
        bodies = self._mechanism.bodies.values()
        centres = [-1, *(self._point(body.center) for body in bodies)]
        turns = [-1, *(self._frame(self._frame_of(body.name)) for body in bodies)]
        return _Poses(points, frames, np.moveaxis(points[:, centres], 1, 0), np.moveaxis(frames[:, turns], 1, 0))

    def _point(self, name: str) -> int:
        return -1 if name == ORIGIN else self._scene.points.index(name)

    def _frame(self, name: str) -> int:
        return -1 if name == NEWTONIAN else self._scene.frames.index(name)

    def _frame_of(self, name: str) -> str:
        """Return the frame of a body; for a particle the frame of its drawing."""
        body = self._mechanism.bodies.get(name)
        if body is None:
            return NEWTONIAN
        drawn = (form.frame for form in self._mechanism.view.get(name, ()) if form.frame is not None)
        return body.frame or next(drawn, NEWTONIAN)

    def _random_poses(self, t: Floats, x: Floats, c: Floats) -> tuple[_Poses, tuple[_Poses, _Poses]]:
        """Return poses at random configurations, and a pair of poses for each coordinate without and with a step."""
        generator, n_q = np.random.default_rng(1), len(self._coordinates)
        rows = generator.integers(len(x), size=CONFIGURATIONS)
        q = x[:, :n_q]
        reach = np.maximum(np.ptp(q, axis=0), _LEAST_RANGE)
        states, times = x[rows].copy(), t[rows] + generator.uniform(0.0, 1.0, CONFIGURATIONS)
        low, high = q.min(axis=0) - _BEYOND * reach, q.max(axis=0) + _BEYOND * reach
        states[:, :n_q] = generator.uniform(low, high, (CONFIGURATIONS, n_q))
        poses = self._poses(times, self._unit_quaternions(states), c[rows])
        before = np.repeat(states[:1], n_q, axis=0)
        after = before.copy()
        after[np.arange(n_q), np.arange(n_q)] += 0.13 * reach
        context, same = np.repeat(c[rows[:1]], n_q, axis=0), np.repeat(times[:1], n_q)
        moved = (
            self._poses(same, self._unit_quaternions(before), context),
            self._poses(same, self._unit_quaternions(after), context),
        )
        return poses, moved

    def _unit_quaternions(self, states: Floats) -> Floats:
        for frame in self._mechanism.frames.values():
            if isinstance(frame, EulerFrame):
                columns = [self._coordinates.index(name) for name in frame.euler_names]
                states[:, columns] /= np.linalg.norm(states[:, columns], axis=1, keepdims=True)
        return states

    def _still(self, positions: Floats) -> Booleans:
        """Return which of positions (n, k, 3) are the same at all states."""
        return np.asarray(np.ptp(positions, axis=0).max(axis=-1) < self._tolerance)

    # -- Pairs of bodies -------------------------------------------------------------------------------------

    def _find_pairs(self) -> Iterable[_Pair]:
        """Yield pivots and slides, of all pairs of bodies."""
        for a, b in itertools.combinations(self._every(), 2):
            apart, turn = self._random.relative(a, b)
            turns = float(np.ptp(turn, axis=0).max()) > _TOLERANCE
            if turns and not self._is_particle(b) and not self._is_particle(a):
                at = self._common_point(a, b)
                if at is not None:
                    yield _Pair(a, b, self._moving(a, b), at=at)
            elif not turns and float(np.ptp(apart, axis=0).max()) > self._tolerance:
                moving = self._moving(a, b)
                _, sizes, axes = np.linalg.svd(apart - apart.mean(axis=0))
                if len(moving) == 1 and sizes[1] < 1e-6 * sizes[0]:
                    yield _Pair(a, b, moving, along=axes[0] * self._growth(a, b, moving, axes[0]))

    def _is_particle(self, number: int) -> bool:
        return number > 0 and self._frame_of(self._names[number]) == NEWTONIAN

    def _common_point(self, a: int, b: int) -> Floats | None:
        """Return the point fixed in two bodies, in the frame of the first, m, if there is one."""
        poses = self._random
        matrix = np.concatenate([poses.turns[a], -poses.turns[b]], axis=2).reshape(-1, 6)
        apart = (poses.centres[b] - poses.centres[a]).reshape(-1)
        found = np.linalg.lstsq(matrix, apart, rcond=1e-9)[0]
        if np.abs(matrix @ found - apart).max() > self._tolerance:
            return None
        return np.asarray(found[:3])

    def _moving(self, a: int, b: int) -> frozenset[str]:
        """Return the coordinates of the motion of one body against another."""
        (apart, turn), (apart_after, turn_after) = (poses.relative(a, b) for poses in self._moved)
        moves = (np.abs(apart_after - apart).max(axis=1) > self._tolerance) | (
            np.abs(turn_after - turn).max(axis=(1, 2)) > _TOLERANCE
        )
        return frozenset(name for name, own in zip(self._coordinates, moves, strict=True) if own)

    def _growth(self, a: int, b: int, moving: Iterable[str], axis: Floats) -> float:
        """Return 1 if a coordinate grows along an axis of ``a``, else -1."""
        number = self._coordinates.index(next(iter(moving)))
        (before, _), (after, _) = (poses.relative(a, b) for poses in self._moved)
        return 1.0 if float((after - before)[number] @ axis) > 0.0 else -1.0

    # -- Outlines --------------------------------------------------------------------------------------------

    def _owned(self) -> list[SceneShape]:
        """Return the outlines with their owners, without contact shapes of bodies with a view."""
        at_rest = {self._names[b] for b in self._every()[1:] if self._is_at_rest(b)}
        owned = [
            replace(shape, owner=NEWTONIAN if shape.owner in at_rest else shape.owner or self._carrier(shape))
            for shape in self._scene.shapes
        ]
        owned = self._with_teeth(owned)
        viewed = {shape.owner for shape in owned if shape.role == "view" and len(shape.points) > 1}
        drawn = {shape.owner for shape in owned if shape.role == "contact"}
        contacts = self._mechanism.contacts.values()
        touched = {f.shape for contact in contacts if isinstance(contact, FeatureContact) for f in contact.features}

        def is_shown(shape: SceneShape) -> bool:
            if shape.role == "dot":
                return shape.owner not in drawn
            hidden = shape.role == "contact" and shape.owner in viewed and shape.body in touched
            return not hidden or (not shape.bounded and shape.owner == NEWTONIAN)

        return [shape for shape in owned if is_shown(shape)]

    def _with_teeth(self, owned: list[SceneShape]) -> list[SceneShape]:
        """Return outlines with the circles of gears toothed, all with teeth of one size.

        Gears are bodies of gear joints, and in space bodies with disks that roll on each other about fixed axes.
        """
        joints = list(self._mechanism.joints.values())
        turning = {joint.child for joint in joints if joint.kind == "revolute"}
        geared = {frame for joint in joints if joint.kind == "gear" for frame in (joint.parent, joint.child)}
        rolling = [{joint.parent, joint.child} for joint in joints if joint.kind == "rolling"]
        in_space = geared.union(*(pair for pair in rolling if pair <= turning))
        radii = {
            k: _radius(shape)
            for k, shape in enumerate(owned)
            if shape.owner in self._names[1:]
            and self._frame_of(shape.owner) in (in_space if shape.points.shape[1] > 2 else geared)
        }
        sizes = [radius for radius in radii.values() if radius > 0.0]
        return [
            replace(shape, points=_with_ring(shape, _toothed(radii[k], 2.0 * min(sizes) / _TEETH)))
            if radii.get(k, 0.0) > 0.0
            else shape
            for k, shape in enumerate(owned)
        ]

    def _is_at_rest(self, number: int) -> bool:
        """Return whether a body never moves."""
        apart, turn = self._random.relative(0, number)
        return bool(np.ptp(apart, axis=0).max() < self._tolerance and np.ptp(turn, axis=0).max() < _TOLERANCE)

    def _carrier(self, shape: SceneShape) -> str:
        """Return the body of a fixed outline, or nothing."""
        frame, point = self._frame(shape.frame), self._point(shape.origin)
        for number in self._every():
            turn = np.einsum("nji,njk->nik", self._random.turns[number], self._random.frames[:, frame])
            if self._fixed[number, point] and float(np.ptp(turn, axis=0).max()) < _TOLERANCE:
                return self._names[number]
        return ""

    def _area(self, shape: SceneShape) -> float:
        """Return the area of the box around a shape in its frame, m²: larger outlines are drawn first."""
        return float(np.prod(np.ptp(shape.points[:, :2], axis=0))) if shape.closed else 0.0

    def _is_behind(self, shape: SceneShape, bars: Sequence[Anchor]) -> bool:
        """Return whether an outline contains bars at all times, as a ring gear does the spider within."""
        if not shape.closed or not bars or shape.points.shape[1] != 2:
            return False
        frame, point = self._frame(shape.frame), self._point(shape.origin)
        low, high = shape.points.min(axis=0), shape.points.max(axis=0)
        for anchor in bars:
            turned = self._drawn.frames[:, self._frame(anchor.frame)] @ anchor.offset
            position = self._drawn.points[:, self._point(anchor.origin)] + turned - self._drawn.points[:, point]
            own = np.einsum("nji,nj->ni", self._drawn.frames[:, frame], position)[:, :2]
            if ((own < low) | (own > high)).any():
                return False
        return True

    def _outline(self, shape: SceneShape, poses: _Poses) -> Floats:
        """Return a shape's points in the Newtonian frame, m, shape (n, k, 3)."""
        points = np.hstack([shape.points, np.zeros((len(shape.points), 3 - shape.points.shape[1]))])
        turned = np.einsum("nij,kj->nki", poses.frames[:, self._frame(shape.frame)], points)
        return np.asarray(poses.points[:, self._point(shape.origin)][:, None] + turned)

    def _body_points(self, number: int) -> Floats:
        """Return the visible points of a body at the drawn states, m, shape (n, k, 3)."""
        name = self._names[number]
        parts = [self._outline(s, self._drawn) for s in self._shapes if s.owner == name and s.bounded]
        if number and name not in self._outlined:
            parts += [self._drawn.points[:, self._fixed[number]], self._drawn.centres[number][:, None]]
        return np.concatenate(parts, axis=1) if parts else np.zeros((len(self._drawn.points), 0, 3))

    def _find_unit(self) -> float:
        """Return a hundredth of the larger side of the moving bodies at an instant."""
        moving = [self._body_points(number) for number in self._every() if number]
        if not moving:
            return 0.01
        everything = np.concatenate([*moving, self._body_points(0)], axis=1)
        alone = np.concatenate(moving, axis=1)
        pivots = [self._at(pair) for pair in self._pairs if pair.at is not None]
        alone = np.concatenate([alone, *[path[:, None] for path in pivots]], axis=1)
        side = float(np.median(np.ptp(alone, axis=1).max(axis=1)))
        whole = float(np.ptp(everything.reshape(-1, 3), axis=0).max())
        share, least, most = _UNIT
        return max(min(max(share * side, least * whole), most * side if side > 0.0 else whole), 1e-9)

    def _at(self, pair: _Pair) -> Floats:
        """Return the path of a pivot, m, shape (n, 3)."""
        assert pair.at is not None
        turned = np.einsum("nij,j->ni", self._drawn.turns[pair.a], pair.at)
        return np.asarray(self._drawn.centres[pair.a] + turned)

    # -- Anchors ---------------------------------------------------------------------------------------------

    def _anchor(self, body: int, offset: Floats) -> int:
        """Return the number of the anchor at an offset (3,), m, from a body's centre, resolved in its frame."""
        name = self._names[body]
        origin = self._mechanism.bodies[name].center if body else ORIGIN
        return self._new_anchor(Anchor(self._frame_of(name), origin, np.asarray(offset, dtype=np.float64)))

    def _point_anchor(self, point: str) -> int:
        return self._new_anchor(Anchor(NEWTONIAN, point, np.zeros(3)))

    def _new_anchor(self, anchor: Anchor) -> int:
        key = (anchor.frame, anchor.origin, anchor.offset.tobytes())
        if key not in self._known:
            self._known[key] = len(self._anchors)
            self._anchors.append(anchor)
        return self._known[key]

    # -- Symbols ---------------------------------------------------------------------------------------------

    def _links(self) -> Iterable[Symbol]:
        """Yield bars and links of bodies without an outline, and bars to outlines apart from their body's pivots."""
        for number in self._every()[1:]:
            name = self._names[number]
            if name in self._outlined:
                yield from self._struts(number)
                continue
            offsets = self._own_points(number)
            if len(offsets) < 2:
                continue
            kind: SymbolKind = "bar" if self._are_collinear(offsets) else "link"
            if kind == "bar":
                distances = np.linalg.norm(offsets[:, None] - offsets, axis=-1)
                offsets = offsets[list(np.unravel_index(int(distances.argmax()), distances.shape))]
            yield Symbol(kind, name, name, tuple(self._anchor(number, offset) for offset in offsets))

    def _struts(self, number: int) -> Iterable[Symbol]:
        """Yield bars from the pivots of a body in a plane, or its centre, to outlines that nothing else joins."""
        name = self._names[number]
        shapes = [shape for shape in self._shapes if shape.owner == name and shape.role != "dot"]
        if self._is_particle(number) or any(
            s.role == "view" or not s.bounded or s.points.shape[1] != 2 for s in shapes
        ):
            return
        hubs = self._own_pivots(number) or [np.zeros(3)]
        for k in range(1, len(hubs)):
            yield self._strut(number, hubs[k - 1], hubs[k])
        outlines = [self._random.local(number, self._outline(shape, self._random)[:1])[0] for shape in shapes]
        left, reached = list(range(len(shapes))), [point[None] for point in hubs]
        while left:
            gaps = [min(_apart(outlines[k], other) for other in reached) for k in left]
            gap = min(gaps)
            nearest = left.pop(gaps.index(gap))
            outline = outlines[nearest]
            if gap > self._unit:
                hub = min(hubs, key=lambda point: float(np.linalg.norm(outline - point, axis=1).min()))
                corner = outline[np.linalg.norm(outline - hub, axis=1).argmin()]
                yield self._strut(number, hub, outline.mean(axis=0) if shapes[nearest].closed else corner)
            reached.append(outline)

    def _strut(self, number: int, start: Floats, end: Floats) -> Symbol:
        name = self._names[number]
        return Symbol("bar", name, name, (self._anchor(number, start), self._anchor(number, end)))

    def _own_pivots(self, number: int) -> list[Floats]:
        """Return the pivots of a body, in its frame from its centre, m, each once."""
        found = [self._in_body(number, pair) for pair in self._pairs if number in (pair.a, pair.b)]
        return self._distinct(item[0] for item in found if item is not None)

    def _own_points(self, number: int) -> Floats:
        """Return the points of a body, in its frame from its centre, m, each once, shape (k, 3)."""
        if self._is_particle(number):
            return np.zeros((1, 3))
        named = self._random.local(number, self._random.points[:1])[0][self._fixed[number]]
        return np.array(self._distinct([np.zeros(3), *named, *self._own_pivots(number)]))

    def _distinct(self, points: Iterable[Floats]) -> list[Floats]:
        kept: list[Floats] = []
        for point in points:
            if all(np.abs(point - other).max() > self._tolerance for other in kept):
                kept.append(point)
        return kept

    def _in_body(self, number: int, pair: _Pair) -> Floats | None:
        """Return a pivot in the frame of one of its bodies, shape (1, 3); None of a slide."""
        if pair.at is None:
            return None
        position = self._random.centres[pair.a][:1] + np.einsum("nij,j->ni", self._random.turns[pair.a][:1], pair.at)
        return self._random.local(number, position)

    def _are_collinear(self, offsets: Floats) -> bool:
        sizes = np.linalg.svd(offsets - offsets.mean(axis=0), compute_uv=False)
        return len(sizes) < 2 or bool(sizes[1] < 1e-6 * max(float(sizes[0]), 1e-12))

    def _pivots(self) -> Iterable[Symbol]:
        """Yield each pivot once, on the ground if one of its bodies is fixed."""
        shown: list[Floats] = []
        for pair in self._pairs:
            if pair.at is None:
                continue
            path = self._at(pair)
            if any(np.abs(path - other).max() < self._tolerance for other in shown):
                continue
            shown.append(path)
            kind: SymbolKind = "support" if pair.a == 0 else "pivot"
            yield Symbol(kind, self._names[pair.b], "", (self._anchor(pair.a, pair.at),))

    def _loop_pivots(self) -> Iterable[Symbol]:
        """Yield pivots of loop-closing joints, and of joints between bodies with absolute coordinates."""
        for joint in self._mechanism.joints.values():
            loop = len(joint.at) == 2 and joint.at[0] != joint.at[1]
            if not (loop or joint.is_freed) or not joint.at or joint.kind not in ("revolute", "planar", "ball"):
                continue
            if joint.at[0] not in (*self._scene.points, ORIGIN):
                continue
            grounded = any(self._fixed[0, self._point(point)] for point in joint.at if point in self._scene.points)
            yield Symbol("support" if grounded else "pivot", joint.name, "", (self._point_anchor(joint.at[0]),))

    def _rails(self) -> Iterable[Symbol]:
        """Yield the guides of prismatic joints without a spring: a hatched line along the travel, beside the body."""
        sprung = [self._pair_of(load) for load in self._mechanism.loads if isinstance(load, SpringLoad)]
        frames = {self._frame_of(name): number for number, name in enumerate(self._names)}
        for joint in self._mechanism.joints.values():
            ends = {frames.get(joint.parent, -1), frames.get(joint.child, -1)}
            pair = next((item for item in self._pairs if item.along is not None and {item.a, item.b} == ends), None)
            if joint.kind != "prismatic" or pair is None or pair.along is None or pair in sprung:
                continue
            body, across = self._drawn.local(pair.a, self._body_points(pair.b)), self._across(pair)
            s, w = body @ pair.along, body @ across
            margin = 3.0 * self._unit
            low = np.outer([s.min() - margin, s.max() + margin], pair.along)
            course = low + across * float(w.min() - 0.6 * self._unit)
            kind: SymbolKind = "ground" if pair.a == 0 else "bar"
            ends_of = tuple(self._anchor(pair.a, point) for point in course)
            yield Symbol(kind, joint.name, self._names[pair.a], ends_of, -1.0)

    def _inputs(self) -> Iterable[Symbol]:
        """Yield the places of inputs: points of forces, and both ends of bodies sliding with a coordinate."""
        inputs = set(self._mechanism.inputs)
        for load in self._mechanism.loads:
            if isinstance(load, ForceLoad | LawLoad) and free_names(expressions.parse(load.value)) & inputs:
                if isinstance(load, ForceLoad):
                    yield Symbol("input", load.name, "", (self._point_anchor(load.at),))
                    continue
                pair = self._pair_of(load)
                if pair is None or pair.along is None:
                    continue
                body, across = self._drawn.local(pair.a, self._body_points(pair.b))[0], self._across(pair)
                s, w = body @ pair.along, body @ across
                middle = 0.5 * float(w.min() + w.max()) * across
                ends = (self._drawn_in_body(pair, pair.along * float(end) + middle) for end in (s.min(), s.max()))
                yield Symbol("input", load.name, "", tuple(self._anchor(pair.b, end) for end in ends))

    def _cords(self) -> Iterable[Symbol]:
        for cord in self._mechanism.view.get(CORDS, ()):
            if isinstance(cord, CordOutline):
                for start, end in itertools.pairwise(cord.points):
                    yield Symbol("cord", cord.contact, "", (self._point_anchor(start), self._point_anchor(end)))

    # -- Springs and dampers ---------------------------------------------------------------------------------

    def _springs(self) -> Iterable[Symbol]:
        beside: dict[int, int] = {}
        for load in self._mechanism.loads:
            if not isinstance(load, SpringLoad | DamperLoad):
                continue
            spring = isinstance(load, SpringLoad)
            damped = not spring or (isinstance(load, SpringLoad) and load.damping is not None)
            wanted: tuple[tuple[SymbolKind, bool], ...] = (("spring", spring), ("damper", damped))
            kinds = [kind for kind, there in wanted if there]
            if load.between is not None:
                yield from self._between_points(load, kinds)
                continue
            pair = self._pair_of(load)
            if pair is None:
                if spring:
                    self._missing.append(f"spring {load.name}")
            elif pair.along is not None:
                number = self._pairs.index(pair)
                yield from self._on_slide(load, pair, kinds, beside.get(number, 0))
                beside[number] = beside.get(number, 0) + 1
            elif spring:
                yield self._about_pivot(load, pair)

    def _between_points(self, load: LineLoad, kinds: list[SymbolKind]) -> Iterable[Symbol]:
        ends = tuple(self._point_anchor(point) for point in load.between or ())
        for kind, side in zip(kinds, (-1.3, 1.3) if len(kinds) > 1 else (0.0,), strict=False):
            yield Symbol(kind, load.name, "", ends, side)
        for point, end in zip(load.between or (), ends, strict=True):
            if self._fixed[0, self._point(point)]:
                yield Symbol("support", load.name, "", (end,))

    def _pair_of(self, load: LineLoad) -> _Pair | None:
        """Return the joint with the coordinates of a load."""
        if load.coordinate is None:
            return None
        names = free_names(expressions.parse(load.coordinate)) & set(self._coordinates)
        return next((pair for pair in self._pairs if pair.coordinates == names), None)

    def _about_pivot(self, load: LineLoad, pair: _Pair) -> Symbol:
        """Return a spiral at a pivot, wound as the bodies are turned."""
        assert pair.at is not None
        position = self._in_body(pair.b, pair)
        assert position is not None
        centre, arm = self._anchor(pair.a, pair.at), np.array([0.0, self._unit, 0.0])
        outer = self._anchor(pair.b, position[0] + arm)
        return Symbol("spiral", load.name, "", (centre, self._anchor(pair.a, pair.at + arm), outer))

    def _on_slide(self, load: LineLoad, pair: _Pair, kinds: list[SymbolKind], before: int) -> Iterable[Symbol]:
        """Yield a spring along a slide, from an anchor beyond its travel, and the carrier of the anchor."""
        assert pair.along is not None
        along, across = pair.along, self._across(pair)
        body = self._drawn.local(pair.a, self._body_points(pair.b))
        s, w = body @ along, body @ across
        low, high = s.min(), s.max()
        side = self._side(load, pair, body)
        end = w[0][
            side * s[0] >= (side * s[0]).max() - _END * float(np.ptp(s[0]))
        ]  # of the outline, where it is attached
        middle = 0.5 * float(end.min() + end.max())
        travel = float(np.ptp(s.min(axis=1)))
        share, least, unknown = _REACH
        reach = max(share * travel, (unknown if len(s) == 1 else least) * self._unit)
        lateral = middle + before * 6.0 * self._unit
        far = along * (high + reach if side > 0.0 else low - reach) + across * lateral
        # end of the body's outline, at the first state, in the frame of the body
        here = along * float(s[0].max() if side > 0.0 else s[0].min()) + across * lateral
        near = self._drawn_in_body(pair, here)
        ends = (self._anchor(pair.a, far), self._anchor(pair.b, near))
        for kind, shift in zip(kinds, (-1.9, 1.9) if len(kinds) > 1 else (0.0,), strict=False):
            yield Symbol(kind, load.name, "", ends, shift)
        wide = (3.6 if len(kinds) > 1 else 2.2) * self._unit
        plate = [far - wide * across, far + wide * across]
        plate = plate if side > 0.0 else plate[::-1]
        if pair.a == 0:
            yield Symbol("ground", load.name, NEWTONIAN, tuple(self._anchor(0, end) for end in plate), -1.0)
        else:
            yield from self._arm(load, pair, plate, far)

    def _drawn_in_body(self, pair: _Pair, offset: Floats) -> Floats:
        """Return an offset in the frame of ``a``, at the first state, as one in that of ``b``."""
        position = self._drawn.centres[pair.a][0] + self._drawn.turns[pair.a][0] @ offset
        return np.asarray(self._drawn.turns[pair.b][0].T @ (position - self._drawn.centres[pair.b][0]))

    def _across(self, pair: _Pair) -> Floats:
        """Return a unit vector across a slide, in the plane of x and y if the slide is in it."""
        assert pair.along is not None
        across = np.cross([0.0, 0.0, 1.0], pair.along)
        if float(np.linalg.norm(across)) < 1e-6:
            across = np.array([1.0, 0.0, 0.0])
        return np.asarray(across / np.linalg.norm(across))

    def _side(self, load: LineLoad, pair: _Pair, body: Floats) -> float:
        """Return the side of the spring at a sliding body: the side it pushes from, unless occupied by other bodies."""
        assert pair.along is not None
        push = self._push(load, pair)
        crowds = {sign: self._crowd(pair, body, sign) for sign in (-push, push)}
        return push if crowds[-push] > 0 and not crowds[push] else -push

    def _push(self, load: LineLoad, pair: _Pair) -> float:
        """Return 1 if a spring pushes along a slide, on the average of the states, -1 if it pushes against it."""
        free = load.free if isinstance(load, SpringLoad) else None
        length = 0.0 if free is None else float(np.sum(evaluate_expression(free, self._values)))
        return 1.0 if length >= self._means.get(next(iter(pair.coordinates)), 0.0) else -1.0

    def _crowd(self, pair: _Pair, body: Floats, sign: float) -> int:
        """Return how much of other bodies is on one side of a sliding body, in its course, in any of its positions."""
        assert pair.along is not None
        along, across = pair.along, self._across(pair)
        edge = (sign * (body @ along)).max(axis=1, keepdims=True)
        low, high = float((body @ across).min()) - 3.0 * self._unit, float((body @ across).max()) + 3.0 * self._unit
        count = 0
        for number in self._every():
            if number in (pair.a, pair.b):
                continue
            points = self._drawn.local(pair.a, self._body_points(number))
            s, w = sign * (points @ along), points @ across
            count += int(((s > edge) & (w > low) & (w < high)).sum())
        return count

    def _arm(self, load: LineLoad, pair: _Pair, plate: Sequence[Floats], far: Floats) -> Iterable[Symbol]:
        """Yield the plate of a spring on a moving body, with an arm to the visible part of the body."""
        name = self._names[pair.a]
        ends = tuple(self._anchor(pair.a, end) for end in plate)
        yield Symbol("bar", load.name, name, ends)
        own = self._drawn.local(pair.a, self._body_points(pair.a))[0]
        if len(own):
            near = own[int(np.linalg.norm(own - far, axis=1).argmin())]
            yield Symbol("bar", load.name, name, (self._anchor(pair.a, far), self._anchor(pair.a, near)))

    # -- Grounds ---------------------------------------------------------------------------------------------

    def _grounds(self) -> Iterable[Symbol]:
        """Yield hatched lines: unbounded ones as far as the travel of their touching bodies."""
        for shape in self._shapes:
            if not self._is_ground(shape):
                continue
            course = self._outline(shape, self._random)[0]
            partners = self._partners(shape)
            if shape.endless:
                along = (course[1] - course[0]) / np.linalg.norm(course[1] - course[0])
                s = (partners - course[0]) @ along
                margin = _GROUND_BEYOND * self._unit
                course = course[0] + np.outer([s.min() - margin, s.max() + margin], along)
            yield Symbol(
                "ground", shape.body, NEWTONIAN, tuple(self._anchor(0, point) for point in course),
                self._solid_side(course, partners),
            )  # fmt: skip

    def _is_ground(self, shape: SceneShape) -> bool:
        """Return whether an outline is a line fixed in the Newtonian frame."""
        return shape.owner == NEWTONIAN and not (shape.plane or shape.closed) and len(shape.points) > 1

    def _partners(self, shape: SceneShape) -> Floats:
        """Return the travel of possible partners of a shape, m, shape (k, 3); without any, of all bodies."""
        names = set()
        for contact in self._mechanism.contacts.values():
            if isinstance(contact, FeatureContact):
                one, other = (feature.shape for feature in contact.features)
                names |= {other} if one == shape.body else {one} if other == shape.body else set()
        parts = [self._outline(s, self._drawn) for s in self._scene.shapes if s.body in names and s.bounded]
        parts += [self._drawn.points[:, [self._point(name)]] for name in names if name in self._scene.points]
        if not parts:
            parts = [self._body_points(number) for number in self._every()[1:]]
        points = np.concatenate(parts, axis=1).reshape(-1, 3) if parts else np.zeros((0, 3))
        return points if len(points) else np.zeros((1, 3))

    def _solid_side(self, course: Floats, partners: Floats) -> float:
        """Return the side of a line on which no partner is: 1 to the left of its course, -1 to the right."""
        starts, along = course[:-1], np.diff(course, axis=0)
        middles = starts + 0.5 * along
        nearest = np.linalg.norm(partners[:, None] - middles, axis=-1).argmin(axis=1)
        shift = partners - starts[nearest]
        left = along[nearest, 0] * shift[:, 1] - along[nearest, 1] * shift[:, 0]
        return -1.0 if float(left.mean()) > 0.0 else 1.0


def _radius(shape: SceneShape) -> float:
    """Return the radius of a closed outline that is a circle, m; 0 of others."""
    if not shape.closed or len(shape.points) < 16:
        return 0.0
    ring = _ring(shape)
    radii = np.linalg.norm(ring - ring.mean(axis=0), axis=1)
    return float(radii.mean()) if float(np.ptp(radii)) < 1e-6 * float(radii.mean()) else 0.0


def _ring(shape: SceneShape) -> Floats:
    """Return the corners of a closed outline, each once."""
    points = shape.points
    return points[:-1] if np.allclose(points[0], points[-1]) else points


def _with_ring(shape: SceneShape, ring: Floats) -> Floats:
    """Return a ring about the origin (k, 2), m, about the middle of a circle and in its plane, m, shape (k, 2 or 3)."""
    middle = _ring(shape).mean(axis=0)
    plane = np.linalg.svd(_ring(shape) - middle)[2][:2] if len(middle) > 2 else np.eye(2)
    return np.asarray(middle + ring @ plane)


def _toothed(radius: float, module: float) -> Floats:
    """Return the outline of a gear about its middle, m, shape (k, 2), from its pitch radius and the size of teeth."""
    count = max(round(2.0 * radius / module), 6)
    share, high = np.array(_TOOTH).T
    angles = 2.0 * np.pi / count * (np.arange(count)[:, None] + share).ravel()
    radii = radius + module * np.tile(high, count)
    return np.asarray(radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1))


def _apart(one: Floats, other: Floats) -> float:
    """Return the distance of two lines through corners, m; zero if a corner lies within the box around the other."""
    gap = np.inf
    for points, line in ((one, other), (other, one)):
        if ((points >= line.min(axis=0)) & (points <= line.max(axis=0)))[:, :2].all(axis=1).any():
            return 0.0
        sides = np.diff(line, axis=0)
        from_start = points[:, None] - line[:-1]
        lengths = np.maximum(np.einsum("ki,ki->k", sides, sides), 1e-300)
        along = np.clip(np.einsum("nki,ki->nk", from_start, sides) / lengths, 0.0, 1.0)
        to_sides = np.linalg.norm(from_start - along[..., None] * sides, axis=-1)
        gap = min(gap, float(to_sides.min(initial=np.linalg.norm(points - line[0], axis=1).min())))
    return gap
