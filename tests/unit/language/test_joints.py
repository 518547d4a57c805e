"""Expansion of joints: the same entries written by hand give the same mechanism."""

import numpy as np
import pytest

from fsm_dyn import language as spec
from fsm_dyn.core.errors import ModelError
from fsm_dyn.derive.derivation import derive
from fsm_dyn.language.loader import load
from fsm_dyn.programs.traversal import evaluate, support

KINDS = {
    "revolute": ("axis: N.x", 1),
    "prismatic": ("axis: N.y", 1),
    "cylindrical": ("axis: N.z", 2),
    "universal": ("axis: [N.x, B.y]", 2),
    "ball": ("", 3),
    "planar": ("axis: N.z", 3),
    "weld": ("", 0),
    "pin_slider": ("axis: N.x, pin: N.z", 2),
}
BODIES = """
  one: {frame: A, center: A1, mass: 2, inertia: {xx: 1, yy: 2, zz: 2.5}}
  two: {frame: B, center: B1, mass: 1, inertia: {xx: 0.5, yy: 0.6, zz: 0.7}}
"""


def terms_at(mechanism, x, terms=None):
    """M, f, A at a state given by name, of terms derived here if not given; parameters at their values."""
    terms = terms or derive(mechanism)
    values = {**spec.values.flat_values(mechanism), "t": 0.0, **x}
    nodes = [*(n for row in terms.M for n in row), *terms.f, *(n for row in terms.rows for n in row.A)]
    values = {s.name: values.get(s.name, 0.0) for s in support(nodes)}
    numbers = [float(v) for v in evaluate(nodes, values)]
    n = len(terms.f)
    return (
        np.array(numbers[: n * n]).reshape(n, n),
        np.array(numbers[n * n : n * n + n]),
        np.array(numbers[n * n + n :]).reshape(-1, n),
    )


def test_a_tree_of_joints_is_the_tree_written_by_hand():
    joints = load(
        text="""
fsm_dyn: 1
parameters: {l: 0.7, c: 0.3}
joints:
  a: {revolute: {child: A, at: O, axis: -N.y}}
  b: {cylindrical: {parent: A, child: B, at: P, axis: A.x}}
  c1: {planar: {parent: B, child: C, at: B_origin, axis: B.z}}
  d: {universal: {parent: C, child: D, at: C_origin, axis: [C.x, D.z]}}
  e: {ball: {parent: D, child: E, at: D1, angles: zxz}}
  f: {pin_slider: {parent: E, child: F, at: E1, axis: E.y, pin: E.z}}
  g: {prismatic: {parent: F, child: G, at: F_origin, axis: -F.z}}
points:
  P: {from: O, at: l*A.z}
  D1: {from: D_origin, at: c*D.y}
  E1: {from: E_origin, at: c*E.x}
  Q: {from: G_origin, at: c*G.x + l*G.y}
bodies:
  body: {frame: G, center: Q, mass: 2, inertia: {xx: 1, yy: 2, zz: 2.5, xy: 0.1}}
  near: {frame: B, center: P, mass: 1, inertia: {xx: 0.3}}
loads:
  - {gravity: -9.81*N.z}
"""
    )
    by_hand = load(
        text="""
fsm_dyn: 1
parameters: {l: 0.7, c: 0.3}
coordinates: [a, b_slide, b_turn, c1_x, c1_y, c1_turn, d_1, d_2, e_1, e_2, e_3, f_slide, f_turn, g]
frames:
  A: {parent: N, rotate: {y: -a}}
  B: {parent: A, rotate: {x: b_turn}}
  C: {parent: B, rotate: {z: c1_turn}}
  D: {parent: C, body: xz, angles: [d_1, d_2]}
  E: {parent: D, body: zxz, angles: [e_1, e_2, e_3]}
  F: {parent: E, rotate: {z: f_turn}}
points:
  P: {from: O, at: l*A.z}
  Bo: {from: P, at: b_slide*A.x}
  Co: {from: Bo, at: c1_x*B.x + c1_y*B.y}
  D1: {from: Co, at: c*D.y}
  E1: {from: D1, at: c*E.x}
  Fo: {from: E1, at: f_slide*E.y}
  Go: {from: Fo, at: -g*F.z}
  Q: {from: Go, at: c*F.x + l*F.y}
bodies:
  body: {frame: F, center: Q, mass: 2, inertia: {xx: 1, yy: 2, zz: 2.5, xy: 0.1}}
  near: {frame: B, center: P, mass: 1, inertia: {xx: 0.3}}
loads:
  - {gravity: -9.81*N.z}
"""
    )
    assert list(joints.coordinates) == list(by_hand.coordinates)
    random = np.random.default_rng(1)
    names = [*joints.coordinates, *joints.speeds]
    terms, terms_by_hand = derive(joints), derive(by_hand)
    for _ in range(5):
        x = dict(zip(names, random.uniform(-2, 2, len(names)), strict=True))
        for got, wanted in zip(terms_at(joints, x, terms), terms_at(by_hand, x, terms_by_hand), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-11 * max(1, np.abs(wanted).max(initial=0)))


