"""Loads and impulses of shipped models and their variants against closed forms and momentum by hand."""

from pathlib import Path

import numpy as np
import pytest
import yaml

import fsm_dyn
from fsm_dyn.cli.run import loads_command
from fsm_dyn.run.energy import periods_table

MODELS = Path(__file__).parents[2] / "yaml_models"
G = 9.81


def shipped(name, **sections):
    return {**yaml.safe_load((MODELS / f"{name}.yaml").read_text(encoding="utf-8")), **sections}


def run_of(model, until, **options):
    return fsm_dyn.simulate(fsm_dyn.compile(model), until, **options)


def agree(found, wanted, digits=1e-6, last=6e-7):
    """Compare with published numbers: ``last`` is half of their last decimal."""
    np.testing.assert_allclose(found, wanted, rtol=digits, atol=last)


def test_ball_on_felt():
    """Contact time, impulse and ratio of peak and mean; the impulse is the jump of momentum less that of gravity."""
    run = run_of("felt_drop", 0.3)
    m = run.model.values["m"]
    first, second = run.contact_periods
    agree(first.duration, 2.906853e-3, 2e-7)
    agree(first.impulse, 0.01472902, 5e-7)
    agree(first.peak_over_mean, 2.327643)
    for period, closing in zip((first, second), (0, 2), strict=True):
        before, after = (run.transitions[k].u_before[0] for k in (closing, closing + 1))
        assert (period.begin, period.end) == tuple(run.transitions[k].time for k in (closing, closing + 1))
        assert period.impulse == pytest.approx(m * (after - before) + m * G * period.duration, rel=1e-8)
        assert period.whole
        assert period.peak == pytest.approx(run.extremes("lambda.felt").maximum, rel=1e-9) or period is second
    assert f"{first.impulse:.6g}" in periods_table(run.contact_periods)


def test_compression_that_the_run_cuts():
    """A ball at rest on a linear spring of felt carries its weight as long as the run lasts."""
    model = shipped("felt_drop", modes={"pressed": {"felt": "compressed"}}, initial={"y": "-1 mm"})
    model["parameters"] |= {"K": "8 g*9.81 m/s^2/(1 mm)", "p": "1", "c": "0 s/m"}
    (period,) = run_of(model, 0.25).contact_periods
    assert (period.begin, period.end, period.whole) == (0.0, 0.25, False)
    assert period.mean == pytest.approx(8e-3 * G, rel=1e-9)
    assert period.peak_over_mean == pytest.approx(1.0, rel=1e-9)


def test_rigid_contacts_have_no_periods():
    assert run_of("pendulum_with_stop", 0.5).contact_periods == ()


def test_bar_on_its_ends():
    run = run_of("carried_bar", 0.02)
    for name in ("left_end", "right_end"):
        agree(run.pins[name].force[0], [0.0, 0.4 * G / 2.0, 0.0], 1e-10)
        agree(run.pins[name].torque[0], np.zeros(3), 1e-10)
    assert not any(kind in name for name in run.pins for kind in ("N_bar", "N_B"))  # it is free


@pytest.fixture(scope="module")
def stopped():
    """Return a slider-crank whose slider strikes a stop."""
    model = shipped("slider_crank", contacts={"stop": {"gap": "0.245 m - guide", "restitution": 0.3}})
    model["initial"] |= {"crank_pin_dot": "-25 rad/s"}
    return run_of(model, 0.012)


def test_impulses_in_a_slider_crank(stopped):
    (hit,) = stopped.transitions
    agree(hit.time, 0.011579300, 1e-9, 6e-10)
    agree(hit.pin_impulse["crank_pin"][:2], [15.805242, 0.376246])
    agree(hit.pin_impulse["big_end"][:2], [16.465075, -1.165991])
    agree(hit.pin_impulse["small_end"][:2], [16.891455, -1.782886])


