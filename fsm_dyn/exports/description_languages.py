"""Mechanisms in languages of other simulators: MJCF of MuJoCo; one mode as a flat Modelica model."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final
from xml.etree.ElementTree import Comment, Element, SubElement, indent, tostring

import numpy as np

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import FsmDynError, InputError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.exports.exported_machine import ExportedMachine, prefix_of
from fsm_dyn.exports.fmi import event_indicators
from fsm_dyn.language.contacts import Contact, FeatureContact
from fsm_dyn.language.elements import DamperLoad, EulerFrame, GravityLoad, LineLoad, RotatedFrame, SpringLoad
from fsm_dyn.language.evaluate import ParameterValue, evaluate_expression
from fsm_dyn.language.expression_tree import Text, free_names
from fsm_dyn.language.expressions import parse
from fsm_dyn.language.model import Body, Mechanism
from fsm_dyn.language.shapes import BoxShape, CircleShape, PlaneShape, RoundShape, Shape, SphereShape
from fsm_dyn.programs.graph import half_integer
from fsm_dyn.programs.program import Program
from fsm_dyn.run.scene import NEWTONIAN, vector_of
from fsm_dyn.run.viewer_scene import quaternions
from fsm_dyn.runtime.abi import Event

# -- One mode as a flat Modelica model -------------------------------------------------------------------------


_WORDS: Final = {
    Event.CLOSES: "closes", Event.OPENS: "opens", Event.SLIDES: "slides", Event.STICKS: "sticks",
    Event.LEAVES: "leaves the face", Event.TRANSITION: "transition",
}  # fmt: skip
_KEYWORDS: Final = frozenset(
    """
    algorithm and annotation assert block break class connect connector constant constrainedby der discrete each else
    elseif elsewhen encapsulated end enumeration equation expandable extends external false final flow for function if
    import impure in initial inner input loop model not operator or outer output package parameter partial protected
    public pure record redeclare replaceable return stream then true type when while within time abs sign sqrt min max
    mod floor sin cos tan asin acos atan atan2 sinh cosh tanh exp log noEvent terminate
    """.split()  # noqa: SIM905
)
# conditions are the numbers 0 and 1, as in programs; equality of reals is no relation of Modelica
_TRUTH: Final = "noEvent(if {} then 1.0 else 0.0)"
_TEMPLATES: Final = {
    "neg": "-{0}", "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0}*{1}", "div": "{0}/{1}", "pow": "{0}^{1}",
    "sign": "noEvent(if {0} > 0.0 then 1.0 elseif {0} < 0.0 then -1.0 else 0.0)",
    "abs": "noEvent(abs({0}))",
    "min": "noEvent(min({0}, {1}))", "max": "noEvent(max({0}, {1}))",
    "mod": "noEvent(mod({0}, {1}))", "floor": "noEvent(floor({0}))", "atan2": "atan2({0}, {1})",
    "lt": _TRUTH.format("{0} < {1}"), "le": _TRUTH.format("{0} <= {1}"),
    "eq": _TRUTH.format("{0} <= {1} and {0} >= {1}"), "ne": _TRUTH.format("{0} < {1} or {0} > {1}"),
    "and": _TRUTH.format("{0} > 0.5 and {1} > 0.5"), "or": _TRUTH.format("{0} > 0.5 or {1} > 0.5"),
    "not": _TRUTH.format("{0} < 0.5"), "where": "noEvent(if {0} > 0.5 then {1} else {2})",
    **{name: name + "({0})" for name in ("sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
                                         "cosh", "tanh")},
}  # fmt: skip


def modelica(machine: ExportedMachine, mode: str | None = None) -> bytes:
    """Return the text of a model.

    ``mode``: name of an exported mode; that of the start by default. Other modes have a start that need not be one of
    theirs. Raises InputError: there is no such mode.
    """
    names = machine.names["mode"]
    if mode is not None and mode not in names:
        raise InputError(
            f"there is no exported mode '{mode}'", allowed=", ".join(names), remedy=did_you_mean(mode, names)
        )
    number = machine.mode if mode is None else names.index(mode)
    return "\n".join(_Text(machine, number).lines()).encode() + b"\n"


def identifier(name: str) -> str:
    """Return a name as an identifier of Modelica, quoted where it is none by itself."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name not in _KEYWORDS:
        return name
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"


