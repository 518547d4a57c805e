"""Running forms of a graph that are kept from run to run, the modes that runs have derived, and what else is kept."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final, TypeVar

import numpy as np

from fsm_dyn.automaton.initial_state import InitialState
from fsm_dyn.automaton.initial_values import InitialConditions, initial_values, parameter_vector, solve_initial_state
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.online.earned_modes import EarnedExecutable
from fsm_dyn.online.online_executable import OnlineExecutable
from fsm_dyn.results.record import RunModel
from fsm_dyn.runtime.abi import NEVER
from fsm_dyn.simulation.derived_modes import DerivedModes
from fsm_dyn.simulation.executable import Executable
from fsm_dyn.simulator.run_options import Allowance
from fsm_dyn.spec.values import parameter_values

MOST_KEPT: Final = 2**26  # bytes of modes that runs have met, up to which the next run has them at once
MOST_EXECUTABLES: Final = 8  # ways of running for which kernels are kept
LONGEST_MEMORY: Final = 64  # starts, inputs and the like that are kept for the next runs

T = TypeVar("T")


class ExecutablePool:
    """Executables of a graph, each in one run at a time, and results kept for the next runs.

    Parameters
    ----------
    graph : ModeGraph

    Attributes
    ----------
    graph : ModeGraph
        As given.
    """

    def __init__(self, graph: ModeGraph) -> None:
        self.graph = graph
        # by strategy, those that no run has at the moment
        self._executables: dict[tuple[str, Hashable], list[Executable]] = {}
        self._modes = DerivedModes(MOST_KEPT)  # by runs
        self._memory: dict[Hashable, Any] = {}
        if graph.start is not None:
            self._memory[initial_values(graph.automaton, graph.values, graph.parameters).key] = graph.start

    def take(self, strategy: str, derive_after: Allowance = None) -> Executable:
        """Return the running form of the graph, without the charts of earlier runs; in no other run until given back.

        Parameters
        ----------
        strategy : "compiled", "online" or "auto"
        derive_after : float or mapping, optional
            As for :func:`fsm_dyn.simulate`.
        """
        idle = self._executables.setdefault(_executable_key(strategy, derive_after), [])
        executable = idle.pop() if idle else self._new_executable(strategy, derive_after)
        executable.reset_charts()
        return executable

    def give_back(self, executable: Executable, strategy: str, derive_after: Allowance = None) -> None:
        """Keep an executable for the next run, unless its modes occupy too much memory.

        The next run makes a new one then, which derives its modes again; its result is the same.

        Parameters
        ----------
        executable : Executable
            What :meth:`take` returned.
        strategy : str
            With which it was taken.
        derive_after : Allowance, optional
            With which it was taken.
        """
        if executable.memory > MOST_KEPT:
            self._memory = {key: kept for key, kept in self._memory.items() if not isinstance(kept, RunModel)}
            return
        self._executables.setdefault(_executable_key(strategy, derive_after), []).append(executable)
        if len(self._executables) > MOST_EXECUTABLES:
            self._executables.pop(next(iter(self._executables)), None)

    @property
    def memory(self) -> int:
        """Memory of modes that are kept for the next runs, bytes.

        At most 64 MiB of those that runs have derived, and 64 MiB a way of running, of which eight are kept.  What is
        dropped is made again by the run that needs it, which gives the same to the last bit.
        """
        return self._modes.memory + sum(executable.memory for idle in self._executables.values() for executable in idle)

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what was made for ``key`` before, or make it now; kept are those that were used last.

        Parameters
        ----------
        key : Hashable
            All that the result depends on.
        make : Callable[[], T]
            Makes it, without arguments.

        Returns
        -------
        object
            What ``make`` returned, now or before.
        """
        found: T | None = self._memory.pop(key, None)
        if found is None:
            found = make()
        self._memory[key] = found
        if len(self._memory) > LONGEST_MEMORY:
            self._memory.pop(next(iter(self._memory)), None)
        return found

    def _new_executable(self, strategy: str, derive_after: Allowance) -> Executable:
        automaton = self.graph.automaton
        numbers = parameter_values(automaton.mechanism)  # of the file, see model_start
        start = self.initial_state_of(initial_values(automaton, numbers, parameter_vector(numbers)))
        home = start.x.copy(), start.context.copy()
        if strategy == "compiled":
            return Executable(self.graph.with_modes(self._modes).automaton, home, known=self._modes)
        if strategy == "online":
            return OnlineExecutable(automaton, home)
        after = NEVER if derive_after == np.inf else derive_after
        return EarnedExecutable(automaton, home, derived=automaton.modes, known=self._modes, derive_after=after)

    def initial_state_of(self, begin: InitialConditions) -> InitialState:
        """Return the start that values make; settling takes its time, so it is kept for all runs that begin alike."""
        return self.remember(begin.key, lambda: solve_initial_state(self.graph.automaton, begin))


def _executable_key(strategy: str, derive_after: Allowance) -> tuple[str, Hashable]:
    return strategy, tuple(sorted(derive_after.items())) if isinstance(derive_after, Mapping) else derive_after
