"""Live sessions: a model coupled to a device in real time, its servo loop, limits, recording and replay."""