def unit_text(unit: str) -> str:
    """Return a unit in the syntax of Modelica: ``kg.m2/(s.A)``."""
    return unit.replace("*", ".").replace("^", "")


class _Text:
    """The lines of a model."""

    def __init__(self, machine: ExportedMachine, mode: int) -> None:
        self.machine, self.mode = machine, mode
        _, full = machine.programs[mode]
        nodes = full.graph()[2]
        kept = {name: nodes[name].ravel().tolist() for name in ("x_dot", "guards")}
        self.program = Program.from_nodes(full.layout, kept)
        self.values: list[str] = []

    def lines(self) -> Iterator[str]:
        """Yield the lines of the model."""
        machine, mechanism = self.machine, self.machine.automaton.mechanism
        name = prefix_of(mechanism.name)
        mode = machine.names["mode"][self.mode]
        yield f"model {identifier(name)} {_string(' '.join(mechanism.summary.split()))}"
        yield f"  // Mode {mode}; it ends where a guard falls below zero. Made by fsm_dyn; SI units."
        yield from self._arguments()
        instructions = list(self._instructions())
        yield from (f"  Real {variable};" for variable, _ in instructions)
        guards = self._guards()
        yield from (f"  Real {guard} {_string(words)};" for guard, words in guards.items())
        yield "equation"
        yield from (f"  {variable} = {text};" for variable, text in instructions)
        results = {output.name: [self.values[k] for k in output.indices] for output in self.program.results}
        states = [identifier(state) for state in machine.names["state"]]
        yield from (f"  der({state}) = {rate};" for state, rate in zip(states, results["x_dot"], strict=True))
        for (guard, words), value in zip(guards.items(), results.get("guards", []), strict=True):
            yield f"  {guard} = {value};"
            yield f"  when {guard} < 0.0 then"
            yield f"    terminate({_string(words)});"
            yield "  end when;"
        yield f"end {identifier(name)};"

    def _arguments(self) -> Iterator[str]:
        """Yield declarations, and name the arguments of the program."""
        run, layout = self.machine, self.program.layout
        read = {k for _, operands in self.program.instructions for k in operands}
        read |= {k for output in self.program.results for k in output.indices}
        units = run.units
        context = dict(zip(layout.arguments[1 + layout.n_x :], run.c.tolist(), strict=True))
        states = dict(zip(run.names["state"], run.x.tolist(), strict=True))
        self.values = ["time"]
        for index, argument in enumerate(layout.arguments[1:], start=1):
            own = identifier(argument)
            self.values.append(own)
            attributes = {"unit": _string(unit_text(units[argument]))} if units.get(argument) else {}
            if argument in states:
                attributes |= {"start": repr(states[argument]), "fixed": "true"}
                yield f"  Real {own}{_modifier(attributes)};"
            elif index in read and argument in layout.w:
                yield f"  input Real {own}{_modifier(attributes | {'start': repr(context[argument])})};"
            elif index in read:  # parameters, rates of inputs, slip directions, memory
                yield f"  parameter Real {own}{_modifier(attributes)} = {context[argument]!r};"

    def _instructions(self) -> Iterator[tuple[str, str]]:
        """Yield the variables of the program with their expressions."""
        constants = dict(enumerate(self.program.constants, start=len(self.values)))
        self.values += [repr(value) if value >= 0.0 else f"({value!r})" for value in self.program.constants]
        taken = {name.strip("'") for name in self.values}
        for number, (op, operands) in enumerate(self.program.instructions, start=1):
            texts = [self.values[k] for k in operands]
            whole = half_integer(constants[operands[1]]) if op == "pow" and operands[1] in constants else None
            variable = f"z{number}" if f"z{number}" not in taken else f"z{number}_"
            self.values.append(variable)
            root = "*".join([f"sqrt({texts[0]})", *[texts[0]] * (whole or 0)])
            yield variable, root if whole is not None else _TEMPLATES[op].format(*texts)

    def _guards(self) -> Mapping[str, str]:
        """Return the guards of the mode with the words of their events."""
        tables, contacts = self.machine.tables, self.machine.names["contact"]
        begin, end = tables.mode_guard_start[self.mode : self.mode + 2].tolist()
        of_guard, names = event_indicators(self.machine)
        found = {}
        for k in range(begin, end):
            event, subject = Event(int(tables.guard_event[k])), int(tables.guard_contact[k])
            who = str(subject) if event == Event.TRANSITION else contacts[subject]
            words = f"{_WORDS[event]} {who}" if event == Event.TRANSITION else f"{who} {_WORDS[event]}"
            found[identifier(names[of_guard[k]])] = words
        return found


