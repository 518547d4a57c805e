"""Segments of a mechanism, owners of its points and frames, and the connections between segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.kinematics import NEWTONIAN, ORIGIN
from fsm_dyn.derive.speeds import SEED, natural_motion
from fsm_dyn.derive.symbols import MechanismSymbols
from fsm_dyn.language.elements import HelicalJoint, Joint
from fsm_dyn.language.interfaces import PinEntry
from fsm_dyn.language.model import Body
from fsm_dyn.language.values import flat_values
from fsm_dyn.programs.traversal import evaluate, support

_STATES: Final = 6  # configurations at which motions are compared
_EQUAL: Final = 1e-9  # of rates about 1
_RANK: Final = 1e-9


@dataclass(frozen=True)
class RigidSegment:
    """Bodies that move as one rigid body."""

    name: str  # its frame, or its body if it has none
    frame: str | None  # none for a body that does not turn: then no moment acts on it
    center: str  # the centre of its first body
    bodies: tuple[str, ...]


@dataclass(frozen=True)
class TreeConnection:
    """A connection of the tree: a segment with its carrier."""

    name: str  # of the joint, else ``<parent>_<child>``
    # parent, child: names of segments; the parent may be ``N``
    parent: str
    child: str
    at: str  # its point of the child
    kind: str  # ``free``, ``weld``, ``pin``, ``universal``, ``ball``, ``guide`` or ``joint`` for sliding with turning
    # rates of coordinates whose relative motions are independent of each other, by their numbers
    freedoms: tuple[int, ...]


class Segmentation:
    """Segments, owners and connections of a mechanism, found by comparing motions at some configurations.

    A segment owns a point that moves with it at any rates of the coordinates, and a frame that turns with it; N owns
    resting ones. Points and frames without an owner are construction. ``carried``: parents of segments, where they are
    not those found.
    """

    def __init__(self, system: MechanismSymbols, carried: Mapping[str, str] | None = None) -> None:
        self.system = system
        self._carried = carried or {}
        self._motions = _SampledMotions(system)
        self.is_planar = self._motions.is_planar
        self.segments = self._found_segments()
        names = system.points.names
        self._owners = {name: self._owners_of(name) for name in names}
        self._by_frame = {s.frame: s.name for s in self.segments.values() if s.frame is not None}
        self.frame_owner = {name: self._owner_of_frame(name) for name in system.frames.names}
        links = {name: self._link(segment) for name, segment in self.segments.items()}
        self.parents = {name: parent for name, (parent, _) in links.items()}
        self.places = {name: at for name, (_, at) in links.items()}
        self._owned: dict[str, str] = {}
        for entry in system.mechanism.pins.values():
            child = self.child_of(entry)
            if child is not None:
                self._owned |= dict.fromkeys(entry.owns, child)
                if entry.at:
                    self.places[child] = entry.at
        self.owner = {name: self._owner(name) for name in names}
        self.connections = {name: self._connection(segment) for name, segment in self.segments.items()}

    def owns(self, segment: str, point: str) -> bool:
        """Whether a point moves as one of a segment, which others may own too."""
        return segment in self._owners[point]

    def segment_of(self, name: str) -> str:
        """Return the segment of a frame or body, or ``N``."""
        with_body = (s.name for s in self.segments.values() if name in s.bodies)
        return self.frame_owner.get(name) or next(with_body, name)

    def child_of(self, entry: PinEntry) -> str | None:
        """Return the segment whose connection with its parent an entry of ``pins`` is about, if it is one."""
        if entry.between is not None:
            parent, child = (self.segment_of(name) for name in entry.between)
            return child if self.parents.get(child) == parent else None
        joint = self.system.mechanism.joints.get(entry.name)
        if joint is not None:
            child = self.frame_owner.get(joint.child) or ""
            return child if child in self.segments and self._joint(self.segments[child]) is joint else None
        named = (child for child, parent in self.parents.items() if f"{parent}_{child}" == entry.name)
        return next(named, None)

    @cached_property
    def outward(self) -> tuple[str, ...]:
        """Segments, parents before children."""
        placed: dict[str, None] = {}

        def place(name: str) -> None:
            if name != NEWTONIAN and name not in placed:
                place(self.parents[name])
                placed[name] = None

        for name in self.segments:
            place(name)
        return tuple(placed)

    # -- segments and owners -------------------------------------------------------------------------------

    def _found_segments(self) -> dict[str, RigidSegment]:
        found: dict[str, RigidSegment] = {}
        for body in self.system.mechanism.bodies.values():
            frame = self._frame(body)
            name = frame if frame is not None else body.name
            known = found.get(name)
            if known is not None and not self._motions.is_rigid(body.center, known.center, known.frame):
                name, known = body.name, None
            bodies = (body.name,) if known is None else (*known.bodies, body.name)
            found[name] = RigidSegment(name, frame, body.center if known is None else known.center, bodies)
        return found

    def _frame(self, body: Body) -> str | None:
        """Return the frame in which a body rides; of a particle the one in which its last arm is constant."""
        if body.frame is not None:
            return None if body.frame == NEWTONIAN else body.frame
        for name in reversed(self.system.points.chain(body.center)[1:]):
            offset = list(self.system.points.offset(name))
            if offset:
                frame = offset[0][0]
                return frame if len(offset) == 1 and self._is_constant(name) and frame != NEWTONIAN else None
        return None

    def _is_constant(self, point: str) -> bool:
        """Whether the vector to a point from the one it is given from has constant components."""
        nodes = [node for _, triple in self.system.points.offset(point) for node in triple]
        moving = {*self.system.coordinates, *self.system.inputs, self.system.names["t"]}
        return support(nodes).isdisjoint(moving)

    def _owners_of(self, point: str) -> tuple[str, ...]:
        found = [NEWTONIAN] if self._motions.rests(point) else []
        return (*found, *(s.name for s in self.segments.values() if self._motions.is_rigid(point, s.center, s.frame)))

    def _owner_of_frame(self, frame: str) -> str | None:
        if frame == NEWTONIAN or frame in self._by_frame:
            return self._by_frame.get(frame, NEWTONIAN)
        same = [s for s in self.segments.values() if s.frame is not None and self._motions.turn_alike(frame, s.frame)]
        family = [s.name for s in same if self._is_above(s.frame, frame) or self._is_above(frame, s.frame)]
        if self._motions.turn_alike(frame, NEWTONIAN):
            return NEWTONIAN if not family else family[0]
        return next(iter([*family, *(s.name for s in same)]), None)

    def _owner(self, point: str) -> str | None:
        """Return whose a point is: of several owners the joint's child, that of the last arm, N, or their parent."""
        owners = self._owners[point]
        if point in self._owned:
            return self._owned[point]
        if len(owners) < 2:
            return owners[0] if owners else None
        for joint in self.system.mechanism.joints.values():
            if joint.origin == point and self._by_frame.get(joint.child) in owners:
                return self._by_frame[joint.child]
        last = self._last_arm(point)
        if last is not None and self.frame_owner.get(last) in owners and last != NEWTONIAN:
            return self.frame_owner[last]
        if NEWTONIAN in owners:
            return NEWTONIAN
        return next((o for o in owners if all(o in (x, self.parents[x]) for x in owners)), owners[0])

    # -- who carries whom ----------------------------------------------------------------------------------

    def _link(self, segment: RigidSegment) -> tuple[str, str]:
        """Return the parent of a segment, and the carried point of the segment."""
        chain = self.system.points.chain(segment.center)
        at, parent = segment.center, self._carried.get(segment.name, NEWTONIAN)
        if segment.name in self._carried:
            return parent, next((name for name in chain if segment.name in self._owners[name]), at)
        joint = self._joint(segment)
        if joint is not None and joint.origin in self._owners and segment.name in self._owners[joint.origin]:
            carrier = self._carrier(joint.parent)
            if carrier is not None and carrier != segment.name:
                return carrier, joint.origin
        for name in reversed(chain):
            owners = self._owners[name]
            at = name if segment.name in owners else at
            others = [o for o in owners if o != segment.name and self._may_carry(o, segment, name)]
            if others:
                parent = self._preferred(segment, name, others)
                break
        for name in chain:  # the point nearest O owned by both
            if segment.name in self._owners[name] and parent in self._owners[name]:
                return parent, name
        return parent, at

    def _joint(self, segment: RigidSegment) -> Joint | None:
        joints = self.system.mechanism.joints.values()
        return next((j for j in joints if j.origin and j.coordinates and j.child == segment.frame), None)

    def _carrier(self, frame: str) -> str | None:
        """Return the segment on a frame."""
        return NEWTONIAN if frame == NEWTONIAN else self.frame_owner.get(frame)

    def _may_carry(self, other: str, segment: RigidSegment, point: str) -> bool:
        """Whether another owner of a point on the way to a segment can be its parent."""
        if other == NEWTONIAN:
            return True
        candidate = self.segments[other]
        if self._moves_as(candidate, segment):
            above = self._is_above(candidate.frame, segment.frame)
            below = self._is_above(segment.frame, candidate.frame)
            return above or (not below and self._comes_before(candidate, segment))
        if segment.name in self._owners[point] and not self._is_constant_or_origin(point):
            mine, its = self._motions.turning(segment.frame), self._motions.turning(candidate.frame)
            return its < mine or (its == mine and self._comes_before(candidate, segment))
        return True

    def _moves_as(self, a: RigidSegment, b: RigidSegment) -> bool:
        """Whether two segments are welded to each other."""
        if a.frame is None or b.frame is None:
            return self._motions.is_rigid(a.center, b.center, b.frame) and a.frame is b.frame
        return self._motions.turn_alike(a.frame, b.frame) and self._motions.is_rigid(a.center, b.center, b.frame)

    def _comes_before(self, a: RigidSegment, b: RigidSegment) -> bool:
        names = list(self.segments)
        return names.index(a.name) < names.index(b.name)

    def _is_above(self, frame: str | None, other: str | None) -> bool:
        """Whether a frame is the parent of another, or above it."""
        if frame is None or other is None:
            return False
        parents = self.system.frames.parents
        while other in parents:
            other = parents[other]
            if other == frame:
                return True
        return False

    def _preferred(self, segment: RigidSegment, point: str, others: Sequence[str]) -> str:
        """Return which of several owners of a point carries a segment."""
        joint = self._joint(segment)
        wishes: list[str | None] = [self._carrier(joint.parent)] if joint is not None else []
        wishes.append(NEWTONIAN)
        chain = self.system.points.chain(segment.center)
        for name in chain[chain.index(point) + 1 :]:
            if not self.system.points.offset(name).is_zero:
                if not self._is_constant(name):
                    wishes.append(self.frame_owner.get(next(iter(self.system.points.offset(name)))[0]))
                break
        frame = segment.frame
        while frame is not None and frame != NEWTONIAN:
            frame = self.system.frames.parents[frame]
            wishes.append(self.frame_owner.get(frame))
        last = self._last_arm(point)
        wishes.append(None if last is None else self.frame_owner.get(last))
        return next((wish for wish in wishes if wish is not None and wish in others), others[0])

    def _last_arm(self, point: str) -> str | None:
        """Return the frame of the last vector on the way to a point, None if it changes."""
        for name in reversed(self.system.points.chain(point)[1:]):
            parts = list(self.system.points.offset(name))
            if parts:
                return parts[-1][0] if self._is_constant(name) else None
        return NEWTONIAN

    def _is_constant_or_origin(self, point: str) -> bool:
        return point == ORIGIN or self._is_constant(point)

    # -- kinds ---------------------------------------------------------------------------------------------

    def _connection(self, segment: RigidSegment) -> TreeConnection:
        parent, at = self.parents[segment.name], self.places[segment.name]
        twist = self._motions.relative_twist(segment, self.segments.get(parent), at)
        joint = self._joint(segment)
        if joint is not None and not joint.is_freed:
            twist = self._without_hidden(twist, joint)
        name = joint.name if joint is not None and not joint.is_freed else f"{parent}_{segment.name}"
        if segment.name in self._carried:  # not by its joint, which is with another
            name = f"{parent}_{segment.name}"
        slides, turns, freedoms = _rank(twist[:, :3]), _rank(twist[:, 3:]), _rank(twist)
        full = (2 if self.is_planar else 3) + (0 if segment.frame is None else 1 if self.is_planar else 3)
        kind = _kind(slides, turns, freedoms, full)
        if isinstance(joint, HelicalJoint) and not joint.is_freed:
            kind = "joint"
        return TreeConnection(name, parent, segment.name, at, kind, _independent(twist))

    def _without_hidden(self, twist: Floats, joint: Joint) -> Floats:
        """Return relative motions without those that a joint's own rows prevent, which its friction needs."""
        hidden = {f"rate({name})" for name, _ in joint.hidden}
        kept = np.array([name not in hidden for name in self._motions.rates])
        screwed = hidden and isinstance(joint, HelicalJoint)
        return twist * (kept & (not screwed))


