"""Executable whose modes, all or those not derived, are embedded online."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fsm_dyn.automaton.hybrid_automaton import Automaton, DerivedMode
from fsm_dyn.modes.programs import RunnableMode
from fsm_dyn.online.context import Contexts
from fsm_dyn.online.guard_enclosure import OnlineEnclosure, online_enclosure
from fsm_dyn.online.mode import OnlineKernels, OnlineMode
from fsm_dyn.online.term_programs import online_programs
from fsm_dyn.programs import compile_programs
from fsm_dyn.programs.enclosure_code import EnclosureCode
from fsm_dyn.runtime.abi import NEVER
from fsm_dyn.runtime.layouts import Tables
from fsm_dyn.simulation.derived_modes import DerivedModes
from fsm_dyn.simulation.executable import NO_MODES, Array, Executable, ModeChart
from fsm_dyn.simulation.numerics import Numerics
from fsm_dyn.simulation.tolerances import Tolerances


class OnlineExecutable(Executable):
    """Executable that derives nothing during a run, unless a subclass grants an allowance.

    Its modes keep charts and workspace, so one run at a time may use it.

    Parameters
    ----------
    automaton, home, tolerances, known
        As for :class:`~fsm_dyn.simulation.executable.Executable`.
    derived : sequence of DerivedMode
        Modes that run by their own kernels; all others are embedded online.
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
        """Append the mode with these contact states; raise RunError where the model does not list it."""
        codes = self.check_listed(states, t)
        self._sets.append(codes)
        self._append_online(codes, len(self._sets) - 1)
        return self.tables

    def own_kernels(self) -> list[int]:
        """Return the addresses of the rates of all modes that have kernels."""
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
        """What encloses the guards of modes embedded online."""
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
        # not where this run happens to meet it: the mode stays for the runs that come after
        x, c = self.home
        place = (0.0, self.automaton.touching(states, 0.0, x, c), c)
        mode = OnlineMode.of(self.automaton, states, self._contexts, place)
        own = OnlineKernels(mode)
        self._online[own.full] = own
        self.charts.append(ModeChart(group, mode, own.rhs, own.full, self.allowance(mode)))
        self.tables = self._build()

    def allowance(self, mode: OnlineMode) -> int:
        """Return after how many evaluations in a run a mode embedded online has earned kernels of its own."""
        return NEVER
