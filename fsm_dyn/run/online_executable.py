"""Executables: modes embedded online, frequently evaluated ones derived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fsm_dyn.automaton.hybrid_automaton import Automaton, DerivedMode
from fsm_dyn.core.errors import ModelError
from fsm_dyn.derive.guards import Guard, guard_catalogue, list_guards
from fsm_dyn.derive.mode_programs import ModePrograms, RunnableMode
from fsm_dyn.programs.enclosure_code import EnclosureCode
from fsm_dyn.programs.kernels import compile_programs
from fsm_dyn.programs.program import Program
from fsm_dyn.run.executable import NO_MODES, Array, DerivedModes, Executable, ModeChart
from fsm_dyn.run.online import (
    Contexts,
    OnlineEnclosure,
    OnlineKernels,
    OnlineMode,
    indeterminate_rows,
    online_enclosure,
    online_programs,
)
from fsm_dyn.run.tables import GuardEnclosures, guard_enclosures
from fsm_dyn.run.tolerances import Numerics, Tolerances
from fsm_dyn.runtime.abi import NEVER, Event, Sizes
from fsm_dyn.runtime.layouts import Tables

# -- Executable whose modes, all or those not derived, are embedded online -----------------------------------


class OnlineExecutable(Executable):
    """Executable without derivation during a run, unless a subclass grants an allowance.

    Its modes keep charts and workspace, so one run at a time may use it.

    Parameters
    ----------
    automaton, home, tolerances, known
        As for :class:`~fsm_dyn.run.executable.Executable`.
    derived : sequence of DerivedMode
        Modes with their own kernels; all others are embedded online.
    """

    def __init__(
        self,
        automaton: Automaton,
        home: tuple[Array, Array] | None = None,
        tolerances: Tolerances | None = None,
        derived: Sequence[DerivedMode] = (),
        known: DerivedModes | None = None,
    ) -> None:
        self._sets = [mode.states for mode in derived]
        self._online: dict[int, OnlineKernels] = {}  # by the address of the full kernel
        self._online_kernels = compile_programs(online_programs(automaton.terms), keep_zeros=True)
        super().__init__(automaton, home, tolerances, derived, known)

    def reset_charts(self) -> None:
        """Keep one chart of every mode, and none of the choices made in runs before."""
        super().reset_charts()
        if not self._online:
            return
        self._online = {chart.full: self._online[chart.full] for chart in self.charts if chart.full in self._online}
        for kernels in self._online.values():
            kernels.forget()

    def use(self, numerics: Numerics) -> None:
        """Let the next run have these tolerances."""
        if numerics is not self.numerics:
            super().use(numerics)
            self._contexts.use(self.tables)
            for kernels in self._online.values():
                kernels.use(self.tables)

    def provide_mode(self, states: npt.NDArray[np.int8], t: float, x: Array, c: Array) -> Tables:
        """Append the mode with these contact states; raise RunError if the model does not list it."""
        codes = self.check_listed(states, t)
        self._sets.append(codes)
        self._append_online(codes, len(self._sets) - 1)
        return self.tables

    def own_kernels(self) -> list[int]:
        """Return the addresses of the rates of all modes with kernels."""
        return [chart.rhs for chart in self.charts if chart.full not in self._online]

    @property
    def memory(self) -> int:
        """Memory of the modes embedded online, bytes."""
        return sum(kernels.memory for kernels in self._online.values())

    def online_modes(self) -> npt.NDArray[np.int64]:
        """Addresses of the modes embedded online by their numbers, 0 for those with kernels of their own."""
        if not self._online:
            return NO_MODES
        online = [self._online.get(chart.full) for chart in self.charts]
        return np.array([0 if kernels is None else kernels.address for kernels in online], np.int64)

    def _add_chart(self, number: int, t: float, x: Array, c: Array) -> bool:
        """Append an online chart of a mode whose own kernels degenerate at a state; there is but one."""
        group = self.charts[number].mode
        if any(chart.mode == group and chart.full in self._online for chart in self.charts):
            return False
        self._append_online(self.charts[number].programs.states, group)
        return True

    @cached_property
    def guard_enclosure(self) -> OnlineEnclosure | None:
        """Enclosures of the guards of modes embedded online."""
        return online_enclosure(self.automaton.system)

    def _enclosure(self, programs: RunnableMode) -> EnclosureCode | None:
        if isinstance(programs, OnlineMode) and self.guard_enclosure is not None:
            return self.guard_enclosure.of(programs.guards)
        return super()._enclosure(programs)

    @cached_property
    def _contexts(self) -> Contexts:
        return Contexts(self.tables, self._online_kernels)

    def _append_online(self, states: tuple[int, ...], group: int) -> None:
        """Append a mode embedded online: a chart of active set number ``group``."""
        # its home is not where this run happens to meet it: the mode stays for later runs
        mode = OnlineMode.of(self.automaton, states, self._contexts, self.home)
        own = OnlineKernels(mode)
        self._online[own.full] = own
        self.charts.append(ModeChart(group, mode, own.rhs, own.full, self.allowance(mode), online=own.address))
        self.tables = self._with_last()

    def _sizes(self, counts: Sequence[int]) -> npt.NDArray[np.int64]:
        sizes = super()._sizes(counts)
        if self._online:
            sizes[Sizes.MAX_GUARDS] = max(sizes[Sizes.MAX_GUARDS], guard_catalogue(self.automaton.system).most)
        return sizes

    def _enclosures(self, counts: Sequence[int]) -> GuardEnclosures:
        shared = self.guard_enclosure if self._online else None
        if shared is None:
            return super()._enclosures(counts)
        codes = [self._columns_of(chart.programs).enclosure for chart in self.charts]
        return guard_enclosures(codes, counts, shared.code, guard_catalogue(self.automaton.system).most)

    def allowance(self, mode: OnlineMode) -> int:
        """Return after how many evaluations in a run a mode embedded online has earned kernels of its own."""
        return NEVER


# -- Modes embedded online when they are reached, and derived when they are evaluated often ------------------
#
#
# Online embedding is available at once. Its evaluations cost more than those of kernels, and kernels cost a
# derivation. A mode gets kernels when its evaluations have cost as much as its share of the derivation: to rent until
# the rent equals the price, and then to buy, costs at most twice the optimum (Karlin, Manasse, Rudolph and Sleator,
# "Competitive snoopy caching", 1988). Costs are counts: evaluations made in this run, and operations of the model.
# They are independent of the clock, of caches and of earlier runs, so the same run uses the same kernels from the
# same steps.

RUNS = 10  # runs among which the cost of a derivation is divided


class EarnedExecutable(OnlineExecutable):
    """Executable whose modes get kernels of their own after a number of evaluations in a run.

    Parameters
    ----------
    automaton, home, tolerances, derived, known
        As for :class:`~fsm_dyn.run.online_executable.OnlineExecutable`.
    derive_after : float or mapping, optional
        Evaluations after which a mode embedded online is derived, by default :func:`usual_allowance`; or these by the
        names of modes, of which others are never derived.
    """

    def __init__(
        self,
        automaton: Automaton,
        home: tuple[Array, Array] | None = None,
        tolerances: Tolerances | None = None,
        derived: Sequence[DerivedMode] = (),
        known: DerivedModes | None = None,
        derive_after: float | Mapping[str, float] | None = None,
    ) -> None:
        self._by_name = derive_after if isinstance(derive_after, Mapping) else None
        if isinstance(derive_after, Mapping):
            self._derive_after = NEVER
        else:
            self._derive_after = usual_allowance(automaton) if derive_after is None else int(derive_after)
        self._refused: set[tuple[int, ...]] = set()  # modes without own kernels
        super().__init__(automaton, home, tolerances, derived, known)

    def allowance(self, mode: OnlineMode) -> int:
        """Return after how many evaluations in a run a mode embedded online has earned kernels of its own."""
        if self._by_name is not None:
            return int(self._by_name.get(self.automaton.name_of(mode.states).name, NEVER))
        return self._derive_after

    def provide_chart(self, number: int, t: float, x: Array, c: Array) -> Tables:
        """Append a chart for the given state, unless the mode has one embedded online, valid in any state."""
        return self.tables if self._is_on_line(number) else Executable.provide_chart(self, number, t, x, c)

    def kernels_needed(self, number: int, t: float, x: Array, c: Array) -> Tables:
        """Append the mode's own kernels; or, if they are not good at the state given, those of a chart there.

        There are none where they cannot be derived, or have other guards, with which no run could continue in mid-mode;
        nor where contacts share forces: kernels would list all limits of the shares, which may be thousands, while
        online the widest margin of all is one guard.
        """
        chart = self.charts[number]
        if self._by_name is None and chart.full in self._online and chart.programs.indeterminate:
            self.charts[number] = replace(chart, allowance=NEVER)
            self.tables.mode_allowance[number] = NEVER
            return self.tables
        return Executable.provide_chart(self, number, t, x, c)

    def _is_on_line(self, number: int) -> bool:
        """Whether a run reached a chart's mode."""
        group = self.charts[number].mode
        return any(chart.mode == group and chart.full in self._online for chart in self.charts)

    def _add_chart(self, number: int, t: float, x: Array, c: Array) -> bool:
        """Append a chart of a mode of the graph, or kernels of one reached; tell whether there are any."""
        if not self._is_on_line(number):
            derives = self._derive_after != NEVER
            return Executable._add_chart(self, number, t, x, c) if derives else super()._add_chart(number, t, x, c)
        group, states = self.charts[number].mode, self.charts[number].programs.states
        if states in self._refused:
            return False
        own = [chart.programs for chart in self.charts if chart.mode == group and chart.full not in self._online]
        if own and self._by_name is not None:
            return False
        try:
            programs = (self.automaton.derive(states, t, x, c) if own else self.derived(states)).programs
        except ModelError:
            programs = None
        if programs is None or programs.guards != self.charts[number].programs.guards:
            if not own:  # the same in every run
                self._refused.add(states)
            return False
        if programs.full in [other.full for other in own]:
            return False
        self._append(group, programs)
        return True


