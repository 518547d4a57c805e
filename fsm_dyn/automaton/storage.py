"""An automaton as a file: JSON with the model's text and its programs as lists of operations.

Never pickle, never machine code: a file from a stranger is checked like a model file and can run nothing.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from fsm_dyn.automaton.artefact import Automaton, Mode
from fsm_dyn.errors import InputError
from fsm_dyn.modes.guards import Event, Guard
from fsm_dyn.modes.programs import ModePrograms
from fsm_dyn.modes.system import ContactInfo, RowInfo, WhenInfo
from fsm_dyn.modes.tree import TreePattern
from fsm_dyn.programs import Program
from fsm_dyn.spec import Mechanism
from fsm_dyn.spec import load as load_mechanism

FORMAT = "fsm_dyn automaton 2"
LARGEST_FILE = 64 * 2**20
_FLAGS = ("gated", "sticks_always", "poisson", "limited", "two_sided", "in_space", "lossy")


def to_data(automaton: Automaton) -> dict[str, Any]:
    """Return the automaton as plain data for JSON."""
    return {
        "format": FORMAT,
        "digest": automaton.mechanism.digest,
        "text": automaton.mechanism.text,
        "rows": [[row.name, row.role, row.contact, row.positional] for row in automaton.rows],
        "contacts": [
            [c.name, c.kind, c.normal_row, c.tangent_row, list(c.states), list(c.ends), c.outline, *_flags(c)]
            for c in automaton.contacts
        ],
        "whens": [[w.name, w.index, w.crossing, w.has_guard] for w in automaton.whens],
        "quaternions": list(automaton.quaternions),
        "n_kinematic": automaton.n_kinematic,
        "terms": automaton.terms.to_data(),
        "report": automaton.report.to_data(),
        "geometry": automaton.geometry.to_data(),
        "names": [list(automaton.load_names), list(automaton.point_names), list(automaton.frame_names)],
        "resets": [None if program is None else program.to_data() for program in automaton.resets],
        "modes": [_mode_to_data(mode) for mode in automaton.modes],
        "pruned": dict(automaton.pruned),
        "complete": automaton.complete,
        "pattern": None if automaton.pattern is None else dataclasses.asdict(automaton.pattern),
    }


def _flags(contact: ContactInfo) -> list[bool]:
    return [getattr(contact, name) for name in _FLAGS]


def _mode_to_data(mode: Mode) -> dict[str, Any]:
    programs = mode.programs
    return {
        "name": mode.name,
        "pattern": mode.pattern,
        "states": list(programs.states),
        "chart": [list(pair) for pair in programs.chart],
        "independent": list(programs.independent),
        "redundant": list(programs.redundant),
        "indeterminate": list(programs.indeterminate),
        "guards": [[int(g.event), g.subject, g.direction, g.text] for g in programs.guards],
        "rhs": programs.rhs.to_data(),
        "full": programs.full.to_data(),
    }


def save(automaton: Automaton, path: str | Path) -> None:
    """Write the automaton to a file."""
    Path(path).write_text(json.dumps(to_data(automaton)), encoding="utf-8")


def load(path: str | Path) -> Automaton:
    """Read an automaton from a file.

    Raises
    ------
    InputError
        The file is not an automaton of this version, or does not hold together.
    """
    place = Path(path)
    try:
        if place.stat().st_size > LARGEST_FILE:
            raise InputError(f"'{place}' is too large for an automaton", allowed=f"{LARGEST_FILE} bytes")
        data = json.loads(place.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read '{place}'", found=str(error)) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"'{place}' is not a saved automaton", found=str(error)[:200]) from error
    return from_data(data)


def from_data(data: Any, mechanism: Mechanism | None = None) -> Automaton:
    """Return the automaton from what :func:`to_data` gave; nothing in it is trusted.

    Parameters
    ----------
    mechanism : Mechanism, optional
        The mechanism, if it was read already; else it is read from the text in the data.

    Raises
    ------
    InputError
        The data do not hold together.
    """
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError("not a saved automaton", allowed=FORMAT, remedy="compile the model again")
    try:
        if mechanism is None:
            mechanism = load_mechanism(f"<{FORMAT}>", text=data["text"])
        rows = tuple(RowInfo(str(n), role, int(c), bool(p)) for n, role, c, p in data["rows"])
        contacts = tuple(
            ContactInfo(
                str(n),
                kind,
                int(a),
                int(b),
                tuple(map(str, states)),
                ends=_three(ends),
                outline=int(outline),
                **dict(zip(_FLAGS, map(bool, flags), strict=True)),
            )
            for n, kind, a, b, states, ends, outline, *flags in data["contacts"]
        )
        whens = tuple(WhenInfo(str(n), int(i), crossing, bool(g)) for n, i, crossing, g in data["whens"])
        loads, points, frames = (tuple(map(str, names)) for names in data["names"])
        automaton = Automaton(
            mechanism, rows, contacts, whens, tuple(map(int, data["quaternions"])), int(data["n_kinematic"]),
            Program.from_data(data["terms"]), Program.from_data(data["report"]), Program.from_data(data["geometry"]),
            loads, points, frames,
            tuple(None if item is None else Program.from_data(item) for item in data["resets"]),
            tuple(_mode_from_data(item) for item in data["modes"]),
            {str(k): str(v) for k, v in data["pruned"].items()},
            bool(data["complete"]),
            _pattern_from_data(data["pattern"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError("the saved automaton does not hold together", found=repr(error)[:200]) from error
    check(automaton)
    return automaton


def _three(ends: Any) -> tuple[int, int, int]:
    first, second, third = map(int, ends)
    return first, second, third


def _pattern_from_data(item: Any) -> TreePattern | None:
    if item is None:
        return None

    def lists(key: str) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(map(int, entry)) for entry in item[key])

    pairs = tuple((int(i), int(j)) for i, j in item["quadratic"])
    return TreePattern(int(item["n"]), lists("definitions"), pairs, tuple(map(int, item["forces"])), lists("rows"))


def _mode_from_data(item: Any) -> Mode:
    guards = tuple(Guard(Event(e), int(s), float(d), str(text)) for e, s, d, text in item["guards"])
    programs = ModePrograms(
        tuple(map(int, item["states"])), tuple((int(r), int(c)) for r, c in item["chart"]),
        tuple(map(int, item["independent"])), tuple(map(int, item["redundant"])), guards,
        Program.from_data(item["rhs"]), Program.from_data(item["full"]), tuple(map(int, item["indeterminate"])),
    )  # fmt: skip
    return Mode(str(item["name"]), str(item["pattern"]), programs)


def check(automaton: Automaton) -> None:
    """Check that all parts fit together: a kernel of the wrong size would write beyond its array.

    Raises
    ------
    InputError
        Some size, index or layout does not fit.
    """
    layout = automaton.terms.layout
    n, n_rows, n_contacts = len(layout.u) + automaton.n_kinematic, len(automaton.rows), len(automaton.contacts)
    n_q, n_x = len(layout.q), layout.n_x
    expected = {
        "q_dot": (n_q,), "W": (n_q, n), "M": (n, n), "f": (n,), "A": (n_rows, n), "b": (n_rows,),
        "gamma": (n_rows,), "residual": (n_rows,), "static": (n_contacts,), "kinetic": (n_contacts,),
        "restitution": (n_contacts,), "closes_if": (n_contacts,), "elastic": (n_contacts,), "energies": (2,),
        "reach": (n_contacts,), "reach_rate": (n_contacts,), "margin_slope": (n_contacts,), "aspect": (n_contacts,),
        "firm": (n_contacts,),
        "when": (len(automaton.mechanism.transitions),),
    }  # fmt: skip
    pattern = automaton.pattern
    if pattern is not None:
        expected["tree"] = (pattern.size,)
    good = pattern is None or (pattern.holds_together and pattern.n == n and len(pattern.rows) == n_rows)
    good &= 0 <= automaton.n_kinematic <= n_rows and dict(automaton.terms.outputs) == expected
    good &= tuple(automaton.terms.outputs) == tuple(expected)
    good &= all(0 <= first <= n_q - 4 for first in automaton.quaternions)
    good &= all(-1 <= r < n_rows for c in automaton.contacts for r in (c.normal_row, c.tangent_row, *c.tangent_rows))
    good &= all(-1 <= c.outline < n_contacts for c in automaton.contacts)
    good &= tuple(layout.contacts) == tuple(c.name for c in automaton.contacts)
    good &= len(automaton.resets) == len(automaton.mechanism.transitions) == len(automaton.whens)
    for reset in automaton.resets:
        good &= reset is None or (reset.layout == layout and reset.size == n_x + len(layout.memory))
    for mode in automaton.modes:
        good &= mode.programs.rhs.layout == layout and mode.programs.full.layout == layout
        count = len(mode.guards)
        good &= mode.programs.rhs.outputs == {"x_dot": (n_x,)}
        sizes = {"x_dot": (n_x,), "u": (len(layout.u),), "pivot": (1,), "guards": (count,), "slopes": (count,),
                 "multipliers": (n_rows,)}  # fmt: skip
        good &= tuple(mode.programs.full.outputs.items()) == tuple(sizes.items())
        good &= len(mode.states) == n_contacts
        good &= all(code in c.codes for code, c in zip(mode.states, automaton.contacts, strict=False))
        for guard in mode.guards:
            limit = len(automaton.resets) if guard.event is Event.TRANSITION else n_contacts
            good &= 0 <= guard.subject < limit
    if not good:
        raise InputError("the saved automaton does not hold together", remedy="compile the model again")
