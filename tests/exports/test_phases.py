"""Phases in exports, against the visits of runs in Python with all short ones."""

import ctypes
import subprocess
from itertools import pairwise

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.language import loader, models
from fsm_dyn.runtime.abi import Status
from tests.exports.building import LONG, Machine, built, exported, quick_units
from tests.shipped import mechanism

QUICK = {"latch_door", "push_button", "geneva_drive"}
NAMED = [name for name in models.names() if mechanism(name).phases]
ALL = [pytest.param(name, marks=() if name in QUICK else LONG) for name in NAMED]

BALL = """
fsm_dyn: 1
name: press
parameters: {least: 3 N, e: 0.2}
coordinates: {x: m, y: m}
inputs: {push: {unit: N, expression: "8 N*sin(3*t/(1 s))"}}
outputs: {height: y - 0.1*x}
points: {P: {from: O, at: x*N.x + y*N.y}}
bodies: {ball: {center: P, mass: 0.5 kg}}
contacts: {ground: {gap: y, slip: x_dot, friction: 0.3, restitution: e}}
loads: [{gravity: -9.81 m/s^2*N.y}, {force: push*N.x, at: P}]
modes: {up: {ground: open}}
phases:
  heavy:   {when: ground.friction > 1 N and abs(x_dot) > 0.1 m/s}
  pressed: {when: ["ground.normal > least and push < 2 N", "height < -0.05 m"], until: push > 1 N}
  thrown:  {when: mode == up, after: [pressed, none yet]}
  none yet: {when: x_dot >= 0 m/s, shortest: 0 s}
initial: {x: 0 m, y: 0.1 m}
"""


def run_of(graph):
    return fsm_dyn.Simulator(graph).run(strategy="compiled", on_failure="return")


def printed_phases(program):
    lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    found = [line.split(" ", 2)[1:] for line in lines if line.startswith("phase ")]
    return [(name, float(time)) for time, name in found]


def expected(run):
    return [(visit.name, visit.begin) for visit in run.reading.all_visits]


def check_same(found, run):
    assert [name for name, _ in found] == [name.replace("no phase", "none") for name, _ in expected(run)]
    np.testing.assert_allclose([time for _, time in found], [time for _, time in expected(run)], atol=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_the_same_visits_as_in_python(name, tmp_path):
    graph, folder = exported(name, tmp_path)
    check_same(printed_phases(built(folder, name)), run_of(graph))


def test_phases_by_forces_outputs_inputs_and_modes(tmp_path):
    graph = fsm_dyn.compile(loader.load(text=BALL))
    folder = fsm_dyn.export(graph, tmp_path / "press")
    run = run_of(graph)
    assert {visit.name for visit in run.reading.all_visits} >= {"heavy", "pressed", "thrown", "none yet"}
    check_same(printed_phases(built(folder, "press")), run)


def test_the_phase_of_a_machine_at_any_time_and_after_restoring(tmp_path):
    graph, folder = exported("latch_door", tmp_path)
    run, names = run_of(graph), [*graph.automaton.mechanism.phases]
    machine = Machine(folder, "latch_door")
    lib = machine.lib
    lib.fsm_machine_phase.restype = lib.fsm_machine_saved_bytes.restype = ctypes.c_int64
    lib.fsm_machine_restore.restype = ctypes.c_bool
    one, other = (ctypes.c_void_p(machine.create()) for _ in range(2))
    saved = ctypes.create_string_buffer(lib.fsm_machine_saved_bytes(one))

    def at(machine_, time):
        assert machine.advance(machine_.value, time) == Status.DONE
        return names[lib.fsm_machine_phase(machine_)]

    times = np.linspace(0.001, 2.1, 300)
    visits = run.reading.all_visits
    found = []
    for time in times:
        found.append(at(one, time))
        if len(found) == 150:
            lib.fsm_machine_save(one, saved)
    assert found == [visits.at(time).name for time in times]
    assert lib.fsm_machine_restore(other, saved)
    assert [at(other, time) for time in times[150:]] == found[150:]
    lib.fsm_machine_restart(one)
    assert at(one, 0.01) == found[0]


@pytest.mark.parametrize("target", ["fmu2", "fmu3"])
def test_the_phase_of_a_unit_is_an_output_with_the_names_as_items(target, tmp_path, monkeypatch):
    fmpy = pytest.importorskip("fmpy")
    from tests.exports.importer import Importer, co_simulation

    quick_units(monkeypatch)
    graph = fsm_dyn.compile("latch_door")
    path = fsm_dyn.export(graph, tmp_path, target) / "latch_door.fmu"
    visits = run_of(graph).reading.all_visits
    description = fmpy.read_model_description(str(path))
    (variable,) = (v for v in description.modelVariables if v.name == "phase")
    items = [item.name for item in variable.declaredType.items]
    assert items == ["none", *graph.automaton.mechanism.phases]
    assert (variable.causality, variable.variability, variable.type) == ("output", "discrete", "Enumeration")

    unit, _ = co_simulation(path, tmp_path / "unit")[:2]
    unit.enterInitializationMode()
    unit.exitInitializationMode()
    read = getattr(unit, "getInt64", None) or unit.getInteger
    times = np.linspace(0.0, 2.1, 204)
    found = []
    for begin, end in pairwise(times):
        unit.doStep(begin, end - begin)
        found.append(items[read([variable.valueReference])[0]])
    assert found == [visits.at(time).name for time in times[1:]]

    importer = Importer(path, tmp_path / "exchange", longest=1e-3).run(2.1)
    late = 2e-3  # s, two steps of the importer
    for time, number in zip(importer.times, importer.phases, strict=True):
        assert items[number] in {visit.name for visit in visits if visit.begin <= time and visit.end >= time - late}
    assert {items[number] for number in importer.phases} == {visit.name for visit in visits if visit.duration > late}
