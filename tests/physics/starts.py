"""Where the runs of the campaign begin: one function a model, from a random generator to a start.

A part of the starts lies on the surface of a guard, at rest, at right angles, or with friction and restitution at
the ends of their ranges: the cases that random numbers alone never meet.
"""

from __future__ import annotations

import numpy as np


def either(rng, *values):
    """One of the values."""
    return values[rng.integers(len(values))]


def friction(rng, most=1.0):
    """A coefficient of friction, zero at times."""
    return float(either(rng, 0.0, 0.1, 0.3, most, rng.uniform(0.0, most)))


def restitution(rng):
    """A coefficient of restitution, at times one of its limits."""
    return float(either(rng, 0.0, 1.0, 0.5, rng.uniform(0.0, 0.95)))


def angle(rng):
    """An angle, a right one at times."""
    return float(either(rng, 0.0, np.pi / 2, rng.uniform(-np.pi, np.pi), rng.uniform(-0.2, 0.2)))


def numbers(rng, **scales):
    """Speeds: all random, or at rest, or only one of them different from zero."""
    kind = rng.integers(4)
    names = list(scales)
    chosen = names if kind < 2 else names[:0] if kind == 2 else [names[rng.integers(len(names))]]
    return {name: float(scales[name] * rng.normal()) if name in chosen else 0.0 for name in names}


def bouncing_ball(rng):
    return {"initial": {"mode": "flight", "y": either(rng, 0.0, rng.uniform(0.0, 1.0)), "v": rng.normal()},
            "parameters": {"e": min(restitution(rng), 0.95)}}, 1.5  # fmt: skip


def pendulum_with_stop(rng):
    stop = np.deg2rad(rng.uniform(-20, 20))
    return {"initial": {"mode": "swinging", "theta": either(rng, stop, stop + rng.uniform(0.0, 1.5)),
                        "omega_b": rng.normal(0.0, 3.0)},
            "parameters": {"stop": stop, "e": restitution(rng)}}, 1.5  # fmt: skip


def double_pendulum_with_stop(rng):
    initial = {"mode": "bent", "hip": angle(rng), "knee": either(rng, 0.0, rng.uniform(0.0, 2.5))}
    return {"initial": initial | numbers(rng, w1=4.0, w2=6.0), "parameters": {"e": restitution(rng)}}, 1.0


def latch(rng):
    initial = {"mode": "free", "x": rng.uniform(0.0, 0.03), "b": either(rng, 0.0, rng.uniform(0.0, 0.01))}
    inputs = {"push": float(rng.uniform(0.0, 40.0)), "trigger": float(either(rng, 0.0, rng.uniform(0.0, 10.0)))}
    return {"initial": initial | numbers(rng, vx=0.3, vb=0.2), "inputs": inputs,
            "parameters": {"e": min(restitution(rng), 0.9)}}, 0.8  # fmt: skip


def rolling_disk(rng):
    phi, mu = rng.uniform(-0.5, 0.5), friction(rng)
    initial = {"mode": "flying", "y": 0.1 + either(rng, 0.0, rng.uniform(0.0, 0.3))}
    inputs = {"push": float(rng.normal(0.0, 10.0)), "lift": [(0.0, 0.0), (0.5, float(rng.uniform(0.0, 30.0)))]}
    return {"initial": initial | numbers(rng, u1=2.0, u2=3.0, u3=1.0), "inputs": inputs,
            "parameters": {"phi": phi, "mu": mu, "e": restitution(rng)}}, 0.8  # fmt: skip


def shopping_cart(rng):
    tau = rng.uniform(0.05, 2.0)
    inputs = {"push": {"expression": f"{rng.normal(0, 20)} N*sin(t/1 s*{rng.uniform(1, 6)})"},
              "turn": {"expression": f"{rng.normal(0, 6)} N*m*cos(t/1 s*{rng.uniform(1, 6)})"}}  # fmt: skip
    parameters = {"tau_stick": tau, "tau_slip": tau * either(rng, 1.0, rng.uniform(0.3, 1.0))}
    initial = {"q3": angle(rng), "q4": angle(rng)} | numbers(rng, u1=0.5, u2=0.4)
    return {"initial": initial, "inputs": inputs, "parameters": parameters}, 1.5


def stick_slip_belt(rng):
    mu = rng.uniform(0.1, 1.0)
    belt = either(
        rng, float(rng.normal(0.0, 0.3)), {"expression": f"{rng.normal()} m/s*sin(t/1 s*{rng.uniform(1, 9)})"}
    )
    return {"initial": {"mode": "slipping"} | numbers(rng, x=0.3, v=0.5), "inputs": {"v_belt": belt},
            "parameters": {"mu_s": mu, "mu_k": mu * either(rng, 1.0, rng.uniform(0.2, 1.0))}}, 2.0  # fmt: skip


