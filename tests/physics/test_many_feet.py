"""More contacts on one line than hold a body: all limits that they have together are guarded, none is cut off.

In closed form: a block pushed at its centre, h above the ground, slides at mu m g and tips at m g a/(2 h), however many
feet it has between the outer ones.
"""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import ModelError
from fsm_dyn.derive import embedding as redundancy

M, G, H, A = 2.0, 9.81, 0.15, 0.2


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


def test_a_list_of_limits_that_is_too_long_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(redundancy, "MOST_LIMITS", 10)
    with pytest.raises(ModelError, match=r"more ways than can be listed[\s\S]*online"):
        fsm_dyn.compile(block(5, 0.3) | {"name": "refused"})
