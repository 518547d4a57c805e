"""Contacts between all shapes: the same model and the same motion as with the pairs listed by hand."""

from itertools import combinations

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import ModelError
from fsm_dyn.language.loader import load


def disks(n: int) -> fsm_dyn.Model:
    """Return n disks in a box of four walls, without contacts."""
    m = fsm_dyn.Model("disks").parameter("r", "0.1 m")
    for i in range(n):
        m.coordinate(f"x{i}", "m").coordinate(f"y{i}", "m")
        m.point(f"P{i}", from_="O", at=f"x{i}*N.x + y{i}*N.y").body(f"d{i}", center=f"P{i}", mass="1 kg")
        m.shape(f"s{i}", circle={"center": f"P{i}", "radius": "r"})
        m.initial(
            **{f"x{i}": f"{0.15 + 0.23 * i} m", f"y{i}": f"{0.3 + 0.07 * (i % 3)} m", f"x{i}_dot": f"{1 - i} m/s"}
        )
    m.point("R", from_="O", at=f"{0.3 * n} m*N.x").point("T", from_="O", at="1 m*N.y")
    m.shape("ground", line={"along": "N.x"}, side="N.y").shape("left", line={"along": "N.y"}, side="N.x")
    m.shape("right", line={"from": "R", "along": "N.y"}, side="-N.x")
    m.shape("top", line={"from": "T", "along": "N.x"}, side="-N.y")
    return m.load(gravity="-9.81 m/s^2*N.y")


def by_hand(n: int) -> fsm_dyn.Model:
    m = disks(n)
    for a, b in combinations([*(f"s{i}" for i in range(n)), "ground", "left", "right", "top"], 2):
        if a.startswith("s"):  # walls do not move against each other
            m.contact(f"{a}_{b}", between=[a, b], restitution=0.5)
    return m


def test_all_pairs_are_those_listed_by_hand_and_move_alike_bit_for_bit():
    runs = []
    for model in (disks(3).contact("touch", between="all", restitution=0.5), by_hand(3)):
        runs.append(fsm_dyn.simulate(fsm_dyn.compile(model, cache=False), until=0.5))
    assert list(runs[0].columns) == list(runs[1].columns)
    for column in runs[0].columns:
        assert runs[0][column].tobytes() == runs[1][column].tobytes()
    assert [str(t) for t in runs[0].transitions] == [str(t) for t in runs[1].transitions]
    assert any("s0_s1" in str(t) for t in runs[0].transitions)


def balls(n: int) -> fsm_dyn.Model:
    """Return n balls in space over a floor, between two walls, without contacts."""
    m = fsm_dyn.Model("balls").parameter("r", "0.1 m")
    for i in range(n):
        m.coordinate(f"x{i}", "m").coordinate(f"y{i}", "m").coordinate(f"z{i}", "m")
        m.point(f"P{i}", from_="O", at=f"x{i}*N.x + y{i}*N.y + z{i}*N.z").body(f"b{i}", center=f"P{i}", mass="1 kg")
        m.shape(f"s{i}", sphere={"center": f"P{i}", "radius": "r"})
        m.initial(
            **{f"x{i}": f"{0.15 + 0.23 * i} m", f"y{i}": f"{0.2 + 0.01 * i} m", f"z{i}": f"{0.3 + 0.05 * (i % 2)} m"},
            **{f"x{i}_dot": f"{1 - i} m/s", f"y{i}_dot": f"{0.4 * (i % 2) - 0.2} m/s"},
        )
    m.point("R", from_="O", at=f"{0.3 * n} m*N.x")
    m.shape("ground", plane={"from": "O"}, side="N.z").shape("left", plane={"from": "O"}, side="N.x")
    m.shape("right", plane={"from": "R"}, side="-N.x")
    return m.load(gravity="-9.81 m/s^2*N.z")