def cam_flat_follower(rng):
    speed = either(rng, float(rng.normal(0.0, 60.0)), {"expression": f"{rng.normal(0, 80)} rad/s*sin(t/1 s*9)"})
    mode = either(rng, "following", "lifted")
    initial = {"mode": mode, "phi": angle(rng)} | ({"y": rng.uniform(0.05, 0.07)} if mode == "lifted" else {})
    return {"initial": initial,
            "inputs": {"speed": speed}, "parameters": {"e": restitution(rng) * 0.9}}, 0.25  # fmt: skip


def ratchet(rng):
    initial = {"mode": "falling", "q": rng.uniform(0.02, 0.5), "b": rng.uniform(0.012, 0.02)}
    return {"initial": initial | numbers(rng, w=2.0, v=0.3),
            "inputs": {"torque": {"expression": f"{rng.normal(0, 0.5)} N*m*sin(t/1 s*{rng.uniform(2, 12)})"}},
            "parameters": {"e": restitution(rng) * 0.9}}, 0.6  # fmt: skip


def rocking_block(rng):
    b = rng.uniform(0.05, 0.3)
    tilt = float(either(rng, 0.0, rng.uniform(-0.9, 0.9) * np.arctan2(b, 0.5)))
    high = float(either(rng, 0.0, 0.0, rng.uniform(0.0, 0.2)))
    corner = b * abs(np.sin(tilt)) + 0.5 * np.cos(tilt)
    return {"initial": {"mode": "in_air", "q": tilt, "y": corner + high} | numbers(rng, vx=0.3, vy=0.5, w=1.0),
            "parameters": {"b": b}}, 0.8  # fmt: skip


def sliding_rod(rng):
    q = float(either(rng, 0.0, np.pi / 2, rng.uniform(0.0, np.pi), rng.uniform(-0.05, 0.05)))
    high = float(either(rng, 0.0, rng.uniform(0.0, 0.3)))
    return {"initial": {"mode": "in_air", "q": q, "y": 0.5 * abs(np.sin(q)) + high}
            | numbers(rng, vx=2.0, vy=1.0, w=4.0),
            "parameters": {"mu": friction(rng, 1.2), "e": restitution(rng)}}, 0.8  # fmt: skip


def ball_in_corner(rng):
    e = restitution(rng)
    initial = {"mode": "flying", "x": 0.1 + either(rng, 0.0, 0.2, rng.uniform(0.0, 0.3)),
               "y": 0.1 + either(rng, 0.0, 0.2, rng.uniform(0.0, 0.3))}  # fmt: skip
    slope = float(either(rng, 0.0, np.pi / 4, rng.uniform(0.0, 1.2)))
    return {"initial": initial | numbers(rng, vx=1.0, vy=1.0, w=15.0),
            "parameters": {"mu": friction(rng), "slope": slope, "e_ground": e,
                           "e_wall": either(rng, e, restitution(rng))}}, 0.8  # fmt: skip


def box_on_table(rng):
    a, b, q = 0.2, 0.3, angle(rng)
    if rng.integers(3) == 0:
        b = a
    high = float(either(rng, 0.0, 0.0, rng.uniform(0.0, 0.3)))
    y = 0.5 * (a * abs(np.sin(q)) + b * abs(np.cos(q)))
    inputs = {
        "push": float(either(rng, 0.0, rng.normal(0.0, 4.0))),
        "nudge": float(either(rng, 0.0, rng.normal(0.0, 4.0))),
    }
    initial = {"mode": "in_air", "q": q, "y": y + high} | numbers(rng, vx=1.0, vy=1.0, w=6.0)
    parameters = {"mu": friction(rng), "e": restitution(rng), "b": b, "reach": rng.uniform(-b / 2, b / 2)}
    return {"initial": initial, "inputs": inputs, "parameters": parameters}, 0.6


def newtons_cradle(rng):
    raised = -np.sort(-np.abs(rng.normal(0.0, 0.5, 5)))
    raised[rng.integers(1, 6) :] = 0.0
    return {"initial": {f"q{i + 1}": -float(value) for i, value in enumerate(raised)}}, 1.5


def twelve_contacts(rng):
    return {"initial": {"mode": "falling", "x": rng.uniform(-0.55, 0.55), "y": rng.uniform(1.0, 1.4)}
            | numbers(rng, vx=1.0, vy=1.0, w=10.0),
            "parameters": {"mu": friction(rng), "e": restitution(rng)}}, 1.2  # fmt: skip


def rimless_wheel(rng):
    mode = either(rng, "rolling", "rolling", "flying")
    return {"initial": {"mode": mode, "vx": float(rng.normal(0.0, 2.0))},
            "parameters": {"n": int(rng.integers(5, 14)), "slope": float(rng.uniform(-0.05, 0.3))}}, 3.0  # fmt: skip


STARTS = {
    function.__name__: function
    for function in (
        bouncing_ball, pendulum_with_stop, double_pendulum_with_stop, latch, rolling_disk, shopping_cart,
        stick_slip_belt, cam_flat_follower, ratchet, rocking_block, sliding_rod, ball_in_corner, box_on_table,
        newtons_cradle, twelve_contacts, rimless_wheel,
    )
}  # fmt: skip
