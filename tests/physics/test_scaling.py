"""A watch and a crane: with other lengths, masses and times a mechanism moves alike, and is decided on alike.

All quantities of a model are multiplied by a factor for each base unit.  With powers of 1024 no number is rounded
differently, so runs agree to the last bit; with others they agree to the accuracy of the integration.
"""

import functools

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.language.models import names
from fsm_dyn.language.scales import SI, Numbers, Scales, ScalesOfCases, own_scales
from fsm_dyn.language.values import parameter_values
from tests.physics.scaling import Run, scaled
from tests.shipped import mechanism

K = 1024.0
UNITS = [name for name in names() if mechanism(name).uses_units]
CONTACTS = [name for name in UNITS if mechanism(name).contacts]
# felt, whose force has exponents such as 2.5: their pow is not exact
ROUNDED = {"felt_drop", "piano_action"}
QUICK = ["ball_in_corner", "bouncing_ball", "box_on_table", "cart_on_ramp", "double_pendulum_with_stop", "geneva_drive",
         "latch_door", "newtons_cradle", "pendulum_with_stop", "ratchet", "rimless_wheel", "rocking_block",
         "shopping_cart", "stick_slip_belt", "toggle_switch", "twelve_contacts"]  # fmt: skip
EXACT = [Scales(K, 1.0, 1.0), Scales(1.0 / K, 1.0, 1.0), Scales(1.0, K**2, 1.0), Scales(1.0, K**-2, 1.0),
         Scales(1.0, 1.0, K), Scales(1.0, 1.0, 1.0 / K), Scales(1.0 / K, K**2, 1.0 / K)]  # fmt: skip
ANY = [Scales(1e3, 1e6, 1.0), Scales(1e-3, 1e-6, 1.0), Scales(1e3, 1e-6, 10.0), Scales(1e-3, 1e6, 0.1)]
METHODS = {
    "dopri5": {}, "online": {"strategy": "online"}, "rk4": {"method": "rk4", "step": 1e-3},
    "moreau_jean": {"method": "moreau_jean", "step": 1e-3},
}  # fmt: skip
KERNELS = {"strategy": "compiled"}  # online, the last digits of cart_on_ramp depend on the units
TOLERANCE = 1e-6  # of a coordinate, and of the times of transitions


@functools.cache
def base(name):
    return fsm_dyn.compile(name)


@functools.cache
def other(name, factors):
    return fsm_dyn.compile(scaled(base(name).automaton.mechanism, factors))


def may_step(name, method):
    """Whether time stepping takes the model: no user-defined transitions, sequential impacts or stiff pads."""
    mechanism = base(name).automaton.mechanism
    stiff = any(contact.kind == "compliant" for contact in mechanism.contacts.values())
    return method != "moreau_jean" or not (mechanism.transitions or mechanism.impacts == "sequential" or stiff)


@pytest.mark.parametrize("factors", [EXACT[-1], EXACT[0]], ids=str)
@pytest.mark.parametrize("name", QUICK)
def test_powers_of_1024_give_the_same_bits(name, factors):
    assert Run(base(name), **KERNELS).same_bits(Run(other(name, factors), factors, **KERNELS))


@pytest.mark.parametrize("method", ["online", "rk4", "moreau_jean"])
@pytest.mark.parametrize(
    "name", ["bouncing_ball", "box_on_table", "pendulum_with_stop", "rocking_block", "shopping_cart"]
)
def test_with_every_method(name, method):
    factors, settings = EXACT[-1], METHODS[method]
    if may_step(name, method):
        assert Run(base(name), **settings).same_bits(Run(other(name, factors), factors, **settings))


@pytest.mark.long
@pytest.mark.parametrize("factors", EXACT, ids=str)
@pytest.mark.parametrize("name", [name for name in UNITS if name not in ROUNDED])
def test_all_models_to_the_last_bit(name, factors):
    assert Run(base(name), **KERNELS).same_bits(Run(other(name, factors), factors, **KERNELS))


def told_apart(run):
    """Modes and times of transitions, without bounces nearer to the next transition than the tolerance.

    How many of these are counted before the contact closes is a matter of rounding.
    """
    apart = np.diff(run.times, append=np.inf) > TOLERANCE
    kept = [k for k, (source, target) in enumerate(run.modes) if source != target or apart[k]]
    return [run.modes[k] for k in kept], run.times[kept]


def agree(one, two):
    """Whether two runs make the same transitions at the same times, and end alike."""
    assert one.outcome == two.outcome
    (modes, times), (other_modes, other_times) = (told_apart(run) for run in (one, two))
    assert modes == other_modes
    assert np.allclose(times, other_times, rtol=0.0, atol=TOLERANCE)
    assert np.allclose(one.q[-1], two.q[-1], rtol=TOLERANCE, atol=TOLERANCE * 1e-3)


@pytest.mark.parametrize("factors", ANY[:2], ids=str)
@pytest.mark.parametrize("name", ["bouncing_ball", "cart_on_ramp", "latch", "rimless_wheel", "twelve_contacts"])
def test_a_watch_and_a_crane(name, factors):
    agree(Run(base(name)), Run(other(name, factors), factors))


@pytest.mark.long
@pytest.mark.parametrize("factors", ANY, ids=str)
@pytest.mark.parametrize("name", [name for name in CONTACTS if name != "piano_action"])
def test_all_contact_models_as_watches_and_cranes(name, factors):
    agree(Run(base(name)), Run(other(name, factors), factors))


@pytest.mark.parametrize("name", UNITS)
def test_shipped_models_measure_in_metres_and_seconds(name):
    """Their tolerances are those that are listed, whatever their parameters are varied to."""
    mechanism = fsm_dyn.load(name)
    own = own_scales(mechanism, parameter_values(mechanism))
    assert (own.length, own.time) == (1.0, 1.0)


@pytest.mark.parametrize("factors", EXACT, ids=str)
def test_own_units_follow(factors):
    for name in QUICK:
        mechanism = fsm_dyn.load(name)
        own, new = (own_scales(m, parameter_values(m)) for m in (mechanism, scaled(mechanism, factors)))
        assert new == Scales(own.length * factors.length, own.mass * factors.mass, own.time * factors.time)


def test_an_initial_value_of_rounding_is_zero():
    """A place such as r*cos(pi/2) is no length of the mechanism."""
    model = {
        "fsm_dyn": 1, "parameters": {"m": "1 kg", "r": "0.1 m", "a": f"{np.pi / 2!r} rad"},
        "coordinates": {"x": "m", "y": "m"}, "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}},
        "bodies": {"bead": {"center": "P", "mass": "m"}}, "contacts": {"floor": {"gap": "y - r"}},
        "loads": [{"gravity": "-9.81 m/s^2*N.y"}], "initial": {"x": "r*cos(a)", "y": "r"},
    }  # fmt: skip
    loaded = fsm_dyn.load(model)
    values = parameter_values(loaded)
    assert own_scales(loaded, values) == SI
    cases = ScalesOfCases(Numbers.of(loaded), values, ["a", "r"])
    assert cases.same([values, values | {"a": 1.0}, values | {"r": 1e-9}]).tolist() == [True, False, False]
    assert set(fsm_dyn.simulate(fsm_dyn.compile(model), 0.1).modes) == {"floor_closed"}


def test_without_units_all_is_si():
    mechanism = fsm_dyn.load("seven_body_mechanism")
    assert own_scales(mechanism, parameter_values(mechanism)) == SI
