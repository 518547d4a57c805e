"""Simulation: tables, state, inputs, tolerances and outcomes that Python and the runtime exchange; implicit methods."""