def test_a_ball_joint_without_angles_has_euler_parameters_and_turns_as_speeds():
    mechanism = load(
        text="""
fsm_dyn: 1
joints:
  a: {revolute: {child: A, at: O, axis: N.x}}
  b: {ball: {parent: A, child: B, at: P}}
points:
  P: {from: O, at: 2*A.y}
bodies:
  body: {frame: B, center: P, mass: 1, inertia: {xx: 1, yy: 2, zz: 3}}
"""
    )
    assert mechanism.coordinate_names == ("a", "b_e0", "b_e1", "b_e2", "b_e3")
    assert list(mechanism.speeds) == ["a_dot", "b_wx", "b_wy", "b_wz"]
    x = {"a": 0.3, "b_e0": 1.0, "a_dot": 0.0}
    M, _, _ = terms_at(mechanism, x)
    # at zero turn the spins are those of the body: M has its inertia, and 1 + m 2² for the hinge
    np.testing.assert_allclose(M, [[5, 1, 0, 0], [1, 1, 0, 0], [0, 0, 2, 0], [0, 0, 0, 3]], atol=1e-14)


def loop_of(kind, keys):
    """A free body B with a joint that closes a loop; S turns with B about x, R rests against N, T turns about z."""
    return load(
        text=f"""
fsm_dyn: 1
coordinates: [s]
frames:
  S: {{parent: B, rotate: {{x: s}}}}
  R: {{parent: N, rotate: {{z: 1/2}}}}
  T: {{parent: N, rotate: {{z: s}}}}
joints:
  ax: {{prismatic: {{child: X, at: O, axis: N.x}}}}
  ay: {{prismatic: {{parent: X, child: Y, at: X_origin, axis: X.y}}}}
  az: {{prismatic: {{parent: Y, child: Z, at: Y_origin, axis: Y.z}}}}
  ball: {{ball: {{parent: Z, child: B, at: Z_origin}}}}
  loop: {{{kind}: {{child: B, at: [O, B_origin]{", " + keys if keys else ""}}}}}
bodies:
  body: {{frame: B, center: B_origin, mass: 1, inertia: {{xx: 1, yy: 2, zz: 3}}}}
  spun: {{frame: S, center: O, mass: 0, inertia: {{xx: 1}}}}
"""
    )


# the axes of parent N and child B in every order and by frames that are fixed in them, with the freedoms that remain
OTHER_AXES = [
    ("revolute", "axis: B.x", 1),
    ("revolute", "axis: [B.x, N.x]", 1),
    ("revolute", "axis: S.x", 1),
    ("revolute", "axis: [R.z, B.z]", 1),
    ("prismatic", "axis: B.y", 1),
    ("cylindrical", "axis: -B.z", 2),
    ("universal", "axis: [B.y, N.x]", 2),
    ("planar", "axis: [B.z, T.z]", 3),
    ("pin_slider", "axis: N.x, pin: B.z", 2),
]


@pytest.mark.parametrize(("kind", "keys", "freedoms"), [(kind, *KINDS[kind]) for kind in KINDS] + OTHER_AXES)
def test_a_loop_leaves_the_motions_that_the_joint_in_a_tree_gives(kind, keys, freedoms):
    """Two free bodies have six freedoms each; a joint's rows leave those of the tree, none of them idle."""
    mechanism = loop_of(kind, keys)
    if kind == "universal":
        assert len(mechanism.joints["loop"].rows) == 4
    _, _, A = terms_at(mechanism, {"ball_e0": 1.0})
    A = np.delete(A, list(mechanism.speeds).index("s_dot"), axis=1)
    assert A.shape == (len(mechanism.joints["loop"].rows), 6)
    assert np.linalg.matrix_rank(A, 1e-9) == 6 - freedoms


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("revolute", "axis: [B.x, B.x]"),
        ("revolute", "axis: T.x"),
        ("cylindrical", "axis: [N.x, N.y]"),
        ("prismatic", "axis: T.y"),
        ("pin_slider", "axis: B.x, pin: N.z"),
    ],
)
def test_an_axis_that_is_fixed_in_neither_frame_of_a_loop_is_refused(kind, keys):
    with pytest.raises(ModelError, match="that closes a loop has its axis in 'N' and in 'B'") as caught:
        loop_of(kind, keys)
    remedy = str(caught.value).split("remedy: `")[1].split("`")[0]
    corrected = ", ".join([remedy, *keys.split(", ")[1:]]) if kind == "pin_slider" else remedy
    assert loop_of(kind, corrected).joints["loop"].rows


