"""Compatibility with older recordings: renames the keys of their settings."""

from collections.abc import Mapping
from typing import Any, Final

_SETTINGS: Final = {
    "mapping": "device_map",
    "turns": "rotational_axes",
    "guard_timeout": "watchdog_timeout",
    "privileges": "realtime_privileges",
}
_LIMITS: Final = {"turning": "angular_velocity", "dead_man": "dead_man_button", "clutch": "clutch_button"}


def current_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a session with keys of earlier versions renamed to the present ones."""
    result = _renamed(settings, _SETTINGS)
    if isinstance(limits := result.get("limits"), Mapping):
        result["limits"] = _renamed(limits, _LIMITS)
    return result


def _renamed(data: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in data.items()}
