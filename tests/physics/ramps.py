"""Ramps of forces that bring contacts to their limits where all forces cancel, and what may not come of them.

Where a spring, a weight or a finger balance each other, the accelerations are all rounding; whether a contact is
released, begins to slide or changes its face is then decided by what the location of the event resolves.  A run may end
early for a reason in the mechanism, and then a ramp close by ends for it too; where that one does not, the
end was *false*.

One model for every law of a contact; shipped ones are in :mod:`tests.campaign.ramps`.  ``campaign("slot", 1000)`` makes
a thousand runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import fsm_dyn

CLOSE_BY = 1e-9  # relative change of a ramp that decides whether an end is false
MOST_STEPS = 100_000


def _puck(contact: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A point pressed on the ground by a stiff spring that is far from its rest; forces lift and push it."""
    coordinates = ["x", "y", *(["z"] if more.get("space") else [])]
    pushes = [{"force": "s*push*A.x", "at": "P"}]
    if more.get("space"):
        pushes += [{"force": "s*across*N.z", "at": "P"}, {"force": "-s*c*vel(P)", "at": "P"}]
    return {
        "fsm_dyn": 1,
        "name": more["name"],
        "parameters": {"m": 0.3, "k": 40.0, "c": 0.7, "mu": 0.4, "tilt": 0.3, "s": 1.0},
        "coordinates": coordinates,
        "frames": {"A": {"parent": "N", "rotate": {"z": "tilt"}}},
        "points": {
            "P": {"from": "O", "at": " + ".join(f"{q}*A.{q}" for q in coordinates)},
            "L": {"from": "O", "at": "-0.03*A.x - 0.09*A.y"},
        },
        "bodies": {"puck": {"center": "P", "mass": "s*m"}},
        "inputs": ["lift", "push", "across"] if more.get("space") else ["lift", "push"],
        "contacts": {"ground": contact},
        "loads": [
            {"spring": {"between": ["L", "P"], "stiffness": "s*k", "free": 0.02, "damping": "s*c"}},
            {"spring": {"coordinate": "x", "stiffness": "s*k/3", "free": 0.0}},
            {"force": "s*lift*A.y", "at": "P"},
            *pushes,
        ],
    }


# input: (least and largest force, shortest and longest piece of a ramp)
_FORCES = {"lift": (-3.0, 6.0, 0.05, 1.0), "push": (-3.0, 3.0, 0.05, 1.0)}
_IN_SPACE = {**_FORCES, "across": (-3.0, 3.0, 0.05, 1.0)}
_SLIP = {"gap": "y", "slip": "rate(x)"}
_SPATIAL = {"gap": "y", "slip": ["rate(x)", "rate(z)"]}

_DRAWER = {
    "fsm_dyn": 1,
    "name": "drawer",
    "parameters": {"m": 0.3, "k": 40.0, "s": 1.0},
    "coordinates": ["x"],
    "points": {"P": {"from": "O", "at": "x*N.x"}},
    "bodies": {"drawer": {"center": "P", "mass": "s*m"}},
    "inputs": ["push"],
    "contacts": {"rail": {"dry_friction": {"speed": "rate(x)", "static": "s*1.3", "kinetic": "s*1.3"}}},
    "loads": [{"force": "s*push*N.x", "at": "P"}, {"spring": {"coordinate": "x", "stiffness": "s*k", "free": 0.02}}],
}

_BOX = {
    "fsm_dyn": 1,
    "name": "box",
    "parameters": {"m": 1.0, "a": 0.2, "b": 0.3, "mu": 0.4, "g": 9.81, "s": 1.0},
    "coordinates": ["x", "y", "q"],
    "frames": {"B": {"parent": "N", "rotate": {"z": "q"}}},
    "points": {
        "C": {"from": "O", "at": "x*N.x + (y + b/2)*N.y"},
        "P1": {"from": "C", "at": "-a/2*B.x - b/2*B.y"},
        "P2": {"from": "C", "at": "a/2*B.x - b/2*B.y"},
    },
    "bodies": {"box": {"frame": "B", "center": "C", "mass": "s*m", "inertia": {"zz": "s*m*(a**2 + b**2)/12"}}},
    "inputs": ["lift", "push"],
    "contacts": {
        "c1": {"gap": "dot(pos(P1), N.y)", "slip": "dot(vel(P1), N.x)", "friction": "mu", "restitution": 0.2},
        "c2": {"gap": "dot(pos(P2), N.y)", "slip": "dot(vel(P2), N.x)", "friction": "mu", "restitution": 0.2},
    },
    "loads": [{"gravity": "-g*N.y"}, {"force": "s*lift*N.y", "at": "C"}, {"force": "s*push*N.x", "at": "C"}],
}

