"""Fits of own recordings with noise: the intervals hold, and undetermined parameters are named."""

import csv

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.language.loader import load

SPRING = """
fsm_dyn: 1
name: damped
parameters: {m: 2 kg, k: 80 N/m, c: 1 N*s/m, e: 0.7, h: 0.1 m}
coordinates: {x: m}
points: {C: {from: O, at: x*N.x}}
bodies: {weight: {center: C, mass: m}}
contacts: {wall: {gap: x + 0.05 m, restitution: e}}
loads: [{spring: {coordinate: x, stiffness: k, damping: c}}]
initial: {x: h}
outputs: {pull: k*x}
"""
TRUE = {"k": 80.0, "c": 1.0, "e": 0.7}
FIRST = {"k": 76.0, "c": 1.2, "e": 0.73}  # start of searches
T = np.linspace(0.0, 2.0, 81)[1:]
NOISE = {"x": 5e-4, "x_dot": 4e-3}  # m, m/s


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile(load("damped", text=SPRING))


@pytest.fixture(scope="module")
def exact(graph):
    return fsm_dyn.simulate(graph, until=2.0, rtol=1e-10, atol=1e-12).sample(T)


def write(path, columns):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([list(columns), *zip(*columns.values(), strict=True)])
    return path


def recording(path, exact, seed):
    random = np.random.default_rng(seed)
    columns = {f"{name} [mm]" if name == "x" else name: exact[name] + random.normal(0.0, sigma, len(T))
               for name, sigma in NOISE.items()}  # fmt: skip
    columns["x [mm]"] = 1e3 * columns["x [mm]"]
    return write(path, {"t": T, **columns})


def times_within(graph, exact, folder, seeds, names):
    """How often each parameter is within its interval."""
    counts, first = dict.fromkeys(names, 0), {name: FIRST[name] for name in names}
    for seed in seeds:
        found = fsm_dyn.fit(graph, recording(folder / "measured.csv", exact, seed), vary=names, parameters=first)
        assert not found.undetermined
        for name in names:
            lower, upper = found.intervals[name]
            counts[name] += lower <= TRUE[name] <= upper
    return counts


def test_the_intervals_hold_over_seeds(graph, exact, tmp_path):
    """Of 40 intervals with 95 % the true value is in 33 or more with probability 0.999."""
    counts = times_within(graph, exact, tmp_path, range(40), ["k", "e"])
    assert min(counts.values()) >= 33, counts


@pytest.mark.long
def test_the_intervals_hold_over_a_hundred_seeds(graph, exact, tmp_path):
    """Of 100 with probability 0.999 in 87 or more."""
    counts = times_within(graph, exact, tmp_path, range(100, 200), list(TRUE))
    assert min(counts.values()) >= 87, counts


def test_a_recording_without_noise_gives_the_parameters_back(graph, exact, tmp_path):
    found = fsm_dyn.fit(
        graph, write(tmp_path / "m.csv", {"time": T, "x": exact["x"]}), vary=list(TRUE), parameters=FIRST
    )
    for name, value in TRUE.items():
        assert found.values[name] == pytest.approx(value, rel=1e-6)
    assert found.residuals["x"] < 1e-8


def test_what_the_data_cannot_determine_is_named(graph, exact, tmp_path):
    """A free motion determines the ratios of mass, stiffness and damping, and no unreached wall.

    The shares are relative to the first values, 0.2 % away from the damping found.
    """
    early = T < 0.15
    random = np.random.default_rng(1)
    measured = write(tmp_path / "m.csv", {"t": T[early], "x": exact["x"][early] + random.normal(0, 1e-6, early.sum())})
    found = fsm_dyn.fit(graph, measured, vary=["m", "k", "c", "e"])
    assert len(found.undetermined) == 2
    assert {"e"} in [set(direction) for direction in found.undetermined]
    together = next(direction for direction in found.undetermined if "m" in direction)
    assert together == pytest.approx(dict.fromkeys(("m", "k", "c"), 3 ** (-0.5)), abs=5e-3)
    assert all(np.isinf(found.intervals[name]).all() for name in ("m", "k", "c", "e"))
    assert "cannot determine: e +1.00" in str(found)


def test_an_output_and_empty_cells_and_bounds(graph, exact, tmp_path):
    columns = {"t": T, "pull [N]": exact["pull"].tolist(), "x_dot": exact["x_dot"].tolist()}
    columns["pull [N]"][3] = columns["x_dot"][7] = ""
    found = fsm_dyn.fit(graph, write(tmp_path / "m.csv", columns), vary={"k": ("70 N/m", "90 N/m"), "c": (0.5, 1.1)})
    assert found.values["k"] == pytest.approx(80.0, rel=1e-6)


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("t,x\n", "no rows", 0),
        ("t,z\n0.1,1\n", "'z' is no coordinate", 1),
        ("x,x_dot\n0.1,1\n", "has a time", 1),
        ("t,x,x\n0.1,1,1\n", "once each", 1),
        ("t,x [N]\n0.1,1\n", "unit of 'x' does not fit", 1),
        ("t,x [furlongs!]\n0.1,1\n", "not a unit", 1),
        ("t,x\n0.1,1\n\n0.2,one\n", "a cell of 'x' is no number", 4),
        ("t,x\n0.1,1\n0.2,1,1\n", "another number of cells", 3),
        ("t,x\n0.2,1\n0.1,1\n", "times of a measured motion increase", 3),
        ("t,x\n-0.2,1\n0.1,1\n", "times of a measured motion increase", 2),
        ("t,x\n0.1,0.1\n", "too few measured values", 0),
    ],
)
def test_a_file_that_does_not_fit_is_refused_with_its_line(graph, tmp_path, text, message, line):
    path = tmp_path / "measured.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        fsm_dyn.fit(graph, path, vary=["k", "c"])
    assert caught.value.where.line == line
