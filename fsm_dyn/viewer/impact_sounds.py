"""Impact sounds: contacts that close, with time and speed, from the transition records."""

from __future__ import annotations

from typing import Final

import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.laws import Event
from fsm_dyn.live.session import LiveSession
from fsm_dyn.simulation.run_arrays import read_transitions

SLOWEST: Final = 0.012  # m/s or rad/s, threshold of audible impacts
APART: Final = 0.03  # s, least interval of audible impacts of one contact, unless the second is faster


class ImpactSounds:
    """Impacts of a session; much faster than the event log, so that it can be polled often.

    Parameters
    ----------
    session : LiveSession
    automaton : Automaton
        Of the coupled model.
    """

    def __init__(self, session: LiveSession, automaton: Automaton) -> None:
        self._session = session
        self._names = [contact.name for contact in automaton.contacts]
        self._gaps = np.array([contact.contact_law.has_gap for contact in automaton.contacts] or [False])
        self._shape = len(automaton.rows), len(automaton.terms.layout.u)
        self._asked = 0
        self._last: dict[str, tuple[float, float]] = {}

    def new_impacts(self) -> list[tuple[str, float, float]]:
        """Return contact, model time, s, and approach velocity, m/s or rad/s, of the impacts since the last call."""
        if self._session.transition_count <= self._asked:
            return []
        records, self._asked = self._session.records(self._asked)
        found = read_transitions(records[:, 1:], *self._shape)
        closed = found.event == Event.CLOSES
        heard = closed & self._gaps[np.where(closed, found.contact, 0)] & (-found.slope > SLOWEST)
        impacts = [
            (self._names[found.contact[i, k]], float(found.time[i]), -float(found.slope[i, k]))
            for i, k in zip(*np.nonzero(heard), strict=True)
        ]
        return [impact for impact in impacts if self._apart(*impact)]

    def _apart(self, name: str, t: float, speed: float) -> bool:
        """Return whether an impact is audible after the previous one of its contact."""
        before, fast = self._last.get(name, (-np.inf, 0.0))
        if before <= t < before + APART and speed <= fast:
            return False
        self._last[name] = t, speed
        return True
