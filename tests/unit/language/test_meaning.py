"""Kinds, visibility and dimensions: accepted and refused expressions, with helpful messages."""

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from fsm_dyn import language as spec
from fsm_dyn.core.errors import ModelError
from fsm_dyn.language import loader
from fsm_dyn.language.model import Mechanism

Load = Callable[..., Mechanism]


def refused(load: Load, *says: str, **sections: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        load(**sections)
    for fragment in says:
        assert fragment in str(caught.value)
    return caught.value


class TestUnitsSwitch:
    """A model with any unit is checked everywhere; one without is taken as SI."""

    BARE: ClassVar[dict[str, Any]] = {
        "fsm_dyn": 1,
        "coordinates": ["x", "q"],
        "frames": {"B": {"rotate": {"z": "q"}}},
        "points": {"P": {"from": "O", "at": "x*N.x + x**2*B.y"}},
        "bodies": {"b": {"frame": "B", "center": "P", "mass": 2, "inertia": {"zz": 0.1}}},
        "loads": [{"gravity": "-9.81*N.y"}],
        "outputs": {"out": "x + q + t"},
    }

    def test_without_units_nothing_is_checked(self) -> None:
        mechanism = loader.load(self.BARE)
        assert not mechanism.uses_units
        assert spec.values.units(mechanism) == {}

    def test_kinds_are_checked_nevertheless(self) -> None:
        with pytest.raises(ModelError, match="a scalar plus a vector"):
            loader.load({**self.BARE, "outputs": {"out": "x + pos(P)"}})

    def test_angles_alone_do_not_switch_it_on(self) -> None:
        model = {**self.BARE, "coordinates": {"x": None, "q": "rad"}, "parameters": {"tilt": "30 deg"}}
        assert not loader.load(model).uses_units

    @pytest.mark.parametrize("section", [{"parameters": {"g": "9.81 m/s^2"}}, {"inputs": {"f": "N"}}])
    def test_any_other_unit_does(self, section: dict[str, Any]) -> None:
        with pytest.raises(ModelError, match=r"has no unit|units do not match"):
            loader.load({**self.BARE, **section})

    def test_coordinates_in_a_list_have_no_unit(self, block: Load) -> None:
        refused(block, "the position of 'P' has no unit", "coordinates in a list", coordinates=["x", "y", "q"])
        angles = block(coordinates=["q"], points={"P": {"from": "O", "at": "r*B.x"}})
        assert spec.values.units(angles)["q_dot"] == "1/s"


class TestVisibility:
    @pytest.mark.parametrize(
        ("sections", "says"),
        [
            ({"parameters": {"m": "2 kg", "a": "x"}}, "'x' is a coordinate and may not stand in a constant expression"),
            ({"parameters": {"m": "2 kg", "a": "pos(P)"}}, "pos(...) may not stand in a constant expression"),
            ({"parameters": {"m": "2 kg", "a": "N.x"}}, "the vector N.x may not stand in a constant expression"),
            ({"frames": {"B": {"rotate": {"z": "dot(pos(P), N.x)/1 m"}}}}, "may not stand in an angle"),
            ({"points": {"P": {"from": "O", "at": "vel(P)*1 s"}}}, "vel(...) may not stand"),
            ({"points": {"P": {"from": "O", "at": "x*N.x*m"}}}, "is in kg*m"),
            ({"speeds": {"u": "rate(x)", "v": "u", "w": "rate(q)"}}, "'u' is a speed and may not stand"),
            ({"speeds": {"u": "rate(P)", "v": "u", "w": "rate(q)"}}, "'P' is a point, not a coordinate"),
            ({"outputs": {"a": "box"}}, "'box' is a body"),
            ({"outputs": {"a": "B"}}, "write its axes B.x"),
            ({"outputs": {"a": "P"}}, "write pos(P)"),
            ({"outputs": {"a": "b", "b": "x"}}, "'b' is an output and may not stand"),
            ({"outputs": {"a": "norm(omega(P))"}}, "'P' is a point, not a frame or body"),
            ({"outputs": {"a": "dot(pos(P), box.x)"}}, "'box' is a body, not a frame"),
            ({"outputs": {"a": "N"}}, "'N' may not stand"),
            ({"outputs": {"a": "lip"}}, "write lip[0]"),
            ({"outputs": {"a": "m[0]"}}, "'m' is a scalar"),
            ({"outputs": {"a": "x[0]"}}, "'x' is a scalar"),
            ({"outputs": {"a": "box[0]"}}, "'box' is a body"),
            ({"outputs": {"a": "lip[2]"}}, "lip[0] to lip[1]"),
            ({"inputs": {"push": {"expression": "1 N*x/1 m"}}}, "'x' is a coordinate and may not stand in a schedule"),
            ({"inputs": {"push": {"linear": [["t", "1 N"]]}}}, "'t' may not stand in a constant expression"),
            ({"initial": {"x": "y"}}, "'y' is a coordinate and may not stand in a constant expression"),
            ({"view": {"box": {"circle": "x"}}}, "'x' is a coordinate and may not stand in a constant expression"),
        ],
    )
    def test_refused(self, block: Load, sections: dict[str, Any], says: str) -> None:
        refused(block, says, **sections)

    def test_inputs_and_time_may_move_things(self, block: Load) -> None:
        block(
            frames={"B": {"rotate": {"z": "q + 0.1*sin(2 Hz*t)"}}, "C": {"rotate": {"x": "push/1 N"}}},
            points={"P": {"from": "O", "at": "x*N.x + y*N.y + lip[0]*C.y"}},
        )

    def test_memory_stands_in_logic_only(self, block: Load) -> None:
        memory = {"n": 0, "armed": True}
        block(
            memory=memory,
            outputs={"a": "n + where(armed and n > 2, 1, 0)"},
            loads=[{"force": "n*push*N.x", "at": "P"}],
            contacts={"c": {"gap": "y", "restitution": "where(armed, 0, 1)", "closes_if": "armed"}},
        )
        refused(block, "'n' is a memory", memory=memory, constraints={"c": {"velocity": "n*rate(x)"}})
        refused(block, "condition in '+'", memory=memory, outputs={"a": "armed + 1"})


class TestKinds:
    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("pos(P)", "must be a scalar, found a vector"),
            ("x > 1 m", "must be a scalar, found a condition"),
            ("x + N.x", "a scalar plus a vector"),
            ("N.x - x", "a vector minus a scalar"),
            ("pos(P)*pos(K)", "write dot(v, w)"),
            ("x/pos(P)", "divide by norm(v)"),
            ("pos(P)**2", "** wants a scalar, found a vector"),
            ("2**N.x", "** wants a scalar, found a vector"),
            ("dot(x, N.x)", "dot wants a vector, found a scalar"),
            ("norm(x)", "norm wants a vector"),
            ("sin(N.x)", "sin wants a scalar, found a vector"),
            ("where(x, 1, 2)", "wants a condition, found a scalar"),
            ("where(x > 0, N.x, N.y)", "where wants a scalar, found a vector"),
            ("-(x > 0)", "a condition has no sign"),
            ("(x > 0)*2", "a condition in '*'"),
            ("(x > 0) > 0", "> wants a scalar, found a condition"),
            ("N.x > 0", "> wants a scalar, found a vector"),
            ("where(not x, 1, 2)", "not wants a condition"),
            ("where(x and x > 0, 1, 2)", "and wants a condition"),
            ("abs(x > 0)", "abs wants a scalar, found a condition"),
        ],
    )
    def test_refused(self, block: Load, text: str, says: str) -> None:
        refused(block, says, outputs={"a": text})

    @pytest.mark.parametrize(
        "text",
        [
            "norm(cross(pos(P), vel(K, B)))",
            "dot(-(N.x + 2*B.y/3)*x, omega(box))",
            "where(0 < x and x < 1 m or not y > 0, x, y)",
            "x**2/y + abs(x) - max(x, y, 0) + mod(x, 1 m)",
            "atan2(x, y) + asin(x/y)",
            "sqrt(x*y) - x",
            "x**(1/2)*y**0.5 - x",
            "sign(x) + floor(x/y) + exp(q) + log(x/y)",
        ],
    )
    def test_accepted(self, block: Load, text: str) -> None:
        block(outputs={"a": text})


