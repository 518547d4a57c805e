"""A door whose bolt and friction vary: which parts latch, and which modes their runs visit.

``python mechanisms/will_it_latch.py FOLDER`` writes the pictures of the gallery.
"""

from __future__ import annotations

import sys
from pathlib import Path

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.analysis.study_results import shares_svg
from fsm_dyn.language.loader import load
from fsm_dyn.language.models import find

RUNS = 320
PUSH = 10.0  # N, by a weak hand, all the time


def door() -> fsm_dyn.ModeGraph:
    """Return ``latch_door`` with tolerances of two parameters."""
    text = find("latch_door").read_text(encoding="utf-8")
    text = text.replace("preload: 3 N", "preload: 5 N +- 4 N")
    text = text.replace("mu: 0.1", "mu: {value: 0.35, tolerance: [-0.3, 0.3]}")
    return fsm_dyn.compile(load("latch_door", text=text))


def main(folder: Path) -> None:
    """Run the study and write its pictures."""
    graph = door()
    inputs = {"push": PUSH, "handle": 0.0}
    found = fsm_dyn.tolerance_study(graph, n=RUNS, seed=1, sample="lhs", until=3.1, inputs=inputs)
    share = found.estimate("latches")
    figure = plot.requirements(
        "latch_door",
        {"latches": (share.value, share.lower, share.upper)},
        {"latches": found.sensitivity("latches")},
        found.margins,
        found.units,
    )
    plot.save(figure, folder / "will_it_latch.png")
    across, up = ("mu", found.parameters["mu"]), ("preload", found.parameters["preload"])
    figure = plot.sequence_map(
        "latch_door: does it latch?", across, up, found.sequences, found.verdicts["latches"], found.units
    )
    plot.save(figure, folder / "will_it_latch_map.png")
    (folder / "will_it_latch_modes.svg").write_text(shares_svg(found, graph, "latches"), encoding="utf-8")
    print(share, found.parting("latches"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
