"""Forces and impulses in connections against closed forms, published numbers and momentum by hand."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.derive.pin_forces import PinForces
from fsm_dyn.language.loader import load
from fsm_dyn.programs.program import Program


def run_of(model, until, **options):
    return fsm_dyn.simulate(fsm_dyn.compile(model), until, **options)


def agree(found, wanted, digits=1e-6, last=6e-7):
    """Compare with published numbers: ``last`` is half of their last decimal."""
    np.testing.assert_allclose(found, wanted, rtol=digits, atol=last)


def impulses(run):
    return [item for item in run.transitions if item.impulse]


@pytest.fixture(scope="module")
def pendulum():
    return run_of("pendulum_with_stop", 0.5)


def test_pin_of_a_pendulum(pendulum):
    """At rest at 70 degrees the bob falls at g sin 70; the pin carries m g (3 cos s - 2 cos 70) in passing."""
    run, pin = pendulum, pendulum.pins["N_B"]
    values = dict(zip(run.model.layout.p, run.model.parameters, strict=True))
    theta = run.q[:, 0]
    along = values["m"] * values["g"] * (3.0 * np.cos(theta) - 2.0 * np.cos(np.radians(70.0)))
    before = np.arange(len(run)) < np.argmin(theta)
    agree(pin.magnitude[0], values["m"] * values["g"] * np.cos(np.radians(70.0)))
    agree(pin.force[0, :2], [-1.576437, 0.573776])
    agree(pin.magnitude[before], along[before], 1e-7)
    agree(pin.magnitude.max(), 11.136228)


def test_stop_on_a_coordinate_is_a_couple(pendulum):
    """A stop that names no point turns the bob back by a couple: all of the momentum goes through the pin."""
    run, values = pendulum, dict(zip(pendulum.model.layout.p, pendulum.model.parameters, strict=True))
    (hit,) = impulses(run)
    found = hit.pin_impulse["N_B"]
    size = values["m"] * values["l"] * abs(hit.u_after[0] - hit.u_before[0])
    agree(found[:2], [1.769517, 0.312014])
    agree(np.linalg.norm(found[:2]), size, 1e-9)
    agree(found[5], 0.718726)
    assert run.pins.without_place == ("block",)


def rod(struck, **more):
    """Return a rod of 0.5 kg and 0.6 m on a pin that falls from 1 rad onto a block ``struck`` below the pin."""
    return {
        "fsm_dyn": 1,
        "name": "rod",
        "parameters": {"m": "0.5 kg", "l": "0.6 m", "g": "9.81 m/s^2", "s": f"{struck} m"},
        "joints": {"pin": {"revolute": {"child": "B", "at": "O", "axis": "N.z"}}},
        "points": {
            "C": {"from": "O", "at": "-l/2*B.y"},
            "S": {"from": "O", "at": "-s*B.y"},
        },
        "bodies": {"rod": {"frame": "B", "center": "C", "mass": "m", "inertia": {"zz": "m*l**2/12"}}},
        "loads": [{"gravity": "-g*N.y"}],
        **more,
    }


@pytest.mark.parametrize(
    ("struck", "impulse", "along"),
    [(0.2, 2.136821, -1.068411), (0.4, 1.068411, 0.0), (0.5, 0.854728, 0.213682)],
)
def test_centre_of_percussion(struck, impulse, along):
    """Struck at two thirds of its length a rod does not strike its pin (Appell); nearer it does, beyond it pulls."""
    contacts = {"block": {"gap": "dot(pos(S), N.x)", "restitution": 0.5}}
    run = run_of(rod(struck, contacts=contacts, initial={"pin": "1 rad"}), 0.6)
    hit = impulses(run)[0]
    agree(hit.impulse["block"], [impulse])
    agree(hit.pin_impulse["pin"][0], along)
    agree(hit.pin_impulse["block"][:2], [impulse, 0.0])


def test_impacts_of_a_double_pendulum():
    run = run_of("double_pendulum_with_stop", 0.19)
    agree(run.pins["N_A"].force[0, :2], [-2.884286, 3.813468])
    agree(run.pins["A_B"].force[0, :2], [-0.819660, -0.324016])
    (hit,) = impulses(run)
    agree(hit.time, 0.180249882)
    agree(hit.pin_impulse["N_A"][:2], [0.598176, 0.553302])
    agree(hit.pin_impulse["A_B"][[0, 1, 5]], [-0.207486, -0.191920, -0.202055], 3e-6)


def test_slider_crank():
    pins = run_of("slider_crank", 0.02).pins
    agree(pins["crank_pin"].force[0, :2], [-40.017317, -7.405423])
    agree(pins["crank_pin"].drive[0], -0.5)
    agree(pins["big_end"].force[0, :2], [-20.217036, -2.006109])
    agree(pins["small_end"].force[0, :2], [-8.197949, 2.115616])
    agree(pins["guide"].force[0, 1], 1.808384)
    assert pins["small_end"].info.parent == "rod"
    assert pins["small_end"].determined.all()


def test_seven_body_mechanism_against_the_reference_solution():
    """Schiehlen's squeezer: the forces that hold the loop at K3 are published as its Lagrange multipliers."""
    pins = run_of("seven_body_mechanism", 0.001).pins
    agree(pins["loop3"].force[0, :2], [98.566870396241, -6.122688344256], 1e-10)
    agree(pins["N_K1"].force[0, :2], [98.614980, -5.344126])
    agree(pins["K1_K2"].force[0, :2], [98.580077, -5.908959])
    agree(pins["N_K3"].force[0, :2], [-45.575772, 107.119020])


