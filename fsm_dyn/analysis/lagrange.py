"""Lagrange's equations of the bodies of a mechanism, from the kinetic energy in coordinates and their rates alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fsm_dyn.expressions import Text
from fsm_dyn.programs import Node, substitute, tangent
from fsm_dyn.spec.model import Initial, Mechanism

if TYPE_CHECKING:
    from fsm_dyn.symbolic.terms import Terms


def lagrange_terms(bare: Terms) -> list[Node]:
    """Return ``∂²T/∂q̇²`` and ``d/dt ∂T/∂q̇ - ∂T/∂q`` at q̈ = 0."""
    graph = bare.graph
    q = [graph.symbol(name) for name in bare.layout.q]
    rates = [graph.symbol(rate_name(name)) for name in bare.layout.q]
    (T,) = substitute([bare.kinetic_energy], _spins(bare))
    momenta = [tangent([T], {rate: graph.one})[0] for rate in rates]
    columns = [tangent(momenta, {rate: graph.one}) for rate in rates]
    drift = tangent(momenta, {**dict(zip(q, rates, strict=True)), graph.symbol("t"): graph.one})
    pulls = [tangent([T], {symbol: graph.one})[0] for symbol in q]
    matrix = [columns[j][i] for i in range(len(q)) for j in range(len(q))]
    return [*matrix, *(a - b for a, b in zip(drift, pulls, strict=True))]


def rate_name(name: str) -> str:
    """Return what the rate of a coordinate is called in these terms."""
    return f"{name}_rate"


def _spins(bare: Terms) -> dict[Node, Node]:
    """Return the speeds of the bare mechanism in rates of coordinates: ``2 E ė`` where these are Euler parameters."""
    graph = bare.graph
    values: dict[Node, Node] = {}
    for frame in bare.mechanism.frames.values():
        if frame.euler_names:
            e0, e1, e2, e3 = (graph.symbol(name) for name in frame.euler_names)
            d0, d1, d2, d3 = (graph.symbol(rate_name(name)) for name in frame.euler_names)
            spin = (
                2.0 * (e0 * d1 - e1 * d0 + e3 * d2 - e2 * d3),
                2.0 * (e0 * d2 - e2 * d0 + e1 * d3 - e3 * d1),
                2.0 * (e0 * d3 - e3 * d0 + e2 * d1 - e1 * d2),
            )
            values |= {graph.symbol(_spin(frame.name, axis)): node for axis, node in zip("xyz", spin, strict=True)}
    plain = [name for name in bare.layout.q if graph.symbol(f"{name}_dot").name in bare.layout.u]
    return values | {graph.symbol(f"{name}_dot"): graph.symbol(rate_name(name)) for name in plain}


def _spin(frame: str, axis: str) -> str:
    return f"{frame}_spin_{axis}"


def bodies_alone(mechanism: Mechanism) -> Mechanism:
    """The bodies alone, with the rates of the coordinates as speeds, and spins of frames with Euler parameters."""
    turned = [frame for frame in mechanism.frames.values() if frame.euler_names]
    euler = {name for frame in turned for name in frame.euler_names}
    speeds = {f"{name}_dot": Text(f"rate({name})") for name in mechanism.coordinates if name not in euler}
    for frame in turned:
        less = "" if frame.parent == "N" else f" - omega({frame.parent})"
        for axis in "xyz":
            text = f"dot(omega({frame.name}){less}, {frame.name}.{axis})"
            speeds[_spin(frame.name, axis)] = Text(text)
    return replace(
        mechanism,
        speeds=speeds,
        joints={}, constraints={}, shapes={}, contacts={}, loads=(), modes={}, only_listed=False, memory={},
        controllers={},
        transitions=(), ports={}, initial=Initial(), outputs={}, view={},
    )  # fmt: skip
