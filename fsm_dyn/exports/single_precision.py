"""C sources rewritten from doubles to floats, with thresholds suited to floats."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from typing import Final

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.core.errors import InputError
from fsm_dyn.language.evaluate import ParameterValue
from fsm_dyn.language.numerics import NUMERICS
from fsm_dyn.language.scales import Scales
from fsm_dyn.run.tolerances import Numerics, Tolerances, numerics_of

#: Distance from 1 to the next larger number, of doubles and of floats.
DOUBLE_EPS: Final = 2.0**-52
FLOAT_EPS: Final = 2.0**-23

_LARGEST: Final = (2.0 - FLOAT_EPS) * 2.0**127
_SMALLEST: Final = 2.0**-126
#: Thresholds up to here count roundings; larger ones are numbers of the method or of the mechanics.
_ROUNDINGS: Final = 1e-5
#: Thresholds below this take the place of zero.
_IN_PLACE_OF_ZERO: Final = 1e-100
_ZERO_OF_FLOATS: Final = 1e-30

_TOKEN: Final = re.compile(
    r"""(?P<other>/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"""|(?P<number>\.?[0-9](?:[eEpP][+-]|[0-9A-Za-z_.])*)"""
    r"""|(?P<word>[A-Za-z_][A-Za-z0-9_]*)""",
    re.DOTALL,
)
_DEFINED: Final = re.compile(r"#define[ ]+\w+[ ]+(?:\\\n[ ]*)?$")
_FUNCTIONS: Final = frozenset({"sqrt", "fabs", "floor", "fmod", "copysign"})

#: Parts of the runtime missing in a machine of floats: elementary functions of doubles, saved states (words of
#: doubles) and the live loop.
LEFT_OUT: Final = frozenset(
    {"elementary_tables.h", "saved_words.c", "saved_state.c", "saved_state.h", "tick_inputs.c", "tick_samples.c",
     "tick_step.c", "tick.h",
     "live.h", "pacing.c", "pacing.h", "udp.c", "scripted_hand.c", "sources.c", "atomic.h"}
)  # fmt: skip


def of_floats(value: float) -> float:
    """Return the threshold of floats with the same share of the digits as one of doubles.

    Parameters
    ----------
    value : float
        Between 0 and 1: a number of roundings, or a power of the rounding as of a difference quotient.

    Returns
    -------
    float
        The same power of the distance from 1 to the next larger number.
    """
    return float(f"{math.exp(math.log(value) * math.log(FLOAT_EPS) / math.log(DOUBLE_EPS)):.8g}")


def in_floats(source: str) -> str:
    """Return a C source of doubles as one of floats.

    Parameters
    ----------
    source : str
        C99; every word ``double`` in it is the type of numbers.

    Returns
    -------
    str
        The type, the literals and the functions of ``math.h`` are those of floats. A named constant of at most 1e-5
        becomes :func:`of_floats`; one used as zero becomes 1e-30.

    Raises
    ------
    InputError
        A number is larger than the largest float.
    """
    parts, end = [], 0
    for token in _TOKEN.finditer(source):
        text, begin = token.group(), token.start()
        parts.append(source[end:begin])
        end = token.end()
        if token.lastgroup == "word":
            text = "float" if text == "double" else f"{text}f" if _is_call(source, end, text) else text
        elif token.lastgroup == "number" and _is_floating(text):
            text = _literal(text, defined=_DEFINED.search(source[max(0, begin - 300) : begin]) is not None)
        parts.append(text)
    return "".join([*parts, source[end:]])


def _is_call(source: str, end: int, word: str) -> bool:
    """Whether the word that ends there calls a function of ``math.h``."""
    return word in _FUNCTIONS and source[end : end + 1] == "("


def _is_floating(text: str) -> bool:
    """Whether a number of C has a point or an exponent, and no suffix."""
    if text[:2] in ("0x", "0X"):
        return "p" in text.lower()
    return not text.isdigit() and text[-1] not in "uUlLfF" and any(mark in text for mark in ".eE")


