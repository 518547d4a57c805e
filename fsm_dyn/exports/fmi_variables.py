"""The variables of a Functional Mock-up Unit, as both versions of the standard describe them."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from fsm_dyn.errors import InputError
from fsm_dyn.exports.exported_run import ExportedRun
from fsm_dyn.exports.spare_modes import spare_parts
from fsm_dyn.exports.tunable import parameter_limits
from fsm_dyn.expressions.units import TABLE, dimension_text
from fsm_dyn.runtime.abi import Event
from fsm_dyn.spec.values import units

BASE_UNITS: Final = ("m", "kg", "s", "A", "K", "mol", "cd")
_EVENTS: Final = {
    Event.CLOSES: "closes", Event.OPENS: "opens", Event.SLIDES: "slides", Event.STICKS: "sticks", Event.LEAVES: "leaves"
}  # fmt: skip


@dataclass(frozen=True)
class Variable:
    """One variable of a unit.

    Attributes
    ----------
    role : str
        ``time``, ``parameter``, ``input``, ``output``, ``state``, ``mode``, ``contact``, ``derivative`` or
        ``indicator``.
    name : str
        In the syntax of structured names.
    description : str
    reference : int
        The value reference: its place among all variables.
    causality, variability, initial : str
        In the words of the standard; ``initial`` is empty where the standard has one value only.
    start : float, optional
    limits : tuple of float
        Least and greatest value, infinite where there is none.
    unit : str
        Empty where there is none.
    state : int, optional
        Of a derivative, the value reference of its state.
    """

    role: str
    name: str
    description: str
    reference: int
    causality: str
    variability: str
    initial: str = ""
    start: float | None = None
    unit: str = ""
    state: int | None = None
    limits: tuple[float, float] = (-math.inf, math.inf)

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes that both versions write alike, in their order."""
        found = {
            "name": self.name,
            "valueReference": str(self.reference),
            "description": self.description,
            "causality": self.causality,
            "variability": self.variability,
            "initial": self.initial,
        }
        return {key: value for key, value in found.items() if value}


def list_variables(run: ExportedRun) -> list[Variable]:
    """Return all variables in the order of their value references, which the sources of a unit number alike.

    Raises
    ------
    InputError
        Two of them have the same name.
    """
    found = [replace(variable, reference=k) for k, variable in enumerate(_variables(run))]
    first_state = next((v.reference for v in found if v.role == "state"), 0)
    of_state = itertools.count(first_state)
    found = [replace(v, state=next(of_state)) if v.role == "derivative" else v for v in found]
    taken = Counter(variable.name for variable in found)
    for name, times in taken.items():
        if times > 1:
            raise InputError(f"two variables of the unit are called '{name}'", remedy="rename one of them in the model")
    return found


def _variables(run: ExportedRun) -> Iterator[Variable]:
    """Yield the variables without their references."""
    names, known = run.names, units(run.automaton.mechanism)
    given = parameter_limits(run)
    pairs = zip(given["lowest"].tolist(), given["highest"].tolist(), strict=True)
    limits = dict(zip(run.automaton.terms.layout.p, pairs, strict=True))
    tunable = {name for name, flag in zip(limits, given["tunable"], strict=True) if flag}
    start = dict(zip((*names["parameter"], *names["input"]), map(float, run.c), strict=False))

    def made(role: str, name: str, description: str, causality: str, variability: str, initial: str = "") -> Variable:
        value = start[name] if role in ("parameter", "input") else None
        return Variable(
            role, _quoted(name), description, 0, causality, variability, initial, value, known.get(name, "")
        )  # fmt: skip

    yield Variable("time", "time", "time", 0, "independent", "continuous", unit="s")
    for name in names["parameter"]:
        if name in tunable:
            found = made("parameter", name, "parameter", "parameter", "tunable", "exact")
            yield replace(found, limits=limits[name])
        else:
            yield made("parameter", name, "parameter, set when the unit is made", "local", "constant", "exact")
    for name in names["input"]:
        yield made("input", name, "input", "input", "continuous")
    for name in names["output"]:
        yield made("output", name, "output", "output", "continuous", "calculated")
    coordinates = len(run.automaton.terms.layout.q)
    for k, name in enumerate(names["state"]):
        word = "coordinate" if k < coordinates else "generalized speed"
        yield made("state", name, word, "local", "continuous", "calculated")
    yield Variable("mode", "mode", "mode of the automaton", 0, "output", "discrete", "calculated")
    for contact in run.automaton.contacts:
        codes = ", ".join(f"{code} {state}" for code, state in enumerate(contact.states) if state)
        name = f"contact.{_quoted(contact.name)}"
        yield Variable("contact", name, f"state of the contact: {codes}", 0, "output", "discrete", "calculated")
    for name in names["state"]:
        unit = _per_second(known[name]) if name in known else ""
        text = f"derivative of {name}"
        yield Variable(
            "derivative", f"der({_quoted(name)})", text, 0, "local", "continuous", "calculated", unit=unit
        )  # fmt: skip
    for name in event_indicators(run)[1]:
        text = "event indicator: it crosses zero where this happens"
        yield Variable("indicator", name, text, 0, "local", "continuous", "calculated")


