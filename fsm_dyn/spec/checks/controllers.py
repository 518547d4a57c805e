"""Sampled controllers: scopes and units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fsm_dyn.expressions import DIMENSIONLESS, Dimension
from fsm_dyn.spec.checks.expression_types import TIME, expression_type, unit_dimension
from fsm_dyn.spec.checks.scopes import Scopes, with_names
from fsm_dyn.spec.model import ControllerQuantity, Mechanism


@dataclass(frozen=True, slots=True)
class ControllerScopes:
    """All scopes, with the quantities of controllers visible where memory is, and the dimensions of these."""

    scopes: Scopes
    dimensions: Mapping[str, Dimension]


def with_controllers(scopes: Scopes, mechanism: Mechanism) -> ControllerScopes:
    """Return the scopes with the quantities of controllers.

    Memory and outputs have the units that are written, inputs that of their expressions: an input may name memory and
    outputs of all controllers, and the inputs above it.

    Raises
    ------
    ModelError
        A unit is none, or an input does not fit.
    """
    dimensions = {
        item.name: unit_dimension(item.unit, f"{item.name!r}")
        for controller in mechanism.controllers.values()
        for item in (*controller.memory, *controller.outputs)
    }
    logic = with_names(scopes.logic, dimensions)
    for controller in mechanism.controllers.values():
        for item in controller.inputs:
            found = expression_type(item.value, logic, f"input {item.name!r} of controller {controller.name!r}")
            dimensions[item.name] = found.dimension or DIMENSIONLESS
            logic = with_names(logic, {item.name: dimensions[item.name]})
    return ControllerScopes(replace(scopes, logic=logic), dimensions)


def check_controllers(mechanism: Mechanism, scopes: Scopes, dimensions: Mapping[str, Dimension]) -> None:
    """Check periods, starts, quanta, and what memory and outputs become.

    Raises
    ------
    ModelError
        At the first expression that does not fit.
    """
    for name, controller in mechanism.controllers.items():
        expression_type(controller.period, scopes.constant, f"the period of controller {name!r}", [TIME])
        for item in controller.quantities:
            _constants(item, scopes, dimensions[item.name])
        for item in (*controller.memory, *controller.outputs):
            what = f"{item.name!r} of controller {name!r}"
            expression_type(item.value, scopes.logic, what, [dimensions[item.name]])


def _constants(item: ControllerQuantity, scopes: Scopes, dimension: Dimension) -> None:
    for text, word in ((item.start, "start"), (item.quantum, "quantum")):
        if text is not None:
            expression_type(text, scopes.constant, f"the {word} of {item.name!r}", [dimension])
