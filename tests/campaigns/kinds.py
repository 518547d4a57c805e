"""The campaigns: a name, the function that makes a case from a seed, and how many cases there are to be."""

from typing import NamedTuple

from tests.campaigns import agreement, laws, ramps


class Kind(NamedTuple):
    """One campaign: ``case(seed)`` returns a mapping with ``ok`` and ``reason``; ``cases`` make it complete."""

    case: object
    cases: int
    says: str


RAMPS = "random input ramps: no unnamed and no false end"
LAWS = "random starts: energy, gaps, pressure, friction"
FLUSH = "towers, tiles, dominoes: energy, overlap, pressure, friction"

CAMPAIGNS = {
    "ramps of toggle_switch": Kind(ramps.toggle_switch, 1000, RAMPS),
    "ramps of push_button": Kind(ramps.push_button, 1000, RAMPS),
    "ramps of piano_action_simple": Kind(ramps.piano_action_simple, 1000, RAMPS),
    "laws, models with contacts": Kind(laws.contact_models, 7000, LAWS),
    "laws, flush geometry": Kind(laws.flush_geometry, 3000, FLUSH),
    "agreement of methods": Kind(agreement.methods_agreement, 500, "the same end by every method"),
}
