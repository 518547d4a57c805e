"""Automata made by hand from kernels in Python, so that the stepper is tested without any model."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from fsm_dyn.run import loop
from fsm_dyn.run import structures as st
from fsm_dyn.run.run_options import RunOptions
from fsm_dyn.run.structures import guard_enclosures
from fsm_dyn.run.tolerances import Tolerances
from fsm_dyn.runtime.abi import NEVER, ContactFlag, Event, Sizes, TransitionColumn
from fsm_dyn.runtime.layouts import Tables

_DOUBLES = ctypes.POINTER(ctypes.c_double)
_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_double, _DOUBLES, _DOUBLES, _DOUBLES)


FURTHER = {"drive", "mode_source", "mask", "workspace", "saver", "resumed"}


class Kernel:
    """A function with the C interface of kernels, and its address."""

    def __init__(self, function: Any) -> None:
        self._function = _KERNEL(function)
        self.address = ctypes.cast(self._function, ctypes.c_void_p).value or 0


def kernel(function: Any) -> Kernel:
    """Return ``function(t, x, c, out)`` as a kernel."""
    return Kernel(function)


def make_tables(
    n_q: int,
    n_u: int,
    *,
    n_p: int = 0,
    n_w: int = 0,
    n_memory: int = 0,
    contacts: int = 0,
    terms: Any = None,
    modes: list[tuple[Any, Any, list[int], list[tuple[int, int, float]]]],
    transitions: list[dict[str, int]] | None = None,
    tolerances: Tolerances | None = None,
    groups: list[int] | None = None,
    flags: list[int] | None = None,
    quaternions: list[int] | None = None,
) -> Tables:
    """Return tables for modes given as (rhs, full, contact states, guards); every contact has a normal row only."""
    transitions = transitions or []
    guards = [guard for mode in modes for guard in mode[3]]
    sizes = np.zeros(Sizes.COUNT, dtype=np.int64)
    n_rows = contacts
    n = n_u
    sizes[[Sizes.N_Q, Sizes.N_U, Sizes.N_P, Sizes.N_W, Sizes.N_CONTACTS, Sizes.N_MEMORY]] = (
        n_q,
        n_u,
        n_p,
        n_w,
        contacts,
        n_memory,
    )
    sizes[[Sizes.N_ROWS, Sizes.N_MODES, Sizes.N_TRANSITIONS]] = n_rows, len(modes), len(transitions)
    sizes[Sizes.MAX_GUARDS] = max(1, *(len(mode[3]) for mode in modes)) if modes else 1
    size = n_q + n_q * n + n * n + n + n_rows * n + 3 * n_rows + 11 * contacts + 2 + len(transitions)
    sizes[Sizes.N_TERMS] = size
    unenclosed = guard_enclosures([None] * len(modes), [len(mode[3]) for mode in modes])
    values: dict[str, Any] = {
        "sizes": sizes,
        "terms": np.array([terms.address if terms is not None else _no_terms(sizes).address], dtype=np.int64),
        "sample": np.zeros(1, dtype=np.int64),
        "mode_rhs": np.array([mode[0].address for mode in modes], dtype=np.int64),
        "mode_full": np.array([mode[1].address for mode in modes], dtype=np.int64),
        **dict.fromkeys(
            ("mode_online", "online_routine", "mode_core", "guard_kernels", "shape_centres"),
            np.zeros(0, dtype=np.int64),
        ),
        **{name: value for name, value in unenclosed._asdict().items() if name not in ("sizes", "places")},
        "mode_states": np.array([mode[2] for mode in modes], dtype=np.int8).reshape(len(modes), contacts),
        "mode_allowance": np.full(len(modes), NEVER),
        "mode_flags": np.array(flags or [0] * len(modes), dtype=np.int64),
        "mode_group": np.array(groups or range(len(modes)), dtype=np.int64),
        "mode_guard_start": np.cumsum([0, *(len(mode[3]) for mode in modes)], dtype=np.int64),
        "guard_event": np.array([guard[0] for guard in guards], dtype=np.int64),
        "guard_contact": np.array([guard[1] for guard in guards], dtype=np.int64),
        "guard_direction": np.array([guard[2] for guard in guards], dtype=np.float64),
        "row_role": np.full(n_rows, 3, dtype=np.int64),
        "row_contact": np.arange(n_rows, dtype=np.int64),
        "row_positional": np.ones(n_rows, dtype=np.int8),
        "contact_flags": np.full(contacts, ContactFlag.RIGID, dtype=np.int64),
        "contact_rows": np.array([[k, -1, -1, -1] for k in range(contacts)], dtype=np.int64).reshape(contacts, 4),
        "contact_ends": np.full((contacts, 3), -1, dtype=np.int64),
        "contact_outline": np.full(contacts, -1, dtype=np.int64),
        **dict(zip(("row_begin", "row_columns"), st.nonzero_columns(np.ones((n_rows, n_u), bool)), strict=True)),
        **dict(zip(("mass_begin", "mass_columns"), st.nonzero_columns(np.ones((n_u, n_u), bool)), strict=True)),
        "transitions": _transition_table(transitions),
        "transition_states": np.array(
            [modes[item["target"]][2] if item.get("target", -1) >= 0 else [-1] * contacts for item in transitions],
            dtype=np.int8,
        ).reshape(len(transitions), contacts),
        "transition_leaves": np.ones((len(transitions), len(modes)), dtype=np.int8),
        "quaternions": np.array(quaternions or [], dtype=np.int64),
        "state_unit": np.ones(n_q + n_u),
        "row_unit": np.ones(n_rows),
        "guard_unit": np.ones(len(guards)),
        "tolerances": (tolerances or Tolerances()).as_array(),
    }
    return Tables(**{name: values[name] for name in Tables._fields})


def _transition_table(transitions: list[dict[str, int]]) -> Any:
    table = np.zeros((len(transitions), TransitionColumn.WIDTH), dtype=np.int64)
    for i, item in enumerate(transitions):
        table[i, TransitionColumn.STOP] = item.get("stop", 0)
        table[i, TransitionColumn.RESET] = item.get("reset", 0)
    return table


_KEEP: list[Any] = []


def _no_terms(sizes: Any) -> Any:
    count = int(sizes[Sizes.N_TERMS])
    n_q, n = int(sizes[Sizes.N_Q]), int(sizes[Sizes.N_U])

    @kernel
    def terms(t, x, c, out):  # type: ignore[no-untyped-def]
        for i in range(count):
            out[i] = 0.0
        for i in range(n):
            out[n_q + n_q * n + i * n + i] = 1.0

    _KEEP.append(terms)
    return terms


# --- a ball of height x[0] over a floor; p = [gravity, mass, restitution], one contact -----------------------


@kernel
def ball_open_rhs(t, x, c, out):  # type: ignore[no-untyped-def]
    out[0] = x[1]
    out[1] = -c[0]


@kernel
def ball_open_full(t, x, c, out):  # type: ignore[no-untyped-def]
    out[0] = x[1]
    out[1] = -c[0]
    out[2] = x[1]
    out[3] = 1.0
    out[4] = x[0]
    out[5] = x[1]
    out[6] = 0.0


@kernel
def ball_closed_rhs(t, x, c, out):  # type: ignore[no-untyped-def]
    out[0] = 0.0
    out[1] = 0.0


@kernel
def ball_closed_full(t, x, c, out):  # type: ignore[no-untyped-def]
    out[0] = 0.0
    out[1] = 0.0
    out[2] = 0.0
    out[3] = 1.0
    out[4] = c[0] * c[1]
    out[5] = 0.0
    out[6] = c[0] * c[1]


@kernel
def ball_terms(t, x, c, out):  # type: ignore[no-untyped-def]
    out[0] = x[1]  # q_dot
    out[1] = 1.0  # W
    out[2] = c[1]  # M
    out[3] = -c[0] * c[1]  # f
    out[4] = 1.0  # A
    out[5] = 0.0  # b
    out[6] = 0.0  # gamma
    out[7] = x[0]  # residual
    out[8] = 0.0  # static
    out[9] = 0.0  # kinetic
    out[10] = c[2]  # restitution
    out[11] = 0.0  # tangential_restitution
    out[12] = 1.0  # closes_if
    out[13] = 0.0  # elastic
    out[14] = 0.5 * c[1] * x[1] ** 2
    out[15] = c[0] * c[1] * x[0]
    out[16] = out[17] = 0.0  # reach and its rate


def ball(tolerances: Tolerances | None = None) -> Tables:
    """Return a ball that is open (mode 0) or closed (mode 1)."""
    return make_tables(
        1,
        1,
        n_p=3,
        contacts=1,
        terms=ball_terms,
        modes=[
            (ball_open_rhs, ball_open_full, [0], [(Event.CLOSES, 0, 0.0)]),
            (ball_closed_rhs, ball_closed_full, [1], [(Event.OPENS, 0, 0.0)]),
        ],
        tolerances=tolerances,
    )


# --- a mechanism without contacts: x = [q, u], transitions fire on a written guard ---------------------------


def written(
    acceleration: Any,
    guards: list[tuple[Any, Any]],
    *,
    stop: bool = False,
    resets: list[Any] | None = None,
    tolerances: Tolerances | None = None,
) -> Tables:
    """Return one mode with ``q'' = acceleration(t, q, u)`` and user-defined transitions onto itself.

    ``guards`` are (value(t, q, u), slope(t, q, u)); ``resets`` kernels that write the new [q, u].
    """
    n_g = len(guards)

    @kernel
    def rhs(t, x, c, out):  # type: ignore[no-untyped-def]
        out[0] = x[1]
        out[1] = acceleration(t, x[0], x[1])

    @kernel
    def full(t, x, c, out):  # type: ignore[no-untyped-def]
        out[0] = out[2] = x[1]
        out[1] = acceleration(t, x[0], x[1])
        out[3] = 1.0
        for i, (value, slope) in enumerate(guards):
            out[4 + i], out[4 + n_g + i] = value(t, x[0], x[1]), slope(t, x[0], x[1])

    _KEEP.extend([rhs, full, resets])
    return make_tables(
        1,
        1,
        modes=[(rhs, full, [], [(Event.TRANSITION, i, 0.0) for i in range(n_g)])],
        transitions=[{"target": 0, "stop": int(stop), "reset": resets[i].address if resets else 0} for i in range(n_g)],
        tolerances=tolerances,
    )


# --- a particle in a corner: gaps x[0] and x[1]; p = [pull towards 0, pull towards 1, restitution] -----------


def _corner_kernels(held0: bool, held1: bool) -> tuple[Any, Any, list[tuple[int, int, float]]]:
    a, b = (0.0 if held0 else 1.0), (0.0 if held1 else 1.0)

    @kernel
    def rhs(t, x, c, out):  # type: ignore[no-untyped-def]
        out[0] = a * x[2]
        out[1] = b * x[3]
        out[2] = -a * c[0]
        out[3] = -b * c[1]

    @kernel
    def full(t, x, c, out):  # type: ignore[no-untyped-def]
        out[0] = a * x[2]
        out[1] = b * x[3]
        out[2] = -a * c[0]
        out[3] = -b * c[1]
        out[4] = a * x[2]
        out[5] = b * x[3]
        out[6] = 1.0
        out[7] = a * x[0] + (1.0 - a) * c[0]
        out[8] = b * x[1] + (1.0 - b) * c[1]
        out[9] = a * x[2]
        out[10] = b * x[3]
        out[11] = (1.0 - a) * c[0]
        out[12] = (1.0 - b) * c[1]

    _KEEP.extend([rhs, full])
    guards = [(Event.OPENS if held else Event.CLOSES, k, 0.0) for k, held in enumerate((held0, held1))]
    return rhs, full, guards


@kernel
def corner_terms(t, x, c, out):  # type: ignore[no-untyped-def]
    for i in range(40):
        out[i] = 0.0
    for k in range(2):
        out[k] = x[2 + k]  # q_dot
        out[2 + 3 * k] = 1.0  # W
        out[6 + 3 * k] = 1.0  # M
        out[10 + k] = -c[k]  # f
        out[12 + 3 * k] = 1.0  # A
        out[20 + k] = x[k]  # residual
        out[26 + k] = c[2]  # restitution
        out[30 + k] = 1.0  # closes_if
    out[34] = 0.5 * (x[2] ** 2 + x[3] ** 2)
    out[35] = c[0] * x[0] + c[1] * x[1]


def corner(held: list[tuple[bool, bool]] | None = None) -> Tables:
    """Return a particle in a corner with the given combinations of contacts as modes (default: all four)."""
    held = held or [(False, False), (True, False), (False, True), (True, True)]
    modes = []
    for first, second in held:
        rhs, full, guards = _corner_kernels(first, second)
        modes.append((rhs, full, [int(first), int(second)], guards))
    return make_tables(2, 2, n_p=3, contacts=2, terms=corner_terms, modes=modes)


def run_automaton(
    tables: Tables, x0: Any, c0: Any, mode0: int, t0: float, until: float, **options: Any
) -> loop.RunArrays:
    """Run an automaton; options of runs and further arguments of the loop by their names."""
    further = {name: options.pop(name) for name in FURTHER & {*options}}
    return loop.run_automaton(tables, x0, c0, mode0, t0, RunOptions(until, **options), **further)
