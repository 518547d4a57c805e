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
ScenarioOption = Annotated[str | None, typer.Option("--scenario", help="One of the model's scenarios.")]
Initial = Annotated[
    list[str] | None,
    typer.Option("--initial", metavar="NAME=VALUE", help="An initial value, or mode=NAME; repeat."),
]
Tolerance = Annotated[
    list[str] | None,
    typer.Option(
        "--tolerance", metavar="NAME=VALUE", help="What counts as zero, e.g. gap='1 um'; `check` lists them; repeat."
    ),
]
_SCALE = typer.Option(
    "--scale",
    metavar="RATIO",
    help="Metres of the model per metre of the device, the force comes back by the same ratio: 0.5 or 1/3; or one "
    "for each axis of the port, rad/m where kinds differ, e.g. 1/3,-2.",
)
Scale = Annotated[str, _SCALE]
Scales = Annotated[list[str] | None, _SCALE]


def ratios(text: str) -> float | tuple[float, ...]:
    """Return what ``--scale`` says: one ratio, or one for each axis.

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
        found[name] = listed(option, value) if value.startswith("[") else value
    return found


def distributions(texts: Sequence[str] | None) -> dict[str, Any] | None:
    """Return the distributions of ``--vary`` by name: a range, ``VALUE +- DEVIATION``, a mapping, or a list of names.

    Raises
    ------
    InputError
        A text is no such distribution, or a name is given twice.
    """
    if not texts:
        return None
    # The public half of the package: studies.
    from fsm_dyn.analysis.study import read_range
    from fsm_dyn.spec.forms.parameter_tolerances import SIGNS

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
