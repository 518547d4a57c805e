"""What a unit says of itself: limits, nominals, display units, icon, terminals; and what its binary shows."""

import ctypes
import shutil
import struct
import subprocess
import zipfile
from pathlib import Path

import fmpy
import pytest
from fmpy.validation import validate_fmu
from lxml import etree

import fsm_dyn
from fsm_dyn.language import loader
from tests.exports.building import quick_units
from tests.exports.importer import instance

#: A hinged arm of a few centimetres with a range and a stop, driven by a torque.
ARM = """
fsm_dyn: 1
name: arm
coordinates: {q: {unit: rad, range: [-2 rad, 3 rad]}}
parameters: {k: 2e-4 N*m/rad, length: 1 mm, h: 0.1 ms, m: 0.1 g}
inputs: {drive: N*m}
frames: {B: {parent: N, rotate: {z: q}}}
points: {P: {from: O, at: length*B.x}}
bodies: {flap: {frame: B, center: P, mass: m, inertia: {zz: 1e-10 kg*m^2}}}
contacts: {stop: {joint_stop: {coordinate: q, lower: 0 deg}}}
loads: [{law: drive - k*q - k*h*q_dot, coordinate: q}]
outputs: {height: "dot(pos(P), N.y)"}
initial: {q: 0.1 rad}
"""


@pytest.fixture(scope="module", params=[2, 3])
def unit(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("arm")
    with pytest.MonkeyPatch.context() as patch:
        quick_units(patch)
        graph = fsm_dyn.compile(loader.load(text=ARM))
        path = fsm_dyn.export(graph, folder / "arm.fmu", f"fmu{request.param}", outputs="all", spare_modes=0)
    with zipfile.ZipFile(path) as file:
        file.extractall(folder / "unit")
    return request.param, path, folder / "unit"


def test_limits_nominals_and_display_units(unit, tmp_path):
    version, path, _ = unit
    assert not validate_fmu(str(path))
    it, _, description = instance(path, tmp_path)
    variables = {v.name: v for v in description.modelVariables}
    angle = variables["q"]
    assert (float(angle.min), float(angle.max), angle.displayUnit) == (-2.0, 3.0, "deg")
    shown = {d.name: d.factor for one in description.unitDefinitions for d in one.displayUnits}
    assert shown["deg"] == pytest.approx(57.29577951308232)
    assert (variables["der(q)"].unit, variables["der(q)"].displayUnit) == ("rad/s", "deg/s")
    # lengths of a millimetre and masses of a tenth of a gramme: their own units are 1/1024 m and 1/1024 kg
    assert float(variables["height"].nominal) == float(variables["length"].nominal) == 1 / 1024
    assert variables["height"].min is None
    it.enterInitializationMode()
    it.exitInitializationMode()
    given = (ctypes.c_double * 2)()
    if version == 2:
        it.getNominalsOfContinuousStates(given, 2)
    else:
        it.fmi3GetNominalsOfContinuousStates(it.component, given, 2)
    assert [float(variables[name].nominal or 1.0) for name in ("q", "q_dot")] == pytest.approx(list(given))
    it.terminate()
    it.freeInstance()


def test_the_icon_is_a_png_of_the_mechanism(unit):
    version, _, folder = unit
    data = (folder / ("model.png" if version == 2 else "terminalsAndIcons/icon.png")).read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (128, 128)


def test_terminals_follow_the_schema_and_name_variables(unit):
    version, path, folder = unit
    if version == 2:  # terminals are of version 3
        assert not (folder / "terminalsAndIcons").exists()
        return
    schema = Path(fmpy.__file__).parent / "schema" / "fmi3" / "fmi3TerminalsAndIcons.xsd"
    document = etree.parse(folder / "terminalsAndIcons" / "terminalsAndIcons.xml")
    etree.XMLSchema(etree.parse(schema)).assertValid(document)
    members = {
        terminal.get("name"): {one.get("memberName"): one.get("variableName") for one in terminal}
        for terminal in document.iter("Terminal")
    }
    variables = {v.name for v in fmpy.read_model_description(str(path)).modelVariables}
    assert {name for group in members.values() for name in group.values()} <= variables
    assert members["inputs"] == {"drive": "drive"}
    assert members["contact_stop"] == {"state": "contact.stop", "normal": "contact_stop_normal"}
    pins = {name: group for name, group in members.items() if name.startswith("pin_")}
    assert pins
    assert all(variable == f"{name}_{member}" for name, group in pins.items() for member, variable in group.items())


@pytest.mark.skipif(shutil.which("nm") is None, reason="needs nm of binutils")
def test_the_binary_shows_the_functions_of_the_standard_alone(unit):
    """Else units with unlike runtimes would call each other's functions in one process."""
    version, _, folder = unit
    (binary,) = (folder / "binaries").rglob("arm.*")
    listed = subprocess.run(["nm", "-D", "--defined-only", binary], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1] for line in listed.splitlines()}
    assert f"fmi{version}FreeInstance" in names
    assert {name for name in names if not name.startswith(f"fmi{version}")} == set()
