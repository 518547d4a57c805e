"""Several contacts at once: the laws, their limits and their impacts, on whole runs."""

from __future__ import annotations

import numpy as np
import pytest

import fsm_dyn

G = 9.81

BLOCK = """
fsm_dyn: 1
name: block
parameters: {m: 1, a: 0.2, h: 0.1, mu: 0.3, e: 0, g: 9.81, pull: 1}
coordinates: [x, y, th]
frames: {B: {parent: N, rotate: {z: th}}}
points:
  C: {from: O, at: x*N.x + y*N.y}
  L: {from: C, at: -a*B.x - h*B.y}
  R: {from: C, at: a*B.x - h*B.y}
bodies: {block: {frame: B, center: C, mass: m, inertia: {zz: m*(a**2 + h**2)/3}}}
contacts:
  left: {gap: "dot(pos(L), N.y)", slip: "dot(vel(L), N.x)", friction: mu, restitution: e}
  right: {gap: "dot(pos(R), N.y)", slip: "dot(vel(R), N.x)", friction: mu, restitution: e}
loads:
  - {gravity: -g*N.y}
  - {force: pull*t*N.x, at: C}
initial: {x: 0, y: h, th: 0}
"""


@pytest.fixture(scope="module")
def block():
    from fsm_dyn.language.loader import load

    return fsm_dyn.compile(load("block.yaml", text=BLOCK))


def test_a_block_on_two_corners_holds_to_the_true_limit(block):
    """Each corner's share of the friction is open; together they hold mu m g, and then both slide."""
    run = fsm_dyn.simulate(block, 3.5)
    assert run.modes[0] == "left_stick+right_stick"
    first = next(item for item in run.transitions if item.target != item.source)
    assert first.time == pytest.approx(0.3 * G, abs=1e-9)
    assert run.modes[-1] == "left_slide+right_slide"
    assert np.all(run.q[run.t < first.time - 1e-6, 0] == 0.0)
    mode = block.modes["left_stick+right_stick"] if hasattr(block, "modes") else None
    assert mode is not None
    assert run.indeterminate["left"][0]
    assert not run.indeterminate["left"][-1]
    assert run.multipliers["left"][0, 1] == pytest.approx(run.multipliers["right"][0, 1])  # shared alike
    after = run.t > first.time + 1e-6
    v = run.u[after, 0]
    expected = 0.5 * run.t[after] ** 2 - 0.5 * first.time**2 - 0.3 * G * (run.t[after] - first.time)
    assert v == pytest.approx(expected, abs=1e-8)


def test_a_tumbling_box_gains_no_energy(block):
    """Newton's law with friction raised the energy in one impact of six; the remedy leaves none."""
    impacts = 0
    for seed in range(4):
        random = np.random.default_rng(seed)
        start = {"y": 1.0, "th": random.uniform(-1, 1), "x_dot": random.uniform(-4, 4), "th_dot": random.uniform(-8, 8)}
        run = fsm_dyn.simulate(
            block, 1.5, parameters={"pull": 0.0, "e": 0.9, "mu": 0.6}, initial=start, on_failure="return"
        )
        for item in run.transitions:
            if item.impulse:
                impacts += 1
                assert item.energy_after <= item.energy_before + 1e-12 * abs(item.energy_before)
        for name in ("left", "right"):
            force = run.multipliers[name]
            assert force[:, 0].min() >= -1e-9 * abs(force).max()
            assert (abs(force[:, 1]) <= 0.6 * force[:, 0] + 1e-9 * abs(force).max()).all()
    assert impacts >= 8


CRADLE = """
fsm_dyn: 1
name: balls
parameters: {e: 1, d: 0.1}
coordinates: [x1, x2, x3]
points: {P1: {from: O, at: x1*N.x}, P2: {from: O, at: x2*N.x}, P3: {from: O, at: x3*N.x}}
bodies: {b1: {center: P1, mass: 1}, b2: {center: P2, mass: 1}, b3: {center: P3, mass: 1}}
contacts:
  first: {gap: x2 - x1 - d, restitution: e, restitution_law: LAW}
  second: {gap: x3 - x2 - d, restitution: e, restitution_law: LAW}
impacts: ORDER
initial: {x1: -0.5, x2: 0, x3: 0.1, x1_dot: 1}
"""


