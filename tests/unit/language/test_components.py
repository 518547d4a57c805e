"""Components: models with parts of other files, and refused parts."""

import warnings

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import NOWHERE, ComponentWarning, ModelError
from fsm_dyn.language import loader
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.requirement import formula_of, read_formula

FINGER = """
fsm_dyn: 1
name: finger
parameters: {m: 0.1 kg, length: 50 mm, k: 20 N/m, x: 3 mm}
coordinates: {s: m}
frames: {F: {rotate: {z: 0.2 rad}}}
points:
  P: {from: O, at: (s + x)*N.x}
  Q: {from: P, at: length*F.y}
bodies: {tip: {center: P, mass: m, frame: F, inertia: {zz: 1e-4 kg*m^2}}}
contacts:
  pad: {gap: "0.2 m - dot(pos(Q), N.x)", slip: "dot(vel(Q), F.y)", friction: 0.3}
loads:
  - {spring: {coordinate: s, stiffness: k}, name: back}
  - {gravity: -9.81 m/s^2*N.y}
outputs: {v: "dot(vel(P), N.x)"}
initial: {s: x}
"""
HAND = """
fsm_dyn: 1
name: hand
parameters: {L: 40 mm, m: 1 kg}
coordinates: {q: rad}
frames: {B: {rotate: {z: q}}}
points: {C: {from: O, at: L*B.x}}
bodies: {palm: {frame: B, center: C, mass: m, inertia: {zz: 0.1 kg*m^2}}}
use:
  left: {file: finger.yaml, with: {length: 2*L}, attach: palm}
  right: {file: finger.yaml, attach: {frame: B}}
initial: {q: 0.1 rad, q_dot: 2 rad/s, right_s: 5 mm}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "finger.yaml").write_text(FINGER)
    (tmp_path / "hand.yaml").write_text(HAND)
    return tmp_path


def test_names_get_the_prefix_and_nothing_else_does(folder):
    hand = loader.load(folder / "hand.yaml")
    assert list(hand.coordinates) == ["q", "left_s", "right_s"]
    assert list(hand.speeds) == ["q_dot", "left_s_dot", "right_s_dot"]
    assert hand.points["left_P"].at.text == "(left_s + left_x)*B.x"  # not B.left_x
    assert hand.points["left_P"].origin == "C"
    assert hand.points["right_P"].origin == "O"
    assert hand.frames["left_F"].parent == "B"
    assert hand.frames["left_F"].rotations[0][1].text == "0.2 rad"
    assert hand.coordinates["left_s"].unit == "m"
    assert hand.parameters["left_length"].values[0].text == "2*L"
    assert hand.parameters["right_length"].values[0].text == "50 mm"
    assert [load.kind for load in hand.loads] == ["spring", "spring"]  # gravity is the model's own affair
    assert {load.name for load in hand.loads} == {"left_back", "right_back"}
    assert hand.initial.values["left_s"].text == "left_x"
    assert hand.initial.values["right_s"].text == "5 mm"


def test_motion_within_a_component_is_against_what_it_is_attached_to(folder):
    """A finger at rest on its slide has no velocity in the palm, for any turn of the palm."""
    graph = fsm_dyn.compile(folder / "hand.yaml")
    start = fsm_dyn.simulate(graph, until=1e-9)
    assert abs(start.outputs["left_v"][0]) <= 1e-15
    moving = fsm_dyn.simulate(graph, until=1e-9, initial={"left_s_dot": 0.3})
    assert moving.outputs["left_v"][0] == pytest.approx(0.3, abs=1e-12)


def test_a_component_moves_as_the_same_parts_written_out(folder):
    """Two pendulums of one file swing as one pendulum does alone."""
    text = """
fsm_dyn: 1
coordinates: {z: m}
points: {Z: {from: O, at: z*N.z}}
bodies: {weight: {center: Z, mass: 1 kg}}
use:
  a: {file: pendulum_with_stop}
  b: {file: pendulum_with_stop, with: {l: 0.7 m}}
