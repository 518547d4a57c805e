"""Declared keys described: JSON Schema, a first model, tables of the language page, methods of `Model`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from keyword import iskeyword
from pathlib import Path
from textwrap import fill, indent
from typing import Any, Final

from fsm_dyn.core.errors import InputError
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.body_forms import ConstraintForm, FrameForm, GeometryForm, LoadForm, ToleranceForm
from fsm_dyn.language.contact_forms import ContactForm, InputForm, ScheduleForm, TransitionForm
from fsm_dyn.language.expression_tree import is_name
from fsm_dyn.language.impositions import Imposition
from fsm_dyn.language.interfaces import Controller, PinEntry, Port
from fsm_dyn.language.joint_forms import JointForm
from fsm_dyn.language.keyed import KeyedMapping, default_of, first_sentence, keys_of, others_of
from fsm_dyn.language.keys import Key
from fsm_dyn.language.mechanism_form import FORMAT, MechanismForm, ModelTolerances, RequirementForm, UseForm
from fsm_dyn.language.model import Body, Coordinate, Initial, ModelSettings, ModePattern, Point
from fsm_dyn.language.requirement import PartNameForm, PhaseForm

# -- The JSON Schema of model files, and a commented first model -----------------------------------------------


# -- The JSON Schema of model files, for checks in editors ---------------------------------------------------


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a model file.

    It knows the keys and the forms of values; expressions and references are checked by
    `load` only.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"fsm_dyn model, format {FORMAT}",
        **MechanismForm.schema(),
        "$defs": {cls.__name__: cls.schema() for cls in mapping_classes(MechanismForm)},
    }


def mapping_classes(cls: type[KeyedMapping]) -> list[type[KeyedMapping]]:
    """Return the classes of all mappings in a mapping, each once."""
    found: dict[type[KeyedMapping], None] = {}
    pending = [cls]
    while pending:
        taken = pending.pop()
        rest = others_of(taken)
        for _, key in (*keys_of(taken).values(), *([] if rest is None else [rest])):
            new = [inner for inner in key.kind.mappings if inner not in found]
            found |= dict.fromkeys(new)
            pending += new
    return list(found)


# -- A commented first model, for ``fsm-dyn new`` ------------------------------------------------------------

_TEMPLATE = """\
fsm_dyn: 1                        # format of this file
name: @NAME@
summary: A rod hangs from a pivot, swings under gravity and a moment, and strikes a stop.

# Numbers carry units, here and in expressions; SI inside. Leave all units out to take everything as SI.
parameters:
  m: 1.2 kg
  l: 0.8 m
  J: m*l**2/12                    # expressions may use parameters above them
  e: 0.6                          # restitution of the stop
  stop: 35 deg

# What can move, with SI units.
coordinates: {q: rad}

# N is the fixed frame, O its origin. A frame turns about an axis of its parent.
frames:
  R: {parent: N, rotate: {z: q}}

# Points are given from other points by vectors along the axes of frames.
points:
  C: {from: O, at: -l/2*R.y}      # middle of the rod
  T: {from: O, at: -l*R.y}        # its tip

bodies:                           # without a frame a body is a particle
  rod: {frame: R, center: C, mass: m, inertia: {zz: J}}

# Speeds of your choice; without this section q_dot = rate(q). Quote what contains commas.
speeds:
  w: "dot(omega(R), N.z)"

# A contact is a gap that cannot become negative; modes come and go with it.
contacts:
  block: {joint_stop: {coordinate: q, upper: stop}, restitution: e}
  # floor contact of a tip with friction:
  # ground: {gap: "dot(pos(T), N.y)", slip: "dot(vel(T), N.x)", friction: {static: 0.5, kinetic: 0.4}}
  # friction in a joint:
  # pivot: {dry_friction: {speed: w, static: 0.3 N*m, kinetic: 0.2 N*m}}

# What acts from outside, and how it runs over time unless a run says otherwise.
inputs: {moment: N*m}
schedule:
  moment: {steps: [[0 s, 0 N*m], [2 s, 1.5 N*m], [2.5 s, 0 N*m]]}

loads:
  - {gravity: -9.81 m/s^2*N.y}
  - {torque: moment*N.z, on: rod}
  - {damper: {coordinate: q, damping: 0.02 N*m*s}}

modes:                            # names for what is in contact; others are named by themselves
  swinging: {block: open}
  resting: {block: closed}

# Transitions beyond those of contacts, for example an end of the run:
# transitions:
#   - {from: "*", when: t - 10 s, crossing: rising, stop: true, because: that is enough}

initial: {mode: swinging, q: -60 deg}   # what is not given is 0, or follows

outputs:                          # extra columns
  height: "dot(pos(T), N.y)"

view:                             # in the body's frame, from its centre, in metres
  rod: {polygon: [[-0.02, -l/2], [0.02, -l/2], [0.02, l/2], [-0.02, l/2]]}
