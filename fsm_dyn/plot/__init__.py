"""Static figures of runs and mode graphs, as Matplotlib figures and files.

``from fsm_dyn import plot`` imports Matplotlib, which takes longer than most runs; nothing else in the package does so
before a picture is asked for.
"""

from fsm_dyn.plot.animation import animation
from fsm_dyn.plot.drawing import draw
from fsm_dyn.plot.energy import energy
from fsm_dyn.plot.film_strip import film_strip
from fsm_dyn.plot.forces import forces
from fsm_dyn.plot.guards import guards
from fsm_dyn.plot.modes import modes
from fsm_dyn.plot.motion import motion
from fsm_dyn.plot.outcome import outcome
from fsm_dyn.plot.phase import phase
from fsm_dyn.plot.states import states
from fsm_dyn.plot.study import study
from fsm_dyn.plot.style import save
from fsm_dyn.plot.thumbnail import thumbnail
from fsm_dyn.plot.tolerance_study import requirements, sequence_map
from fsm_dyn.plot.z_width import z_width
from fsm_dyn.renamed import renamed_in_module

__getattr__ = renamed_in_module("fsm_dyn.plot", {"ending": "outcome"})

__all__ = [
    "animation",
    "draw",
    "energy",
    "film_strip",
    "forces",
    "guards",
    "modes",
    "motion",
    "outcome",
    "phase",
    "requirements",
    "save",
    "sequence_map",
    "states",
    "study",
    "thumbnail",
    "z_width",
]  # fmt: skip
