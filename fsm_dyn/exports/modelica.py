"""One mode of a mechanism as a flat Modelica model: its equations of motion, guards as variables that end the run.

Source: Modelica Association, Modelica Language Specification 3.6: identifiers, unit expressions, when-equations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.exports.exported_run import ExportedRun, prefix_of
from fsm_dyn.exports.fmi import event_indicators
from fsm_dyn.programs.graph import half_integer
from fsm_dyn.programs.program import Program
from fsm_dyn.runtime.abi import Event

_WORDS: Final = {
    Event.CLOSES: "closes", Event.OPENS: "opens", Event.SLIDES: "slides", Event.STICKS: "sticks",
    Event.LEAVES: "leaves the face", Event.TRANSITION: "transition",
}  # fmt: skip
_KEYWORDS: Final = frozenset(
    """
    algorithm and annotation assert block break class connect connector constant constrainedby der discrete each else
    elseif elsewhen encapsulated end enumeration equation expandable extends external false final flow for function if
    import impure in initial inner input loop model not operator or outer output package parameter partial protected
    public pure record redeclare replaceable return stream then true type when while within time abs sign sqrt min max
    mod floor sin cos tan asin acos atan atan2 sinh cosh tanh exp log noEvent terminate
    """.split()  # noqa: SIM905
)
# conditions are the numbers 0 and 1, as in programs; equality of reals is no relation of Modelica
_TRUTH: Final = "noEvent(if {} then 1.0 else 0.0)"
_TEMPLATES: Final = {
    "neg": "-{0}", "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0}*{1}", "div": "{0}/{1}", "pow": "{0}^{1}",
    "sign": "noEvent(if {0} > 0.0 then 1.0 elseif {0} < 0.0 then -1.0 else 0.0)",
    "abs": "noEvent(abs({0}))",
    "min": "noEvent(min({0}, {1}))", "max": "noEvent(max({0}, {1}))",
    "mod": "noEvent(mod({0}, {1}))", "floor": "noEvent(floor({0}))", "atan2": "atan2({0}, {1})",
    "lt": _TRUTH.format("{0} < {1}"), "le": _TRUTH.format("{0} <= {1}"),
    "eq": _TRUTH.format("{0} <= {1} and {0} >= {1}"), "ne": _TRUTH.format("{0} < {1} or {0} > {1}"),
    "and": _TRUTH.format("{0} > 0.5 and {1} > 0.5"), "or": _TRUTH.format("{0} > 0.5 or {1} > 0.5"),
    "not": _TRUTH.format("{0} < 0.5"), "where": "noEvent(if {0} > 0.5 then {1} else {2})",
    **{name: name + "({0})" for name in ("sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
                                         "cosh", "tanh")},
}  # fmt: skip


def modelica(run: ExportedRun, mode: str | None = None) -> bytes:
    """Return the text of a model.

    Parameters
    ----------
    run : ExportedRun
    mode : str, optional
        Name of an exported mode; that of the start by default. Other modes have a start that need not be one of theirs.

    Raises
    ------
    InputError
        There is no such mode.
    """
    names = run.names["mode"]
    if mode is not None and mode not in names:
        raise InputError(
            f"there is no exported mode '{mode}'", allowed=", ".join(names), remedy=did_you_mean(mode, names)
        )
    number = run.mode if mode is None else names.index(mode)
    return "\n".join(_Text(run, number).lines()).encode() + b"\n"


def identifier(name: str) -> str:
    """Return a name as an identifier of Modelica, quoted where it is none by itself."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name not in _KEYWORDS:
        return name
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"


def unit_text(unit: str) -> str:
    """Return a unit in the syntax of Modelica: ``kg.m2/(s.A)``."""
    return unit.replace("*", ".").replace("^", "")


