"""The section ``view``: simple shapes to draw a body with, in its frame, from its centre."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Final, TypeAlias

from pydantic import PlainValidator, WithJsonSchema

from fsm_dyn.errors import ModelError, did_you_mean
from fsm_dyn.expressions import Text
from fsm_dyn.spec.drawn_outline import (
    CircleOutline,
    DrawnOutline,
    DrawnPoint,
    LineOutline,
    PolygonOutline,
    TextOutline,
)
from fsm_dyn.spec.forms.fields import as_items, as_section, expression, free_text, name
from fsm_dyn.spec.yaml_tree import LocatedList, LocatedMapping, LocatedStr, Scalar, Tree, describe

__all__ = ["SHAPES", "DrawnOutline", "ViewField"]

FRAME = "frame"
MAX_POINTS = 10_000


def _point(tree: Tree) -> tuple[Text, ...]:
    items = as_items(tree, "a point")
    if len(items) not in (2, 3):
        raise ModelError("a point has 2 or 3 coordinates", tree.where, found=describe(tree), allowed="[x, y]")
    return tuple(expression(item) for item in items)


def points_of(tree: Tree, least: int) -> tuple[tuple[Text, ...], ...]:
    """Return a list of at least so many points, each of 2 or 3 expressions.

    Parameters
    ----------
    tree : Tree
        The list.

    Raises
    ------
    ModelError
        It is no such list.
    """
    items = as_items(tree, "the points")
    if not least <= len(items) <= MAX_POINTS:
        raise ModelError("too few or too many points", tree.where, found=describe(tree), allowed=f"at least {least}")
    return tuple(_point(item) for item in items)


def _parts(tree: Tree, kind: str, allowed: tuple[str, ...]) -> LocatedMapping:
    section = as_section(tree, kind)
    for word in section:
        if word not in allowed:
            raise _unknown(kind, word, allowed)
    if allowed[0] not in section:
        raise ModelError(f"{kind} lacks {allowed[0]!r}", section.where, allowed=", ".join(allowed))
    return section


def _unknown(what: str, word: LocatedStr, allowed: tuple[str, ...]) -> ModelError:
    return ModelError(
        f"{what} has no key {str(word)!r}",
        word.where,
        found=word,
        allowed=", ".join(allowed),
        remedy=did_you_mean(word, allowed),
    )


def _polygon(tree: Tree) -> DrawnOutline:
    return PolygonOutline(points=points_of(tree, 3))


def _line(tree: Tree) -> DrawnOutline:
    return LineOutline(points=points_of(tree, 2))


def _circle(tree: Tree) -> DrawnOutline:
    radius, at = _placed(tree, "circle", ("radius", "center"))
    return CircleOutline(radius=expression(radius), at=at)


def _text(tree: Tree) -> DrawnOutline:
    text, at = _placed(tree, "text", ("text", "at"))
    return TextOutline(text=free_text(text), at=at)


def _placed(tree: Tree, kind: str, keys: tuple[str, str]) -> tuple[Tree, DrawnPoint | None]:
    """Return the value and the point of an outline, which is written as the value alone or with both keys."""
    if isinstance(tree, Scalar):
        return tree, None
    section = _parts(tree, kind, keys)
    at = section.get(LocatedStr(keys[1]))
    return section[LocatedStr(keys[0])], None if at is None else _point(at)


SHAPES: Final[Mapping[str, Callable[[Tree], DrawnOutline]]] = {
    "polygon": _polygon,
    "line": _line,
    "circle": _circle,
    "text": _text,
}


def _shapes(tree: Tree) -> tuple[DrawnOutline, ...]:
    shapes: list[DrawnOutline] = []
    for item in tree if isinstance(tree, LocatedList) else [tree]:
        section = as_section(item, "a shape")
        given = section.get(LocatedStr(FRAME))
        frame = None if given is None else name(given)
        for word, value in section.items():
            if word not in (*SHAPES, FRAME):
                raise _unknown("a shape", word, (*SHAPES, FRAME))
            if word != FRAME:
                shapes.append(replace(SHAPES[word](value), frame=frame))
    return tuple(shapes)


def _view(tree: Tree) -> dict[str, tuple[DrawnOutline, ...]]:
    section = as_section(tree, "view")
    return {name(word): _shapes(value) for word, value in section.items()}


_NUMBERS: dict[str, Any] = {"type": "array", "items": {"type": ["string", "number"]}, "minItems": 2, "maxItems": 3}
_SHAPE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "polygon": {"type": "array", "items": _NUMBERS, "minItems": 3},
        "line": {"type": "array", "items": _NUMBERS, "minItems": 2},
        "circle": {"type": ["string", "number", "object"]},
        "text": {"type": ["string", "object"]},
        FRAME: {"type": "string"},
    },
    "additionalProperties": False,
}

ViewField: TypeAlias = Annotated[
    Mapping[str, tuple[DrawnOutline, ...]],
    PlainValidator(_view),
    WithJsonSchema(
        {"type": "object", "additionalProperties": {"anyOf": [_SHAPE, {"type": "array", "items": _SHAPE}]}},
    ),
]
