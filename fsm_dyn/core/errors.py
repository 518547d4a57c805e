"""The exception tree of fsm_dyn.

Every message names the place (file:line:column), the name concerned, the value found, the values allowed and a remedy.
The command line turns :class:`InputError` into exit code 2 and :class:`RunError` into exit code 1.
"""

from __future__ import annotations

import difflib
import importlib
import re
import sys
import warnings
from collections.abc import Iterable
from types import ModuleType
from typing import NamedTuple

LONGEST_WORD = 180  # longest word or quotation of the input repeated by a message


class Location(NamedTuple):
    """A location in a text; ``line`` and ``column`` count from 1, 0: unknown; without ``file``: no location."""

    file: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}"


NOWHERE = Location()


class FsmDynError(Exception):
    """Base of everything this package raises on purpose."""


class InputError(FsmDynError):
    """Unusable input: a model, a value, an option.

    Parameters
    ----------
    message : str
        The mistake, with the name of the item concerned.
    where : Location
        Location in its file.
    found, allowed, remedy : str
        The value found, the values allowed, and a remedy; each may be empty.  The value found, and words and
        quotations in the others and in ``message``, are cut at ``LONGEST_WORD`` characters.
    """

    def __init__(
        self,
        message: str,
        where: Location = NOWHERE,
        *,
        found: str = "",
        allowed: str = "",
        remedy: str = "",
    ) -> None:
        self.message, self.allowed, self.remedy = map(_shortened, (message, allowed, remedy))
        self.found = found if len(found) <= LONGEST_WORD else f"{found[: LONGEST_WORD - 3]}..."
        self.where = where
        super().__init__(str(self))

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.message}" if self.where.file else self.message]
        for label, text in (("found", self.found), ("allowed", self.allowed), ("remedy", self.remedy)):
            if text:
                lines.append(f"  {label}: {text}")
        return "\n".join(lines)


def _shortened(text: str) -> str:
    """Return a text with its overlong words and quotations cut."""
    return re.sub(
        rf"\S{{{LONGEST_WORD},}}|'[^'\n]{{{LONGEST_WORD},}}'", lambda word: f"{word[0][: LONGEST_WORD - 3]}...", text
    )


class ModelError(InputError):
    """A malformed, inconsistent or impossible mechanism file (or mapping)."""


class ExpressionError(ModelError):
    """A text outside the grammar of expressions."""


class UnknownColumnError(InputError, KeyError):
    """An unknown column name of a run: an error of input, and a ``KeyError`` for code that expects one."""


class RunError(FsmDynError):
    """A failed run; the message contains the time, the mode and the residuals.

    ``trajectory`` has the rows recorded before the failure, if any.
    """

    trajectory: object = None


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return the ``count`` known names most like a name, the nearest first."""
    return difflib.get_close_matches(name, list(known), n=count, cutoff=0.0)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``"did you mean 'x'?"`` for the one known name with `name` as a word, or the closest; or an empty text."""
    names = list(known)
    match = [item for item in names if item.lower() == name.lower()]
    if len(match) != 1:
        match = [item for item in names if f"_{name}_" in f"_{item}_"]
    if len(match) != 1:
        match = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"did you mean '{match[0]}'?" if match else ""


class EnergyWarning(UserWarning):
    """The energy balance of a run does not close: its motion is not one of the model."""


class StartWarning(UserWarning):
    """A run begins out of the reach of a contact."""


class StepWarning(UserWarning):
    """Steps of a run were shortened as a guard was neither proved nor found to fire."""


class ModelWarning(UserWarning):
    """A model is valid, but a line of its file is likely a mistake."""


class PhaseWarning(ModelWarning):
    """A phase of a model can never begin."""


class VariantWarning(ModelWarning):
    """A variant of a model adds an entry with almost the name of another."""


class ComponentWarning(ModelWarning):
    """A requirement of a component has no effect in the model around it."""


class UnusedWarning(ModelWarning):
    """A model declares a quantity without use."""


def warn_of_energy(model: str, texts: Iterable[str]) -> None:
    """Warn of open energy balances, at the line of the caller outside the package."""
    _warn_of(EnergyWarning, model, texts)


def warn_of_start(model: str, texts: Iterable[str]) -> None:
    """Warn of starts out of the reach of contacts, at the line of the caller outside the package."""
    _warn_of(StartWarning, model, texts)


def warn_of_steps(model: str, texts: Iterable[str]) -> None:
    """Warn of steps shortened for undecided guards, at the line of the caller outside the package."""
    _warn_of(StepWarning, model, texts)


def _warn_of(category: type[Warning], model: str, texts: Iterable[str]) -> None:
    for text in texts:
        warn_caller(f"{model}: {text}", category)


def warn_caller(text: str, category: type[Warning]) -> None:
    """Warn at the line of the caller outside the package."""
    frame, level = sys._getframe(1), 2  # pylint: disable=protected-access
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).split(".")[0] == "fsm_dyn":
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


# -- Libraries of the extras, imported when they are needed --------------------------------------------------


def optional_library(name: str, extra: str = "analysis") -> ModuleType:
    """Import a library of an extra; without it the error names the extra.

    ``name``: of the module; ``extra``: of this package, which brings it. Raises InputError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise InputError(
            f"this needs {name}, which is not installed",
            remedy=f'install the extra: pip install "fsm-dyn[{extra}]"',
        ) from error
