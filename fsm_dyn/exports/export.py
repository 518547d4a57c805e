"""Exporting a mode graph: the C99 target, and the table of targets."""

from __future__ import annotations

import io
import math
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np

import fsm_dyn.runtime
from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.initial_state import InitialState
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.arguments import typed
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.derive.mode_programs import ModePrograms
from fsm_dyn.exports.c_model import (
    KERNELS_HEADER,
    MOST_SPARE,
    STACK_OF_RUNTIME,
    USUAL_SPARE,
    embeds_online,
    header,
    memory_words,
    source,
    values_of_largest_kernel,
    with_spare_modes,
)
from fsm_dyn.exports.exported_machine import OUTPUTS, REALS, ExportedMachine, Outputs, Real, force_outputs, prefix_of
from fsm_dyn.exports.fmi import icon, unit_files
from fsm_dyn.language.evaluate import ParameterValue
from fsm_dyn.language.mechanism_form import NUMERICS
from fsm_dyn.language.scales import Scales
from fsm_dyn.run.input_signals import InputValue
from fsm_dyn.run.integrators import METHODS
from fsm_dyn.run.loop import run_automaton
from fsm_dyn.run.online import CompiledExecutable
from fsm_dyn.run.phases import phase_rules
from fsm_dyn.run.run_options import RunOptions, check_step
from fsm_dyn.run.simulator import Simulator
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
     "live.h", "pacing.c", "pacing.h", "atomic.h"}
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


_TEMPLATES: Final = {
    "c99": ("main.c", "Makefile", "CMakeLists.txt", "README.md"),
    "cortex_m": ("main.c", "Makefile", "README.md", "board.h", "start.c", "mps2.ld"),
}
_READABLE: Final = 0o100644  # mode of the files in a unit, so that other users can read the unpacked ones
_MOST_STEPS: Final = 100_000  # of the run in search of modes to export
_USUAL: Final = RunOptions()
_COPIED: Final = (
    "fsm_machine.h", "fsm_machine.c", "fsm_phases.h", "fsm_phases.c", "fsm_spare_modes.h", "fsm_spare_modes.c",
    "fsm_start.c",
)  # fmt: skip


