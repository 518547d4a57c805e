"""Parameters of many runs that differ in some of them: only what follows from these is evaluated and checked again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from fsm_dyn.errors import ExpressionError, ModelError
from fsm_dyn.expressions import Text
from fsm_dyn.spec.checks.unit_usage import texts_of
from fsm_dyn.spec.checks.value_ranges import check_numbers
from fsm_dyn.spec.evaluate import ParameterValue, evaluate, names_in
from fsm_dyn.spec.model import Mechanism
from fsm_dyn.spec.values import Given, parameter_values

T = TypeVar("T")


class VariedValues:
    """Values of all parameters, SI, of runs that differ in some of them.

    Parameters
    ----------
    mechanism : Mechanism
    given : mapping
        Overrides that all runs share, as for :func:`fsm_dyn.spec.values.parameter_values`.
    names : iterable of str
        Scalar parameters that differ.

    Attributes
    ----------
    base : dict
        The values with ``given`` alone.
    affected : frozenset of str
        The parameters named, and all that follow from them.

    Raises
    ------
    InputError
        ``given`` is impossible.
    """

    def __init__(self, mechanism: Mechanism, given: Mapping[str, Given], names: Iterable[str]) -> None:
        self._mechanism, self._given, self._names = mechanism, given, frozenset(names)
        self.base = parameter_values(mechanism, given)
        affected = set(self._names)
        self._dependent = []
        for name, parameter in mechanism.parameters.items():
            if name not in affected and name not in given and affected & names_of(parameter.values):
                affected.add(str(name))
                self._dependent.append(parameter)
        self.affected = frozenset(affected)
        shapes = self._part(mechanism.shapes)
        known = all(name in mechanism.parameters and not mechanism.parameters[name].is_vector for name in self._names)
        self._whole = bool(shapes) or not known  # of a shape it is checked how it lies
        contacts = mechanism.contacts if self._part(mechanism.contacts) else {}  # stops are checked in pairs
        self._checked = replace(
            mechanism,
            parameters={
                name: item for name, item in mechanism.parameters.items()
                if item.tolerance is not None and self.concerns(item.tolerance)
            },
            bodies=self._part(mechanism.bodies), joints=self._part(mechanism.joints), shapes=shapes, contacts=contacts,
            coordinates=self._part(mechanism.coordinates) if not contacts else mechanism.coordinates,
            loads=tuple(item for item in mechanism.loads if self._computes([text for _, text in item.coefficients])),
            inputs=self._part(mechanism.inputs), scenarios=self._part(mechanism.scenarios),
            initial=replace(
                mechanism.initial,
                values={name: text for name, text in mechanism.initial.values.items() if self._computes([text])},
                guess={name: text for name, text in mechanism.initial.guess.items() if self._computes([text])},
            ),
            numerics=self._part(mechanism.numerics), controllers=self._part(mechanism.controllers),
            ports=self._part(mechanism.ports),
            view={name: forms for name, forms in mechanism.view.items() if self._computes([*texts_of(forms)])},
        )  # fmt: skip

    def concerns(self, part: object) -> bool:
        """Return whether an expression in a part of the mechanism names a parameter that differs."""
        return bool(self.affected & names_of(part))

    def of(self, case: Mapping[str, float]) -> dict[str, ParameterValue]:
        """Return the values of a run.

        Parameters
        ----------
        case : mapping
            Values of the parameters that differ, SI.

        Raises
        ------
        InputError
            They are impossible: as of :func:`fsm_dyn.spec.values.parameter_values`.
        """
        values: dict[str, ParameterValue] = {**self.base, **case}
        try:
            if case.keys() != self._names or self._whole or not all(map(math.isfinite, case.values())):
                return parameter_values(self._mechanism, {**self._given, **case})
            for parameter in self._dependent:
                numbers = tuple(evaluate(text, values) for text in parameter.values)
                values[str(parameter.name)] = numbers if parameter.is_vector else numbers[0]
            check_numbers(self._checked, values)
        except ModelError:
            return parameter_values(self._mechanism, {**self._given, **case})  # with the error of the whole file
        return values

    def _computes(self, texts: Iterable[Text]) -> bool:
        """Return whether one of some expressions follows from what differs, and is not a parameter itself."""
        return any(self.concerns(text) and text.text not in self._mechanism.parameters for text in texts)

    def _part(self, section: Mapping[str, T]) -> dict[str, T]:
        """Return the entries of a section of the file that name a parameter that differs."""
        return {name: item for name, item in section.items() if self.concerns(item)}


def names_of(part: object) -> frozenset[str]:
    """Return the names in the expressions of a part of a mechanism."""
    found: set[str] = set()
    for text in texts_of(part):
        try:
            found |= names_in(text.text)
        except ExpressionError:  # no expression of names
            continue
    return frozenset(found)
