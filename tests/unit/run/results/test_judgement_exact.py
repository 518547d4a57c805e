"""Requirements on a thousand random motions of four mechanisms in closed form: verdicts equal, margins to 1e-9."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.language.loader import load
from tests.unit.run.results import exact_motions
from tests.unit.run.results.exact_motions import judge

EXACT = 1e-9
BODY = """
fsm_dyn: 1
name: body
coordinates: {%s: m}
points: {C: {from: O, at: %s*N.%s}}
bodies: {body: {center: C, mass: m}}
"""
UP, ALONG = BODY % (("y",) * 3), BODY % (("x",) * 3)
BOUNDS = "a: 1 m, b: 1 m/s, c: 1 m^2, d: 1 s, n: 3, f: 1 N"

# by motion: the model, and what is claimed, as a formula and for the monitor
MODELS = {
    "ball": (
        UP + "parameters: {m: 1 kg, g: 9.81 m/s^2, e: 0.5, " + BOUNDS + "}\noutputs: {square: y**2}\n"
        "initial: {y: 1 m}\ncontacts: {ground: {gap: y, restitution: e}}\nloads: [{gravity: -g*N.y}]\n",
        {
            "low": ("always y < a", ("always below", "y", "a")),
            "fast": ("peak(abs(y_dot)) < b", ("always below", "abs(y_dot)", "b")),
            "falls": ("trough(y_dot) > -b", ("always above", "y_dot", "-b")),
            "limited": ("peak(square) < c", ("always below", "square", "c")),
            "rises": ("eventually y > a before d", ("reaches", "y", "a", "d")),
            "climbs": ("peak(y_dot) > b", ("peak above", "y_dot", "b")),
            "ends": ("final(y) < a", ("final below", "y", "a")),
            "calm": ("never ground closes twice within d", ("never twice", "ground closes", "d")),
            "soon": ("eventually ground closes before d", ("happens", "ground closes", "d")),
            "ever": ("eventually ground closes", ("happens", "ground closes")),
            "few": ("count(ground closes) <= n", ("at most", "ground closes", "n")),
            "many": ("count(ground closes) > n", ("more than", "ground closes", "n")),
            "open": ("always ground is open", ("always in", "ground", "open")),
            "pressed": ("always y < a while ground is closed", ("always below", "y", "a", ("ground", "closed"))),
        },
    ),
    "shuttle": (
        ALONG + "parameters: {m: 1 kg, length: 1 m, e: 0.5, " + BOUNDS + "}\noutputs: {square: x**2}\n"
        "initial: {x: length/2}\n"
        "contacts: {left: {gap: x, restitution: e}, right: {gap: length - x, restitution: e}}\n",
        {
            "short": ("always x < a", ("always below", "x", "a")),
            "slow": ("peak(abs(x_dot)) < b", ("always below", "abs(x_dot)", "b")),
            "limited": ("eventually square > c before d", ("reaches", "square", "c", "d")),
            "left_calm": ("never left closes twice within d", ("never twice", "left closes", "d")),
            "right_soon": ("eventually right closes before d", ("happens", "right closes", "d")),
            "left_ever": ("eventually left closes", ("happens", "left closes")),
            "right_few": ("count(right closes) <= n", ("at most", "right closes", "n")),
            "ends": ("final(x_dot) < b", ("final below", "x_dot", "b")),
        },
    ),
    "pushed": (
        ALONG + "parameters: {m: 1 kg, " + BOUNDS + "}\noutputs: {square: x**2}\ninputs: {push: N}\n"
        "loads: [{force: push*N.x, at: C}]\n",
        {
            "near": ("always abs(x) < a", ("always below", "abs(x)", "a")),
            "forward": ("trough(x_dot) > -b", ("always above", "x_dot", "-b")),
            "limited": ("peak(square) < c", ("always below", "square", "c")),
            "far": ("eventually x > a before d", ("reaches", "x", "a", "d")),
            "weak": ("peak(push) < f", ("always below", "push", "f")),
            "ends": ("final(square) < c", ("final below", "square", "c")),
        },
    ),
    "rubbing": (
        ALONG + "parameters: {m: 1 kg, static: 2 N, kinetic: 1 N, " + BOUNDS + "}\ninputs: {push: N}\n"
        "contacts: {pad: {dry_friction: {speed: x_dot, static: static, kinetic: kinetic}}}\n"
        "loads: [{force: push*N.x, at: C}]\n",
        {
            "near": ("always abs(x) < a", ("always below", "abs(x)", "a")),
            "slow": ("always abs(x_dot) < b while pad is slide",
                     ("always below", "abs(x_dot)", "b", ("pad", "slide"))),
            "holds": ("always abs(pad.friction) < f while pad is stick",
                      ("always below", "pad.friction", "f", ("pad", "stick"))),
            "rubs": ("peak(abs(pad.friction)) < f", ("always below", "pad.friction", "f")),
            "slides": ("always pad is slide", ("always in", "pad", "slide")),
            "sticks": ("eventually pad is stick before d", ("enters", "pad", "stick", "d")),
            "stops": ("eventually pad sticks before d", ("happens", "pad sticks", "d")),
            "calm": ("never pad sticks twice within d", ("never twice", "pad sticks", "d")),
            "loose": ("count(pad slides) <= n", ("at most", "pad slides", "n")),
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_margins_are_those_of_the_monitor(name):
    text, claims = MODELS[name]
    formulas = "".join(f"  {key}: {formula}\n" for key, (formula, _) in claims.items())
    graph = fsm_dyn.compile(load("body", text=f"{text}requirements:\n{formulas}"))
    simulator, random = fsm_dyn.Simulator(graph), np.random.default_rng(19)
    verdicts = {key: set() for key in claims}
    for _ in range(250):
        parameters, initial, inputs, motion = getattr(exact_motions, name)(random)
        bounds = {
            "a": random.uniform(-0.5, 3.0), "b": random.uniform(0.0, 6.0), "c": random.uniform(0.0, 9.0),
            "d": random.uniform(0.05, 1.5) * motion.end, "n": float(random.integers(0, 5)),
            "f": random.uniform(0.5, 5.0),
        }  # fmt: skip
        run = simulator.run(
            until=motion.end, parameters=parameters | bounds, initial=initial, inputs=inputs, rtol=1e-11, atol=1e-13
        )
        known = {**bounds, **{f"-{key}": -value for key, value in bounds.items()}}
        for key, item in run.judge(chains=False).items():
            kind, *rest = claims[key][1]
            expected, margin = judge(motion, (kind, *(known.get(part, part) for part in rest)))
            assert item.margin == pytest.approx(margin, abs=EXACT, nan_ok=True), (key, item)
            assert item.verdict == expected, (key, item)
            verdicts[key].add(item.verdict)
    alike = {key for key, found in verdicts.items() if len(found) == 1}
    assert alike <= {"open", "pressed"}  # both verdicts occur, except where a motion has no other
