"""Description of a unit for FMI 2.0: model exchange and co-simulation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from xml.etree.ElementTree import Element, SubElement

from fsm_dyn.exports.exported_run import ExportedRun
from fsm_dyn.exports.fmi_variables import Variable, limit_attributes
from fsm_dyn.exports.fmi_xml import (
    add_categories,
    add_experiment,
    add_mode_items,
    add_units,
    description_root,
    written,
)

_KINDS: Final = {"mode": "Enumeration", "contact": "Integer"}


def model_description(run: ExportedRun, variables: Sequence[Variable], token: str, compiled: Sequence[str]) -> bytes:
    """Return modelDescription.xml; `compiled` are the sources that make the binary.

    Parameters
    ----------
    run : ExportedRun
        What is exported.
    variables : Sequence[Variable]
        In the order of their value references.
    token : str
        The unit's ``guid``.
    compiled : Sequence[str]
        Names of C sources.
    """
    indicators = sum(variable.role == "indicator" for variable in variables)
    root = description_root(run, "2.0", guid=token, numberOfEventIndicators=str(indicators))
    kept = {
        "modelIdentifier": run.prefix, "canNotUseMemoryManagementFunctions": "true", "canGetAndSetFMUstate": "true",
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
    mode = SubElement(SubElement(root, "TypeDefinitions"), "SimpleType", name=f"{run.prefix}_mode")
    add_mode_items(SubElement(mode, "Enumeration"), run)
    add_categories(root)
    add_experiment(root, run)
    listed = SubElement(root, "ModelVariables")
    for variable in variables:
        _add_variable(listed, variable, run.prefix)
    structure = SubElement(root, "ModelStructure")
    unknown = ("output", "mode", "contact", "state", "derivative")
    for kind, chosen in (
        ("Outputs", [v for v in variables if v.causality == "output"]),
        ("Derivatives", [v for v in variables if v.role == "derivative"]),
        ("InitialUnknowns", [v for v in variables if v.role in unknown]),
    ):
        if chosen:
            group = SubElement(structure, kind)
            for variable in chosen:
                SubElement(group, "Unknown", index=str(variable.reference + 1))
    return written(root)


def _add_variable(listed: Element, variable: Variable, prefix: str) -> None:
    """Write one variable, with what belongs to its type."""
    own: dict[str, str] = {}
    if variable.role == "mode":
        own["declaredType"] = f"{prefix}_mode"
    if variable.unit:
        own["unit"] = variable.unit
    own |= limit_attributes(variable)
    if variable.start is not None:
        own["start"] = repr(variable.start)
    if variable.state is not None:
        own["derivative"] = str(variable.state + 1)  # its number in the list, from 1
    if variable.role == "state":
        own["reinit"] = "true"
    SubElement(SubElement(listed, "ScalarVariable", variable.attributes), _KINDS.get(variable.role, "Real"), own)
