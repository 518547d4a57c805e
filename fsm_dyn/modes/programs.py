"""The two programs of a mode: ``rhs`` for the stages of a step, ``full`` for its ends.

``rhs`` gives the state's derivative.  ``full`` adds the speeds with the dependent ones recomputed, the smallest
scaled pivot, guard values, their slopes along the flow, and all multipliers (docs/theory.md, "Programs").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from fsm_dyn.modes.elimination import Array
from fsm_dyn.modes.embedding import ActiveSet, EmbeddedMode
from fsm_dyn.modes.guards import Guard, contact_guards, transition_guards
from fsm_dyn.modes.tree_embedding import embed_cheapest
from fsm_dyn.modes.unconstrained_system import UnconstrainedSystem
from fsm_dyn.programs import Node, Program, functions, substitute, tangent
from fsm_dyn.programs.enclosure_code import EnclosureCode, enclosure_code


class Evaluates(Protocol):
    """What gives named outputs over many states at once: a straight-line program, or what substitutes for one."""

    def evaluate(self, t: Any, x: Any, c: Any) -> Mapping[str, Array]:
        """Return every output with the leading axes of ``t`` (…,), ``x`` (…, n_x) and ``c`` (…, n_c)."""
        ...  # pragma: no cover


class RunnableMode(Protocol):
    """What running a mode and reading its runs take: a mode's programs, or a mode embedded online."""

    @property
    def states(self) -> tuple[int, ...]:
        """Return the contact state codes."""

    @property
    def guards(self) -> tuple[Guard, ...]:
        """Return the guards of the mode."""

    @property
    def full(self) -> Evaluates:
        """Return what gives derivative, speeds, pivot, guards, slopes and multipliers."""

    @property
    def indeterminate(self) -> tuple[int, ...]:
        """Return the rows whose multipliers others can take over."""


@dataclass(frozen=True)
class ModePrograms:
    """One mode in one chart, as data."""

    states: tuple[int, ...]
    chart: tuple[tuple[int, int], ...]
    independent: tuple[int, ...]
    redundant: tuple[int, ...]
    guards: tuple[Guard, ...]
    rhs: Program
    full: Program
    indeterminate: tuple[int, ...] = ()  # rows whose multipliers others can take over: the smallest are reported

    @cached_property
    def enclosure(self) -> EnclosureCode | None:
        """The code that encloses the guards, None where there is none."""
        return enclosure_code(self.full, "guards")


def derive_mode(
    system: UnconstrainedSystem,
    states: Sequence[int],
    leaving: Sequence[int],
    samples: dict[str, Array],
    chart: Sequence[tuple[int, int]] | None = None,
) -> ModePrograms:
    """Derive the programs of the mode with contact codes ``states``.

    Parameters
    ----------
    leaving : indices of the user-defined transitions that leave this mode
    samples : the terms at sampled states (leading axis), the first the present one; see :func:`embed`
    chart : the elimination order to use, None to choose it

    The programs follow from the arguments alone, whatever was derived from ``system`` before.
    """
    with system.graph.scratch():
        return _derive_mode(system, states, leaving, samples, chart)


def _derive_mode(
    system: UnconstrainedSystem,
    states: Sequence[int],
    leaving: Sequence[int],
    samples: dict[str, Array],
    chart: Sequence[tuple[int, int]] | None,
) -> ModePrograms:
    active = ActiveSet.of(system, states)
    embedded = embed_cheapest(system, active, samples, chart)
    pairs = contact_guards(system, states, embedded) + transition_guards(system, leaving)
    u = [system.symbols[name] for name in system.layout.u]
    replace = {u[j]: node for j, node in enumerate(embedded.speeds) if node is not u[j]}
    q_dot = substitute(list(system.nodes["q_dot"]), replace)
    values = substitute([node for _, node in pairs], replace)
    slopes = tangent(values, flow(system, q_dot, embedded))
    x_dot = np.array([*q_dot, *embedded.accelerations], dtype=object)
    full = {
        "x_dot": x_dot,
        "u": np.array(embedded.speeds, dtype=object),
        "pivot": np.array([smallest(system, embedded.pivots)], dtype=object),
        "guards": np.array(values, dtype=object),
        "slopes": np.array(slopes, dtype=object),
        "multipliers": np.array(embedded.multipliers, dtype=object),
    }
    return ModePrograms(
        tuple(states),
        embedded.chart,
        embedded.independent,
        embedded.redundant,
        tuple(guard for guard, _ in pairs),
        Program.from_nodes(system.layout, {"x_dot": x_dot}),
        Program.from_nodes(system.layout, full),
        embedded.open_forces.rows,
    )


def flow(system: UnconstrainedSystem, q_dot: Sequence[Node], embedded: EmbeddedMode) -> dict[Node, Node]:
    """Seeds of the tangent sweep along the mode's motion: t, q, u and inputs at their rates."""
    symbols = system.symbols
    seeds = {symbols["t"]: system.graph.constant(1.0)}
    seeds |= {symbols[name]: rate for name, rate in zip(system.layout.q, q_dot, strict=True)}
    seeds |= {symbols[name]: rate for name, rate in zip(system.layout.u, embedded.accelerations, strict=True)}
    for name in system.layout.w:
        seeds[symbols[name]] = symbols[f"{name}.rate"]
        seeds[symbols[f"{name}.rate"]] = symbols[f"{name}.rate2"]
        seeds[symbols[f"{name}.rate2"]] = symbols[f"{name}.rate3"]
    return seeds


def smallest(system: UnconstrainedSystem, pivots: Sequence[Node]) -> Node:
    """The smallest scaled pivot, 1 where nothing is eliminated."""
    result = system.graph.constant(1.0)
    for pivot in pivots:
        result = functions.minimum(result, pivot)
    return result