def test_momentum_of_a_slider_crank_by_hand(stopped):
    """Each part of the linkage gets the momentum that its connections give it, by velocities from the geometry."""
    (hit,) = stopped.transitions
    crank, rod = (stopped.at(hit.time).q[k] for k in (0, 1))
    rod += crank
    values = stopped.model.values
    a1, a2, m1, m2, m3 = (values[name] for name in ("a1", "a2", "m1", "m2", "m3"))
    along = {angle: np.array([np.cos(angle), np.sin(angle)]) for angle in (crank, rod)}
    across = {angle: np.array([-np.sin(angle), np.cos(angle)]) for angle in (crank, rod)}
    jump = (hit.u_after - hit.u_before)[0]
    turned = -a1 * across[crank][1] * jump / (a2 * across[rod][1])  # the slider keeps its height
    centre = a1 * across[crank] * jump + a2 / 3.0 * across[rod] * turned
    slider = a1 * across[crank] * jump + a2 * across[rod] * turned
    big, small, pin = (hit.pin_impulse[name][:2] for name in ("big_end", "small_end", "crank_pin"))
    np.testing.assert_allclose(pin - big, m1 * a1 / 2.0 * across[crank] * jump, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(big - small, m2 * centre, rtol=1e-9, atol=1e-12)
    ahead = small + hit.pin_impulse["guide"][:2]
    np.testing.assert_allclose(ahead, m3 * slider, rtol=1e-9, atol=1e-12)

    def moment(arm, force):
        return arm[0] * force[1] - arm[1] * force[0]

    gained = moment(-a2 / 3.0 * along[rod], big) - moment(2.0 / 3.0 * a2 * along[rod], small)
    assert gained == pytest.approx(m2 * a2**2 / 12.0 * turned, rel=1e-9)


def test_rod_without_mass_is_pulled_along_itself():
    pins = run_of("slider_crank", 0.005, parameters={"m2": 0.0}).pins
    for name in ("big_end", "small_end"):
        pull = pins[name].wrench(frame="rod")
        agree(pull[0, 0], -8.645240)
        agree(pull[:, 1:], np.zeros_like(pull[:, 1:]), 1e-10, 1e-10)


ROD = {
    "fsm_dyn": 1,
    "name": "rod",
    "parameters": {"m": "0.5 kg", "l": "0.6 m"},
    "joints": {"pin": {"revolute": {"child": "B", "at": "O", "axis": "N.z"}}},
    "points": {"C": {"from": "O", "at": "-l/2*B.y"}},
    "bodies": {"rod": {"frame": "B", "center": "C", "mass": "m", "inertia": {"zz": "m*l**2/12"}}},
    "loads": [{"gravity": "-9.81 m/s^2*N.y"}],
}


def test_rod_on_a_pin_with_friction():
    """The moment of the pin is the coefficient times the radius of the journal times its force."""
    joint = {"revolute": {"child": "B", "at": "O", "axis": "N.z", "radius": "20 mm", "friction": 0.1}}
    model = {**ROD, "joints": {"pin": joint}, "initial": {"pin": "1 rad", "pin_dot": "2 rad/s"}}
    pin = run_of(model, 0.01).pins["pin"]
    agree(pin.force[0, :2], [-2.186620, 2.610031])
    agree(pin.torque[0, 2], -0.00680987, 1e-6, 6e-9)
    np.testing.assert_allclose(pin.torque[:, 2], -0.1 * 0.02 * pin.magnitude, rtol=1e-9)
    np.testing.assert_allclose(pin.drive, pin.torque[:, 2], rtol=1e-12)


@pytest.mark.parametrize("struck", [0.3, 0.4, 0.55])
def test_cradle_of_rods(struck):
    """Of two equal rods one hands its motion on: each pin gets the momentum of its rod less the impulse."""
    joint = {"revolute": {"child": "D", "at": "Q", "axis": "N.z"}}
    points = {**ROD["points"], "Q": {"from": "O", "at": "0.1 m*N.x"}, "E": {"from": "Q", "at": "-l/2*D.y"},
              "S": {"from": "O", "at": f"-{struck} m*B.y"}, "T": {"from": "Q", "at": f"-{struck} m*D.y"}}  # fmt: skip
    model = {
        **ROD,
        "joints": {**ROD["joints"], "other": joint},
        "points": points,
        "bodies": {**ROD["bodies"], "second": {**ROD["bodies"]["rod"], "frame": "D", "center": "E"}},
        "contacts": {"touch": {"gap": "dot(pos(T, S), N.x) - 0.1 m", "restitution": 1.0}},
        "initial": {"pin": "-0.7 rad"},
    }
    run = run_of(model, 0.6)
    hit = next(item for item in run.transitions if item.impulse)
    m, length = 0.5, 0.6
    speed = float(hit.u_before[0])
    assert speed**2 == pytest.approx(3.0 * G / length * (1.0 - np.cos(0.7)), rel=1e-7)
    np.testing.assert_allclose(hit.u_after, [0.0, speed], atol=1e-9)
    impulse = m * length**2 / 3.0 * speed / struck
    agree(hit.impulse["touch"], [impulse], 1e-7)
    agree(hit.pin_impulse["pin"][:2], [impulse - m * length / 2.0 * speed, 0.0], 1e-7)
    agree(hit.pin_impulse["other"][:2], [m * length / 2.0 * speed - impulse, 0.0], 1e-7)


@pytest.mark.parametrize("name", ["slider_crank", "rolling_disk"])
def test_rounding_is_no_peak(name):
    """A pin in a plane has no torque: the rounding of its force times an arm is not listed."""
    listed = run_of(name, 0.01).peak_loads()
    assert all(item.value > 1e-9 * listed[0].value for item in listed)
    assert {item.name for item in listed if item.quantity == "torque"} <= {"crank_pin", "guide"}


def test_loads_of_a_compliant_contact(capsys):
    loads_command("felt_drop", until=0.3)
    assert "hardest compressions of compliant contacts, of 2" in capsys.readouterr().out