#: one model for every law of a contact: (model, ranges of its ramps)
LAWS: dict[str, tuple[dict[str, Any], dict[str, tuple[float, float, float, float]]]] = {
    "release": (_puck({"gap": "y"}, name="release"), _FORCES),
    "friction": (_puck({**_SLIP, "friction": "mu"}, name="friction"), _FORCES),
    "static_above_kinetic": (
        _puck({**_SLIP, "friction": {"static": "1.3*mu", "kinetic": "mu"}}, name="static_above_kinetic"),
        _FORCES,
    ),
    "never_slides": (_puck({**_SLIP, "friction": "inf"}, name="never_slides"), {"lift": _FORCES["lift"]}),
    "in_space": (_puck({**_SPATIAL, "friction": "mu"}, name="in_space", space=True), _IN_SPACE),
    "slot": (_puck({**_SLIP, "friction": "mu", "bilateral": True}, name="slot"), _FORCES),
    "compliant": (
        _puck({**_SLIP, "friction": "mu", "compliant": {"stiffness": "s*3e3", "dissipation": 0.3}}, name="compliant"),
        _FORCES,
    ),
    "compliant_in_space": (
        _puck(
            {**_SPATIAL, "friction": "mu", "compliant": {"stiffness": "s*3e3", "dissipation": 0.3}},
            name="compliant_in_space",
            space=True,
        ),
        _IN_SPACE,
    ),
    "drawer": (_DRAWER, {"push": (-3.0, 3.0, 0.05, 1.0)}),
    "box": (_BOX, {"lift": (0.0, 15.0, 0.05, 1.0), "push": (-6.0, 6.0, 0.05, 1.0)}),
}


@dataclass(frozen=True)
class Ramp:
    """One run to be made: the inputs over time and the parameters that differ."""

    model: str
    seed: int
    until: float
    inputs: dict[str, dict[str, list[list[float]]]]
    parameters: dict[str, float]

    def close_by(self) -> Ramp:
        """The same ramp with forces larger by one part in 10⁹."""
        larger = {
            name: {"linear": [[t, f * (1.0 + CLOSE_BY)] for t, f in given["linear"]]}
            for name, given in self.inputs.items()
        }
        return Ramp(self.model, self.seed, self.until, larger, self.parameters)

    def run(self, graph: Any) -> Any:
        """Make the run; a named failure is returned like any other end."""
        return fsm_dyn.simulate(
            graph, self.until, inputs=self.inputs, parameters=self.parameters, on_failure="return", max_steps=MOST_STEPS
        )


def ramp(model: str, seed: int) -> Ramp:
    """The ramp with this number, the same on every machine; every second one has round numbers, every
    eighth or so takes a microsecond and less.

    All masses and forces are larger by a power of ten, between 10⁻⁶ and 10⁶: the motion does not depend on it.
    """
    rng = np.random.default_rng([seed, sum(map(ord, model))])
    given, until = {}, 0.0
    is_round, is_steep = bool(rng.random() < 0.5), bool(rng.random() < 0.25)
    for name, (low, high, shortest, longest) in LAWS[model][1].items():
        pieces = int(rng.integers(1, 5))
        lengths = rng.uniform(shortest, longest, pieces)
        if is_steep:
            lengths[rng.integers(pieces)] *= 1e-6
        times = np.concatenate([[0.0], np.cumsum(lengths)])
        forces = np.concatenate(
            [[0.0 if rng.random() < 0.7 else rng.uniform(low, high)], rng.uniform(low, high, pieces)]
        )
        if is_round and not is_steep:
            times, forces = np.arange(pieces + 1) * max(round(float(times[1]), 2), 0.05), np.round(forces, 1)
        given[name] = {"linear": [[float(t), float(f)] for t, f in zip(times, forces, strict=True)]}
        until = max(until, float(times[-1]))
    return Ramp(model, seed, until, given, {"s": 10.0 ** int(rng.integers(-6, 7))})


def judge(graph: Any, one: Ramp) -> str:
    """Return what is wrong with the end of a run, nothing if it is as it must be."""
    try:
        run = one.run(graph)
    except Exception as error:  # an end without a name is what is looked for, whatever its type
        return f"{type(error).__name__}: {error}"
    if not run.outcome.failed:
        return ""
    end = f"{run.outcome.name} at {run.t[-1]:.12g} s in {run.modes[-1]}"
    return "" if one.close_by().run(graph).outcome.failed else f"false end: {end}"


def campaign(model: str, count: int, first: int = 0) -> Iterator[tuple[Ramp, str]]:
    """Make so many runs of a model, and give those whose end is wrong."""
    graph = fsm_dyn.compile(LAWS[model][0])
    for seed in range(first, first + count):
        one = ramp(model, seed)
        wrong = judge(graph, one)
        if wrong:
            yield one, wrong
