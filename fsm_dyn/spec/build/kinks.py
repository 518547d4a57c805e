"""Kinks of held rows, written out: which side of a surface the motion is on becomes memory.

``abs sign min max mod floor where`` of coordinates in a row that is held, or in the gap of a rigid contact, are
surfaces in which the row's direction jumps.  On either side the row is smooth; a transition crosses the surface, with
the impulse by which the speeds then satisfy the row beyond (docs/theory.md, "Kinks of held rows").
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import REFERENCE_FUNCTIONS, Text, nodes, parse
from fsm_dyn.expressions.keywords import CASE_FUNCTIONS
from fsm_dyn.spec.checks.unit_usage import texts_of
from fsm_dyn.spec.constraint import Constraint
from fsm_dyn.spec.contact import Contact
from fsm_dyn.spec.frame import Frame
from fsm_dyn.spec.model import DiscreteVariable, Mechanism, Point, TransitionSpec


def with_kinks(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism with a memory and transitions for every kink of its held rows and rigid gaps.

    Raises
    ------
    ModelError
        A choice is between what is no expression of coordinates.
    """
    coordinates = frozenset(map(str, mechanism.coordinate_names))
    memory, transitions = dict(mechanism.memory), list(mechanism.transitions)

    def smooth(name: str, text: Text) -> Text:
        rewriting = _Rewriting(str(name), text, coordinates, frozenset({*memory, *mechanism.parameters, *coordinates}))
        tree = rewriting.smooth(parse(text))
        memory.update(rewriting.memory)
        transitions.extend(rewriting.transitions)
        return Text(_text(tree), text.where) if rewriting.memory else text

    def smooth_row(row: Constraint) -> Constraint:
        return row if row.kinematic else replace(row, expression=smooth(row.name, row.expression))

    _refuse_in_bodies(mechanism, coordinates)
    constraints = {name: smooth_row(row) for name, row in mechanism.constraints.items()}
    contacts = {
        name: replace(contact, gap=smooth(name, contact.gap)) if _is_rigid(contact) and contact.gap else contact
        for name, contact in mechanism.contacts.items()
    }
    if len(memory) == len(mechanism.memory):
        return mechanism
    return replace(
        mechanism, constraints=constraints, contacts=contacts, memory=memory, transitions=tuple(transitions)
    )  # fmt: skip


def _refuse_in_bodies(mechanism: Mechanism, coordinates: frozenset[str]) -> None:
    """Refuse choices of coordinates in the places of bodies and of points in held rows: nothing gives their impulse."""
    held = [row.expression for row in mechanism.constraints.values()]
    held += [contact.gap for contact in mechanism.contacts.values() if _is_rigid(contact) and contact.gap]
    points = {str(body.center) for body in mechanism.bodies.values()}
    points |= {name for text in held for name in nodes.free_names(parse(text)) if name in mechanism.points}
    frames = {str(body.frame) for body in mechanism.bodies.values() if body.frame is not None}
    while not (above := {str(mechanism.points[name].origin) for name in points if name in mechanism.points}) <= points:
        points |= above
    while not (above := {str(mechanism.frames[name].parent) for name in frames if name in mechanism.frames}) <= frames:
        frames |= above
    places: list[Point | Frame] = [mechanism.points[name] for name in sorted(points) if name in mechanism.points]
    places += [mechanism.frames[name] for name in sorted(frames) if name in mechanism.frames]
    for place in places:
        for text in texts_of(place):
            tree = parse(text)
            chooses = [node for node in nodes.walk(tree) if _chooses(node)]
            if any(not coordinates.isdisjoint(nodes.free_names(node)) for node in chooses):
                raise ModelError(
                    f"'{place.name}' has a kink, in which a body or a held row would jump without an impulse",
                    text.where,
                    found=text.text, allowed="smooth expressions of coordinates in the places of bodies and held rows",
                    remedy="write the kink into a `gap` or a `position` constraint",
                )  # fmt: skip


def _chooses(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Compare) or (isinstance(node, nodes.Call) and node.function in CASE_FUNCTIONS)


def _is_motion(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Axis) or (isinstance(node, nodes.Call) and node.function in REFERENCE_FUNCTIONS)


def _is_rigid(contact: Contact) -> bool:
    return contact.contact_law.rigid and not contact.contact_law.friction_only