"""


def starter(name: str) -> str:
    """Return a commented model file called `name`, ready to load.

    Raises InputError if `name` cannot be the name of a model.
    """
    if not is_name(name.replace("-", "_")):
        raise InputError(
            f"{name!r} cannot name a model",
            found=name,
            allowed="letters, digits, _ and -, beginning with a letter, at most 64 characters",
        )
    return _TEMPLATE.replace("@NAME@", name)


# -- Tables and methods ----------------------------------------------------------------------------------------


METHODS_FILE: Final = Path(__file__).with_name("builder_methods.py")

# -- Tables of the language page -----------------------------------------------------------------------------
#
# A line ``<!-- keys: Port -->`` of the page is followed by the table of a class, with several names by one of all.

_MARK: Final = re.compile(r"(?m)^<!-- keys: ([\w ]+) -->\n(?:\n(?:\|[^\n]*\n)+)?")


def table(*classes: type[KeyedMapping]) -> str:
    """Return the keys of mappings as a table; of several, each key with those that have it."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for cls in classes:
        for name, (attribute, key) in keys_of(cls).items():
            value = f"name of {key.role}" if key.role else key.kind.word
            unit = f", {key.unit_text}" if key.unit_text else ""
            rows.setdefault((f"`{name}`", value + unit, meaning(cls, attribute)), []).append(cls.what.split(" ", 1)[-1])
        if (rest := others_of(cls)) is not None:
            rows[f"name of a {rest[1].name}", rest[1].kind.word, rest[1].doc] = [cls.what.split(" ", 1)[-1]]
    several = len(classes) > 1
    lines = ["| key | of | value | meaning |" if several else "| key | value | meaning |", f"|{'---|' * (3 + several)}"]
    for (name, value, text), owners in rows.items():
        of = f"{'all' if len(owners) == len(classes) else ', '.join(owners)} | " if several else ""
        lines.append(f"| {name} | {of}{value} | {text} |")
    return "\n".join(lines) + "\n"


def meaning(cls: type[KeyedMapping], attribute: str) -> str:
    """Return the meaning of a key, whether it is required, its default and its bounds."""
    key: Key = next(key for own, key in keys_of(cls).values() if own == attribute)
    default = default_of(cls, attribute)
    usual = key.usual or (
        "" if default in (None, (), "") else f"`{str(default).lower() if default is False else default}`"
    )
    usual = usual.replace("`True`", "`true`")
    notes = ["required"] if key.required else [f"default {usual}"] if usual else []
    notes += [key.bounds.allowed.partition(":")[0]] if key.bounds is not None else []
    return key.doc + (f" ({'; '.join(notes)})" if notes else "")


def with_tables(page: str) -> str:
    """Return the text of the page with the table of each class behind its mark.

    Raises KeyError: a mark names no class of the language.
    """
    known: tuple[type[KeyedMapping], ...] = (MechanismForm, *mapping_classes(MechanismForm))
    classes = {cls.__name__: cls for cls in known}

    def marked(found: re.Match[str]) -> str:
        shown = [classes[name] for name in found[1].split()]
        return f"<!-- keys: {found[1]} -->\n\n{table(*shown)}"

    return _MARK.sub(marked, page)


# -- Methods of `Model` --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SectionMethod:
    """A method that adds to a section; ``call`` is its statement, ``named`` whether it takes the name of an entry.

    ``short`` is the meaning of the entry's short form, if it has one.
    """

    name: str
    cls: type[KeyedMapping]
    summary: str
    call: str
    named: bool = True
    short: str = ""


_ADD: Final = 'self._add("{}", name, None, keys)'
_SHORT: Final = 'self._add("{}", name, short, keys)'

