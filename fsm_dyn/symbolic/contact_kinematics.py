"""Contact kinematics of two features; :mod:`fsm_dyn.symbolic.contact_geometry` derives them."""

from __future__ import annotations

from dataclasses import dataclass

from fsm_dyn.programs import Node


@dataclass(frozen=True)
class ContactKinematics:
    """Two features seen together.

    Attributes
    ----------
    gap : Node
        m; the distance where both face each other, negative where they overlap.
    slip : Node
        m/s; see :mod:`fsm_dyn.symbolic.contact_geometry`.
    across : Node or None
        m/s; in space, the second component of the slip.
    reach : Node or None
        m; positive where the gap means something, None where it always does.
    margin_slope : Node or None
        Derivative of the reach by the slip's way, +1 or -1: at the end of the face that is nearer.  Of a corner on a
        face that ends.
    starts_ahead : bool
        Whether that end is the start of the face where the derivative is +1 (else it is its end).
    aspect : Node or None
        m; least of ``e . n`` over the edges ``e`` that leave the corner, n being the normal of the face: the corners
        next to it do not lie behind the face that the corner touches.  Of a circle the height of its far side,
        or how deep its centre is in a convex polygon; None at a corner of the other shape.
    whole_circle : bool
        Whether it is a circle touched from outside, and the contact has a reach.
    gap_slope : Node or None
        m/rad; derivative of the gap by the parameter that follows, where it is not zero; zero where the gap is.
    """

    gap: Node
    slip: Node
    reach: Node | None
    following: CurveParameter | None = None
    across: Node | None = None
    margin_slope: Node | None = None
    starts_ahead: bool = True
    aspect: Node | None = None
    whole_circle: bool = False
    gap_slope: Node | None = None


@dataclass(frozen=True)
class CurveParameter:
    """How the place of contact moves along a curve.

    It is where ``measure`` is least: ``slope`` is its derivative by the parameter, zero there, and ``bend`` the second.

    Attributes
    ----------
    parameter : Node
        Symbol of the coordinate that follows (rad).
    """

    parameter: Node
    measure: Node
    slope: Node
    bend: Node
