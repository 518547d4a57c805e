"""Units: text to an SI factor and a dimension.

The usual units are in a table of this module, so pint (a third of a second to import) is needed only for rare ones; the
table is tested against pint. The registry ignores definitions of the user.
"""

from __future__ import annotations

import functools
import math
from types import MappingProxyType
from typing import Any, TypeAlias

#: Exponents of (m, kg, s, A, K, mol, cd).
Dimension: TypeAlias = tuple[float, float, float, float, float, float, float]

DIMENSIONLESS: Dimension = (0.0,) * 7

_SYMBOLS = ("m", "kg", "s", "A", "K", "mol", "cd")


def dimension(m: float = 0, kg: float = 0, s: float = 0, ampere: float = 0, kelvin: float = 0) -> Dimension:
    """Return the dimension with the given exponents of the base units."""
    return (float(m), float(kg), float(s), float(ampere), float(kelvin), 0.0, 0.0)


LENGTH, MASS, TIME = dimension(m=1), dimension(kg=1), dimension(s=1)
SPEED, ACCELERATION = dimension(m=1, s=-1), dimension(m=1, s=-2)
FORCE, ENERGY, POWER = dimension(m=1, kg=1, s=-2), dimension(m=2, kg=1, s=-2), dimension(m=2, kg=1, s=-3)
INERTIA, DENSITY = dimension(m=2, kg=1), dimension(m=-3, kg=1)


def multiply(left: Dimension, right: Dimension) -> Dimension:
    """Return the dimension of a product."""
    return _rounded(a + b for a, b in zip(left, right, strict=True))


def divide(left: Dimension, right: Dimension) -> Dimension:
    """Return the dimension of a quotient."""
    return _rounded(a - b for a, b in zip(left, right, strict=True))


def power(base: Dimension, exponent: float) -> Dimension:
    """Return the dimension of a power."""
    return _rounded(a * exponent for a in base)


def _rounded(exponents: Any) -> Dimension:
    # Rounding keeps 2.5 - 1.5 - 1 at zero; + 0.0 turns -0.0 into 0.0.
    m, kg, s, a, k, mol, cd = (round(e, 9) + 0.0 for e in exponents)
    return (m, kg, s, a, k, mol, cd)


_NAMED: tuple[tuple[str, Dimension], ...] = (
    ("N", dimension(1, 1, -2)),
    ("N*m", dimension(2, 1, -2)),
    ("W", dimension(2, 1, -3)),
    ("N/m", dimension(0, 1, -2)),
    ("N*s/m", dimension(0, 1, -1)),
    ("N*m*s", dimension(2, 1, -1)),
    ("Pa", dimension(-1, 1, -2)),
)


_QUANTITIES: tuple[tuple[str, Dimension], ...] = (
    ("a number", DIMENSIONLESS),
    ("a length", dimension(1)),
    ("a mass", dimension(0, 1)),
    ("a time", dimension(0, 0, 1)),
    ("a speed", dimension(1, 0, -1)),
    ("an acceleration", dimension(1, 0, -2)),
    ("a force", dimension(1, 1, -2)),
    ("a stiffness", dimension(0, 1, -2)),
    ("an inertia", dimension(2, 1)),
)


def quantity_text(value: Dimension) -> str:
    """Return a text for the quantities of a dimension: ``"a length"``, or ``"a quantity in Pa"``."""
    names = (name for name, known in _QUANTITIES if known == value)
    return next(names, f"a quantity in {dimension_text(value)}")


def dimension_text(value: Dimension) -> str:
    """Return a unit of a dimension in usual notation: ``"kg*m^2"``, ``"1/s"``, ``"1"`` for none."""
    for text, named in _NAMED:
        if value == named:
            return text
    exponents = dict(zip(_SYMBOLS, value, strict=True))
    ordered = [(symbol, exponents[symbol]) for symbol in ("kg", "m", "s", "A", "K", "mol", "cd")]
    above = [_factor(symbol, e) for symbol, e in ordered if e > 0]
    below = [_factor(symbol, -e) for symbol, e in ordered if e < 0]
    text = "*".join(above) or "1"
    if below:
        text += "/" + (below[0] if len(below) == 1 else f"({'*'.join(below)})")
    return text


def _factor(symbol: str, exponent: float) -> str:
    return symbol if exponent == 1 else f"{symbol}^{exponent:g}"


_PREFIXES = {"n": 1e-9, "u": 1e-6, "\N{MICRO SIGN}": 1e-6, "m": 1e-3, "c": 1e-2, "k": 1e3, "M": 1e6, "G": 1e9}

