"""Options of the form NAME=VALUE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from fsm_dyn.errors import InputError

Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A parameter's value, e.g. mB='25 kg'; repeat.")
]
Input = Annotated[
    list[str] | None,
    typer.Option("--input", metavar="NAME=EXPR", help="An input over time, e.g. push='30 N*sin(2*t)'; repeat."),
]
Initial = Annotated[
    list[str] | None,
    typer.Option("--initial", metavar="NAME=VALUE", help="An initial value, or mode=NAME; repeat."),
]


def assignments(option: str, texts: Sequence[str] | None) -> dict[str, Any] | None:
    """Return NAME=VALUE texts as a mapping; None where none were given.

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
        found[name] = _listed(option, value) if value.startswith("[") else value
    return found


def _listed(option: str, value: str) -> Any:
    # YAML's flow sequences read units without quotes; the import is needed for lists only.
    import yaml

    try:
        return _texts(yaml.load(value, Loader=yaml.BaseLoader))  # noqa: S506 - it makes texts and lists only
    except (yaml.YAMLError, RecursionError):
        raise InputError(f"{option}: the brackets do not close, or are nested too deeply", found=value) from None


def _texts(value: Any) -> Any:
    return [_texts(item) for item in value] if isinstance(value, list) else value