@typed
def export(
    graph: ModeGraph,
    folder: str | Path,
    target: str = "c99",
    *,
    scenario: str | None = None,
    inputs: Mapping[str, InputValue] | None = None,
    parameters: Mapping[str, Any] | None = None,
    method: str = "dopri5",
    step: float | None = None,
    listed_modes: bool = False,
    spare_modes: int | None = None,
    real: Real = "double",
    outputs: Outputs = "listed",
    mode: str | None = None,
) -> Path:
    """Write a mode graph as sources independent of Python.

    Parameters
    ----------
    graph : ModeGraph
    folder : str or Path
        Target folder; made if need be. It may contain an earlier export, nothing else.
    target : "c99", "cortex-m", "fmu2", "fmu3", "html", "mjcf" or "modelica"
        C99; C99 with start, memory map and Makefile for a Cortex-M4F or M7; a unit ``NAME.fmu`` for FMI 2.0 or 3.0
        (model exchange and co-simulation) with its binary for this platform; a page ``NAME.html`` with a simulation
        in the browser, without a server; the mechanism for MuJoCo, ``NAME.xml``, with its start as a key frame; or one
        mode as a model of Modelica, ``NAME.mo``.
        Where it is one file, `folder` may name it.
    scenario : str, optional
        Scenario of the model that becomes its schedule.
    inputs, parameters : mapping, optional
        As for :func:`fsm_dyn.simulate`, except Python functions.
    method : str
        An explicit method: ``dopri5``, or ``rk4``, ``heun``, ``euler`` with ``step`` (s); ``dopri5`` with ``step`` is
        ``rk4``, as in :func:`fsm_dyn.simulate`.
    listed_modes : bool
        Whether only the modes of the graph are exported.  By default a run of the model's own schedule comes first,
        and the modes it reaches are exported too.
    spare_modes : int, optional
        Number of further modes that can be embedded online when a run reaches them; every machine has memory for them.
        Default: 16 for C99 and FMI; none for Cortex-M, with ``listed_modes``, or if the model lists its modes or binds
        transitions to some of them. Reaching a mode without room ends the run.
    real : "double" or "float"
        Type of the numbers, for C99 and Cortex-M. A machine of floats has other default tolerances, see
        :data:`fsm_dyn.exports.export.ROUNDINGS`.
    outputs : "listed", "all" or "reals"
        The outputs of the model; with the forces of all connections and contacts, and in a unit all coordinates and
        speeds; and in a unit the mode and contact states as reals too, for importers that connect reals alone.
    mode : str, optional
        Mode of an export to Modelica; that of the start by default.

    Returns
    -------
    Path
        The folder; for a page, or if `folder` names a file, the file.

    Raises
    ------
    InputError
        The target is unknown; the folder holds other files; two names of the model have the same identifier; an input
        is a Python function; a unit needs a C compiler and there is none; the model or the target does not allow spare
        modes, or not so many; the target does not allow floats, or the tolerances of the model are too small for them.
    RunError
        The compiler failed.

    Examples
    --------
    >>> import fsm_dyn, tempfile
    >>> folder = fsm_dyn.export(fsm_dyn.compile("latch"), tempfile.mkdtemp())
    >>> sorted(path.name for path in folder.glob("latch.*"))
    ['latch.c', 'latch.h']
    """
    _check_target(target, real, inputs or {})
    _check_outputs(target, outputs)
    if mode is not None and target != MODELICA:
        raise InputError("one mode alone is exported to Modelica", found=target, remedy=f"export to '{MODELICA}'")
    options = _options(method, step, scenario=scenario, inputs=inputs, parameters=parameters)
    path = Path(folder)
    if spare_modes is None:
        wanted = target in ("c99", "fmu2", "fmu3") and not listed_modes and embeds_online(graph.automaton)
        spare_modes = USUAL_SPARE if wanted else 0
    else:
        _check_spare(graph, target, spare_modes)
    names_file = path.suffix == ENDINGS.get(target)
    place = path.parent if names_file else path
    if names_file and path.is_dir():
        raise InputError(f"{path} is a folder", remedy="name a file")
    _check_folder(place, target)
    if target == PAGE:
        files = _page(graph, options, listed_modes)
    elif target == MJCF:
        files = _mjcf(graph, options)
    elif target == MODELICA:
        files = _modelica(prepared(graph, options, listed_modes, spare=False), mode)
    else:
        machine = prepared(graph, options, listed_modes, real, outputs, spare_modes > 0)
        if target in ("fmu2", "fmu3"):
            machine = replace(machine, icon=icon(Simulator(graph).carry_out(replace(options, until=0.0))))
        files = TARGETS[target](with_spare_modes(machine, spare_modes))
    if names_file:
        files = dict(zip([path.name], files.values(), strict=True))
    _write(place, files)
    return place / next(iter(files)) if names_file or target in (PAGE, MJCF, MODELICA) else place


def _options(method: str, step: float | None, **given: Any) -> RunOptions:
    """Return the options of a machine; raise InputError for a method that no machine has."""
    if method not in METHODS:
        raise InputError(
            f"a method '{method}' cannot be exported", allowed=", ".join(METHODS),
            remedy=did_you_mean(method, METHODS) or "leave the method out",
        )  # fmt: skip
    options = RunOptions(method=method, step=step, **given)
    check_step(options.method, options.step)
    return options


def _check_target(target: str, real: str, inputs: Mapping[str, InputValue]) -> None:
    """Refuse an unknown target, and numbers and inputs not supported by a target."""
    known = [*TARGETS, PAGE, MJCF, MODELICA]
    if target not in known:
        raise InputError(
            f"there is no export to '{target}'", allowed=", ".join(known), remedy=did_you_mean(target, known)
        )
    if real not in REALS:
        raise InputError(f"there are no numbers of type '{real}'", allowed=", ".join(REALS))
    if real == "float" and target not in FLOAT_TARGETS:
        raise InputError(
            f"an export to '{target}' is of doubles", allowed=", ".join(FLOAT_TARGETS) + " of floats",
            remedy="leave the type of the numbers out",
        )  # fmt: skip
    for name, value in inputs.items():
        if callable(value):
            raise InputError(
                f"the input '{name}' is a Python function, which cannot be exported",
                remedy="give an expression of t, or a table of times and values",
            )


