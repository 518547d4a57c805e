"""All forces and states as outputs of exports: the values of the run, and reals in place of enumerations."""

from xml.etree.ElementTree import fromstring

import numpy as np
import pytest
from fmpy.validation import validate_fmu

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.exports.exported_machine import force_outputs
from fsm_dyn.language import loader
from tests.exports.building import built, printed, quick_units
from tests.exports.importer import instance

#: A box that slides on rigid ground and presses on a compliant wall, on a hinge with a stop in radians.
SLED = """
fsm_dyn: 1
name: sled
coordinates: {x: m, y: m, q: rad}
points:
  P: {from: O, at: x*N.x + y*N.y}
frames: {B: {parent: N, rotate: {z: q}}}
bodies:
  box: {center: P, mass: 2 kg}
  flap: {frame: B, center: P, mass: 0.1 kg, inertia: {zz: 0.01 kg*m^2}}
contacts:
  floor: {gap: y, slip: "dot(vel(P), N.x)", friction: 0.3}
  wall: {gap: 0.2 m - x, compliant: {stiffness: 4e3 N/m}}
  stop: {joint_stop: {coordinate: q, lower: 0 deg}}
loads:
  - {gravity: -9.81 m/s^2*N.y}
  - {law: -0.5 N*m, coordinate: q}
initial: {x_dot: 2 m/s}
"""


@pytest.fixture(scope="module")
def sled():
    return fsm_dyn.compile(loader.load(text=SLED))


def test_forces_have_the_units_of_their_rows(sled):
    units = force_outputs(sled.automaton, "all").units
    assert {name: units[f"contact_{name}"] for name in ("floor_normal", "floor_friction", "wall_normal")} == {
        "floor_normal": "N", "floor_friction": "N", "wall_normal": "N"
    }  # fmt: skip
    assert units["contact_stop_normal"] == "N*m"
    assert not force_outputs(sled.automaton).units


def columns_of(run, name):
    """Return the values of a force in the run, by its name as an output."""
    kind, _, rest = name.partition("_")
    if kind == "contact":
        contact, _, part = rest.rpartition("_")
        found = run.multipliers[contact]
        return found if found.ndim == 1 else found[:, int(part == "friction")]
    connection, quantity, axis = rest.rsplit("_", 2)
    return run[f"pin.{connection}.{quantity}_{axis}"]


@pytest.mark.parametrize("until", [0.05, 0.12, 0.3])
def test_outputs_of_c99_are_those_of_the_run(tmp_path, until):
    """While it slides, presses on the wall, and has left it."""
    stop = f"transitions: [{{from: '*', when: t - {until} s, stop: true}}]\n"
    graph = fsm_dyn.compile(loader.load(text=SLED + stop))
    fsm_dyn.export(graph, tmp_path, outputs="all", spare_modes=0)
    run = fsm_dyn.simulate(graph)
    assert run.t[-1] == pytest.approx(until)
    _, _, values = printed(built(tmp_path, "sled"))
    units = force_outputs(graph.automaton, "all").units
    found = [values[f"output {name}"] for name in units]
    expected = [columns_of(run, name)[-1] for name in units]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert np.count_nonzero(expected) >= 6


@pytest.mark.parametrize("version", [2, 3])
def test_a_unit_has_states_forces_and_codes_as_reals(sled, tmp_path, monkeypatch, version):
    quick_units(monkeypatch)
    path = fsm_dyn.export(sled, tmp_path / "sled.fmu", f"fmu{version}", outputs="reals", spare_modes=0)
    assert not validate_fmu(str(path))
    it, known, description = instance(path, tmp_path / "unit")
    variables = {v.name: v for v in description.modelVariables}
    page = fromstring(
        (tmp_path / "unit" / "documentation" / "index.html").read_text().replace('charset="utf-8">', "/>")
    )
    rows = [[cell.text or "" for cell in row] for row in page.iter("tr")]
    assert ["x", "output", "m", "0", "coordinate"] in rows
    assert ["0", "other"] in rows
    real = {2: "Real", 3: "Float64"}[version]
    for name in ("x", "x_dot", "mode", "contact.floor", "contact_floor_normal", "pin_box_B_force_x"):
        assert (variables[name].type, variables[name].causality) == (real, "output"), name
    it.enterInitializationMode()
    it.exitInitializationMode()
    names = ["x_dot", "mode", "contact.floor", "contact.wall", "contact_floor_normal", "contact_floor_friction"]
    speed, mode, floor, wall, normal, friction = it.getFloat64([known[name] for name in names])
    assert (speed, floor, wall) == (2.0, 2.0, 0.0)
    assert mode >= 1.0
    assert (normal, friction) == pytest.approx((2.1 * 9.81, -0.3 * 2.1 * 9.81))
    along = [known["x"], known["x_dot"]]
    changes = it.getDirectionalDerivative([*along, known["contact_floor_normal"]], along, [3.0, 5.0])
    assert list(changes) == pytest.approx([3.0, 5.0, 0.0])
    it.terminate()
    it.freeInstance()


def test_the_header_names_the_codes_of_contacts(sled, tmp_path):
    fsm_dyn.export(sled, tmp_path, listed_modes=True)
    text = (tmp_path / "sled.h").read_text()
    assert "sled_contact_floor = 0, // 0 open, 1 stick, 2 slide" in text
    assert "sled_contact_wall = 1, // 0 open, 1 compressed" in text


def test_a_choice_that_does_not_exist_is_refused(sled, tmp_path):
    with pytest.raises(InputError, match="there are no outputs 'every'"):
        fsm_dyn.export(sled, tmp_path, outputs="every")
    with pytest.raises(InputError, match="a page has no outputs"):
        fsm_dyn.export(sled, tmp_path, "html", outputs="all")
