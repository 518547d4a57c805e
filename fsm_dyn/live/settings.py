"""Settings of a live run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fsm_dyn.errors import InputError
from fsm_dyn.live.device_map import DeviceMap, DeviceMaps, Limits
from fsm_dyn.live.tick_setup import MOST_SUBSTEPS, PASSIVITY

MOST_TICKS: Final = 2**53  # which a double counts


@dataclass(frozen=True)
class Settings:
    """Settings of a live run.

    Attributes
    ----------
    period : float
        Of the tick, s of the wall clock.
    substeps : int
        Steps of the integrator in a tick.  None: by the ``step`` of the model's ports, 1 without one.
    method : str
        ``rk4``, ``heun`` or ``euler``.
    device_map : DeviceMap or tuple of DeviceMap
        One for each device of the driver ``combined``, with the numbers of the axes of that device.
    limits : Limits
    schedule : bool
        Whether the model's scheduled inputs run; otherwise they are zero until commanded.
    paused : bool
        Whether to begin paused.
    overrun : str
        What a late tick does: ``slow`` (time slows down) or ``stop`` (a fault).
    ticks : int
        After how many ticks the run ends by itself, -1 for never; in the last of them the grip opens.
    paced : bool
        Whether to keep to the wall clock; otherwise ticks follow each other as fast as they can.
    realtime_privileges : bool
        Whether to ask for real-time scheduling and locked memory.
    stall_ticks : int
        Ticks without a new sample after which the device counts as stalled.
    watchdog_timeout : float
        Time without a heartbeat of the tick process until the watchdog process ends it, or of the watchdog process
        until the run ends, s.
    release_after : float
        Time without samples, ticks or heartbeats of the watchdog process until the device is released, s: without
        force, until they are back and it engages again.  At least three ticks; 0: never.
    owner_timeout : float
        Time without a heartbeat of the owner until the device disengages and the model rests, s; it engages again
        when the heartbeat is back.  0: no limit.
    lag_limit : float
        Time by which the model may fall behind the clock until that is a fault, s; 0: no limit.  It does not apply to
        a device that is not felt, or where the run is not paced.
    initial : mapping
        What replaces entries of the model's ``initial``, ``mode`` among them.
    passivity : str
        Whether to ``observe`` the energy that sampling gives the device, or to ``control`` it by damping too.
    work_per_tick : int
        Work after which a tick ends before its model time is reached; the next one goes on (docs/theory.md, "The work
        of a tick").  None: by the number of contacts, see :func:`fsm_dyn.live.tick_setup.usual_work`; 0: no limit.
    derive : bool, optional
        Whether modes that the graph does not have are derived in another process while the run embeds them online
        and later switches to their kernels; not on Windows.  None: where the run is paced, as when kernels are ready
        depends on the clock, and a run that is not paced is the same every time.
    """

    period: float = 1e-3
    substeps: int | None = None
    method: str = "rk4"
    device_map: DeviceMaps = field(default_factory=DeviceMap)
    limits: Limits = field(default_factory=Limits)
    schedule: bool = False
    paused: bool = False
    overrun: str = "slow"
    ticks: int = -1
    paced: bool = True
    realtime_privileges: bool = True
    stall_ticks: int = 100
    watchdog_timeout: float = 0.1
    release_after: float = 0.012
    owner_timeout: float = 0.5
    lag_limit: float = 0.1
    initial: Mapping[str, float | str] = field(default_factory=dict)
    passivity: str = "off"
    work_per_tick: int | None = None
    derive: bool | None = None

    def check(self) -> None:
        """Raise InputError for invalid values."""
        for name, value, good in (
            ("period", self.period, 1e-5 <= self.period <= 0.1),
            ("work_per_tick", self.work_per_tick, 0 <= (self.work_per_tick or 0) <= 10**9),
            ("substeps", self.substeps, self.substeps is None or 1 <= self.substeps <= MOST_SUBSTEPS),
            ("overrun", self.overrun, self.overrun in ("slow", "stop")),
            ("passivity", self.passivity, self.passivity in PASSIVITY),
            ("watchdog_timeout", self.watchdog_timeout, self.watchdog_timeout > 2.0 * self.period),
            ("ticks", self.ticks, -1 <= self.ticks <= MOST_TICKS),
            ("stall_ticks", self.stall_ticks, 0 <= self.stall_ticks <= MOST_TICKS),
            ("release_after", self.release_after, self.release_after >= 0.0),
            ("lag_limit", self.lag_limit, self.lag_limit == 0.0 or self.lag_limit >= 2.0 * self.period),
            ("owner_timeout", self.owner_timeout, self.owner_timeout == 0.0 or self.owner_timeout >= 0.1),
        ):
            if not good:
                raise InputError(
                    f"{name} of a live run", found=str(value)[:20], remedy="see fsm_dyn.live.session.Settings"
                )
