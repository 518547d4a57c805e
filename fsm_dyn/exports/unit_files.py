"""Files of a unit in addition to its description: binaries compiled source by source, an icon, terminals.

The runtime takes nearly all of the time and is the same for all models, so it is compiled once for each version of the
standard, compiler and options, and its object code is kept in the user's cache. What is kept follows the rules of
machine code (:class:`ObjectCache`): files that another user may write to, or whose content does not have the digest in
their header, count as absent.
"""

from __future__ import annotations

import io
import os
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import llvmlite.binding as llvm
import numpy as np

from fsm_dyn.core.errors import InputError, RunError
from fsm_dyn.exports.exported_run import ExportedRun
from fsm_dyn.programs.kernels import ObjectCache
from fsm_dyn.run.trajectory import Trajectory

_FLAGS: Final = ("-std=c99", "-O2", "-ffp-contract=off", "-fPIC", "-fvisibility=hidden", "-DFSM_NO_HOST", "-I.")


def compiler() -> list[str]:
    """Return the C compiler: of the environment variable CC, the one Python was built with, or cc.

    Returns
    -------
    list of str
        The words of the command; CC may have several, as ``ccache gcc``.

    Raises
    ------
    InputError
        There is none.
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

    Parameters
    ----------
    sources : mapping
        Contents of C files and headers by their paths.
    compiled : sequence of str
        Those that are compiled; the others are included.

    Returns
    -------
    bytes
        The library; the same whether its object code was kept or not.

    Raises
    ------
    InputError
        There is no C compiler.
    RunError
        The compiler failed.
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


def terminals(run: ExportedRun, variables: Collection[str]) -> bytes:
    """Return terminalsAndIcons.xml for FMI 3.0.

    Parameters
    ----------
    run : ExportedRun
    variables : collection of str
        Names of all variables of the unit.
    """
    root = Element("fmiTerminalsAndIcons", fmiVersion="3.0")
    if run.icon:
        shown = SubElement(root, "GraphicalRepresentation")
        corners = {"x1": "-100", "y1": "-100", "x2": "100", "y2": "100"}
        SubElement(shown, "CoordinateSystem", corners, suggestedScalingFactorTo_mm="0.1")
        SubElement(shown, "Icon", corners)
    groups = [(name, description, members) for name, description, members in _groups(run, variables) if members]
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


def _groups(run: ExportedRun, variables: Collection[str]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield name, description and variables by their name in the group: inputs, outputs, connections, contacts."""
    names = run.names

    def known(members: dict[str, str]) -> dict[str, str]:
        return {member: name for member, name in members.items() if name in variables}

    yield "inputs", "all inputs", known({name: name for name in names["input"]})
    own = [name for name in names["output"] if name in run.automaton.mechanism.outputs]
    yield "outputs", "the outputs of the model", known({name: name for name in own})
    ends = [(name, f"_{part}") for name in run.forces.units if name.startswith("pin_") for part in _FORCES]
    for pin in dict.fromkeys(name.removesuffix(end) for name, end in ends if name.endswith(end)):
        told = f"force and torque in the connection {pin.removeprefix('pin_')}"
        yield pin, told, known({part: f"{pin}_{part}" for part in _FORCES})
    for contact in run.automaton.contacts:
        forces = {part: f"contact_{contact.name}_{part}" for part in ("normal", "friction", "friction2")}
        told = f"state and forces of the contact {contact.name}"
        yield f"contact_{contact.name}", told, known({"state": f"contact.{contact.name}", **forces})
