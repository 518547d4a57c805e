"""What a run is given: parameters, inputs, start and tolerances, worked out once for all runs that begin alike."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from fsm_dyn.automaton.initial_state import InitialState
from fsm_dyn.automaton.initial_values import initial_values, parameter_vector
from fsm_dyn.errors import InputError
from fsm_dyn.modes.elimination import Array
from fsm_dyn.run_inputs import InputValue, default_end, input_parameters, resolve_inputs, scenario_schedules
from fsm_dyn.simulation.input_signals import InputSignals
from fsm_dyn.simulation.numerics import Numerics, numerics_of
from fsm_dyn.simulation.tolerances import Tolerances
from fsm_dyn.simulator.executable_pool import ExecutablePool
from fsm_dyn.spec.model import Schedule
from fsm_dyn.spec.values import Parameters, ParameterValue, parameter_values


@dataclass(frozen=True)
class RunSetup:
    """What a run is given: parameters by name and as a vector, its usual end (s), inputs, start."""

    numbers: Mapping[str, ParameterValue]
    vector: Array
    end: float
    inputs: Mapping[str, InputValue]
    drive: InputSignals
    start: InitialState


class RunSetups(ExecutablePool):
    """Executables of a graph, and what its runs are given."""

    def setup(
        self,
        scenario: str | None,
        inputs: Mapping[str, InputValue],
        parameters: Parameters | None,
        initial: Mapping[str, float | str],
        until: float | None,
    ) -> RunSetup:
        """Return what a run with these arguments of :func:`fsm_dyn.simulate` is given.

        Parameters
        ----------
        scenario : str
            Schedules of the model; by default ``schedule``.
        inputs : Mapping[str, InputValue]
            Signals by name, in the units of the inputs.
        parameters : Parameters
            Values by name, SI or with units.
        initial : Mapping[str, float or str]
            Coordinates, speeds and ``mode``.
        until : float
            End, s; by default that of the schedules.

        Returns
        -------
        RunSetup

        Raises
        ------
        InputError
            Values are not given by name.
        """
        if inputs or parameters or initial:
            for name, given in (("inputs", inputs), ("parameters", parameters), ("initial", initial)):
                if given and not isinstance(given, Mapping):
                    raise InputError(f"'{name}' is not a mapping", found=repr(given)[:80], allowed="values by name")
            return self._new_setup(scenario, inputs, parameters, initial, until)
        return self.remember(("usual", scenario, until), lambda: self._new_setup(scenario, {}, None, {}, until))

    def _new_setup(
        self,
        scenario: str | None,
        inputs: Mapping[str, InputValue],
        parameters: Parameters | None,
        initial: Mapping[str, float | str],
        until: float | None,
    ) -> RunSetup:
        graph, automaton = self.graph, self.graph.automaton
        numbers: Mapping[str, ParameterValue] = graph.values
        vector = graph.parameters
        if parameters:
            numbers = parameter_values(automaton.mechanism, parameters)
            vector = parameter_vector(numbers)
        named = scenario_schedules(automaton, scenario) if scenario is not None else {}
        end = default_end(automaton, numbers, named)
        replaced = {**named, **inputs}
        key = inputs_key(vector, replaced)
        made = self.input_signals(numbers, key, replaced, (0.0, end if until is None else until))

        def started() -> InitialState:
            return self.initial_state_of(initial_values(automaton, numbers, vector, initial, made))

        # by their text: 0.0 and -0.0 are two values
        start = started() if key is None else self.remember(("start of", *key, repr(sorted(initial.items()))), started)
        return RunSetup(numbers, vector, end, replaced, made, start)

    def input_signals(
        self,
        numbers: Mapping[str, ParameterValue],
        key: tuple[Hashable, ...] | None,
        inputs: Mapping[str, InputValue],
        span: tuple[float, float],
    ) -> InputSignals:
        """Return the signals of the inputs.

        Parameters
        ----------
        numbers : Mapping[str, ParameterValue]
            Parameters by name, SI.
        key : tuple or None
            That of :func:`inputs_key`.
        inputs : Mapping[str, InputValue]
            By name, in the units of the inputs.
        span : tuple of float
            From when to when, s.
        """

        def make() -> InputSignals:
            return resolve_inputs(self.graph.automaton, numbers, inputs, span)

        if key is None:
            return make()
        items = key[1:]  # what is given, without the parameters
        needed = self.remember(("parameters of", *items), lambda: (input_parameters(self.graph.automaton, inputs),))[0]
        read = {name: value for name, value in numbers.items() if needed is None or name in needed}
        return self.remember(("drive", parameter_vector(read).tobytes(), *items, span), make)

    def numerics(
        self, numbers: Mapping[str, ParameterValue], vector: Array, tolerances: Mapping[str, float] | None = None
    ) -> Numerics:
        """Return tolerances and units of a run with these parameters, by name and as a vector.

        Parameters
        ----------
        numbers : Mapping[str, ParameterValue]
            Parameters by name, SI.
        vector : ndarray, shape (n_p,)
            The same in the order of the layout.
        tolerances : Mapping[str, float], optional
            Entries of :class:`fsm_dyn.Tolerances`.

        Returns
        -------
        Numerics
        """
        given = tolerances or {}
        return self.remember(
            ("numerics", vector.tobytes(), *given.items()),
            lambda: numerics_of(self.graph.automaton, numbers, Tolerances(**given)),
        )


def inputs_key(vector: Array, inputs: Mapping[str, InputValue]) -> tuple[Hashable, ...] | None:
    """Return all that the inputs of a run depend on; None where a callable or a list is among them.

    Parameters
    ----------
    vector : ndarray, shape (n_p,)
        Parameters in the order of the layout, SI.
    inputs : mapping
        By name, in the units of the inputs.

    Returns
    -------
    tuple or None
    """
    if any(not isinstance(value, str | float | int | Schedule) for value in inputs.values()):
        return None
    return (vector.tobytes(), tuple(sorted(inputs.items(), key=lambda item: item[0])))