def test_ramp_of_a_latch_by_points():
    """The force of the ramp lifts the bolt and presses the door down; the guides carry its parts across them."""
    run = run_of("latch", 0.2)
    ramp, door, bolt = (run.pins[name] for name in ("ramp", "N_door", "N_bolt"))
    k = int(np.argmax(ramp.magnitude))
    agree(run.multipliers["ramp"][k, 0], 10.269237)
    agree(np.abs(door.constraint[k, 1]), 10.269237)
    agree(bolt.constraint[k, 0], -8.616913)
    hit = impulses(run)[0]
    agree(hit.time, 0.081125741)
    agree([hit.pin_impulse["N_door"][1], hit.pin_impulse["N_bolt"][0]], [0.047684371, -0.040011938])


FREE = ["rolling_disk", "sliding_rod", "shopping_cart", "chaplygin_sleigh", "spatial_two_body", "rocking_block"]


@pytest.mark.parametrize("name", FREE)
def test_nothing_is_left_over_on_a_free_body(name):
    """Loads, constraints and contacts balance the inertia of a body without a joint: Kane's equations of its motion."""
    run = run_of(name, 0.05)
    mechanism, samples = run.model.automaton.mechanism, run.rows
    forces = PinForces(mechanism, [(row.owner, row.role) for row in run.model.rows])
    wrenches = forces.connections()
    free = [c for c in forces.parts.connections.values() if c.kind == "free"]
    assert free
    program = Program.from_nodes(forces.layout, {"w": [list(wrenches[c.child]) for c in free]})
    x = np.hstack([samples.x, samples.u_dot, samples.multiplier_table])
    left = program.evaluate(samples.t, x, samples.context)["w"]
    np.testing.assert_allclose(left, np.zeros_like(left), atol=1e-11)


def test_contact_with_friction_is_where_both_forces_meet():
    run = run_of("rolling_disk", 0.05)
    ramp = run.pins["ramp"]
    normal = np.array([-np.sin(np.radians(12.0)), np.cos(np.radians(12.0)), 0.0])
    agree(ramp.at @ normal, np.zeros(len(run)))
    agree(ramp.torque, np.zeros_like(ramp.torque))


def test_latch_of_a_door():
    run = run_of("latch_door", 0.12)
    bolt = run.pins["door_bolt"]
    k = int(np.argmax(np.abs(bolt.constraint[:, 0])))
    agree([run.t[k], bolt.constraint[k, 0]], [0.0978236693, 9.164753])
    assert run.pins["touch_face2"].info.kind == "contact"