class TestDimensions:
    @pytest.mark.parametrize(
        ("text", "unit"),
        [
            ("x*m", "kg*m"),
            ("m/x**3", "kg/m^3"),
            ("rate(q)", "1/s"),
            ("dot(vel(P), N.x)", "m/s"),
            ("norm(omega(B))", "1/s"),
            ("dot(pos(P), pos(K))", "m^2"),
            ("norm(cross(vel(P), omega(B)))", "m/s^2"),
            ("sqrt(k/m)", "1/s"),
            ("push*rate(x)", "W"),
            ("k*x", "N"),
            ("where(x > 0, 0, k*x)", "N"),
            ("sin(q)", "1"),
            ("q", "1"),
            ("lip[0]", "m"),
            ("x**mu", "m^0.4"),
            ("k*abs(x)**(mu + 1.1)/(1 m)**(1.5 - 1)", "N"),
        ],
    )
    def test_of_outputs(self, block: Load, text: str, unit: str) -> None:
        assert spec.values.units(block(outputs={"a": text}))["a"] == unit

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("x + m", "units do not match: m plus kg"),
            ("x - 1", "units do not match: m minus a number without unit"),
            ("x > 2 s", "units do not match: m > s"),
            ("max(x, m)", "units do not match: m max kg"),
            ("where(x > 0, x, m)", "units do not match: m or kg"),
            ("atan2(x, m)", "units do not match"),
            ("sin(x)", "sin of a quantity in m"),
            ("exp(1 s)", "exp of a quantity in s"),
            ("floor(x)", "floor of a quantity in m"),
            ("2**x", "an exponent in m"),
            ("x**q", "m to a power that varies"),
            ("pos(P) + vel(P)", "units do not match: m plus m/s"),
        ],
    )
    def test_refused(self, block: Load, text: str, says: str) -> None:
        refused(block, says, outputs={"a": text})

    def test_a_written_zero_fits_everywhere(self, block: Load) -> None:
        block(
            outputs={"a": "x + 0", "b": "where(x > 0, k*x, -0)"},
            initial={"x": 0, "x_dot": "0"},
            contacts={"wall": {"joint_stop": {"coordinate": "x", "lower": 0}}},
            loads=[{"force": "0*N.x", "at": "P"}],
        )

    def test_a_parameter_of_zero_does_not(self, block: Load) -> None:
        refused(block, "units do not match", parameters={"m": "1 kg", "r": "1 m", "z": 0}, outputs={"a": "x + z"})

    @pytest.mark.parametrize(
        ("load", "unit"),
        [
            ({"force": "N.x", "at": "P"}, "N"),
            ({"torque": "N.z", "on": "box"}, "N*m"),
            ({"gravity": "N.y"}, "m/s^2"),
            ({"spring": {"between": ["O", "P"], "stiffness": "1"}}, "N/m"),
            ({"spring": {"between": ["O", "P"], "stiffness": "k", "free": "1"}}, "m"),
            ({"spring": {"between": ["O", "P"], "stiffness": "k", "damping": "1"}}, "N*s/m"),
            ({"spring": {"coordinate": "q", "stiffness": "1"}}, "N*m"),
            ({"spring": {"coordinate": "x", "stiffness": "1"}}, "N/m"),
            ({"torsion_spring": {"coordinate": "q", "stiffness": "1"}}, "N*m"),
            ({"damper": {"coordinate": "q", "damping": "1"}}, "N*m*s"),
            ({"damper": {"between": ["O", "P"], "damping": "1"}}, "N*s/m"),
            ({"law": "1", "coordinate": "x"}, "N"),
            ({"law": "1", "coordinate": "q"}, "N*m"),
            ({"law": "1", "between": ["O", "P"]}, "N"),
        ],
    )
    def test_of_loads(self, block: Load, load: dict[str, Any], unit: str) -> None:
        refused(block, "has no unit", f"allowed: {unit}", loads=[load])

    def test_torsion_spring_wants_an_angle(self, block: Load) -> None:
        refused(block, "is in m", "no unit", loads=[{"torsion_spring": {"coordinate": "x", "stiffness": "1 N*m"}}])

    def test_of_contacts(self, block: Load) -> None:
        gap = {"gap": "dot(pos(K), N.y)", "slip": "dot(vel(K), N.x)"}
        refused(block, "the static friction of 'c' is in N", contacts={"c": {**gap, "friction": "1 N"}})
        refused(block, "the restitution", contacts={"c": {"gap": "y", "restitution": "1 m"}})
        refused(block, "the gap of 'c' is in kg", contacts={"c": {"gap": "m"}})
        dry = {"static": "1 N", "kinetic": "1 N"}
        block(contacts={"c": {"dry_friction": {"speed": "rate(x)", **dry}}})
        refused(block, "allowed: N*m", contacts={"c": {"dry_friction": {"speed": "rate(q)", **dry}}})

    def test_of_inputs(self, block: Load) -> None:
        mechanism = block(inputs={"push": {"linear": [["0 s", 0], ["1 s", "3 N"]]}, "gain": None})
        assert spec.values.units(mechanism)["push"] == "N"
        assert spec.values.units(mechanism)["gain"] == "1"
        refused(block, "is in m", inputs={"push": {"steps": [["0 s", "1 N"], ["1 s", "1 m"]]}})
        refused(block, "'Newton_s' is not a unit", inputs={"push": "Newton_s"})
        refused(block, "must be in an SI unit", "allowed: N", inputs={"push": "kN"})
        refused(block, "must be in an SI unit", "allowed: rad", coordinates={"x": "m", "y": "m", "q": "deg"})

    def test_of_resets(self, block: Load) -> None:
        jump = {"from": "*", "when": "x - 1 m", "reset": {"x_dot": "x"}}
        refused(block, "is in m", "allowed: m/s", transitions=[jump])

    def test_hint_at_a_name_read_as_a_unit(self, block: Load) -> None:
        error = refused(block, "units do not match", outputs={"a": "2 N*m + push*1 kg/m*m"})
        assert "'m' in '2 N*m' is read as a unit" in error.remedy
        assert "(2 N)*m" in error.remedy


