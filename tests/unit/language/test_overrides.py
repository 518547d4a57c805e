"""Values refused in a file are refused as overrides: every check of numbers by every way of giving parameters."""

import ast
import inspect
import traceback

import pytest
from typer.testing import CliRunner

import fsm_dyn
import fsm_dyn.live.device_map
from fsm_dyn.analysis.study import study
from fsm_dyn.cli.console import app
from fsm_dyn.core.errors import InputError, ModelError
from fsm_dyn.language import check_values as checks
from fsm_dyn.language.loader import load
from fsm_dyn.language.values import check_values, parameter_values
from fsm_dyn.live.stepper import LiveStepper

GOOD = {
    "m": "2 kg", "I": "0.1 kg*m^2", "r": "0.1 m", "first": "10 deg", "last": "200 deg", "mu_s": "0.4", "mu_k": "0.3",
    "pitch": "440 Hz", "e": "0.5", "lower": "-1 m", "upper": "1 m", "later": "1 s", "n": "2", "w": "0.2 m",
    "h": "0.3 m", "edge": "0.4 m", "long": "0.2 m", "lean": "0 deg", "size": "0.5 m", "extra": "0 m",
    "tiny": "1 um", "least": "-9 m", "firm": "300 N/m^1.5", "lossy": "0.1 s/m", "bends": "1.5",
}  # fmt: skip
# parameter, impossible value, message
BAD = [
    ("m", "-1 kg", "mass of 'block' is negative"),
    ("I", "-0.1 kg*m^2", "inertia zz of 'block' is negative"),
    ("r", "-5 mm", "radius of shape 'roller'"),
    ("r", "0 m", "radius of shape 'roller'"),
    ("last", "5 deg", "angles of shape 'cap'"),
    ("last", "400 deg", "angles of shape 'cap'"),
    ("mu_s", "-0.1", "static friction of 'ground' is negative"),
    ("mu_k", "-0.1", "kinetic friction of 'ground' is negative"),
    ("mu_k", "0.5", "kinetic friction above the static one"),
    ("pitch", "2 Hz", "outside the audible range"),
    ("e", "1.5", "restitution of 'ground' is impossible"),
    ("e", "-0.1", "restitution of 'ground' is impossible"),
    ("upper", "-2 m", "lower limit above the upper one"),
    ("later", "-1 s", "times must increase"),
    ("n", "0", "not a finite number"),
    ("w", "0 m", "coincide"),
    ("h", "0 m", "polygon 'fin' encloses nothing"),
    ("edge", "0 m", "ends of shape 'shelf' coincide"),
    ("size", "0 m", "curve 'cam' encloses nothing"),
    ("extra", "1 m", "does not close"),
    ("tiny", "0 m", "tolerance 'gap' is not positive"),
    ("least", "9 m", "range of 'x' is empty"),
    ("firm", "-1 N/m^1.5", "stiffness of 'felt' is negative"),
    ("lossy", "-1 s/m", "dissipation of 'felt' is negative"),
]
# valid in a file, but not for a model compiled with other values
TURNED = [
    ("w", "-0.2 m"),
    ("edge", "-0.4 m"),
    ("lean", "170 deg"),
    ("long", "-0.2 m"),
    ("size", "-0.5 m"),
    ("first", "190 deg"),
]


def test_an_exponent_below_one_is_refused_as_an_override(mechanism):
    with pytest.raises(InputError, match="exponent of 'felt' is below 1"):
        parameter_values(mechanism, {"bends": 0.5})