def test_piano_hammer_on_its_string():
    run = run_of("piano_action_simple", 0.1, scenario="forte")
    balance = run.pins["N_K"]
    agree(balance.force[0, :2], [-0.000172759, 2.136898], 3e-6)
    hit = next(item for item in impulses(run) if "string" in item.impulse and item.impulse["string"][0] > 0.0)
    agree(hit.impulse["string"], [0.0562172], 1e-5)
    agree(hit.pin_impulse["N_H"][:2], [0.00409261, 0.00250167], 1e-5)


def test_escapement():
    run = run_of("escapement_anchor", 0.35)
    agree(run.pins["N_P"].force[0, :2], [-0.254168, 2.920763])
    first, second = impulses(run)[:2]
    agree([first.time, second.time], [0.079415094, 0.337610109])
    agree(first.pin_impulse["N_P"][:2], [0.00258260, -0.00930272], 3e-6)
    agree(second.pin_impulse["N_P"][:2], [-0.00341937, -0.00144345], 3e-6)


def test_caster_of_a_cart_turns_against_dry_friction():
    pins = run_of("shopping_cart", 0.02).pins
    agree(pins["B_C"].force[0, :2], [1.569043, -1.598503])
    agree(pins["B_C"].drive[0], 0.25)


def test_cam():
    pins = run_of("cam_roller_follower", 0.02).pins
    agree(pins["shaft"].force[0, :2], [-10.455343, 15.523944])
    agree(pins["guide"].constraint[0, 0], 2.711500)
    agree(pins["pin"].force[0, :2], [2.711500, -11.005417])
    agree(pins["touching"].torque, np.zeros_like(pins["touching"].torque))


def test_spatial_pendulum_in_absolute_coordinates():
    pins = run_of("spatial_two_body", 0.02).pins
    agree(pins["hang"].force[0], [-0.098514, 0.413759, 42.8475], 3e-6)
    agree(pins["link"].force[0], [-0.062027, 0.144966, 19.4775], 3e-6)
    assert "N_B2" not in pins


def test_spring_on_a_coordinate_is_inside_the_connection():
    """Of three bodies on a pin, a hinge and a guide, the hinge carries the acceleration of the two beyond it."""
    run = run_of("planar_three_body", 0.02)
    agree(run.pins["q2"].force[0, :2], [9.598964, -3.140777], 1e-6)


CHAIN = {
    "fsm_dyn": 1,
    "name": "spatial_chain",
    "joints": {
        "A": {"revolute": {"child": "a", "at": "O", "axis": "N.z"}},
        "B": {"revolute": {"parent": "a", "child": "b", "at": "P", "axis": "a.y"}},
        "C": {"revolute": {"parent": "b", "child": "c", "at": "Q", "axis": "b.x"}},
    },
    "points": {
        "P": {"from": "O", "at": "0.4 m*a.x + 0.1 m*a.z"},
        "Q": {"from": "P", "at": "0.3 m*b.x"},
        "Ca": {"from": "O", "at": "0.2 m*a.x"},
        "Cb": {"from": "P", "at": "0.1 m*b.x + 0.05 m*b.y"},
        "Cc": {"from": "Q", "at": "-0.15 m*c.y + 0.02 m*c.z"},
    },
    "bodies": {
        "A1": {"frame": "a", "center": "Ca", "mass": "1.2 kg",
               "inertia": {"xx": "0.01 kg*m^2", "yy": "0.03 kg*m^2", "zz": "0.035 kg*m^2"}},
        "B1": {"frame": "b", "center": "Cb", "mass": "0.8 kg",
               "inertia": {"xx": "0.012 kg*m^2", "yy": "0.02 kg*m^2", "zz": "0.025 kg*m^2", "xy": "0.002 kg*m^2"}},
        "C1": {"frame": "c", "center": "Cc", "mass": "0.5 kg",
               "inertia": {"xx": "0.006 kg*m^2", "yy": "0.004 kg*m^2", "zz": "0.005 kg*m^2"}},
    },
    "loads": [{"gravity": "-9.81 m/s^2*N.y"}],
    "initial": {"A": "0.3 rad", "B": "-0.5 rad", "C": "0.8 rad", "A_dot": "2 rad/s", "B_dot": "-3 rad/s",
                "C_dot": "4 rad/s"},
}  # fmt: skip


