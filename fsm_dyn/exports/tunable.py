"""Which parameters of an exported model can be set while it runs."""

from __future__ import annotations

from fsm_dyn import expressions
from fsm_dyn.exports.exported_run import ExportedRun
from fsm_dyn.live.live_stepper import structural_parameters


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
