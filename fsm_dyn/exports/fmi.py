"""Functional Mock-up Units: variables, descriptions for FMI 2.0 and 3.0, sources and binary."""

from __future__ import annotations

import io
import itertools
import math
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Final, Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import llvmlite.binding as llvm
import numpy as np

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.initial_state import is_free
from fsm_dyn.core.errors import InputError, RunError
from fsm_dyn.core.records import dataclass
from fsm_dyn.exports.c_model import KernelTexts, has_settable_start, parameter_limits, spare_parts, start_reads, text
from fsm_dyn.exports.exported_machine import ExportedMachine
from fsm_dyn.language.units import TABLE, dimension_text
from fsm_dyn.language.values import coordinate_bounds, named_values
from fsm_dyn.programs.kernels import ObjectCache
from fsm_dyn.run.trajectory import Trajectory
from fsm_dyn.runtime.abi import Event, StartUse

_FLAGS: Final = ("-std=c99", "-O2", "-ffp-contract=off", "-fPIC", "-fvisibility=hidden", "-DFSM_NO_HOST", "-I.")


def compiler() -> list[str]:
    """Return the C compiler: of the environment variable CC, the one Python was built with, or cc.

    Returns the words of the command; CC may have several, as ``ccache gcc``. Raises InputError: there is none.
    """
    chosen = shlex.split(os.environ.get("CC", ""))
    built_with = shlex.split(sysconfig.get_config_var("CC") or "")[:1]  # its options are those of Python
    for command in (chosen, built_with, ["cc"], ["gcc"], ["clang"]):
        if command and shutil.which(command[0]):
            return command
    raise InputError(
        "there is no C compiler, which an export to FMI needs",
        remedy="install one (Debian, Ubuntu: the package gcc; macOS: xcode-select --install), or name it by CC",
    )


def shared_library(sources: Mapping[str, bytes], compiled: Sequence[str]) -> bytes:
    """Compile sources to a shared library.

    ``sources``: contents of C files and headers by their paths. ``compiled``: those that are compiled; the others are
    included. Returns the library; the same whether its object code was kept or not. Raises InputError: there is no C
    compiler. Raises RunError: the compiler failed.
    """
    command = compiler()
    flags = [*_FLAGS, *shlex.split(os.environ.get("CFLAGS", ""))]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, content in sources.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        objects = []
        for name in compiled:
            objects.append(f"{name.removesuffix('.c')}.o")
            (folder / objects[-1]).write_bytes(_object_code(folder, [*command, *flags], name))
        _call([*command, *flags, "-shared", *objects, "-o", "unit", "-lm"], folder)
        return (folder / "unit").read_bytes()


