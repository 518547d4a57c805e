"""Page commands: validation of every message from a page."""

from __future__ import annotations

import json
import math
import time
from typing import Any, Final

from fsm_dyn.errors import InputError
from fsm_dyn.live.run_controller import SLOWEST

LONGEST: Final = 1024  # bytes of a message
RATE: Final = 240.0  # Hz, messages per page
BURST: Final = 480.0
FARTHEST: Final = 1e6  # m, bound of pointer positions
TURN: Final = 100.0  # rad
LARGEST: Final = 1e15  # of a parameter or an input, SI
LATEST: Final = 1e9  # s of a run's clock
MOST_ROWS: Final = 1e9
MOST_STEPS: Final = 1000
MOST_AXES: Final = 6
SLOWEST_PRESS: Final = 1e-3  # m/s or rad/s
FASTEST_PRESS: Final = 10.0
FAR_HAND: Final = 1.0  # m or rad from the device's zero
_NAME: Final = 200
_WHOLE: Final = 2**53  # beyond it, whole numbers are not exact

_FIELDS: Final = (
    "step", "speed", "schedule", "set", "input", "initial", "port", "point", "view_direction", "seek", "seek_row",
    "transition_details", "emulate", "hand", "press", "charts",
)  # fmt: skip
_PLAIN: Final = ("run", "pause", "reset", "clear", "restart", "next")


def read_command(text: str) -> dict[str, Any]:
    """Return a message as a command with validated fields.

    Parameters
    ----------
    text : str
        JSON from a page.

    Raises
    ------
    InputError
        The command is unknown, or a field is missing or out of bounds.
    """
    if len(text.encode()) > LONGEST:
        raise InputError("a message is too long", allowed=f"{LONGEST} bytes")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("a message is not JSON", found=str(error)[:40]) from error
    if not isinstance(data, dict):
        raise InputError("a message is not a mapping")
    what = data.get("do")
    if what in _PLAIN:
        return {"do": what}
    if what == "step":
        return {"do": what, "ticks": int(_number(data, "ticks", 1.0, MOST_STEPS))}
    if what == "speed":
        return {"do": what, "value": _number(data, "value", SLOWEST, 1.0)}
    if what == "schedule":
        return {"do": what, "on": _flag(data, "on")}
    if what == "port":
        return {"do": what, "port": _name(data, "port"), "twist": _flag(data, "twist")}
    if what == "view_direction":
        return {"do": what, **{key: _number(data, key, -TURN, TURN) for key in ("azimuth", "elevation")}}
    if what in ("set", "input"):
        return {"do": what, "name": _name(data, "name"), "value": _number(data, "value", -LARGEST, LARGEST)}
    if what == "initial":
        return {"do": what, "mode": _name(data, "mode")}
    if what == "seek":
        return {"do": what, "at": _number(data, "at", -FARTHEST, LATEST), "after": _flag(data, "after")}
    if what == "charts":
        return {"do": what, **{key: _number(data, key, -FARTHEST, LATEST) for key in ("from", "to")}}
    if what == "seek_row":
        return {"do": what, "number": int(_number(data, "number", 0.0, MOST_ROWS))}
    if what == "transition_details":
        return {"do": what, "first": int(_number(data, "first", 0.0, MOST_ROWS))}
    if what == "emulate":
        return {"do": what, "what": _name(data, "what"), "on": _flag(data, "on")}
    if what == "hand":
        axis = int(_number(data, "axis", 0.0, MOST_AXES))
        return {"do": what, "axis": axis, "value": _number(data, "value", -FAR_HAND, FAR_HAND)}
    if what == "press":
        return {
            "do": what, "port": _name(data, "port"), "down": _flag(data, "down"),
            "speed": _number(data, "speed", SLOWEST_PRESS, FASTEST_PRESS),
        }  # fmt: skip
    if what == "point":
        return {
            "do": what,
            "port": _name(data, "port"),
            "at": (_number(data, "x", -FARTHEST, FARTHEST), _number(data, "y", -FARTHEST, FARTHEST)),
            "turn": _number(data, "turn", -FARTHEST, FARTHEST),
            "held": _flag(data, "held"),
        }
    raise InputError(
        "unknown command",
        found=_shown(what),
        allowed=", ".join((*_PLAIN, *_FIELDS)),
    )


def _number(data: dict[str, Any], key: str, low: float, high: float) -> float:
    value = data.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) < _WHOLE else math.inf
    if not isinstance(value, float) or math.isnan(value):
        raise InputError(f"'{key}' is not a number", found=_shown(value))
    if not low <= value <= high:
        raise InputError(f"'{key}' is out of bounds", found=f"{value:g}", allowed=f"{low:g} to {high:g}")
    return value


def _flag(data: dict[str, Any], key: str) -> bool:
    value = data.get(key)
    if not isinstance(value, bool):
        raise InputError(f"'{key}' is neither true nor false", found=_shown(value))
    return value


def _name(data: dict[str, Any], key: str) -> str:
    value = data.get(key)
    if not isinstance(value, str) or len(value) > _NAME or not value.isprintable():
        raise InputError(f"'{key}' is not a name", found=_shown(value))
    return value


def _shown(value: Any) -> str:
    """Return a value as short text for a message; of containers the type."""
    return type(value).__name__ if isinstance(value, dict | list) else repr(value)[:40]


class RateLimiter:
    """Token bucket for the messages of a page: refilled at ``RATE``, at most ``BURST``."""

    def __init__(self) -> None:
        self._left, self._at = BURST, time.monotonic()

    def take(self) -> bool:
        """Take one token; return False if none is left."""
        now = time.monotonic()
        self._left = min(BURST, self._left + RATE * (now - self._at))
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
