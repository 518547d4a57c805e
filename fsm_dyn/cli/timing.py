"""Options of live runs: integration steps of a tick, timeouts, limits of the force."""

from __future__ import annotations

from typing import Annotated

import typer

from fsm_dyn.errors import InputError

Slew = Annotated[float, typer.Option("--max-slew", help="Largest rate of the force, N/s.")]
Ramp = Annotated[float, typer.Option("--ramp", help="Time to engage and to disengage, s.", min=0.0)]
ReleaseAfter = Annotated[
    float,
    typer.Option(
        "--release-after",
        help="Time without samples, ticks or heartbeats until the device is disengaged, s; it engages again with them. "
        "0: never.",
        min=0.0,
    ),
]
StallTimeout = Annotated[
    float, typer.Option("--stall-timeout", help="Time without samples until that is a fault, s.", min=0.0)
]
EmulatedStallTimeout = Annotated[
    float | None,
    typer.Option(
        "--stall-timeout", help="Time without samples until that is a fault, s (0.1; 0.5 with --emulate).", min=0.0
    ),
]
WatchdogTimeout = Annotated[
    float,
    typer.Option("--watchdog-timeout", help="Heartbeat timeout of the watchdog process, s.", min=0.0),
]
OwnerTimeout = Annotated[
    float,
    typer.Option(
        "--owner-timeout",
        help="Time without a heartbeat of this program until the device is disengaged and the run paused, s. 0: never.",
        min=0.0,
    ),
]

LagLimit = Annotated[
    float,
    typer.Option(
        "--lag-limit",
        help="Time by which the model may fall behind the clock until that is a fault, s. 0: any.",
        min=0.0,
    ),
]
Substeps = Annotated[
    int | None,
    typer.Option("--substeps", help="Integration steps per tick; default: as the ports of the model need, or one."),
]

SHORTEST_PERIOD, LONGEST_PERIOD = 1e-5, 0.1  # s, of a tick
RELEASE_AFTER = 0.012  # s
STALL_TIMEOUT = 0.1
WATCHDOG_TIMEOUT = 0.1
OWNER_TIMEOUT = 0.5
LAG_LIMIT = 0.1
RAMP = 0.2


LONGEST = 2**53  # ticks, which a double counts


def stall_ticks(timeout: float, period: float) -> int:
    """Return how many ticks of a period (s) without a sample a time (s) comes to."""
    return max(1, ticks("--stall-timeout", timeout, period))


def ticks(option: str, time: float | None, period: float) -> int:
    """Return how many ticks of a period (s) a time (s) comes to, -1 for no time.

    Raises
    ------
    InputError
        The period cannot be one, or the time comes to too many of them.
    """
    if not SHORTEST_PERIOD <= period <= LONGEST_PERIOD:
        raise InputError("--period", found=str(period), allowed=f"{SHORTEST_PERIOD:g} to {LONGEST_PERIOD:g} s")
    if time is None:
        return -1
    if not 0.0 <= time / period <= LONGEST:
        raise InputError(option, found=str(time), allowed=f"0 to {LONGEST * period:.3g} s")
    return round(time / period)
