"""What memory is to a motion: a part of its state that varies, one that takes separate values, or a mere count."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.programs import Program, gradient, support


def kept_quantities(automaton: Automaton) -> tuple[str, ...]:
    """Return the memory that varies with the motion: a transition sets it from a state, a parameter or the time.

    What counts or switches takes separate values, which neighbouring motions share.
    """
    layout = automaton.terms.layout
    found: tuple[str, ...] = ()
    while True:
        sources = {layout.arguments[0], *layout.x, *layout.p, *layout.w, *found}
        more = tuple(
            name
            for k, name in enumerate(layout.memory)
            if name in found or any(_varies(reset, layout.n_x + k, sources) for reset in automaton.resets if reset)
        )
        if more == found:
            return found
        found = more


def _varies(reset: Program, entry: int, sources: set[str]) -> bool:
    """Whether an entry after a reset has a derivative by one of some arguments."""
    nodes = reset.graph()[2]
    node = nodes["after"][entry]
    met = [symbol for symbol in support([node]) if symbol.name in sources]
    return any(not slope.is_zero for slope in gradient([node], met)[0])


def memory_of_motion(automaton: Automaton) -> tuple[str, ...]:
    """Return the memory on which the motion depends: what only counts, or is printed, is none of it."""
    layout = automaton.terms.layout
    read = _names(node for table in automaton.terms.graph()[2].values() for node in table.ravel())
    sets = []
    for reset in automaton.resets:
        if reset is not None:
            after = reset.graph()[2]["after"]
            read |= _names(after[: layout.n_x])
            sets += list(zip(layout.memory, after[layout.n_x :], strict=True))
    while True:
        more = read.union(*(_names([node]) for name, node in sets if name in read))
        if more == read:
            return tuple(name for name in layout.memory if name in read)
        read = more


def _names(nodes: Iterable[Any]) -> set[str]:
    return {symbol.name for symbol in support(nodes)}
