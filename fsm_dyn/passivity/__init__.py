"""Passivity of a coupled model with a device: conditions, response of the sampled loop, verdicts."""