@pytest.mark.parametrize(
    ("law", "order", "e", "after"),
    [
        ("newton", "sequential", 1.0, (0.0, 0.0, 1.0)),  # the cradle
        ("newton", "sequential", 0.9, (None, None, 0.95**2)),  # ((1 + e)/2)^(N - 1) for the last of N
        ("newton", "simultaneous", 1.0, (-1 / 3, 2 / 3, 2 / 3)),
        ("poisson", "simultaneous", 1.0, (-1 / 3, 2 / 3, 2 / 3)),
    ],
)
def test_three_balls(law, order, e, after):
    from fsm_dyn.language.loader import load

    text = CRADLE.replace("LAW", law).replace("ORDER", order)
    graph = fsm_dyn.compile(load("balls.yaml", text=text), parameters={"e": e})
    run = fsm_dyn.simulate(graph, 0.5)
    for value, expected in zip(run.transitions[-1].u_after, after, strict=True):
        if expected is not None:
            assert value == pytest.approx(expected, abs=1e-12)
    assert run.u[-1].sum() == pytest.approx(1.0)


ROD = """
fsm_dyn: 1
name: rod
summary: A uniform rod of length 2 l leans on its lower end, which slides (Painlevé 1895).
parameters: {m: 1, l: 1, mu: 1.5, g: 9.81}
coordinates: [x, y, th]
frames: {B: {parent: N, rotate: {z: th}}}
points:
  C: {from: O, at: x*N.x + y*N.y}
  E: {from: C, at: -l*B.x}
bodies: {rod: {frame: B, center: C, mass: m, inertia: {zz: m*l**2/3}}}
contacts:
  end: {gap: "dot(pos(E), N.y)", slip: "dot(vel(E), N.x)", friction: mu}
loads: [{gravity: -g*N.y}]
on_inconsistent: stop
initial: {x: 0, th: 1.1071487177940904, y: 0.8944271909999159, x_dot: -2, y_dot: 0, th_dot: 0}
"""


def rod(mu, slip, policy="stop", **options):
    from fsm_dyn.language.loader import load

    graph = fsm_dyn.compile(load("rod.yaml", text=ROD.replace("on_inconsistent: stop", f"on_inconsistent: {policy}")))
    return fsm_dyn.simulate(graph, 0.02, parameters={"mu": mu}, initial={"x_dot": slip}, **options)


def test_the_rod_jams_beyond_four_thirds_only():
    """At th = arctan 2 the apparent mass is zero for mu = 4/3 (Genot and Brogliato 1999)."""
    jams = []
    for mu in (1.33, 1.34):
        for slip in (-2.0, 2.0):
            run = rod(mu, slip, on_failure="return")
            jams.append((mu, slip, run.outcome.name == "inconsistent contact state"))
    assert sum(jam for _, _, jam in jams) == 1
    assert next(mu for mu, _, jam in jams if jam) == 1.34


def test_a_jam_tells_the_candidates_examined():
    slip = next(s for s in (-2.0, 2.0) if rod(1.6, s, on_failure="return").outcome.failed)
    with pytest.raises(fsm_dyn.RunError) as caught:
        rod(1.6, slip)
    text = str(caught.value)
    assert "end open: end: penetrating acceleration" in text
    assert "end: tensile normal force" in text
    assert "state:" in text
    run = rod(1.6, slip, policy="impact")  # the declared policy: friction stops the slip at once
    first = run.transitions[0]
    assert "impact without collision" in first.selection[0]
    assert first.energy_after <= first.energy_before
    assert abs(first.u_after[0] - first.u_before[0]) > 0.1


SLOT = """
fsm_dyn: 1
name: slot
parameters: {m: 1, mu: 0.3, press: 10}
coordinates: [x, y]
points: {P: {from: O, at: x*N.x + y*N.y}}
bodies: {bead: {center: P, mass: m}}
contacts: {slot: {gap: "dot(pos(P), N.y)", slip: "dot(vel(P), N.x)", friction: mu, bilateral: true}}
loads: [{force: press*(t - 1)*N.y, at: P}]
initial: {x: 0, x_dot: 5}
"""


def test_a_slot_rubs_on_either_face():
    """Pressed on one face until 1 s and on the other after: friction always opposes, and the states tell which."""
    from fsm_dyn.language.loader import load

    run = fsm_dyn.simulate(fsm_dyn.compile(load("slot.yaml", text=SLOT)), 4.0)
    face, rest = run.transitions[-2:]
    assert face.time == pytest.approx(1.0, abs=1e-9)
    assert {face.source, face.target} == {"slot_slide", "slot_slide_opposite"}
    assert run.at(2.0).u[0] == pytest.approx(2.0, abs=1e-8)
    at_rest = 1.0 + np.sqrt(2.0 * (5.0 - 1.5) / 3.0)
    assert rest.time == pytest.approx(at_rest, abs=1e-8)
    assert run.modes[-1] == "slot_stick"
    force = run.multipliers["slot"]
    assert (abs(force[:, 1]) <= 0.3 * abs(force[:, 0]) + 1e-9).all()