METHODS: Final = (
    SectionMethod("settings", ModelSettings, "Set keys of the top level with one value.", "self._set_all(keys)", False),
    SectionMethod("parameter", ToleranceForm, 'Add a parameter: ``"4 kg"``, an expression, or its keys.',
                  _SHORT.format("parameters"),
                  short="A number, a text with a unit or an expression, or a list of them."),
    SectionMethod("coordinate", Coordinate, "Add a coordinate with its unit, or with keys.",
                  'self._declare("coordinates", name, short, keys)',
                  short="Its unit; without it and keys in a model without units."),
    SectionMethod("frame", FrameForm, "Add a frame.", _ADD.format("frames")),
    SectionMethod("point", Point, "Add a point.", _ADD.format("points")),
    SectionMethod("body", Body, "Add a body.", _ADD.format("bodies")),
    SectionMethod("joint", JointForm, "Add a joint.", _ADD.format("joints")),
    SectionMethod("constraint", ConstraintForm, "Add a constraint.", _SHORT.format("constraints"),
                  short="Its keys as a mapping."),
    SectionMethod("shape", GeometryForm, "Add a shape.", _ADD.format("shapes")),
    SectionMethod("contact", ContactForm, "Add a contact.", _ADD.format("contacts")),
    SectionMethod("impose", Imposition, "Add a constraint to impose.", _ADD.format("imposed")),
    SectionMethod("input", InputForm, "Add an input with its unit, or with keys.",
                  'self._declare("inputs", name, short, keys)',
                  short="Its unit; without it and keys in a model without units."),
    SectionMethod("schedule", ScheduleForm, "Add the schedule of an input.", _SHORT.format("schedule"),
                  short="A constant, with the unit of the input."),
    SectionMethod("load", LoadForm, "Add a load, at the end of the list.", 'self._append("loads", keys)', False),
    SectionMethod("transition", TransitionForm, "Add a user-defined transition, at the end of the list.",
                  'self._append("transitions", keys)', False),
    SectionMethod("mode", ModePattern, "Add a name for a pattern of contact states.", _ADD.format("modes")),
    SectionMethod("initial", Initial, "Set values of the start, and its keys.",
                  'self._add_all("initial", keys)', False),
    SectionMethod("words", PartNameForm, "Add words for a contact, a shape or a body.", _SHORT.format("names"),
                  short="The words, as a text."),
    SectionMethod("phase", PhaseForm, "Add a phase of runs, after those before it.", _ADD.format("phases")),
    SectionMethod("pin", PinEntry, "Add an entry for a connection.", _ADD.format("pins")),
    SectionMethod("numerics", ModelTolerances, "Set tolerances of the model's runs.",
                  'self._add_all("numerics", keys)', False),
    SectionMethod("port", Port, "Add a port.", _ADD.format("ports")),
    SectionMethod("controller", Controller, "Add a sampled controller.", _ADD.format("controllers")),
    SectionMethod("requirement", RequirementForm, "Add a requirement on a run.", _SHORT.format("requirements"),
                  short="A formula, as a text."),
    SectionMethod("use", UseForm, "Add a component.", _ADD.format("use")),
)  # fmt: skip

_HEAD: Final = '''\
"""Methods of `Model` for the sections with declared keys.

Written by ``python -m fsm_dyn.language.describe_keys`` (``make language``); do not edit it.
"""

# fmt: off

from __future__ import annotations

from typing import Self

from fsm_dyn.language.written_model import Value, WrittenModel, given_keys


class @CLASS@(WrittenModel):
    """Methods that add entries to sections, with the keys of their entries."""
'''


def builder_methods() -> str:
    """Return the source of the methods of `Model`."""
    return _HEAD.replace("@CLASS@", "SectionMethods") + "".join(f"\n{_method(method)}" for method in METHODS)


def _method(method: SectionMethod) -> str:
    parameters = {
        f"{name}_" if iskeyword(name) else name: attribute for name, (attribute, _) in keys_of(method.cls).items()
    }
    first = ["self", *(["name: str"] if method.named else []), *(["short: Value = None"] if method.short else [])]
    signature = [*first, "/", "*", *(f"{word}: Value = None" for word in parameters), "**others: Value"]
    lines = [
        f"def {method.name}(",
        *_listed(signature),
        ") -> Self:",
        *indent(f'"""{_docstring(method, parameters)}"""', "    ").splitlines(),
        f"    return {method.call.removesuffix('keys)')}given_keys({{",
        *_listed([f'"{word}": {word}' for word in parameters]),
        "    } | others))",
    ]
    return "".join(f"    {line}\n" if line else "\n" for line in lines)


def _listed(items: list[str]) -> list[str]:
    """Return items on lines, none of them broken."""
    text = _wrapped(", ".join(item.replace(" ", "\0") for item in items) + ",", 8)
    return text.replace("\0", " ").splitlines()


def _docstring(method: SectionMethod, parameters: Mapping[str, str]) -> str:
    summary = first_sentence(method.cls.__doc__ or "")
    described = [
        *([("name : str", "Of the entry." if method.name != "schedule" else "Of the input.")] if method.named else []),
        *([("short : Value, optional", method.short)] if method.short else []),
        *((f"{word} : Value, optional", _sentence(meaning(method.cls, own))) for word, own in parameters.items()),
        *_of_others(method.cls),
    ]
    parts = [
        method.summary,
        *([_wrapped(summary, 0)] if method.cls is not ModelSettings else []),
        "Parameters\n----------\n" + "\n".join(f"{word}\n{_wrapped(text, 4)}" for word, text in described) + "\n",
    ]
    return "\n\n".join(parts)


def _of_others(cls: type[KeyedMapping]) -> list[tuple[str, str]]:
    rest = others_of(cls)
    return [] if rest is None else [("**others", f"By the name of a {rest[1].name}: {rest[1].doc}.")]


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _wrapped(text: str, margin: int) -> str:
    return fill(
        text, 112, initial_indent=" " * margin, subsequent_indent=" " * margin, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def _texts(page: Path) -> Iterator[tuple[Path, Callable[[], str]]]:
    yield METHODS_FILE, builder_methods
    yield page, lambda: with_tables(page.read_text(encoding="utf-8"))


def main(page: str) -> None:
    """Write the methods of `Model` and the tables of a page again."""
    for path, text in _texts(Path(page)):
        path.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
