"""Description of a unit for FMI 3.0: model exchange and co-simulation, with event mode in both."""

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

_KINDS: Final = {"mode": "Enumeration", "contact": "Int64"}


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


def model_description(run: ExportedRun, variables: Sequence[Variable], token: str) -> bytes:
    """Return modelDescription.xml."""
    root = description_root(run, "3.0", instantiationToken=token)
    kept = {
        "modelIdentifier": run.prefix,
        "canGetAndSetFMUState": "true",
        "canSerializeFMUState": "true",
        "providesDirectionalDerivatives": "true",
    }
    SubElement(root, "ModelExchange", kept, needsCompletedIntegratorStep="true")
    SubElement(
        root, "CoSimulation", kept, canHandleVariableCommunicationStepSize="true", hasEventMode="true",
        mightReturnEarlyFromDoStep="true",
    )  # fmt: skip
    add_units(root, variables)
    add_mode_items(SubElement(SubElement(root, "TypeDefinitions"), "EnumerationType", name=f"{run.prefix}_mode"), run)
    add_categories(root)
    add_experiment(root, run)
    listed = SubElement(root, "ModelVariables")
    for variable in variables:
        SubElement(listed, _KINDS.get(variable.role, "Float64"), _attributes(variable, run.prefix))
    structure = SubElement(root, "ModelStructure")
    unknown = ("output", "mode", "contact", "state", "derivative")
    for kind, chosen in (
        ("Output", [v for v in variables if v.causality == "output"]),
        ("ContinuousStateDerivative", [v for v in variables if v.role == "derivative"]),
        ("InitialUnknown", [v for v in variables if v.role in unknown]),
        ("EventIndicator", [v for v in variables if v.role == "indicator"]),
    ):
        for variable in chosen:
            SubElement(structure, kind, valueReference=str(variable.reference))
    return written(root)


def _attributes(variable: Variable, prefix: str) -> dict[str, str]:
    """Return the attributes of the element of a variable."""
    found = variable.attributes
    if variable.unit:
        found["unit"] = variable.unit
    found |= limit_attributes(variable)
    if variable.start is not None:
        found["start"] = repr(variable.start)
    if variable.state is not None:
        found["derivative"] = str(variable.state)
    if variable.role == "state":
        found["reinit"] = "true"
    if variable.role == "mode":
        found["declaredType"] = f"{prefix}_mode"
    return found
