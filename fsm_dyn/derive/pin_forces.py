"""Forces and torques in all connections of a mechanism, from virtual speeds of its segments.

Every segment gets virtual speeds that move it alone: three of translation and, where it turns, three of rotation.
Kane's equations of these speeds give the load on the connections of the segment (Kane and Levinson, *Dynamics*,
1985, 4.9, "bringing noncontributing forces into evidence"); the speeds and accelerations of the mechanism itself and
the multipliers of its rows are those of its motion.  From the leaves to the root these resultants add up to the wrench
of each connection (docs/theory.md, "Forces in connections").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final, TypeAlias

import msgspec

from fsm_dyn.core.errors import ModelError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.constraint_rows import follow
from fsm_dyn.derive.contact_geometry import ContactGeometry, ContactKinematics, feature_contacts
from fsm_dyn.derive.derivation import flow_of
from fsm_dyn.derive.features import Primitive, Round, Shapes
from fsm_dyn.derive.kane import Kane, Loads
from fsm_dyn.derive.kinematics import NEWTONIAN, ORIGIN, Frames, Points, Space, Triple, Vector, apply, cross, inner
from fsm_dyn.derive.segments import RigidSegment, Segmentation, TreeConnection
from fsm_dyn.derive.speeds import Speeds, natural_motion, solve_speeds
from fsm_dyn.derive.symbols import MechanismSymbols, build_system, inertias
from fsm_dyn.derive.velocities import Motion, Rates, column
from fsm_dyn.language.contacts import FeatureContact
from fsm_dyn.language.dimensions import words_of
from fsm_dyn.language.elements import Frame, GravityLoad, Load, PositionConstraint, RotatedFrame
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.interfaces import PinEntry
from fsm_dyn.language.memory import layout_of
from fsm_dyn.language.model import Mechanism, Point
from fsm_dyn.language.shapes import SegmentShape, Shape
from fsm_dyn.programs import functions
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.pin_programs import PinInfo, PinPrograms
from fsm_dyn.programs.program import Program
from fsm_dyn.programs.traversal import substitute, support, tangent

Wrench: TypeAlias = tuple[Node, ...]  # force, then moment, components in N

_AXES: Final = ("x", "y", "z", "turn x", "turn y", "turn z")


# -- The displaced geometry ----------------------------------------------------------------------------------
#
# Points and frames of a segment are displaced by small virtual amounts, d along the axes of N and a about them, which
# are symbols and in the end zero. Points and motion of the mechanism itself stay unchanged: the displaced geometry is
# a second one over the same graph, by names of the same meaning.


class DisplacedGeometry:
    """Points and frames of displaced segments.

    ``system``: the mechanism as it is; ``speeds``: its rates of coordinates. ``displaced``, MechanismSymbols: the same
    mechanism with the points and frames displaced. ``motion``, Motion: linear in the virtual speeds, which are symbols;
    the rest is the motion of the mechanism. ``amounts``, mapping of str to tuple of (int, Node): by segment the virtual
    displacements, each with its axis.
    """

    def __init__(self, system: MechanismSymbols, parts: Segmentation, speeds: Speeds) -> None:
        self.system, self.parts = system, parts
        graph = system.graph
        self.amounts: dict[str, tuple[tuple[int, Node], ...]] = {}
        for number, segment in enumerate(parts.segments.values()):
            used = [k for k in range(6) if k < 3 or segment.frame is not None]
            self.amounts[segment.name] = tuple((k, graph.symbol(f"displaced({number}).{_AXES[k]}")) for k in used)
        self.symbols = tuple(symbol for amounts in self.amounts.values() for _, symbol in amounts)
        self.still = dict.fromkeys(self.symbols, graph.zero)
        self.displaced = self._displaced()
        self._speeds = speeds
        self.motion = Motion(self.displaced.space, self.displaced.points, self._rates(speeds), self._anchors())

    @cached_property
    def actual(self) -> Motion:
        """The motion with the virtual speeds at zero."""
        return self.motion.at([self.system.graph.zero] * self.motion.n)

    def effects(self, node: Node) -> dict[Node, Node]:
        """Return how much each virtual displacement adds to a function of the configuration."""
        met = support([node])
        return {s: self._at_rest(node, s) for s in self.symbols if s in met}

    def speed_effects(self, node: Node) -> dict[Node, Node]:
        """Return how much each virtual speed adds to an expression linear in the speeds, by displacements."""
        met = support([node])
        pairs = zip(self.symbols, self.motion.speeds, strict=True)
        return {s: self._at_rest(node, speed) for s, speed in pairs if speed in met}

    def at_rest(self, nodes: Iterable[Node]) -> list[Node]:
        """Return nodes without displacements."""
        return substitute(list(nodes), {**self.still, **dict.fromkeys(self.motion.speeds, self.system.graph.zero)})

    def _at_rest(self, node: Node, symbol: Node) -> Node:
        return self.at_rest(tangent([node], {symbol: symbol.graph.one}))[0]

    # -- construction --------------------------------------------------------------------------------------

    def _displaced(self) -> MechanismSymbols:
        system = self.system
        space = Space(system.graph, self._frames(), system.reducer)
        offsets = self._offsets(space)
        places = {name: Point(name=name, origin=origin, at=Text("")) for name, (origin, _) in offsets.items()}
        points = Points(space, places, lambda point: offsets[point.name][1])
        for name in places:
            points.chain(name)
        mechanism = replace(
            system.mechanism,
            bodies={n: replace(b, center=self._of_body(b.name, b.center)) for n, b in system.mechanism.bodies.items()},
            shapes={name: self._shape(shape) for name, shape in system.mechanism.shapes.items()},
        )
        return replace(system, mechanism=mechanism, space=space, points=points)

    def _frames(self) -> Frames:
        """Return the frames; one whose parent has another owner is reached from N by copies of those above it."""
        frames: dict[str, Frame] = {}
        turns: dict[str, Node] = {}
        for name, amounts in self.amounts.items():
            rotations = []
            for k, symbol in amounts:
                if k >= 3:
                    turns[symbol.name] = symbol
                    rotations.append(("xyz"[k - 3], Text(symbol.name)))
            if rotations:
                frames[_turned(name)] = _VirtualTurn(name=_turned(name), parent=NEWTONIAN, rotations=tuple(rotations))
        for name, frame in self.system.mechanism.frames.items():
            owner = self.parts.frame_owner[name]
            parent = self._above(frame.parent, owner, frames)
            frames[name] = replace(frame, parent=parent)
        scalar = self.system.algebra(None, {}).scalar
        return Frames(
            self.system.graph,
            self.system.reducer,
            frames,
            lambda text: turns[text.text] if text.text in turns else scalar(text),
        )

    def _above(self, parent: str, owner: str | None, frames: dict[str, Frame]) -> str:
        """Return the frame that a frame of some owner turns against, with the displacements of that owner alone."""
        if parent != NEWTONIAN and self.parts.frame_owner[parent] == owner:
            return parent
        if parent == NEWTONIAN:
            return NEWTONIAN if owner is None or owner == NEWTONIAN else _turned(owner)
        name = f"{parent} of {owner}"
        if name not in frames:
            frame = self.system.mechanism.frames[parent]
            frames[name] = replace(frame, name=name, parent=self._above(frame.parent, owner, frames))
        return name

    def _offsets(self, space: Space) -> dict[str, tuple[str, Vector]]:
        """Return from which point each is given, and the vector there."""
        system, graph = self.system, self.system.graph
        found: dict[str, tuple[str, Vector]] = {}
        for name, at in self.parts.places.items():
            x, y, z = system.space.resolve(system.points.position(at), NEWTONIAN)
            moved = {k: symbol for k, symbol in self.amounts[name] if k < 3}
            dx, dy, dz = (moved.get(k, graph.zero) for k in range(3))
            found[_root(name)] = (ORIGIN, space.vector(NEWTONIAN, (x + dx, y + dy, z + dz)))
        for point in system.points.names[1:]:
            found[point] = self._offset(space, self.parts.owner[point], point)
        for segment in self.parts.segments.values():
            for point in system.points.names:
                if self.parts.owner[point] != segment.name and self.parts.owns(segment.name, point):
                    found[_alias(segment.name, point)] = self._offset(space, segment.name, point)
        return found

    def _offset(self, space: Space, owner: str | None, point: str) -> tuple[str, Vector]:
        system = self.system
        if owner is None or owner == NEWTONIAN:
            return ORIGIN, space.vector(NEWTONIAN, system.space.resolve(system.points.position(point), NEWTONIAN))
        segment, at = self.parts.segments[owner], self.parts.places[owner]
        frame = segment.frame or NEWTONIAN
        x, y, z = system.space.resolve(system.points.position(point, at), frame)
        reduce = system.reducer.reduce
        return _root(owner), space.vector(frame, (reduce(x), reduce(y), reduce(z)))

    def _of_body(self, body: str, point: str) -> str:
        return self._of(next(s.name for s in self.parts.segments.values() if body in s.bodies), point)

    def _shape(self, shape: Shape) -> Shape:
        """Return a shape at the points of the segment with its frame or its origin."""
        owner = self.parts.frame_owner[shape.frame]
        owner = self.parts.owner[shape.origin] if owner in (None, NEWTONIAN) else owner
        moved = replace(shape, origin=self._of(owner, shape.origin))
        if moved.repeat is not None and moved.repeat.about is not None:
            moved = replace(moved, repeat=replace(moved.repeat, about=self._of(owner, moved.repeat.about)))
        if isinstance(moved, SegmentShape) and moved.ends is not None:
            first, last = (self._of(owner, point) for point in moved.ends)
            moved = replace(moved, ends=(first, last))
        return moved

    def joined(self, name: str) -> dict[str, str]:
        """Return the points that a joint joins, as points of its segments."""
        joint = self.system.mechanism.joints.get(name)
        if joint is None or len(set(joint.at)) != 2:
            return {}
        ends = zip(joint.at, (joint.parent, joint.child), strict=True)
        return {point: self._of(self.parts.frame_owner[frame], point) for point, frame in ends}

    def _of(self, owner: str | None, point: str) -> str:
        """Return the point of a segment at the place of a point."""
        if owner is None or owner == NEWTONIAN or self.parts.owner[point] == owner:
            return point
        return _alias(owner, point) if self.parts.owns(owner, point) else point

    def _anchors(self) -> dict[str, str]:
        """Return for each frame a point fixed in it, if there is one."""
        found = {}
        for name, owner in self.parts.frame_owner.items():
            anchor = self.system.points.anchor(name) if owner is None else None
            if owner in self.parts.segments:
                found[name] = _root(str(owner))
            elif anchor is not None:
                found[name] = anchor
        return found

    def _rates(self, speeds: Speeds) -> Rates:
        """Return the rates: those of coordinates are given, those of displacements are the virtual speeds."""
        graph, n = self.system.graph, len(self.symbols)
        nothing = (graph.zero,) * n
        virtual = tuple(graph.symbol(f"rate({symbol.name})") for symbol in self.symbols)
        columns = dict.fromkeys(self.system.coordinates, nothing)
        for k, symbol in enumerate(self.symbols):
            columns[symbol] = tuple(graph.one if i == k else graph.zero for i in range(n))
        rest = dict(zip(self.system.coordinates, speeds.q_dot, strict=True))
        rest |= dict.fromkeys(self.symbols, graph.zero)
        rest |= {key: node for key, node in speeds.rates.rest.items() if key not in columns}
        spins = {}
        for first, (rows, drift) in speeds.rates.spins.items():
            value = [
                sum((c * u for c, u in zip(row, speeds.declared, strict=False)), r)
                for row, r in zip(rows, drift, strict=True)
            ]
            spins[first] = ((nothing,) * 3, tuple(value))
        return Rates(virtual, columns, rest, spins)


class _VirtualTurn(RotatedFrame):
    """The small turns of a segment about the axes of N."""


def _turned(segment: str) -> str:
    return f"turned {segment}"


def _root(segment: str) -> str:
    return f"place of {segment}"


def _alias(segment: str, point: str) -> str:
    return f"{point} of {segment}"


# -- Resultants on segments ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowEffect:
    """Effect of a unit force of a row on the segments."""

    name: str
    role: str
    segments: Mapping[str, Wrench]  # by segment about its place; none for a row in coordinates, which names no place


class _DisplacedContacts(ContactGeometry):
    """Contacts of displaced shapes, which leave the plane by virtual amounts."""

    def _check_plane(self, contact: FeatureContact, first: Primitive, second: Primitive) -> None:
        """Take the shapes as they are: undisplaced they were checked."""


class PinForces:
    """Wrenches of all connections as nodes, with the accelerations and multipliers as symbols.

    ``rows``: name and role of all constraint rows, in the order of the multipliers; ``carried``: parents of segments,
    where they are not those found.
    """

    def __init__(
        self, mechanism: Mechanism, rows: Sequence[tuple[str, str]], carried: Mapping[str, str] | None = None
    ) -> None:
        self.system = build_system(mechanism)
        self.mechanism = self.system.mechanism
        self.parts = Segmentation(self.system, carried)
        self.speeds = solve_speeds(self.system)
        self.geometry = DisplacedGeometry(self.system, self.parts, self.speeds)
        graph = self.system.graph
        layout = layout_of(mechanism)
        self.accelerations = tuple(graph.symbol(f"{name}.rate") for name in layout.u)
        self.multipliers = tuple(graph.symbol(f"lambda[{k}]") for k in range(len(rows)))
        self.layout = replace(
            layout, u=(*layout.u, *(a.name for a in self.accelerations), *(m.name for m in self.multipliers))
        )
        moving = {name: graph.symbol(name) for name in (*layout.u, *layout.memory)}
        self._moving = moving
        self._algebra = self.geometry.displaced.algebra(self.geometry.actual, moving)
        self._free = self.geometry.displaced.algebra(self.geometry.motion, moving)
        self._flow = flow_of(self.system, self.speeds)
        self._shapes = Shapes(self.geometry.displaced, self._free)
        kinematics = _DisplacedContacts(self.geometry.displaced, self._shapes, self.geometry.motion).all(
            feature_contacts(self.mechanism)
        )
        self.rows = tuple(self._row(name, role, kinematics) for name, role in rows)

    # -- rows ----------------------------------------------------------------------------------------------

    def _row(self, name: str, role: str, kinematics: Mapping[str, ContactKinematics]) -> RowEffect:
        constraint = self.mechanism.constraints.get(name)
        if constraint is not None:
            joined = self.geometry.joined(constraint.joint)
            algebra = self.geometry.displaced.algebra(self.geometry.motion, self._moving, joined)
            node = algebra.scalar(constraint.expression)
            is_position = isinstance(constraint, PositionConstraint)
            return RowEffect(name, role, self._effect(node, is_position))
        contact = self.mechanism.contacts[name]
        if isinstance(contact, FeatureContact):
            meeting = kinematics[name]
            if role == "normal":
                return RowEffect(name, role, self._gap_effect(meeting))
            slip = meeting.slip if role == "tangent" else meeting.across
            return RowEffect(name, role, {} if slip is None else self._effect(slip, False))
        if role in ("normal", "lock") and contact.gap is not None:
            return RowEffect(name, role, self._effect(self._free.scalar(contact.gap), True))
        text = getattr(contact, "across", None) if role == "tangent2" else contact.slip
        return RowEffect(name, role, {} if text is None else self._effect(self._free.scalar(text), False))

    def _gap_effect(self, meeting: ContactKinematics) -> dict[str, Wrench]:
        effects = self.geometry.effects(meeting.gap)
        if meeting.following is not None and meeting.gap_slope is not None:
            along = follow(self.geometry.motion, meeting.following, self.speeds).columns
            for symbol, column in zip(self.geometry.symbols, along, strict=True):
                (share,) = self.geometry.at_rest([meeting.gap_slope * column])
                if not share.is_zero:
                    effects[symbol] = effects.get(symbol, share.graph.zero) + share
        return self._wrenches(effects)

    def _effect(self, node: Node, is_position: bool) -> dict[str, Wrench]:
        found = self.geometry.effects(node) if is_position else self.geometry.speed_effects(node)
        return self._wrenches(found)

    def _wrenches(self, effects: Mapping[Node, Node]) -> dict[str, Wrench]:
        reduce, zero = self.system.reducer.reduce, self.system.graph.zero
        found: dict[str, Wrench] = {}
        for name, amounts in self.geometry.amounts.items():
            parts = {k: reduce(effects[symbol]) for k, symbol in amounts if symbol in effects}
            if any(not node.is_zero for node in parts.values()):
                found[name] = tuple(parts.get(k, zero) for k in range(6))
        return found

    # -- loads and inertia ---------------------------------------------------------------------------------

    def load_effects(self, loads: Sequence[Load]) -> tuple[dict[str, Wrench], Vector]:
        """Return the wrenches of loads on the segments, about their places, and the gravity common to all bodies."""
        kane = Kane(self.geometry.displaced, self.geometry.actual, self._flow)
        sums = Loads(kane, self._algebra).gather(loads)
        forces = dict(zip(self.geometry.symbols, self.geometry.at_rest(sums.f), strict=True))
        return self._wrenches({s: node for s, node in forces.items() if not node.is_zero}), sums.gravity

    def inertia(self, gravity: Triple) -> dict[str, Wrench]:
        """Return mass times acceleration less gravity and the rate of angular momentum, by segment about its place."""
        system, graph = self.system, self.system.graph
        flow = dict(self._flow)
        u = [graph.symbol(name) for name in layout_of(self.mechanism).u]
        full = flow | dict(zip(u, self.accelerations, strict=True))
        found = {}
        bodies = {body.name: body for body in inertias(system)}
        for segment in self.parts.segments.values():
            total: list[Node] = [graph.zero] * 6
            at = self.position(self.parts.places[segment.name])
            for name in segment.bodies:
                body = bodies[name]
                center = self.position(body.center)
                a = tangent(tangent(center, flow), full)
                x, y, z = (body.mass * (a[k] - gravity[k]) for k in range(3))
                arm = [center[k] - at[k] for k in range(3)]
                moment = cross((arm[0], arm[1], arm[2]), (x, y, z))
                turning = self._turning(body.frame, body.tensor, flow, full)
                for k, node in enumerate((x, y, z, *(m + t for m, t in zip(moment, turning, strict=True)))):
                    total[k] = total[k] + node
            found[segment.name] = tuple(total)
        return found

    def _turning(
        self,
        frame: str | None,
        tensor: tuple[Triple, Triple, Triple] | None,
        flow: Mapping[Node, Node],
        full: Mapping[Node, Node],
    ) -> Triple:
        """Return the rate of the angular momentum of a body about its centre, in N."""
        zero = self.system.graph.zero
        if frame is None or tensor is None:
            return (zero, zero, zero)
        R = self.system.frames.rotation(NEWTONIAN, frame)
        x, y, z = tangent(apply(R, apply(tensor, self._spin(frame, flow))), full)
        return (x, y, z)

    def _spin(self, frame: str, flow: Mapping[Node, Node]) -> Triple:
        """Return the angular velocity of a frame, components in it."""
        R = self.system.frames.rotation(NEWTONIAN, frame)
        rates = tangent([node for row in R for node in row], flow)
        R_dot = (tuple(rates[0:3]), tuple(rates[3:6]), tuple(rates[6:9]))

        def entry(i: int, j: int) -> Node:
            return R[0][i] * R_dot[0][j] + R[1][i] * R_dot[1][j] + R[2][i] * R_dot[2][j]

        reduce = self.system.reducer.reduce
        return (reduce(entry(2, 1)), reduce(entry(0, 2)), reduce(entry(1, 0)))

    def twist(self, segment: str, place: Triple) -> Wrench:
        """Return the velocity of the point of a segment at a place, and its angular velocity, components in N."""
        zero = self.system.graph.zero
        if segment == NEWTONIAN:
            return (zero,) * 6
        known = self.parts.segments[segment]
        center = self.position(known.center)
        velocity = tangent(center, self._flow)
        if known.frame is None:
            return (*velocity, zero, zero, zero)
        turn = self.system.frames.rotation(NEWTONIAN, known.frame)
        spin = apply(turn, self._spin(known.frame, self._flow))
        added = cross(spin, (place[0] - center[0], place[1] - center[1], place[2] - center[2]))
        return (*(a + b for a, b in zip(velocity, added, strict=True)), *spin)

    def round_place(self, row: int) -> Triple | None:
        """Return the place of a normal force on a circle, an arc or a corner; None without such a feature."""
        effect = self.rows[row]
        contact = self.mechanism.contacts.get(effect.name)
        if effect.role != "normal" or not isinstance(contact, FeatureContact):
            return None
        displaced, reduce = self.geometry.displaced, self.system.reducer.reduce
        for feature in contact.features:
            found = self._shapes.feature(feature)
            if not isinstance(found, Round):
                continue
            shape = self.mechanism.shapes.get(feature.shape)
            frame, origin = (NEWTONIAN, feature.shape) if shape is None else (shape.frame, shape.origin)
            owner = self.parts.frame_owner.get(frame)
            owner = self.parts.owner.get(origin) if owner in (None, NEWTONIAN) else owner
            own, sign = effect.segments.get(str(owner)), 1.0
            if own is None:
                own, sign = next(iter(effect.segments.values())), -1.0
            center = displaced.space.resolve(displaced.points.position(found.origin), NEWTONIAN)
            offset = displaced.space.resolve(found.offset, NEWTONIAN)
            radius = found.radius * (sign if found.hollow else -sign)
            there = self.geometry.at_rest([a + b for a, b in zip(center, offset, strict=True)])
            x, y, z = (reduce(node) for node in there)
            return (x + radius * own[0], y + radius * own[1], z + radius * own[2])
        return None

    def position(self, point: str) -> Triple:
        """Return the position of a point, components in N."""
        return self.system.space.resolve(self.system.points.position(point), NEWTONIAN)

    # -- wrenches ------------------------------------------------------------------------------------------

    def connections(self) -> dict[str, Wrench]:
        """Return the wrench of each segment's parent on it, about its place, by segment."""
        loads, shared = self.load_effects(self.mechanism.loads)
        space = self.geometry.displaced.space
        gx, gy, gz = self.geometry.at_rest(space.resolve(shared, NEWTONIAN))
        return self._handed_on(self._less_rows(_less(self.inertia((gx, gy, gz)), loads)))

    def pushed(self, loads: Sequence[Load]) -> dict[str, Wrench]:
        """Return the shares of impulses of loads in the connections, to be added to those of the motion."""
        nothing = dict.fromkeys(self.parts.segments, (self.system.graph.zero,) * 6)
        return self._handed_on(_less(nothing, self.load_effects(loads)[0]))

    def left_out(self) -> dict[str, set[int]]:
        """Return the components of each segment's connection that rows of joints left out as redundant change.

        In a plane those are the loads across it, which are zero.
        """
        found: dict[str, set[int]] = {name: set() for name in self.parts.segments}
        kept = {row.name for row in self.rows}
        names = [] if self.parts.is_planar else [n for j in self.mechanism.joints.values() for n in j.rows]
        nothing = dict.fromkeys(self.parts.segments, (self.system.graph.zero,) * 6)
        for name in names:
            if name not in kept and name in self.mechanism.constraints:
                effect = self._row(name, "", {}).segments
                for segment, wrench in self._handed_on(_less(nothing, effect)).items():
                    found[segment] |= {k for k, n in enumerate(wrench) if not self.system.reducer.reduce(n).is_zero}
        return found

    def _less_rows(self, total: Mapping[str, Wrench]) -> dict[str, Wrench]:
        found = dict(total)
        for multiplier, row in zip(self.multipliers, self.rows, strict=True):
            found = _less(found, {n: tuple(multiplier * node for node in w) for n, w in row.segments.items()})
        return found

    def _handed_on(self, resultants: Mapping[str, Wrench]) -> dict[str, Wrench]:
        """Return the sums over a segment and all beyond it, about the places of the connections."""
        totals = dict(resultants)
        for name in reversed(self.parts.outward):
            parent = self.parts.parents[name]
            if parent != NEWTONIAN:
                totals[parent] = sum_of(totals[parent], self._shifted(totals[name], name, parent))
        return totals

    def _shifted(self, wrench: Wrench, child: str, parent: str) -> Wrench:
        """Return a wrench about the place of the parent segment instead of that of the child."""
        places = self.parts.places
        arm = self.system.space.resolve(self.system.points.position(places[child], places[parent]), NEWTONIAN)
        x, y, z = cross(arm, (wrench[0], wrench[1], wrench[2]))
        return (*wrench[:3], wrench[3] + x, wrench[4] + y, wrench[5] + z)


