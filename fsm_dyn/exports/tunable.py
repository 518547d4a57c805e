"""Which parameters of an exported model can be set while it runs."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn import expressions
from fsm_dyn.errors import InputError
from fsm_dyn.exports.exported_run import ExportedRun
from fsm_dyn.live.live_stepper import structural_parameters
from fsm_dyn.spec.values import parameter_values

_BELOW: Final = -1e-9  # values next to the limits that a model file may set
_ABOVE: Final = 1.0 + 1e-9
_SMALLEST: Final = float(np.finfo(np.float64).tiny)


def parameter_limits(run: ExportedRun) -> dict[str, NDArray[Any]]:
    """Return of each parameter whether it is ``tunable``, and its ``lowest`` and ``highest`` values, SI, included.

    The limits are those that a model file has: a coefficient of restitution is from 0 to 1, one of friction not
    negative.  Of parameters that cannot be set they are infinite.
    """
    names, mechanism = run.automaton.terms.layout.p, run.automaton.mechanism
    tunable = tunable_parameters(run)
    scalars = [name for name in tunable if name in mechanism.parameters]

    def possible(name: str, value: float) -> bool:
        try:
            parameter_values(mechanism, {name: value})
        except InputError:
            return False
        return True

    lowest, highest = np.full(len(names), -math.inf), np.full(len(names), math.inf)
    for name in scalars:
        at = names.index(name)
        if not possible(name, _BELOW):
            zero = possible(name, 0.0)
            if zero or possible(name, _SMALLEST):
                lowest[at] = 0.0 if zero else _SMALLEST
        if possible(name, 1.0) and not possible(name, _ABOVE):
            highest[at] = 1.0
    return {
        "tunable": np.array([name in tunable for name in names], np.int8), "lowest": lowest, "highest": highest,
    }  # fmt: skip


def tunable_parameters(run: ExportedRun) -> list[str]:
    """Return the parameters that enter forces alone, and that no other depends on; vectors element by element.

    The others enter gaps, constraints or inertia, so that the start would have to be assembled again, or values that
    were computed when the model was exported.

    Parameters
    ----------
    run : ExportedRun
        What is exported.
    """
    structural = structural_parameters(run.automaton)
    texts = {name: parameter.values for name, parameter in run.automaton.mechanism.parameters.items()}
    read = {
        name: {free for text in values for free in expressions.free_names(expressions.parse(text))} & set(texts)
        for name, values in texts.items()
    }
    computed = {name for name in texts if read[name]}.union(*read.values())
    return [
        name
        for name in run.automaton.terms.layout.p
        if name not in structural and name.partition("[")[0] in texts.keys() - computed
    ]