class TestNumbers:
    @pytest.mark.parametrize(
        ("sections", "says"),
        [
            ({"bodies": {"b": {"center": "P", "mass": "-m"}}}, "the mass of 'b' is negative"),
            (
                {"bodies": {"b": {"frame": "B", "center": "P", "mass": "m", "inertia": {"yy": "-1 kg*m^2"}}}},
                "the inertia yy of 'b' is negative",
            ),
            ({"contacts": {"c": {"gap": "y", "restitution": "1.01"}}}, "allowed: 0 to 1"),
            (
                {"contacts": {"c": {"gap": "y", "slip": "rate(x)", "friction": {"static": "mu", "kinetic": "2*mu"}}}},
                "found: static 0.4, kinetic 0.8",
            ),
            (
                {"contacts": {"c": {"gap": "y", "slip": "rate(x)", "friction": -0.1}}},
                "the static friction of 'c' is negative",
            ),
            (
                {"contacts": {"c": {"joint_stop": {"coordinate": "x", "lower": "10 mm", "upper": "-1 cm"}}}},
                "found: 0.02 too much",
            ),
            ({"inputs": {"p": {"steps": [["1 s", 0], ["0.5 s", 0]]}}}, "times must increase"),
            ({"inputs": {"p": {"linear": [["1 s", 0], ["1 s", 0]]}}}, "1 s after 1 s"),
            ({"inputs": {"p": {"constant": "1 N/(m - 2 kg)*1 kg"}}}, "the schedule of 'p'"),
            ({"initial": {"x": "1 m/0"}}, "the initial value of 'x'"),
            ({"parameters": {"m": "1 kg", "r": "sqrt(-1)*1 m"}}, "parameter 'r': the value is not a finite number"),
            ({"view": {"box": {"circle": "1/0"}}}, "a length in the view of 'box'"),
        ],
    )
    def test_refused(self, block: Load, sections: dict[str, Any], says: str) -> None:
        refused(block, says, **sections)

    def test_what_depends_on_the_state_is_not_judged(self, block: Load) -> None:
        block(contacts={"c": {"gap": "y", "restitution": "1.2 - abs(sin(q))"}})