loads: [{gravity: -9.81 m/s^2*N.y}]
"""
    both = fsm_dyn.simulate(fsm_dyn.compile(loader.load("both", text=text)), until=2.0)
    alone = fsm_dyn.compile("pendulum_with_stop")
    for parameters, column in (({}, 1), ({"l": 0.7}, 2)):
        one = fsm_dyn.simulate(alone, until=2.0, parameters=parameters)
        assert both.at(2.0).q[column] == pytest.approx(one.q[-1, 0], abs=1e-7)
    assert len(both.transitions) > 2


def test_the_text_of_a_model_with_components_needs_no_other_file(folder):
    hand = loader.load(folder / "hand.yaml")
    assert "finger.yaml" not in hand.text
    assert loader.load("elsewhere", text=hand.text).digest == hand.digest


def test_a_mistake_in_a_component_is_reported_in_its_own_file(folder):
    (folder / "finger.yaml").write_text(FINGER.replace("k: 20 N/m", "k: 20 N/s"))
    with pytest.raises(ModelError) as caught:
        loader.load(folder / "hand.yaml")
    assert caught.value.where.file.endswith("finger.yaml")
    assert (
        caught.value.where.line
        == FINGER.split("\n").index("  - {spring: {coordinate: s, stiffness: k}, name: back}") + 1
    )


def test_components_of_components_and_no_circle(folder):
    (folder / "both.yaml").write_text(HAND.replace("palm: ", "palms: ").replace("attach: palm", "attach: palms"))
    (folder / "arm.yaml").write_text(
        "fsm_dyn: 1\nname: arm\ncoordinates: {y: m}\npoints: {Y: {from: O, at: y*N.y}}\n"
        "bodies: {arm: {center: Y, mass: 1 kg}}\nuse: {hand: {file: hand.yaml, attach: {point: Y}}}\n"
    )
    arm = loader.load(folder / "arm.yaml")
    assert "hand_left_P" in arm.points
    assert loader.load("x", text=arm.text).digest == arm.digest
    (folder / "finger.yaml").write_text(FINGER + "use: {again: {file: arm.yaml}}\n")
    with pytest.raises(ModelError, match=r"contains itself(.|\n)*arm.yaml in finger.yaml in hand.yaml in arm.yaml"):
        loader.load(folder / "arm.yaml")


def test_a_link_out_of_the_folder_is_not_followed(folder, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "secret.yaml"
    outside.write_text(FINGER)
    (folder / "link.yaml").symlink_to(outside)
    (folder / "hand.yaml").write_text(HAND.replace("finger.yaml", "link.yaml"))
    with pytest.raises(ModelError, match="not where a link leads"):
        loader.load(folder / "hand.yaml")


def test_a_text_has_no_files_beside_it():
    with pytest.raises(ModelError, match="no files beside it"):
        loader.load("x", text=HAND)


def test_transitions_of_a_component_are_from_any_mode(folder):
    text = HAND.replace("finger.yaml", "latch")
    with pytest.raises(ModelError, match="names a mode") as caught:
        loader.load("x", text=text)
    assert caught.value.where.file.endswith("latch.yaml")


def test_shapes_of_components_touch(folder):
    """A ball of one component lands on a floor of this model: the free fall is known."""
    ball = """
