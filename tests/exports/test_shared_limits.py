"""Limits of shared forces whose signs change on the way hold in units and pages too: a bead between turning faces."""

import itertools
import math
import struct

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.exports.export import prepared
from tests.exports.building import LONG, quick_units
from tests.exports.test_html import in_node
from tests.physics.test_limits_of_shared_forces import UNTIL, bead, starts, time_of_release


def released(count):
    """Beads that leave the faces on the way, with the time by the angles of both cones, s."""
    every = ((given, time_of_release(**given)) for given in starts(40, 3))
    return list(itertools.islice(((given, time) for given, time in every if math.isfinite(time)), count))


def graph_of(order, given):
    written = bead(order)
    return fsm_dyn.compile(written | {"parameters": written["parameters"] | given})


@pytest.mark.parametrize(("order", "count"), [("RL", 1), pytest.param("LR", 4, marks=LONG)])
def test_a_page_lets_the_bead_go_when_the_cones_do(order, count):
    for given, time in released(count):
        made = in_node(prepared(graph_of(order, given)))["transitions"]
        times = [struct.unpack("<d", bytes.fromhex(text))[0] for text, *_ in made]
        assert next(each for each in times if each > 0.0) == pytest.approx(time, abs=2e-5), given


@pytest.mark.parametrize(("order", "target"), [("RL", "fmu3"), pytest.param("LR", "fmu2", marks=LONG)])
def test_a_unit_lets_the_bead_go_when_the_cones_do(order, target, tmp_path, monkeypatch):
    fmpy = pytest.importorskip("fmpy")
    from tests.exports.importer import Importer

    quick_units(monkeypatch)
    given, time = released(1)[0]
    path = fsm_dyn.export(graph_of(order, given), tmp_path / "unit", target) / "bead.fmu"
    rows = fmpy.simulate_fmu(
        str(path), fmi_type="CoSimulation", stop_time=UNTIL, output_interval=1e-3, output=["x", "y"]
    )
    held = np.hypot(rows["x"], rows["y"]) < 1e-9
    assert rows["time"][held].max() == pytest.approx(time, abs=5e-3)
    exchanged = Importer(path, tmp_path / "exchange")
    exchanged.run(UNTIL)
    assert next(at for at, *_ in exchanged.events if at > 0.0) == pytest.approx(time, abs=2e-5)