@pytest.mark.parametrize("law", [{"restitution": 0.6}, {"friction": 0.3, "restitution": 0.2}])
@pytest.mark.parametrize("strategy", ["compiled", "online"])
def test_spheres_and_planes_in_space_move_as_with_the_pairs_listed_by_hand_bit_for_bit(law, strategy):
    hand = balls(3)
    for a, b in combinations(["s0", "s1", "s2", "ground", "left", "right"], 2):
        if a.startswith("s"):
            hand.contact(f"{a}_{b}", between=[a, b], **law)
    runs = [
        fsm_dyn.simulate(fsm_dyn.compile(model, cache=False), until=0.8, strategy=strategy)
        for model in (balls(3).contact("touch", between="all", **law), hand)
    ]
    assert list(runs[0].columns) == list(runs[1].columns)
    for column in runs[0].columns:
        assert runs[0][column].tobytes() == runs[1][column].tobytes()
    assert [str(t) for t in runs[0].transitions] == [str(t) for t in runs[1].transitions]
    met = {
        pair for pair in ("s0_s1", "s1_s2", "s1_ground", "s0_left") if any(pair in str(t) for t in runs[0].transitions)
    }
    assert len(met) >= 3


def test_eight_disks_in_a_box_have_sixty_pairs():
    model = disks(8).contact("touch", between="all", restitution=0.5).mechanism()
    assert len(model.contacts) == 28 + 32
    assert model.digest == by_hand(8).mechanism().digest
    assert load(text=model.text).digest == model.digest


def test_pairs_that_stay_far_apart_change_no_bit():
    """Eight disks: all 60 pairs, and those alone whose shapes come nearer than a radius in some row."""
    everything = fsm_dyn.simulate(fsm_dyn.compile(by_hand(8)), until=0.35)
    places = everything.q.reshape(-1, 8, 2)
    apart = {f"s{i}_s{j}": np.hypot(*(places[:, i] - places[:, j]).T).min() - 0.2 for i, j in combinations(range(8), 2)}
    for i in range(8):
        x, y = places[:, i].T
        walls = {"ground": y.min(), "left": x.min(), "right": 2.4 - x.max(), "top": 1.0 - y.max()}
        apart.update({f"s{i}_{wall}": distance - 0.1 for wall, distance in walls.items()})
    near = [name for name in by_hand(8).mechanism().contacts if apart[name] < 0.1]
    assert 10 < len(near) < 30
    model = disks(8)
    for name in near:
        model.contact(name, between=name.split("_"), restitution=0.5)
    run = fsm_dyn.simulate(fsm_dyn.compile(model), until=0.35)
    assert run.rows.x.tobytes() == everything.rows.x.tobytes()
    assert [str(t) for t in run.transitions] == [str(t) for t in everything.transitions]
    assert len(run.transitions) > 100


def test_a_pair_that_another_entry_lists_and_a_list_of_shapes():
    model = disks(3).contact("soft", between=["ground", "s1"], restitution=0)
    model.contact("touch", between=["s0", "s1", "ground"], restitution=0.5)
    assert list(model.mechanism().contacts) == ["soft", "s0_s1", "s0_ground"]


def test_shapes_of_one_body_are_left_out():
    model = fsm_dyn.Model("two").coordinate("x", "m").coordinate("q", "rad").frame("B", rotate={"z": "q"})
    model.point("C", from_="O", at="x*N.x").point("K", from_="C", at="0.1 m*B.x")
    model.point("L", from_="C", at="0.1 m*N.x").body(
        "b", frame="B", center="C", mass="1 kg", inertia={"zz": "1 kg*m^2"}
    )
    for name, center in (("a", "C"), ("k", "K"), ("l", "L")):
        model.shape(name, circle={"frame": "B", "center": center, "radius": "1 cm"})
    model.contact("touch", between="all")
    assert list(model.mechanism().contacts) == ["a_l", "k_l"]  # L turns against B


@pytest.mark.parametrize("between", [["left", "ground", "top"], ["s0"], "some", ["s0", "s1", "s7"]])
def test_shapes_that_cannot_touch_are_refused(between):
    model = disks(2).contact("touch", between=between)
    with pytest.raises(ModelError) as caught:
        model.mechanism()
    assert caught.value.where.file == __file__


