"""Form of the requirements: a formula, or ``{formula:, text:}``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, TypeAlias

from pydantic import PlainValidator, WithJsonSchema

from fsm_dyn.spec.forms.fields import Expression, FreeText, as_section, expression, key
from fsm_dyn.spec.forms.form import Form, validated
from fsm_dyn.spec.requirement import Requirement, read_formula
from fsm_dyn.spec.yaml_tree import LocatedMapping, Tree


class RequirementForm(Form):
    """A requirement with a text for people to read."""

    what: ClassVar[str] = "a requirement"

    formula: Expression
    text: FreeText = ""


def _requirements(tree: Tree) -> dict[str, Requirement]:
    found: dict[str, Requirement] = {}
    for word, entry in as_section(tree, "requirements").items():
        summary = ""
        if isinstance(entry, LocatedMapping):
            form = validated(RequirementForm, entry)
            formula, summary = form.formula, form.text
        else:
            formula = expression(entry)
        name = key(word)
        written = " ".join(formula.text.split())
        found[name] = Requirement(name, written, read_formula(formula), summary, formula.where)
    return found


_FORMULA = {
    "type": "string",
    "description": "never ..., always ..., eventually ..., peak(...) < ..., count(...) <= ...",
}

RequirementsField: TypeAlias = Annotated[
    Mapping[str, Requirement],
    PlainValidator(_requirements),
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": {
                "anyOf": [
                    _FORMULA,
                    {
                        "type": "object",
                        "properties": {"formula": _FORMULA, "text": {"type": "string"}},
                        "required": ["formula"],
                        "additionalProperties": False,
                    },
                ]
            },
        }
    ),
]
