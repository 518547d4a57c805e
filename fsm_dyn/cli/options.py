"""Options shared by several commands: NAME=VALUE, timing, paths of outputs."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fsm_dyn.core.errors import InputError
from fsm_dyn.run.run_options import declared

# -- Options of the form NAME=VALUE --------------------------------------------------------------------------


def run_option(name: str, **given: Any) -> Any:
    """Return an option of a run as its declaration has it (:class:`fsm_dyn.run.run_options.RunOptions`).

    Parameters
    ----------
    name : str
    given
        Further arguments of ``typer.Option``; they replace those of the declaration.
    """
    found = declared(name)
    return typer.Option(found.flag, **{"metavar": found.metavar, "help": found.text, **given})


def duration(text: str) -> float:
    """Return the value of an option that is a time, s: a number, or with a unit as in a model, ``20ms``."""
    try:
        found = float(text)
    except ValueError:
        from fsm_dyn.language.values import seconds  # with the expressions

        try:
            found = seconds(text, "the time")
        except InputError as error:
            raise typer.BadParameter(str(error)) from None
    if not 0.0 <= found < math.inf:
        raise typer.BadParameter(f"{text} is not a time from 0 s")
    return found


Until = Annotated[float | None, run_option("until", parser=duration, metavar="TIME")]
Step = Annotated[float | None, run_option("step", parser=duration, metavar="TIME")]
Set = Annotated[list[str] | None, run_option("parameters")]
Input = Annotated[list[str] | None, run_option("inputs")]
ScenarioOption = Annotated[str | None, run_option("scenario")]
Initial = Annotated[list[str] | None, run_option("initial")]
Tolerance = Annotated[list[str] | None, run_option("tolerances")]
_SCALE = typer.Option(
    "--scale",
    metavar="RATIO",
    help="Metres of the model per metre of the device, the force comes back by the same ratio: 0.5 or 1/3; or one "
    "for each axis of the port, rad/m where kinds differ, e.g. 1/3,-2.",
)
Scale = Annotated[str, _SCALE]
Scales = Annotated[list[str] | None, _SCALE]


def ratios(text: str) -> float | tuple[float, ...]:
    """Return the value of ``--scale``: one ratio, or one for each axis.

    Raises
    ------
    InputError
        A part of it is neither a number nor a fraction.
    """
    found = []
    for part in text.split(","):
        above, _, below = part.partition("/")
        try:
            found.append(float(above) / float(below or "1"))
        except (ValueError, ZeroDivisionError):
            raise InputError(
                "--scale takes ratios", found=text[:40], allowed="numbers or fractions, e.g. 0.5, 1/3 or 1/3,-2",
                remedy="--scale 1/3 makes 30 mm of the device 10 mm of the model, and 3 N there 1 N here",
            ) from None  # fmt: skip
    return found[0] if len(found) == 1 else tuple(found)


def assignments(option: str, texts: Sequence[str] | None) -> dict[str, Any] | None:
    """Return NAME=VALUE texts as a mapping; None without any.

    A value in brackets is a list: ``lip=[809 mm, 12 mm]``, ``push=[[0 s, 0 N], [1 s, 30 N]]``.

    Raises
    ------
    InputError
        If a text has no name or no value, or a name comes twice.
    """
    if not texts:
        return None
    found: dict[str, Any] = {}
    for text in texts:
        name, sign, value = (part.strip() for part in text.partition("="))
        if not (name and sign and value):
            raise InputError(f"{option} takes NAME=VALUE", found=text, remedy="quote values that contain spaces")
        if name in found:
            raise InputError(f"{option} gives '{name}' twice", found=text)
        found[name] = listed(option, value) if value.startswith("[") else value
    return found


def distributions(texts: Sequence[str] | None) -> dict[str, Any] | None:
    """Return the distributions of ``--vary`` by name: a range, ``VALUE +- DEVIATION``, a mapping, or a list of names.

    Raises
    ------
    InputError
        A text is not a distribution, or a name is given twice.
    """
    if not texts:
        return None
    # The public half of the package: studies.
    from fsm_dyn.analysis.study import read_range
    from fsm_dyn.language.body_forms import SIGNS

    found: dict[str, Any] = {}
    for text in texts:
        name, _, rest = (part.strip() for part in text.partition("="))
        given: Any = rest
        if rest.startswith(("{", "[")):
            given = listed("--vary", rest)
        elif not name or not any(sign in rest for sign in SIGNS):
            name, values = read_range(text)
            given = values[0], values[-1]
        if name in found:
            raise InputError("--vary gives one name twice", found=name)
        found[name] = given
    return found


def listed(option: str, value: str) -> Any:
    """Return a list in brackets, or a mapping in braces, of texts, lists and mappings.

    Raises
    ------
    InputError
        It is no such list.
    """
    # YAML's flow sequences read units without quotes; the import is needed for lists only.
    import yaml

    try:
        return _texts(yaml.load(value, Loader=yaml.BaseLoader))  # noqa: S506 - it makes texts and lists only
    except (yaml.YAMLError, RecursionError):
        raise InputError(f"{option}: the brackets do not close, or are nested too deeply", found=value) from None


def _texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _texts(item) for name, item in value.items()}
    return [_texts(item) for item in value] if isinstance(value, list) else value


# -- Options of live runs: integration steps of a tick, timeouts, limits of the force ------------------------

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
LookAhead = Annotated[
    float,
    typer.Option(
        "--look-ahead",
        help="Time by which a copy of the run is ahead, s, to foresee transitions; changes no result. 0: no copy.",
        min=0.0,
        max=1.0,
    ),
]
Substeps = Annotated[
    int | None,
    typer.Option("--substeps", help="Integration steps per tick; default: as the ports of the model need, or one."),
]

Period = Annotated[float, typer.Option("--period", help="Length of a tick, s.")]
Force = Annotated[float, typer.Option("--max-force", help="Largest force of the device, N.")]
Record = Annotated[Path | None, typer.Option("--record", help="Record the run to a new MCAP file.")]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Print the viewer URL; do not open a browser.")]
PagePort = Annotated[int, typer.Option("--page-port", help="TCP port of the page; 0: any free port.", min=0, max=65535)]
Passivity = Annotated[
    str,
    typer.Option(
        "--passivity",
        metavar="off|observe|control",
        help="Passivity observer (`observe`) or observer and controller (`control`).",
    ),
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
    """Return the number of ticks of a period (s) without a sample in a time (s)."""
    return max(1, ticks("--stall-timeout", timeout, period))


def ticks(option: str, time: float | None, period: float) -> int:
    """Return the number of ticks of a period (s) in a time (s), -1 for no time.

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


