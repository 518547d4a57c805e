"""Absolute against relative coordinates: another derivation, by the rows of every joint, of the same motion."""

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import fsm_dyn
from fsm_dyn.language import models
from fsm_dyn.language.loader import load

CASES = {
    # model: its own coordinates, a start in absolute coordinates, the time
    "planar_three_body": (
        ["q1", "q2", "q3"],
        "{B1_turn: 0.8, B2_turn: 0.3, guess: {B3_turn: 0.3, B2_x: 0.3, B2_y: 0.5, B3_x: 0.75, B3_y: 0.7}}",
        1.5,
    ),
    "spatial_robot": (
        ["column_slide", "column_turn", "reach_slide", "reach_turn", "wrist"],
        "{B1_z: 2.25, guess: {B1_e3: -0.25, B2_e3: -0.25, B3_e3: -0.25, B2_x: 0.4, B2_y: 0.6, B2_z: 2.25, B3_y: 1.1,"
        " B3_x: 0.6, B3_z: 2.25}}",
        0.4,
    ),
}


def absolute(name, initial, names, word="absolute"):
    """The shipped model with the word changed, its own coordinates as outputs."""
    text = Path(models.find(name)).read_text(encoding="utf-8")
    text = text[: text.index("initial:")]
    outputs = ", ".join(f"own_{n}: {n}, own_{n}_rate: rate({n})" for n in names)
    return f"{text}joint_coordinates: {word}\noutputs: {{{outputs}}}\ninitial: {initial}\n"


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("word", ["absolute", "centers"])
def test_the_motion_is_the_same(name, word):
    """Both runs at 1e-10: what differs is their error, which stays below 1e-7 over these times."""
    names, initial, until = CASES[name]
    mechanism = load(text=absolute(name, initial, names, word))
    assert all(joint.rows and joint.coordinates for joint in mechanism.joints.values())
    free = fsm_dyn.simulate(fsm_dyn.compile(mechanism), until, rtol=1e-10, atol=1e-12)
    start = {n: float(free.outputs[f"own_{n}"][0]) for n in names}
    own = fsm_dyn.simulate(fsm_dyn.compile(name), until, initial=start, rtol=1e-10, atol=1e-12)
    assert free.outcome.name == own.outcome.name == "done"
    there = [own.rows[n][-1] for n in names]
    np.testing.assert_allclose([free.outputs[f"own_{n}"][-1] for n in names], there, rtol=0, atol=1e-7)
    rates = [own.rows[f"{n}_dot"][-1] for n in names]
    np.testing.assert_allclose([free.outputs[f"own_{n}_rate"][-1] for n in names], rates, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_coordinates_of_mass_centres_have_masses_and_inertias_as_matrix(name):
    names, initial, _ = CASES[name]
    for word, diagonal in (("absolute", False), ("centers", True)):
        graph = fsm_dyn.compile(load(text=absolute(name, initial, names, word)))
        (mode,) = graph.modes.values()
        matrix = mode.kane_equations["M"]
        assert bool(matrix.is_diagonal()) is diagonal
        assert not (diagonal and matrix.free_symbols & {*mode.kane_equations.coordinates})


def test_a_centre_that_moves_in_its_frame_is_refused():
    text = absolute("planar_three_body", "{}", []).replace(
        'B3_origin, at: "c[0]*B3.x', 'B2_origin, at: "q3*B2.x + c[0]*B3.x'
    )
    with pytest.raises(fsm_dyn.ModelError, match="the mass centre of 'body3' is not fixed in 'B3'"):
        load(text=text.replace("joint_coordinates: absolute", "joint_coordinates: centers").replace("outputs: {}", ""))


def test_a_plane_mechanism_has_three_coordinates_a_body():
    text = Path(models.find("four_bar")).read_text(encoding="utf-8")
    text = text[: text.index("initial:")] + "joint_coordinates: absolute\n"
    mechanism = load(text=text)
    assert list(mechanism.coordinates) == [
        f"{b}_{c}" for b in ("crank", "coupler", "rocker") for c in ("x", "y", "turn")
    ]


@pytest.mark.parametrize(("first", "second"), [(a, b) for a in "xyz" for b in "xyz" if a != b])
def test_angles_of_a_universal_joint_are_known(first, second):
    """Truth: the child is turned by a product of rotations of scipy, and spins by both rates along their axes."""
    a, b = (np.eye(3)["xyz".index(letter)] for letter in (first, second))
    for signs, angles, rates in (
        ((1, 1), (0.7, -1.1), (2, -3)),
        ((-1, 1), (2.5, 1.9), (-1, 0.5)),
        ((1, -1), (-0.4, -2.8), (0.3, 4)),
    ):
        one, two = (Rotation.from_rotvec(s * angle * v) for s, angle, v in zip(signs, angles, (a, b), strict=True))
        x, y, z, w = (Rotation.from_euler("ZX", [0.3, 0.8]) * one * two).as_quat().tolist()
        spin = two.inv().apply(signs[0] * rates[0] * a) + signs[1] * rates[1] * b
        axes = ", ".join(f"{'-' * (s < 0)}{v}" for s, v in zip(signs, (f"T.{first}", f"A.{second}"), strict=True))
        text = f"""
fsm_dyn: 1
name: cross
joint_coordinates: absolute
frames: {{T: {{parent: N, body: zx, angles: [0.3, 0.8]}}}}
joints: {{u: {{universal: {{parent: T, child: A, at: O, axis: [{axes}]}}}}}}
bodies: {{a: {{frame: A, center: A_origin, mass: 1, inertia: {{xx: 1, yy: 2, zz: 2.5}}}}}}
outputs: {{one: u_1, two: u_2, one_rate: rate(u_1), two_rate: rate(u_2)}}
initial: {{A_e0: {w}, A_e1: {x}, A_e2: {y}, A_e3: {z}, A_wx: {spin[0]}, A_wy: {spin[1]}, A_wz: {spin[2]}}}
"""
        run = fsm_dyn.simulate(fsm_dyn.compile(load(text=text)), 1e-3)
        found = [run.outputs[name][0] for name in ("one", "two", "one_rate", "two_rate")]
        np.testing.assert_allclose(found, [*angles, *rates], rtol=0, atol=1e-12)
