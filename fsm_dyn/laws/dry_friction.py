"""Dry friction on a speed: a friction force with given bounds, and no normal force."""

from __future__ import annotations

from typing import Final

from fsm_dyn.laws.declaration import Entry, Law, Option
from fsm_dyn.laws.friction import BECAME, LIMIT, REST

DRY_FRICTION: Final = Law(
    name="dry_friction",
    normal="none",
    states=lambda frictional, infinite: ("", "stick", "slide"),
    guards=(LIMIT, REST),
    events=lambda frictional, infinite, limited: ("sticks", "slides"),
    became=BECAME,
    entry=Entry(
        "dry_friction",
        "dry friction",
        "Dry friction on a speed.",
        needs=(Option("speed", "slip"), Option("static", "static"), Option("kinetic", "kinetic")),
    ),
)
