"""The report of a live run: its statistics by name."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class RunReport(TypedDict):
    """Statistics of a live run, as ``LiveSession.report()`` returns and ``fsm-dyn live --json`` prints them.

    Times are in s: ``p50``, ``p99``, ``p99.9`` and ``worst`` of all ticks.  Energies are in J, None where passivity is
    not observed.  ``running_time`` is that in which the model was to advance, by the wall clock,
    ``real_time_ratio`` its advance over that; None before the first tick.  ``sample_interval`` is the median time
    between samples of the device, at least a tick.  ``log`` is the error output of a run that ended abnormally.
    """

    ticks: int
    transition_count: int
    phase: str
    fault: str
    failure: str
    execution_time: dict[str, float]
    cpu_time: dict[str, float]
    wakeup_latency: dict[str, float]
    overruns: int
    saturated_ticks: int
    saturations: int
    releases: int
    faded_ticks: int
    lagging_ticks: int
    running_time: float
    real_time_ratio: float | None
    sample_interval: float
    rejected: int
    excess_energy: float | None
    release_excess_energy: float | None
    dissipated_energy: float | None
    kernels_adopted: int
    realtime_privileges: list[str]
    watchdog_action: str
    rows_lost: int
    recording_failed: str
    log: NotRequired[str]
