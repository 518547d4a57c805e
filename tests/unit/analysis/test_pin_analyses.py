"""Fits to a load cell, worst cases and margins of limits of the forces in connections, against closed forms."""

import csv

import numpy as np
import pytest

import fsm_dyn

G, L = 9.81, 0.6
ROD = {
    "fsm_dyn": 1,
    "name": "rod",
    "parameters": {"m": "0.5 kg +- 0.1 kg", "l": f"{L} m", "start": "1 rad +- 0.2 rad"},
    "joints": {"pin": {"revolute": {"child": "B", "at": "O", "axis": "N.z"}}},
    "points": {"C": {"from": "O", "at": "-l/2*B.y"}},
    "bodies": {"rod": {"frame": "B", "center": "C", "mass": "m", "inertia": {"zz": "m*l**2/12"}}},
    "loads": [{"gravity": f"-{G} m/s^2*N.y"}],
    "initial": {"pin": "start"},
}
REQUIRED = {"strong": "peak(pin.pin.force) < 9 N", "soft": "peak(pin.pin.impulse) < 0.8 N*s"}


def test_mass_from_a_load_cell(tmp_path):
    """The force in a pin determines the mass of what swings on it, which the motion does not."""
    graph = fsm_dyn.compile(ROD)
    t = np.linspace(0.0, 0.3, 13)
    force = fsm_dyn.simulate(graph, 0.3, rtol=1e-10, atol=1e-12).sample(t)["pin.pin.force_y"]
    noise = np.random.default_rng(5).normal(0.0, 5e-3, len(t))
    path = tmp_path / "cell.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["t", "pin.pin.force_y [mN]"], *zip(t, 1e3 * (force + noise), strict=True)])
    found = fsm_dyn.fit(graph, path, vary=["m"], parameters={"m": 0.6})
    low, high = found.intervals["m"]
    assert low < 0.5 < high < low + 0.01
    assert found.residuals["pin.pin.force_y"] == pytest.approx(5e-3, rel=0.3)
    path.write_text("t,pin.pim.force\n0,1\n1,1\n2,1\n")
    with pytest.raises(fsm_dyn.InputError, match="no connection 'pim'"):
        fsm_dyn.fit(graph, path, vary=["m"])
    path.write_text("t,pin.pin.force [kg]\n0,1\n1,1\n2,1\n")
    with pytest.raises(fsm_dyn.InputError, match=r"the unit of .* does not fit"):
        fsm_dyn.fit(graph, path, vary=["m"])


def test_worst_case_of_the_force_in_a_pin():
    """The pin carries m g (1 + 3/2 (1 - cos start)) at most: the worst rod is the heaviest from the highest start."""
    graph = fsm_dyn.compile({**ROD, "requirements": REQUIRED})
    found = fsm_dyn.worst_case(graph, "strong", runs=40, until=1.0)
    worst = 0.6 * G * (1.0 + 1.5 * (1.0 - np.cos(1.2)))
    assert found.values == pytest.approx({"m": 0.6, "start": 1.2}, abs=1e-2)
    assert found.margin == pytest.approx(9.0 - worst, abs=2e-2)


def test_margins_of_a_limit_of_the_impulse_in_a_pin():
    """A rod from rest that strikes a block at half its length: the impulse is that of the closed form."""
    points = {**ROD["points"], "S": {"from": "O", "at": "-l/2*B.y"}}
    contacts = {"block": {"gap": "dot(pos(S), N.x)", "restitution": 0.5}}
    graph = fsm_dyn.compile({**ROD, "points": points, "contacts": contacts, "requirements": REQUIRED})
    starts = [0.8, 1.0, 1.2]
    found = fsm_dyn.study(graph, {"start": starts}, requirements=["soft"], until=0.6)
    for start, case in zip(starts, found.rows, strict=True):
        jump = 1.5 * np.sqrt(3.0 * G / L * (1.0 - np.cos(start)))
        impulse = 0.5 * L**2 / 3.0 * jump / (L / 2.0) - 0.5 * L / 2.0 * jump
        assert case.margins["soft"] == pytest.approx(0.8 - impulse, rel=1e-6)
