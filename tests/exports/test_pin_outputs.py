"""Forces in connections as outputs of exports."""

import base64
import json
import shutil
import subprocess

import fmpy
import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.exports.export import prepared
from fsm_dyn.exports.html import BINARY, page_data
from fsm_dyn.live.tick import TickColumns
from fsm_dyn.page.broadcast import plain
from fsm_dyn.page.frames import FrameEncoder
from fsm_dyn.page.report import bundled
from tests.exports.building import built, printed, quick_units
from tests.exports.importer import Importer
from tests.physics.test_pin_entries import shipped

PINS = {"small_end": {"outputs": ["force", "force_x"]}, "crank_pin": {"outputs": ["torque_z", "drive"]}}
COLUMNS = ["pin.small_end.force", "pin.small_end.force_x", "pin.crank_pin.torque_z", "pin.crank_pin.drive"]


@pytest.fixture(scope="module")
def crank():
    return fsm_dyn.compile(shipped("slider_crank", pins=PINS))


def test_outputs_of_c99_are_those_of_the_run(crank, tmp_path):
    fsm_dyn.export(crank, tmp_path)
    _, _, values = printed(built(tmp_path, "slider_crank"))
    run = fsm_dyn.simulate(crank)
    found = [values[f"output {name.replace('.', '_')}"] for name in COLUMNS]
    np.testing.assert_allclose(found, [run[name][-1] for name in COLUMNS], rtol=1e-12)


def test_outputs_of_a_unit_with_their_derivatives(crank, tmp_path, monkeypatch):
    """A unit gives the forces of the run; their directional derivatives are those of central differences."""
    quick_units(monkeypatch)
    path = fsm_dyn.export(crank, tmp_path, "fmu3") / "slider_crank.fmu"
    units = {v.name: v.unit for v in fmpy.read_model_description(str(path)).modelVariables}
    assert (units["pin_small_end_force_x"], units["pin_crank_pin_torque_z"]) == ("N", "N*m")
    importer = Importer(path, tmp_path / "unit")
    importer.run(0.01)
    it, known, time = importer.it, importer.known, importer.times[-1]
    names = [name.replace(".", "_") for name in COLUMNS]
    states = [known[x] for x in known if f"der({x})" in known]
    unknowns, x = [known[name] for name in names], np.array(it.getFloat64(states))
    run = fsm_dyn.simulate(crank, 0.01, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(it.getFloat64(unknowns), [run[name][-1] for name in COLUMNS], rtol=1e-7)

    def values(moved):
        importer.place(time, moved)
        return np.array(it.getFloat64(unknowns))

    along, h = np.random.default_rng(2).normal(size=x.size), 1e-6
    expected = (values(x + h * along) - values(x - h * along)) / (2.0 * h)
    values(x)
    found = it.getDirectionalDerivative(unknowns, states, along.tolist())
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


# The quantities of a page after a run, from its kernels.
QUANTITIES = """
const { data, runtime, model } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const { Machine } = module_machine, { MachineFrames } = module_machine_frames;
const bytes = (text) => Buffer.from(text, "base64");
const machine = new Machine(data.machine, bytes(runtime), bytes(model)), frames = new MachineFrames(data, machine);
machine.advance(data.machine.until);
const report = frames.report();
const found = frames.values(frames.full(), report, report.subarray(...frames.outputs.outputs));
console.log(JSON.stringify({ names: data.model.quantities.map(({ name }) => name), found: Array.from(found) }));
"""


def test_quantities_of_a_page_are_those_of_the_run(crank):
    """In the page of a model by its kernels, and on the live page by the encoder of display frames."""
    if not shutil.which("node"):
        pytest.skip("no node")
    data, module = page_data(prepared(crank), crank, own_ports=False)
    whole = {"data": data, "runtime": base64.b64encode(BINARY.read_bytes()).decode(),
             "model": base64.b64encode(module).decode()}  # fmt: skip
    script = bundled("machine") + bundled("machine_frames") + QUANTITIES
    done = subprocess.run(["node", "-e", script], input=json.dumps(plain(whole)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert len(told["names"]) == len(told["found"])
    values, run = dict(zip(told["names"], told["found"], strict=True)), fsm_dyn.simulate(crank)
    np.testing.assert_allclose([values[name] for name in COLUMNS], [run[name][-1] for name in COLUMNS], rtol=1e-11)

    layout = crank.automaton.terms.layout
    encoder = FrameEncoder(crank, TickColumns(layout.w, layout.x, 0, ()), run.rows.x[0], run.rows.context[0])
    units = {quantity.name: quantity.unit for quantity in encoder.quantities.all}
    assert [units[name] for name in COLUMNS] == ["N", "N", "N*m", "N*m"]
    for k in (0, len(run) // 2):
        shown = dict(zip(units, encoder.values((), run.rows.x[k], run.rows.context[k]), strict=True))
        np.testing.assert_allclose([shown[name] for name in COLUMNS], [run[name][k] for name in COLUMNS], rtol=1e-11)
