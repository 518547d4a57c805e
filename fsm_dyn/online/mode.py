"""Mode embedded online: context, evaluator and kernels."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.modes.embedding import ActiveSet
from fsm_dyn.modes.guard_list import list_guards
from fsm_dyn.modes.guards import Guard
from fsm_dyn.online import context as oc
from fsm_dyn.programs import BoundKernels
from fsm_dyn.runtime import library
from fsm_dyn.runtime.abi import OnlineChoice, OnlineKernel, Sizes
from fsm_dyn.runtime.layouts import Tables

Array = npt.NDArray[np.float64]
Place = tuple[float, Array, Array]

OPEN = 1e-9  # share of a row in forces that do nothing, above which its multiplier is not determined

_OUTPUTS = ("x_dot", "u", "pivot", "guards", "slopes", "multipliers")
_ROUTINE = ctypes.CFUNCTYPE(ctypes.c_int64, *2 * [ctypes.c_int64], ctypes.c_double, *3 * [ctypes.c_int64])


def routine_address() -> int:
    """Return the address of the routine behind all modes embedded online."""
    return library.address("fsm_online_evaluate")


@dataclass(frozen=True)
class OnlineFull:
    """Substitutes for the full program of a mode.

    ``contexts`` makes what it works in.
    """

    states: tuple[int, ...]
    guards: tuple[Guard, ...]
    contexts: oc.Contexts

    def context(self) -> oc.Context:
        """Return a context of the mode, nothing chosen in it yet."""
        return self.contexts.new(self.states, self.guards)

    def evaluate(self, t: Any, x: Any, c: Any) -> dict[str, Array]:
        """Return the outputs of a full program by name, at many states, each in a chart chosen there.

        Parameters
        ----------
        t : array-like, shape (...,)
            Times, s.
        x, c : array-like, shapes (..., n_x), (..., n_c)
        """
        x, c = np.asarray(x, np.float64), np.asarray(c, np.float64)
        shape = np.broadcast_shapes(np.shape(t), x.shape[:-1], c.shape[:-1])
        times = np.broadcast_to(np.asarray(t, np.float64), shape).ravel()
        states = np.ascontiguousarray(np.broadcast_to(x, (*shape, x.shape[-1]))).reshape(len(times), -1)
        contexts = np.ascontiguousarray(np.broadcast_to(c, (*shape, c.shape[-1]))).reshape(len(times), -1)
        s, n_g = self.contexts.tables.sizes, len(self.guards)
        n_u, n_x = int(s[Sizes.N_U]), int(s[Sizes.N_Q] + s[Sizes.N_U])
        out = np.zeros((len(times), n_x + n_u + 1 + 2 * n_g + int(s[Sizes.N_ROWS])))
        context = self.context()
        call = _ROUTINE(routine_address())
        at = (states.ctypes.data, contexts.ctypes.data, out.ctypes.data)
        for i, time in enumerate(times):
            context.chart[OnlineChoice.CHOSEN] = 0
            rows = (base + i * array.strides[0] for base, array in zip(at, (states, contexts, out), strict=True))
            call(context.packed.address, OnlineKernel.FULL, time, *rows)
        parts = np.split(out, np.cumsum([n_x, n_u, 1, n_g, n_g]), axis=1)
        return {name: part.reshape(*shape, -1) for name, part in zip(_OUTPUTS, parts, strict=True)}


class ModeEvaluator:
    """Evaluates a mode at one state after another in one context, as a run does: it keeps its chart while that is good.

    Parameters
    ----------
    full : OnlineFull
        Of the mode.
    """

    def __init__(self, full: OnlineFull) -> None:
        s, n_g = full.contexts.tables.sizes, len(full.guards)
        n_u, n_x = int(s[Sizes.N_U]), int(s[Sizes.N_Q] + s[Sizes.N_U])
        self._context = full.context()
        self._call = _ROUTINE(routine_address())
        self._out = np.zeros(n_x + n_u + 1 + 2 * n_g + int(s[Sizes.N_ROWS]))
        self._ends = np.cumsum([n_x, n_u, 1, n_g, n_g])
        self._kept = full.contexts

    def __call__(self, t: float, x: Array, c: Array) -> dict[str, Array]:
        """Return the outputs of a full program by name at a time (s), state and context."""
        x, c = np.ascontiguousarray(x, np.float64), np.ascontiguousarray(c, np.float64)
        self._call(
            self._context.packed.address, OnlineKernel.FULL, t, x.ctypes.data, c.ctypes.data, self._out.ctypes.data
        )
        return dict(zip(_OUTPUTS, np.split(self._out.copy(), self._ends), strict=True))

    @property
    def redundant(self) -> bool:
        """Whether constraint rows were redundant at the state evaluated last."""
        return bool(self._context.chart[OnlineChoice.ACTIVE] > self._context.chart[OnlineChoice.RANK])


@dataclass(frozen=True)
class OnlineMode:
    """Mode without programs of its own: states, guards, evaluator, redundant rows."""

    states: tuple[int, ...]
    guards: tuple[Guard, ...]
    full: OnlineFull
    indeterminate: tuple[int, ...]

    @classmethod
    def of(
        cls,
        automaton: Automaton,
        states: tuple[int, ...],
        contexts: oc.Contexts,
        place: Place,
    ) -> OnlineMode:
        """List what the mode with these contact states is; its contacts touch at ``place``: time, state and context."""
        guards = list_guards(automaton.system, states, automaton.outgoing_transitions(automaton.name_of(states)))
        full = OnlineFull(states, guards, contexts)
        return cls(states, guards, full, indeterminate_rows(automaton, states, place))


class OnlineKernels:
    """The kernels ``rhs`` and ``full`` of a mode, with the context they work in."""

    def __init__(self, mode: OnlineMode) -> None:
        self.context = mode.full.context()
        self.address = at = self.context.packed.address
        self._closures = BoundKernels(routine_address(), [(at, OnlineKernel.RHS), (at, OnlineKernel.FULL)])
        self.rhs, self.full = self._closures.addresses

    @property
    def choices(self) -> int:
        """How often a chart was chosen so far."""
        return int(self.context.chart[OnlineChoice.CHOICES])

    @property
    def memory(self) -> int:
        """Memory that the mode works in, bytes."""
        return self.context.memory

    def use(self, tables: Tables) -> None:
        """Take over the tolerances of tables."""
        self.context.state_unit[:] = tables.state_unit
        self.context.row_unit[:] = tables.row_unit
        self.context.limits[:] = oc.limits_of(tables)

    def forget(self) -> None:
        """Let a chart be chosen where the mode is evaluated next."""
        self.context.chart[OnlineChoice.CHOSEN] = 0


def indeterminate_rows(automaton: Automaton, states: tuple[int, ...], place: Place) -> tuple[int, ...]:
    """Rows of the mode whose forces others can take over."""
    active = ActiveSet.of(automaton.system, states)
    if not active.rows:
        return ()
    terms = automaton.terms.evaluate(*place, only={"M": None, "A": list(active.rows)})
    n = len(automaton.terms.layout.u)
    inertia = np.diagonal(terms["M"])[:n]
    rows = terms["A"][:, :n] / np.sqrt(np.where(inertia > 0.0, inertia, 1.0))
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    left, values, _ = np.linalg.svd(rows / np.where(sizes > 0.0, sizes, 1.0))
    idle = left[:, int(np.sum(values > OPEN)) :]
    return tuple(
        row for row, share in zip(active.rows, np.abs(idle).max(axis=1, initial=0.0), strict=True) if share > OPEN
    )