def text(**changed):
    values = GOOD | changed
    listed = "\n".join(f"  {name}: {value}" for name, value in values.items())
    return f"""
fsm_dyn: 1
name: block
parameters:
{listed}
coordinates: {{x: {{unit: m, range: [least, 9 m]}}, y: m, q: rad}}
frames:
  B: {{parent: N, rotate: {{z: q}}}}
points:
  P: {{from: O, at: x*N.x + y*N.y}}
  P1: {{from: P, at: 0.1 m*B.y}}
  P2: {{from: P1, at: long*B.x}}
bodies:
  block: {{frame: B, center: P, mass: m, inertia: {{zz: I}}}}
speeds:
  u1: "dot(vel(P), N.x)"
  u2: "dot(vel(P), N.y)"
  v: "dot(omega(B), N.z)"
shapes:
  roller: {{circle: {{center: P, radius: r}}}}
  cap: {{arc: {{frame: B, center: P, radius: 0.2 m, angles: [first, last]}}}}
  fin: {{polygon: {{frame: B, from: P, points: [[0 m, 0 m], [1 m, 0 m], [0.5 m, h]]}}}}
  box: {{polygon: {{frame: B, from: P, points: [[0 m, 0 m], [w, 0 m], [w, h], [0 m, h]]}}}}
  shelf: {{segment: {{points: [[0 m, -3 m], [edge, -3 m]]}}, side: N.y}}
  brim: {{segment: {{frame: B, ends: [P, P2]}}, side: B.y - B.x}}
  ramp: {{line: {{along: cos(lean)*N.x + sin(lean)*N.y}}, side: N.y}}
  cam: {{curve: {{frame: B, from: P, x: "size*cos(s)", y: "0.5 m*sin(s) + extra*s"}}}}
contacts:
  ground: {{between: [roller, ramp], friction: {{static: mu_s, kinetic: mu_k}}, restitution: e, sound_frequency: pitch}}
  wall: {{joint_stop: {{coordinate: x, lower: lower, upper: upper}}}}
  felt: {{gap: "5 m - y", compliant: {{stiffness: firm, dissipation: lossy, exponent: bends}}}}
inputs: {{push: N}}
schedule:
  push: {{linear: [[0 s, 0 N], [later, 5 N]]}}
loads:
  - {{gravity: -9.81 m/s^2*N.y}}
  - {{force: push*N.x, at: P}}
  - {{spring: {{between: [O, P], stiffness: 10 N/m/n, free: 0.2 m}}}}
initial: {{y: 1 m}}
numerics: {{gap: tiny}}
"""


@pytest.fixture(scope="module")
def mechanism():
    return load("block", text=text())


@pytest.mark.parametrize(("name", "value", "says"), BAD)
def test_refused_in_the_file_and_as_an_override(mechanism, name, value, says):
    with pytest.raises(ModelError, match=says):
        load("block", text=text(**{name: value}))
    with pytest.raises(InputError, match=says) as caught:
        parameter_values(mechanism, {name: value})
    assert not isinstance(caught.value, ModelError)  # the file is in order
    assert f"{name} = " in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize(("name", "value"), TURNED)
def test_an_override_may_not_turn_a_shape_over(mechanism, name, value):
    load("block", text=text(**{name: value}))
    with pytest.raises(InputError, match=rf"{name} = .*turned over"):
        parameter_values(mechanism, {name: value})


def test_good_overrides_pass(mechanism):
    for name, value in [("m", "3 kg"), ("w", "0.4 m"), ("lean", "-60 deg"), ("e", 1.0), ("e", 0.0), ("mu_k", 0.4)]:
        assert name in parameter_values(mechanism, {name: value})


def raises_of(module):
    """Lines of all raising statements of a module (or class): its checks."""
    tree = ast.parse(inspect.getsource(module))
    return {node.lineno for node in ast.walk(tree) if isinstance(node, ast.Raise)}


def test_no_check_is_left_out(mechanism):
    """Every raising statement of the checks is reached by an override above."""
    reached = set()
    given = [*((name, value) for name, value, _ in BAD), *TURNED, ("bends", 0.5)]
    for name, value in given:
        with pytest.raises(InputError) as caught:
            parameter_values(mechanism, {name: value})
        for error in (caught.value, caught.value.__cause__):
            for frame in traceback.extract_tb(error.__traceback__ if error else None):
                if frame.filename == checks.__file__:
                    reached.add(frame.lineno)
    first = inspect.getsourcelines(checks._Component)[1]
    aside = {first + line - 1 for line in raises_of(checks._Component)}  # refuses no model, but to look at a text
    assert raises_of(checks) - aside <= reached


