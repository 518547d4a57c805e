"""Connections of a mechanism by name, and the programs of the forces in them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from fsm_dyn.core.errors import ModelError, did_you_mean
from fsm_dyn.derive.kinematics import NEWTONIAN, Triple, cross, inner
from fsm_dyn.derive.pin_forces import PinForces, Wrench, sum_of
from fsm_dyn.derive.segments import RigidSegment, TreeConnection
from fsm_dyn.derive.speeds import natural_motion
from fsm_dyn.derive.velocities import Motion, column
from fsm_dyn.language.contacts import FeatureContact
from fsm_dyn.language.dimensions import words_of
from fsm_dyn.language.elements import GravityLoad, Load
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.pins import PinEntry
from fsm_dyn.programs import functions
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.pin_programs import PinInfo, PinPrograms
from fsm_dyn.programs.program import Program
from fsm_dyn.programs.traversal import tangent

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
    """Joins rows to connections, and makes programs of all.

    Parameters
    ----------
    forces : PinForces
    """

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

        Raises
        ------
        ModelError
            An entry is about a connection that does not exist, or its segments are in the other order.
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

    Parameters
    ----------
    mechanism : Mechanism
    rows : sequence of (str, str)
        Name and role of all constraint rows, in the order of the multipliers.

    Returns
    -------
    PinPrograms

    Raises
    ------
    ModelError
        An entry of ``pins`` is about a connection that does not exist.
    """
    builder = PinBuilder(PinForces(mechanism, rows))
    carried = builder.other_parents()
    return (PinBuilder(PinForces(mechanism, rows, carried)) if carried else builder).programs()


def _halves(wrench: Wrench) -> tuple[Triple, Triple]:
    return (wrench[0], wrench[1], wrench[2]), (wrench[3], wrench[4], wrench[5])


def _table(nodes: Sequence[Node], n: int) -> list[list[Node]]:
    return [list(nodes[6 * i : 6 * i + 6]) for i in range(n)]
