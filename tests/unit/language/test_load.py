"""Content of a loaded model."""

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fsm_dyn import language as spec
from fsm_dyn.core.errors import Location, ModelError
from fsm_dyn.language import loader
from fsm_dyn.language.contacts import GapContact
from fsm_dyn.language.describe_keys import starter
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.yaml import LocatedList, LocatedMapping, LocatedStr, Tree, compose

MODELS = Path(__file__).parent / "models"
Load = Callable[..., Mechanism]


def strings(texts: object) -> object:
    """Return texts without their places."""
    return {key: str(value) for key, value in texts.items()} if hasattr(texts, "items") else [str(t) for t in texts]


class TestCart:
    def test_head(self, cart: Mechanism) -> None:
        assert cart.name == "shopping_cart"
        assert cart.source == "Gillespie (2003), Haptics-e 3(2), Example 3"
        assert cart.uses_units

    def test_geometry(self, cart: Mechanism) -> None:
        assert strings({n: p.values[0] for n, p in cart.parameters.items()})["tau_stick"] == "0.40 N*m"
        assert {n: c.unit for n, c in cart.coordinates.items()} == {"q1": "m", "q2": "m", "q3": "rad", "q4": "rad"}
        assert cart.coordinate_names == ("q1", "q2", "q3", "q4")
        frame = cart.frames["C"]
        assert (frame.parent, frame.kind, [(a, str(t)) for a, t in frame.rotations]) == ("B", "simple", [("z", "q4")])
        point = cart.points["P3"]
        assert (point.origin, str(point.at)) == ("P2", "-L3*C.x")
        basket, caster = cart.bodies["basket"], cart.bodies["caster"]
        assert (basket.frame, basket.center, str(basket.mass), strings(basket.inertia)) == (
            "B",
            "Bo",
            "mB",
            {"zz": "IB"},
        )
        assert (caster.frame, caster.inertia) == (None, {})

    def test_motion(self, cart: Mechanism) -> None:
        assert strings(cart.speeds) == {
            "u1": "dot(vel(P1), B.x)",
            "u2": "dot(omega(B), N.z)",
            "u3": "dot(omega(C), N.z)",
        }
        rows = {n: (c.kind, c.kinematic) for n, c in cart.constraints.items()}
        assert rows == {"rear_axle": ("velocity", True), "front_wheel": ("velocity", False)}
        contact = cart.contacts["caster_axis"]
        assert (contact.kind, contact.states) == ("dry_friction", ("", "stick", "slide"))
        assert [str(contact.slip), str(contact.static), str(contact.kinetic)] == ["u3 - u2", "tau_stick", "tau_slip"]

    def test_control(self, cart: Mechanism) -> None:
        push = cart.inputs["push"]
        assert push.unit == "N"
        assert push.schedule is not None
        assert push.schedule.kind == "linear"
        assert [(str(t), str(v)) for t, v in push.schedule.points][2] == ("2.5 s", "-20 N")
        force, torque = cart.loads
        assert (force.name, force.kind, str(force.value), force.at) == ("force_P1", "force", "push*B.x", "P1")
        assert (torque.name, torque.on, torque.reaction) == ("torque_basket", "basket", None)
        assert {n: dict(m.states) for n, m in cart.modes.items()} == {
            "rolling": {"caster_axis": "slide"},
            "sticking": {"caster_axis": "stick"},
        }
        assert (cart.initial.mode, strings(cart.initial.values)) == ("rolling", {"q4": "0.4 rad", "u1": "0.5 m/s"})
        port = cart.ports["handle"]
        assert (port.point, port.body, strings(port.axes), str(port.rotation)) == (
            "P1",
            "basket",
            ["N.x", "N.y"],
            "N.z",
        )

    def test_view(self, cart: Mechanism) -> None:
        (shape,) = cart.view["basket"]
        assert shape.kind == "polygon"
        assert [str(v) for v in shape.points[0]] == ["-0.1", "-0.3"]

    def test_places(self, cart: Mechanism) -> None:
        path = str(MODELS / "language_cart.yaml")
        assert cart.bodies["basket"].mass.where == Location(path, 24, 40)
        assert cart.bodies["basket"].where == Location(path, 24, 3)
        assert cart.loads[1].where == Location(path, 41, 6)
        assert cart.where == Location(path, 1, 1)

    def test_is_plain_and_can_be_sent_to_another_process(self, cart: Mechanism) -> None:
        assert pickle.loads(pickle.dumps(cart)) == cart  # noqa: S301
        assert type(cart.points["P1"].origin) is str
        assert not any(isinstance(name, LocatedStr) for name in (*cart.points, *cart.modes["rolling"].states))

    def test_text_is_kept(self, cart: Mechanism) -> None:
        assert cart.text == (MODELS / "language_cart.yaml").read_text()
        assert loader.load("again", text=cart.text).digest == cart.digest


