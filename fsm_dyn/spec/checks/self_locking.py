"""Screws that their friction keeps from turning under a load along the axis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from fsm_dyn.errors import ModelError
from fsm_dyn.spec.evaluate import evaluate
from fsm_dyn.spec.joint import HelicalJoint
from fsm_dyn.spec.model import Mechanism


def self_locking_screws(mechanism: Mechanism, values: Mapping[str, float | Sequence[float]]) -> list[str]:
    """Return a sentence for each screw whose lead angle is not above its angle of static friction.

    Parameters
    ----------
    mechanism : Mechanism
        The model.
    values : mapping
        All parameters, SI.  A screw whose friction depends on more (inputs, memory) is not judged.
    """
    return [
        f"{name}: tan(lead angle) = {slope:.4g} <= {friction:.4g}, its static friction"
        for name, slope, friction in _screws(mechanism, values)
        if slope <= friction
    ]


def _screws(mechanism: Mechanism, values: Mapping[str, float | Sequence[float]]) -> Iterator[tuple[str, float, float]]:
    """Yield name, tangent of the lead angle and static friction of each screw with friction."""
    for joint in mechanism.joints.values():
        if not isinstance(joint, HelicalJoint) or joint.thread is None:
            continue
        lead, radius, friction = joint.thread
        try:
            slope = abs(evaluate(lead, values)) / (2.0 * math.pi * evaluate(radius, values))
            yield joint.name, slope, evaluate(friction, values)
        except ModelError:
            continue
