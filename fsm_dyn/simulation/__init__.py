"""The running half: integrators, events, transitions, all compiled, over kernels called by address."""
