"""A run that can be written down in closed form: a block on a rough floor that is pushed, slides and stops.

All motion is quadratic in time, so the quartics between rows and the quadrature of powers are exact.
"""

import numpy as np
import pytest

from fsm_dyn.programs.program import Layout
from fsm_dyn.run.record import ConstraintRowInfo, RunModel, RunRecord
from fsm_dyn.run.trajectory import Trajectory
from fsm_dyn.run.transitions import Transition

MASS, FRICTION, PUSH = 2.0, 4.0, 5.0  # kg, N (kinetic and static alike), N
NORMAL = 19.62


class Formula:
    """A program given by a function of the arguments by name."""

    def __init__(self, layout, function):
        self.layout = layout
        self.function = function

    def evaluate(self, t, x, c, only=None):
        values = {"t": t, **{n: x[..., i] for i, n in enumerate(self.layout.x)}}
        values |= {n: c[..., i] for i, n in enumerate(self.layout.c)}
        found = self.function(values)
        if only is None:
            return found
        return {name: found[name] if rows is None else found[name][:, rows] for name, rows in only.items()}


def push(t, right=True):
    """Give 5 N from 1 s to 1.5 s, with its (zero) rates."""
    on = np.where(right, (t >= 1.0) & (t < 1.5), (t > 1.0) & (t <= 1.5))
    return np.stack([PUSH * on, 0.0 * t, 0.0 * t], axis=-1)


def block_model():
    layout = Layout(q=("x",), u=("v",), p=("m",), w=("push",), contacts=("floor",))

    def full(friction):
        return Formula(
            layout,
            lambda a: {
                "multipliers": np.stack([NORMAL + 0 * a["t"], friction(a)], axis=-1),
                "x_dot": np.stack([a["v"], (a["push"] + friction(a)) / a["m"]], axis=-1),
            },
        )

    return RunModel(
        name="block",
        layout=layout,
        parameters=np.array([MASS]),
        rows=(ConstraintRowInfo("floor", "normal"), ConstraintRowInfo("floor", "tangent")),
        modes=("sticking", "sliding"),
        outputs=("double",),
        loads=("pushing",),
        terms=Formula(
            layout,
            lambda a: {
                "A": np.stack([0 * a["v"], 1 + 0 * a["v"]], axis=-1)[..., None],
                "b": np.stack([0 * a["v"], 0 * a["v"]], axis=-1),
            },
        ),
        report=Formula(
            layout,
            lambda a: {
                "kinetic_energy": 0.5 * a["m"] * a["v"] ** 2,
                "potential_energy": 0.0,
                "load_powers": (a["push"] * a["v"])[..., None],
                "outputs": (2 * a["x"])[..., None],
            },
        ),
        full=[full(lambda a: -a["push"]), full(lambda a: -FRICTION * a["floor.sigma"])],
        units={"x": "m", "v": "m/s", "push": "N"},
    )


def transition(time, target, cause):
    still = np.zeros(1)
    return Transition(time, "sliding", target, cause, {}, 0.0, 0.0, still, still)


def block_record():
    """Slide from 2 m/s to rest at 1 s, be pushed from there to 1.5 s, slide to rest at 1.625 s, rest until 2 s."""
    pieces = [  # mode, from, to, x at from, v at from, acceleration, rows
        (1, 0.0, 1.0, 0.0, 2.0, -FRICTION / MASS, 5),
        (1, 1.0, 1.5, 1.0, 0.0, (PUSH - FRICTION) / MASS, 4),
        (1, 1.5, 1.625, 1.0625, 0.25, -FRICTION / MASS, 3),
        (0, 1.625, 2.0, 1.078125, 0.0, 0.0, 2),
    ]
    columns = {name: [] for name in ("t", "x", "x_dot", "x_mid", "mode")}
    for mode, begin, end, x0, v0, a, count in pieces:
        t = np.linspace(begin, end, count)
        s = t - begin
        middle = s - 0.5 * (t[1] - t[0])
        columns["t"].append(t)
        columns["x"].append(np.stack([x0 + v0 * s + a * s**2 / 2, v0 + a * s], axis=-1))
        columns["x_dot"].append(np.stack([v0 + a * s, a + 0 * s], axis=-1))
        columns["x_mid"].append(np.stack([x0 + v0 * middle + a * middle**2 / 2, v0 + a * middle], axis=-1))
        columns["mode"].append(np.full(count, mode))
    arrays = {name: np.concatenate(parts) for name, parts in columns.items()}
    transitions = (
        transition(1.0, "sliding", "push breaks it away"),
        transition(1.625, "sticking", "floor sticks (slip velocity zero)"),
    )
    starts = np.concatenate([[True], np.diff(arrays["t"]) == 0.0])
    held = np.hstack([push(arrays["t"], starts), np.ones((len(starts), 1)), np.zeros((len(starts), 1))])
    return RunRecord(**arrays, held=held, read_transitions=lambda: transitions, inputs=push)


@pytest.fixture
def block():
    return Trajectory(block_model(), block_record())
