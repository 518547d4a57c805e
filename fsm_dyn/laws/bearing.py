"""Friction of a joint: on its speed, bounded in proportion to the resultant of the forces of the joint's rows.

``static`` and ``kinetic`` are coefficients of the resultant; in a journal bearing they contain the radius.  In an
impact such a joint has no friction impulse (docs/theory.md, "Friction of joints").
"""

from __future__ import annotations

from typing import Final

from fsm_dyn.laws.declaration import Law
from fsm_dyn.laws.friction import BECAME, LIMIT, REST

BEARING: Final = Law(
    name="bearing",
    normal="none",
    loaded=True,
    states=lambda frictional, infinite: ("", "stick", "slide"),
    guards=(LIMIT, REST),
    events=lambda frictional, infinite, limited: ("sticks", "slides"),
    became=BECAME,
)