def _less(total: Mapping[str, Wrench], taken: Mapping[str, Wrench]) -> dict[str, Wrench]:
    return {
        name: tuple(a - b for a, b in zip(wrench, taken[name], strict=True)) if name in taken else wrench
        for name, wrench in total.items()
    }


def sum_of(a: Wrench, b: Wrench) -> Wrench:
    """Return the sum of two wrenches.

    ``a``, ``b``, tuple of Node, 6 each: force and moment (N, N·m) about one place, resolved in one frame.
    """
    return tuple(x + y for x, y in zip(a, b, strict=True))


_NAMES: Final = re.compile(r"[A-Za-z]\w*")


@dataclass(frozen=True)
class _RowGroup:
    """Rows between the same two segments."""

    name: str
    is_contact: bool
    parent: str
    child: str
    rows: tuple[int, ...]


class PinBuilder:
    """Joins rows to connections, and makes programs of all."""

    def __init__(self, forces: PinForces) -> None:
        self._forces, self._parts, self._system = forces, forces.parts, forces.system
        self._mechanism = forces.mechanism
        self._pins: list[PinInfo] = []
        self._wrenches: list[Wrench] = []
        self._places: list[Triple] = []
        self._twists: list[Wrench] = []
        self._groups = self._found_groups()

    def other_parents(self) -> dict[str, str]:
        """Return the parents of segments by entries of ``pins`` whose connection was not found.

        Raises ModelError: an entry is about a connection that does not exist, or its segments are in the other order.
        """
        parts, found = self._parts, {}
        known_as: dict[tuple[str, str | int], PinEntry] = {}
        for entry in self._mechanism.pins.values():
            about: tuple[str, str | int] | None = None
            if (joined := parts.child_of(entry)) is not None:
                about = "tree", joined
            elif rows := [k for k, group in enumerate(self._groups) if self._is_about(entry, group)]:
                about = "rows", rows[0]
            if about is not None:
                first = known_as.setdefault(about, entry)
                if first is not entry:
                    raise ModelError(
                        f"{first.label} and {entry.label} are the same one", entry.where, found=entry.name,
                        remedy=f"write all its keys in {str(first.name)!r}",
                    )  # fmt: skip
                continue
            parent, child = (parts.segment_of(name) for name in entry.between or ("", ""))
            known = {NEWTONIAN, *parts.segments}
            if child not in parts.segments or parent not in known or parts.parents.get(parent) == child:
                names = [c.name for c in parts.connections.values() if c.kind != "free"]
                raise ModelError(
                    f"there is no connection {str(entry.name)!r}", entry.where,
                    found=f"{', '.join(entry.between)}" if entry.between else entry.name,
                    allowed=", ".join([*names, *(group.name for group in self._groups)]),
                    remedy=f"write between: [{child}, {parent}], the parent first" if parts.parents.get(parent) == child
                    else did_you_mean(entry.name, names) or "name its two segments: between: [parent, child]",
                )  # fmt: skip
            found[child] = parent
        return found

    def _is_about(self, entry: PinEntry, group: _RowGroup) -> bool:
        """Whether an entry of ``pins`` is about the connection by these rows."""
        if entry.between is None:
            return entry.name == group.name
        return tuple(map(self._parts.segment_of, entry.between)) == (group.parent, group.child)

    def _entry(self, child: str, group: _RowGroup | None = None) -> PinEntry | None:
        """Return the entry of ``pins`` about the connection of a segment with its parent, or by rows."""
        entries = self._mechanism.pins.values()
        if group is None:
            return next((entry for entry in entries if self._parts.child_of(entry) == child), None)
        about = (entry for entry in entries if self._parts.child_of(entry) is None and self._is_about(entry, group))
        return next(about, None)

    def programs(self) -> PinPrograms:
        """Return the programs."""
        forces = self._forces
        by_segment = forces.connections()
        groups = self._groups
        self._add_tree(by_segment, groups)
        for group in groups:
            if not self._is_of_tree(group):
                self._add_rows(group)
        wrenches = [node for wrench in self._wrenches for node in wrench]
        linear = dict(zip(forces.accelerations, forces.accelerations, strict=True))
        linear |= dict(zip(forces.multipliers, forces.multipliers, strict=True))
        jumps = tangent(wrenches, linear)
        pushed = [self._pushed(item.impulses) for item in self._mechanism.transitions]
        shares = [tangent(wrenches, {m: m.graph.one}) for m in forces.multipliers]
        layout, n = forces.layout, len(self._pins)
        return PinPrograms(
            self._pins,
            Program.from_nodes(layout, {"wrench": _table(wrenches, n), "place": self._places, "freedom": self._twists}),
            Program.from_nodes(layout, {"impulse": _table(jumps, n), "pushed": [_table(nodes, n) for nodes in pushed]}),
            Program.from_nodes(layout, {"share": [_table(nodes, n) for nodes in shares]}),
            Program.from_nodes(layout, {"slip": self._slips()}),
            [row.name for row in forces.rows if not row.segments and row.role != "kinematic"],
            [load.name for load in self._mechanism.loads if self._is_placeless(load)],
        )

    def _slips(self) -> list[Wrench]:
        """Return velocity and angular velocity of each child against its parent, at the place."""
        found: list[Wrench] = []
        zero = self._forces.system.graph.zero
        for info, place in zip(self._pins, self._places, strict=True):
            if not (info.child and info.parent):  # between more than two parts
                found.append((zero,) * 6)
                continue
            child, parent = (self._forces.twist(name, place) for name in (info.child, info.parent))
            turns = self._parts.segments[info.child].frame is not None
            found.append(
                tuple(a - b if k < 3 or turns else a for k, (a, b) in enumerate(zip(child, parent, strict=True)))
            )
        return found

    def _is_placeless(self, load: Load) -> bool:
        return not isinstance(load, GravityLoad) and not self._forces.load_effects([load])[0]

    def _pushed(self, loads: Sequence[Load]) -> list[Node]:
        zero = self._system.graph.zero
        by_segment = self._forces.pushed(loads) if loads else {}
        nothing = (zero,) * 6
        tree = [pin.kind not in ("rows", "contact") for pin in self._pins]
        return [
            node
            for pin, is_tree in zip(self._pins, tree, strict=True)
            for node in (by_segment.get(pin.child, nothing) if is_tree else nothing)
        ]

    # -- the tree ------------------------------------------------------------------------------------------

    def _add_tree(self, by_segment: Mapping[str, Wrench], groups: Sequence[_RowGroup]) -> None:
        left_out = self._forces.left_out()
        for connection in self._parts.connections.values():
            joined = [g for g in groups if self._is_of_tree(g) and g.child == connection.child]
            rows = tuple(r for group in joined for r in group.rows)
            if connection.kind == "free" and not rows:
                continue
            wrench = by_segment[connection.child]
            for r in rows:
                effect = self._forces.rows[r].segments.get(connection.child)
                if effect is not None:
                    wrench = sum_of(wrench, tuple(self._forces.multipliers[r] * node for node in effect))
            twists = [] if connection.kind == "free" else self._freedoms(connection)
            first = len(self._twists)
            self._twists += twists
            entry = self._entry(connection.child)
            name = connection.name if not joined else joined[0].name
            info = PinInfo(
                name if entry is None else str(entry.name),
                "rows" if connection.kind == "free" else connection.kind,
                connection.parent,
                connection.child,
                connection.at,
                self._frames(connection.parent, connection.child),
                rows,
                tuple(range(first, first + len(twists))),
                tuple(sorted(left_out[connection.child])),
            )
            self._add(info, wrench, self._forces.position(connection.at))

    def _is_of_tree(self, group: _RowGroup) -> bool:
        """Whether rows belong to a joint by which a segment hangs on its parent in the tree too."""
        joint = self._mechanism.joints.get(group.name)
        return (
            joint is not None
            and bool(joint.origin and joint.coordinates)
            and group.parent == self._parts.parents[group.child]
            and self._parts.frame_owner.get(joint.child) == group.child
        )

    def _freedoms(self, connection: TreeConnection) -> list[Wrench]:
        """Return unit twists, about its place, of the motions permitted by a connection."""
        motion, system = natural_motion(self._system), self._system
        segments, zero = self._parts.segments, self._system.graph.zero
        child, parent = segments[connection.child], segments.get(connection.parent)
        found = []
        for k in connection.freedoms:
            mine = self._twist(motion, child, connection.at, k)
            its = (zero,) * 6 if parent is None else self._twist(motion, parent, connection.at, k)
            twist = tuple(system.reducer.reduce(a - b) for a, b in zip(mine, its, strict=True))
            if child.frame is None:
                twist = (*twist[:3], zero, zero, zero)
            turns = any(not node.is_zero for node in twist[3:])
            square = system.reducer.reduce(sum((n * n for n in (twist[3:] if turns else twist[:3])), zero))
            length = functions.sqrt(square)
            found.append(tuple(node / length for node in twist))
        return found

    def _twist(self, motion: Motion, segment: RigidSegment, at: str, k: int) -> Wrench:
        space, points, zero = self._system.space, self._system.points, self._system.graph.zero
        center = space.resolve(column(motion.velocity(segment.center), k), NEWTONIAN)
        if segment.frame is None:
            return (*center, zero, zero, zero)
        spin = space.resolve(space.vector(segment.frame, motion.spin(segment.frame)[k]), NEWTONIAN)
        arm = space.resolve(points.position(at, segment.center), NEWTONIAN)
        added = cross(spin, arm)
        return (*(a + b for a, b in zip(center, added, strict=True)), *spin)

    # -- rows ----------------------------------------------------------------------------------------------

    def _found_groups(self) -> list[_RowGroup]:
        keys: dict[tuple[str, bool], list[int]] = {}
        names = self._stems()
        for number, row in enumerate(self._forces.rows):
            if row.segments:
                constraint = self._mechanism.constraints.get(row.name)
                name = row.name if constraint is None else constraint.joint or names.get(row.name, row.name)
                keys.setdefault((name, constraint is None), []).append(number)
        found = []
        for (name, is_contact), rows in keys.items():
            touched = {segment: None for r in rows for segment in self._forces.rows[r].segments}
            order = [s for s in self._parts.outward if s in touched]
            joint = self._mechanism.joints.get(name)
            child = None if joint is None else self._parts.frame_owner.get(joint.child)
            if len(order) > 2:
                found += [_RowGroup(f"{name}.{s}", is_contact, "", s, tuple(rows)) for s in order]
                continue
            child = child if child in order else order[-1]
            others = [s for s in order if s != child]
            found.append(_RowGroup(name, is_contact, others[0] if others else NEWTONIAN, child, tuple(rows)))
        return found

    def _stems(self) -> dict[str, str]:
        """Return the common beginning, before the last underscore, of constraints between the same segments."""
        stems: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for row in self._forces.rows:
            constraint = self._mechanism.constraints.get(row.name)
            if constraint is not None and not constraint.joint and "_" in row.name:
                stems.setdefault((row.name.rsplit("_", 1)[0], tuple(row.segments)), []).append(row.name)
        return {name: stem for (stem, _), names in stems.items() if len(set(names)) > 1 for name in names}

    def _add_rows(self, group: _RowGroup) -> None:
        graph, forces, segments = self._system.graph, self._forces, self._parts.segments
        turns = [name for name in (group.child, group.parent) if name in segments and segments[name].frame is not None]
        seen = turns[0] if turns else group.child  # a segment that does not turn knows no moments
        sign = 1.0 if seen == group.child else -1.0
        total: Wrench = (graph.zero,) * 6
        for r in group.rows:
            effect = forces.rows[r].segments.get(seen)
            if effect is not None:
                total = sum_of(total, tuple(sign * forces.multipliers[r] * node for node in effect))
        rubs = group.is_contact and len(group.rows) > 1  # two lines of force determine where they meet
        entry = self._entry("", group)
        at = "" if rubs else self._point(group)
        at = entry.at if entry is not None and entry.at else at
        base = forces.position(self._parts.places[seen])
        place = forces.position(at) if at else self._meeting_place(group, seen if turns else "", base)
        arm = [base[k] - place[k] if turns else graph.zero for k in range(3)]
        x, y, z = cross((arm[0], arm[1], arm[2]), (total[0], total[1], total[2]))
        wrench = (*total[:3], total[3] + x, total[4] + y, total[5] + z)
        name = group.name if entry is None else str(entry.name)
        kind, frames = "contact" if group.is_contact else "rows", self._frames(group.parent, group.child)
        info = PinInfo(name, kind, group.parent, group.child, at, frames, group.rows)
        self._add(info, wrench, place)

    def _point(self, group: _RowGroup) -> str:
        """Return the point of the child for the rows: of the joint, else the first one they name; or none."""
        joint = self._mechanism.joints.get(group.name)
        if joint is not None and joint.at:
            return joint.at[-1]
        named: list[str] = []
        for r in group.rows:
            name = self._forces.rows[r].name
            item = self._mechanism.constraints.get(name) or self._mechanism.contacts[name]
            if isinstance(item, FeatureContact):
                continue
            for text in words_of(item):
                named += list(_NAMES.findall(str(text)))
        known = self._system.points.names
        return next((name for name in named if name in known and self._parts.owns(group.child, name)), "")

    def _meeting_place(self, group: _RowGroup, segment: str, base: Triple) -> Triple:
        """Return the place of a contact: where its lines of force meet on a segment that turns, else its feature."""
        if segment:
            return self._line(group, segment, base)
        found = self._forces.round_place(group.rows[0]) if group.is_contact else None
        return base if found is None else found

    def _line(self, group: _RowGroup, segment: str, base: Triple) -> Triple:
        """Return where the lines of the normal force and the friction on a segment meet.

        Without friction it is the point of the normal's line nearest to the place of the segment.
        """
        effects = [self._forces.rows[r].segments.get(segment) for r in group.rows]
        lines = [e for e in effects if e is not None and any(not node.is_zero for node in e[:3])]
        if not lines:
            return base
        d, m = _halves(lines[0])
        square = inner(d, d)
        foot = cross(d, m)
        foot = (foot[0] / square, foot[1] / square, foot[2] / square)
        if len(lines) > 1:
            t, moment = _halves(lines[1])
            normal, known = cross(d, t), cross(foot, t)
            along = inner((moment[0] - known[0], moment[1] - known[1], moment[2] - known[2]), normal)
            along = along / inner(normal, normal)
            foot = (foot[0] + along * d[0], foot[1] + along * d[1], foot[2] + along * d[2])
        return (base[0] + foot[0], base[1] + foot[1], base[2] + foot[2])

    # -- all -----------------------------------------------------------------------------------------------

    def _add(self, info: PinInfo, wrench: Wrench, place: Triple) -> None:
        taken = {pin.name for pin in self._pins}
        if info.name in taken:
            info = msgspec.structs.replace(info, name=f"{info.name}_{info.child}")
        self._pins.append(info)
        self._wrenches.append(wrench)
        self._places.append(place)

    def _frames(self, parent: str, child: str) -> tuple[str, str]:
        segments = self._parts.segments
        frames = [segments[name].frame if name in segments else None for name in (parent, child)]
        return (frames[0] or NEWTONIAN, frames[1] or NEWTONIAN)


def derive_pins(mechanism: Mechanism, rows: Sequence[tuple[str, str]]) -> PinPrograms:
    """Derive the programs of the forces in all connections.

    ``rows``: name and role of all constraint rows, in the order of the multipliers. Raises ModelError: an entry of
    ``pins`` is about a connection that does not exist.
    """
    builder = PinBuilder(PinForces(mechanism, rows))
    carried = builder.other_parents()
    return (PinBuilder(PinForces(mechanism, rows, carried)) if carried else builder).programs()


def _halves(wrench: Wrench) -> tuple[Triple, Triple]:
    return (wrench[0], wrench[1], wrench[2]), (wrench[3], wrench[4], wrench[5])


def _table(nodes: Sequence[Node], n: int) -> list[list[Node]]:
    return [list(nodes[6 * i : 6 * i + 6]) for i in range(n)]
