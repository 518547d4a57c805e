"""The pictures of the cookbook: every recipe over time.

``python mechanisms/cookbook.py FOLDER`` writes them into a folder, by default ``docs/pictures/cookbook``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import fsm_dyn
from fsm_dyn import plot

RECIPES = Path(__file__).parents[1] / "docs" / "cookbook"

# How long each recipe runs, s, and the columns that show what it does.
SHOWN = {
    "ball_point_pen": (0.6, ["y", "thumb"]),
    "brake": (2.5, ["q_dot", "press"]),
    "break_away_coupling": (0.8, ["motor_dot", "load_dot"]),
    "brick_over_an_edge": (0.3, ["x", "z"]),
    "cam_follower_jump": (0.13, ["y", "cam_height"]),
    "end_stops": (1.0, ["x", "x_dot"]),
    "gear_backlash": (0.03, ["q1_dot", "q2_dot"]),
    "magnet": (1.5, ["x", "pull"]),
    "one_way_clutch": (3.0, ["hub_dot", "wheel_dot"]),
    "over_centre_spring": (0.02, ["q", "q_dot"]),
    "ratchet_teeth": (1.5, ["q", "q_dot"]),
    "stack_of_boxes": (1.1, ["x1_dot", "x2_dot"]),
    "string": (2.0, ["x", "y"]),
}

IN_SPACE = ("brick_over_an_edge",)  # drawn at some instants as well


def main() -> None:
    """Draw all recipes into the folder named on the command line."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else RECIPES.parent / "pictures" / "cookbook"
    folder.mkdir(parents=True, exist_ok=True)
    for name, (until, columns) in SHOWN.items():
        run = fsm_dyn.simulate(fsm_dyn.compile(RECIPES / f"{name}.yaml"), until=until)
        plot.save(plot.states(run, columns), folder / f"{name}.png")
        if name in IN_SPACE:
            plot.save(plot.thumbnail(run), folder / f"{name}_motion.png")


if __name__ == "__main__":
    main()
