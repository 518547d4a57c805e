"""Contacts of two polyhedra, derived together: all pairs of features share the terms of their frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.contact_geometry import ContactGeometry, ContactKinematics, feature_contacts
from fsm_dyn.derive.features import EdgeLine, Flat, Round, Shapes
from fsm_dyn.derive.kinematics import Matrix, Space, Triple, Vector, apply, cross, inner, transpose
from fsm_dyn.derive.speeds import sample
from fsm_dyn.derive.symbols import MechanismSymbols
from fsm_dyn.derive.velocities import Motion
from fsm_dyn.language.contacts import FeatureContact
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.shapes import SolidShape
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.traversal import substitute, tangent

# Two boxes have 240 pairs of features, whose gaps and slips are combinations of the same rotations, positions and
# velocities. The nine numbers of a rotation are symbols until all pairs are derived: rates and slopes stop at them, and
# each is reduced once. The speed of a gap is that of the materials at the contact point along the normal, which is
# shorter than the derivative of the gap (docs/theory.md, "Contact geometry").


SAMPLES = 3
NOTHING = 1e-12
FIELDS = ("gap", "slip", "across", "reach", "aspect", "valid")  # of the kinematics, in terms of the rotations


@dataclass(frozen=True)
class PairRow:
    """A row ``A y + b`` of a pair, its derivative ``gamma`` at u̇ = 0, and ``residual``, m, of the row of a gap."""

    A: tuple[Node, ...]
    b: Node
    gamma: Node
    residual: Node | None


@dataclass(frozen=True)
class SolidPair:
    """Two features of polyhedra seen together."""

    meeting: ContactKinematics
    rows: tuple[PairRow, ...]  # of the gap, and with friction of both slips
    reach_rate: Node  # m/s
    idle: int  # the first row in which no speed has a share; -1 for none


def solids_and_others(mechanism: Mechanism) -> tuple[list[FeatureContact], list[FeatureContact]]:
    """Return the contacts of features of a `mechanism`: those of two polyhedra, and others."""
    parts: tuple[list[FeatureContact], list[FeatureContact]] = ([], [])
    for contact in feature_contacts(mechanism):
        solid = [isinstance(mechanism.shapes.get(feature.shape), SolidShape) for feature in contact.features]
        parts[0 if all(solid) else 1].append(contact)
    return parts


class SharedSpace(Space):
    """Vectors in frames whose rotations against each other are symbols; ``space`` has the rotations themselves."""

    def __init__(self, space: Space) -> None:
        super().__init__(space.graph, space.frames, space.reducer)
        self.meanings: dict[Node, Node] = {}
        self._rotations: dict[tuple[str, str], Matrix] = {}

    def turned(self, components: Triple, source: str, target: str) -> Triple:
        """Return the components in `target` of a vector with components in `source`."""
        return components if source == target else apply(self.rotation(target, source), components)

    def rotation(self, a: str, b: str) -> Matrix:
        """Return the matrix from components in `b` to components in `a`."""
        known = self._rotations.get((a, b))
        if known is None:
            one, two, three = self.frames.rotation(a, b)
            known = self._rotations[a, b] = (self._symbols(one), self._symbols(two), self._symbols(three))
            self._rotations[b, a] = transpose(known)
        return known

    def _symbols(self, row: Triple) -> Triple:
        return (self._symbol(row[0]), self._symbol(row[1]), self._symbol(row[2]))

    def _symbol(self, node: Node) -> Node:
        reduced = self.reducer.reduce(node)
        if not reduced.operands:
            return reduced
        symbol = self.graph.symbol(f"shared[{len(self.meanings)}]")
        self.meanings[symbol] = reduced
        return symbol

    def rates(self, motion: Motion) -> dict[Node, Node]:
        """Return the rates of all symbols: of axes of one frame, seen from another, by both angular velocities."""
        found: dict[Node, Node] = {}
        for (a, b), matrix in self._rotations.items():
            here, there = (self.resolve(motion.angular(frame), frame) for frame in (a, b))
            zero, one = self.graph.zero, self.graph.one
            for k, axis in enumerate(((one, zero, zero), (zero, one, zero), (zero, zero, one))):
                own = apply(matrix, cross(there, axis))
                seen = cross(here, (matrix[0][k], matrix[1][k], matrix[2][k]))
                for i in range(3):
                    if matrix[i][k] in self.meanings:
                        found.setdefault(matrix[i][k], own[i] - seen[i])
        return found


class SolidPairs(ContactGeometry):
    """Derives the contacts of polyhedra.

    ``motion``: with all speeds as symbols; ``held``, ``flow``: motion, and rates of coordinates, time and inputs, with
    kinematic speeds at zero.
    """

    def __init__(
        self, system: MechanismSymbols, shapes: Shapes, motion: Motion, held: Motion, flow: Mapping[Node, Node]
    ) -> None:
        super().__init__(system, shapes, motion)
        self._space = self._shared = SharedSpace(system.space)
        self._held = held
        self._flow = flow
        self._relative: dict[tuple[str, ...], tuple[Triple, Triple]] = {}

    def pairs(self, contacts: Sequence[FeatureContact]) -> dict[str, SolidPair]:
        """Return contacts of polyhedra by name."""
        if not contacts:
            return {}
        meetings = [self.of(contact) for contact in contacts]
        speeds, counts = [], []
        for contact, meeting in zip(contacts, meetings, strict=True):
            own = (meeting.closing, meeting.slip, meeting.across) if contact.has_friction else (meeting.closing,)
            speeds += [node for node in own if node is not None]
            counts.append(len(own))
        A, b, gamma, reach_rates = self._rates(speeds, [meeting.reach for meeting in meetings])
        shares = np.abs(sample(self.system, [node for row in A for node in row], SAMPLES)).max(axis=0)
        idle = shares.reshape(len(A), -1).max(axis=1) < NOTHING
        values = iter(self._by_coordinates([node for meeting in meetings for node in _nodes(meeting).values()]))
        found, start = {}, 0
        for contact, symbolic, count, rate in zip(contacts, meetings, counts, reach_rates, strict=True):
            changed: dict[str, Any] = {key: next(values) for key in _nodes(symbolic)}
            meeting = replace(symbolic, **changed)
            residuals = (meeting.gap, None, None)
            rows = tuple(PairRow(A[start + k], b[start + k], gamma[start + k], residuals[k]) for k in range(count))
            first = np.flatnonzero(idle[start : start + count])
            found[contact.name] = SolidPair(meeting, rows, rate, int(first[0]) if len(first) else -1)
            start += count
        return found

    def _rates(
        self, speeds: Sequence[Node], reaches: Sequence[Node | None]
    ) -> tuple[list[tuple[Node, ...]], list[Node], list[Node], list[Node]]:
        """Return the coefficients, the rest and the rates at u̇ = 0 of speeds, and the rates of reaches."""
        graph, symbols = self.system.graph, self._motion.speeds
        columns = [tangent(speeds, {symbol: graph.one}) for symbol in symbols]
        rest = substitute(speeds, dict.fromkeys(symbols, graph.zero))
        held = substitute(speeds, dict(zip(symbols, self._held.values, strict=True)))
        within = [node for node in reaches if node is not None]
        rates = tangent([*held, *within], {**self._flow, **self._shared.rates(self._held)})
        nodes = self._by_coordinates([node for part in (*columns, rest, rates) for node in part])
        n = len(speeds)
        parts = [nodes[k * n : (k + 1) * n] for k in range(len(symbols) + 2)]
        return list(zip(*parts[:-2], strict=True)), parts[-2], parts[-1], nodes[(len(symbols) + 2) * n :]

    def _by_coordinates(self, nodes: Sequence[Node]) -> list[Node]:
        """Return nodes with the rotations in place of their symbols."""
        return substitute(nodes, self._shared.meanings) if self._shared.meanings else list(nodes)

    # -- velocities ----------------------------------------------------------------------------------------

    def _closing(self, a: Round | EdgeLine, b: Flat | EdgeLine, place: Vector, normal: Vector) -> Node | None:
        """Return the rate of a gap, by the materials at its point."""
        return self._slip(a, b, place, normal, 1)

    def _slip(self, a: Round | EdgeLine, b: Flat | Round | EdgeLine, place: Vector, tangent: Vector, sign: int) -> Node:
        """Return the speed of the material of a relative to b's along a direction, in the frame of the direction."""
        frame = next((frame for frame, _ in tangent), a.frame)
        along, arm = self._space.resolve(tangent, frame), self._space.resolve(place, frame)
        velocity, spin = self._relative_motion(a, b, frame)
        return sign * (inner(velocity, along) + inner(spin, cross(arm, along)))

    def _relative_motion(self, a: Round | EdgeLine, b: Flat | Round | EdgeLine, frame: str) -> tuple[Triple, Triple]:
        """Return velocity and angular velocity of a's body relative to b's, at the origin of a."""
        key = (a.frame, a.origin, b.frame, b.origin, frame)
        known = self._relative.get(key)
        if known is None:
            space, motion = self._space, self._motion
            carried = space.cross(motion.angular(b.frame), self.system.points.position(a.origin, b.origin))
            velocity = space.sum(
                (motion.speed_of(a.origin), space.negate(motion.speed_of(b.origin)), space.negate(carried))
            )
            spin = space.subtract(motion.angular(a.frame), motion.angular(b.frame))
            known = self._relative[key] = (space.resolve(velocity, frame), space.resolve(spin, frame))
        return known


def _nodes(meeting: ContactKinematics) -> dict[str, Node]:
    """Return the parts of the kinematics of two features that there are."""
    return {key: node for key in FIELDS if (node := getattr(meeting, key)) is not None}
