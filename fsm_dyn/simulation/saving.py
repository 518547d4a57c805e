"""Saving the state of a run before its end time affects it, and restoring it.

A run ends with a step that is shortened to end there.  So that a run which is continued takes the same steps as one
that was not interrupted, what is saved is its state before it first mattered where it ends (``runtime/end_of_run.c``);
rows and transitions recorded after that are made again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.runtime import library
from fsm_dyn.runtime.abi import Counters, Phase, Reason, Restored, Sizes, Status
from fsm_dyn.simulation.loop_state import LoopState, ModeProvider, provide_requested
from fsm_dyn.simulation.saved_state import FirstRow, KnownCharts, SavedState, check

if TYPE_CHECKING:
    from fsm_dyn.runtime.library import RunStructure

NEARLY_SPENT: Final = 64  # steps left of those allowed, from which on the state is saved before every turn
CONTINUABLE: Final = (Status.DONE, Status.INTERRUPTED, Status.TOO_MANY_STEPS)


class Savable(Protocol):
    """What beside the runtime's state belongs to a run: a :class:`~fsm_dyn.simulation.executable.Executable`."""

    def charts_known(self) -> KnownCharts:
        """Charts that the run has asked for."""

    def online_modes(self) -> NDArray[np.int64]:
        """Addresses of the modes embedded online by their numbers, 0 for others."""


class Saver:
    """Saves the state of a run that may be continued.

    Parameters
    ----------
    source : Savable
    digest : int
        Digest (64 bits) of the model.
    """

    def __init__(self, source: Savable, digest: int) -> None:
        self.source = source
        self.digest = digest
        self.before_end = False  # whether what was saved stands before it mattered where the run ends
        self._saved: SavedState | None = None

    def save(
        self, loop: LoopState, run: RunStructure, solver: Mapping[str, Any] | None = None, *, before_end: bool = False
    ) -> None:
        """Save the current state; not once it has mattered where the run ends, nor before anything was recorded."""
        counters = loop.state.counters.tolist()
        fits = len(loop.state.armed) == loop.tables.sizes[Sizes.MAX_GUARDS]
        starting = counters[Counters.PHASE] == Phase.RESOLVING and counters[Counters.REASON] == Reason.START
        if self.before_end or not fits or starting or counters[Counters.ROWS] == 0:
            return
        self.before_end = before_end
        self._saved = SavedState(
            library.save(run, self.source.online_modes(), self.digest),
            counters[Counters.ROWS], counters[Counters.TRANSITIONS], counters[Counters.PASSED],
            self.source.charts_known(), loop.charted, solver,
        )  # fmt: skip

    def keep(self, saved: SavedState) -> None:
        """Take a state that was saved otherwise."""
        self._saved = saved

    def saved_of(self, outcome: int) -> SavedState | None:
        """Return the state from which a run that ended so can be continued; None where it cannot."""
        return self._saved if outcome in CONTINUABLE else None


def restore(
    loop: LoopState,
    handle: Callable[[], RunStructure],
    saved: SavedState,
    first: FirstRow,
    saver: Saver,
    modes: ModeProvider | None,
) -> None:
    """Give a loop that is about to start a saved state, and the row recorded last.

    Parameters
    ----------
    loop : LoopState
    handle : callable
        Gives the addresses of all that the run works on, as they are now.
    saved, first, saver
        What was saved, and of which model and settings.
    modes : ModeProvider, optional
        Asked for modes of the saved state that the tables lack.

    Raises
    ------
    InputError
        The state is damaged, or does not belong to this model and these settings.
    """
    while True:
        result = library.restore(handle(), saver.source.online_modes(), saver.digest, saved.words)
        if result != Restored.LACKS_MODE or provide_requested(loop, Status.NEED_MODE, modes) is not None:
            break
    check(result)
    loop.charted = saved.charted
    loop.buffers.rows[0] = first.values
    loop.buffers.modes[0] = first.mode
    loop.state.counters[Counters.ROWS] = 1
