"""Base class of all forms, and their leaves: a node of the tree becomes a value with its place."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ModelWrapValidatorHandler,
    PlainValidator,
    PrivateAttr,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from fsm_dyn.core.errors import NOWHERE, Location, ModelError, did_you_mean
from fsm_dyn.language.expression_tree import FUNCTIONS, MAX_NAME_LENGTH, RESERVED_NAMES, Text, is_name
from fsm_dyn.language.yaml import LocatedList, LocatedMapping, LocatedStr, Scalar, Tree, describe

# -- An example of every part of a model ---------------------------------------------------------------------
#
# An example of every mapping of a model, shown in messages about malformed ones (docs/language.md).

#: ``what`` of a form, or of a section, and a line of a model file.
EXAMPLES: Final = {
    "parameters": "parameters: {m: 2 kg, l: 0.3 m}",
    "coordinates": "coordinates: {x: m, q: rad}",
    "frames": "frames: {B: {rotate: {z: q}}}",
    "points": "points: {P: {from: O, at: x*N.x}}",
    "bodies": "bodies: {ball: {center: P, mass: 1 kg}}",
    "joints": "joints: {hinge: {revolute: {child: B, at: [O, P], axis: N.z}}}",
    "speeds": "speeds: {v: rate(x)}",
    "constraints": "constraints: {wheel: {velocity: rate(x) - r*rate(q)}}",
    "shapes": "shapes: {ground: {line: {along: N.x}, side: N.y}}",
    "contacts": "contacts: {stop: {gap: 0.3 m - x}}",
    "inputs": "inputs: {push: N}",
    "schedule": "schedule: {push: 3 N}",
    "a scenario": "schedule: {push: 3 N}",
    "controllers": "controllers: {servo: {period: 1 ms, outputs: {push: {unit: N, value: -k*x}}}}",
    "a controller": "servo: {period: 1 ms, outputs: {push: {unit: N, value: -k*x}}}",
    "the inputs of a controller": "inputs: {e: goal - x}",
    "the memory of a controller": "memory: {last: {unit: m, update: e}}",
    "the outputs of a controller": "outputs: {push: {unit: N, value: -k*x}}",
    "an input of a controller": "e: {value: goal - x, quantum: 10 um}",
    "a memory of a controller": "last: {unit: m, update: e}",
    "an output of a controller": "push: {unit: N, value: -k*x}",
    "modes": "modes: {locked: {bolt: stick}}",
    "a mode": "locked: {bolt: stick}",
    "initial": "initial: {x: 0.1 m}",
    "outputs": "outputs: {height: x + 0.1 m}",
    "requirements": "requirements: {rests: eventually x >= 0.3 m before 2 s}",
    "names": "names: {stop: cart on stop}",
    "the words for a part": "stop: {is: cart on stop, subject: cart, object: stop}",
    "phases": "phases: {rest: {when: stop is closed}, motion: {when: otherwise}}",
    "a phase": "rest: {when: stop is closed, colour: grey}",
    "ports": "ports: {hand: {coordinate: x}}",
    "a parameter with a tolerance": "high: {value: 0.5 m, tolerance: [-0.5 mm, 1 mm]}",
    "a coordinate": "q: {unit: rad, range: [0, 90 deg]}",
    "a frame": "B: {parent: N, rotate: {z: q}}",
    "rotate": "rotate: {z: q}",
    "a point": "P: {from: O, at: x*N.x}",
    "an inertia": "inertia: {zz: 0.01 kg*m^2}",
    "a body": "ball: {center: P, mass: 1 kg}",
    "a constraint": "wheel: {velocity: rate(x) - r*rate(q)}",
    "a joint": "hinge: {revolute: {child: B, at: [O, P], axis: N.z}}",
    "a revolute joint": "revolute: {child: B, at: [O, P], axis: N.z}",
    "a prismatic joint": "prismatic: {child: B, at: [O, P], axis: N.x}",
    "a backlash": "backlash: {value: 0.5 deg, restitution: 0.2}",
    "a clearance": "clearance: {value: 20 um, friction: 0.1, radius: 4 mm}",
    "a helical joint": "helical: {child: B, at: P, axis: N.z, lead: 4 mm, radius: 8 mm, friction: 0.2}",
    "a contact": "stop: {gap: 0.3 m - x}",
    "friction": "friction: {static: 0.5, kinetic: 0.4}",
    "a joint stop": "joint_stop: {coordinate: q, lower: 0, upper: 90 deg}",
    "a compliance": "compliant: {stiffness: 2e4 N/m, dissipation: 0.1 s/m}",
    "dry friction": "dry_friction: {speed: rate(x), static: 3 N, kinetic: 2 N}",
    "a lock": "lock: {position: x, holds_to: 5 N}",
    "a one-way clutch": "one_way: {coordinate: q}",
    "a load": "{force: push*N.x, at: P}",
    "a spring": "spring: {between: [O, P], stiffness: 200 N/m, free: 0.1 m}",
    "a damper": "damper: {coordinate: x, damping: 3 N*s/m}",
    "a torsion spring": "torsion_spring: {coordinate: q, stiffness: 0.2 N*m/rad}",
    "an impulse": "{linear: 0.2 N*s*N.x, at: P}",
    "a transition": "{from: locked, to: free, on: bolt slides}",
    "a port": "hand: {coordinate: x}",
    "a requirement": "rests: {formula: eventually x >= 0.3 m before 2 s, text: It arrives.}",
    "a shape": "ground: {line: {along: N.x}, side: N.y}",
    "a line": "line: {along: N.x}",
    "a segment": "segment: {points: [[0, 0], [1 m, 0]]}",
    "a circle": "circle: {frame: B, center: P, radius: 3 cm}",
    "an arc": "arc: {frame: B, center: P, radius: 3 cm, angles: [0, 90 deg]}",
    "a polygon": "polygon: {frame: B, points: [[0, 0], [1 m, 0], [0, 1 m]]}",
    "a curve": "curve: {frame: B, r: r + 2 cm*cos(2*phi)}",
    "a sphere": "sphere: {frame: B, center: P, radius: 3 cm}",
    "a plane": "plane: {frame: N, from: O}",
    "a disk": "disk: {frame: B, center: P, axis: B.z, radius: 3 cm}",
    "a box": "box: {frame: B, center: P, size: [30 cm, 20 cm, 10 cm]}",
    "a repetition": "repeat: {count: 8, about: P}",
    "a component": "lever: {file: lever.yaml}",
    "view": "view: {ball: {circle: {radius: 3 cm}}}",
}


# -- Leaves of the forms: each turns a node of the tree into a value with its place --------------------------
#
# They raise `ModelError` themselves: pydantic passes exceptions other than ``ValueError`` through, so the place, the
# found and the allowed values arrive unchanged.

MAX_TEXT = 2000

_EXPRESSION_SCHEMA: dict[str, Any] = {"type": ["string", "number"], "description": "expression, with units"}
_NAME_SCHEMA: dict[str, Any] = {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_]*$"}


def as_section(tree: Tree, what: str) -> LocatedMapping:
    """Return `tree` as a mapping; no value counts as an empty one."""
    if isinstance(tree, Scalar) and tree.value is None:
        return LocatedMapping({}, tree.where)
    if not isinstance(tree, LocatedMapping):
        example = f"such as `{EXAMPLES[what]}`" if what in EXAMPLES else ""
        raise ModelError(
            f"{what} must be a mapping", tree.where, found=describe(tree), allowed="key: value", remedy=example
        )
    return tree


def as_items(tree: Tree, what: str) -> LocatedList:
    """Return `tree` as a list; no value counts as an empty one."""
    if isinstance(tree, Scalar) and tree.value is None:
        return LocatedList([], tree.where)
    if not isinstance(tree, LocatedList):
        raise ModelError(f"{what} must be a list", tree.where, found=describe(tree), allowed="[ ... ] or lines with -")
    return tree


def expression(tree: Tree) -> Text:
    """Return the text of an expression; numbers keep the characters they were written with."""
    if isinstance(tree, Scalar) and not isinstance(tree.value, bool) and tree.value is not None:
        if isinstance(tree.value, float) and not math.isfinite(tree.value):
            raise ModelError("a finite number is wanted", tree.where, found=tree.text)
        hexadecimal = isinstance(tree.value, int) and not tree.text.strip("+-").isdigit()
        return Text(str(tree.value) if hexadecimal else tree.text, tree.where)
    remedy = "quote expressions that contain commas" if isinstance(tree, LocatedList) else ""
    raise ModelError(
        "a number or an expression is wanted",
        tree.where,
        found=describe(tree),
        allowed='such as 0.35 m, "2*L1"',
        remedy=remedy,
    )


def assignment(tree: Tree) -> Text:
    """Return the text of an expression or of a boolean."""
    if isinstance(tree, Scalar) and isinstance(tree.value, bool):
        return Text("true" if tree.value else "false", tree.where)
    return expression(tree)


def name(tree: Tree | LocatedStr) -> LocatedStr:
    """Return the name, in a value or as a key, of another entry of the model."""
    text = str(tree) if isinstance(tree, LocatedStr) else _text_of(tree, "a name")
    if not is_name(text):
        raise bad_name(LocatedStr(text, tree.where))
    return LocatedStr(text, tree.where)


def key(tree: object) -> LocatedStr:
    """Return a key with a new name; its form is checked here, a later check refuses repeated names."""
    word = tree if isinstance(tree, LocatedStr) else LocatedStr(str(tree), NOWHERE)
    if not is_name(word):
        raise bad_name(word)
    if word in RESERVED_NAMES:
        raise ModelError(
            f"the name {str(word)!r} is reserved: it is {_meaning(word)} of the language",
            word.where,
            found=word,
            allowed="any other name",
            remedy=f"call it {word}1 or {word}_value",
        )
    return word


def contact_key(tree: object) -> LocatedStr:
    """Return the name of a new contact: no expression uses it, so that it may be called as a function is, ``floor``."""
    word = tree if isinstance(tree, LocatedStr) else LocatedStr(str(tree), NOWHERE)
    return word if word in FUNCTIONS else key(word)


def _meaning(word: str) -> str:
    """Return the meaning of a reserved name."""
    if word in FUNCTIONS:
        return "a function"
    known = {"N": "the inertial frame", "O": "its origin", "t": "the time"}
    return known.get(word, "a word")


def new_name(tree: Tree) -> LocatedStr:
    """Return a value with a new name."""
    return key(name(tree))


def bad_name(word: LocatedStr) -> ModelError:
    """Return the error for a text without the form of a name."""
    return ModelError(
        f"{str(word)[:80]!r} is not a name",
        word.where,
        allowed=f"letters, digits and _, beginning with a letter, at most {MAX_NAME_LENGTH} characters",
    )


def free_text(tree: Tree) -> str:
    """Return a text for people to read."""
    text = _text_of(tree, "a text")
    if len(text) > MAX_TEXT:
        raise ModelError("the text is too long", tree.where, found=f"{len(text)} characters", allowed=f"{MAX_TEXT}")
    return text


def flag(tree: Tree) -> bool:
    """Return a boolean."""
    if isinstance(tree, Scalar) and isinstance(tree.value, bool):
        return tree.value
    raise ModelError("true or false is wanted", tree.where, found=describe(tree), allowed="true, false")


def one_of(*allowed: str) -> Callable[[Tree], str]:
    """Return a validator for one of a few words."""

    def choose(tree: Tree) -> str:
        text = _text_of(tree, "one of a few words")
        if text not in allowed:
            raise ModelError(
                f"{text!r} is not allowed here",
                tree.where,
                found=text,
                allowed=", ".join(allowed),
                remedy=did_you_mean(text, allowed),
            )
        return text

    return choose


def one_or_more_expressions(tree: Tree) -> tuple[Text, ...]:
    """Return the expressions of a list; a single expression counts as a list of one."""
    if isinstance(tree, LocatedList):
        if not tree:
            raise ModelError("the list is empty", tree.where, allowed="at least one expression")
        return tuple(expression(item) for item in tree)
    return (expression(tree),)


def one_or_two_expressions(tree: Tree) -> tuple[Text, ...]:
    """Return one expression, or the two of a list."""
    texts = one_or_more_expressions(tree)
    if len(texts) > 2:
        raise ModelError("one or two are wanted", tree.where, found=f"{len(texts)}", allowed="a, or [a, b]")
    return texts


def pair_of_names(tree: Tree) -> tuple[str, str]:
    """Return two names: ``[P, Q]``."""
    items = as_items(tree, "a pair")
    if len(items) != 2:
        raise ModelError("two names are wanted", tree.where, found=describe(tree), allowed="[P, Q]")
    return name(items[0]), name(items[1])


def _text_of(tree: Tree, wanted: str) -> str:
    if isinstance(tree, Scalar) and tree.value is not None and not isinstance(tree.value, bool):
        return tree.text
    raise ModelError(f"{wanted} is wanted", tree.where, found=describe(tree))


def _schema(value: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema(value)


Expression: TypeAlias = Annotated[Text, PlainValidator(expression), _schema(_EXPRESSION_SCHEMA)]
Assignment: TypeAlias = Annotated[
    Text, PlainValidator(assignment), _schema({"type": ["string", "number", "boolean"], "description": "expression"})
]
Expressions: TypeAlias = Annotated[
    tuple[Text, ...],
    PlainValidator(one_or_more_expressions),
    _schema({"anyOf": [_EXPRESSION_SCHEMA, {"type": "array", "items": _EXPRESSION_SCHEMA, "minItems": 1}]}),
]
OneOrTwo: TypeAlias = Annotated[
    tuple[Text, ...],
    PlainValidator(one_or_two_expressions),
    _schema({"anyOf": [_EXPRESSION_SCHEMA, {"type": "array", "items": _EXPRESSION_SCHEMA, "maxItems": 2}]}),
]
Reference: TypeAlias = Annotated[str, PlainValidator(name), _schema(_NAME_SCHEMA)]
Key: TypeAlias = Annotated[str, PlainValidator(key), _schema(_NAME_SCHEMA)]
ContactKey: TypeAlias = Annotated[str, PlainValidator(contact_key), _schema(_NAME_SCHEMA)]
NewName: TypeAlias = Annotated[str, PlainValidator(new_name), _schema(_NAME_SCHEMA)]
Pair: TypeAlias = Annotated[
    tuple[str, str],
    PlainValidator(pair_of_names),
    _schema({"type": "array", "items": _NAME_SCHEMA, "minItems": 2, "maxItems": 2}),
]
FreeText: TypeAlias = Annotated[str, PlainValidator(free_text), _schema({"type": "string", "maxLength": MAX_TEXT})]
Flag: TypeAlias = Annotated[bool, PlainValidator(flag), _schema({"type": "boolean"})]
Law: TypeAlias = Annotated[
    Literal["newton", "poisson"],
    PlainValidator(one_of("newton", "poisson")),
    _schema({"enum": ["newton", "poisson"]}),
]
Impacts: TypeAlias = Annotated[
    Literal["simultaneous", "sequential"],
    PlainValidator(one_of("simultaneous", "sequential")),
    _schema({"enum": ["simultaneous", "sequential"]}),
]
OnInconsistent: TypeAlias = Annotated[
    Literal["stop", "impact"], PlainValidator(one_of("stop", "impact")), _schema({"enum": ["stop", "impact"]})
]
OnNonunique: TypeAlias = Annotated[
    Literal["stop", "prefer_previous"],
    PlainValidator(one_of("stop", "prefer_previous")),
    _schema({"enum": ["stop", "prefer_previous"]}),
]
JointCoordinates: TypeAlias = Annotated[
    Literal["relative", "absolute"],
    PlainValidator(one_of("relative", "absolute")),
    _schema({"enum": ["relative", "absolute"]}),
]
PortCoupling: TypeAlias = Annotated[
    Literal["none", "impedance", "admittance"],
    PlainValidator(one_of("none", "impedance", "admittance")),
    _schema({"enum": ["none", "impedance", "admittance"]}),
]
Crossing: TypeAlias = Annotated[
    Literal["rising", "falling", "both"],
    PlainValidator(one_of("rising", "falling", "both")),
    _schema({"enum": ["rising", "falling", "both"]}),
]


# -- Base class of all forms: a frozen pydantic model with its location and its keys -------------------------


class Form(BaseModel):
    """Base of the forms.

    ``what`` names the form in messages; ``later`` contains reserved keys of the language with the present
    alternative of each.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, defer_build=True)

    what: ClassVar[str] = "this"
    later: ClassVar[Mapping[str, str]] = {}
    hints: ClassVar[Mapping[str, str]] = {}

    _where: Location = PrivateAttr(default=NOWHERE)
    _keys: Mapping[str, LocatedStr] = PrivateAttr(default_factory=dict)

    @property
    def where(self) -> Location:
        """Location of the form in its file."""
        return self._where

    def key(self, name: str) -> Location:
        """Return the place of the key `name`, or of the form."""
        key = self._keys.get(name)
        return self._where if key is None else key.where

    def given(self) -> tuple[str, ...]:
        """Return the written keys, in order."""
        return tuple(self._keys)

    @classmethod
    def allowed_keys(cls) -> tuple[str, ...]:
        """Return the keys the form has, as written in files."""
        return tuple(field.alias or key for key, field in cls.model_fields.items())

    @model_validator(mode="wrap")
    @classmethod
    def _with_place(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        section = as_section(data, cls.what)
        allowed = cls.allowed_keys()
        for key in section:
            if key not in allowed:
                raise cls._unknown(key, allowed)
        form = handler(dict(section))
        form._where = section.where
        form._keys = {str(key): key for key in section}
        return form

    @classmethod
    def _unknown(cls, key: LocatedStr, allowed: tuple[str, ...]) -> ModelError:
        if key in cls.later:
            return not_yet(key, cls.later[key])
        return ModelError(
            f"{cls.what} has no key {str(key)!r}",
            key.where,
            found=key,
            allowed=", ".join(allowed),
            remedy=cls.hints.get(key) or did_you_mean(key, allowed),
        )


def not_yet(key: LocatedStr, remedy: str) -> ModelError:
    """Return the error for a part of the language planned for a later version."""
    return ModelError(f"{str(key)!r} is reserved: this version does not have it yet", key.where, remedy=remedy)


FormT = TypeVar("FormT", bound=Form)


def validated(form: type[FormT], tree: Tree) -> FormT:
    """Return `tree` as a form.

    Raises
    ------
    ModelError
        With the exact place of the first invalid key or value.
    """
    try:
        return form.model_validate(tree)
    except ValidationError as error:
        raise _located(tree, form.what, error.errors(include_url=False)[0]) from None


def _located(tree: Tree, what: str, problem: Any) -> ModelError:
    """Turn an error found by pydantic (missing keys, mostly) into one with a place."""
    path = list(problem["loc"])
    missing = str(path.pop()) if problem["type"] == "missing" and path else ""
    where, owner = _walk(tree, what, path)
    if missing:
        return ModelError(f"{owner} lacks the key {missing!r}", where, remedy=_MISSING.get(missing, ""))
    return ModelError(f"{owner}: {problem['msg']}", where, found=describe(problem.get("input")))


_MISSING = {
    "fsm_dyn": "begin the file with `fsm_dyn: 1`",
    "bodies": "a mechanism has at least one body: `ball: {center: P, mass: 1 kg}`",
    "center": "name the point at which the mass centre is",
    "from": '`from: O` for a point given from the origin, `from: "*"` for a transition from any mode',
}


def _walk(tree: Tree, what: str, path: list[str | int]) -> tuple[Location, str]:
    """Follow `path` as far as it exists; return the place of its last key and its name."""
    where, owner = tree.where, what
    for part in path:
        if isinstance(tree, LocatedMapping) and part in tree:
            word = next(word for word in tree if word == part)
            where, owner, tree = word.where, str(word), tree[word]
        elif isinstance(tree, LocatedList) and isinstance(part, int) and part < len(tree):
            tree = tree[part]
            where, owner = tree.where, f"{owner}[{part}]"
    return where, owner


def section_of(what: str) -> BeforeValidator:
    """Return a validator for a mapping; its error names `what`."""

    def check(tree: Any) -> LocatedMapping:
        return as_section(tree, what)

    return BeforeValidator(check)


def items_of(what: str) -> BeforeValidator:
    """Return a validator for a list; its error names `what`."""

    def check(tree: Any) -> list[Any]:
        return as_items(tree, what)

    return BeforeValidator(check)


def exactly_one(form: Form, keys: tuple[str, ...]) -> str:
    """Return the one written key among `keys`.

    Raises
    ------
    ModelError
        If none or several of them were.
    """
    given = [key for key in form.given() if key in keys]
    if not given:
        raise ModelError(
            f"{form.what} needs one of {', '.join(keys)}",
            form.where,
            found=", ".join(form.given()) or "no keys",
        )
    if len(given) > 1:
        raise ModelError(
            f"{form.what} has both {given[0]!r} and {given[1]!r}",
            form.key(given[1]),
            allowed=f"one of {', '.join(keys)}",
        )
    return given[0]


def only_with(form: Form, kind: str, companions: tuple[str, ...]) -> None:
    """Refuse keys incompatible with `kind`.

    Raises
    ------
    ModelError
        At the first key other than `kind` and `companions`.
    """
    for key in form.given():
        if key != kind and key not in companions:
            raise ModelError(
                f"{key!r} does not go with {kind!r}",
                form.key(key),
                allowed=", ".join(companions) or f"{kind} alone",
            )
