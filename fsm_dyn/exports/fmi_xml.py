"""What the descriptions of units for both versions of FMI have in common, as XML."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from fsm_dyn.exports.exported_run import ExportedRun
from fsm_dyn.exports.fmi_variables import Variable, unit_definitions


def description_root(run: ExportedRun, version: str, **attributes: str) -> Element:
    """Return the root of a modelDescription.xml."""
    mechanism = run.automaton.mechanism
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


def add_mode_items(enumeration: Element, run: ExportedRun) -> None:
    """Write the modes of the automaton as the items of an enumeration."""
    SubElement(enumeration, "Item", name="other", value="0", description="a mode that was not exported")
    for number, name in enumerate(run.names["mode"], start=1):
        SubElement(enumeration, "Item", name=name, value=str(number))


def add_categories(root: Element) -> None:
    """Write what is logged."""
    categories = SubElement(root, "LogCategories")
    SubElement(categories, "Category", name="logEvents", description="transitions: time, modes, guards")
    SubElement(categories, "Category", name="logStatusError", description="how a run failed")


def add_experiment(root: Element, run: ExportedRun) -> None:
    """Write how the model's own schedule is simulated."""
    SubElement(root, "DefaultExperiment", startTime="0", stopTime=repr(run.until), tolerance=repr(run.rtol))


def written(root: Element) -> bytes:
    """Return a document."""
    indent(root)
    body: bytes = tostring(root, encoding="utf-8")
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + body + b"\n"
