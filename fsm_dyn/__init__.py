"""fsm_dyn: mechanisms whose constraints come and go, as graphs of derived modes.

Public names are loaded at their first use: a program for help texts or runs of a saved automaton does not wait for
other parts.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fsm_dyn.analysis.equation_check import check_equation
    from fsm_dyn.analysis.exploration import explore
    from fsm_dyn.analysis.limit_cycle import limit_cycle
    from fsm_dyn.analysis.linearisation import linearise, static_equilibrium
    from fsm_dyn.analysis.method_counts import count_methods, state_variables
    from fsm_dyn.analysis.searches import fit, worst_case
    from fsm_dyn.analysis.study import study, tolerance_study
    from fsm_dyn.analysis.verification import verify
    from fsm_dyn.automaton.compilation import compile, load
    from fsm_dyn.automaton.mode_graph import ModeGraph, open_graph
    from fsm_dyn.core.errors import FsmDynError, InputError, ModelError, RunError
    from fsm_dyn.exports.export import export
    from fsm_dyn.language.builder import Model
    from fsm_dyn.language.model import Mechanism
    from fsm_dyn.run.pin_loads import wrench
    from fsm_dyn.run.run_options import RunOptions
    from fsm_dyn.run.simulator import Simulator, open_run, simulate
    from fsm_dyn.run.tolerances import Tolerances
    from fsm_dyn.run.trajectory import Trajectory

__version__ = "0.1.0"

_HOMES = {
    "FsmDynError": "fsm_dyn.core.errors",
    "InputError": "fsm_dyn.core.errors",
    "Mechanism": "fsm_dyn.language.model",
    "ModeGraph": "fsm_dyn.automaton.mode_graph",
    "Model": "fsm_dyn.language.builder",
    "ModelError": "fsm_dyn.core.errors",
    "RunError": "fsm_dyn.core.errors",
    "RunOptions": "fsm_dyn.run.run_options",
    "Simulator": "fsm_dyn.run.simulator",
    "Tolerances": "fsm_dyn.run.tolerances",
    "Trajectory": "fsm_dyn.run.trajectory",
    "check_equation": "fsm_dyn.analysis.equation_check",
    "compile": "fsm_dyn.automaton.compilation",
    "count_methods": "fsm_dyn.analysis.method_counts",
    "export": "fsm_dyn.exports.export",
    "explore": "fsm_dyn.analysis.exploration",
    "fit": "fsm_dyn.analysis.searches",
    "limit_cycle": "fsm_dyn.analysis.limit_cycle",
    "linearise": "fsm_dyn.analysis.linearisation",
    "load": "fsm_dyn.automaton.compilation",
    "open_graph": "fsm_dyn.automaton.mode_graph",
    "open_run": "fsm_dyn.run.simulator",
    "simulate": "fsm_dyn.run.simulator",
    "state_variables": "fsm_dyn.analysis.method_counts",
    "static_equilibrium": "fsm_dyn.analysis.linearisation",
    "study": "fsm_dyn.analysis.study",
    "tolerance_study": "fsm_dyn.analysis.study",
    "verify": "fsm_dyn.analysis.verification",
    "worst_case": "fsm_dyn.analysis.searches",
    "wrench": "fsm_dyn.run.pin_loads",
}

_PARTS = ("plot",)  # parts with public names of their own

__all__ = [
    "FsmDynError",
    "InputError",
    "Mechanism",
    "ModeGraph",
    "Model",
    "ModelError",
    "RunError",
    "RunOptions",
    "Simulator",
    "Tolerances",
    "Trajectory",
    "check_equation",
    "compile",
    "count_methods",
    "explore",
    "export",
    "fit",
    "limit_cycle",
    "linearise",
    "load",
    "open_graph",
    "open_run",
    "simulate",
    "state_variables",
    "static_equilibrium",
    "study",
    "tolerance_study",
    "verify",
    "worst_case",
    "wrench",
]


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return import_module(f"fsm_dyn.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'fsm_dyn' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_PARTS, "__version__"])