def _string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _modifier(attributes: Mapping[str, str]) -> str:
    named: Sequence[str] = [f"{name}={value}" for name, value in attributes.items()]
    return f"({', '.join(named)})" if named else ""


# -- MJCF: bodies, joints, stops, springs, shapes, loops as equalities -----------------------------------------


Linear = tuple[Floats, dict[str, Floats]]  # a constant, and coefficients of coordinates

_ORIGIN: Final = "O"
_CLOSE: Final = 1e-9  # relative deviation from a linear function
_LIGHT: Final = 1e-10  # m², moment of inertia of a particle over its mass: MuJoCo wants one
_SLIGHT: Final = 1e-9  # of the largest moment of inertia, in place of none
_NOTHING: Final = ("1e-12", "1e-14 1e-14 1e-14")  # mass and moments of a moving part without mass
_AXES: Final = {"x": np.array([1.0, 0.0, 0.0]), "y": np.array([0.0, 1.0, 0.0]), "z": np.array([0.0, 0.0, 1.0])}
_SHAPES: Final = (SphereShape, CircleShape, BoxShape, PlaneShape)
_FAR: Final = 10.0  # m, half the side of a drawn plane


def mjcf(mechanism: Mechanism, values: Mapping[str, ParameterValue], start: Mapping[str, float]) -> bytes:
    """Return the document.

    ``values``: parameters, SI; ``start``: coordinates at the start, the key frame ``start``, SI. Raises InputError: a
    body is not reached by turns about and displacements along axes of frames above it, linear in coordinates.
    """
    return _MujocoModel(mechanism, values).written(start)


# -- The ways of bodies: turns and displacements -------------------------------------------------------------


@dataclass(frozen=True)
class _Step:
    """One step of a way: constant (``coordinate`` empty), a hinge, a slide or a ball joint.

    ``direction`` is the axis of a turn or the vector of a displacement; a joint moves ``factor`` times its coordinate.
    """

    kind: str
    direction: tuple[float, float, float]
    coordinate: str = ""
    factor: float = 1.0


@dataclass
class _Node:
    """A place of the tree: the steps from it, and the elements that are fixed there with their offsets."""

    children: dict[_Step, _Node] = field(default_factory=dict)
    fixed: list[Element] = field(default_factory=list)

    def reached(self, steps: Sequence[_Step]) -> _Node:
        """Return the node after some steps, made if need be."""
        node = self
        for step in steps:
            node = node.children.setdefault(step, _Node())
        return node


def _triple(vector: Floats) -> tuple[float, float, float]:
    x, y, z = (float(value) + 0.0 for value in vector)
    return x, y, z