def test_spatial_chain_against_another_program():
    """The numbers are MuJoCo's ``cfrc_int`` for the same chain."""
    pins = run_of(CHAIN, 0.01).pins
    agree(pins["A"].force[0], [-0.415890, 6.905816, -0.425787], 3e-6)
    agree(pins["C"].force[0], [-1.771131, -0.304805, -0.00433857], 3e-6)
    for pin in pins.values():
        agree(pin.drive, np.zeros(len(pin.drive)), 1e-9)
        turned = pin.wrench(frame=pin.info.frames[0], on=pin.info.parent)
        agree(np.linalg.norm(turned[:, :3], axis=1), pin.magnitude)


def test_unknown_names():
    pins = run_of("slider_crank", 0.001).pins
    with pytest.raises(fsm_dyn.InputError, match="no connection 'smal_end'"):
        pins["smal_end"]
    with pytest.raises(fsm_dyn.InputError, match="no frame 'rot'"):
        pins["small_end"].wrench(frame="rot")
    with pytest.raises(fsm_dyn.InputError, match="does not act on 'crank'"):
        pins["small_end"].wrench(on="crank")


REQUIRED = {
    "weak": "always pin.pin.force < 8 N",
    "strong": "peak(pin.pin.force) < 9 N",
    "across": "trough(pin.pin.force_x) > -3 N",
}


def test_requirements_and_columns_of_a_swinging_rod():
    """The pin of a rod let go at 1 rad carries m g (1 + 3/2 (1 - cos 1)) at the lowest point."""
    run = run_of(rod(0.2, requirements=REQUIRED, initial={"pin": "1 rad"}), 1.0)
    most = 0.5 * 9.81 * (1.0 + 1.5 * (1.0 - np.cos(1.0)))
    verdicts = run.judge()
    assert verdicts["weak"].margin == pytest.approx(8.0 - most, rel=1e-8)
    assert verdicts["strong"].margin == pytest.approx(9.0 - most, rel=1e-8)
    greatest = run.extremes("pin.pin.force")
    assert greatest.maximum == pytest.approx(most, rel=1e-9)
    (peak,) = [item for item in run.peak_loads() if item.quantity == "force"]
    assert (peak.value, peak.time) == (greatest.maximum, greatest.maximum_time)
    frame = run.to_pandas(pins=True)
    np.testing.assert_array_equal(frame["pin.pin.force_y"], run.pins["pin"].force[:, 1])
    assert not any(name.startswith("pin.") for name in run.columns)
    data = run.to_xarray(pins=True)
    np.testing.assert_array_equal(data.pin_force.sel(pin_name="pin"), run.pins["pin"].force)


def test_requirement_on_a_connection_that_does_not_exist():
    with pytest.raises(fsm_dyn.ModelError, match="there is no connection 'pim'") as refused:
        fsm_dyn.load(rod(0.2, requirements={"a": "always pin.pim.force < 8 N"}))
    assert "did you mean 'pin'" in str(refused.value)
    with pytest.raises(fsm_dyn.ModelError, match="is in m"):
        fsm_dyn.load(rod(0.2, requirements={"a": "always pin.pin.force < 8 m"}))