class TestEverything:
    def test_frames(self, everything: Mechanism) -> None:
        frames = everything.frames
        assert {n: (f.parent, f.kind) for n, f in frames.items()} == {
            "T": ("N", "simple"),
            "A": ("T", "body"),
            "D": ("A", "space"),
            "E": ("N", "euler_parameters"),
        }
        assert [axis for axis, _ in frames["D"].rotations] == ["x", "y", "z"]
        assert frames["E"].euler_names == ("e0", "e1", "e2", "e3")
        assert everything.coordinate_names == ("x", "y", "z", "q", "s", "e0", "e1", "e2", "e3")

    def test_bodies(self, everything: Mechanism) -> None:
        box = everything.bodies["box"]
        assert list(box.inertia) == ["xx", "yy", "zz", "xy", "yz", "xz"]
        assert box.about == "Q"

    def test_contacts(self, everything: Mechanism) -> None:
        contacts = everything.contacts
        assert {name: contact.states for name, contact in contacts.items()} == {
            "ground": ("open", "stick", "slide"),
            "peg": ("open", "stick"),
            "pin": ("open", "stick", "slide"),
            "plate": ("open", "closed"),
            "stop_lower": ("open", "closed"),
            "stop_upper": ("open", "closed"),
            "end": ("open", "closed"),
            "brake": ("", "stick", "slide"),
            "latch": ("released", "engaged"),
            "hook": ("released", "engaged"),
        }
        assert contacts["peg"].infinite_friction
        assert [str(contacts["pin"].static), str(contacts["pin"].kinetic)] == ["0.5", "0.5"]
        assert [str(contacts[n].gap) for n in ("stop_lower", "stop_upper", "end")] == [
            "q - (-1 rad)",
            "(60 deg) - q",
            "(1 m) - s",
        ]
        assert str(contacts["stop_upper"].restitution) == "0.5"
        assert contacts["ground"].restitution_law == "poisson"
        assert contacts["hook"].gap is not None
        assert contacts["latch"].slip is not None

    def test_inputs(self, everything: Mechanism) -> None:
        kinds = {name: entry.schedule.kind if entry.schedule else None for name, entry in everything.inputs.items()}
        assert kinds == {
            "push": "constant",
            "hold": "expression",
            "drive": "linear",
            "wind": "expression",
            "level": "steps",
            "gain": "constant",
        }

    def test_loads_have_names(self, everything: Mechanism) -> None:
        assert [load.name for load in everything.loads] == [
            *("gravity", "shove", "torque_box_arm", "spring_O_P", "spring_x_y", "damper_P_G", "damper_q"),
            *("torsion_spring_q", "law_x", "law_P_Q", "law_s"),
        ]

    def test_transitions(self, everything: Mechanism) -> None:
        first, second, third, fourth = everything.transitions
        assert first.on == ("ground", "closes")
        assert strings(first.set) == {"count": "count + 1", "armed": "not armed"}
        assert (second.crossing, strings(second.reset)) == ("both", {"u1": "-0.5*u1", "x": "2 m"})
        assert (third.name, strings(third.set)) == ("stuck", {"armed": "true"})
        assert (fourth.name, fourth.source, fourth.stop) == ("any_stops", "*", True)

    def test_memory(self, everything: Mechanism) -> None:
        memory = {name: (entry.initial, entry.is_boolean) for name, entry in everything.memory.items()}
        assert memory == {"count": (0, False), "armed": (1, True)}

    def test_the_rest(self, everything: Mechanism) -> None:
        assert everything.impacts == "sequential"
        assert not everything.only_listed
        assert [shape.kind for shape in everything.view["arm"]] == ["line", "circle", "circle"]
        assert everything.parameters["lip"].is_vector


