"""Whether two runs are the same to the last bit, and the ways of running that are compared."""

import numpy as np

METHODS = {
    "dopri5": {},
    "online": {"strategy": "online"},
    "auto": {"strategy": "auto", "derive_after": 100},
    "rk4": {"method": "rk4", "step": 1e-3},
    "heun": {"method": "heun", "step": 1e-3},
    "euler": {"method": "euler", "step": 1e-3},
    "radau": {"method": "radau"},
    "bdf": {"method": "bdf"},
    "moreau_jean": {"method": "moreau_jean", "step": 1e-3},
}
ROWS = ("t", "x", "x_dot", "held")


def rows_that_differ(one, other):
    """Names of the arrays in which ``other`` is not, byte for byte, the end of ``one``; modes by their names."""
    last = len(other)
    found = [
        name for name in ROWS if getattr(one.record, name)[-last:].tobytes() != getattr(other.record, name).tobytes()
    ]
    return found + ["modes"] * (one.modes[-last:] != other.modes)


def differences(one, other):
    """What differs between two runs: names of arrays, transitions, modes, outcome, change points, inputs."""
    found = rows_that_differ(one, other)
    inside = ~one.record.starts
    if not found and one.record.x_mid[inside].tobytes() != other.record.x_mid[inside].tobytes():
        found.append("x_mid")
    for name in ("transitions", "change_points", "outcome"):
        if repr(getattr(one, name)) != repr(getattr(other, name)):
            found.append(name)
    if len(one) != len(other) or one.record.mode.tobytes() != other.record.mode.tobytes():
        found.append("numbers of modes")
    if one.model.modes != other.model.modes:
        found.append("names of modes")
    if not found:
        times = np.linspace(one.t[0], one.t[-1], 101)
        found += [name for name, u in one.sample(times).inputs.items() if np.any(u != other.sample(times).inputs[name])]
    return found