fsm_dyn: 1
parameters: {r: 1 cm}
coordinates: {y: m}
points: {P: {from: O, at: y*N.y}}
bodies: {ball: {center: P, mass: 1 g}}
shapes: {rim: {circle: {center: P, radius: r}}, shelf: {line: {along: N.x}, side: N.y}}
"""
    (folder / "ball.yaml").write_text(ball)
    (folder / "drop.yaml").write_text(
        "fsm_dyn: 1\ncoordinates: {z: m}\npoints: {Z: {from: O, at: z*N.z}, S: {from: O, at: -1 m*N.y}}\n"
        "bodies: {dot1: {center: Z, mass: 1 kg}}\n"
        "use: {a: {file: ball.yaml, attach: {point: S}}, b: {file: ball.yaml}}\n"
        "contacts: {hits: {between: [b_rim, a_shelf]}}\n"
        "loads: [{gravity: -10 m/s^2*N.y}]\ninitial: {a_y: 5 m}\n"
    )
    run = fsm_dyn.simulate(fsm_dyn.compile(folder / "drop.yaml"), until=1.0)
    (landing,) = run.transitions
    assert landing.time == pytest.approx(np.sqrt(2 * 0.99 / 10), abs=1e-9)


PAIRS = """
fsm_dyn: 1
name: pairs
coordinates: {y: m, q: rad}
frames: {B: {rotate: {z: q}}}
points: {P: {from: O, at: y*N.y}}
bodies: {brick: {frame: B, center: P, mass: 2 kg, inertia: {zz: 0.02 kg*m^2}}}
shapes:
  outline: {polygon: {frame: B, points: [[-0.1 m, -0.1 m], [0.1 m, -0.1 m], [0 m, 0.1 m]]}}
  ground: {line: {along: N.x}, side: N.y}
memory: {stops: 0, ones: 0, twos: 0}
contacts:
  stop: {joint_stop: {coordinate: q, lower: -0.3 rad, upper: 0.3 rad}, restitution: 0.5}
  rubs: {between: [outline, ground], restitution: 0.4}
loads: [{gravity: -9.81 m/s^2*N.y, on: brick}]
transitions:
  - {from: "*", on: stop_lower closes, set: {stops: stops + 1}}
  - {from: "*", on: rubs_1 closes, set: {ones: ones + 1}}
  - {from: "*", on: rubs_2 closes, set: {twos: twos + 1}}
initial: {y: 0.5 m, q: 0.2 rad, q_dot: -4 rad/s}
requirements: {seldom: count(rubs_1 closes) <= 100, lands: eventually rubs closes}
"""
WHOLE = """
fsm_dyn: 1
name: whole
coordinates: {z: m}
points: {Z: {from: O, at: z*N.x}}
bodies: {other: {center: Z, mass: 1 kg}}
use: {part: {file: pairs.yaml}}
requirements: {seldom: count(part_rubs_1 closes) <= 100, stopped: count(part_stop_lower closes) >= 0}
"""


def test_transitions_of_a_component_name_pairs_that_are_written_out(tmp_path):
    """And gravity on one body stays: alone and as a component it is the same motion."""
    (tmp_path / "pairs.yaml").write_text(PAIRS)
    (tmp_path / "whole.yaml").write_text(WHOLE)
    alone, part = (
        fsm_dyn.simulate(fsm_dyn.compile(tmp_path / name), until=1.0) for name in ("pairs.yaml", "whole.yaml")
    )
    np.testing.assert_allclose(part.q[-1, 1:], alone.q[-1], atol=1e-9)
    counts = {name: alone[name][-1] for name in ("stops", "ones", "twos")}
    assert min(counts.values()) > 0
    assert {name: part[f"part_{name}"][-1] for name in counts} == counts
    assert {item.verdict for item in part.judge().values()} == {"met"}


def test_places_survive_renaming(tmp_path):
    """Errors found after the renaming of a component name its own file and line."""
    for wrong, line in (
        (("on: rubs_2 closes", "on: rubs_9 closes"), 18),
        (("restitution: 0.4}", "restitution: 0.4, friction: {static: 0.1}}"), 13),
        (("restitution: 0.4}", "compliant: {stiffness: 1 N/m}, restitution: 0.4}"), 13),
        (("on: brick}]", "on: nobody}]"), 14),
        (("{line: {along: N.x}, side: N.y}", "{line: {along: N.x}}"), 9),
    ):
        (tmp_path / "pairs.yaml").write_text(PAIRS.lstrip("\n").replace(*wrong))
        (tmp_path / "whole.yaml").write_text(WHOLE)
        with pytest.raises(ModelError) as refused:
            loader.load(tmp_path / "whole.yaml")
        assert (refused.value.where.file.rpartition("/")[2], refused.value.where.line) == ("pairs.yaml", line), wrong


def test_each_component_has_its_cords(tmp_path):
    (tmp_path / "bob.yaml").write_text("""