def _check_outputs(target: str, outputs: str) -> None:
    """Refuse an unknown choice of outputs, and more than the listed ones on a page, which shows all."""
    if outputs not in OUTPUTS:
        raise InputError(f"there are no outputs '{outputs}'", allowed=", ".join(OUTPUTS),
                         remedy=did_you_mean(outputs, OUTPUTS))  # fmt: skip
    if target in (PAGE, MJCF, MODELICA) and outputs != "listed":
        named = {PAGE: "a page", MJCF: "a model of MuJoCo"}.get(target, "one mode")
        raise InputError(f"{named} has no outputs to choose", found=outputs, remedy="leave them out")


def prepared(
    graph: ModeGraph, options: RunOptions = _USUAL, listed_modes: bool = False, real: Real = "double",
    outputs: Outputs = "listed", spare: bool = True,
) -> ExportedMachine:  # fmt: skip
    """Return the run to export: modes, start, schedule.

    Parameters
    ----------
    graph : ModeGraph
    options : RunOptions
        Those that :func:`export` takes.
    listed_modes, real, outputs
        As for :func:`export`.
    spare
        Whether the target embeds further modes online.  Modes whose contacts share friction in space are among those,
        except if the run begins in one.
    """
    simulator = Simulator(graph)
    setup = simulator.setup(options)
    executable = simulator.take(
        "compiled" if spare and not listed_modes and embeds_online(graph.automaton) else "derived"
    )
    first = executable.derived(setup.start.states).programs
    if first.shares_in_space(graph.automaton.contacts):
        _check_least_forces(executable.mode_name(setup.start.states).name, first, graph.automaton, setup.start)
        executable = simulator.take("derived")
    executable.use(simulator.numerics(setup.numbers, setup.vector))
    mode = executable.mode_index(setup.start.states)

    def resolved() -> RunOptions:
        numerics = executable.numerics
        atol = np.array(np.broadcast_to(numerics.atol, setup.start.x.shape))
        return replace(options, until=setup.end, rtol=numerics.rtol, atol=atol, max_steps=_MOST_STEPS)

    def run_schedule() -> None:  # which modes and charts it takes
        run_automaton(
            executable.tables, setup.start.x, setup.start.context, mode, 0.0, resolved(), drive=setup.drive,
            mode_source=executable,
        )  # fmt: skip

    if not listed_modes:
        run_schedule()
    if real == "float":
        executable.use(single_numerics(graph.automaton, setup.numbers))
        if not listed_modes:
            run_schedule()
    online = {
        name: chart.programs.states for name, chart in zip(executable.chart_names, executable.charts, strict=True)
        if not isinstance(chart.programs, ModePrograms)
    }  # fmt: skip
    if isinstance(executable, CompiledExecutable) and online:
        executable = executable.without_online()
        mode = executable.mode_index(setup.start.states)
    own = [chart.programs for chart in executable.charts if isinstance(chart.programs, ModePrograms)]
    return ExportedMachine(
        executable.automaton,
        executable.tables,
        [(programs.rhs, programs.full) for programs in own],
        executable.chart_names,
        setup.start.x,
        setup.start.context,
        mode,
        setup.drive.whole(setup.end),
        resolved(),
        executable.numerics,
        real=real,
        forces=force_outputs(executable.automaton, outputs),
        phases=phase_rules(executable.automaton),
        outputs=outputs,
        embedded=online,
    )


def _check_least_forces(name: str, programs: ModePrograms, automaton: Automaton, start: InitialState) -> None:
    """Refuse a start in a mode of which the least forces break a law: a machine does not look for others there."""
    if programs.least_forces_slip(automaton.contacts, 0.0, start.x, start.context):
        raise InputError(
            "contacts of the mode at the start share friction in space, and their least forces leave its cones",
            found=f"a start in '{name}'",
            remedy="begin in another mode, such as a little above the contacts",
        )


