"""From an automaton to a run: the caller of the runtime, simulators, results."""