def _literal(text: str, defined: bool) -> str:
    """Return a literal of a float; for a constant `defined` by name, the threshold."""
    value = float.fromhex(text) if text[:2] in ("0x", "0X") else float(text)
    if defined and 0.0 < value <= _ROUNDINGS:
        return f"{_ZERO_OF_FLOATS if value < _IN_PLACE_OF_ZERO else of_floats(value)!r}f"
    if abs(value) > _LARGEST:
        raise InputError("a number is too large for floats", found=text, allowed=f"up to {_LARGEST:.3g}")
    return f"{_SMALLEST!r}f" if 0.0 < value < _SMALLEST else f"{text}f"


def runtime_in_floats(files: Mapping[str, str]) -> dict[str, str]:
    """Return the sources of the runtime by their names, of floats, without those of :data:`LEFT_OUT`.

    Parameters
    ----------
    files : mapping
        Names and texts.
    """
    own = resources.files("fsm_dyn.exports") / "float"
    kept = {name: (own / name).read_text(encoding="utf-8") for name in ("elementary.h", "elementary.c")}
    for name, text in files.items():
        if name == "fsm_runtime.c":
            included = re.compile(r'#include "([^"]*)"\n')
            kept[name] = included.sub(lambda line: "" if line.group(1) in LEFT_OUT else line.group(), text)
        elif name not in LEFT_OUT and name not in kept:
            kept[name] = in_floats(text)
    return kept


#: Tolerances of a machine of floats in roundings (distances from 1 to the next larger number), each in the mechanism's
#: own units: the default, and the least tolerance allowed in a model.
ROUNDINGS: Final[Mapping[str, tuple[float, float]]] = {
    "rtol": (64.0, 4.0),
    "atol": (4.0, 0.5),
    "gap": (8.0, 4.0),
    "speed": (64.0, 8.0),
    "acceleration": (512.0, 64.0),
    "multiplier": (64.0, 16.0),
    "energy": (8.0, 4.0),
    "pivot": (8192.0, 1024.0),
    "coincidence": (4.0, 1.0),
    "graze": (2.0, 1.0),
    "projection": (4.0, 2.0),
    "drift": (8192.0, 64.0),
    "impact": (256.0, 16.0),
    "slip": (512.0, 64.0),
    "least_acceleration": (81920.0, 8192.0),
    "redundancy": (8192.0, 1024.0),
}


def single_tolerances(given: Tolerances, scales: Scales) -> Tolerances:
    """Return the tolerances of a machine of floats.

    Parameters
    ----------
    given : Tolerances
        Tolerances given by the model.
    scales : Scales
        The mechanism's own units, derived from its numbers.

    Raises
    ------
    InputError
        A given tolerance is below the resolution of floats.
    """
    own = given.scaled(scales).scales
    found: dict[str, float] = {}
    for name, (usual, least) in ROUNDINGS.items():
        unit = FLOAT_EPS * own.unit(NUMERICS[name])
        value = getattr(given, name)
        if value is None:
            found[name] = usual * unit
        elif value < least * unit:
            raise InputError(
                f"the tolerance '{name}' is too small for floats",
                found=f"{value:g}", allowed=f"{least * unit:.2g} and above",
                remedy="give a larger one under `numerics`, or export doubles",
            )  # fmt: skip
    return given.or_else(Tolerances(**found))


def single_numerics(automaton: Automaton, values: Mapping[str, ParameterValue]) -> Numerics:
    """Return the tolerances and units of a machine of floats with these parameters.

    Parameters
    ----------
    automaton : Automaton
    values : mapping
        All parameters, SI.

    Raises
    ------
    InputError
        A tolerance of the model is below the resolution of floats.
    """
    given = Tolerances.of(automaton.mechanism.numerics, values)
    tolerances = single_tolerances(given, automaton.numbers.scales(values))
    numerics = numerics_of(automaton, values, tolerances)
    return numerics if given.atol is not None else replace(numerics, atol=(tolerances.atol or 0.0) * numerics.states)