class TestDefaults:
    def test_speeds(self, block: Load) -> None:
        assert strings(block().speeds) == {"x_dot": "rate(x)", "y_dot": "rate(y)", "q_dot": "rate(q)"}

    def test_names_of_models(self, block: Load, tmp_path: Path) -> None:
        assert block().name == "mechanism"
        path = tmp_path / "3 my-model.v2.yaml"
        path.write_text(starter("x").replace("name: x\n", ""))
        assert loader.load(path).name == "my-model_v2"

    def test_empty_sections(self) -> None:
        text = (
            "fsm_dyn: 1\nframes:\nloads:\nmodes:\ninitial:\nview:\ncoordinates: [x]\nbodies: {b: {center: O, mass: 1}}"
        )
        mechanism = loader.load(text=text)
        assert (mechanism.frames, mechanism.loads, mechanism.modes) == ({}, (), {})

    def test_numbers_of_python(self) -> None:
        model = {
            "fsm_dyn": 1,
            "coordinates": ("x",),
            "bodies": {"b": {"center": "O", "mass": 2}},
            "parameters": {"a": 0.1},
        }
        mechanism = loader.load(model)
        assert str(mechanism.bodies["b"].mass) == "2"
        assert str(mechanism.parameters["a"].values[0]) == "0.1"

    def test_hexadecimal(self) -> None:
        mechanism = loader.load(
            text="fsm_dyn: 1\nparameters: {a: 0x1F, b: 0o17, c: 1e3}\n"
            "coordinates: [x]\nbodies: {d: {center: O, mass: 1}}\n"
        )
        assert spec.values.parameter_values(mechanism) == {"a": 31.0, "b": 15.0, "c": 1000.0}

    def test_frames_and_points_are_put_in_order(self, block: Load) -> None:
        mechanism = block(
            frames={
                "B": {"parent": "C", "rotate": {"z": "q"}},
                "D": {"rotate": {"x": "0.1"}},
                "C": {"rotate": {"x": "0.2"}},
            },
            points={
                "K": {"from": "Q", "at": "r*B.x"},
                "P": {"from": "O", "at": "x*N.x"},
                "Q": {"from": "O", "at": "pos(P)"},
            },
        )
        assert list(mechanism.frames) == ["C", "B", "D"]
        assert list(mechanism.points) == ["P", "Q", "K"]

    def test_a_body_that_does_not_turn(self, block: Load) -> None:
        assert block(bodies={"box": {"frame": "N", "center": "P", "mass": "m"}}).bodies["box"].frame == "N"


def test_a_mapping_says_the_same_as_a_file(cart: Mechanism) -> None:
    model = plain(compose(cart.text, "cart"))
    mechanism = loader.load(model)
    assert mechanism.digest == cart.digest
    assert loader.load(text=mechanism.text).digest == cart.digest


def plain(tree: Tree) -> Any:
    """Return a composed tree as mappings and lists."""
    if isinstance(tree, LocatedMapping):
        return {str(word): plain(value) for word, value in tree.items()}
    return [plain(item) for item in tree] if isinstance(tree, LocatedList) else tree.value


def test_contact_without_kind_has_no_states() -> None:
    assert GapContact(name="c").states == ("open", "closed")


def test_a_long_chain(block: Load) -> None:
    """Orders and bounds are linear: five hundred frames load."""
    n = 500
    frames = {f"F{i}": {"parent": f"F{i - 1}" if i else "N", "rotate": {"z": f"q{i}"}} for i in reversed(range(n))}
    points = {f"P{i}": {"from": f"P{i - 1}" if i else "O", "at": f"r*F{i}.x"} for i in reversed(range(n))}
    mechanism = block(
        coordinates={f"q{i}": "rad" for i in range(n)},
        frames=frames,
        points=points,
        bodies={"tip": {"center": f"P{n - 1}", "mass": "m"}},
    )
    assert next(iter(mechanism.frames)) == "F0"
    assert list(mechanism.points)[-1] == f"P{n - 1}"


def test_a_model_is_read_without_the_heavy_packages() -> None:
    code = f"""
import sys
from fsm_dyn.language import loader
loader.load({str(MODELS / "language_cart.yaml")!r})
print([name for name in ("pint", "sympy") if name in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.timeout(30)
def test_a_file_that_multiplies_itself_is_refused_before_it_grows() -> None:
    with pytest.raises(ModelError):
        loader.load(text="a: &a [1]\n" + "\n".join(f"b{i}: [{', '.join(['*a'] * 3000)}]" for i in range(20)))
