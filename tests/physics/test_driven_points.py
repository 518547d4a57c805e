"""Points and frames that time or inputs move: the work of their drive closes the energy balance."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.language.loader import load

HEAD = "fsm_dyn: 1\nparameters: {m: 2 kg, J: 0.05 kg*m^2, g: 9.81 m/s^2}\n"
GRAVITY = "loads: [{gravity: -g*N.y}]\n"
MOVING_PIVOT = (
    HEAD
    + GRAVITY
    + """
points: {Q: {from: O, at: "0.1 m*sin(20*t/1 s)*N.x"}, C: {from: A_origin, at: -0.3 m*A.y}}
joints: {j: {revolute: {child: A, at: Q, axis: N.z}}}
bodies: {b: {frame: A, center: C, mass: m, inertia: {zz: J}}}
initial: {j: 0.5 rad}
"""
)
TURNTABLE = (
    HEAD
    + """
frames: {T: {parent: N, rotate: {z: "3*t/1 s"}}}
joints: {slot: {prismatic: {parent: T, child: bead, at: O, axis: T.x}}}
bodies: {b: {frame: bead, center: bead_origin, mass: m, inertia: {zz: J}}}
loads: [{spring: {between: [bead_origin, O], stiffness: 100 N/m, free: 0.1 m, damping: 2 N*s/m}}]
initial: {slot: 0.2 m}
"""
)
DRIVEN_ANCHOR = (
    HEAD
    + """
coordinates: {x: m}
points: {Q: {from: O, at: "0.05 m*sin(9*t/1 s)*N.x"}, P: {from: O, at: 1 m*N.x + x*N.x}}
bodies: {b: {center: P, mass: m}}
loads: [{spring: {between: [P, Q], stiffness: 80 N/m, free: 0.7 m, damping: 3 N*s/m}}]
"""
)
SHAKEN_TABLE = (
    HEAD
    + GRAVITY
    + """
coordinates: {x: m, y: m}
points: {Q: {from: O, at: "0.02 m*sin(15*t/1 s)*N.x"}, P: {from: Q, at: x*N.x + y*N.y}}
bodies: {b: {center: P, mass: m}}
shapes: {ground: {line: {along: N.x}, side: N.y}}
contacts: {c: {point: P, on: ground, friction: {static: 0.3, kinetic: 0.2}, restitution: 0.4}}
initial: {y: 0.05 m, x_dot: 0.5 m/s}
"""
)
CHAIN = (
    HEAD
    + GRAVITY
    + "joints:\n"
    + "".join(
        f"  j{i}: {{revolute: {{{f'parent: A{i - 1}, ' if i else ''}child: A{i}, at: {f'P{i - 1}' if i else 'Q'}, "
        f"axis: {f'A{i - 1}' if i else 'N'}.z}}}}\n"
        for i in range(9)
    )
    + "points:\n  Q: {from: O, at: '0.1 m*sin(6*t/1 s)*N.y'}\n"
    + "".join(f"  P{i}: {{from: A{i}_origin, at: -0.1 m*A{i}.y}}\n" for i in range(9))
    + "bodies:\n"
    + "".join(f"  b{i}: {{frame: A{i}, center: P{i}, mass: 0.1 kg, inertia: {{zz: 1e-4 kg*m^2}}}}\n" for i in range(9))
    + "initial: {j0: 1 rad, j4: -1 rad}\n"
)
OFFSET_SPEED = (
    HEAD
    + GRAVITY
    + """
coordinates: {q: rad}
speeds: {v: rate(q) - 2 rad/s}
frames: {A: {parent: N, rotate: {z: q}}}
points: {C: {from: O, at: -0.3 m*A.y}}
bodies: {b: {frame: A, center: C, mass: m, inertia: {zz: J}}}
"""
)
MODELS = {
    "moving pivot": (MOVING_PIVOT, {}),
    "turntable": (TURNTABLE, {}),
    "driven anchor": (DRIVEN_ANCHOR, {}),
    "shaken table": (SHAKEN_TABLE, {}),
    "chain of nine": (CHAIN, {}),
    "speed with an offset": (OFFSET_SPEED, {}),
}


@pytest.mark.parametrize("options", [{}, {"strategy": "online"}, {"method": "radau"}, {"method": "rk4", "step": 1e-4}])
@pytest.mark.parametrize("name", MODELS)
def test_the_balance_closes(name, options):
    text, more = MODELS[name]
    run = fsm_dyn.simulate(fsm_dyn.compile(load(text=text)), 1.0, **options, **more)
    assert run.energy.relative_residual < 1e-6


def test_the_drive_of_a_pivot_does_the_work_of_its_force():
    run = fsm_dyn.simulate(fsm_dyn.compile(load(text=MOVING_PIVOT)), 1.0, rtol=1e-10, max_step=1e-3)
    t, j, w = run.t, run["j"], run["j_dot"]
    alpha = run.record.x_dot[:, 1]
    # a_C = a_Q + alpha x r - w^2 r with r = 0.3 (sin j, -cos j); the force along x is m a_C.x
    force = 2.0 * (-40.0 * np.sin(20 * t) + 0.3 * (alpha * np.cos(j) - w**2 * np.sin(j)))
    power = force * 2.0 * np.cos(20 * t)
    work = np.concatenate([[0.0], np.cumsum(0.5 * np.diff(t) * (power[1:] + power[:-1]))])
    np.testing.assert_allclose(run.energy.drive, work, atol=2e-3 * np.abs(work).max())


def test_a_turntable_gives_the_energy_of_a_bead_that_slides_out():
    text = TURNTABLE.replace("100 N/m", "0 N/m").replace("2 N*s/m", "0 N*s/m")
    run = fsm_dyn.simulate(fsm_dyn.compile(load(text=text)), 1.0)
    r = 0.2 * np.cosh(3 * run.t)  # r'' = w^2 r
    np.testing.assert_allclose(run["slot"], r, rtol=1e-7)
    # torque w d(m r^2)/dt times w
    np.testing.assert_allclose(run.energy.drive, 2.0 * 9.0 * (r**2 - 0.04), atol=1e-6)


def test_an_input_that_moves_a_pivot_is_a_drive_too():
    text = MOVING_PIVOT.replace("0.1 m*sin(20*t/1 s)", "w") + "inputs: {w: m}\n"
    run = fsm_dyn.simulate(
        fsm_dyn.compile(load(text=text)), 1.0, inputs={"w": lambda t: 0.1 * np.sin(20 * t)}, max_step=1e-3
    )
    assert run.energy.relative_residual < 1e-3  # rates of a callable are differences
    by_time = fsm_dyn.simulate(fsm_dyn.compile(load(text=MOVING_PIVOT)), 1.0)
    assert run.energy.drive[-1] == pytest.approx(by_time.energy.drive[-1], rel=1e-3)


def test_what_rests_by_itself_has_no_drive():
    text = MOVING_PIVOT.replace('"0.1 m*sin(20*t/1 s)*N.x"', "0.1 m*N.x")
    run = fsm_dyn.simulate(fsm_dyn.compile(load(text=text)), 1.0)
    assert not run.energy.drive.any()
    assert run.energy.relative_residual < 1e-8
