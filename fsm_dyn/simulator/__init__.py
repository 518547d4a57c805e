"""From a graph to a trajectory: the objects that runs of one thread share."""

from __future__ import annotations

from fsm_dyn.simulator.run_options import ALL_METHODS, STRATEGIES, strategy_named
from fsm_dyn.simulator.simulator import Resume, Simulator, simulator_of

__all__ = ["ALL_METHODS", "STRATEGIES", "Resume", "Simulator", "simulator_of", "strategy_named"]
