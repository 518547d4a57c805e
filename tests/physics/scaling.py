"""A model in which every quantity is multiplied by its dimension: other lengths, masses and times, the same motion."""

from __future__ import annotations

import numpy as np
import yaml

import fsm_dyn
from fsm_dyn.core.errors import NOWHERE, ExpressionError
from fsm_dyn.language.expression_tree import read_quantity, tokenise
from fsm_dyn.language.scales import SI, units_of
from fsm_dyn.language.units import DIMENSIONLESS

TEXTS = {"summary", "source", "because", "text", "name", "view"}  # no expressions of the mechanism
LEFT_OUT = {"variants"}
BASES = ("m", "kg", "s", "A", "K", "mol", "cd")
MOST_STEPS = 30_000


def scaled(mechanism, factors):
    """Return a mechanism with every number that has a unit multiplied by the factor of its dimension."""
    data = yaml.load(mechanism.text, Loader=yaml.BaseLoader)  # noqa: S506 - it makes texts, lists and mappings only
    return fsm_dyn.load(_value(data, factors))


def _value(value, factors):
    if isinstance(value, dict):
        return {
            key: item if key in TEXTS else _value(item, factors)
            for key, item in value.items()
            if key not in LEFT_OUT and not (key == "sound_frequency" and "Hz" in item)  # as heard
        }
    if isinstance(value, list):
        return [_value(item, factors) for item in value]
    if value in ("true", "false") or value.lstrip("-").isdigit():
        return yaml.safe_load(value)
    return _text(value, factors)


def _text(text, factors):
    try:
        tokens = tokenise(text, NOWHERE)
    except ExpressionError:
        return text
    parts, at, changed = [], 0, False
    while at < len(tokens):
        end = at + 1
        part = tokens[at].text
        if tokens[at].kind == "number":
            try:
                value, dimension, end = read_quantity(tokens, at, NOWHERE)
            except ExpressionError:
                return text
            part = " ".join(token.text for token in tokens[at:end])
            if dimension not in (None, DIMENSIONLESS) and value:
                unit = "*".join(f"{base}^({power:g})" for base, power in zip(BASES, dimension, strict=True) if power)
                part = f"({value * factors.unit(dimension)!r} {unit})"
                changed = True
        parts.append(part)
        at = end
    return " ".join(parts) if changed else text


class Run:
    """A run of a graph in units that are multiples of SI: rows and transitions in these units."""

    def __init__(self, graph, factors=SI, until=1.0, **settings):
        if "step" in settings:
            settings["step"] *= factors.time
        self.trajectory = fsm_dyn.simulate(
            graph, until * factors.time, max_steps=MOST_STEPS, on_failure="return", **settings
        )
        layout = graph.automaton.terms.layout
        units = units_of(graph.automaton.mechanism, factors, layout.q, layout.u, [])
        self.t = self.trajectory.t / factors.time
        self.q, self.u = self.trajectory.q / units.q, self.trajectory.u / units.u
        self.outcome = self.trajectory.outcome.name
        self.modes = [(item.source, item.target) for item in self.trajectory.transitions]
        self.times = np.array([item.time / factors.time for item in self.trajectory.transitions])

    def same_bits(self, other):
        """Whether two runs have the same rows, transitions and outcome, to the last bit."""
        arrays = zip((self.t, self.q, self.u, self.times), (other.t, other.q, other.u, other.times), strict=True)
        same = all(np.array_equal(one, two) for one, two in arrays)
        return same and self.modes == other.modes and self.outcome == other.outcome
