"""Relabelling: after half a cycle of a symmetric mechanism left and right have changed places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from fsm_dyn.analysis.jacobians import Array
from fsm_dyn.analysis.poincare_sections import CrossingSection, EventSection, Section
from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.errors import InputError, did_you_mean
from fsm_dyn.programs import Layout, Node, Program, substitute

SAME = 1e-9


@dataclass(frozen=True)
class Relabelling:
    """What is called what after a return.

    ``x_new = matrix @ x + shift``, and memory changes by ``memory_shift``; contact k is now what ``contacts[k]`` was,
    its slip counted with the sign ``slips[k]``.
    """

    matrix: Array
    shift: Array
    memory_shift: Array
    contacts: tuple[int, ...]
    slips: tuple[float, ...]

    @classmethod
    def of(
        cls, automaton: Automaton, names: Mapping[str, str], growth: Mapping[str, float], x: Array, context: Array
    ) -> Relabelling:
        """Read ``{"qL": "qR", "qR": "qL"}``: the new value of a name is the old one of another (``-q``: its negative).

        Coordinates and memory under ``growth`` have grown by so much, and are set back by it.  Speeds called
        ``<q>_dot`` follow their coordinates.  Contacts follow from the geometry: their gaps are compared at states near
        ``x``; where that leaves a choice, contacts may be named as well.

        Raises
        ------
        InputError
            A name is unknown, two names would take the same value, or a contact has no counterpart.
        """
        layout = automaton.terms.layout
        contacts = [contact.name for contact in automaton.contacts]
        matrix, chosen = np.eye(layout.n_x), {}
        given = dict(names)
        for new, old in names.items():
            sign, bare = ("-", old[1:].strip()) if old.startswith("-") else ("", old)
            if f"{new}_dot" in layout.u and f"{bare}_dot" in layout.u:
                given.setdefault(f"{new}_dot", f"{sign}{bare}_dot")
        for new, old in given.items():
            bare = old[1:].strip() if old.startswith("-") else old
            for name in (new, bare):
                if name not in layout.x and name not in contacts:
                    raise InputError(f"symmetry: unknown '{name}'", remedy=did_you_mean(name, (*layout.x, *contacts)))
            if (new in contacts) != (bare in contacts):
                raise InputError(f"symmetry: '{new}' and '{bare}' are not of one kind")
            if new in contacts:
                chosen[contacts.index(new)] = contacts.index(bare)
            else:
                row = layout.x.index(new)
                matrix[row] = 0.0
                matrix[row, layout.x.index(bare)] = -1.0 if old != bare else 1.0
        if np.linalg.matrix_rank(matrix) < layout.n_x:
            raise InputError("symmetry: two names take the same value", remedy="name both: {'a': 'b', 'b': 'a'}")
        shift = np.array([-growth.get(name, 0.0) for name in layout.x])
        memory_shift = np.array([-growth.get(name, 0.0) for name in layout.memory])
        if not names and not growth:
            return cls(matrix, shift, memory_shift, tuple(range(len(contacts))), (1.0,) * len(contacts))
        later = context.copy()
        later[layout.memory_slice] -= memory_shift
        found = _counterparts(automaton, matrix, shift, chosen, x, (later, context))
        return cls(matrix, shift, memory_shift, *found)

    def state(self, x: Array) -> Array:
        """Return a state, shape (n_x,), under its new names."""
        renamed: Array = self.matrix @ x + self.shift
        return renamed

    def states(self, states: tuple[int, ...]) -> tuple[int, ...]:
        """Return contact states under their new names."""
        return tuple(states[m] for m in self.contacts)

    def context(self, context: Array, layout: Layout) -> Array:
        """Return a context with the slip directions under their new names, and memory set back."""
        new, sigma = context.copy(), layout.sigma_slice
        new[sigma] = context[sigma][list(self.contacts)] * self.slips
        new[layout.memory_slice] += self.memory_shift
        return new

    def section(self, section: Section) -> Section:
        """Return the section, under the old names, that ends a cycle begun at ``section``."""
        if isinstance(section, EventSection):
            return replace(section, subject=self.contacts[section.subject]) if section.event else section
        if np.array_equal(self.matrix, np.eye(len(self.matrix))) and not self.shift.any():
            return section
        graph, symbols, nodes = section.program.graph()
        x = [symbols[name] for name in section.program.layout.x]
        mixed = [
            sum((float(a) * s for a, s in zip(row, x, strict=True) if a), graph.constant(float(by)))
            for row, by in zip(self.matrix, self.shift, strict=True)
        ]
        outputs = [nodes["value"].item(), *(nodes["by_state"] @ self.matrix)]
        outputs = [n if isinstance(n, Node) else graph.constant(n) for n in outputs]
        moved = substitute(outputs, dict(zip(x, mixed, strict=True)))
        program = Program.from_nodes(section.program.layout, {"value": moved[0], "by_state": moved[1:]})
        return CrossingSection(section.text, section.sign, program)


def _counterparts(
    automaton: Automaton,
    matrix: Array,
    shift: Array,
    chosen: Mapping[int, int],
    x: Array,
    contexts: tuple[Array, Array],
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """For every contact the one that has its gap and slip when left and right change places, and the slip's sign.

    ``contexts``: with the old and the new names.
    """
    random = np.random.default_rng(20030818)
    states = x + 0.3 * random.uniform(-1.0, 1.0, (6, len(x)))
    n_q = len(automaton.terms.layout.q)

    def seen(at: Array, context: Array) -> Array:
        terms = automaton.terms.evaluate(0.0, at, np.tile(context, (len(at), 1)))
        speeds = np.einsum("trj,tj->tr", terms["A"][..., : len(x) - n_q], at[:, n_q:]) + terms["b"]
        columns = np.zeros((2, len(automaton.contacts), len(at)))
        for k, contact in enumerate(automaton.contacts):
            if contact.normal_row >= 0:
                columns[0, k] = terms["residual"][:, contact.normal_row]
            if contact.tangent_row >= 0:
                columns[1, k] = speeds[:, contact.tangent_row]
        return columns

    renamed = states @ matrix.T + shift
    _require_same_motion(automaton, matrix, states, renamed, contexts)
    old, new = (seen(at, context) for at, context in zip((states, renamed), contexts, strict=True))
    found, signs = [], []
    for k, contact in enumerate(automaton.contacts):
        fits = {
            m: sign
            for sign in (-1.0, 1.0)
            for m in range(len(automaton.contacts))
            if max(np.abs(new[0, k] - old[0, m]).max(), np.abs(new[1, k] - sign * old[1, m]).max()) <= SAME
        }
        m = chosen.get(k, k if k in fits else next(iter(fits), -1))
        if m < 0:
            raise InputError(
                f"symmetry: contact '{contact.name}' has no counterpart when the names change places",
                remedy="name all coordinates and speeds that change places, and the contacts if their forms differ",
            )
        found.append(m)
        signs.append(fits.get(m, 1.0))
    return tuple(found), tuple(signs)


def _require_same_motion(
    automaton: Automaton, matrix: Array, states: Array, renamed: Array, contexts: tuple[Array, Array]
) -> None:
    """Refuse names under which the mechanism is another one: rates must follow the coordinates, energies must stay."""
    n_q = len(automaton.terms.layout.q)
    old, new = (
        automaton.terms.evaluate(0.0, at, np.tile(context, (len(states), 1)))
        for at, context in zip((states, renamed), contexts, strict=True)
    )
    for what, difference in (
        ("the rates of the coordinates do not follow", new["q_dot"] - old["q_dot"] @ matrix[:n_q, :n_q].T),
        ("the kinetic energy is another", new["energies"][..., 0] - old["energies"][..., 0]),
    ):
        if np.abs(difference).max(initial=0.0) > SAME * (1.0 + np.abs(old["q_dot"]).max()):
            raise InputError(
                f"symmetry: the mechanism is not the same under the new names: {what}",
                remedy="name the speeds that change places too; speeds <q>_dot follow by themselves",
            )