def _object_code(folder: Path, command: Sequence[str], name: str) -> bytes:
    """Return the object code of a source, kept or compiled.

    The key is a digest of the preprocessed source, so of all headers too, of the command, of version and file of the
    compiler, and of the processor, which options such as ``-march=native`` ask for.
    """
    program = Path(shutil.which(command[0]) or command[0]).resolve()
    version = subprocess.run([*command, "--version"], capture_output=True, check=False).stdout
    file, processor = program.stat(), (llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    made_of = repr((name, *command, str(program), file.st_size, file.st_mtime_ns, version, processor))
    key = sha256(made_of.encode() + b"\0" + _call([*command, "-E", name], folder)).hexdigest()
    cache = ObjectCache.default()
    kept = cache.load(key)
    if kept is None:
        _call([*command, "-c", name, "-o", "unfinished.o"], folder)
        kept = (folder / "unfinished.o").read_bytes()
        cache.store(key, kept)
    return kept


def _call(command: Sequence[str], folder: Path) -> bytes:
    """Call the compiler in a folder and return its output; raise RunError if it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    if done.returncode:
        reason = done.stderr.decode(errors="replace")[-2000:]
        raise RunError(f"{command[0]} could not compile the unit\n{reason}")
    return done.stdout


_INCHES, _DOTS = 1.28, 100  # of a square icon, and dots per inch
_MARGIN = 0.06  # of the larger side
_FORCES: Final = tuple(f"{part}_{axis}" for part in ("force", "torque") for axis in "xyz")


def icon(trajectory: Trajectory) -> bytes:
    """Return the mechanism at the start of a run as a PNG of 128 by 128 dots; empty if the model has no drawing."""
    from fsm_dyn.plot import style  # Matplotlib loads slowly
    from fsm_dyn.plot.mechanism import draw_scene
    from fsm_dyn.plot.scene_projection import project, trajectory_scene

    try:
        view = project(trajectory, trajectory_scene(trajectory), trajectory.t[:1])
    except InputError:
        return b""
    low, high = view.box(0)
    half = (0.5 + _MARGIN) * float((high - low).max())
    if not (np.isfinite(half) and half > 0.0):
        return b""
    file = io.BytesIO()
    with style.settings():
        picture = style.new_figure(_INCHES, _INCHES)
        axes = picture.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_axis_off()
        across, up = 0.5 * (low + high)
        axes.set(xlim=(across - half, across + half), ylim=(up - half, up + half))
        draw_scene(axes, view, 0, lines=0.6)
        for words in axes.texts:
            words.set_visible(False)
        picture.savefig(file, format="png", dpi=_DOTS, metadata={"Software": None}, bbox_inches=None)
    return file.getvalue()


def terminals(machine: ExportedMachine, variables: Collection[str]) -> bytes:
    """Return terminalsAndIcons.xml for FMI 3.0. ``variables``: names of all variables of the unit."""
    root = Element("fmiTerminalsAndIcons", fmiVersion="3.0")
    if machine.icon:
        shown = SubElement(root, "GraphicalRepresentation")
        corners = {"x1": "-100", "y1": "-100", "x2": "100", "y2": "100"}
        SubElement(shown, "CoordinateSystem", corners, suggestedScalingFactorTo_mm="0.1")
        SubElement(shown, "Icon", corners)
    groups = [(name, description, members) for name, description, members in _groups(machine, variables) if members]
    if groups:
        listed = SubElement(root, "Terminals")
        for name, description, members in groups:
            terminal = SubElement(listed, "Terminal", name=name, matchingRule="bus", description=description)
            for member, variable in members.items():
                SubElement(
                    terminal, "TerminalMemberVariable", variableName=variable, memberName=member, variableKind="signal"
                )
    indent(root)
    body: bytes = tostring(root, encoding="utf-8")
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + body + b"\n"


def _groups(machine: ExportedMachine, variables: Collection[str]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield name, description and variables by their name in the group: inputs, outputs, connections, contacts."""
    names = machine.names

    def known(members: dict[str, str]) -> dict[str, str]:
        return {member: name for member, name in members.items() if name in variables}

    yield "inputs", "all inputs", known({name: name for name in names["input"]})
    own = [name for name in names["output"] if name in machine.automaton.mechanism.outputs]
    yield "outputs", "the outputs of the model", known({name: name for name in own})
    ends = [(name, f"_{part}") for name in machine.forces.units if name.startswith("pin_") for part in _FORCES]
    for pin in dict.fromkeys(name.removesuffix(end) for name, end in ends if name.endswith(end)):
        told = f"force and torque in the connection {pin.removeprefix('pin_')}"
        yield pin, told, known({part: f"{pin}_{part}" for part in _FORCES})
    for contact in machine.automaton.contacts:
        forces = {part: f"contact_{contact.name}_{part}" for part in ("normal", "friction", "friction2")}
        told = f"state and forces of the contact {contact.name}"
        yield f"contact_{contact.name}", told, known({"state": f"contact.{contact.name}", **forces})


# -- The variables of a Functional Mock-up Unit, as both versions of the standard describe them --------------

BASE_UNITS: Final = ("m", "kg", "s", "A", "K", "mol", "cd")
#: Units in which people read angles and their rates.
_DISPLAYED: Final = {"rad": "deg", "rad/s": "deg/s", "rad/s^2": "deg/s^2"}
#: Item 0 of the types of the mode and the phase, with its meaning.
ITEM_0: Final = {"mode": ("other", "a mode that was not exported"), "phase": ("none", "no phase applies")}
_EVENTS: Final = {
    Event.CLOSES: "closes", Event.OPENS: "opens", Event.SLIDES: "slides", Event.STICKS: "sticks", Event.LEAVES: "leaves"
}  # fmt: skip


@dataclass(frozen=True)
class Variable:
    """One variable of a unit."""

    # ``time``, ``parameter``, ``input``, ``output``, ``state``, ``mode``, ``contact``, ``phase``, ``derivative`` or
    # ``indicator``
    role: str
    name: str  # in the syntax of structured names
    description: str
    reference: int  # the value reference: its place among all variables
    # causality, variability, initial: in the words of the standard; ``initial`` is empty if the standard allows one
    # value only
    causality: str
    variability: str
    initial: str = ""
    start: float | None = None
    unit: str = ""  # empty for a variable without unit
    state: int | None = None  # of a derivative, the value reference of its state
    limits: tuple[float, float] = (-math.inf, math.inf)  # least and greatest value; infinite: no limit
    # usual size of its values: of a state the scale of its tolerance, else the mechanism's own unit
    nominal: float = 1.0
    # type of its values: ``real``, ``integer``, ``enumeration``, ``boolean``
    kind: Literal["real", "integer", "enumeration", "boolean"] = "real"

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes common to both versions, in their order."""
        found = {
            "name": self.name,
            "valueReference": str(self.reference),
            "description": self.description,
            "causality": self.causality,
            "variability": self.variability,
            "initial": self.initial,
        }
        return {key: value for key, value in found.items() if value}


def list_variables(machine: ExportedMachine) -> list[Variable]:
    """Return all variables in the order of their value references, which the sources of a unit number alike.

    Raises InputError: two of them have the same name.
    """
    found = [replace(variable, reference=k) for k, variable in enumerate(_variables(machine))]
    first_state = next((v.reference for v in found if v.role == "state"), 0)
    of_state = itertools.count(first_state)
    found = [replace(v, state=next(of_state)) if v.role == "derivative" else v for v in found]
    taken = Counter(variable.name for variable in found)
    for name, times in taken.items():
        if times > 1:
            raise InputError(f"two variables of the unit are called '{name}'", remedy="rename one of them in the model")
    return found


def _variables(machine: ExportedMachine) -> Iterator[Variable]:
    """Yield the variables without their references."""
    names, known = machine.names, machine.units
    given = parameter_limits(machine)
    pairs = zip(given["lowest"].tolist(), given["highest"].tolist(), strict=True)
    limits = dict(zip(machine.automaton.terms.layout.p, pairs, strict=True))
    tunable = {name for name, flag in zip(limits, given["tunable"], strict=True) if flag}
    uses = dict(zip(machine.automaton.terms.layout.p, start_reads(machine), strict=True))
    start = dict(zip((*names["parameter"], *names["input"]), map(float, machine.c), strict=False))

    def made(role: str, name: str, description: str, causality: str, variability: str, initial: str = "") -> Variable:
        value = start[name] if role in ("parameter", "input") else None
        unit = known.get(name, "")
        return Variable(
            role, _quoted(name), description, 0, causality, variability, initial, value, unit,
            nominal=own_unit(machine, unit),
        )  # fmt: skip

    yield Variable("time", "time", "time", 0, "independent", "continuous", unit="s")
    for name in names["parameter"]:
        if name in tunable:
            variability = "fixed" if uses.get(name) == StartUse.ALONE else "tunable"
            text = "parameter of the start" if variability == "fixed" else "parameter"
            found = made("parameter", name, text, "parameter", variability, "exact")
            yield replace(found, limits=limits[name])
        else:
            yield made("parameter", name, "parameter, set when the unit is made", "local", "constant", "exact")
    for name in names["input"]:
        boolean = machine.automaton.mechanism.inputs[name].is_boolean
        found = made("input", name, "input", "input", "discrete" if boolean else "continuous")
        yield replace(found, kind="boolean" if boolean and machine.outputs != "reals" else "real")
    for name in names["output"]:
        yield made("output", name, "output", "output", "continuous", "calculated")
    yield from _state_variables(machine, made)
    reals = machine.outputs == "reals"
    yield _enumerated(machine, "mode", "mode of the automaton")
    for contact in machine.automaton.contacts:
        codes = ", ".join(f"{code} {state}" for code, state in enumerate(contact.states) if state)
        name = f"contact.{_quoted(contact.name)}"
        yield Variable(
            "contact", name, f"state of the contact: {codes}", 0, "output", "discrete", "calculated",
            kind="real" if reals else "integer",
        )  # fmt: skip
    if machine.phases is not None:
        yield _enumerated(machine, "phase", "phase of the run, without a least duration")
    for name in names["state"]:
        unit = _per_second(known[name]) if name in known else ""
        text = f"derivative of {name}"
        yield Variable(
            "derivative", f"der({_quoted(name)})", text, 0, "local", "continuous", "calculated", unit=unit,
            nominal=own_unit(machine, unit),
        )  # fmt: skip
    for name in event_indicators(machine)[1]:
        text = "event indicator: it crosses zero where this happens"
        yield Variable("indicator", name, text, 0, "local", "continuous", "calculated")


def _enumerated(machine: ExportedMachine, role: str, text: str) -> Variable:
    """Return the variable of the mode or the phase; of reals with the meanings of its numbers in its description."""
    if machine.outputs != "reals":
        return Variable(role, role, text, 0, "output", "discrete", "calculated", kind="enumeration")
    numbers = "; ".join(f"{k} {name}" for k, name in enumerate(_items(machine, role)))
    return Variable(role, role, f"{text}: {numbers}", 0, "output", "discrete", "calculated")


def _items(machine: ExportedMachine, role: str) -> list[str]:
    """Return the items of the enumeration of modes or phases."""
    return [ITEM_0[role][0], *machine.names[role], *(machine.embedded if role == "mode" else ())]


def _state_variables(machine: ExportedMachine, made: Callable[..., Variable]) -> Iterator[Variable]:
    """Yield coordinates and speeds with their ranges, sizes and starts, if an importer may set these."""
    layout, mechanism = machine.automaton.terms.layout, machine.automaton.mechanism
    ranges = coordinate_bounds(mechanism, named_values(mechanism, machine.c[: len(layout.p)].tolist()))
    sizes = np.asarray(machine.options.atol) / (machine.options.rtol or 1.0)
    causality, initial = "local" if machine.outputs == "listed" else "output", _initial(machine.automaton)
    for k, name in enumerate((*layout.q, *layout.u)):
        word = "coordinate" if k < len(layout.q) else "generalized speed"
        found = made("state", name, word, causality, "continuous", initial)
        start = None if initial == "calculated" else float(machine.x[k])
        yield replace(found, limits=ranges.get(name, found.limits), nominal=float(sizes[k]), start=start)


def own_unit(machine: ExportedMachine, unit: str) -> float:
    """Return the mechanism's own unit of a quantity, in SI units."""
    m, kg, s, *_ = unit_exponents(unit)
    return machine.automaton.units.scales.unit((m, kg, s, 0.0, 0.0, 0.0, 0.0))


def _initial(automaton: Automaton) -> str:
    """Return how coordinates and speeds begin: as given, as near to that as constraints allow, or as exported."""
    if not has_settable_start(automaton):
        return "calculated"
    return "exact" if is_free(automaton, automaton.mechanism.initial.mode) else "approx"


def number_attributes(variable: Variable) -> dict[str, str]:
    """Return unit, display unit, limits, nominal and start of a variable, as far as it has them."""
    if variable.kind == "boolean":
        return {"start": "true" if variable.start else "false"}
    found = {"unit": variable.unit} if variable.unit else {}
    if variable.unit in _DISPLAYED:
        found["displayUnit"] = _DISPLAYED[variable.unit]
    named = zip(("min", "max"), variable.limits, strict=True)
    found |= {word: repr(value) for word, value in named if math.isfinite(value)}
    if variable.nominal != 1.0:
        found["nominal"] = repr(variable.nominal)
    if variable.start is not None:
        found["start"] = repr(variable.start)
    return found


def event_indicators(machine: ExportedMachine) -> tuple[list[int], list[str]]:
    """Return the number of the event indicator of every guard, and the names of the indicators.

    The guards in the tables come first, then the guards of spare modes.

    Guards of several modes share one indicator if they detect the same event at the same contact; each direction of
    slip has one. A name is ``guard.EVENT.CONTACT``, for a user-defined transition ``guard.transition[K]``.
    """
    tables, contacts = machine.tables, machine.names["contact"]
    numbers: dict[str, int] = {}
    of_guard: list[int] = []
    columns = (tables.guard_event, tables.guard_contact, tables.guard_direction)
    guards = list(zip(*(column.tolist() for column in columns), strict=True))
    groups = [guards[begin:end] for begin, end in itertools.pairwise(tables.mode_guard_start.tolist())]
    if machine.spare:
        parts = spare_parts(machine.automaton, tables, machine.numerics)
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
    """Yield the units of variables with their powers of the SI base units; no powers unless all are whole numbers."""
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


# -- Common parts of the descriptions of units for both versions of FMI --------------------------------------


def description_root(machine: ExportedMachine, version: str, **attributes: str) -> Element:
    """Return the root of a modelDescription.xml."""
    mechanism = machine.automaton.mechanism
    shared = {
        "fmiVersion": version, "modelName": mechanism.name, "description": " ".join(mechanism.summary.split()),
        "generationTool": "fsm_dyn", "variableNamingConvention": "structured",
    }  # fmt: skip
    return Element("fmiModelDescription", {**shared, **attributes})


def add_units(root: Element, variables: Sequence[Variable]) -> None:
    """Write the units of the variables, each as a product of powers of the base units of SI."""
    definitions = SubElement(root, "UnitDefinitions")
    for name, powers in unit_definitions(list(variables)):
        unit = SubElement(definitions, "Unit", name=name)
        if powers or name == "1":
            SubElement(unit, "BaseUnit", powers)
        if name in _DISPLAYED:
            SubElement(unit, "DisplayUnit", name=_DISPLAYED[name], factor=repr(math.degrees(1.0)))


def enumerations(machine: ExportedMachine) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Yield the types of the mode and the phase: their names, and the attributes of their items."""
    for role in (role for role in ITEM_0 if role in machine.names):
        meaning = ITEM_0[role][1]
        items = [{"name": name, "value": str(k)} for k, name in enumerate(_items(machine, role))]
        items[0]["description"] = meaning
        yield f"{machine.prefix}_{role}", items


def add_categories(root: Element) -> None:
    """Write the categories of the log."""
    categories = SubElement(root, "LogCategories")
    SubElement(categories, "Category", name="logEvents", description="transitions: time, modes, guards")
    SubElement(categories, "Category", name="logStatusWarning", description="steps in which a guard was not decided")
    SubElement(categories, "Category", name="logStatusError", description="how a run failed")


def add_experiment(root: Element, machine: ExportedMachine) -> None:
    """Write how the model's own schedule is simulated."""
    end, tolerance = repr(machine.options.until), repr(machine.options.rtol)
    SubElement(root, "DefaultExperiment", startTime="0", stopTime=end, tolerance=tolerance)


def written(root: Element) -> bytes:
    """Return a document."""
    indent(root)
    body: bytes = tostring(root, encoding="utf-8")
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + body + b"\n"


# -- Description of a unit for FMI 2.0: model exchange and co-simulation -------------------------------------

_KINDS_2: Final = {"real": "Real", "integer": "Integer", "enumeration": "Enumeration", "boolean": "Boolean"}


def model_description_2(
    machine: ExportedMachine, variables: Sequence[Variable], token: str, compiled: Sequence[str]
) -> bytes:
    """Return modelDescription.xml; `compiled` are the sources of the binary.

    ``variables``: in the order of their value references; ``token``: the unit's ``guid``; ``compiled``: names of C
    sources.
    """
    indicators = sum(variable.role == "indicator" for variable in variables)
    root = description_root(machine, "2.0", guid=token, numberOfEventIndicators=str(indicators))
    kept = {
        "modelIdentifier": machine.prefix, "canNotUseMemoryManagementFunctions": "true", "canGetAndSetFMUstate": "true",
        "canSerializeFMUstate": "true", "providesDirectionalDerivative": "true",
    }  # fmt: skip
    for element in (
        SubElement(root, "ModelExchange", kept),
        SubElement(
            root, "CoSimulation", kept, canHandleVariableCommunicationStepSize="true", canInterpolateInputs="true"
        ),
    ):
        files = SubElement(element, "SourceFiles")
        for name in compiled:
            SubElement(files, "File", name=name)
    add_units(root, variables)
    types = SubElement(root, "TypeDefinitions")
    for name, items in enumerations(machine):
        enumeration = SubElement(SubElement(types, "SimpleType", name=name), "Enumeration")
        for item in items:
            SubElement(enumeration, "Item", item)
    add_categories(root)
    add_experiment(root, machine)
    listed = SubElement(root, "ModelVariables")
    for variable in variables:
        _add_variable(listed, variable, machine.prefix)
    structure = SubElement(root, "ModelStructure")
    unknown = ("output", "mode", "contact", "phase", "state", "derivative")
    for kind, chosen in (
        ("Outputs", [v for v in variables if v.causality == "output"]),
        ("Derivatives", [v for v in variables if v.role == "derivative"]),
        ("InitialUnknowns", [v for v in variables if v.role in unknown and v.initial != "exact"]),
    ):
        if chosen:
            group = SubElement(structure, kind)
            for variable in chosen:
                SubElement(group, "Unknown", index=str(variable.reference + 1))
    return written(root)


def _add_variable(listed: Element, variable: Variable, prefix: str) -> None:
    """Write one variable, with the attributes of its type."""
    own: dict[str, str] = {}
    if variable.kind == "enumeration":
        own["declaredType"] = f"{prefix}_{variable.role}"
    own |= number_attributes(variable)
    if variable.state is not None:
        own["derivative"] = str(variable.state + 1)  # its number in the list, from 1
    if variable.role == "state":
        own["reinit"] = "true"
    SubElement(SubElement(listed, "ScalarVariable", variable.attributes), _KINDS_2[variable.kind], own)


# -- Description of a unit for FMI 3.0 -----------------------------------------------------------------------
#
# Description of a unit for FMI 3.0: model exchange and co-simulation, with event mode in both.

_KINDS_3: Final = {"real": "Float64", "integer": "Int64", "enumeration": "Enumeration", "boolean": "Boolean"}


def build_description(prefix: str, compiled: Sequence[str]) -> bytes:
    """Return sources/buildDescription.xml."""
    root = Element("fmiBuildDescription", fmiVersion="3.0")
    configuration = SubElement(root, "BuildConfiguration", modelIdentifier=prefix)
    files = SubElement(configuration, "SourceFileSet", language="C99", compilerOptions="-ffp-contract=off")
    for name in compiled:
        SubElement(files, "SourceFile", name=name)
    SubElement(files, "PreprocessorDefinition", name="FSM_NO_HOST")
    SubElement(files, "IncludeDirectory", name=".")
    return written(root)


def model_description_3(machine: ExportedMachine, variables: Sequence[Variable], token: str) -> bytes:
    """Return modelDescription.xml."""
    root = description_root(machine, "3.0", instantiationToken=token)
    kept = {
        "modelIdentifier": machine.prefix,
        "canGetAndSetFMUState": "true",
        "canSerializeFMUState": "true",
        "providesDirectionalDerivatives": "true",
    }
    SubElement(root, "ModelExchange", kept, needsCompletedIntegratorStep="true")
    SubElement(
        root, "CoSimulation", kept, canHandleVariableCommunicationStepSize="true", hasEventMode="true",
        mightReturnEarlyFromDoStep="true", providesIntermediateUpdate="true",
        canReturnEarlyAfterIntermediateUpdate="true",
    )  # fmt: skip
    add_units(root, variables)
    types = SubElement(root, "TypeDefinitions")
    for name, items in enumerations(machine):
        enumeration = SubElement(types, "EnumerationType", name=name)
        for item in items:
            SubElement(enumeration, "Item", item)
    add_categories(root)
    add_experiment(root, machine)
    listed = SubElement(root, "ModelVariables")
    for variable in variables:
        SubElement(listed, _KINDS_3[variable.kind], _attributes(variable, machine.prefix))
    structure = SubElement(root, "ModelStructure")
    unknown = ("output", "mode", "contact", "phase", "state", "derivative")
    for kind, chosen in (
        ("Output", [v for v in variables if v.causality == "output"]),
        ("ContinuousStateDerivative", [v for v in variables if v.role == "derivative"]),
        ("InitialUnknown", [v for v in variables if v.role in unknown and v.initial != "exact"]),
        ("EventIndicator", [v for v in variables if v.role == "indicator"]),
    ):
        for variable in chosen:
            SubElement(structure, kind, valueReference=str(variable.reference))
    return written(root)


def _attributes(variable: Variable, prefix: str) -> dict[str, str]:
    """Return the attributes of the element of a variable."""
    found = variable.attributes | number_attributes(variable)
    if variable.role in ("output", "state", "mode", "contact", "phase", "derivative"):
        found["intermediateUpdate"] = "true"
    if variable.state is not None:
        found["derivative"] = str(variable.state)
    if variable.role == "state":
        found["reinit"] = "true"
    if variable.kind == "enumeration":
        found["declaredType"] = f"{prefix}_{variable.role}"
    return found


# -- Directional derivatives of a unit -----------------------------------------------------------------------
#
# Directional derivatives of a unit: the tangents of the kernels of its modes and of its outputs, as C.


def tangents_source(machine: ExportedMachine) -> str:
    """Return the source of the tangents: ``fsm_fmu_tangents`` of the modes, and ``fsm_fmu_output_tangent``.

    Their argument ``x`` is the state, then its direction, then the direction of the inputs. A mode returns the
    directional derivatives of ``x_dot``, of all speeds (functions of the independent ones), of its guards and, for
    outputs of connections, of the multipliers; to the tangent of these outputs the state is that with the rates of
    the speeds and the multipliers.
    """
    parts = ['/* Tangents of the kernels, generated. */\n\n#include "fsm_fmu.h"\n#include "fsm_kernels.h"\n']
    known = KernelTexts(machine.automaton.mechanism.digest, "tangents")
    names, forces = [], () if machine.pins is None else ("multipliers",)
    for number, (_, full) in enumerate(machine.programs):
        names.append(f"tangent_{number}")
        parts.append(known.function(full, names[-1], ("x_dot", "u", "guards", *forces)))
    report = machine.automaton.report
    shown = ("outputs",) if "outputs" in report.slices else ()
    parts.append(known.function(report, "tangent_of_outputs", shown))
    parts.append(f"const fsm_kernel fsm_fmu_tangents[] = {{{', '.join(names)}}};")
    parts.append("const fsm_kernel fsm_fmu_output_tangent = tangent_of_outputs;")
    if machine.pins is not None:
        parts.append(known.function(machine.pins, "tangent_of_pins", ("outputs",)))
    known.keep()
    pins = "NULL" if machine.pins is None else "tangent_of_pins"
    parts.append(f"const fsm_kernel fsm_fmu_pin_tangent = {pins};\n")
    return "\n".join(parts)


# -- Functional Mock-up Units as files -----------------------------------------------------------------------
#
# Functional Mock-up Units as files: the sources of a unit, their binary for this platform, and its description.

_SHARED: Final = (
    "fsm_exchange.h", "fsm_exchange.c", "fsm_fmu.h", "fsm_fmu.c", "fsm_fmu_copies.c", "fsm_fmu_run.c",
    "fsm_fmu_tangents.c", "fsm_fmu_api.h",
)  # fmt: skip
#: Additional sources for each version of the standard: the compiled file, then those it includes.
_OWN: Final = {2: ("fsm_fmi2.c",), 3: ("fsm_fmi3.c", "fsm_fmi3_absent.c")}
_UNIT: Final = """\
/* The unit: the exported model, the token by which it is instantiated, and what the adapter knows of its variables. */

#include "{prefix}.h"
#include "fsm_fmu.h"

const struct fsm_model *const fsm_fmu_model = &{prefix}_model;
const char *const fsm_fmu_token = {token};
const bool fsm_fmu_reals = {reals};
const int64_t fsm_fmu_indicators = {count};
const int32_t fsm_fmu_indicator_of[] = {{{numbers}}};
"""
_SYSTEMS: Final = {"linux": ("linux", ".so"), "darwin": ("darwin", ".dylib"), "win32": ("windows", ".dll")}


def unit_files(machine: ExportedMachine, sources: Mapping[str, bytes], version: int) -> dict[str, bytes]:
    """Return the files in a unit by their paths, its binary for this platform among them.

    ``sources``: the files of the export to C99; ``version``: 2 or 3, of the standard. Raises InputError: there is no C
    compiler; two variables have the same name. Raises RunError: the compiler failed.
    """
    prefix, variables = machine.prefix, list_variables(machine)
    own = resources.files("fsm_dyn.exports") / "fmi"
    kept = {name: sources[name] for name in sources if name.endswith((".c", ".h")) and name != "main.c"}
    kept |= {name: (own / name).read_bytes() for name in (*_SHARED, *_OWN[version])}
    token = "{" + sha256(b"".join(kept[name] for name in sorted(kept))).hexdigest()[:32] + "}"
    kept["fsm_unit.c"] = _own_source(machine, token)
    kept["fsm_tangents.c"] = tangents_source(machine).encode()
    compiled = [f"{prefix}.c", "fsm_tangents.c", "fsm_unit.c", _OWN[version][0]]
    files = {
        f"binaries/{_folder(version)}/{prefix}{_SYSTEMS[sys.platform][1]}": shared_library(kept, compiled),
        **{f"sources/{name}": content for name, content in kept.items()},
    }
    if version == 2:
        files["modelDescription.xml"] = model_description_2(machine, variables, token, compiled)
        files["documentation/index.html"] = _documentation(machine, variables)
        files["documentation/LICENSE"] = sources["LICENSE"]
        files |= {"model.png": machine.icon} if machine.icon else {}
    else:
        files["modelDescription.xml"] = model_description_3(machine, variables, token)
        files["terminalsAndIcons/terminalsAndIcons.xml"] = terminals(machine, [variable.name for variable in variables])
        files |= {"terminalsAndIcons/icon.png": machine.icon} if machine.icon else {}
        files["documentation/index.html"] = _documentation(machine, variables)
        files["sources/buildDescription.xml"] = build_description(prefix, compiled)
        files["documentation/licenses/LICENSE"] = sources["LICENSE"]
    return files


def _documentation(machine: ExportedMachine, variables: Sequence[Variable]) -> bytes:
    """Return the page of a unit: what it is, its variables with units, and its modes."""
    mechanism = machine.automaton.mechanism
    page = Element("html", lang="en")
    head = SubElement(page, "head")
    SubElement(head, "meta", charset="utf-8")
    SubElement(head, "title").text = mechanism.name
    body = SubElement(page, "body")
    SubElement(body, "h1").text = mechanism.name
    for words in filter(None, (mechanism.summary, mechanism.source)):
        SubElement(body, "p").text = " ".join(words.split())
    shown = [variable for variable in variables if variable.role not in ("derivative", "indicator")]
    rows = [(v.name, v.causality, v.unit, "" if v.start is None else f"{v.start:g}", v.description) for v in shown]
    tables: list[tuple[Sequence[str], Sequence[Sequence[str]]]] = [
        (("variable", "causality", "unit", "start", "meaning"), rows)
    ]
    for name, items in enumerations(machine):
        role = name.removeprefix(f"{machine.prefix}_")
        tables.append((("code", role), [(item["value"], item["name"]) for item in items]))
    for headings, lines in tables:
        table = SubElement(body, "table")
        for tag, cells in (("th", headings), *(("td", line) for line in lines)):
            row = SubElement(table, "tr")
            for cell in cells:
                SubElement(row, tag).text = cell
    SubElement(body, "p").text = "Made by fsm_dyn; lengths, times and all else in SI units."
    indent(page)
    content: bytes = tostring(page, encoding="utf-8", method="html")
    return b"<!DOCTYPE html>\n" + content + b"\n"


def _own_source(machine: ExportedMachine, token: str) -> bytes:
    """Return the generated source of a unit."""
    of_guard, names = event_indicators(machine)
    numbers = ", ".join(map(str, of_guard or [0]))
    return _UNIT.format(prefix=machine.prefix, token=text(token), count=len(names), numbers=numbers,
                        reals=str(machine.outputs == "reals").lower()).encode()  # fmt: skip


def _folder(version: int) -> str:
    """Return the folder of binaries of this platform, as a version of the standard names it."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    system = _SYSTEMS[sys.platform][0]
    if version == 3:
        return f"{machine}-{system}"
    return {"windows": "win", "darwin": "darwin"}.get(system, system) + ("64" if sys.maxsize > 2**32 else "32")
