"""Runs for analyses: from any state, in any mode, as plain arrays."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fsm_dyn.analysis.linearisation import ModeDerivatives, mode_derivatives
from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.initial_state import InitialState
from fsm_dyn.automaton.initial_values import initial_state, parameter_vector
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.elimination import Array
from fsm_dyn.derive.mode_programs import ModePrograms
from fsm_dyn.language.evaluate import ParameterValue
from fsm_dyn.language.memory import refuse_controllers
from fsm_dyn.language.values import Parameters, parameter_values
from fsm_dyn.programs.program import Program
from fsm_dyn.programs.traversal import gradient, support
from fsm_dyn.run.executable import Executable
from fsm_dyn.run.input_signals import InputSignals, InputValue, resolve_inputs
from fsm_dyn.run.loop import run_automaton
from fsm_dyn.run.loop_state import RunArrays, renumbered
from fsm_dyn.run.record import record_of, run_model
from fsm_dyn.run.run_options import RunOptions
from fsm_dyn.run.simulator import Simulator, simulator_of
from fsm_dyn.run.tolerances import numerics_of
from fsm_dyn.run.trajectory import Trajectory

# -- Roles of memory in a motion -----------------------------------------------------------------------------
#
# Memory is a continuously varying part of the state of a motion, a part with separate values, or a mere count.


def kept_quantities(automaton: Automaton) -> tuple[str, ...]:
    """Return the memory varying with the motion: a transition sets it from a state, a parameter or the time.

    Counts and switches take separate values, common to neighbouring motions.
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
    """Return the memory that affects the motion, without mere counts and printed values."""
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


# -- Runs for the purposes of analysis: from any state, in any mode, as plain arrays -------------------------

LONGEST = 1e4  # s; longest table of a Python callable as an input


@dataclass(frozen=True)
class AnalysisSetup:
    """A graph with the values of parameters and inputs of the studied motions.

    Attributes
    ----------
    atol : float
        In the mechanism's own units.
    names : tuple of str
        Parameters of the derivatives by their names in the kernels, each independent of the others.
    kept : tuple of str
        Memory varying with the motion, a part of the state.
    """

    graph: ModeGraph
    simulator: Simulator
    executable: Executable
    numbers: Mapping[str, ParameterValue]
    vector: Array
    drive: InputSignals
    rtol: float
    atol: float
    names: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def constants(self) -> tuple[str, ...]:
        """Constants of a motion within a mode: memory, then parameters."""
        return (*self.kept, *self.names)

    @property
    def variations(self) -> int:
        """Number of rows of a variation: states, varying memory, parameters."""
        return self.executable.automaton.terms.layout.n_x + len(self.constants)

    @classmethod
    def of(
        cls,
        graph: ModeGraph,
        parameters: Parameters | None = None,
        inputs: Mapping[str, InputValue] | None = None,
        rtol: float = 1e-10,
        atol: float = 1e-12,
        names: tuple[str, ...] = (),
    ) -> AnalysisSetup:
        """Return the setting for a user's arguments.

        Raises
        ------
        InputError
            A parameter or an input is unknown, or the model has a sampled controller.
        """
        automaton = graph.automaton
        refuse_controllers(automaton.mechanism, "an analysis of derivatives")
        numbers = parameter_values(automaton.mechanism, parameters) if parameters else graph.values
        for name in names:
            if name not in automaton.terms.layout.p:
                raise InputError(
                    f"'{name}' is no parameter of '{graph.name}'",
                    allowed=", ".join(automaton.terms.layout.p),
                    remedy=did_you_mean(name, automaton.terms.layout.p),
                )
        vector = parameter_vector(numbers)
        drive = resolve_inputs(automaton, numbers, inputs or {}, (0.0, LONGEST))
        simulator = simulator_of(graph)
        executable = simulator.take("compiled")
        executable.use(numerics_of(automaton, numbers))
        kept = kept_quantities(automaton)
        setting = cls(graph, simulator, executable, numbers, vector, drive, rtol, atol, names, kept)
        # the executable belongs to the setting for its lifetime
        weakref.finalize(setting, simulator.give_back, executable, "compiled")
        return setting

    def start(self, initial: Mapping[str, float | str] | None = None, vector: Array | None = None) -> InitialState:
        """Return the start of a run; ``vector`` may replace the parameters in the order of the layout."""
        if vector is None:
            return initial_state(self.executable.automaton, self.numbers, self.vector, initial, self.drive)
        numbers = dict(self.numbers)
        at = 0
        for name, value in self.numbers.items():
            size = len(value) if isinstance(value, tuple) else 1
            numbers[name] = tuple(vector[at : at + size]) if isinstance(value, tuple) else float(vector[at])
            at += size
        return initial_state(self.executable.automaton, numbers, vector, initial, self.drive)

    def run(self, x: Array, context: Array, states: tuple[int, ...], until: float, since: float = 0.0) -> RunArrays:
        """Run from a state in the mode with these contact states."""
        number, states_atol = self.executable.mode_index(states), self.atol * self.executable.numerics.states
        options = RunOptions(until, rtol=self.rtol, atol=states_atol)
        return run_automaton(
            self.executable.tables, x, context, number, since, options, drive=self.drive, mode_source=self.executable,
            workspace=self.simulator.workspace,
        )  # fmt: skip

    def context(self, held: Array) -> Array:
        """Return contexts, shape (..., n_c), from the recorded values of a run and the parameters."""
        parameters = np.broadcast_to(self.vector, (*held.shape[:-1], len(self.vector)))
        return np.concatenate([parameters, held], axis=-1)

    def derivatives(self, number: int) -> ModeDerivatives:
        """Return the derivative programs behind a mode number of a run, made once."""
        programs = self.executable.charts[number].programs
        if not isinstance(programs, ModePrograms):
            raise TypeError("a mode embedded online has no programs to differentiate")
        return self.simulator.remember(
            ("derivatives", programs.full.digest, self.constants), lambda: mode_derivatives(programs, self.constants)
        )

    def trajectory(self, raw: RunArrays) -> Trajectory:
        """Return a run in its public form."""
        executable, drive, context = self.executable, self.drive, raw.c_end
        raw, order = renumbered(raw, len(self.graph.automaton.modes))
        charts = [executable.charts[number].programs for number in order]
        names = [executable.mode_name(chart.states).name for chart in charts]
        model = run_model(executable.automaton, names, charts, self.vector, self.numbers)
        return Trajectory(model, record_of(executable.automaton, names, raw, lambda times: drive(times, context)))