class _Ways:
    """Ways from the origin to points and frames of a mechanism."""

    def __init__(self, mechanism: Mechanism, values: Mapping[str, ParameterValue]) -> None:
        self.mechanism, self.values = mechanism, values
        self.frames = (NEWTONIAN, *mechanism.frames)

    def linear(self, function: Callable[[Mapping[str, ParameterValue]], Floats], text: Text) -> Linear:
        """Return a function of coordinates as a linear one.

        Raises InputError: it is not linear, or depends on more than parameters and coordinates.
        """
        names = [name for name in dict.fromkeys(free_names(parse(text))) if name in self.mechanism.coordinates]

        def at(numbers: Sequence[float]) -> Floats:
            return function({**self.values, **dict(zip(names, numbers, strict=True))})

        try:
            constant = at([0.0] * len(names))
            found = {name: at(row) - constant for name, row in zip(names, np.eye(len(names)).tolist(), strict=True)}
            for trial in ([0.3 + 0.7 * k for k in range(len(names))], [-1.1 + 0.4 * k for k in range(len(names))]):
                expected = constant + sum((x * found[n] for n, x in zip(names, trial, strict=True)), np.zeros(3))
                if not np.allclose(at(trial), expected, rtol=_CLOSE, atol=_CLOSE):
                    raise _refused(text, "is not linear in the coordinates")
        except (KeyError, ArithmeticError, FsmDynError) as error:
            if isinstance(error, InputError):
                raise
            raise _refused(text, "depends on more than parameters and coordinates") from None
        return constant, {name: value for name, value in found.items() if value.any()}

    def number(self, text: Text) -> tuple[float, dict[str, float]]:
        """Return a scalar as a linear function of coordinates: constant, coefficients."""
        constant, found = self.linear(lambda values: np.full(3, evaluate_expression(text, values)), text)
        return float(constant[0]), {name: float(value[0]) for name, value in found.items()}

    def offset(self, text: Text) -> dict[str, Linear]:
        """Return the parts of a vector along the axes of the frames that it is written with."""
        named = [frame for frame in self.frames if re.search(rf"\b{re.escape(frame)}\.[xyz]\b", text.text)]
        none = dict.fromkeys(self.frames, np.zeros((3, 3)))

        def part(frame: str) -> Linear:
            return self.linear(lambda values: vector_of(text, values, {**none, frame: np.eye(3)}), text)

        parts = {frame: part(frame) for frame in named}
        # axes within dot, cross and norm make a vector that is no sum of its parts
        free = [name for name in dict.fromkeys(free_names(parse(text))) if name in self.mechanism.coordinates]
        for seed in range(2):
            turns = {frame: _rotation(np.sin(7.0 * k + seed + np.arange(3.0))) for k, frame in enumerate(self.frames)}
            x = {name: math.cos(3.0 * k + seed) for k, name in enumerate(free)}
            whole = vector_of(text, {**self.values, **x}, turns) if parts or free else np.zeros(3)
            found = np.zeros(3)
            for frame, (constant, moved) in parts.items():
                found += turns[frame] @ (constant + sum((x[n] * v for n, v in moved.items()), np.zeros(3)))
            if not np.allclose(found, whole, rtol=_CLOSE, atol=_CLOSE):
                raise _refused(text, "depends on angles between frames")
        return parts

    def path(self, frame: str) -> list[str]:
        """Return the frames from N to a frame, both included."""
        found = [frame]
        while found[-1] != NEWTONIAN:
            found.append(self.mechanism.frames[found[-1]].parent)
        return found[::-1]

    def turns(self, frame: str) -> Iterator[_Step]:
        """Yield the turns from the parent of a frame to it."""
        stated = self.mechanism.frames[frame]
        if isinstance(stated, EulerFrame):
            yield _Step("ball", (0.0, 0.0, 0.0), stated.euler)
            return
        assert isinstance(stated, RotatedFrame)
        for letter, angle in stated.about_body_axes(stated.rotations):
            constant, coefficients = self.number(angle)
            if constant:
                yield _Step("turn", _triple(constant * _AXES[letter]))
            for name, factor in coefficients.items():
                sign = math.copysign(1.0, factor)
                yield _Step("hinge", _triple(sign * _AXES[letter]), name, abs(factor))

    def to(self, point: str, frame: str | None) -> list[_Step]:
        """Return the steps to a point, turned with a frame; without one with the last frame that the point is given in.

        Raises InputError: the point is given by axes of a frame that is none above.
        """
        parts: list[tuple[str, Linear]] = []
        chain = [point]
        while chain[-1] != _ORIGIN:
            chain.append(self.mechanism.points[chain[-1]].origin)
        for name in chain[-2::-1]:
            parts += self.offset(self.mechanism.points[name].at).items()
        path = self.path(frame or max((part for part, _ in parts), key=lambda f: len(self.path(f)), default=NEWTONIAN))
        for part, _ in parts:
            if part not in path:
                raise InputError(
                    f"the point '{point}' cannot be placed in a tree of bodies: it is given by axes of '{part}', which"
                    f" is no frame above '{path[-1]}'", self.mechanism.points[point].where,
                    remedy="give it by frames that it turns with",
                )  # fmt: skip
        steps: list[_Step] = []
        for turned in path:
            steps += self.turns(turned) if turned != NEWTONIAN else ()
            for part, (constant, moved) in parts:
                if part != turned:
                    continue
                for name, vector in moved.items():
                    length = float(np.linalg.norm(vector))
                    steps.append(_Step("slide", _triple(vector / length), name, length))
                if constant.any():
                    steps.append(_Step("move", _triple(constant)))
        return steps