def test_all_of_a_component_are_its_own_shapes():
    part = {
        "fsm_dyn": 1,
        "coordinates": {"x": "m"},
        "points": {"P": {"from": "O", "at": "x*N.x"}},
        "bodies": {"b": {"center": "P", "mass": "1 kg"}},
        "shapes": {
            "ball": {"circle": {"center": "P", "radius": "1 cm"}},
            "wall": {"line": {"along": "N.y"}, "side": "N.x"},
        },
        "contacts": {"touch": {"between": "all"}},
        "initial": {"x": "1 m"},
    }
    model = disks(1).use("part", model=part)
    assert list(model.mechanism().contacts) == ["part_ball_wall"]


def test_groups_meet_each_other_and_not_themselves():
    model = disks(3).contact("touch", between=[["s0", "s1"], ["s2", "ground"], "left"], restitution=0.5)
    pairs = ["s0_s2", "s0_ground", "s1_s2", "s1_ground", "s0_left", "s1_left", "s2_left"]
    mechanism = model.mechanism()
    assert list(mechanism.contacts) == pairs
    assert load(text=mechanism.text).digest == mechanism.digest


def test_one_group_and_a_name_are_no_pair_and_overlapping_groups_list_a_pair_once():
    model = disks(2).contact("touch", between=[["s0", "s1"], ["s1", "s0"]])
    assert list(model.mechanism().contacts) == ["s0_s1"]
    model = disks(2).contact("touch", between=[["s0"], ["s1"]])
    assert list(model.mechanism().contacts) == ["touch"]


@pytest.mark.parametrize("between", [[["s0", "s1"]], [["s0"], []], [[["s0"]], "s1"], [["s0", "s7"], "s1"]])
def test_groups_without_a_pair_are_refused(between):
    model = disks(2).contact("touch", between=between)
    with pytest.raises(ModelError) as caught:
        model.mechanism()
    assert caught.value.where.file == __file__


def bricks(shape):
    """Return a brick over a floor, and another shape."""
    m = fsm_dyn.Model("bricks").coordinate("x", "m").coordinate("y", "m").coordinate("z", "m")
    m.point("P", from_="O", at="x*N.x + y*N.y + z*N.z").frame("B", rotate={"z": "0.3 rad"})
    m.body("brick", frame="B", center="P", mass="1 kg", inertia={"xx": "1 kg*m^2", "yy": "1 kg*m^2", "zz": "1 kg*m^2"})
    m.point("Q", from_="O", at="1 m*N.x")
    m.shape("block", box={"frame": "B", "center": "P", "size": ["0.1 m", "0.1 m", "0.1 m"]})
    m.shape("other", **shape).shape("slab", plane={"from": "O"}, side="N.z")
    return m


@pytest.mark.parametrize(
    ("shape", "count"),
    [
        ({"box": {"frame": "N", "center": "Q", "size": ["0.1 m", "0.1 m", "0.1 m"]}}, 8 * 6 + 6 * 8 + 12 * 12),
        ({"sphere": {"center": "Q", "radius": "0.1 m"}}, 8 + 6 + 12),
    ],
)
def test_features_of_a_box_touch_those_of_other_solids(shape, count):
    contacts = bricks(shape).contact("touch", between="all").mechanism().contacts.values()
    assert sum(contact.entry == "block_other" for contact in contacts) == count
    assert sum(contact.entry == "block_slab" for contact in contacts) == 8


def test_solids_without_a_contact_between_them_are_named_instead_of_passing_through_each_other():
    shape = {"disk": {"center": "Q", "axis": "N.z", "radius": "0.1 m"}}
    with pytest.raises(ModelError, match=r"'block'.*'other' would pass through each other"):
        bricks(shape).contact("touch", between="all").mechanism()
    model = bricks(shape).contact("touch", between=[["block", "other"], ["slab"]])
    assert {entry.entry for entry in model.mechanism().contacts.values()} == {"block_slab"}
