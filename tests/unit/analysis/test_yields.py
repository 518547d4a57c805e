"""Samples of tolerances, and yields against a closed form: a bounce whose height is linear in one parameter."""

import numpy as np
import pytest
import xarray
from scipy.stats import norm

import fsm_dyn
from fsm_dyn.analysis.study import tolerance_study
from fsm_dyn.analysis.study_results import ALL, wilson
from fsm_dyn.analysis.study_variables import sampled_deviations
from fsm_dyn.core.errors import InputError
from fsm_dyn.language.evaluate import Deviation
from fsm_dyn.language.loader import load

TEXT = """
fsm_dyn: 1
name: ball
parameters:
  h: {normal: 1 m, sigma: 0.05 m}
  e: 0.5
coordinates: {y: m}
points:
  C: {from: O, at: y*N.y}
bodies:
  ball: {center: C, mass: 1 kg}
contacts:
  ground: {gap: y, restitution: e}
loads: [{gravity: -9.81 m/s^2*N.y}]
initial: {y: h}
requirements:
  fast: peak(y_dot) > 2.1694
  strikes: eventually ground closes before 2 s
"""
TEXT = TEXT.replace("2.1694", "2.1694 m/s")
# the speed after the first impact is e sqrt(2 g h): fast enough from this height on
LEAST = (2.1694 / 0.5) ** 2 / (2.0 * 9.81)
SHARE = 1.0 - norm.cdf((LEAST - 1.0) / 0.05)


@pytest.fixture(scope="module")
def ball():
    return fsm_dyn.compile(load("ball", text=TEXT))


def test_samples_have_their_distributions_and_depend_on_the_seed_alone():
    wanted = {"a": Deviation(-1.0, 3.0), "b": Deviation(sigma=2.0)}
    for sample in ("random", "lhs", "sobol"):
        found = sampled_deviations(wanted, sample, 4096, 7)
        again = sampled_deviations(wanted, sample, 4096, 7)
        other = sampled_deviations(wanted, sample, 4096, 8)
        assert all(found[name].tobytes() == again[name].tobytes() != other[name].tobytes() for name in wanted)
        # five standard errors of 4096 independent points; the others err less
        assert found["a"].mean() == pytest.approx(1.0, abs=5 * 4 / np.sqrt(12 * 4096))
        assert found["b"].std() == pytest.approx(2.0, abs=5 * 2 / np.sqrt(2 * 4096))
        assert found["a"].min() >= -1.0
        assert found["a"].max() <= 3.0


def test_wilson_interval_solves_its_equation():
    """The bounds are shares with a distance of 1.96 of their standard errors from the one found (Wilson 1927)."""
    for met, n in ((3, 10), (81, 263), (9, 10)):
        for bound in wilson(met, n):
            error = np.sqrt(bound * (1.0 - bound) / n)
            assert abs(met / n - bound) == pytest.approx(norm.ppf(0.975) * error, abs=1e-12)
    assert wilson(0, 10)[0] == pytest.approx(0.0, abs=1e-15)
    assert wilson(10, 10)[1] == pytest.approx(1.0, abs=1e-15)


def test_the_yield_of_a_threshold_on_a_normal_parameter(ball):
    """Over 20 seeds the 95 % interval fails once on average, and more than 5 times once in 3,000."""
    outside = 0
    for seed in range(20):
        found = tolerance_study(ball, n=32, seed=seed, until=0.6, jobs=1).estimate("fast")
        outside += not found.lower <= SHARE <= found.upper
    assert outside <= 5


def test_sobol_points_err_less_and_equal_seeds_give_equal_bytes(ball):
    first = tolerance_study(ball, n=256, seed=3, sample="sobol", until=0.6, jobs=1)
    estimate = first.estimate("fast")
    assert estimate.lower < SHARE < estimate.upper
    low, high = wilson(estimate.met, 256)
    assert estimate.upper - estimate.lower < 0.5 * (high - low)
    margins = 0.5 * np.sqrt(2.0 * 9.81 * first.parameters["h"]) - 2.1694
    assert first.margins["fast"] == pytest.approx(margins, abs=1e-7)  # of integration to the default tolerance
    again = tolerance_study(ball, n=256, seed=3, sample="sobol", until=0.6, jobs=1)
    assert again.margins["fast"].tobytes() == first.margins["fast"].tobytes()