def _check_spare(graph: ModeGraph, target: str, count: int) -> None:
    """Refuse a number of spare modes if the target or the model does not allow it."""
    if not 0 <= count <= MOST_SPARE:
        raise InputError("a number of spare modes is out of range", found=str(count), allowed=f"0 to {MOST_SPARE}")
    if count and target in (MJCF, MODELICA):
        raise InputError(f"an export to '{target}' has no spare modes", found=str(count), remedy="leave them out")
    if count and target == PAGE:
        raise InputError("a page has its own room for further modes", found=str(count), remedy="leave spare modes out")
    if count and not embeds_online(graph.automaton):
        raise InputError(
            "the model lists its modes, or binds transitions to some of them, so no others can be embedded online",
            found=f"{count} spare modes", remedy="leave spare modes out",
        )  # fmt: skip


def _c99(machine: ExportedMachine, example: str = "c99") -> dict[str, bytes]:
    """Return the files of an export to C99 by their paths, with the templates of one kind of example."""
    prefix, mechanism = machine.prefix, machine.automaton.mechanism
    ends = "ends the run with `FSM_MODE_NOT_LISTED`; `fsm_machine_missing` has its contact states."
    if machine.automaton.fully_enumerated:
        missing = "All modes that the model can be in are exported."
    elif machine.spare:
        missing = (
            f"Modes that are reached and were not exported are embedded online, {machine.spare} of them at most; their"
            f" numbers are `{prefix}_mode_count` and above. A further one {ends}"
        )
    else:
        missing = f"A mode that is reached and was not exported {ends}"
    kernels_and_tables = source(machine)
    values, width = values_of_largest_kernel(kernels_and_tables), 4 if machine.real == "float" else 8
    words = {
        **_NUMBER_WORDS[machine.real],
        "stack": f"{STACK_OF_RUNTIME + width * values:,}", "runtime_stack": f"{STACK_OF_RUNTIME:,}",
        "values": f"{values:,}", "width": str(width),
        "prefix": prefix, "PREFIX": prefix.upper(), "name": mechanism.name, "summary": mechanism.summary,
        "modes": str(len(machine.programs)), "bytes": f"{8 * memory_words(machine):,}", "missing": missing,
    }  # fmt: skip
    files: dict[str, bytes] = {}
    package = resources.files("fsm_dyn.exports")
    for name in _TEMPLATES[example]:
        text = (package / example / name).read_text(encoding="utf-8")
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
        files[name] = text.encode()
    files["LICENSE"] = _licence()
    sources = {name: (package / "c99" / name).read_text(encoding="utf-8") for name in _COPIED}
    sources |= {f"{prefix}.h": header(machine), f"{prefix}.c": kernels_and_tables, "fsm_kernels.h": KERNELS_HEADER}
    runtime = {
        path.name: path.read_text(encoding="utf-8")
        for path in sorted(Path(fsm_dyn.runtime.__file__).parent.glob("*.[ch]"))
    }
    if machine.real == "float":
        sources, runtime = {name: in_floats(text) for name, text in sources.items()}, runtime_in_floats(runtime)
    sources |= {f"runtime/{name}": text for name, text in runtime.items()}
    return files | {name: text.encode() for name, text in sources.items()}


#: Words about the numbers in a README.
_NUMBER_WORDS: Final[Mapping[Real, Mapping[str, str]]] = {
    "double": {
        "numbers": "doubles", "origin": "as it is",
        "library": "only `sqrt`, `fabs`, `floor`, `fmod` and memory functions are used",
    },
    "float": {
        "numbers": "floats", "origin": "rewritten from doubles to floats",
        "library": "only `sqrtf`, `fabsf`, `floorf`, `fmodf`, `copysignf` and memory functions are used",
    },
}  # fmt: skip