def test_ends_of_a_bar_on_three_supports_are_not_determined():
    """A box on a table stands on two corners; a third support under it leaves the shares open, not their sum."""
    posts = {f"post{k}": {"gap": f"dot(pos(P{k}), N.y)"} for k in (1, 2, 3)}
    model = {
        "fsm_dyn": 1,
        "name": "beam",
        "joints": {"free": {"planar": {"child": "B", "at": "O", "axis": "N.z"}}},
        "points": {
            "P1": {"from": "B_origin", "at": "-1 m*B.x"},
            "P2": {"from": "B_origin", "at": "0 m*B.x"},
            "P3": {"from": "B_origin", "at": "1 m*B.x"},
        },
        "bodies": {"beam": {"frame": "B", "center": "B_origin", "mass": "3 kg", "inertia": {"zz": "1 kg*m^2"}}},
        "contacts": posts,
        "loads": [{"gravity": "-10 m/s^2*N.y"}],
    }
    pins = run_of(model, 0.01).pins
    shares = np.array([pins[name].force[0, 1] for name in posts])
    agree(shares.sum(), 30.0)
    agree(shares, [10.0, 10.0, 10.0])
    for name in posts:
        np.testing.assert_array_equal(pins[name].determined[0], [True, False, True, True, True, True])


def test_end_of_infinitely_many_impacts_balances_the_momentum():
    """The last transition of a rod that comes to rest on its block has the jump of the momentum, in both supports."""
    contacts = {"block": {"gap": "dot(pos(S), N.x)", "restitution": 0.3}}
    loads = [{"gravity": "-g*N.y"}, {"force": "-2 N*N.x", "at": "C"}]
    run = run_of(rod(0.3, contacts=contacts, loads=loads, initial={"pin": "0.6 rad"}), 1.2)
    zeno = impulses(run)[-1]
    assert "Zeno" in zeno.cause
    jump = float(zeno.u_after[0] - zeno.u_before[0])
    pin, block = zeno.pin_impulse["pin"], zeno.pin_impulse["block"]
    assert jump > 1e-6
    agree(pin[:3] + block[:3], [0.5 * 0.3 * jump, 0.0, 0.0], 1e-9, 1e-12)
    agree(0.3 * block[0], 0.5 * 0.6**2 / 3.0 * jump, 1e-9, 1e-15)


def knocked(**transition):
    """Return a rod that hangs at rest until 0.1 s, and is knocked then."""
    timer = {"name": "knock", "from": "hanging", "when": "t - 0.1 s", **transition}
    return rod(0.3, modes={"hanging": {}}, loads=[], transitions=[timer], initial={})


@pytest.mark.parametrize(("struck", "pin"), [(0.2, -0.1), (0.4, 0.0), (0.5, 0.05)])
def test_tap_of_a_user(struck, pin):
    """Tapped at s a hanging rod strikes its pin by I (3 s/2 l - 1); the tap is no force of the pin itself."""
    model = knocked(impulse=[{"linear": "0.2 N*s*N.x", "at": "S"}])
    model["parameters"]["s"] = f"{struck} m"
    run = run_of(model, 0.2)
    (hit,) = run.transitions
    agree(hit.pin_impulse["pin"], [pin, 0.0, 0.0, 0.0, 0.0, 0.0], 1e-9, 1e-12)
    assert hit.u_after[0] == pytest.approx(0.2 * struck / (0.5 * 0.6**2 / 3.0))


def test_reset_of_a_user_is_no_impulse():
    """Speeds that a transition assigns come from nothing: no pin sees them."""
    (hit,) = run_of(knocked(reset={"pin_dot": "2 rad/s"}), 0.2).transitions
    assert hit.u_after[0] == 2.0
    agree(hit.pin_impulse["pin"], np.zeros(6))


