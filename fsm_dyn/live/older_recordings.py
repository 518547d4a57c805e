"""Compatibility with older recordings: renames the keys of their settings and their events."""

from collections.abc import Mapping
from typing import Any, Final

_SETTINGS: Final = {
    "mapping": "device_map",
    "turns": "rotational_axes",
    "guard_timeout": "watchdog_timeout",
    "privileges": "realtime_privileges",
}
_LIMITS: Final = {"turning": "angular_velocity", "dead_man": "dead_man_button", "clutch": "clutch_button"}

_EVENTS: Final = {
    "at reset": "pending_reset", "done": "command_done", "refused": "command_rejected", "supplied": "mode_added",
    "taken over": "kernel_adopted", "failed": "model_failed", "behind": "lagging",
}  # fmt: skip


def current_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event of a session with names of earlier versions replaced by the present ones."""
    result = _renamed(event, {"why": "reason", "privileges": "realtime_privileges"})
    if isinstance(kind := result.get("event"), str):
        result["event"] = _EVENTS.get(kind, kind)
    return result


def current_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a session with keys of earlier versions renamed to the present ones."""
    result = _renamed(settings, _SETTINGS)
    if isinstance(limits := result.get("limits"), Mapping):
        result["limits"] = _renamed(limits, _LIMITS)
    return result


def _renamed(data: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in data.items()}
