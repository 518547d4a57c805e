"""Libraries of the extras, imported when they are needed."""

from __future__ import annotations

import importlib
from types import ModuleType

from fsm_dyn.core.errors import InputError


def optional_library(name: str, extra: str = "analysis") -> ModuleType:
    """Import a library of an extra or say how to get it.

    Parameters
    ----------
    name : str
        Of the module.
    extra : str
        Of this package, which brings it.

    Returns
    -------
    module

    Raises
    ------
    InputError
        It is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise InputError(
            f"this needs {name}, which is not installed",
            remedy=f'install the extra: pip install "fsm-dyn[{extra}]"',
        ) from error
