"""The form of the section ``numerics``: tolerances by name."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import PlainValidator, WithJsonSchema

from fsm_dyn.errors import ModelError, did_you_mean
from fsm_dyn.expressions import Text
from fsm_dyn.spec.forms.fields import as_section, expression
from fsm_dyn.spec.numerics import NUMERICS
from fsm_dyn.spec.yaml_tree import LocatedStr, Tree

_VALUE: dict[str, Any] = {"type": ["string", "number"], "description": "a positive expression of parameters"}


def numerics(tree: Tree) -> dict[str, Text]:
    """Return the tolerances of a file by name.

    Parameters
    ----------
    tree : Tree
        The section.
    """
    section = as_section(tree, "numerics")
    for key in section:
        if key not in NUMERICS:
            raise _unknown(key)
    return {str(key): expression(value) for key, value in section.items()}


def _unknown(key: LocatedStr) -> ModelError:
    return ModelError(
        f"there is no tolerance {str(key)!r}",
        key.where,
        found=key,
        allowed=", ".join(NUMERICS),
        remedy=did_you_mean(str(key), NUMERICS),
    )


NumericsField: TypeAlias = Annotated[
    dict[str, Text],
    PlainValidator(numerics),
    WithJsonSchema({"type": "object", "properties": dict.fromkeys(NUMERICS, _VALUE), "additionalProperties": False}),
]