class TestCount:
    def test_of_speeds(self, block: Load) -> None:
        refused(block, "3 coordinates need as many", "found: 2 speeds", speeds={"u": "rate(x)", "v": "rate(y)"})
        row = {"row": {"velocity": "rate(q)", "kinematic": True}}
        block(speeds={"u": "rate(x)", "v": "rate(y)"}, constraints=row)
        refused(block, "remove a speed", constraints=row)

    def test_of_euler_parameters(self, block: Load) -> None:
        rates = {axis: f"dot(omega(B), B.{axis[-1]})" for axis in ("wx", "wy", "wz")}
        model = {
            "coordinates": None,
            "frames": {"B": {"euler_parameters": "e"}},
            "points": {"P": {"from": "O", "at": "r*B.x"}},
        }
        block(**model, speeds=rates)
        refused(block, "4 coordinates need as many", "1 unit norms", **model, speeds={"w": rates["wx"]})
        refused(block, "`speeds` must be given", **model)


@pytest.mark.parametrize(
    "gap", ["x > 0", "x > 0 and y > 0", "y - (x > 0)", "-(x > 0)", "abs(x > 0)", "where(x > 0, y, y > 0)"]
)
def test_a_condition_in_place_of_a_number_is_shown_as_written(block, gap):
    error = refused(block, "condition", contacts={"ground": {"gap": gap}}, modes=None, transitions=None, initial=None)
    assert error.found == gap
    assert "where(" in error.remedy


@pytest.mark.parametrize("wrong", ["hello world", "nowhere", "N.x", "x > 0", "2 +* 3"])
@pytest.mark.parametrize("key", ["coordinate", "lower", "upper"])
def test_an_error_in_a_limit_is_placed_at_the_limit(key, wrong):
    stop = {"coordinate": "x", "lower": "-1 m", "upper": "1 m", key: wrong}
    entries = "".join(f"\n      {name}: '{value}'" for name, value in stop.items())
    text = f"""fsm_dyn: 1
coordinates: {{x: m}}
points: {{P: {{from: O, at: x*N.x}}}}
bodies: {{b: {{center: P, mass: 1 kg}}}}
contacts:
  end:
    joint_stop:{entries}
"""
    with pytest.raises(ModelError) as caught:
        loader.load(text=text)
    assert caught.value.found == wrong
    assert caught.value.where.line == 8 + list(stop).index(key)
