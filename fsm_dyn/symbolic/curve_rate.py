"""The rate at which a place of contact follows along a curve: ``ξ̇ = -c_ξ⁻¹ (ċ + k c)`` (docs/theory.md).

``c`` is the slope of what is least at the place of contact.  The term with ``k`` lets ξ, which is integrated, return
to it; it has no part in the motion of anything else, since the gap does not depend on ξ to first order.
"""

from __future__ import annotations

from dataclasses import dataclass

from fsm_dyn.programs import Node
from fsm_dyn.symbolic.contact_kinematics import CurveParameter
from fsm_dyn.symbolic.partial_velocities import Motion
from fsm_dyn.symbolic.speeds import Speeds

RETURN = 10.0  # 1/s


@dataclass(frozen=True)
class CurveParameterRate:
    """The rate of a parameter: ``columns`` times the speeds plus ``rest``; ``rate`` with kinematic speeds at zero."""

    parameter: Node
    columns: tuple[Node, ...]
    rest: Node
    rate: Node


def follow(motion: Motion, following: CurveParameter, speeds: Speeds) -> CurveParameterRate:
    """Return the rate of the parameter of a contact on a curve.

    Parameters
    ----------
    motion : Motion
        With all speeds as symbols, kinematic ones included.
    following : CurveParameter
        The parameter and its equation.
    """
    *columns, rest = (column[0] for column in motion.columns([following.slope]))
    factor = -1.0 / following.bend
    W = tuple(factor * column for column in columns)
    X = factor * (rest + RETURN * following.slope)
    rate = X
    for coefficient, symbol in zip(W, speeds.declared, strict=False):
        rate = rate + coefficient * symbol
    return CurveParameterRate(following.parameter, W, X, rate)