def _refused(text: Text, reason: str) -> InputError:
    return InputError(
        f"MuJoCo has no joint for this motion: it {reason}", text.where, found=text.text,
        allowed="sums of constants and multiples of coordinates",
    )  # fmt: skip


# -- The document --------------------------------------------------------------------------------------------


def _words(numbers: Any) -> str:
    return " ".join(repr(float(number) + 0.0) for number in np.ravel(numbers))


class _MujocoModel:
    """A model of MuJoCo under construction: the tree, then joints, equalities, tendons, contact pairs."""

    def __init__(self, mechanism: Mechanism, values: Mapping[str, ParameterValue]) -> None:
        self.mechanism, self.values = mechanism, values
        self.ways, self.tree = _Ways(mechanism, values), _Node()
        self.joints: dict[str, Element] = {}  # of coordinates
        self.size = 0  # numbers of positions, four of a ball joint
        self.key: list[tuple[str, float]] = []  # coordinate and factor of each number
        self.lacking: list[str] = []
        self.numbers = itertools.count(1)
        self.root = Element("mujoco", model=mechanism.name)
        SubElement(self.root, "compiler", angle="radian", autolimits="true", balanceinertia="false")
        self.option = SubElement(self.root, "option")
        self.world = SubElement(self.root, "worldbody")
        self.parts = {tag: Element(tag) for tag in ("tendon", "equality", "contact")}

    def written(self, start: Mapping[str, float]) -> bytes:
        """Return the document with a key frame."""
        for body in self.mechanism.bodies.values():
            self._add_body(body)
        for shape in self.mechanism.shapes.values():
            self._add_shape(shape)
        self._add_loads()
        self._add_loops()
        self._grow(self.world, self.tree)
        self._add_laws()
        self._add_contacts()
        self._add_rows()
        self.root.extend(part for part in self.parts.values() if len(part))
        if self.key:
            pose = [factor * start[name] for name, factor in self.key]
            SubElement(SubElement(self.root, "keyframe"), "key", name="start", qpos=_words(pose))
        told = "".join(f"\n  * {line.replace('--', '- -')}" for line in dict.fromkeys(self.lacking))
        self.root.insert(0, Comment(f" Made by fsm_dyn. MuJoCo does not say:{told or ' nothing is left out.'}\n"))
        indent(self.root)
        text: bytes = tostring(self.root, encoding="utf-8")
        return text + b"\n"

    def fix(self, point: str, frame: str | None, element: Element) -> None:
        """Fix an element to a place; a last constant displacement is its own position."""
        steps = self.ways.to(point, frame)
        if steps and steps[-1].kind == "move":
            element.set("pos", _words(steps.pop().direction))
        self.tree.reached(steps).fixed.append(element)

    def _add_body(self, body: Body) -> None:
        element = Element("body", name=body.name)
        mass = evaluate_expression(body.mass, self.values)
        steps = self.ways.to(body.center, body.frame)
        place = np.array(steps[-1].direction) if steps and steps[-1].kind == "move" else np.zeros(3)
        inertia = self._inertia(body, mass)
        if mass > 0.0:
            xx, yy, zz, xy, xz, yz = (inertia[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))
            SubElement(
                element, "inertial", pos=_words(place), mass=repr(mass), fullinertia=_words([xx, yy, zz, xy, xz, yz])
            )
        elif body.inertia:
            self.lacking.append(f"the inertia of {body.name}, which has no mass")
        if steps and steps[-1].kind == "move":
            steps.pop()
        self.tree.reached(steps).fixed.append(element)

    def _inertia(self, body: Body, mass: float) -> Floats:
        """Return the tensor about the centre (3, 3), kg m², with moments that a planar model leaves out."""
        found = {name: evaluate_expression(text, self.values) for name, text in body.inertia.items()}
        tensor = np.array([[found.get("".join(sorted(i + j)), 0.0) for j in "xyz"] for i in "xyz"])
        if body.about is not None and body.frame is not None:
            ways = [self.ways.to(point, body.frame) for point in (body.center, body.about)]
            ends = [way.pop().direction if way and way[-1].kind == "move" else (0.0, 0.0, 0.0) for way in ways]
            if ways[0] != ways[1]:
                raise InputError(f"the inertia of '{body.name}' is about a point that moves in it", body.where)
            d = np.array(ends[0]) - np.array(ends[1])
            stated = (tensor != 0.0) | np.diag(tensor).all()
            tensor = tensor - mass * np.where(stated, d @ d * np.eye(3) - np.outer(d, d), 0.0)
        if not tensor.any():
            return _LIGHT * mass * np.eye(3)
        moments = np.diag(tensor)
        given, largest = np.count_nonzero(moments), float(moments.max())
        if given < 3:  # MuJoCo wants three, each at most the sum of the others
            self.lacking.append(f"that {body.name} has only {given} of three moments of inertia")
            least = 0.5 * largest if given == 1 else largest - float(moments[moments > 0.0].min())
            tensor = tensor + np.diag(np.where(moments == 0.0, least + _SLIGHT * largest, 0.0))
        return tensor

    def _grow(self, above: Element, node: _Node) -> None:
        """Write the bodies of a tree; joints in a row belong to one body."""
        for element in node.fixed:
            above.append(element)
        for first, child in node.children.items():
            place, turn = np.zeros(3), np.eye(3)
            joints: list[_Step] = []
            step, at = first, child
            while True:
                if step.kind in ("move", "turn") and not joints:
                    place = place + turn @ step.direction if step.kind == "move" else place
                    turn = turn @ _rotation(np.array(step.direction)) if step.kind == "turn" else turn
                else:
                    joints.append(step)
                if at.fixed or len(at.children) != 1:
                    break
                following = next(iter(at.children))
                if joints and following.kind in ("move", "turn"):
                    break
                step, at = following, at.children[following]
            x, y, z, w = quaternions(turn[None])[0]
            body = SubElement(
                above, "body", name=f"part{next(self.numbers)}", pos=_words(place), quat=_words([w, x, y, z])
            )
            for joint in joints:
                self._add_joint(body, joint)
            carried = any(e.tag == "body" and e.find("inertial") is not None for e in at.fixed)
            if joints and not carried:
                SubElement(body, "inertial", pos="0 0 0", mass=_NOTHING[0], diaginertia=_NOTHING[1])
            self._grow(body, at)

    def _add_joint(self, body: Element, step: _Step) -> None:
        again = step.coordinate in self.joints
        name = f"{step.coordinate}_{next(self.numbers)}" if again else step.coordinate
        joint = SubElement(body, "joint", name=name, type=step.kind)
        if step.kind == "ball":
            self.key += [(f"{step.coordinate}{k}", 1.0) for k in range(4)]
        else:
            joint.set("axis", _words(step.direction))
            self.key.append((step.coordinate, step.factor))
        if again:
            first = float(self.joints[step.coordinate].get("factor", "1"))
            ratio = f"0 {step.factor / first!r} 0 0 0"
            SubElement(self.parts["equality"], "joint", joint1=name, joint2=step.coordinate, polycoef=ratio)
            self.lacking.append(f"that {step.coordinate} moves {name} exactly: a soft equality")
        else:
            self.joints[step.coordinate] = joint
            if step.factor != 1.0:
                self.lacking.append(f"{step.coordinate} itself: the joint moves by {step.factor!r} times it")

    # -- shapes, loads, loops, laws ------------------------------------------------------------------------------

    def _add_shape(self, shape: Shape) -> None:
        number = {"contype": "0", "conaffinity": "0", "name": shape.name, "mass": "0"}
        inside = isinstance(shape, RoundShape) and shape.inside
        if shape.repeat is not None or inside or not isinstance(shape, _SHAPES):
            self.lacking.append(f"the shape {shape.name} ({shape.kind})")
            return
        element = Element("geom", number)
        if isinstance(shape, RoundShape):
            element.attrib |= {"type": "sphere", "size": repr(evaluate_expression(shape.radius, self.values))}
        elif isinstance(shape, BoxShape):
            sizes = [0.5 * evaluate_expression(text, self.values) for text in shape.size]
            element.attrib |= {"type": "box", "size": _words(sizes)}
        elif isinstance(shape, PlaneShape):
            parts = self.ways.offset(shape.side)
            if set(parts) != {shape.frame} or parts[shape.frame][1]:
                self.lacking.append(f"the plane {shape.name}, whose side is given by another frame")
                return
            element.attrib |= {"type": "plane", "size": f"{_FAR} {_FAR} 1", "zaxis": _words(parts[shape.frame][0])}
        self.fix(shape.origin, shape.frame, element)

    def _add_loads(self) -> None:
        gravity = np.zeros(3)
        for load in self.mechanism.loads:
            if isinstance(load, GravityLoad) and load.on is None:
                try:
                    constant, moved = self.ways.offset(load.value)[NEWTONIAN]
                except (KeyError, InputError):
                    constant, moved = np.zeros(3), {"": np.zeros(3)}
                if moved:
                    self.lacking.append(f"the load {load.name}, which is not constant")
                gravity = gravity + constant
            elif isinstance(load, SpringLoad | DamperLoad) and load.between is not None:
                self._add_tendon(load, load.between)
            elif not isinstance(load, SpringLoad | DamperLoad):
                self.lacking.append(f"the load {load.name} ({load.kind})")
        self.option.set("gravity", _words(gravity))
        self.lacking += [f"the input {name}" for name in self.mechanism.inputs]

    def _coefficients(self, load: LineLoad) -> dict[str, float]:
        """Return stiffness, damping and free length of a spring or damper, SI."""
        texts = {word: getattr(load, word, None) for word in ("stiffness", "damping", "free")}
        return {word: evaluate_expression(text, self.values) for word, text in texts.items() if text is not None}

    def _add_tendon(self, load: LineLoad, points: tuple[str, str]) -> None:
        try:
            found = self._coefficients(load)
        except (KeyError, FsmDynError):
            self.lacking.append(f"the load {load.name}, whose coefficients are not constant")
            return
        sites = [f"{load.name}_{end}" for end in ("begin", "end")]
        for site, point in zip(sites, points, strict=True):
            self.fix(point, None, Element("site", name=site))
        about = {"name": load.name, "stiffness": repr(found.get("stiffness", 0.0))}
        about |= {"damping": repr(found.get("damping", 0.0)), "springlength": repr(found.get("free", 0.0))}
        tendon = SubElement(self.parts["tendon"], "spatial", about)
        for site in sites:
            SubElement(tendon, "site", site=site)

    def _add_loops(self) -> None:
        """Close loops at two points; a hinge in a plane needs no more."""
        for joint in self.mechanism.joints.values():
            if not joint.rows:
                continue
            if joint.kind not in ("revolute", "ball") or len(joint.at) != 2:
                self.lacking.append(f"the loop joint {joint.name} ({joint.kind})")
                continue
            sites = [f"{joint.name}_{end}" for end in ("parent", "child")]
            for site, point, frame in zip(sites, joint.at, (joint.parent, joint.child), strict=True):
                self.fix(point, frame, Element("site", name=site))
            SubElement(self.parts["equality"], "connect", name=joint.name, site1=sites[0], site2=sites[1])
            self.lacking.append(
                f"the loop {joint.name} exactly: a soft equality"
                + (", without its axis" if joint.kind == "revolute" else "")
            )

    def _add_laws(self) -> None:
        """Add springs and dampers of coordinates."""
        for load in self.mechanism.loads:
            if not isinstance(load, SpringLoad | DamperLoad) or load.coordinate is None:
                continue
            name = load.coordinate.text.strip()
            joint = self.joints.get(name)
            try:
                found = self._coefficients(load)
            except (KeyError, FsmDynError):
                found = {}
            held = joint is not None and joint.get("stiffness") is not None and "stiffness" in found
            if joint is None or held or not found or any(factor != 1.0 for own, factor in self.key if own == name):
                self.lacking.append(f"the load {load.name} ({load.kind})")
                continue
            if "stiffness" in found:
                joint.attrib |= {"stiffness": repr(found["stiffness"]), "springref": repr(found.get("free", 0.0))}
            if "damping" in found:
                joint.set("damping", repr(float(joint.get("damping", "0")) + found["damping"]))

    def _add_contacts(self) -> None:
        """Add limits of joints from contacts of one coordinate, and pairs of shapes."""
        geoms = {geom.get("name") for geom in self.root.iter("geom")}
        paired: set[tuple[str, ...]] = set()
        for contact in self.mechanism.contacts.values():
            name = contact.entry or contact.name
            pair = tuple(one.shape for one in contact.features) if isinstance(contact, FeatureContact) else ()
            if self._limits(contact):
                self.lacking.append(f"the stop {name} exactly: a soft limit without restitution")
            elif pair and geoms.issuperset(pair) and contact.contact_law.rigid:
                if pair not in paired:  # one for all features of two shapes
                    self._add_pair(contact, pair)
                paired.add(pair)
                self.lacking.append(f"the contact {name} exactly: soft, without restitution and static friction")
            else:
                self.lacking.append(f"the contact {name} ({contact.kind})")

    def _limits(self, contact: Contact) -> bool:
        """Limit a joint where the gap is that of one coordinate; return whether it is."""
        if contact.gap is None or contact.bilateral or not contact.contact_law.rigid or contact.has_friction:
            return False
        try:
            constant, found = self.ways.number(contact.gap)
        except (FsmDynError, KeyError, TypeError):
            return False
        if len(found) != 1:
            return False
        ((name, slope),) = found.items()
        joint = self.joints.get(name)
        if joint is None or any(factor != 1.0 for own, factor in self.key if own == name):
            return False
        low, high = map(float, (joint.get("range") or "-1e10 1e10").split())
        limit = -constant / slope
        joint.set("range", _words([max(low, limit), high] if slope > 0.0 else [low, min(high, limit)]))
        return True

    def _add_pair(self, contact: Contact, pair: Sequence[str]) -> None:
        element = SubElement(self.parts["contact"], "pair", geom1=pair[0], geom2=pair[1])
        try:
            slides = 0.0 if contact.kinetic is None else evaluate_expression(contact.kinetic, self.values)
        except (KeyError, FsmDynError):
            slides = 0.0
        element.attrib |= {"friction": f"{slides!r} {slides!r} 0 0 0", "condim": "3" if slides else "1"}

    def _add_rows(self) -> None:
        """Add constraints that couple two coordinates."""
        for row in self.mechanism.constraints.values():
            if row.joint and any(row.name in joint.rows for joint in self.mechanism.joints.values()):
                continue
            try:
                constant, found = self.ways.number(row.expression) if row.kind == "position" else (0.0, {})
            except (FsmDynError, KeyError, TypeError):
                found = {}
            plain = {own for own, factor in self.key if factor == 1.0}
            if not 1 <= len(found) <= 2 or not plain.issuperset(found):
                self.lacking.append(f"the constraint {row.name}")
                continue
            (name, a), *others = found.items()
            element = SubElement(self.parts["equality"], "joint", name=row.name, joint1=name)
            factor = -others[0][1] / a if others else 0.0
            element.set("polycoef", _words([-constant / a, factor, 0.0, 0.0, 0.0]))
            if others:
                element.set("joint2", others[0][0])
            self.lacking.append(f"the constraint {row.name} exactly: a soft equality")


def _rotation(turn: Floats) -> Floats:
    """Return the rotation matrix of a turn, angle times axis (rad)."""
    angle = float(np.linalg.norm(turn))
    x, y, z = turn / angle
    k = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    found: Floats = np.eye(3) + math.sin(angle) * k + (1.0 - math.cos(angle)) * (k @ k)
    return found
