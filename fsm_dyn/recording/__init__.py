"""What a run leaves behind: the :class:`Trajectory`, its transitions, its energy account, files."""

from fsm_dyn.recording.energy import EnergyAccount
from fsm_dyn.recording.record import Record, Row, RunModel
from fsm_dyn.recording.samples import Samples, State
from fsm_dyn.recording.trajectory import Trajectory
from fsm_dyn.recording.transitions import Transition

__all__ = [
    "EnergyAccount",
    "Record",
    "Row",
    "RunModel",
    "Samples",
    "State",
    "Trajectory",
    "Transition",
]