def cranks(closed):
    """Return three parallel cranks of a beam; ``closed`` are those whose pins close loops."""
    posts, ends = ("A", "B", "C"), {"A": "-0.3", "B": "0", "C": "0.3"}
    tree = next(name for name in posts if name not in closed)
    joints, points, bodies = {}, {}, {}
    for name in posts:
        points[f"P{name}"] = {"from": "O", "at": f"{ends[name]} m*N.x"}
        joints[f"j{name}"] = {"revolute": {"child": f"K{name}", "at": f"P{name}", "axis": "N.z"}}
        points |= {f"G{name}": {"from": f"P{name}", "at": f"0.1 m*K{name}.x"}}
        points |= {f"E{name}": {"from": f"P{name}", "at": f"0.2 m*K{name}.x"}}
        bodies[f"crank{name}"] = {"frame": f"K{name}", "center": f"G{name}", "mass": "0.4 kg",
                                  "inertia": {"zz": "0.4 kg*(0.2 m)**2/12"}}  # fmt: skip
    joints["top"] = {"revolute": {"parent": f"K{tree}", "child": "beam", "at": f"E{tree}", "axis": f"K{tree}.z"}}
    points["M"] = {"from": "beam_origin", "at": f"-({ends[tree]} m)*beam.x"}
    bodies["bar"] = {"frame": "beam", "center": "M", "mass": "1.5 kg", "inertia": {"zz": "1.5 kg*(0.3 m)**2/3"}}
    for name in closed:
        points[f"S{name}"] = {"from": "beam_origin", "at": f"({ends[name]} m - ({ends[tree]} m))*beam.x"}
        pair = {"parent": f"K{name}", "child": "beam", "at": [f"E{name}", f"S{name}"], "axis": f"K{name}.z"}
        joints[f"loop{name}"] = {"revolute": pair}
    start = {f"j{name}": "1 rad" for name in posts} | {f"j{tree}_dot": "1 rad/s"}
    start |= {"top": "-1 rad"}
    guess = {name: start.pop(name) for name in [*(f"j{c}" for c in closed), "top"]}
    return {"fsm_dyn": 1, "name": "cranks", "joints": joints, "points": points, "bodies": bodies,
            "loads": [{"gravity": "-9.81 m/s^2*N.y"}], "initial": {**start, "guess": guess}}  # fmt: skip


@pytest.mark.parametrize("closed", [("A", "C"), ("B", "C")])
def test_redundant_cranks_share_whichever_joint_closes_the_loop(closed):
    """Of three equal cranks under a beam each carries a third, as the least forces in all connections are equal."""
    pins = run_of(cranks(closed), 0.001).pins
    tops = [f"loop{name}" for name in closed] + ["top"]
    for name in ("jA", "jB", "jC"):
        agree(pins[name].force[0, :2], [3.375070, 6.495517], 1e-6)
    for name in tops:
        agree(pins[name].force[0, :2], [2.410764, 3.238227], 1e-6)
        assert not pins[name].determined[0, :2].all()


@pytest.mark.parametrize("slot", ["O", "H", "arm_origin", "S"])
def test_a_closure_loads_its_parent_at_any_point(slot):
    """A point of the ground on the hinge is one of the arm too: forces on the arm are its mass times acceleration."""
    model = {
        "fsm_dyn": 1, "name": "quick_return",
        "points": {
            "H": {"from": "O", "at": "0*N.x"}, "S": {"from": "O", "at": "0.1*arm.x"},
            "B0": {"from": "O", "at": "0.5*N.y"}, "E": {"from": "B0", "at": "0.15*crank.x"},
            "CA": {"from": "O", "at": "0.4*arm.x"},
        },
        "joints": {
            "ja": {"revolute": {"child": "arm", "at": "O", "axis": "N.z"}},
            "jb": {"revolute": {"child": "crank", "at": "B0", "axis": "N.z"}},
            "closes": {"pin_slider": {
                "parent": "arm", "child": "crank", "at": [slot, "E"], "axis": "arm.x", "pin": "crank.z"}},
        },
        "bodies": {
            "a": {"frame": "arm", "center": "CA", "mass": 1, "inertia": {"zz": 0.05}},
            "c": {"frame": "crank", "center": "E", "mass": 2, "inertia": {"zz": 0.03}},
        },
        "loads": [{"gravity": "-9.81*N.y"}, {"torque": "2*N.z", "on": "a"}],
        "outputs": {"vx": "dot(vel(CA), N.x)", "vy": "dot(vel(CA), N.y)", "turn": "dot(omega(arm), N.z)"},
        "initial": {"jb": 0.3, "jb_dot": 3, "guess": {"ja": 1.3}},
    }  # fmt: skip
    run = run_of(model, 0.2)
    times, h = np.linspace(0.02, 0.18, 9), 2e-6
    at, before, after = (run.sample(times + shift) for shift in (0.0, -h, h))
    a, b, turn = ((after[name] - before[name]) / (2.0 * h) for name in ("vx", "vy", "turn"))
    center = 0.4 * np.transpose([np.cos(at["ja"]), np.sin(at["ja"]), 0.0 * times])
    pins = at.pins
    force = pins["ja"].force - pins["closes"].force
    agree(force[:, :2], np.transpose([a, b + 9.81]), 1e-5, 1e-5)
    moment = sum(
        sign * (pins[name].torque + np.cross(pins[name].at - center, pins[name].force))
        for sign, name in ((1.0, "ja"), (-1.0, "closes"))
    )
    agree(moment[:, 2] + 2.0, 0.05 * turn, 1e-5, 1e-5)


