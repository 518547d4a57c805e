"""More contacts on one line than hold a body: all limits that they have together are guarded, none is cut off.

In closed form: a block pushed at its centre, h above the ground, slides at mu m g and tips at m g a/(2 h), however many
feet it has between the outer ones.
"""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import ModelError
from fsm_dyn.derive import embedding

M, G, H, A = 2.0, 9.81, 0.15, 0.2
WAYS = [{}, {"strategy": "online"}, {"method": "radau"}, {"method": "moreau_jean", "step": 1e-3}]


def block(count, mu):
    """A block on so many feet; the friction of each is given by itself."""
    places = np.linspace(-A / 2, A / 2, count).tolist()
    return {
        "fsm_dyn": 1,
        "name": "block",
        "parameters": {"m": M, "J": 0.05, "g": G, "mu": mu},
        "coordinates": ["x", "y", "q"],
        "frames": {"B": {"parent": "N", "rotate": {"z": "q"}}},
        "points": {
            "C": {"from": "O", "at": f"x*N.x + (y + {H})*N.y"},
            **{f"P{i}": {"from": "C", "at": f"({x!r})*B.x - {H}*B.y"} for i, x in enumerate(places)},
        },
        "bodies": {"block": {"frame": "B", "center": "C", "mass": "m", "inertia": {"zz": "J"}}},
        "inputs": ["push"],
        "contacts": {
            f"c{i}": {"gap": f"dot(pos(P{i}), N.y)", "slip": f"dot(vel(P{i}), N.x)", "friction": "mu"}
            for i in range(count)
        },
        "loads": [{"gravity": "-g*N.y"}, {"force": "push*N.x", "at": "C"}],
    }


@pytest.mark.parametrize("strategy", ["compiled", "online"])
@pytest.mark.parametrize("count", [2, 3, 5, 8])
@pytest.mark.parametrize(("mu", "event", "limit"), [(0.3, "slide", 0.3 * M * G), (1.5, "open", M * G * A / (2 * H))])
def test_a_block_on_many_feet_slides_and_tips_at_the_limits_of_two(strategy, count, mu, event, limit):
    run = fsm_dyn.simulate(
        fsm_dyn.compile(block(count, mu)), 1.0, inputs={"push": {"linear": [[0.0, 0.0], [1.0, 1.02 * limit]]}},
        strategy=strategy,
    )  # fmt: skip
    first = run.transitions[0]
    assert first.time == pytest.approx(1.0 / 1.02, rel=1e-9)
    if event == "slide":
        assert set(first.target.replace("+", "_").split("_")) >= {"slide"}
        assert "stick" not in first.target
        sliding = run.u[-1, 0] / (0.5 * 0.02 * limit / M * (1.0 - first.time))
        assert sliding == pytest.approx(1.0, rel=1e-6)
    else:
        assert first.target == f"c{count - 1}_stick"
        assert run.u[-1, 2] < 0.0


@pytest.mark.parametrize(
    "options", [{}, {"strategy": "online"}, {"method": "radau"}, {"method": "moreau_jean", "step": 1e-3}]
)
def test_three_unlike_feet_share_the_load_as_equal_springs(options):
    """N = m g/3 + s x with the moment of friction: s sum x^2 = h F, F = sum mu N; to the right and left.

    Equal coefficients, those of the model itself, would leave the motion independent of the shares.
    """
    model = block(3, 0.3)
    model["parameters"] |= {f"mu{i}": 0.3 for i in range(3)}
    for i in range(3):
        model["contacts"][f"c{i}"]["friction"] = f"mu{i}"
    simulator = fsm_dyn.Simulator(fsm_dyn.compile(model))
    x, random = np.array([-A / 2, 0.0, A / 2]), np.random.default_rng(5)
    for sign in (1.0, -1.0):
        mu = random.uniform(0.05, 0.35, 3)
        friction = mu.mean() * M * G / (1.0 - sign * H * (mu @ x) / (x @ x))
        assert (M * G / 3 + sign * H * friction / (x @ x) * x).min() > 0.0
        run = simulator.run(
            0.2, parameters={f"mu{i}": float(each) for i, each in enumerate(mu)}, inputs={"push": 0.0},
            initial={"x_dot": 2.0 * sign}, **options,
        )  # fmt: skip
        assert run.u[-1] == pytest.approx([sign * (2.0 - 0.2 * friction / M), 0.0, 0.0], abs=1e-8)


@pytest.mark.parametrize("options", WAYS[:3])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_block_on_belts_that_run_apart_is_drawn_by_the_unlike_foot(sign, options):
    """Two feet are drawn one way, the third the other: F = mu m g/3/(1 - 1.5 mu) by the same shares."""
    mu = 0.2
    model = block(3, mu)
    model["parameters"] |= {f"w{i}": 0 for i in range(3)}
    for i in range(3):
        model["contacts"][f"c{i}"]["slip"] += f" - w{i}"
    belts = [1.0, 1.0, -1.0] if sign > 0.0 else [1.0, -1.0, -1.0]
    run = fsm_dyn.simulate(
        fsm_dyn.compile(model), 0.2, parameters={f"w{i}": belts[i] for i in range(3)}, inputs={"push": 0.0}, **options
    )
    pull = mu * M * G / 3 / (1.0 - 1.5 * mu)
    assert run.u[-1] == pytest.approx([sign * 0.2 * pull / M, 0.0, 0.0], abs=1e-8)


@pytest.mark.parametrize("options", WAYS)
def test_friction_that_becomes_unlike_on_the_way_shifts_the_load(options):
    """Of the foot behind it falls from 0.3 to 0.1 within the mode: the speed by quadrature of the closed form."""
    model = block(3, 0.3)
    model["inputs"] = ["push", "rough"]
    model["contacts"]["c0"]["friction"] = "rough"
    graph = fsm_dyn.compile(model)
    inputs = {"push": 0.0, "rough": {"linear": [[0.0, 0.3], [0.2, 0.1]]}}
    run = fsm_dyn.simulate(graph, 0.2, inputs=inputs, initial={"x_dot": 2.0}, **options)
    mu = 0.3 - np.linspace(0.0, 0.2, 20_001)
    slowing = (0.6 + mu) / 3 * G / (1.0 - H * A / 2 * (0.3 - mu) / (A**2 / 2))
    expected = 2.0 - np.trapezoid(slowing, dx=1e-5)
    assert run.u[-1] == pytest.approx([expected, 0.0, 0.0], abs=1e-6)


def test_a_list_of_limits_that_is_too_long_is_refused_by_name(monkeypatch):
    """With own kernels alone: the start compiles without its mode, so that the remedy can be followed."""
    monkeypatch.setattr(embedding, "MOST_LIMITS", 10)
    graph = fsm_dyn.compile(block(5, 0.3) | {"name": "refused"}, cache=False)
    with pytest.raises(
        ModelError, match=r"more ways than can be listed[\s\S]*remedy: simulate\(..., strategy='online'\)"
    ):
        fsm_dyn.simulate(graph, 0.1, strategy="compiled")
    for strategy in ("online", "auto"):
        rests, slides = (fsm_dyn.simulate(graph, 0.1, strategy=strategy, initial={"x_dot": v}) for v in (0.0, 2.0))
        assert rests.u[-1] == pytest.approx([0.0, 0.0, 0.0], abs=1e-9)
        assert slides.u[-1] == pytest.approx([2.0 - 0.3 * G * 0.1, 0.0, 0.0], abs=1e-9)
