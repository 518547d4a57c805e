"""What a unit shows in a diagram of another tool: an icon of the mechanism, and terminals, its variables in groups."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from fsm_dyn.core.errors import InputError
from fsm_dyn.exports.exported_run import ExportedRun
from fsm_dyn.run.trajectory import Trajectory

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
