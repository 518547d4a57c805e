"""Modes embedded online by an exported machine: their memory and their parts, contact by contact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.derive.guards import Guard, list_guards
from fsm_dyn.derive.unconstrained_system import of_one_corner
from fsm_dyn.exports.exported_run import ExportedRun
from fsm_dyn.page.frames import guard_texts
from fsm_dyn.programs.enclosure_code import enclosure_code
from fsm_dyn.run import online as oc
from fsm_dyn.run.online import online_enclosure
from fsm_dyn.run.tables import guard_enclosures
from fsm_dyn.run.tolerances import Numerics
from fsm_dyn.run.words import Words
from fsm_dyn.runtime.abi import ArenaTop, ContactState, GuardQuantity, ModeFlag, OnlineLimits, OnlinePlace, Sizes
from fsm_dyn.runtime.layouts import Online, Tables

#: Number of modes that a machine can embed online: default, maximum (``FSM_SPARE_MOST``), and in a page.
USUAL_SPARE: Final = 16
MOST_SPARE: Final = 64
PAGE_SPARE: Final = 128

#: The own arrays of every mode, in the order of ``enum fsm_spare_array``.
_ARRAYS: Final = ("chart", "held_begin", "held_behind", "held_rest", "held_columns", "below_begin", "below_rows",
                  "tied_begin", "tied_columns", "moved_begin", "moved_columns", "reduced_begin", "reduced_behind",
                  "reduced_columns", "place", "extent", "room", "floats", "integers")  # fmt: skip
#: Those of numbers; the others are of integers.
_NUMBERS: Final = ("room", "floats")


class SpareParts(NamedTuple):
    """Parts of modes embedded online: ``struct fsm_spare_parts`` of ``c99/fsm_spare_modes.h``.

    Attributes
    ----------
    guards : list of (event, subject, direction, unit, quantity, sign, first open, number open, enclosure)
    """

    state_begin: list[int]
    flags: list[int]
    flags_of_all: int
    guard_begin: list[int]
    guards: list[tuple[int, int, float, float, int, float, int, int, int]]
    corners: list[int]
    lengths: list[int]
    places: list[int]


def spare_parts(automaton: Automaton, tables: Tables, numerics: Numerics) -> SpareParts:
    """Return the parts of the modes of an automaton, contact by contact."""
    states = [len(contact.states) for contact in automaton.contacts]
    listed = [guards for contact in guards_by_state(automaton) for guards in contact]
    corners: list[int] = []
    rows = []
    enclosure = online_enclosure(automaton.system)
    for guard in (guard for guards in listed for guard in guards):
        open_ones = _open_contacts(automaton, guard)
        unit = float(numerics.guards([guard])[0])
        value = -1 if enclosure is None else int(enclosure.outputs([guard])[0])
        rows.append((int(guard.event), guard.subject, float(guard.direction), unit, int(guard.quantity),
                     float(guard.sign), len(corners), len(open_ones), value))  # fmt: skip
        corners += open_ones
    room = oc.room_lengths(tables.sizes, int(tables.sizes[Sizes.MAX_GUARDS]))
    chart = np.zeros(OnlinePlace.PLACES, np.int64)
    chart[1:] = np.cumsum(room)[:-1]
    return SpareParts(
        np.cumsum([0, *states]).tolist(),
        [_flag(automaton, k, code) for k, count in enumerate(states) for code in range(count)],
        _flags_of_all(automaton),
        np.cumsum([0, *map(len, listed)]).tolist(),
        rows,
        corners,
        list(_lengths(tables).values()),
        chart.tolist(),
    )


def spare_words(tables: Tables, count: int, real: Callable[[int], int] = int) -> int:
    """Return the number of eight-byte words of a machine for ``count`` further modes, on 64 bits.

    Parameters
    ----------
    tables : Tables
    count : int
        Modes.
    real : function
        The number of words for a number of values.
    """
    s = tables.sizes
    contacts, most, transitions = (
        int(s[Sizes.N_CONTACTS]),
        int(s[Sizes.MAX_GUARDS]),
        int(s[Sizes.N_TRANSITIONS]),
    )
    modes, guards = int(s[Sizes.N_MODES]) + count, len(tables.guard_event) + count * most
    structure = 2 * len(Online._fields) + 1  # one of the arrays is a table
    by_mode = -(-modes * contacts // 8) + 6 * modes + 1 + -(-modes * transitions // 8)
    own = -(-contacts // 8) + 2 * most + real(most) + real(OnlineLimits.COUNT) + ArenaTop.COUNT
    own += sum(real(n) if name in _NUMBERS else n for name, n in _lengths(tables).items())
    return 2 * modes + count * structure + by_mode + 4 * guards + 2 * real(guards) + count * own + count


def _lengths(tables: Tables) -> dict[str, int]:
    """Return the lengths of the own arrays of every mode."""
    most = int(tables.sizes[Sizes.MAX_GUARDS])
    lengths = oc.array_lengths(tables.sizes, len(tables.mass_columns), most)
    lengths["room"] = sum(oc.room_lengths(tables.sizes, most))
    return {name: lengths[name] for name in _ARRAYS}


def _open_contacts(automaton: Automaton, guard: Guard) -> list[int]:
    """Return the contacts open in all modes with a guard: for a corner, those with the faces of its polygon."""
    return list(of_one_corner(automaton.contacts, guard.subject)) if guard.quantity is GuardQuantity.LARGEST_GAP else []


def _flags_of_all(automaton: Automaton) -> int:
    """Return the bits of every mode."""
    return ModeFlag.PROJECTS | ModeFlag.RANKS if any(row.role == "position" for row in automaton.rows) else 0


def embeds_online(automaton: Automaton) -> bool:
    """Whether any combination of contact states can become a mode of an exported machine.

    The model may neither list its modes nor bind its transitions to some of them.
    """
    mechanism = automaton.mechanism
    return not mechanism.only_listed and all(item.source == "*" for item in mechanism.transitions)


def guards_by_state(automaton: Automaton) -> list[list[list[Guard]]]:
    """Return the guards of each contact in each of its states; guards of all transitions are the last entry."""
    system, contacts = automaton.system, automaton.contacts

    def own(k: int, code: int) -> list[Guard]:
        states = [code if i == k else 0 for i in range(len(contacts))]
        return [guard for guard in list_guards(system, states, ()) if guard.subject == k]

    found = [[own(k, code) for code in range(len(contact.states))] for k, contact in enumerate(contacts)]
    free = [0] * len(contacts)
    n = len(list_guards(system, free, ()))
    return [*found, [list(list_guards(system, free, range(len(automaton.user_transitions)))[n:])]]


def with_spare_modes(run: ExportedRun, count: int) -> ExportedRun:
    """Return the run with room for a number of modes embedded online."""
    if count == 0:
        return run
    sizes = run.tables.sizes.copy()
    sizes[Sizes.MAX_GUARDS] = most = most_guards(run.automaton, run.tables)
    shared = online_enclosure(run.automaton.system)
    codes = [enclosure_code(full, "guards") for _, full in run.programs]
    counts = np.diff(run.tables.mode_guard_start).tolist()
    entries = guard_enclosures(codes, counts, None if shared is None else shared.code, most)._asdict()
    for place, size in entries.pop("sizes").items():
        sizes[place] = size
    return replace(run, tables=run.tables._replace(sizes=sizes, **entries), spare=count)


def most_guards(automaton: Automaton, tables: Tables) -> int:
    """Return the largest number of guards of a mode."""
    listed = sum(max(map(len, states)) for states in guards_by_state(automaton))
    return max(listed, int(tables.sizes[Sizes.MAX_GUARDS]))


def page_modes(automaton: Automaton, words: Words) -> dict[str, Any]:
    """Return how a page calls further modes and their guards: by contact and state, last those of all transitions."""

    def entry(guard: Guard) -> dict[str, Any]:
        return {"open": _open_contacts(automaton, guard), **guard_texts(automaton, [guard], words)[0]}

    return {
        "guards": [[[entry(guard) for guard in state] for state in states] for states in guards_by_state(automaton)],
        "states": [list(contact.states) for contact in automaton.contacts],
    }


def _flag(automaton: Automaton, index: int, code: int) -> int:
    """Return the bits added by a contact's state to those of its mode."""
    contact = automaton.contacts[index]
    held = code and not contact.contact_law.compliant
    flags = (
        ModeFlag.PROJECTS if held and contact.normal_row >= 0 and automaton.rows[contact.normal_row].positional else 0
    )
    flags |= ModeFlag.TURNS if contact.in_space and code == ContactState.SLIDING else 0
    return flags | (ModeFlag.WATCHES_GATES if contact.gated and not code else 0)