def test_rows_out_of_the_plane_are_left_out_and_a_gap_there_is_an_error():
    text = """
fsm_dyn: 1
parameters: {out: 0}
joints:
  a: {revolute: {child: A, at: O, axis: N.z}}
  b: {revolute: {parent: A, child: B, at: P, axis: A.z}}
  loop: {revolute: {child: B, at: [S, Q], axis: N.z}}
points:
  P: {from: O, at: 1*A.x}
  Q: {from: P, at: 1*B.x + out*B.z}
  S: {from: O, at: 1*N.x}
bodies:
  one: {frame: A, center: P, mass: 1, inertia: {zz: 1}}
"""
    terms = derive(load(text=text))
    assert [row.name for row in terms.rows] == ["loop_x", "loop_y"]
    with pytest.raises(ModelError, match="the joint 'loop' cannot be closed") as caught:
        derive(load(text=text.replace("out: 0", "out: 0.1")))
    assert "its row 'loop_z' is 0.1 in every configuration" in str(caught.value)
    assert "correct the points" in str(caught.value)


def test_a_gear_turns_the_child_by_its_ratio_against_the_carrier():
    mechanism = load(
        text="""
fsm_dyn: 1
parameters: {n: -2.5}
joints:
  arm: {revolute: {child: C, at: O, axis: N.z}}
  sun: {revolute: {child: S, at: O, axis: N.z}}
  planet: {revolute: {parent: C, child: P, at: Q, axis: C.z}}
  mesh: {gear: {parent: S, child: P, carrier: C, axis: [S.z, P.z], ratio: n}}
points:
  Q: {from: O, at: 1*C.x}
bodies:
  wheel: {frame: P, center: Q, mass: 1, inertia: {zz: 1}}
  centre: {frame: S, center: O, mass: 1, inertia: {zz: 1}}
"""
    )
    _, _, A = terms_at(mechanism, {})
    # planet_dot is the turn against the carrier already: planet_dot - n (sun_dot - arm_dot) = 0
    np.testing.assert_allclose(A, [[-2.5, 2.5, 1.0]], atol=1e-14)


def test_rates_are_left_to_the_speeds_where_the_joint_says_so():
    text = """
fsm_dyn: 1
joints:
  a: {revolute: {child: A, at: O, axis: N.z, rates: false}}
  b: {revolute: {parent: A, child: B, at: O, axis: A.z}}
speeds: {spin: rate(a) + 1}
bodies:
  one: {frame: B, center: O, mass: 1, inertia: {zz: 1}}
"""
    assert list(load(text=text).speeds) == ["spin", "b_dot"]


def test_a_component_of_joints_is_attached_to_a_moving_body():
    finger = {
        "fsm_dyn": 1,
        "parameters": {"l": 0.3},
        "points": {"tip": {"from": "O", "at": "l*link.x"}, "end": {"from": "rod_origin", "at": "l*rod.y"}},
        "joints": {
            "hinge": {"revolute": {"child": "link", "at": "O", "axis": "N.z"}},
            "slide": {"prismatic": {"child": "rod", "at": "O", "axis": "N.x"}},
            "pair": {"revolute": {"parent": "link", "child": "rod", "at": ["tip", "end"], "axis": "N.z"}},
        },
        "bodies": {"bone": {"frame": "link", "center": "tip", "mass": 1, "inertia": {"zz": 0.1}}},
    }
    whole = {
        "fsm_dyn": 1,
        "joints": {"base": {"planar": {"child": "B", "at": "O", "axis": "N.z"}}},
        "bodies": {"palm": {"frame": "B", "center": "B_origin", "mass": 2, "inertia": {"zz": 0.4}}},
        "use": {"left": {"model": finger, "attach": {"frame": "B", "point": "B_origin"}}},
    }
    mechanism = load(whole)
    assert list(mechanism.coordinates) == ["base_x", "base_y", "base_turn", "left_hinge", "left_slide"]
    assert mechanism.frames["left_link"].parent == "B"
    assert [row.name for row in derive(mechanism).rows] == ["left_pair_x", "left_pair_y"]
