"""Export as a Functional Mock-up Unit for FMI 3.0: model exchange and co-simulation, with event mode in both."""

from __future__ import annotations

import itertools
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
from collections.abc import Mapping
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from fsm_dyn.errors import InputError, RunError
from fsm_dyn.exports.c_data import text
from fsm_dyn.exports.c_model import ExportedRun
from fsm_dyn.expressions.units import TABLE
from fsm_dyn.simulation import tables as tb
from fsm_dyn.spec.values import units

_COPIED: Final = ("fsm_fmu.h", "fsm_fmu.c", "fsm_fmi3.c", "fsm_fmi3_exchange.c")
_EVENTS: Final = {
    tb.CLOSES: "closes", tb.OPENS: "opens", tb.SLIDES: "slides", tb.STICKS: "sticks", tb.LEAVES: "leaves"
}  # fmt: skip
_UNIT: Final = """\
/* The unit: the exported model and the token by which it is instantiated. */

#include "{prefix}.h"
#include "fsm_fmu.h"

const struct fsm_model *const fsm_fmu_model = &{prefix}_model;
const char *const fsm_fmu_token = {token};
const int64_t fsm_fmu_indicators = {count};
const int32_t fsm_fmu_indicator_of[] = {{{numbers}}};
"""
_BASE_UNITS: Final = ("m", "kg", "s", "A", "K", "mol", "cd")
_FLAGS: Final = (
    "-std=c99",
    "-O2",
    "-ffp-contract=off",
    "-fPIC",
    "-fvisibility=hidden",
    "-shared",
    "-DFSM_NO_HOST",
    "-I.",
)


def fmi3_files(run: ExportedRun, sources: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files in a unit by their paths, its binary for this platform among them.

    Parameters
    ----------
    run : ExportedRun
    sources : mapping
        The files of the export to C99.

    Raises
    ------
    InputError
        There is no C compiler.
    RunError
        It failed.
    """
    prefix = run.prefix
    token = "{" + sha256(b"".join(sources[name] for name in sorted(sources))).hexdigest()[:32] + "}"
    own = resources.files("fsm_dyn.exports") / "fmi"
    kept = {name: sources[name] for name in sources if name.endswith((".c", ".h")) and name != "main.c"}
    kept |= {name: (own / name).read_bytes() for name in _COPIED}
    of_guard, indicator_names = event_indicators(run)
    numbers = ", ".join(map(str, of_guard or [0]))
    kept["fsm_unit.c"] = _UNIT.format(
        prefix=prefix, token=text(token), count=len(indicator_names), numbers=numbers
    ).encode()
    units_of_code = [f"{prefix}.c", "fsm_machine.c", "fsm_unit.c", "fsm_fmi3.c"]
    library = _library(kept, units_of_code)
    folder, suffix = _platform()
    return {
        "modelDescription.xml": model_description(run, token),
        "sources/buildDescription.xml": _build_description(prefix, units_of_code),
        f"binaries/{folder}/{prefix}{suffix}": library,
        "documentation/licenses/LICENSE": sources["LICENSE"],
        **{f"sources/{name}": content for name, content in kept.items()},
    }


def event_indicators(run: ExportedRun) -> tuple[list[int], list[str]]:
    """Return the number of the event indicator of every guard in the tables, and the names of the indicators.

    Guards of several modes are one indicator if they detect the same event at the same contact; each direction of slip
    has one.  A name is ``guard.EVENT.CONTACT``, that of a user-defined transition ``guard.transition[K]``.
    """
    tables, contacts = run.tables, run.names["contact"]
    numbers: dict[str, int] = {}
    of_guard: list[int] = []
    for begin, end in itertools.pairwise(tables.mode_guard_start.tolist()):
        met: Counter[str] = Counter()
        for guard in range(begin, end):
            event, contact = int(tables.guard_event[guard]), int(tables.guard_contact[guard])
            if event == tb.WRITTEN:
                name = f"guard.transition[{contact}]"
            else:
                name = f"guard.{_EVENTS[event]}.{_quoted(contacts[contact])}"
            sign = float(tables.guard_direction[guard])
            if sign:
                name += ".forward" if sign > 0 else ".backward"
            met[name] += 1
            if met[name] > 1:
                name += f".n{met[name]}"
            of_guard.append(numbers.setdefault(name, len(numbers)))
    return of_guard, list(numbers)


def _platform() -> tuple[str, str]:
    """Return the folder of binaries of this platform, as FMI names it, and the suffix of a shared library."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    system, suffix = {"linux": ("linux", ".so"), "darwin": ("darwin", ".dylib"), "win32": ("windows", ".dll")}[
        sys.platform
    ]
    return f"{machine}-{system}", suffix


