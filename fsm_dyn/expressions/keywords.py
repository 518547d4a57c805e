"""The words of the expression language: functions with their numbers of arguments, and reserved names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

#: Name of anything in a model.
NAME_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

#: A name longer than this is refused: names reach generated code, file names and column titles.
MAX_NAME_LENGTH = 64

_ONE_ARGUMENT: tuple[str, ...] = ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh")
_ONE_ARGUMENT += ("sqrt", "exp", "log", "abs", "sign", "floor")

#: Functions that give a scalar, with the least and the largest number of arguments (None: any).
SCALAR_FUNCTIONS: Mapping[str, tuple[int, int | None]] = MappingProxyType(
    {
        "where": (3, 3),
        "atan2": (2, 2),
        "mod": (2, 2),
        "min": (2, None),
        "max": (2, None),
        "rate": (1, 1),
    }
    | dict.fromkeys(_ONE_ARGUMENT, (1, 1))
)

#: Functions of vectors; ``dot`` and ``norm`` give scalars.
VECTOR_FUNCTIONS: Mapping[str, tuple[int, int | None]] = MappingProxyType(
    {"dot": (2, 2), "cross": (2, 2), "norm": (1, 1), "pos": (1, 2), "vel": (1, 2), "omega": (1, 1)}
)

#: Functions that switch between cases, as comparisons and ``where`` do.
CASE_FUNCTIONS = frozenset({"abs", "sign", "min", "max", "mod", "floor"})

FUNCTIONS: Mapping[str, tuple[int, int | None]] = MappingProxyType({**SCALAR_FUNCTIONS, **VECTOR_FUNCTIONS})

#: Functions whose arguments are names of things, handed to the algebra unevaluated.
REFERENCE_FUNCTIONS = frozenset({"rate", "pos", "vel", "omega"})

#: Operators written as words.
WORD_OPERATORS = frozenset({"and", "or", "not"})

#: Words that stand for numbers.
CONSTANT_WORDS = frozenset({"pi", "true", "false"})

#: Names that a model cannot define.
RESERVED_NAMES = frozenset({"N", "O", "t", "inf"}) | CONSTANT_WORDS | WORD_OPERATORS | frozenset(FUNCTIONS)


def is_name(text: str) -> bool:
    """Return whether `text` has the form of a name (reserved or not)."""
    return len(text) <= MAX_NAME_LENGTH and NAME_PATTERN.fullmatch(text) is not None