def test_a_study_of_a_sample_is_a_tolerance_study(ball):
    found = fsm_dyn.study(ball, sample="lhs", n=64, seed=3, until=1.0, requirements=["fast"], jobs=1)
    same = tolerance_study(ball, n=64, seed=3, sample="lhs", until=1.0, requirements=["fast"], jobs=1)
    assert found.margins["fast"].tobytes() == same.margins["fast"].tobytes()
    assert set(found.to_dataset().sizes) >= {"run"}
    with pytest.raises(InputError, match="grd"):
        fsm_dyn.study(ball, sample="grd", n=4, until=1.0)


def test_undecided_runs_are_counted_apart(ball):
    found = tolerance_study(ball, n=16, seed=0, until=0.1, jobs=1)
    estimate = found.estimate(ALL)
    assert (estimate.met, estimate.violated, estimate.undecided) == (0, 16, 0)  # too slow until then
    late = found.estimate("strikes")
    assert (late.met, late.violated, late.undecided) == (0, 0, 16)
    assert np.isnan(late.value)


def test_what_cannot_be_studied_is_refused(ball):
    with pytest.raises(InputError, match="8 times a power of two"):
        tolerance_study(ball, n=1000, seed=0, sample="sobol")
    with pytest.raises(InputError, match="did you mean 'sobol'"):
        tolerance_study(ball, n=8, seed=0, sample="sobel")
    bare = fsm_dyn.compile(load("ball", text=TEXT.replace("{normal: 1 m, sigma: 0.05 m}", "1 m")))
    with pytest.raises(InputError, match="no parameter of the model has a tolerance"):
        tolerance_study(bare, n=8, seed=0)
    free = fsm_dyn.compile(load("ball", text=TEXT.split("requirements")[0]))
    with pytest.raises(InputError, match="the model has no requirements"):
        tolerance_study(free, n=8, seed=0)


def test_processes_give_the_same_bytes(ball):
    one = tolerance_study(ball, n=16, seed=5, until=0.6, jobs=1)
    two = tolerance_study(ball, n=16, seed=5, until=0.6, jobs=2)
    assert one.margins["fast"].tobytes() == two.margins["fast"].tobytes()
    assert (one.verdicts, one.sequences, one.outcomes) == (two.verdicts, two.sequences, two.outcomes)


def test_what_decides_and_where_it_first_fails(ball):
    """The speed at the ground grows with the height alone: rank correlation 1, and the failure nearest to 1 m."""
    found = tolerance_study(ball, n=64, seed=2, until=0.6, jobs=1)
    assert found.sensitivity("fast") == {"h": pytest.approx(1.0)}
    heights, failed = found.parameters["h"], np.array(found.verdicts["fast"]) == "violated"
    nearest = found.nearest_failure("fast")
    assert abs(heights[nearest] - 1.0) == np.abs(heights[failed] - 1.0).min()
    assert sum(n for counts in found.mode_sequences().values() for n in counts.values()) == 64
    headings, rows = found.table()
    assert headings == [
        "h",
        "outcome",
        "end",
        "mode",
        "transitions",
        "fast",
        "fast margin",
        "strikes",
        "strikes margin",
        "modes",
    ]
    assert [row[0] for row in rows] == heights.tolist()
    for ask in (found.sensitivity, found.estimate, found.counts, found.mode_sequences, found.parting):
        with pytest.raises(InputError, match="did you mean 'fast'"):
            ask("fist")
    with pytest.raises(InputError, match="no requirement 'all'"):
        found.sensitivity(ALL)


def test_the_data_set_contains_all_runs_and_goes_through_a_file(ball, tmp_path):
    found = tolerance_study(ball, n=16, seed=4, until=0.6, jobs=1)
    data = found.to_dataset()
    assert data["h"].values.tobytes() == found.parameters["h"].tobytes()
    assert data["margin_fast"].values.tobytes() == found.margins["fast"].tobytes()
    assert (data["h"].attrs, data["margin_fast"].attrs) == ({"units": "m"}, {"units": "m/s"})
    assert tuple(data["verdict_all"].values) == found.verdicts[ALL]
    table = data["modes"].values[data["sequence"].values]
    assert table.tolist() == [" > ".join(modes) for modes in found.sequences]
    data.to_netcdf(tmp_path / "study.nc", engine="h5netcdf")
    with xarray.open_dataset(tmp_path / "study.nc", engine="h5netcdf") as again:
        assert again.identical(data)
