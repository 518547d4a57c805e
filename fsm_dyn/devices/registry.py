"""Registry of the shipped drivers, with the packages they need."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from dataclasses import dataclass

import fsm_dyn.devices
from fsm_dyn.devices import emulators


@dataclass(frozen=True)
class DriverInfo:
    """A shipped driver.

    Attributes
    ----------
    name : str
    about : str
        First line of its docstring.
    missing : str
        Required package that is not installed; empty if there is none.
    emulated : bool
        Whether it has an emulator.
    """

    name: str
    about: str
    missing: str
    emulated: bool


def shipped_drivers() -> list[DriverInfo]:
    """Return the shipped drivers, by name."""
    emulated = {module.name for module in pkgutil.iter_modules(emulators.__path__)}
    found = []
    for module in pkgutil.iter_modules(fsm_dyn.devices.__path__):
        if module.ispkg:
            continue
        missing, about = "", ""
        try:
            loaded = importlib.import_module(f"{fsm_dyn.devices.__name__}.{module.name}")
        except ModuleNotFoundError as error:
            missing = error.name or str(error)
        else:
            if not hasattr(loaded, "Driver"):
                continue
            about = (loaded.__doc__ or "").partition("\n")[0].rstrip(".")
        found.append(DriverInfo(module.name, about, missing, module.name in emulated))
    return found
