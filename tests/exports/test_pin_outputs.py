"""Forces in connections as outputs of exports."""

import fmpy
import numpy as np
import pytest

import fsm_dyn
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
