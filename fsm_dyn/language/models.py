"""The mechanisms of the package, found by bare name."""

from __future__ import annotations

import re
from pathlib import Path

from fsm_dyn.core.errors import InputError, did_you_mean, nearest

_BARE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def folder() -> Path:
    """Return the folder of the shipped models.

    A wheel carries it inside the package; an editable install finds it in the checkout, next to the package.

    Raises
    ------
    InputError
        If neither exists: the installation is incomplete.
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

    A text without suffix and separator always means a shipped model: files in the working directory have
    no effect on it.  A file is named with its suffix or a separator (``./name``).

    Raises
    ------
    InputError
        If the file does not exist or is not a file.
    """
    if isinstance(name_or_path, str) and is_bare_name(name_or_path):
        return find(name_or_path)
    path = Path(name_or_path)
    if path.is_dir():
        raise InputError(f"{path} is a folder, not a model file", remedy="name a .yaml file in it")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} cannot be read", found="a pipe or device", allowed="a file")
    if not path.is_file():
        near = did_you_mean(path.name, [p.name for p in path.parent.glob("*.yaml")]) if path.parent.is_dir() else ""
        raise InputError(f"there is no file {path}", found=str(name_or_path), remedy=near or "check the path")
    return path