fsm_dyn: 1
coordinates: {x: m}
points: {P: {from: O, at: x*N.x}, Q: {from: O, at: 1 m*N.y}}
bodies: {ball: {center: P, mass: 1 kg}}
contacts: {rope: {gap: "2 m - norm(pos(P, Q))"}}
view: {ball: {circle: {radius: 0.1 m}}, cords: {rope: [P, Q]}}
""")
    path = tmp_path / "two.yaml"
    path.write_text((tmp_path / "bob.yaml").read_text() + "use: {a: {file: bob.yaml}, b: {file: bob.yaml}}\n")
    cords = fsm_dyn.load(path).view["cords"]
    assert [(cord.contact, cord.points) for cord in cords] == [
        ("rope", ("P", "Q")), ("a_rope", ("a_P", "a_Q")), ("b_rope", ("b_P", "b_Q"))
    ]  # fmt: skip


ROD = """
fsm_dyn: 1
name: rod
parameters: {m: 1 kg, l: 0.4 m}
coordinates: {q: rad}
frames: {A: {rotate: {z: q}}}
points:
  C: {from: O, at: 0.5*l*A.x}
  J: {from: O, at: l*A.x}
bodies: {bar: {frame: A, center: C, mass: m, inertia: {zz: 0.01 kg*m^2}}}
loads: [{gravity: -9.81 m/s^2*N.y}]
imposed:
  catch: {pin: [J, ground], at: 0.2 s, until: 0.3 s}
"""
TWO_RODS = """
fsm_dyn: 1
name: two_rods
coordinates: {y: m}
points: {S: {from: O, at: 1 m*N.x + y*N.y}}
bodies: {cart: {center: S, mass: 2 kg}}
constraints: {held: {position: y}}
loads: [{gravity: -9.81 m/s^2*N.y}]
use:
  left: {file: rod.yaml}
  right: {file: rod.yaml, attach: {point: S}}
"""


def test_a_component_brings_what_it_imposes(tmp_path):
    """Each of two rods is caught and released by its own pin, and moves as a rod alone does."""
    (tmp_path / "rod.yaml").write_text(ROD)
    (tmp_path / "two_rods.yaml").write_text(TWO_RODS)
    both = loader.load(tmp_path / "two_rods.yaml")
    assert list(both.imposed) == list(both.inputs) == ["left_catch", "right_catch"]
    alone = fsm_dyn.simulate(fsm_dyn.compile(tmp_path / "rod.yaml"), until=0.4)
    run = fsm_dyn.simulate(fsm_dyn.compile(both), until=0.4)
    assert sorted(x.time for x in run.transitions) == pytest.approx(sorted(2 * [x.time for x in alone.transitions]))
    times = np.linspace(0.0, 0.4, 41)
    for name in ("left_q", "right_q"):
        assert run.sample(times)[name] == pytest.approx(alone.sample(times)["q"], abs=1e-8)


BOUNCER = """
fsm_dyn: 1
name: bouncer
parameters: {m: 1 kg, top: 0.9 m}
coordinates: {y: m}
points: {P: {from: O, at: y*N.y}}
bodies: {ball: {center: P, mass: m}}
contacts: {floor: {gap: "dot(pos(P), N.y)", restitution: 0.5}}
loads: [{gravity: -9.81 m/s^2*N.y}]
initial: {y: 1 m}
outputs: {height: y}
pins:
  hold: {between: [N, ball], limits: {force: 100 N}, outputs: [force]}
  floor: {limits: {impulse: 20 N*s}}
phases:
  falls: {when: floor is open and y_dot < 0 m/s}
  rises: {when: y_dot > 0 m/s, after: falls}
  rests: {when: otherwise}
