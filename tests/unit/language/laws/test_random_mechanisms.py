"""Rows of masses with random forces, a clutch, a lock with a limit, a stop and dry friction between any of them."""

import numpy as np
import pytest

import fsm_dyn

N = 3
HOLDS, EXACT = {"online": {"strategy": "online"}, "radau": {"method": "radau"}}, 1e-5
STEPPED, NEAR = {"method": "moreau_jean", "step": 1e-3}, 0.05


def mechanism(seed):
    """Masses on one line, each on a spring of its own, driven at a frequency of its own."""
    random = np.random.default_rng(seed)

    def pair(name, alone=0.0):
        i, j = random.permutation(N)[:2]
        return f"{name}{i}" if random.random() < alone else f"{name}{i} - {name}{j}"

    contacts = {
        "clutch": {"one_way": {"coordinate": pair("x", 0.3)}},
        "magnet": {"lock": {"velocity": pair("v", 0.3), "holds_to": f"{random.uniform(1.0, 8.0):.3f} N"}},
        "stop": {"gap": pair("x") + " + 0.6 m", "restitution": float(random.choice([0.0, 0.5, 0.8]))},
    }
    if random.random() < 0.5:
        contacts["rub"] = {"dry_friction": {"speed": f"v{random.integers(N)}", "static": "1 N", "kinetic": "0.7 N"}}
    return {
        "fsm_dyn": 1,
        "name": "masses",
        "parameters": {f"om{i}": f"{random.uniform(1.0, 9.0):.3f} rad/s" for i in range(N)},
        "coordinates": {f"x{i}": "m" for i in range(N)},
        "points": {f"P{i}": {"from": "O", "at": f"x{i}*N.x"} for i in range(N)},
        "bodies": {f"b{i}": {"center": f"P{i}", "mass": f"{random.uniform(0.5, 3.0):.3f} kg"} for i in range(N)},
        "speeds": {f"v{i}": f"rate(x{i})" for i in range(N)},
        "contacts": contacts,
        "loads": [
            {
                "force": f"(({random.uniform(2.0, 10.0):.3f} N)*sin(om{i}*t + {random.uniform(0.0, 6.0):.3f})"
                f" - ({random.uniform(1.0, 20.0):.2f} N/m)*x{i})*N.x",
                "at": f"P{i}",
            }
            for i in range(N)
        ],
        "modes": {"held": {"magnet": "engaged"}},
        "initial": {"mode": "held", **{f"x{i}": f"{random.uniform(-0.2, 0.2):.3f} m" for i in range(N)}},
    }


@pytest.mark.parametrize(
    "seed", [18, 32, 115, *(pytest.param(s, marks=pytest.mark.long) for s in range(100, 140) if s != 115)]
)
def test_contact_laws_are_satisfied_and_methods_agree(seed):
    model = mechanism(seed)
    graph = fsm_dyn.compile(model)
    close = {"until": 3.0, "rtol": 1e-10, "atol": 1e-12}
    run = fsm_dyn.simulate(graph, **close)
    assert np.abs(run.energy.residual).max() < 1e-7
    lasts = np.append(np.diff(run.t) > 0.0, True) & (run.t > 0.0)  # not of modes left in the instant they begin in
    limit = float(model["contacts"]["magnet"]["lock"]["holds_to"].split()[0])
    assert np.abs(run.multipliers["magnet"][lasts]).max() <= limit * (1.0 + 1e-6)
    assert run.multipliers["clutch"][lasts].min() >= -1e-6
    text = model["contacts"]["clutch"]["one_way"]["coordinate"]
    speed = sum(sign * run[name.replace("x", "v")] for sign, name in zip((1, -1), text.split(" - "), strict=False))
    assert speed.min() > -1e-9
    locked = np.array(["clutch_locked" in mode for mode in run.modes]) & lasts
    assert np.abs(speed[locked]).max(initial=0.0) < 1e-9
    for options in HOLDS.values():
        other = fsm_dyn.simulate(graph, **close, **options)
        assert other.q[-1] == pytest.approx(run.q[-1], abs=EXACT)
        assert other.u[-1] == pytest.approx(run.u[-1], abs=EXACT)
    stepped = fsm_dyn.simulate(graph, until=3.0, **STEPPED)
    assert stepped.q[-1] == pytest.approx(run.q[-1], abs=NEAR)
