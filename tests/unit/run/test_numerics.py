"""Tolerances of a run: where they come from, and that they have an effect."""

import re
from pathlib import Path

import pytest
import yaml

import fsm_dyn
import fsm_dyn.runtime
from fsm_dyn.core.errors import InputError
from fsm_dyn.language.mechanism_form import NUMERICS

ROD = """
fsm_dyn: 1
name: rod
parameters: {m: 1 kg, L: 1 m, small: 1 nm}
coordinates: {x: m, y: m, q: rad}
frames: {B: {parent: N, rotate: {z: q}}}
points: {P: {from: O, at: x*N.x + y*N.y}, T: {from: P, at: -L/2*B.x}}
bodies: {rod: {frame: B, center: P, mass: m, inertia: {zz: m*L**2/12}}}
speeds: {u: "dot(vel(P), N.x)", v: "dot(vel(P), N.y)", w: "dot(omega(B), N.z)"}
contacts:
  tip: {gap: "dot(pos(T), N.y)", slip: "dot(vel(T), N.x)", friction: {static: 0.6, kinetic: 0.6}, restitution: 0.9}
loads: [{gravity: -9.81 m/s^2*N.y}]
initial: {y: 0.45 m, q: 0.9 rad, u: -0.3 m/s, v: -1 m/s, w: 4 rad/s}
numerics: {gap: small, rtol: 1e-8}
"""


@pytest.fixture(scope="module")
def rod():
    return fsm_dyn.compile(fsm_dyn.load(yaml.safe_load(ROD)))


@pytest.fixture(scope="module")
def ball():
    return fsm_dyn.compile("bouncing_ball")


def test_an_impact_may_raise_the_energy_by_its_tolerance_only(rod):
    """Newton's restitution with friction would raise it by some 5 %."""
    kept, free = (fsm_dyn.simulate(rod, 0.1, tolerances=given).transitions[0] for given in ({}, {"energy": 1.0}))
    assert kept.energy_after == pytest.approx(kept.energy_before, rel=1e-12)
    assert free.energy_after > 1.03 * free.energy_before


def test_a_wider_gap_ends_the_bounces_sooner(ball):
    counts = [len(fsm_dyn.simulate(ball, 5.0, tolerances={"gap": gap}).transitions) for gap in ("1 nm", "1 um", "1 mm")]
    assert counts[0] > counts[1] > counts[2] > 3


def test_what_is_given_to_a_run_comes_before_the_file(rod):
    from fsm_dyn.run.tolerances import numerics_of

    file = numerics_of(rod.automaton, rod.values).tolerances
    assert (file.gap, file.rtol, file.speed) == (1e-9, 1e-8, 1e-9)
    given = numerics_of(rod.automaton, {**rod.values, "small": 2e-9}, fsm_dyn.Tolerances(rtol=1e-6)).tolerances
    assert (given.gap, given.rtol) == (2e-9, 1e-6)


def test_rtol_and_atol_are_those_of_the_tolerances(ball):
    def rows(**given):
        run = fsm_dyn.simulate(ball, 1.0, **given)
        return run.t.tobytes() + run.q.tobytes()

    loose = rows(rtol=1e-4, atol=1e-6)
    assert loose == rows(tolerances=fsm_dyn.Tolerances(rtol=1e-4, atol=1e-6))
    assert loose == rows(tolerances={"rtol": 1.0, "atol": 1.0}, rtol=1e-4, atol=1e-6)
    assert loose == rows(rtol=1e-4, atol=[1e-6, 1e-6])
    assert loose != rows()
    assert rows() == rows(tolerances=fsm_dyn.Tolerances())  # nothing of a run before is left in the next


def test_a_tolerance_that_cannot_be_is_refused(rod, ball):
    with pytest.raises(InputError, match="there is no tolerance 'gab'"):
        fsm_dyn.simulate(ball, 1.0, tolerances={"gab": 1.0})
    with pytest.raises(InputError, match="tolerance 'gap' is not positive"):
        fsm_dyn.simulate(rod, 0.1, parameters={"small": 0.0})


def test_none_is_without_effect():
    """Every entry is read by the runtime, or by the methods of integration."""
    folder = Path(fsm_dyn.runtime.__file__).parent
    code = "".join(path.read_text() for path in folder.glob("*.[ch]"))
    read = set(re.findall(r"tolerances->(\w+)", code))
    assert set(NUMERICS) - {"rtol", "atol"} <= read
