"""Characters to tokens: the first gate a text passes, before Python's own parser sees anything."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from fsm_dyn.errors import ExpressionError, Location

MAX_LENGTH = 4000
MAX_BRACKETS = 60

_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z\u00b5\u03bc\u00b0\u03a9][A-Za-z0-9_]*)"
    r"|(?P<op>\*\*|<=|>=|==|!=|[-+*/^<>(),.\[\]])"
)

_REMEDIES = {
    "=": "write == to compare; there is no assignment",
    "_": "names start with a letter: [A-Za-z][A-Za-z0-9_]*",
    "{": "brackets of expressions are ( )",
    "}": "brackets of expressions are ( )",
    "'": "expressions hold no texts",
    '"': "expressions hold no texts",
    "&": "write `and`",
    "|": "write `or`",
    "!": "write `not`",
    "%": "write mod(a, b)",
    ";": "one expression only",
    ":": "quote expressions; there are no slices or lambdas",
}


@dataclass(frozen=True, slots=True)
class Token:
    """One token; ``start`` and ``end`` are character positions in the text."""

    kind: Literal["number", "name", "op"]
    text: str
    start: int
    end: int


def tokenise(text: str, where: Location) -> list[Token]:
    """Split an expression into tokens.

    Raises
    ------
    ExpressionError
        If the text is empty, too long, holds a character without meaning or brackets that do not match.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            "expression too long",
            where,
            found=f"{len(text)} characters",
            allowed=f"{MAX_LENGTH} characters",
            remedy="name parts of it: parameters, points",
        )
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _stray(text, position, where)
        position = match.end()
        match match.lastgroup:
            case "number" | "name" | "op" as kind:
                tokens.append(Token(kind, match.group(), match.start(), match.end()))
    if not tokens:
        raise ExpressionError("empty expression", where, allowed="a number, a name, an expression of them")
    _check_brackets(tokens, text, where)
    return tokens


def _stray(text: str, position: int, where: Location) -> ExpressionError:
    character = text[position]
    return ExpressionError(
        f"character {character!r} has no meaning in an expression",
        where,
        found=excerpt(text),
        remedy=_REMEDIES.get(character, "allowed are numbers with units, names, + - * / **, comparisons, ( ) and ,"),
    )


def _check_brackets(tokens: list[Token], text: str, where: Location) -> None:
    pairs = {")": "(", "]": "["}
    stack: list[str] = []
    for token in tokens:
        if token.text in ("(", "["):
            stack.append(token.text)
            if len(stack) > MAX_BRACKETS:
                raise ExpressionError("brackets nested too deeply", where, allowed=f"{MAX_BRACKETS} levels")
        elif token.text in pairs and (not stack or stack.pop() != pairs[token.text]):
            raise unbalanced(text, where)
    if stack:
        raise unbalanced(text, where)


def unbalanced(text: str, where: Location) -> ExpressionError:
    """Return the error for brackets that do not match: nearly always an unquoted comma."""
    return ExpressionError(
        "brackets do not match",
        where,
        found=excerpt(text),
        remedy="inside { } and [ ], quote expressions that contain commas",
    )


def excerpt(text: str, limit: int = 60) -> str:
    """Return `text` on one line, shortened, for a message."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 3] + "..."