# -- Paths of results ----------------------------------------------------------------------------------------
#
# Paths of results are checked, and folders made, before anything is computed for them.


def prepare_folder(option: str, folder: Path) -> None:
    """Make a folder for output, unless there is one.

    Raises
    ------
    InputError
        It is a file or below one, or may not be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        taken = next((place for place in (folder, *folder.parents) if place.exists() and not place.is_dir()), None)
        raise InputError(
            f"{option}: there is no folder '{folder}' and it cannot be made",
            found=f"'{taken}' is a file" if taken else error.strerror or "",
            remedy="name a folder, new or with permission to write",
        ) from None
    if not os.access(folder, os.W_OK):
        raise InputError(f"{option}: no permission to write to the folder '{folder}'", remedy="name another folder")


def prepare_file(option: str, file: Path) -> None:
    """Make the folder of a file for output, unless there is one; an existing file is replaced later.

    Raises
    ------
    InputError
        The file is a folder, or its folder cannot be made or written to.
    """
    if file.is_dir():
        raise InputError(f"{option}: '{file}' is a folder", remedy=f"name a file in it: {file / 'NAME'}")
    prepare_folder(option, file.parent)
    if file.exists() and not os.access(file, os.W_OK):
        raise InputError(f"{option}: no permission to write '{file}'", remedy="name another file")
