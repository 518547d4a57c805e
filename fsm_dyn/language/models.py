"""The mechanisms of the package, found by bare name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fsm_dyn.core.errors import InputError, did_you_mean, nearest

#: The shipped models by theme, the first to open first.
THEMES: Final[Mapping[str, tuple[str, ...]]] = {
    "Latches, switches, grippers": (
        "latch_door", "gripper", "push_button", "toggle_switch", "seat_belt_reel", "latch", "magnetic_latch",
        "gripper_finger", "virtual_wall",
    ),
    "Pianos and clocks": ("piano_action", "escapement_anchor", "escapement_deadbeat", "piano_action_simple"),
    "Carts, wheels, rolling bodies": (
        "shopping_cart", "cart_on_ramp", "rolling_disk", "billiard_ball", "rolling_coin", "rattleback",
        "chaplygin_sleigh",
    ),
    "Cams, gears, linkages": (
        "geneva_drive", "ratchet", "cam_flat_follower", "cam_roller_follower", "planetary_gear", "bevel_gears",
        "slider_crank", "four_bar", "four_bar_row", "seven_body_mechanism", "planar_three_body",
    ),
    "Impacts and friction": (
        "newtons_cradle", "box_on_table", "tray", "twelve_contacts", "bouncing_ball", "ball_in_corner", "rocking_block",
        "sliding_rod", "stick_slip_belt", "felt_drop", "carried_bar",
    ),
    "Legs, pendulums, chains": (
        "compass_gait", "rimless_wheel", "double_pendulum_with_stop", "pendulum_with_stop", "chain", "ball_chain",
    ),
    "Robots in space": ("spatial_robot", "spatial_two_body", "spherical_wrist", "spherical_wrist_rates"),
}  # fmt: skip
_BARE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def folder() -> Path:
    """Return the folder of the shipped models.

    A wheel carries it inside the package; an editable install finds it in the checkout, next to the package. Raises
    InputError if neither exists: the installation is incomplete.
    """
    package = Path(__file__).resolve().parents[1]
    for candidate in (package / "yaml_models", package.parent / "yaml_models"):
        if candidate.is_dir():
            return candidate
    raise InputError(
        f"the shipped models are missing: there is no folder {package / 'yaml_models'}",
        remedy="install the package again",
    )


def names() -> list[str]:
    """Return the names of the shipped models in alphabetical order."""
    return sorted(path.stem for path in folder().glob("*.yaml"))


def by_theme() -> dict[str, tuple[str, ...]]:
    """Return the names of the shipped models by theme; of those without one under ``Others``."""
    there = names()
    known = {name for own in THEMES.values() for name in own}
    found = {theme: tuple(name for name in own if name in there) for theme, own in THEMES.items()}
    found["Others"] = tuple(name for name in there if name not in known)
    return {theme: own for theme, own in found.items() if own}


def picture(name: str) -> Path | None:
    """Return the picture of a shipped model, PNG; None if the installation has none."""
    package = Path(__file__).resolve().parents[1]
    folders = (package / "yaml_models" / "pictures", package.parent / "docs" / "pictures" / "models")
    return next((path for path in (place / f"{name}.png" for place in folders) if path.is_file()), None)


def is_bare_name(text: str) -> bool:
    """Return whether ``text`` names a shipped model rather than a file: no suffix, no separator."""
    return _BARE_NAME.fullmatch(text) is not None


def find(name: str) -> Path:
    """Return the file of the shipped model ``name``.

    Raises
    ------
    InputError
        If no such model is shipped; the message names the three nearest.
    """
    path = folder() / f"{name}.yaml"
    if is_bare_name(name) and path.is_file():
        return path
    known = names()
    raise InputError(
        f"there is no shipped model '{name}'",
        found=name,
        allowed=f"{', '.join(nearest(name, known))}, ... ({len(known)} models: fsm-dyn models)",
        remedy=did_you_mean(name, known) or f"for a file of your own give its path: ./{name}.yaml",
    )


def resolve(name_or_path: str | Path) -> Path:
    """Return the file meant by a bare name or a path.

    A text without suffix and separator always means a shipped model: files in the working directory have no effect on
    it.  A file is named with its suffix or a separator (``./name``). Raises InputError if the file does not exist or is
    not a file.
    """
    if isinstance(name_or_path, str) and is_bare_name(name_or_path):
        return find(name_or_path)
    path = Path(name_or_path)
    if path.is_dir():
        raise InputError(f"{path} is a folder, not a model file", remedy="name a .yaml file in it")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} cannot be read", found="a pipe or device", allowed="a file")
    if not path.is_file():
        if path.is_symlink():
            raise InputError(f"{path} links to no file", found=str(path.readlink()), remedy="name the file itself")
        near = did_you_mean(path.name, [p.name for p in path.parent.glob("*.yaml")]) if path.parent.is_dir() else ""
        raise InputError(f"there is no file {path}", found=str(name_or_path), remedy=near or "check the path")
    return path
