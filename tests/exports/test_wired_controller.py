"""A mechanism wired to a controller in another program by its forces moves as with the controller in the model."""

import ctypes
from pathlib import Path

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.runtime.abi import Status
from tests.exports.building import Machine, quick_units
from tests.exports.importer import co_simulation

PERIOD, END, GOAL = 2e-3, 0.5, 5.0  # s, s, N

#: A block pressed on an elastic plate by a force that a controller sets, every 2 ms, from the force of the contact.
MODEL = """
fsm_dyn: 1
name: press
parameters: {m: 0.2 kg, k: 2000 N/m, d: 20 N*s/m}
coordinates: {x: m}
points: {P: {from: O, at: x*N.x}}
bodies: {block: {center: P, mass: m}}
contacts: {plate: {gap: x, compliant: {stiffness: k, exponent: 1}}}
loads: [{force: -drive*N.x, at: P}, {damper: {coordinate: x, damping: d}}]
initial: {x: 4 mm}
"""
OUTSIDE = "inputs: {drive: N}\n"
INSIDE = """
controllers:
  servo:
    period: 2 ms
    inputs: {f: {value: "max(-k*x, 0 N)"}}
    memory: {total: {unit: N*s, start: 0, update: total + 2 ms*(5 N - f)}}
    outputs: {drive: {unit: N, value: "5 N + 20/(1 s)*(total + 2 ms*(5 N - f))"}}
"""


class Servo:
    """The controller outside, in the operations of that inside."""

    def __init__(self):
        self.total = 0.0

    def __call__(self, force):
        self.total += PERIOD * (GOAL - force)
        return GOAL + 20.0 * self.total


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    path = tmp_path_factory.mktemp("press") / "press.yaml"
    path.write_text(MODEL + OUTSIDE)
    return fsm_dyn.compile(path)


@pytest.fixture(scope="module")
def wanted(tmp_path_factory):
    """The states at all samples with the controller in the model."""
    path = tmp_path_factory.mktemp("inside") / "press.yaml"
    path.write_text(MODEL + INSIDE)
    run = fsm_dyn.simulate(fsm_dyn.compile(path), until=END, strategy="compiled")
    assert any("plate" in t.cause for t in run.transitions)
    times = PERIOD * np.arange(1, round(END / PERIOD) + 1)
    found = np.array([run.rows.x[np.searchsorted(run.t, t - 1e-9)] for t in times])
    assert abs(2000 * found[-1, 0] + GOAL) < 0.2, "the force has come near its goal"
    return found


def test_by_a_program_in_c(graph, wanted, tmp_path):
    folder = Path(fsm_dyn.export(graph, tmp_path / "exported", outputs="all"))
    machine, servo = Machine(folder, "press"), Servo()
    names = [line.split()[0] for line in (folder / "press.h").read_text().splitlines() if "press_output_" in line]
    normal = ctypes.c_int64(names.index("press_output_contact_plate_normal"))
    it = ctypes.c_void_p(machine.create())
    found = []
    for k in range(1, len(wanted) + 1):
        drive = servo(machine.lib.fsm_machine_output(it, normal))
        machine.lib.fsm_machine_hold_input(it, ctypes.c_int64(0), ctypes.c_double(drive))
        assert machine.advance(it.value, PERIOD * k) == Status.DONE
        found.append(machine.state(it.value, 2))
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("version", [2, 3])
def test_by_an_importer_of_units(graph, wanted, version, tmp_path, monkeypatch):
    quick_units(monkeypatch)
    path = fsm_dyn.export(graph, tmp_path / "press.fmu", f"fmu{version}", outputs="all")
    it, variables = co_simulation(path, tmp_path / "unit")
    known, servo = {name: v.valueReference for name, v in variables.items()}, Servo()
    it.enterInitializationMode()
    it.exitInitializationMode()
    found = []
    for k in range(len(wanted)):
        it.setReal([known["drive"]], [servo(it.getReal([known["contact_plate_normal"]])[0])])
        it.doStep(currentCommunicationPoint=PERIOD * k, communicationStepSize=PERIOD)
        found.append(it.getReal([known["x"], known["x_dot"]]))
    it.terminate()
    it.freeInstance()
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)
