"""What may be named where: one scope for each level of dependence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from fsm_dyn.expressions import DIMENSIONLESS, Dimension
from fsm_dyn.expressions.units import dimension
from fsm_dyn.spec.checks.dimension_algebra import DimensionedValue, Scope
from fsm_dyn.spec.checks.names import Declaration
from fsm_dyn.spec.model import Mechanism


@dataclass(frozen=True, slots=True)
class Scopes:
    """The scopes of a model, from the narrowest to the widest.

    ``constant``: parameters.  ``schedule``: and ``t``.  ``configuration``: and inputs, coordinates, axes,
    ``pos``.  ``definition``: and ``rate``, ``vel``, ``omega``.  ``state``: and speeds.  ``logic``: and memory, that of
    controllers included.  ``axes``: parameters and axes (gravity).  ``angle``: as ``configuration``, without axes and
    ``pos``, so that frames never depend on points.  ``gap``: as ``configuration``, with memory that transitions set.
    """

    constant: Scope
    axes: Scope
    schedule: Scope
    angle: Scope
    configuration: Scope
    gap: Scope
    definition: Scope
    state: Scope
    logic: Scope


def constant_scope(known: Mapping[str, Declaration], units: bool) -> Scope:
    """Return the scope in which no name is visible yet: that of the first parameter."""
    return Scope("a constant expression", {}, {}, known=known, units=units)


def scopes_of(
    mechanism: Mechanism,
    constant: Scope,
    coordinates: Mapping[str, Dimension],
    inputs: Mapping[str, Dimension],
) -> Scopes:
    """Return all scopes except that of the speeds, which `with_speeds` adds once their dimensions are known."""
    units = constant.units
    frames = frozenset({"N", *mechanism.frames})
    rotating = frames | {name for name, body in mechanism.bodies.items() if body.frame is not None}
    schedule = _extend(constant, "a schedule", {"t": dimension(s=1)})
    axes = replace(constant, label="a constant vector", frames=frames)
    angle = _extend(schedule, "an angle", {**inputs, **coordinates})
    configuration = replace(
        angle,
        label="an expression of the configuration",
        coordinates=frozenset(coordinates),
        frames=frames,
        points=frozenset({"O", *mechanism.points}),
        rotating=rotating,
        functions=frozenset({"pos"}),
    )
    definition = replace(
        configuration,
        label="the definition of a speed",
        functions=frozenset({"pos", "rate", "vel", "omega"}),
        units=units,
    )
    return Scopes(constant, axes, schedule, angle, configuration, configuration, definition, definition, definition)


def with_speeds(scopes: Scopes, mechanism: Mechanism, speeds: Mapping[str, Dimension]) -> Scopes:
    """Return the scopes with the speeds, and then the memory, visible where they may be."""
    state = _extend(scopes.definition, "an expression of the motion", speeds)
    logic = _with_memory(state, "an expression of the state", mechanism)
    gap = _with_memory(scopes.configuration, "a gap", mechanism)
    return replace(scopes, gap=gap, state=state, logic=logic)


def _with_memory(scope: Scope, label: str, mechanism: Mechanism) -> Scope:
    """Return a scope in which memory is visible: integers as scalars, booleans as conditions."""
    extended = _extend(scope, label, dict.fromkeys(mechanism.memory, DIMENSIONLESS))
    booleans = {
        name: DimensionedValue("condition", None) for name, entry in mechanism.memory.items() if entry.is_boolean
    }
    return replace(extended, scalars=MappingProxyType({**extended.scalars, **booleans}))


def with_scalar(scope: Scope, name: str) -> Scope:
    """Return a scope in which one more number without a unit is visible, under any name."""
    return _extend(scope, f"a formula of {name}", {name: DIMENSIONLESS})


def with_names(scope: Scope, names: Mapping[str, Dimension]) -> Scope:
    """Return a scope in which these numbers are visible too."""
    return _extend(scope, scope.label, names)


def _extend(scope: Scope, label: str, names: Mapping[str, Dimension]) -> Scope:
    added = {str(name): DimensionedValue("scalar", d if scope.units else None) for name, d in names.items()}
    return replace(scope, label=label, scalars=MappingProxyType({**scope.scalars, **added}))