@pytest.mark.parametrize("at", [0.0, 0.2, 1.0, 2.5])
@pytest.mark.parametrize("kind", ["angle", "weld"])
def test_impulse_of_what_is_imposed(kind, at):
    """A wheel that is held takes the couple of its whole spin, at any angle of the hold."""
    run = run_of({
        "fsm_dyn": 1, "name": "wheel", "coordinates": ["x", "q"], "frames": {"B": {"rotate": {"z": "q"}}},
        "points": {"C": {"from": "O", "at": "x*N.x"}},
        "bodies": {"wheel": {"frame": "B", "center": "C", "mass": 2, "inertia": {"zz": 0.03}}},
        "imposed": {"hold": {kind: ["wheel", "ground"], "at": at}}, "initial": {"q": 0.4, "q_dot": 2, "x_dot": 0.5},
    }, 3.0)  # fmt: skip
    hit = impulses(run)[0]
    assert hit.time == pytest.approx(at, abs=1e-12)
    agree(hit.pin_impulse["N_B"], np.zeros(6), 1e-7, 1e-9)
    total = np.sum([impulse for name, impulse in hit.pin_impulse.items() if name != "N_B"], axis=0)
    agree(total, [-1.0 if kind == "weld" else 0.0, 0, 0, 0, 0, -0.06], 1e-7, 1e-9)


def test_hinges_of_a_door_share_its_load():
    """The rows of the second hinge hold what no motion violates; left out or kept, the shares are not determined."""
    text = """
fsm_dyn: 1
name: door
points:
  H1: {from: O, at: 0.2*N.y}
  H2: {from: O, at: 1.8*N.y}
  D2: {from: d_origin, at: 1.6*d.y}
  C: {from: d_origin, at: 0.4*d.x + 0.8*d.y}
joints:
  low: {revolute: {child: d, at: H1, axis: N.y}}
  high: {revolute: {child: d, at: [H2, D2], axis: d.y}}
  latch: {revolute: {parent: d, child: l, at: C, axis: d.x}}
bodies:
  door: {frame: d, center: C, mass: 20, inertia: {xx: 4, yy: 1, zz: 5}}
  latch_body: {frame: l, center: l_origin, mass: 1, inertia: {xx: 0.1, yy: 0.1, zz: 0.1}}
loads: [{gravity: -9.81*N.y}]
"""
    run = run_of(load("door", text=text), 0.1)
    shared = run_of(load("door", text=text.replace("joints:", "joint_coordinates: absolute\njoints:")), 0.1)
    assert "high" not in run.pins
    assert not run.pins["low"].determined[0, :3].any()
    assert run.pins["latch"].determined.all()
    assert not shared.pins["low"].determined[0, 1]
    assert not shared.pins["high"].determined[0, 1]
    agree(run.pins["low"].force[0], [0.0, 21 * 9.81, 0.0])
    agree(shared.pins["low"].force[0] + shared.pins["high"].force[0], [0.0, 21 * 9.81, 0.0])
