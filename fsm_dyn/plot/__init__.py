"""Static figures of runs and mode graphs, as Matplotlib figures and files.

``from fsm_dyn import plot`` imports Matplotlib, which takes longer than most runs; nothing else in the package does so
before a picture is asked for.
"""

from fsm_dyn.plot.animation import animation, film_strip
from fsm_dyn.plot.drawing import draw
from fsm_dyn.plot.forces import energy, forces, guards, loads
from fsm_dyn.plot.mechanism import partial_velocities
from fsm_dyn.plot.motion import motion, outcome, thumbnail
from fsm_dyn.plot.score import score
from fsm_dyn.plot.study import requirements, sequence_map, study, z_width
from fsm_dyn.plot.style import save
from fsm_dyn.plot.timelines import modes, phase, run_graph, states

__all__ = [
    "animation",
    "draw",
    "energy",
    "film_strip",
    "forces",
    "guards",
    "loads",
    "modes",
    "motion",
    "outcome",
    "partial_velocities",
    "phase",
    "requirements",
    "run_graph",
    "save",
    "score",
    "sequence_map",
    "states",
    "study",
    "thumbnail",
    "z_width",
]  # fmt: skip