@dataclass
class _Rewriting:
    """One expression of which every choice of coordinates becomes a choice of memory."""

    name: str
    text: Text
    coordinates: frozenset[str]
    taken: frozenset[str]
    memory: dict[str, DiscreteVariable] = field(default_factory=dict)
    transitions: list[TransitionSpec] = field(default_factory=list)
    known: dict[nodes.Node, str] = field(default_factory=dict)  # memory of surfaces
    start: Text | None = None  # of the memory made last

    def smooth(self, node: nodes.Node) -> nodes.Node:
        """Return an expression without choices of coordinates."""
        if not self._moves(node):
            return node
        if isinstance(node, nodes.Compare):
            if node.op in ("==", "!="):
                return node  # of no length: the row holds on both sides of it
            low, high = (node.left, node.right) if node.op in ("<", "<=") else (node.right, node.left)
            return self._is_beyond(nodes.Binary("-", self.smooth(high), self.smooth(low)), node)
        if not isinstance(node, nodes.Call) or node.function not in CASE_FUNCTIONS:
            return _with_children(node, [self.smooth(child) for child in nodes.children(node)])
        parts = [self.smooth(part) for part in node.arguments]
        match node.function:
            case "abs":
                return nodes.Binary("*", nodes.Name(self._side(parts[0], node)), parts[0])
            case "sign":
                return nodes.Name(self._side(parts[0], node))
            case "mod":
                turns = nodes.Name(self._count(nodes.Binary("/", parts[0], parts[1]), node))
                return nodes.Binary("-", parts[0], nodes.Binary("*", turns, parts[1]))
            case "floor":
                return nodes.Name(self._count(parts[0], node))
        least = node.function == "min"
        first = self._is_beyond(nodes.Binary("-", *(reversed(parts) if least else parts)), node)
        return nodes.Call("where", (first, parts[0], parts[1]))

    def _moves(self, node: nodes.Node) -> bool:
        """Whether an expression depends on coordinates and has a choice in it."""
        parts = nodes.walk(node)
        moves = not self.coordinates.isdisjoint(nodes.free_names(node)) or any(map(_is_motion, parts))
        return moves and any(map(_chooses, parts))

    def _is_beyond(self, surface: nodes.Node, node: nodes.Node) -> nodes.Compare:
        return nodes.Compare(">", nodes.Name(self._side(surface, node)), nodes.Number(0.0, text="0"))

    def _side(self, surface: nodes.Node, node: nodes.Node) -> str:
        """Return the memory that is 1 where a surface's expression is positive, and -1 where it is negative."""
        name = self.known.get(surface)
        if name is None:
            text = _text(surface)
            name = self._made(surface, node, f"where({text} < 0, -1, 1)")
            self._cross(name, f"{name}*({text})", "falling", f"-{name}", node)
        return name

    def _count(self, quotient: nodes.Node, node: nodes.Node) -> str:
        """Return the memory that is the whole part of a quotient."""
        name = self.known.get(quotient)
        if name is None:
            text = _text(quotient)
            name = self._made(quotient, node, f"floor({text})")
            self._cross(name, f"{name} + 1 - ({text})", "falling", f"{name} + 1", node)
            self._cross(name, f"({text}) - {name}", "falling", f"{name} - 1", node)
        return name

    def _made(self, surface: nodes.Node, node: nodes.Node, start: str) -> str:
        if any(map(_is_motion, nodes.walk(surface))):
            raise ModelError(
                f"the row of '{self.name}' has a kink where something other than an expression of coordinates decides",
                self.text.where,
                found=_text(node),
                allowed=f"{', '.join(sorted(CASE_FUNCTIONS))} and where of coordinates, parameters, inputs and t",
                remedy="write what decides in coordinates, without pos, vel, omega and rate",
            )
        number = len(self.known) + 1
        name = f"{self.name}_kink" if number == 1 else f"{self.name}_kink{number}"
        if name in self.taken:
            raise ModelError(
                f"the kink of '{self.name}' makes '{name}', which already exists", self.text.where, remedy="rename it"
            )
        self.known[surface] = name
        self.memory[name] = DiscreteVariable(name, 1, where=self.text.where)
        self.start = Text(start, self.text.where)
        return name

    def _cross(self, name: str, when: str, crossing: str, after: str, node: nodes.Node) -> None:
        self.transitions.append(
            TransitionSpec(
                f"{name}_{len(self.transitions) + 1}", "*", when=Text(when, self.text.where), crossing="falling",
                set={name: Text(after, self.text.where)}, because=f"{self.name} passes the kink of {_text(node)}",
                kink=self.start, where=self.text.where,
            )
        )  # fmt: skip


def _with_children(node: nodes.Node, parts: list[nodes.Node]) -> nodes.Node:
    match node:
        case nodes.Call():
            return nodes.Call(node.function, tuple(parts))
        case nodes.Unary():
            return nodes.Unary(node.op, parts[0])
        case nodes.Binary():
            return nodes.Binary(node.op, parts[0], parts[1])
        case nodes.Boolean():
            return nodes.Boolean(node.op, tuple(parts))
    return node


def _text(node: nodes.Node) -> str:
    """Return an expression as text that is parsed to the same tree."""
    match node:
        case nodes.Number():
            return f"({node.text or repr(node.value)})"
        case nodes.Name():
            return node.id
        case nodes.Axis():
            return f"{node.frame}.{node.axis}"
        case nodes.Index():
            return f"{node.name}[{node.index}]"
        case nodes.Call():
            return f"{node.function}({', '.join(map(_text, node.arguments))})"
        case nodes.Unary():
            return f"({node.op} {_text(node.operand)})"
        case nodes.Boolean():
            return "(" + f" {node.op} ".join(map(_text, node.operands)) + ")"
    return f"({_text(node.left)} {node.op} {_text(node.right)})"