def test_several_overrides_are_judged_together(mechanism):
    values = parameter_values(mechanism, {"mu_s": 0.2, "mu_k": 0.1})
    assert (values["mu_s"], values["mu_k"]) == (0.2, 0.1)
    with pytest.raises(InputError, match="kinetic friction above"):
        parameter_values(mechanism, {"mu_s": 0.2})


def test_checks_follow_the_parameters_that_depend_on_others():
    model = {
        "fsm_dyn": 1, "name": "ball", "parameters": {"m": "1 kg", "less": "m - 0.5 kg"}, "coordinates": {"y": "m"},
        "points": {"P": {"from": "O", "at": "y*N.y"}}, "bodies": {"ball": {"center": "P", "mass": "less"}},
        "speeds": {"v": "dot(vel(P), N.y)"},
    }  # fmt: skip
    with pytest.raises(InputError, match=r"m = 0\.2: the mass of 'ball' is negative"):
        parameter_values(fsm_dyn.load(model), {"m": "0.2 kg"})


# -- every way in ------------------------------------------------------------------------------------------

E, SAYS = {"e": 1.5}, "restitution of 'ground' is impossible"
CALLS = {
    "compile": lambda graph: fsm_dyn.compile("bouncing_ball", E),
    "simulate": lambda graph: fsm_dyn.simulate(graph, 0.1, parameters=E),
    "settle": lambda graph: fsm_dyn.static_equilibrium(graph, parameters=E),
    "linearise": lambda graph: fsm_dyn.linearise(graph, "resting", parameters=E),
    "limit cycle": lambda graph: fsm_dyn.limit_cycle(graph, "ground closes", parameters=E),
    "study": lambda graph: study(graph, {"e": [0.5, 1.5]}, until=0.1, jobs=1),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    with pytest.raises(InputError, match=SAYS):
        CALLS[name](fsm_dyn.compile("bouncing_ball"))


def test_saved_graph(tmp_path):
    path = tmp_path / "ball.json"
    fsm_dyn.compile("bouncing_ball").save(path)
    with pytest.raises(InputError, match=SAYS):
        fsm_dyn.open_graph(path, E)


def test_command_line_exits_with_2():
    result = CliRunner().invoke(app, ["run", "bouncing_ball", "--until", "0.1", "--set", "e=1.5"])
    assert result.exit_code == 2
    assert SAYS in result.stderr
    assert "e = 1.5" in result.stderr


def test_live_run_refuses_and_goes_on():
    stepper = LiveStepper(fsm_dyn.compile(fsm_dyn.live.device_map.add_couplers(fsm_dyn.load("bouncing_ball"))), 1)
    for bad in ({"e": 1.5}, {"m": -1.0}, {"e": float("nan")}, {"m": 2.0, "e": -1.0}):
        before = stepper.parameters.copy(), dict(stepper.values)
        with pytest.raises(InputError):
            stepper.set_parameters(bad)
        assert (stepper.parameters == before[0]).all()
        assert stepper.values == before[1]
    stepper.set_parameters({"e": 0.9})
    assert stepper.values["e"] == 0.9
    check_values(stepper.graph.automaton.mechanism, stepper.values, {})


@pytest.mark.parametrize(
    "given",
    [
        {"parameters": {"m": True}},
        {"parameters": {"m": float("inf")}},
        {"initial": {"y": float("nan")}},
        {"initial": {"v": float("inf")}},
        {"inputs": {"push": float("nan")}},
        {"inputs": {"push": [(0.0, 0.0), (1.0, float("inf"))]}},
    ],
)
def test_what_is_no_finite_number_is_refused(given):
    graph = fsm_dyn.compile("box_on_table" if "inputs" in given else "bouncing_ball")
    with pytest.raises(InputError, match="finite"):
        fsm_dyn.simulate(graph, 0.1, **given)
