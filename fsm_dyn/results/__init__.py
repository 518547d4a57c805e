"""Results of a run: the :class:`Trajectory`, its transitions, its energy balance, files."""

from fsm_dyn.results.energy import EnergyBalance
from fsm_dyn.results.record import ConstraintRowInfo, RunModel, RunRecord
from fsm_dyn.results.samples import Samples, State
from fsm_dyn.results.trajectory import Trajectory
from fsm_dyn.results.transitions import Transition

__all__ = [
    "ConstraintRowInfo",
    "EnergyBalance",
    "RunModel",
    "RunRecord",
    "Samples",
    "State",
    "Trajectory",
    "Transition",
]
