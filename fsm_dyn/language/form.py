"""Leaves of the forms: a node of the tree becomes a value with its place."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable

from fsm_dyn.core.errors import NOWHERE, ModelError, did_you_mean
from fsm_dyn.language.expression_tree import FUNCTIONS, MAX_NAME_LENGTH, RESERVED_NAMES, Text, is_name
from fsm_dyn.language.yaml import LocatedList, LocatedMapping, LocatedStr, Scalar, Tree, describe

# -- Leaves of the forms: each turns a node of the tree into a value with its place --------------------------
#
# They raise `ModelError` with the place, the found and the allowed values.

MAX_TEXT = 2000


def as_section(tree: Tree, what: str, example: str = "") -> LocatedMapping:
    """Return `tree` as a mapping, of which the error shows an example; no value counts as an empty one."""
    if isinstance(tree, Scalar) and tree.value is None:
        return LocatedMapping({}, tree.where)
    if not isinstance(tree, LocatedMapping):
        raise ModelError(
            f"{what} must be a mapping", tree.where, found=describe(tree), allowed="key: value",
            remedy=f"such as `{example}`" if example else "",
        )  # fmt: skip
    return tree


def as_items(tree: Tree, what: str) -> LocatedList:
    """Return `tree` as a list; no value counts as an empty one."""
    if isinstance(tree, Scalar) and tree.value is None:
        return LocatedList([], tree.where)
    if not isinstance(tree, LocatedList):
        raise ModelError(f"{what} must be a list", tree.where, found=describe(tree), allowed="[ ... ] or lines with -",
                         remedy=_as_list(tree, what))  # fmt: skip
    return tree


def _as_list(tree: Tree, what: str) -> str:
    """Return the remedy for a value without a list."""
    if what == "a point":
        return "a list of points is [[x, y], [x, y], ...]"
    return "begin each with `- `; a name is a key `name` in it" if isinstance(tree, LocatedMapping) else ""


def expression(tree: Tree) -> Text:
    """Return the text of an expression; numbers keep the characters they were written with."""
    if isinstance(tree, Scalar) and not isinstance(tree.value, bool) and tree.value is not None:
        if isinstance(tree.value, float) and not math.isfinite(tree.value):
            raise ModelError("a finite number is wanted", tree.where, found=tree.text)
        hexadecimal = isinstance(tree.value, int) and not tree.text.strip("+-").isdigit()
        return Text(str(tree.value) if hexadecimal else tree.text, tree.where)
    remedy = "a vector is x*N.x + y*N.y; expressions with commas are quoted" if isinstance(tree, LocatedList) else ""
    if isinstance(tree, LocatedMapping):
        remedy = "write the value alone, without a key and braces"
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
        remedy=_spelt(str(word)),
    )


def _spelt(word: str) -> str:
    """Return the remedy for other alphabets, a forgotten blank, an assignment and a frame's axis; empty for others."""
    if re.fullmatch(r"\w+\.[xyz]", word):
        return f"write the axis alone, as in `{{{word[-1]}: q}}`, or the frame alone, `{word[:-2]}`"
    head, colon, tail = word.partition(":")
    if colon and is_name(head) and tail:
        return f"a blank follows the colon: `{head}: {tail}`"
    if (parts := re.fullmatch(r"(\w+) *([-+*/])= *(.*)", word)) is not None:
        return f"write `{parts[1]}: {parts[1]} {parts[2]} {parts[3]}`"
    plain = "".join(map(_letter, word))
    return f"spell it: {plain}" if plain != word and is_name(plain) else ""


def _letter(letter: str) -> str:
    """Return a letter of another alphabet as a word: ``"theta"``."""
    if letter.isascii():
        return letter
    found = unicodedata.name(letter, "").lower().split()
    return "mu" if found[:1] == ["micro"] else found[-1] if found[-2:-1] == ["letter"] else ""


def free_text(tree: Tree) -> str:
    """Return a text for people to read."""
    text = _text_of(tree, "a text")
    if len(text) > MAX_TEXT:
        raise ModelError("the text is too long", tree.where, found=f"{len(text)} characters", allowed=f"{MAX_TEXT}")
    return text


def unit_text(tree: Tree) -> str:
    """Return the text of a unit, empty for none; whether it is a unit is checked with the dimensions."""
    if isinstance(tree, Scalar) and (tree.value is None or isinstance(tree.value, str) or tree.value == 1):
        return LocatedStr(tree.text, tree.where)
    raise ModelError("a unit is wanted", tree.where, found=describe(tree), allowed="m, rad, N, N*m, ... or 1")


def flag(tree: Tree) -> bool:
    """Return a boolean."""
    if isinstance(tree, Scalar) and isinstance(tree.value, bool):
        return tree.value
    plain = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}
    meant = plain.get(tree.text.lower(), "") if isinstance(tree, Scalar) else ""
    raise ModelError(
        "true or false is wanted", tree.where, found=describe(tree), allowed="true, false",
        remedy=f"write {meant}, without quotes" if meant else "",
    )  # fmt: skip


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


def new_names(tree: LocatedList, what: str) -> list[LocatedStr]:
    """Return the names that a list declares, each once.

    Raises ModelError: an item is no name, or a name is repeated.
    """
    found: list[LocatedStr] = []
    for item in tree:
        word = key(LocatedStr(_text_of(item, "a new name"), item.where))
        if word in found:
            raise ModelError(f"{what} {str(word)!r} is defined twice", word.where)
        found.append(word)
    return found


def names(tree: Tree) -> tuple[str, ...]:
    """Return the names of a list."""
    return tuple(name(item) for item in as_items(tree, "names"))


def pair_of_names(tree: Tree) -> tuple[str, str]:
    """Return two names: ``[P, Q]``."""
    items = as_items(tree, "a pair")
    if len(items) != 2:
        raise ModelError("two names are wanted", tree.where, found=describe(tree), allowed="[P, Q]")
    return name(items[0]), name(items[1])


def _text_of(tree: Tree, wanted: str) -> str:
    if isinstance(tree, Scalar) and tree.value is not None and not isinstance(tree.value, bool):
        return tree.text
    named = wanted == "a name"
    raise ModelError(
        f"{wanted} is wanted", tree.where, found=describe(tree), allowed="one that the model declares" if named else "",
        remedy="declare it with another name, a place under `points`, a pattern of states under `modes`"
        if named and not isinstance(tree, Scalar) else "",
    )  # fmt: skip