def _cortex_m(machine: ExportedMachine) -> dict[str, bytes]:
    """Return the files of an export to a board with a Cortex-M4F or M7."""
    return _c99(machine, "cortex_m")


def _licence() -> bytes:
    """Return the licence of the package, from the checkout or from the installed distribution."""
    checkout = Path(__file__).parents[2] / "LICENSE"
    if checkout.is_file():
        return checkout.read_bytes()
    from importlib.metadata import files

    found = [path for path in files("fsm-dyn") or [] if path.name == "LICENSE"]
    return Path(str(found[0].locate())).read_bytes()


def _unit(machine: ExportedMachine, version: int) -> dict[str, bytes]:
    """Return a unit for FMI 2.0 or 3.0 as one file; the same bytes whenever it is made."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in sorted(unit_files(machine, _c99(machine), version).items()):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = _READABLE << 16
            file.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return {f"{machine.prefix}.fmu": packed.getvalue()}


#: Targets that support floats.
FLOAT_TARGETS: Final = ("c99", "cortex-m")

#: The target for pages, which need ports for the pointer.
PAGE: Final = "html"

#: The target for MuJoCo, of the mechanism alone, without its mode graph.
MJCF: Final = "mjcf"

#: The target for tools of Modelica, one mode alone.
MODELICA: Final = "modelica"

#: Suffixes of the exports to one file, whose name can be given instead of a folder.
ENDINGS: Final = {"fmu2": ".fmu", "fmu3": ".fmu", PAGE: ".html", MJCF: ".xml", MODELICA: ".mo"}

#: All other targets: functions from the exported machine to the contents of files by their paths.
TARGETS: Final[dict[str, Callable[[ExportedMachine], dict[str, bytes]]]] = {
    "c99": _c99,
    "cortex-m": _cortex_m,
    "fmu2": partial(_unit, version=2),
    "fmu3": partial(_unit, version=3),
}


def _page(graph: ModeGraph, options: RunOptions, listed_modes: bool) -> dict[str, bytes]:
    """Return a page as one file."""
    from fsm_dyn.exports.html import for_page, page  # the page's parts load slowly

    coupled, changed = for_page(graph, options.parameters)
    machine = prepared(coupled, replace(options, parameters=changed), listed_modes)
    return {f"{machine.prefix}.html": page(machine, coupled, bool(graph.automaton.mechanism.ports))}


def _modelica(machine: ExportedMachine, mode: str | None) -> dict[str, bytes]:
    from fsm_dyn.exports.description_languages import modelica  # for this target alone

    return {f"{machine.prefix}.mo": modelica(machine, mode)}


def _mjcf(graph: ModeGraph, options: RunOptions) -> dict[str, bytes]:
    """Return the mechanism for MuJoCo as one file."""
    from fsm_dyn.exports.description_languages import mjcf  # no other target reads the ways of bodies

    setup, mechanism = Simulator(graph).setup(options), graph.automaton.mechanism
    start = dict(zip(graph.automaton.terms.layout.q, setup.start.x.tolist(), strict=False))
    return {f"{prefix_of(mechanism.name)}.xml": mjcf(mechanism, setup.numbers, start)}


def _check_folder(folder: Path, target: str) -> None:
    """Refuse a file instead of a folder, and for several files a folder with other contents."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file", remedy="name a folder")
    if (
        target in ("c99", "cortex-m")
        and folder.is_dir()
        and any(folder.iterdir())
        and not (folder / "fsm_machine.h").exists()
    ):
        raise InputError(f"{folder} holds other files", remedy="name an empty folder, or one of an earlier export")


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write all files or none: a temporary folder is filled first. Equal files stay, so `make` keeps their objects."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as beside:
            for name, content in files.items():
                if (folder / name).is_file() and (folder / name).read_bytes() == content:
                    continue
                path = Path(beside) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            shutil.copytree(beside, folder, dirs_exist_ok=True)
    except OSError as error:
        reason = error.strerror or error.args[0][0][2]  # of the first failed copy
        raise InputError(f"{folder} cannot be written: {reason}", remedy="name another folder") from None
