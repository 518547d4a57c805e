"""Parameters with a tolerance: ``4 kg +- 0.1 kg``, ``{value:, tolerance:}``, ``{normal:, sigma:}``, ``{uniform:}``."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import PlainValidator

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import Text
from fsm_dyn.spec.forms.fields import Expression, as_items, expression
from fsm_dyn.spec.forms.form import Form, validated
from fsm_dyn.spec.parameter import ParameterTolerance
from fsm_dyn.spec.yaml_tree import LocatedMapping, Tree, describe

SIGNS = ("+-", "\N{PLUS-MINUS SIGN}")


def _pair(tree: Tree) -> tuple[Text, Text]:
    items = as_items(tree, "a range")
    if len(items) != 2:
        raise ModelError("two limits are wanted", tree.where, found=describe(tree), allowed="[-0.05 mm, 0.1 mm]")
    return expression(items[0]), expression(items[1])


class ToleranceForm(Form):
    """A parameter with its tolerance."""

    what: ClassVar[str] = "a parameter with a tolerance"

    value: Expression | None = None
    tolerance: Annotated[tuple[Text, Text] | None, PlainValidator(_pair)] = None
    normal: Expression | None = None
    sigma: Expression | None = None
    uniform: Annotated[tuple[Text, Text] | None, PlainValidator(_pair)] = None


def toleranced(tree: Tree) -> tuple[Text, ParameterTolerance | None]:
    """Return the nominal value of a scalar parameter, and its tolerance if it has one.

    Raises
    ------
    ModelError
        With the place of what does not fit.
    """
    if isinstance(tree, LocatedMapping):
        return _of_form(validated(ToleranceForm, tree))
    text = expression(tree)
    sign = next((sign for sign in SIGNS if sign in text.text), None)
    if sign is None:
        return text, None
    value, _, deviation = text.text.partition(sign)
    if not value.strip() or not deviation.strip():
        raise ModelError("a tolerance is incomplete", text.where, found=text.text, allowed="such as 4 kg +- 0.1 kg")
    upper = Text(deviation.strip(), text.where)
    return Text(value.strip(), text.where), ParameterTolerance(Text(f"-({upper})", text.where), upper)


def without_tolerance(tree: Tree) -> Text:
    """Return an expression, and refuse a tolerance."""
    text = expression(tree)
    if any(sign in text.text for sign in SIGNS):
        raise ModelError(
            "an element of a vector has no tolerance",
            text.where,
            found=text.text,
            remedy="make it of scalar parameters: [a, b]",
        )
    return text


def _of_form(form: ToleranceForm) -> tuple[Text, ParameterTolerance]:
    keys = set(form.given())
    if form.value is not None and form.tolerance is not None and len(keys) == 2:
        return form.value, ParameterTolerance(*form.tolerance)
    if form.normal is not None and form.sigma is not None and len(keys) == 2:
        return form.normal, ParameterTolerance(sigma=form.sigma)
    if form.uniform is not None and len(keys) == 1:
        low, high = form.uniform
        half = f"(({high}) - ({low}))/2"
        limits = Text(f"-{half}", low.where), Text(half, low.where)
        return Text(f"(({low}) + ({high}))/2", low.where), ParameterTolerance(*limits)
    raise ModelError(
        "these keys make no tolerance",
        form.where,
        found=", ".join(form.given()) or "no keys",
        allowed="{value, tolerance}, {normal, sigma} or {uniform}",
    )