def limit_attributes(variable: Variable) -> dict[str, str]:
    """Return the attributes ``min`` and ``max`` of a variable, as far as it has limits."""
    named = zip(("min", "max"), variable.limits, strict=True)
    return {word: repr(value) for word, value in named if math.isfinite(value)}


def event_indicators(run: ExportedRun) -> tuple[list[int], list[str]]:
    """Return the number of the event indicator of every guard, and the names of the indicators.

    The guards are those in the tables, then those that spare modes are made of.

    Guards of several modes are one indicator if they detect the same event at the same contact; each direction of slip
    has one.  A name is ``guard.EVENT.CONTACT``, that of a user-defined transition ``guard.transition[K]``.
    """
    tables, contacts = run.tables, run.names["contact"]
    numbers: dict[str, int] = {}
    of_guard: list[int] = []
    columns = (tables.guard_event, tables.guard_contact, tables.guard_direction)
    guards = list(zip(*(column.tolist() for column in columns), strict=True))
    groups = [guards[begin:end] for begin, end in itertools.pairwise(tables.mode_guard_start.tolist())]
    if run.spare:
        parts = spare_parts(run.automaton, tables, run.numerics)
        groups += [
            [guard[:3] for guard in parts.guards[begin:end]] for begin, end in itertools.pairwise(parts.guard_begin)
        ]
    for group in groups:
        met: Counter[str] = Counter()
        for event, contact, sign in group:
            if event == Event.TRANSITION:
                name = f"guard.transition[{contact}]"
            else:
                name = f"guard.{_EVENTS[event]}.{_quoted(contacts[contact])}"
            if sign:
                name += ".forward" if sign > 0 else ".backward"
            met[name] += 1
            if met[name] > 1:
                name += f".n{met[name]}"
            of_guard.append(numbers.setdefault(name, len(numbers)))
    return of_guard, list(numbers)


def unit_exponents(name: str) -> tuple[float, ...]:
    """Return the exponents of m, kg, s, A, K, mol and cd of a unit such as ``kg*m^2/(s*A)``."""
    total = [0.0] * len(BASE_UNITS)
    above, _, below = name.partition("/")
    for sign, part in ((1.0, above), (-1.0, below.strip("()"))):
        for factor in filter(None, part.split("*")):
            symbol, _, power = factor.partition("^")
            if symbol != "1":
                exponent = sign * float(power or 1)
                for k, base in enumerate(TABLE[symbol][1]):
                    total[k] += exponent * base
    return tuple(total)


def unit_definitions(variables: list[Variable]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the units of variables with their powers of the base units of SI; none where these are no whole numbers."""
    for name in sorted({variable.unit for variable in variables} - {""}):
        exponents = unit_exponents(name)
        powers = {base: f"{power:g}" for base, power in zip(BASE_UNITS, exponents, strict=True) if power}
        if re.fullmatch(r"rad(/s(\^2)?)?", name):
            powers["rad"] = "1"
        yield name, powers if all(float(power).is_integer() for power in powers.values()) else {}


def _per_second(unit: str) -> str:
    """Return the unit of a rate; angles stay radians."""
    m, kg, s, *others = unit_exponents(unit)
    rate = dimension_text((m, kg, s - 1.0, *others))  # type: ignore[arg-type]
    return f"rad{rate[1:]}" if unit.startswith("rad") else rate


def _quoted(part: str) -> str:
    """Return a part of a structured name, in quotes unless it is an identifier."""
    return part if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*(\[\d+\])?", part) else f"'{part}'"
