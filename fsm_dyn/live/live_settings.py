"""Settings of a live run, typed, from the command line to the tick process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field, fields
from typing import Annotated, Any, Final

from msgspec import Meta

from fsm_dyn.core.errors import InputError
from fsm_dyn.core.files import convert
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.impositions import MOST_AT_ONCE
from fsm_dyn.live.device_map import DeviceMap, DeviceMaps, Limits
from fsm_dyn.live.tick import MOST_SUBSTEPS, PASSIVITY_WORDS

MOST_TICKS: Final = 2**53  # which a double counts
ZERO_AFTER: Final = 1.0 / 3.0  # of the time to a release: without a tick the watchdog process sends a force of zero

Axes = Annotated[int, Meta(ge=0, le=100)]


@dataclass(frozen=True)
class LiveSettings:
    """Settings of a live run, from the command line to the tick: they cross processes and recordings as this type.

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
        Consequence of a late tick: ``slow`` (time slows down) or ``stop`` (a fault).
    ticks : int
        Number of ticks after which the run ends, -1: no end; in the last ticks the device disengages.
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
        Largest lag of the model behind the clock, s; more is a fault; 0: no limit. It does not apply to a device
        without force, or to an unpaced run.
    initial : mapping
        Replacements for entries of the model's ``initial``, ``mode`` among them.
    passivity : str
        Whether to ``observe`` the energy that the device gains by sampling, or also to ``control`` it by damping.
    work_per_tick : int
        Work limit of a tick; a tick at its limit ends before reaching its model time, and the next one continues
        (docs/theory.md, "The work of a tick").  None: by the number of contacts, see
        :func:`fsm_dyn.live.tick.usual_work`; 0: no limit.
    derive : bool, optional
        Whether modes missing in the graph are derived in another process while the run embeds them online and later
        switches to their kernels; not on Windows. None: if the run is paced, because the time of the switch depends on
        the clock, and unpaced runs are reproducible.
    imposable : int
        Constraints that a person may impose at once, in addition to those of the model.
    touching : tuple of tuple of str
        Pairs of shapes, listed by no contact, that a person may let touch; their contacts are derived at the start.
    look_ahead : float
        Model time by which a copy of the run, in the process of the session, runs ahead, s; 0: none. The modes it
        reaches are made ready between ticks.
    axes, parts, rotational_axes
        Set by the launch, as all that follow: axes of the device, of each of its parts, and those that turn.
    driver, options
        Of the device.
    parameters : dict
        That differ from the file.
    device_damping, device_delay
        Of the device in the hand, N s/m and s.
    release : float
        Time without samples or ticks until the device is released, s; 0: never.
    felt : bool
        Whether the device shows forces.
    memory, transport, guarded
        Shared memory, transport of the device; whether a watchdog process watches.
    record, row : int
        Columns of a transition and of a row in shared memory.
    recorded : bool
        Whether rows are recorded.
    kernels : tuple of int
        Descriptors of the pipe from the derivation process; empty without one.
    states, modes
        Contact states and names of the modes by their numbers.
    """

    period: Annotated[float, Meta(ge=1e-5, le=0.1)] = 1e-3
    substeps: Annotated[int, Meta(ge=1, le=MOST_SUBSTEPS)] | None = None
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
    initial: Mapping[str, float | str | bool] = field(default_factory=dict)
    passivity: Annotated[str, Meta(pattern=f"^({'|'.join(PASSIVITY_WORDS)})$")] = "off"
    work_per_tick: Annotated[int, Meta(ge=0, le=10**9)] | None = None
    derive: bool | None = None
    imposable: Annotated[int, Meta(ge=0, le=MOST_AT_ONCE)] = 0
    touching: tuple[tuple[str, str], ...] = ()
    look_ahead: Annotated[float, Meta(ge=0, le=1)] = 0.0
    axes: Axes = 0
    parts: tuple[Axes, ...] = ()
    rotational_axes: tuple[Axes, ...] = ()
    driver: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, float | str | tuple[float | str, ...]] = field(default_factory=dict)
    device_damping: float | None = None
    device_delay: float = 0.0
    release: float = 0.0
    felt: bool = True
    memory: str = ""
    transport: Any = None
    guarded: bool = False
    record: Annotated[int, Meta(ge=0, le=10**6)] = 0
    recorded: bool = False
    row: int = 0
    kernels: tuple[int, ...] = ()
    states: tuple[tuple[int, ...], ...] = ()
    modes: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise InputError for invalid values."""
        for name, value, good in (
            ("period", self.period, 1e-5 <= self.period <= 0.1),
            ("work_per_tick", self.work_per_tick, 0 <= (self.work_per_tick or 0) <= 10**9),
            ("substeps", self.substeps, self.substeps is None or 1 <= self.substeps <= MOST_SUBSTEPS),
            ("imposable", self.imposable, 0 <= self.imposable <= MOST_AT_ONCE),
            ("overrun", self.overrun, self.overrun in ("slow", "stop")),
            ("passivity", self.passivity, self.passivity in PASSIVITY_WORDS),
            ("watchdog_timeout", self.watchdog_timeout, self.watchdog_timeout > 2.0 * self.period),
            ("ticks", self.ticks, -1 <= self.ticks <= MOST_TICKS),
            ("stall_ticks", self.stall_ticks, 0 <= self.stall_ticks <= MOST_TICKS),
            ("release_after", self.release_after, self.release_after >= 0.0),
            ("lag_limit", self.lag_limit, self.lag_limit == 0.0 or self.lag_limit >= 2.0 * self.period),
            ("owner_timeout", self.owner_timeout, self.owner_timeout == 0.0 or self.owner_timeout >= 0.1),
        ):
            if not good:
                raise InputError(
                    f"{name} of a live run", found=str(value)[:20], remedy="see fsm_dyn.live.live_settings.LiveSettings"
                )

    def as_data(self) -> dict[str, Any]:
        """Return plain data for JSON; :meth:`of_data` reads it."""
        return asdict(self)

    @classmethod
    def of_data(cls, data: object, what: str = "settings of a live run") -> LiveSettings:
        """Return the settings in plain data, checked against the types of the fields; ``what`` they are, for messages.

        Raises
        ------
        InputError
            A field is missing or has a value of another type.
        """
        missing = [item.name for item in fields(cls) if not isinstance(data, dict) or item.name not in data]
        if missing:
            raise InputError(f"the file is not {what}", found=f"no {', '.join(missing[:3])}")
        return convert(data, cls, what)