def own_programs(automaton: Automaton, states: tuple[int, ...], home: tuple[Array, Array]) -> ModePrograms | None:
    """Return the programs of a mode for kernels of its own, derived for a state and context.

    None if it runs online alone: its contacts share forces, it cannot be derived, or has other guards then.
    """
    x, c = home
    if indeterminate_rows(automaton, states, (0.0, automaton.touching(states, 0.0, x, c), c)):
        return None
    try:
        programs = automaton.derive(states, 0.0, x, c, first=True).programs
    except ModelError:
        return None
    listed = list_guards(automaton.system, states, automaton.outgoing_transitions(automaton.name_of(states)))
    return programs if programs.guards == listed else None


def usual_allowance(automaton: Automaton) -> int:
    """Return after how many evaluations in a run a mode embedded online is derived, from the size of the model alone.

    Instructions of the modes of the graph give the cost of deriving another one; instructions of the terms, rows and
    speeds give the additional cost of an evaluation online.  The coefficients were fitted to 19 models of 7 to 2043
    instructions and 1 to 24 speeds, and give the ratio of both within a factor of 3.  Stated ranges count for nothing,
    and a motion within them is the one of the model without them, to the last bit.
    """
    transitions = automaton.mechanism.transitions
    lengths = []
    for mode in automaton.modes:
        own = [k for k, guard in enumerate(mode.guards) if not _is_bound(automaton, guard)]
        lengths.append(_length(mode.programs.full, {"guards": own, "slopes": own}))
    derivation = 5000.0 + 70.0 * sum(lengths) / max(1, len(lengths))  # µs
    written = [k for k, item in enumerate(transitions) if not item.range_of]
    n_u, n_rows = len(automaton.terms.layout.u), len(automaton.rows)
    more = 0.1 + 0.00022 * _length(automaton.terms, {"when": written}) + 0.0015 * n_rows * n_u + 0.00012 * n_u**3  # µs
    return round(derivation / (RUNS * more))


def _is_bound(automaton: Automaton, guard: Guard) -> bool:
    return guard.event is Event.TRANSITION and bool(automaton.mechanism.transitions[guard.subject].range_of)


def _length(program: Program, rows: Mapping[str, Sequence[int]]) -> int:
    """Return the numbers of instructions of some rows of outputs, and of all others."""
    if all(len(rows[output.name]) == output.shape[0] for output in program.results if output.name in rows):
        return len(program.instructions)
    return len(program.part({output.name: rows.get(output.name) for output in program.results}).instructions)