def _kind(slides: int, turns: int, freedoms: int, full: int) -> str:
    if freedoms == full:
        return "free"
    if freedoms == 0:
        return "weld"
    if slides == 0:
        return {1: "pin", 2: "universal"}.get(turns, "ball")
    return "guide" if turns == 0 else "joint"


def _rank(columns: Floats) -> int:
    """Return the largest rank over the configurations, of which some may have no value."""
    known = columns[np.isfinite(columns).all(axis=(1, 2))]
    if not known.size:
        return 0
    return int(max(np.linalg.matrix_rank(matrix, tol=_RANK) for matrix in known))


def _independent(twist: Floats) -> tuple[int, ...]:
    """Return numbers of columns that span all, each taken if it adds to those after it."""
    chosen: list[int] = []
    for k in reversed(range(twist.shape[2])):
        if _rank(twist[:, :, [*chosen, k]]) > len(chosen):
            chosen.append(k)
    return tuple(sorted(chosen))


class _SampledMotions:
    """Places and rates of points and frames, as numbers at some configurations.

    Rates have one column for each independent rate of a coordinate, and a last one for time and inputs.
    """

    def __init__(self, system: MechanismSymbols) -> None:
        self.system = system
        motion = natural_motion(system)
        self.n = motion.n
        self.rates = tuple(symbol.name for symbol in motion.speeds)
        points, frames = system.points.names, system.frames.names
        self._nodes = [node for name in frames for row in system.frames.rotation(NEWTONIAN, name) for node in row]
        moved = [(name, frame, columns) for name in points for frame, columns in motion.velocity(name).items()]
        offsets = [(name, frame) for name in points[1:] for frame, _ in system.points.offset(name)]
        first = 9 * len(frames)
        self._nodes += [n for name in points[1:] for _, triple in system.points.offset(name) for n in triple]
        self._nodes += [node for _, _, columns in moved for triple in columns for node in triple]
        self._nodes += [node for name in frames for triple in motion.spin(name) for node in triple]
        values = self._numbers()
        R = values[:, :first].reshape(-1, len(frames), 3, 3)
        self.turns = {name: R[:, i] for i, name in enumerate(frames)}
        count = len(values)
        arms: dict[str, Floats] = {name: np.zeros((count, 3)) for name in points}
        for k, (name, frame) in enumerate(offsets):
            arms[name] = arms[name] + np.einsum(
                "nij,nj->ni", self.turns[frame], values[:, first + 3 * k : first + 3 * k + 3]
            )
        first += 3 * len(offsets)
        self.places: dict[str, Floats] = {ORIGIN: np.zeros((count, 3))}
        for name in points[1:]:
            chain = system.points.chain(name)
            self.places[name] = np.sum([arms[p] for p in chain[1:]], axis=0)
        width = 3 * (self.n + 1)
        self.velocities = {name: np.zeros((count, 3, self.n + 1)) for name in points}
        for name, frame, _ in moved:
            columns = values[:, first : first + width].reshape(-1, self.n + 1, 3)
            self.velocities[name] = self.velocities[name] + np.einsum("nij,ncj->nic", self.turns[frame], columns)
            first += width
        spins = values[:, first:].reshape(-1, len(frames), self.n + 1, 3)
        self.spins = {name: np.einsum("nij,ncj->nic", R[:, i], spins[:, i]) for i, name in enumerate(frames)}

    def _numbers(self) -> Floats:
        system = self.system
        random = np.random.default_rng(SEED)
        known = flat_values(system.mechanism)
        symbols = sorted(support(self._nodes) | {e for group in system.euler for e in group}, key=lambda s: s.name)
        values = {s.name: random.uniform(0.3, 1.3, _STATES) for s in symbols} | known
        for group in system.euler:
            norm = np.sqrt(sum(values[e.name] ** 2 for e in group))
            values |= {e.name: values[e.name] / norm for e in group}
        with np.errstate(all="ignore"):
            found = evaluate(self._nodes, {s.name: values[s.name] for s in symbols})
        return np.stack([np.broadcast_to(value, (_STATES,)) for value in found], axis=-1)

    @property
    def is_planar(self) -> bool:
        """Whether all that is on bodies moves along x and y and turns about z."""
        system = self.system
        turns = [turn for name in system.frames.names for turn in system.frames.turns(name)]
        if any(turn.euler is not None or turn.axis != 2 for turn in turns):
            return False
        bodies = system.mechanism.bodies.values()
        return all(_equal(self.velocities[b.center][:, 2], 0.0) for b in bodies)

    def rests(self, point: str) -> bool:
        """Whether a point never moves."""
        return _equal(self.velocities[point], 0.0)

    def is_rigid(self, point: str, other: str, frame: str | None) -> bool:
        """Whether a point moves as if it were fixed to a frame that moves with another point."""
        return _equal(self.velocities[point], self.carried(point, other, frame))

    def carried(self, point: str, other: str, frame: str | None) -> Floats:
        """Return the velocity of the point of a rigid body at the place of a point."""
        if frame is None:
            return self.velocities[other]
        arm = self.places[point] - self.places[other]
        return self.velocities[other] + np.cross(self.spins[frame], arm[:, :, None], axis=1)

    def turn_alike(self, a: str, b: str) -> bool:
        """Whether two frames have the same angular velocity."""
        return _equal(self.spins[a], self.spins[b])

    def turning(self, frame: str | None) -> int:
        """Return in how many directions a frame turns."""
        return 0 if frame is None else _rank(self.spins[frame][:, :, :-1])

    def relative_twist(self, child: RigidSegment, parent: RigidSegment | None, at: str) -> Floats:
        """Return velocity and angular velocity of a segment against another at a point, without driven motion."""
        velocity = self.carried(at, child.center, child.frame)
        spin = np.zeros_like(velocity) if child.frame is None else self.spins[child.frame]
        if parent is not None:
            velocity = velocity - self.carried(at, parent.center, parent.frame)
            spin = spin - (0.0 if parent.frame is None or child.frame is None else self.spins[parent.frame])
        return np.concatenate([velocity, spin], axis=1)[:, :, :-1]


def _equal(a: Floats, b: Floats | float) -> bool:
    """Whether rates agree at all configurations at which they are known."""
    b = np.broadcast_to(b, a.shape)
    known = np.isfinite(a) & np.isfinite(b)
    return bool((np.abs(a - b)[known] <= _EQUAL * (1.0 + np.abs(b[known]))).all())