_PREFIXED: dict[str, tuple[float, Dimension]] = {
    "m": (1.0, dimension(1)),
    "g": (1e-3, dimension(0, 1)),
    "s": (1.0, dimension(0, 0, 1)),
    "N": (1.0, dimension(1, 1, -2)),
    "J": (1.0, dimension(2, 1, -2)),
    "W": (1.0, dimension(2, 1, -3)),
    "Pa": (1.0, dimension(-1, 1, -2)),
    "Hz": (1.0, dimension(0, 0, -1)),
    "A": (1.0, dimension(0, 0, 0, 1)),
    "V": (1.0, dimension(2, 1, -3, -1)),
}

_PLAIN: dict[str, tuple[float, Dimension]] = {
    "rad": (1.0, DIMENSIONLESS),
    "mrad": (1e-3, DIMENSIONLESS),
    "deg": (math.pi / 180.0, DIMENSIONLESS),
    "rpm": (2.0 * math.pi / 60.0, dimension(0, 0, -1)),
    "min": (60.0, dimension(0, 0, 1)),
    "h": (3600.0, dimension(0, 0, 1)),
    "K": (1.0, dimension(0, 0, 0, 0, 1)),
    "inch": (0.0254, dimension(1)),
    "ft": (0.3048, dimension(1)),
    "lb": (0.45359237, dimension(0, 1)),
    "lbf": (0.45359237 * 9.80665, dimension(1, 1, -2)),
}

#: Units known without pint: symbol -> (factor to SI, dimension).
TABLE = MappingProxyType(
    {p + s: (f * factor, d) for s, (factor, d) in _PREFIXED.items() for p, f in _PREFIXES.items()}
    | _PREFIXED
    | {"kg": (1.0, dimension(0, 1)), "mg": (1e-6, dimension(0, 1))}
    | _PLAIN
)

#: Units allowed after ``*`` or ``/`` inside a number's unit: not ``g`` (``20 kg*g`` is a weight), and ``h`` only in
#: ``km/h`` (``9 N*h`` has a height).
CONTINUING = MappingProxyType({"*": frozenset(TABLE) - {"g", "h"}, "/": frozenset(TABLE) - {"g"}})

#: Words with another meaning in pint (``Nm`` is a yarn count there, ``mil`` an angle ten times too small).
MISREAD = MappingProxyType(
    {"Nm": "N*m", "Nmm": "N*mm", "Ns": "N*s", "Nms": "N*m*s", "kgm": "kg*m", "ms2": "m/s^2",
     "mil": "thou for a thousandth of an inch, mrad for an angle"}
)  # fmt: skip


class UnknownUnitError(ValueError):
    """A word without meaning as a unit, or a unit not proportional to SI (``degC``)."""


def unit(symbol: str) -> tuple[float, Dimension]:
    """Return (factor to SI, dimension) of one unit without operators.

    ``symbol``: such as ``"mm"`` or ``"lbf"``. Raises UnknownUnitError if it is neither in the table nor in pint, or has
    an offset.
    """
    symbol = symbol.replace("\N{GREEK SMALL LETTER MU}", "\N{MICRO SIGN}")
    known = TABLE.get(symbol)
    return known if known is not None else _from_pint(symbol)


@functools.lru_cache(maxsize=256)
def _from_pint(symbol: str) -> tuple[float, Dimension]:

    # Texts such as `t` (tonne) or `a` (are) are names, not units: a lone letter must be in the table.
    if (len(symbol) < 2 and symbol not in "lCFTH") or len(symbol) > 40 or symbol in MISREAD:
        raise UnknownUnitError(symbol)
    try:
        quantity = _registry().Quantity(1, symbol)
        if not quantity._is_multiplicative:
            raise UnknownUnitError(symbol)
        base = quantity.to_base_units()
        exponents = {str(k): float(v) for k, v in base.dimensionality.items()}
    except Exception as error:  # pint raises many classes, others in other versions
        raise UnknownUnitError(symbol) from error
    names = ("[length]", "[mass]", "[time]", "[current]", "[temperature]", "[substance]", "[luminosity]")
    value = _rounded(exponents.pop(name, 0.0) for name in names)
    factor = float(base.magnitude)
    if exponents or not math.isfinite(factor) or factor <= 0:
        raise UnknownUnitError(symbol)
    return factor, value


@functools.cache
def _registry() -> Any:
    import pint

    return pint.UnitRegistry(cache_folder=None)
