"""Leaves of the forms: each turns a node of the tree into a value that knows its place.

They raise `ModelError` themselves: pydantic lets exceptions that are not ``ValueError`` through, so the
place, what was found and what is allowed arrive unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import PlainValidator, WithJsonSchema

from fsm_dyn.errors import NOWHERE, ModelError, did_you_mean
from fsm_dyn.expressions import Text
from fsm_dyn.expressions.keywords import FUNCTIONS, MAX_NAME_LENGTH, RESERVED_NAMES, is_name
from fsm_dyn.spec.forms.examples import EXAMPLES
from fsm_dyn.spec.yaml_tree import LocatedList, LocatedMapping, LocatedStr, Scalar, Tree, describe

MAX_TEXT = 2000

_EXPRESSION_SCHEMA: dict[str, Any] = {"type": ["string", "number"], "description": "expression, with units"}
_NAME_SCHEMA: dict[str, Any] = {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_]*$"}


def as_section(tree: Tree, what: str) -> LocatedMapping:
    """Return `tree` as a mapping; nothing counts as an empty one."""
    if isinstance(tree, Scalar) and tree.value is None:
        return LocatedMapping({}, tree.where)
    if not isinstance(tree, LocatedMapping):
        example = f"such as `{EXAMPLES[what]}`" if what in EXAMPLES else ""
        raise ModelError(
            f"{what} must be a mapping", tree.where, found=describe(tree), allowed="key: value", remedy=example
        )
    return tree


def as_items(tree: Tree, what: str) -> LocatedList:
    """Return `tree` as a list; nothing counts as an empty one."""
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
    remedy = "quote expressions that contain commas" if isinstance(tree, LocatedList | LocatedMapping) else ""
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
    """Return the name, in a value or as a key, of something that exists elsewhere in the model."""
    text = str(tree) if isinstance(tree, LocatedStr) else _text_of(tree, "a name")
    if not is_name(text):
        raise bad_name(LocatedStr(text, tree.where))
    return LocatedStr(text, tree.where)


def key(tree: object) -> LocatedStr:
    """Return a key that names something new; its form is checked, its being free is checked later."""
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


def _meaning(word: str) -> str:
    """Return what a reserved name stands for."""
    if word in FUNCTIONS:
        return "a function"
    known = {"N": "the inertial frame", "O": "its origin", "t": "the time"}
    return known.get(word, "a word")


def new_name(tree: Tree) -> LocatedStr:
    """Return a value that names something new."""
    return key(name(tree))


def bad_name(word: LocatedStr) -> ModelError:
    """Return the error for a text that has not the form of a name."""
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
