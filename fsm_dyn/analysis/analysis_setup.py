"""Runs for the purposes of analysis: from any state, in any mode, as plain arrays."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fsm_dyn.analysis.jacobians import Array, ModeDerivatives, mode_derivatives
from fsm_dyn.analysis.memory_roles import kept_quantities
from fsm_dyn.automaton.initial_state import InitialState
from fsm_dyn.automaton.initial_values import initial_state, parameter_vector
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.errors import InputError, did_you_mean
from fsm_dyn.modes.programs import ModePrograms
from fsm_dyn.results.result_builder import record_of, run_model
from fsm_dyn.results.trajectory import Trajectory
from fsm_dyn.run_inputs import InputValue, resolve_inputs
from fsm_dyn.simulation.executable import Executable
from fsm_dyn.simulation.input_signals import InputSignals
from fsm_dyn.simulation.numerics import numerics_of
from fsm_dyn.simulation.run_arrays import RunArrays, renumbered
from fsm_dyn.simulation.run_loop import run_automaton
from fsm_dyn.simulator import Simulator, simulator_of
from fsm_dyn.spec.controller_memory import refuse_controllers
from fsm_dyn.spec.values import Parameters, ParameterValue, parameter_values

LONGEST = 1e4  # s; over which a Python callable as an input may have to be tabulated


@dataclass(frozen=True)
class AnalysisSetup:
    """A graph with the values of parameters and inputs under which its motions are studied.

    Attributes
    ----------
    atol : float
        In the mechanism's own units.
    names : tuple of str
        Parameters by which derivatives are taken, as the kernels know them: each by itself.
    kept : tuple of str
        Memory that varies with the motion, a part of the state.
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
        """What varies from motion to motion, but not within a mode: memory, then parameters."""
        return (*self.kept, *self.names)

    @property
    def variations(self) -> int:
        """Number of rows of a variation: of the states, the memory that varies, the parameters."""
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
        """Return the setting for what a user gives.

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
        # the executable is the setting's own as long as that lives
        weakref.finalize(setting, simulator.give_back, executable, "compiled")
        return setting

    def start(self, initial: Mapping[str, float | str] | None = None, vector: Array | None = None) -> InitialState:
        """Return where a run begins; ``vector`` may replace the parameters in the order of the layout."""
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
        number = self.executable.mode_index(states)
        return run_automaton(
            self.executable.tables, x, context, number, since, until, rtol=self.rtol,
            atol=self.atol * self.executable.numerics.states, drive=self.drive, mode_source=self.executable,
            workspace=self.simulator.workspace,
        )  # fmt: skip

    def context(self, held: Array) -> Array:
        """Return contexts, shape (..., n_c), from what a run records beside the parameters."""
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
        """Return a run as its user meets it."""
        executable, drive, context = self.executable, self.drive, raw.c_end
        raw, order = renumbered(raw, len(self.graph.automaton.modes))
        names = [executable.chart_names[number] for number in order]
        charts = [executable.chart_programs[number] for number in order]
        model = run_model(executable.automaton, names, charts, self.vector, self.numbers)
        return Trajectory(model, record_of(executable.automaton, names, raw, lambda times: drive(times, context)))
