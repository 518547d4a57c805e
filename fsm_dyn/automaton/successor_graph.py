"""The mode graph as far as it is known before a run: modes derived, and those to which their guards lead.

Listing the guards of a mode takes no derivation, so that modes which a run would derive when it meets them are known
by their contact states, with the edges between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fsm_dyn.automaton.edges import outgoing
from fsm_dyn.automaton.hybrid_automaton import Automaton

if TYPE_CHECKING:
    from fsm_dyn.automaton.geometric_feasibility import GeometricFeasibility


@dataclass(frozen=True)
class Successors:
    """Modes that are not derived, contact states (codes) by name in the order in which they are led to, and edges.

    ``edges``: source, target, cause and kind; between two modes of which at least one is not derived.
    """

    modes: Mapping[str, tuple[int, ...]]
    edges: tuple[tuple[str, str, str, str], ...]


Outgoing = dict[tuple[int, ...], list[tuple[tuple[int, ...], str, str]]]


def successors_of(
    automaton: Automaton, depth: int = 1, geometry: GeometricFeasibility | None = None, known: Outgoing | None = None
) -> Successors:
    """Return the modes to which chains of up to ``depth`` guards lead from those derived.

    Parameters
    ----------
    automaton : Automaton
    depth : int
        Guards of a chain; 0: none.
    geometry : GeometricFeasibility, optional
        Modes that it excludes are left out.
    known : dict, optional
        Edges out of modes by their states, from earlier calls; added to.
    """
    leading = {} if known is None else known

    def out(states: tuple[int, ...]) -> list[tuple[tuple[int, ...], str, str]]:
        if states not in leading:
            leading[states] = list(outgoing(automaton, states))
        return leading[states]

    names = {mode.states: mode.name for mode in automaton.modes}
    derived, ahead = set(names), list(names)
    found: dict[str, tuple[int, ...]] = {}
    for _ in range(depth):
        following: list[tuple[int, ...]] = []
        for states in ahead:
            for target, *_ in out(states):
                if target not in names and not _excluded(automaton, geometry, target):
                    names[target] = automaton.name_of(target).name
                    found[names[target]] = target
                    following.append(target)
        ahead = following
    edges = dict.fromkeys(
        (names[states], names[target], cause, kind)
        for states in (names if found else ())
        for target, cause, kind in out(states)
        if target in names and not (states in derived and target in derived)
    )
    return Successors(found, tuple(edges))


def _excluded(automaton: Automaton, geometry: GeometricFeasibility | None, states: tuple[int, ...]) -> bool:
    """Whether a mode is known to be impossible: by the geometry, or by contradictory constraints."""
    if automaton.name_of(states).name in automaton.infeasible:
        return True
    names = [contact.name for contact in automaton.contacts]
    return geometry is not None and bool(geometry.excluded(dict(zip(names, states, strict=True))))
