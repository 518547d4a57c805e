"""Runs: recorded rows with their model, of one run or of several; trajectories, verdicts and studies read them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fsm_dyn.core.arrays import BoolArray, FloatArray
from fsm_dyn.core.errors import InputError
from fsm_dyn.language.evaluate import evaluate_expression
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.requirement import ContactEvent
from fsm_dyn.run.encounters import event_times
from fsm_dyn.run.extremes import locate
from fsm_dyn.run.outcomes import COMPLETE
from fsm_dyn.run.pins import PinImpulses, of_connection
from fsm_dyn.run.record import RunModel, RunRecord
from fsm_dyn.run.samples import RecordedSamples, Samples


class Runs(RecordedSamples, ABC):
    """Recorded runs, 1 to n: their rows, and how they ended, for readers that judge all of them at once."""

    @property
    @abstractmethod
    def complete(self) -> BoolArray:
        """Flags of the runs that reached their end, shape (runs,)."""

    @abstractmethod
    def number(self, text: Text) -> FloatArray:
        """Return an expression of parameters in each run, shape (runs,), SI."""

    @abstractmethod
    def event_times(self, event: ContactEvent) -> Sequence[FloatArray]:
        """Return the times of an event of a contact in each run, s."""

    @property
    def time_stepping(self) -> bool:
        """Whether the runs were made by time stepping."""
        return False

    def pin_impulses(self, connection: str) -> Sequence[tuple[FloatArray, FloatArray]]:
        """Return times (s) and sizes (N s) of the impulses in a connection in each run."""
        raise NotImplementedError("impulses are found run by run")


class Run(Runs):
    """One run.

    Parameters
    ----------
    model : RunModel
    record : RunRecord
    """

    def __init__(self, model: RunModel, record: RunRecord) -> None:
        super().__init__(model, record, record.inputs)
        self.record = record

    @property
    def complete(self) -> BoolArray:
        """Whether it reached its end, shape (1,)."""
        return np.array([self.record.outcome.code in COMPLETE])

    @property
    def time_stepping(self) -> bool:
        """Whether it was made by time stepping."""
        return self.record.time_stepping

    def number(self, text: Text) -> FloatArray:
        """Return an expression of parameters, shape (1,), SI."""
        return np.array([evaluate_expression(text, self.model.values)])

    def event_times(self, event: ContactEvent) -> Sequence[FloatArray]:
        """Return the times of an event of a contact, s, as of the only run."""
        contacts = self.model.contact_entries.get(event.contact, (event.contact,))
        return [event_times(self.model, self.record.transitions, contacts, event.word)]

    def pin_impulses(self, connection: str) -> Sequence[tuple[FloatArray, FloatArray]]:
        """Return times (s) and sizes (N s) of the impulses in a connection, as of the only run."""
        found, hits = PinImpulses(self.all), [item for item in self.record.transitions if item.impulse]
        sizes = [float(np.linalg.norm(of_connection(found(item), connection)[:3])) for item in hits]
        return [(np.array([item.time for item in hits]), np.array(sizes))]

    def sample(self, times: npt.ArrayLike) -> Samples:
        """Return states at ``times`` (n,), at a transition the later side.

        Raises
        ------
        InputError
            If a time lies outside the run.
        """
        wanted, t = np.atleast_1d(np.asarray(times, dtype=np.float64)), self.record.t
        outside = wanted[~((wanted >= t[0]) & (wanted <= t[-1]))]
        if wanted.ndim != 1 or len(outside):
            raise InputError(
                "the run was asked for a time that it does not cover",
                found=", ".join(f"{value:g} s" for value in outside.ravel()[:3]) or f"shape {wanted.shape}",
                allowed=f"{t[0]:g} s to {t[-1]:g} s, one axis",
            )
        return self.between(wanted, locate(t, wanted)[0])
