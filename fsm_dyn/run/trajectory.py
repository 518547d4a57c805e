"""Trajectory: the result of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np

from fsm_dyn.core.arguments import typed
from fsm_dyn.core.arrays import Booleans, Floats
from fsm_dyn.core.errors import InputError
from fsm_dyn.core.files import write_file
from fsm_dyn.language.requirement import WEAR
from fsm_dyn.run import run_files as data_sets
from fsm_dyn.run.continuation import StoredContinuation
from fsm_dyn.run.encounters import Encounter, encounters
from fsm_dyn.run.energy import (
    ContactPeriod,
    EnergyBalance,
    PinWear,
    contact_periods,
    energy_balance,
    energy_warnings,
    wear_of,
)
from fsm_dyn.run.explanation import Explanation, describe_outcome, explain, prospects
from fsm_dyn.run.extremes import Extremes, extremes
from fsm_dyn.run.judgement import Judgement, judge
from fsm_dyn.run.pin_loads import PeakLoad, peak_loads
from fsm_dyn.run.pins import PinImpulses, Pins, of_connection
from fsm_dyn.run.record import RunModel, RunRecord
from fsm_dyn.run.run import Run
from fsm_dyn.run.run_files import run_bytes
from fsm_dyn.run.run_options import MOST_STEPS
from fsm_dyn.run.run_timeline import run_html
from fsm_dyn.run.samples import Samples, State
from fsm_dyn.run.transitions import ChangePoint, Transitions, counted
from fsm_dyn.run.visits import RunReading, Visits
from fsm_dyn.run.words import Happening
from fsm_dyn.runtime.abi import Status

if TYPE_CHECKING:
    import pandas
    import xarray


# -- Trajectory: the result of a run -------------------------------------------------------------------------


class Resumes(Protocol):
    """Continues a run."""

    def __call__(self, before: Trajectory, whole: bool, **options: Any) -> Trajectory:
        """Return the run, or its continuation, with these options in the place of its own."""

    def stored(self) -> StoredContinuation:
        """Return the content of a file to continue the run from."""


class Trajectory:
    """A run: states, modes, forces and the transitions with their reasons.

    Rows are those of the stepper: one per accepted step, two at a transition (before and after), the last exactly at
    the end of the run.  Forces, outputs and energies are computed from the rows when first asked for.

    Parameters
    ----------
    model : RunModel
        Names and programs of the model.
    record : RunRecord
        Record of the stepper.
    resume : Resumes, optional
        Continuation of the run; without it, ``final`` states why it cannot be continued.
    final : str
    """

    def __init__(
        self, model: RunModel, record: RunRecord, resume: Resumes | None = None, final: str = "it was not kept for that"
    ) -> None:
        self.model = model
        self.record = record
        self.run = Run(model, record)
        self.outcome = record.named_outcome
        self._resume = resume
        self._final = final
        self.of_start: tuple[str, ...] = ()  # the first of the warnings: those of the start
        self.of_steps: tuple[str, ...] = ()  # those of steps, which follow

    @property
    def rows(self) -> Samples:
        """The recorded rows as samples."""
        return self.run.all

    def __len__(self) -> int:
        return len(self.record.t)

    @property
    def interrupted(self) -> bool:
        """Whether the run was interrupted from outside."""
        return self.outcome.code == Status.INTERRUPTED

    def __repr__(self) -> str:
        return (
            f"<Trajectory of {self.model.name}: {self.t[0]:g} to {self.t[-1]:g} s, {len(self)} rows, "
            f"{counted(self.transitions)}, {self.outcome.name}>"
        )

    def _repr_html_(self) -> str:
        # for notebooks only

        visits = self.visits if self.model.contacts else None
        return run_html(self.run, self.describe_outcome, visits)

    @property
    def t(self) -> Floats:
        """Times, shape (n,), s."""
        return self.rows.t

    @property
    def q(self) -> Floats:
        """Coordinates, shape (n, n_q), in declared order, SI."""
        return self.rows.q

    @property
    def u(self) -> Floats:
        """Generalized speeds, shape (n, n_u), in declared order, SI."""
        return self.rows.u

    @property
    def modes(self) -> tuple[str, ...]:
        """Name of the mode per row."""
        return self.rows.modes

    @property
    def labels(self) -> tuple[str, ...]:
        """Label of the mode of each row: modes connected by handovers share it."""
        return self.rows.labels

    @property
    def multipliers(self) -> Mapping[str, Floats]:
        """Forces of constraints and contacts by name, shape (n, rows of that item); M u̇ = f + Σ Aᵀ λ."""
        return self.rows.multipliers

    @property
    def admissible(self) -> Booleans:
        """Whether the forces of redundant contacts keep the contact laws, shape (n,); if none do, the smallest."""
        return self.rows.admissible

    @property
    def indeterminate(self) -> Mapping[str, Booleans]:
        """Masks of rows with undetermined :attr:`multipliers`, shape (n,) by name.

        There contacts or constraints are redundant; of all forces with the same effect the smallest within the
        contact laws are given, see :attr:`admissible`.
        """
        modes = self.model.indeterminate or ((),) * len(self.model.modes)
        return {
            name: np.array([any(self.model.rows[r].owner == name for r in rows) for rows in modes])[self.record.mode]
            for name in self.multipliers
        }

    @property
    def outputs(self) -> Mapping[str, Floats]:
        """The model's outputs by name, each of shape (n,)."""
        return self.rows.outputs

    @property
    def pins(self) -> Pins:
        """Forces and torques in every connection and contact, by name: ``run.pins["knee"].force`` is (n, 3), N.

        They are derived when they are first asked for (docs/how_to/loads.md).
        """
        return self.rows.pins

    @property
    def inputs(self) -> Mapping[str, Floats]:
        """The inputs by name, each of shape (n,)."""
        return self.rows.inputs

    def __getitem__(self, name: str) -> Floats:
        """Return the column ``name``: a coordinate, speed, input, output, ``lambda.<row>`` or ``energy.<kind>``.

        Of connections ``pin.<name>.force`` and so on, of those with wear also ``sliding``, ``work`` and ``depth``.
        """
        if name.startswith("pin.") and name.rpartition(".")[2] in WEAR:
            connection, _, part = name.removeprefix("pin.").rpartition(".")
            found: Floats = getattr(of_connection(self.wear, connection), part)
            return found
        return self.rows[name]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns, which ``run[name]`` gives."""
        return tuple(name for name, _ in self.rows.columns())

    def __copy__(self) -> Trajectory:
        return self  # nothing changes a run

    def __deepcopy__(self, memo: object) -> Trajectory:
        return self

    @cached_property
    def transitions(self) -> Transitions:
        """Every change of mode and every feature transition (handover) in order of time, with its cause."""
        find = PinImpulses(self.rows)
        return Transitions(replace(item, find_pin_impulse=find) for item in self.record.transitions)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Doubts about a run: a start behind a segment, an open energy balance."""
        return self.record.warnings

    def check(self, of_start: Sequence[str], of_steps: Sequence[str], fixed_steps: bool) -> None:
        """Find the warnings of a new run and add them to those of its start.

        Parameters
        ----------
        of_start, of_steps : sequence of str
            Warnings of the start, and of steps shortened for a guard.
        fixed_steps : bool
            Whether nothing controlled the error of its steps.
        """
        self.of_start, self.of_steps = tuple(of_start), tuple(of_steps)
        self.record.warnings = (*of_start, *of_steps, *energy_warnings(self.run, fixed_steps))

    @property
    def change_points(self) -> tuple[ChangePoint, ...]:
        """Passages through change points, at which constraints lose rank for an instant, in order of time."""
        return self.record.change_points

    @cached_property
    def energy(self) -> EnergyBalance:
        """Kinetic and potential energy, work of the loads, heat of friction, changes at transitions."""
        middles = self.record.x_mid if self.record.time_stepping else None
        return energy_balance(self.rows, self.record.starts, self.run.between, middles=middles)

    @overload
    def at(self, time: float) -> State: ...
    @overload
    def at(self, time: Floats) -> Samples: ...
    @typed
    def at(self, time: float | Floats) -> State | Samples:
        """Return the state at a time between the rows, from the step's own quartic.

        Parameters
        ----------
        time : float, or ndarray of shape (n,)
            Within the run, s.  At a transition the state after it is given.

        Returns
        -------
        State, or Samples for an array

        Raises
        ------
        InputError
            If a time lies outside the run.
        """
        if np.ndim(time):
            return self.sample(np.asarray(time, dtype=np.float64))
        found = self.sample(np.array([float(time)]))
        ahead = partial(prospects, self.model, found)
        return State(float(found.t[0]), found.modes[0], found.q[0], found.u[0], ahead)

    @typed
    def sample(self, times: Sequence[float] | Floats) -> Samples:
        """Return rows at ``times`` (n,), with forces, outputs and energies; at a transition the later side.

        Raises
        ------
        InputError
            If a time lies outside the run.
        """
        return self.run.sample(times)

    @typed
    def resume(
        self,
        until: float,
        *,
        whole: bool = True,
        max_steps: int = MOST_STEPS,
        on_failure: str = "raise",
        progress: Callable[[float], None] | None = None,
        **integration: Any,
    ) -> Trajectory:
        """Continue the run to a later end, with its own settings and inputs, as if it had not been interrupted.

        It continues from a state saved before the end time affected the run, with rows and transitions equal, to the
        last bit, to those of one run to the later end.  A run interrupted, or ended by ``max_steps``, can be
        continued too; one failed, or stopped by a transition, cannot.  Another method or step begins at the same state.

        Parameters
        ----------
        until : float
            End of the run, s; not before its end so far.
        whole : bool
            Whether the result is the whole run, or only the part after the instant from which it continues.
        max_steps : int
            Bound on the number of further steps.
        on_failure, progress
            As for :func:`fsm_dyn.simulate`.
        **integration
            ``method``, ``step``, ``max_step``, ``rtol`` and ``atol`` of the continuation, by default those of the run.

        Returns
        -------
        Trajectory
            Which can be continued in turn.

        Raises
        ------
        InputError
            The run cannot be continued, or ends later.
        RunError
            The run could not continue; its ``trajectory`` holds the recorded part.
        """
        if self._resume is None:
            raise InputError("this run cannot be continued", found=self._final, remedy="run it again")
        if not until >= self.t[-1]:
            raise InputError(
                "a run is continued to a later end", found=f"until = {until:g} s", allowed=f"from {self.t[-1]:g} s on"
            )
        return self._resume(
            self, whole, until=until, max_steps=max_steps, on_failure=on_failure, progress=progress, **integration
        )

    @typed
    def explain(self, time: float) -> Explanation:
        """Return the cause of the mode at a time, its contact forces and its guards.

        Raises
        ------
        InputError
            If the time lies outside the run.
        """
        found = explain(self.model, self.sample([time]), self.transitions, self.change_points)
        if not self.model.contacts:
            return found
        visit, last = self.visits.at(time), sum(item.time <= time for item in self.transitions)
        kind = "phase" if self.visits.are_phases else "short name"
        return replace(
            found,
            phase=f"{kind}: {visit.name}, since {visit.begin:.6f} s ({visit.cause})",
            sentences=tuple(self.reading.sentences.cause(k) for k in range(last - len(found.preceding), last)),
        )

    @cached_property
    def reading(self) -> RunReading:
        """The run as people read it: visits, happenings, words of contacts."""
        return RunReading(self.run)

    @property
    def visits(self) -> Visits:
        """The visits of the model's phases, or without phases of modes by short names, each with its cause."""
        return self.reading.visits

    @property
    def happenings(self) -> tuple[Happening, ...]:
        """Happenings, as sentences in order of time; successive impacts are one."""
        return self.reading.happenings

    @typed
    def encounters(self, near: float = 0.0) -> tuple[Encounter, ...]:
        """Return for every pair of shapes when it first touched, how often, how near it came; the touching ones first.

        Parameters
        ----------
        near : float
            Gap up to which two shapes are near, m: ``Encounter.near`` is when they first were, to a row.
        """
        return encounters(self.model, self.rows, self.transitions, near)

    @typed
    def extremes(self, name: str) -> Extremes:
        """Return the least and greatest value of a coordinate, speed, input or output, between the rows too.

        Parameters
        ----------
        name : str
            One of :attr:`columns`.

        Raises
        ------
        InputError
            No quantity has this name.
        """
        return extremes(self.t, self[name], lambda times, first: self.run.between(times, first)[name])

    def peak_loads(self) -> tuple[PeakLoad, ...]:
        """Return the largest force, torque and impulse in every connection, with time, mode and cause."""
        return peak_loads(self)

    @cached_property
    def contact_periods(self) -> tuple[ContactPeriod, ...]:
        """Every compression of a compliant contact with contact time, impulse, largest and mean force, in order."""
        return contact_periods(self.rows, self.record.starts, self.run.between)

    @cached_property
    def wear(self) -> Mapping[str, PinWear]:
        """Sliding distance, force over distance and depth of the connections with the key ``wear``, by name."""
        return wear_of(self.rows, self.record.starts, self.run.between)

    @typed
    def judge(self, chains: bool = True) -> dict[str, Judgement]:
        """Return the requirements of the model, judged over this run, by name (docs/language.md, "requirements").

        Parameters
        ----------
        chains : bool
            With the transitions before each deciding time; without them, judging takes less time.
        """
        return judge(self.run, chains)

    def describe_outcome(self) -> tuple[str, ...]:
        """Return outcome and warnings as text; of a failed run with state, candidates, residuals and remedy."""
        lines = describe_outcome(self.run)
        return (*lines, *(f"warning: {text}" for text in self.warnings))

    @typed
    def save(self, path: str | Path) -> Path:
        """Write the whole run as JSON, with the text of its model, and return the path; ``fsm_dyn.open_run`` reads it.

        Raises
        ------
        InputError
            If the run has no model text to go with it.
        """
        target = Path(path)
        write_file(target, self.to_bytes())
        return target

    def to_bytes(self) -> bytes:
        """Return the content written by :meth:`save`.

        Raises
        ------
        InputError
            If the run has no model text to go with it.
        """
        return run_bytes(self.model, self.record, self._resume.stored() if self._resume else self._final)

    def _more_columns(self, pins: bool) -> data_sets.ColumnsWithUnits:
        """Return the columns of connections and their wear, if they are asked for."""
        return data_sets.pin_columns(self.rows, self.wear) if pins else {}

    @typed
    def to_csv(self, path: str | Path, pins: bool = False) -> Path:
        """Write every column as comma-separated text, numbers with the digits to read back exactly; return the path.

        The first line has the names with their units in SI, ``x [m]``, without brackets in a model without units.

        Parameters
        ----------
        path : str or Path
            File to write.
        pins : bool
            Whether with the forces and torques in the connections, ``pin.<name>.force`` and so on.
        """
        return data_sets.write_csv(self.rows, Path(path), self._more_columns(pins))

    @typed
    def to_xarray(self, pins: bool = False) -> xarray.Dataset:
        """Return the run as an ``xarray.Dataset`` along ``time``, the transitions along ``transition``.

        Variables have the names of the columns.  ``time`` increases strictly: of rows at the same time the last keeps
        it, the others have the next smaller numbers, for which ``interp`` and ``sel(method="nearest")`` work.

        Parameters
        ----------
        pins : bool
            Whether with ``pin_force``, ``pin_torque`` and ``pin_place`` along ``time``, ``pin_name`` and ``pin_axis``.

        Raises
        ------
        InputError
            If xarray is not installed (the extra ``analysis``).
        """
        wear = self.wear if pins else None
        return data_sets.to_xarray(self.rows, self.transitions, self.outcome, self.warnings, wear)

    @typed
    def to_pandas(self, pins: bool = False) -> pandas.DataFrame:
        """Return the rows as a ``pandas.DataFrame``: ``mode`` and every column, by ``time`` (s).

        The two rows of a transition have the same time.

        Parameters
        ----------
        pins : bool
            Whether with the columns of the connections.

        Raises
        ------
        InputError
            If pandas is not installed (the extra ``analysis``).
        """
        return data_sets.to_pandas(self.rows, self._more_columns(pins))

    @typed
    def to_netcdf(self, path: str | Path) -> Path:
        """Write :meth:`to_xarray` as NetCDF 4 and return the path.

        Raises
        ------
        InputError
            If xarray or h5netcdf is not installed (the extra ``analysis``).
        """
        return data_sets.write_netcdf(self.to_xarray(), Path(path))

    @typed
    def to_parquet(self, path: str | Path, pins: bool = False) -> Path:
        """Write ``time``, ``mode`` and every column as Parquet and return the path.

        The metadata of each column have its ``unit``, those of the file the ``model``.

        Parameters
        ----------
        path : str or Path
            File to write.
        pins : bool
            Whether with the columns of the connections.

        Raises
        ------
        InputError
            If pyarrow is not installed (the extra ``columns``).
        """
        return data_sets.write_parquet(self.rows, Path(path), self._more_columns(pins))

    @typed
    def to_rerun(self, path: str | Path) -> Path:
        """Write the run for the viewer Rerun, ``.rrd``; return the path.

        ``run/...`` has every column and the mode, ``transitions`` a line for each; ``scene/...`` the outlines in their
        frames, and the loads of the connections as arrows, at least every 10 ms; the timeline ``time`` is the model's.

        Raises
        ------
        InputError
            If the package rerun-sdk is not installed (the extra ``rerun``).
        """
        # drawn for files alone
        from fsm_dyn.run.viewer_files import write_rrd

        return write_rrd(self.rows, self.transitions, self.sample, Path(path))

    @typed
    def to_mcap(self, path: str | Path) -> Path:
        """Write the run for viewers such as Foxglove and Rerun, as MCAP with JSON schemas; return the path.

        Topics: ``/state``, ``/forces`` and ``/energy`` have every row, ``/transitions`` and ``/log`` every transition;
        ``/scene``, ``/tf``, ``/symbols`` and ``/loads`` the drawing with its frames and the loads of the connections,
        at least every 10 ms.

        Raises
        ------
        InputError
            If the package mcap is not installed (the extra ``live``).
        """
        # drawn for files alone
        from fsm_dyn.run.viewer_files import write_mcap

        return write_mcap(self.rows, self.transitions, self.sample, Path(path))

    @typed
    def to_gltf(self, path: str | Path) -> Path:
        """Write the outlines with their motion as glTF 2.0, a binary file ``.glb``; return the path.

        A node for each frame with outlines, moved by keys 60 times a second; lengths in m, angles by quaternions.

        Raises
        ------
        InputError
            If the run has no drawing.
        """
        # drawn for files alone
        from fsm_dyn.run.viewer_files import write_glb

        return write_glb(self.rows, self.sample, Path(path))

    @typed
    def to_usd(self, path: str | Path) -> Path:
        """Write the outlines with their motion as USD, ``.usda`` (text) or ``.usdc``; return the path.

        A transform for each frame with outlines, sampled 60 times a second; lengths in m, a time code is 1/60 s.

        Raises
        ------
        InputError
            If the run has no drawing, the name ends otherwise, or the package usd-core is not installed (the extra
            ``usd``).
        """
        # drawn for files alone
        from fsm_dyn.run.viewer_files import write_usd

        return write_usd(self.rows, self.sample, Path(path))