class _Text:
    """The lines of a model."""

    def __init__(self, run: ExportedRun, mode: int) -> None:
        self.run, self.mode = run, mode
        _, full = run.programs[mode]
        nodes = full.graph()[2]
        kept = {name: nodes[name].ravel().tolist() for name in ("x_dot", "guards")}
        self.program = Program.from_nodes(full.layout, kept)
        self.values: list[str] = []

    def lines(self) -> Iterator[str]:
        """Yield the lines of the model."""
        run, mechanism = self.run, self.run.automaton.mechanism
        name = prefix_of(mechanism.name)
        mode = run.names["mode"][self.mode]
        yield f"model {identifier(name)} {_string(' '.join(mechanism.summary.split()))}"
        yield f"  // Mode {mode}; it ends where a guard falls below zero. Made by fsm_dyn; SI units."
        yield from self._arguments()
        instructions = list(self._instructions())
        yield from (f"  Real {variable};" for variable, _ in instructions)
        guards = self._guards()
        yield from (f"  Real {guard} {_string(words)};" for guard, words in guards.items())
        yield "equation"
        yield from (f"  {variable} = {text};" for variable, text in instructions)
        results = {output.name: [self.values[k] for k in output.indices] for output in self.program.results}
        states = [identifier(state) for state in run.names["state"]]
        yield from (f"  der({state}) = {rate};" for state, rate in zip(states, results["x_dot"], strict=True))
        for (guard, words), value in zip(guards.items(), results.get("guards", []), strict=True):
            yield f"  {guard} = {value};"
            yield f"  when {guard} < 0.0 then"
            yield f"    terminate({_string(words)});"
            yield "  end when;"
        yield f"end {identifier(name)};"

    def _arguments(self) -> Iterator[str]:
        """Yield declarations, and name the arguments of the program."""
        run, layout = self.run, self.program.layout
        read = {k for _, operands in self.program.instructions for k in operands}
        read |= {k for output in self.program.results for k in output.indices}
        units = run.units
        context = dict(zip(layout.arguments[1 + layout.n_x :], run.c.tolist(), strict=True))
        states = dict(zip(run.names["state"], run.x.tolist(), strict=True))
        self.values = ["time"]
        for index, argument in enumerate(layout.arguments[1:], start=1):
            own = identifier(argument)
            self.values.append(own)
            attributes = {"unit": _string(unit_text(units[argument]))} if units.get(argument) else {}
            if argument in states:
                attributes |= {"start": repr(states[argument]), "fixed": "true"}
                yield f"  Real {own}{_modifier(attributes)};"
            elif index in read and argument in layout.w:
                yield f"  input Real {own}{_modifier(attributes | {'start': repr(context[argument])})};"
            elif index in read:  # parameters, rates of inputs, slip directions, memory
                yield f"  parameter Real {own}{_modifier(attributes)} = {context[argument]!r};"

    def _instructions(self) -> Iterator[tuple[str, str]]:
        """Yield the variables of the program with their expressions."""
        constants = dict(enumerate(self.program.constants, start=len(self.values)))
        self.values += [repr(value) if value >= 0.0 else f"({value!r})" for value in self.program.constants]
        taken = {name.strip("'") for name in self.values}
        for number, (op, operands) in enumerate(self.program.instructions, start=1):
            texts = [self.values[k] for k in operands]
            whole = half_integer(constants[operands[1]]) if op == "pow" and operands[1] in constants else None
            variable = f"z{number}" if f"z{number}" not in taken else f"z{number}_"
            self.values.append(variable)
            root = "*".join([f"sqrt({texts[0]})", *[texts[0]] * (whole or 0)])
            yield variable, root if whole is not None else _TEMPLATES[op].format(*texts)

    def _guards(self) -> Mapping[str, str]:
        """Return the guards of the mode with the words of their events."""
        tables, contacts = self.run.tables, self.run.names["contact"]
        begin, end = tables.mode_guard_start[self.mode : self.mode + 2].tolist()
        of_guard, names = event_indicators(self.run)
        found = {}
        for k in range(begin, end):
            event, subject = Event(int(tables.guard_event[k])), int(tables.guard_contact[k])
            who = str(subject) if event == Event.TRANSITION else contacts[subject]
            words = f"{_WORDS[event]} {who}" if event == Event.TRANSITION else f"{who} {_WORDS[event]}"
            found[identifier(names[of_guard[k]])] = words
        return found


def _string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _modifier(attributes: Mapping[str, str]) -> str:
    named: Sequence[str] = [f"{name}={value}" for name, value in attributes.items()]
    return f"({', '.join(named)})" if named else ""