requirements:
  often: count(floor closes) >= 2
  high: always height < top + 0.2 m while floor is open
  low: trough(abs(y_dot)) < 1 m/s
  soft: peak(floor.normal) < 5e3 N
  load: always pin.hold.force < 50 N
  fall: count(falls begins) >= 2
  rise: eventually phase == rises before 2 s
  rises: eventually rises
  seldom: never floor closes twice within 1 ms
  capped: never y > 2 m
"""
USES = """
fsm_dyn: 1
name: whole
coordinates: {z: m}
points: {Z: {from: O, at: z*N.x}}
bodies: {other: {center: Z, mass: 1 kg}}
loads: [{gravity: -9.81 m/s^2*N.y}]
use: {left: {file: bouncer.yaml}}
"""


def test_what_is_asked_of_a_component_is_asked_of_the_whole(tmp_path):
    """Requirements, limits of connections and phases: verdicts and margins are those of the component alone."""
    (tmp_path / "bouncer.yaml").write_text(BOUNCER)
    (tmp_path / "whole.yaml").write_text(USES)
    alone, whole = (
        fsm_dyn.simulate(fsm_dyn.compile(tmp_path / name), until=3.0) for name in ("bouncer.yaml", "whole.yaml")
    )
    own, found = alone.judge(), whole.judge()
    assert [*found] == [f"left_{name}" for name in own]
    assert {item.verdict for item in own.values()} == {"met", "violated"}
    for name, item in own.items():
        assert found[f"left_{name}"].verdict == item.verdict
        assert found[f"left_{name}"].margin == pytest.approx(item.margin, rel=1e-9)
    assert [item.name for item in whole.visits] == [f"left_{item.name}" for item in alone.visits]
    np.testing.assert_allclose(whole["pin.left_hold.force"], alone["pin.hold.force"], rtol=1e-9, atol=1e-12)
    assert whole.model.automaton.mechanism.requirements["left_high"].formula == (
        "always left_height < left_top + 0.2 m while left_floor is open"
    )


@pytest.mark.parametrize(
    ("part", "whole", "lost"),
    [
        ((), ("use:", "phases: {any: {when: otherwise}}\nuse:"), ["fall", "rise", "rises"]),
        ((), ("left: {file: bouncer.yaml}", "a: {file: bouncer.yaml}, left: {file: bouncer.yaml}"),
         ["fall", "rise", "rises"]),
        (("  often:", "  up: always up while floor is open\n  often:"), ("", ""), ["up"]),
    ],
)  # fmt: skip
def test_requirements_that_name_what_is_left_behind_are_so_with_a_warning(tmp_path, part, whole, lost):
    text = BOUNCER.replace("loads:", "modes: {up: {floor: open}}\nloads:") if "up" in lost else BOUNCER
    (tmp_path / "bouncer.yaml").write_text(text.replace(*part) if part else text)
    (tmp_path / "whole.yaml").write_text(USES.replace(*whole))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mechanism = loader.load(tmp_path / "whole.yaml")
    texts = [str(item.message) for item in caught if issubclass(item.category, ComponentWarning)]
    assert len(texts) == len(lost)
    for name, text in zip(lost, texts, strict=True):
        assert f"requirement '{name}' of component 'left' is left behind" in text
        assert "bouncer.yaml:" in text
    assert not {f"left_{name}" for name in lost} & {*mechanism.requirements}
    assert "left_seldom" in mechanism.requirements


def test_formulas_are_read_as_the_claims_that_they_were_written_from():
    written = [
        *("never c closes", "never c closes twice within 2*T", "never y > 2 m", "never c is stick", "never up"),
        *("always y < 1 m while c is not open and mode != up and phase == on", "always abs(y) <= 2 m", "always up"),
        *("eventually c lets go before 3 s", "eventually y > 1 m", "eventually on begins", "eventually phase != on"),
        *("peak(pin.hold.force_x) < 3 N", "final(abs(c.friction)) >= -1 N", "count(c closes) <= 12 + n"),
    ]
    for text in written:
        claim = read_formula(Text(text, NOWHERE))
        assert read_formula(Text(formula_of(claim), NOWHERE)) == claim, text