def compiler() -> list[str]:
    """Return the C compiler: of the environment variable CC, the one Python was built with, or cc.

    Raises
    ------
    InputError
        There is none.
    """
    for command in (os.environ.get("CC"), sysconfig.get_config_var("CC"), "cc", "gcc", "clang"):
        if command and shutil.which(shlex.split(command)[0]):
            return shlex.split(command)[:1]
    raise InputError(
        "there is no C compiler, which an export to FMI needs",
        remedy="install one (Debian, Ubuntu: the package gcc; macOS: xcode-select --install), or name it by CC",
    )


def _library(sources: Mapping[str, bytes], compiled: list[str]) -> bytes:
    """Compile sources to a shared library and return it."""
    command = compiler()
    with tempfile.TemporaryDirectory() as place:
        for name, content in sources.items():
            path = Path(place) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        flags = [*_FLAGS, *shlex.split(os.environ.get("CFLAGS", ""))]
        done = subprocess.run(
            [*command, *flags, *compiled, "-o", "unit", "-lm"], cwd=place, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RunError(f"{command[0]} could not compile the unit\n{done.stderr[-2000:]}")
        return (Path(place) / "unit").read_bytes()


def _build_description(prefix: str, compiled: list[str]) -> bytes:
    root = Element("fmiBuildDescription", fmiVersion="3.0")
    configuration = SubElement(root, "BuildConfiguration", modelIdentifier=prefix)
    files = SubElement(configuration, "SourceFileSet", language="C99", compilerOptions="-ffp-contract=off")
    for name in compiled:
        SubElement(files, "SourceFile", name=name)
    SubElement(files, "PreprocessorDefinition", name="FSM_NO_HOST")
    SubElement(files, "IncludeDirectory", name=".")
    return _xml(root)


def model_description(run: ExportedRun, token: str) -> bytes:
    """Return modelDescription.xml."""
    mechanism, names, prefix = run.automaton.mechanism, run.names, run.prefix
    root = Element(
        "fmiModelDescription", fmiVersion="3.0", modelName=mechanism.name, instantiationToken=token,
        description=" ".join(mechanism.summary.split()), generationTool="fsm_dyn",
        variableNamingConvention="structured",
    )  # fmt: skip
    SubElement(
        root, "ModelExchange", modelIdentifier=prefix, canGetAndSetFMUState="true", canSerializeFMUState="true",
        needsCompletedIntegratorStep="true",
    )  # fmt: skip
    SubElement(
        root, "CoSimulation", modelIdentifier=prefix, canGetAndSetFMUState="true", canSerializeFMUState="true",
        canHandleVariableCommunicationStepSize="true", hasEventMode="true", mightReturnEarlyFromDoStep="true",
    )  # fmt: skip
    known = units(mechanism)
    _unit_definitions(root, set(known.values()))
    enumeration = SubElement(SubElement(root, "TypeDefinitions"), "EnumerationType", name=f"{prefix}_mode")
    SubElement(enumeration, "Item", name="other", value="0", description="a mode that was not exported")
    for number, name in enumerate(names["mode"], start=1):
        SubElement(enumeration, "Item", name=name, value=str(number))
    categories = SubElement(root, "LogCategories")
    SubElement(categories, "Category", name="logEvents", description="transitions: time, modes, guards")
    SubElement(categories, "Category", name="logStatusError", description="how a run failed")
    SubElement(root, "DefaultExperiment", startTime="0", stopTime=repr(run.until), tolerance=repr(run.rtol))
    _variables(root, run, known)
    return _xml(root)


def _unit_definitions(root: Element, texts: set[str]) -> None:
    """Write the units of the variables, each as a product of powers of the base units of SI."""
    definitions = SubElement(root, "UnitDefinitions")
    for name in sorted(texts | {"s"}):
        exponents = unit_exponents(name)
        unit = SubElement(definitions, "Unit", name=name)
        powers = {base: f"{power:g}" for base, power in zip(_BASE_UNITS, exponents, strict=True) if power}
        if name == "rad":
            powers["rad"] = "1"
        if all(float(power).is_integer() for power in powers.values()):
            SubElement(unit, "BaseUnit", powers)


def unit_exponents(name: str) -> tuple[float, ...]:
    """Return the exponents of m, kg, s, A, K, mol and cd of a unit such as ``kg*m^2/(s*A)``."""
    total = [0.0] * len(_BASE_UNITS)
    above, _, below = name.partition("/")
    for sign, part in ((1.0, above), (-1.0, below.strip("()"))):
        for factor in filter(None, part.split("*")):
            symbol, _, power = factor.partition("^")
            if symbol != "1":
                exponent = sign * float(power or 1)
                for k, base in enumerate(TABLE[symbol][1]):
                    total[k] += exponent * base
    return tuple(total)


def _variables(root: Element, run: ExportedRun, known: Mapping[str, str]) -> None:
    """Write all variables with their value references, and which of them are outputs."""
    variables, names = SubElement(root, "ModelVariables"), run.names
    place = SubElement(variables, "Float64", name="time", valueReference="0", causality="independent")
    place.set("variability", "continuous")
    start = {name: float(run.c[k]) for k, name in enumerate((*names["parameter"], *names["input"]))}
    taken = {"time", "mode"}
    references: list[str] = []

    def unit_of(name: str) -> dict[str, str]:
        return {"unit": known[name]} if name in known else {}

    number, first_state = 1, 0
    for kind, attributes in (
        ("parameter", {"causality": "parameter", "variability": "tunable"}),
        ("input", {"causality": "input", "variability": "continuous"}),
        ("output", {"causality": "output", "variability": "continuous", "initial": "calculated"}),
        ("state", {"causality": "local", "variability": "continuous", "initial": "calculated"}),
    ):
        for name in names[kind]:
            more = {"start": repr(start[name])} if kind in ("parameter", "input") else {}
            _variable(variables, taken, "Float64", name, number, {**attributes, **more, **unit_of(name)})
            if kind == "output":
                references.append(str(number))
            if kind == "state" and not first_state:
                first_state = number
            number += 1
    discrete = {"causality": "output", "variability": "discrete", "initial": "calculated"}
    taken.discard("mode")
    _variable(variables, taken, "Enumeration", "mode", number, {**discrete, "declaredType": f"{run.prefix}_mode"})
    references.append(str(number))
    for name in names["contact"]:
        number += 1
        _variable(variables, taken, "Int64", f"contact.{name}", number, discrete)
        references.append(str(number))
    states = range(first_state, first_state + len(names["state"]))
    derivatives: list[str] = []
    for state, name in zip(states, names["state"], strict=True):
        number += 1
        attributes = {"causality": "local", "variability": "continuous", "initial": "calculated"}
        _variable(variables, taken, "Float64", f"der({name})", number, {**attributes, "derivative": str(state)})
        derivatives.append(str(number))
    indicators: list[str] = []
    for name in event_indicators(run)[1]:
        number += 1
        _variable(variables, taken, "Float64", name, number, {"causality": "local", "variability": "continuous"})
        indicators.append(str(number))
    structure = SubElement(root, "ModelStructure")
    for kind, listed in (
        ("Output", references), ("ContinuousStateDerivative", derivatives),
        ("InitialUnknown", [*references, *map(str, states), *derivatives]), ("EventIndicator", indicators),
    ):  # fmt: skip
        for reference in listed:
            SubElement(structure, kind, valueReference=reference)


def _variable(
    variables: Element, taken: set[str], kind: str, name: str, number: int, attributes: Mapping[str, str]
) -> None:
    """Write one variable; raise InputError if its name is taken."""
    if name in taken:
        raise InputError(f"two variables of the unit are called '{name}'", remedy="rename one of them in the model")
    taken.add(name)
    SubElement(variables, kind, {"name": _structured(name), "valueReference": str(number), **attributes})


def _structured(name: str) -> str:
    """Return a name in the syntax of structured names: what is no identifier in quotes."""
    if name.startswith("guard."):
        return name
    if name.startswith("der("):
        return f"der({_quoted(name[4:-1])})"
    parts = name.split(".", 1) if name.startswith("contact.") else [name]
    return ".".join(map(_quoted, parts))


def _quoted(part: str) -> str:
    """Return a part of a structured name, in quotes unless it is an identifier."""
    return part if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*(\[\d+\])?", part) else f"'{part}'"


def _xml(root: Element) -> bytes:
    indent(root)
    body: bytes = tostring(root, encoding="utf-8")
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + body + b"\n"
