"""Write a set of stored files: ``python -m tests.stored.write FOLDER``, at a release that changes a format.

A set stays as the version that wrote it left it; ``test_stored_files.py`` opens and plays all of them.
"""

import sys
from pathlib import Path

import fsm_dyn
from fsm_dyn.live.launch import Settings
from fsm_dyn.live.session import LiveSession

HAND = {"axes": 2, "motion": [[1, 0.03, 6.0, 3.0]]}
UNTIL = {"latch": 1.0, "box_on_table": 0.5}  # s


def write(folder):
    """Write automata and runs of two models, and a recording of half a second of a wall in a scripted hand."""
    folder.mkdir(parents=True)
    for name, until in UNTIL.items():
        graph = fsm_dyn.compile(name)
        graph.save(folder / f"{name}.automaton.json")
        fsm_dyn.simulate(graph, until).save(folder / f"{name}.run.json")
    settings = Settings(realtime_privileges=False, watchdog_timeout=20.0)
    with LiveSession.start(
        fsm_dyn.compile("virtual_wall"), "scripted", HAND, settings=settings, record=folder / "virtual_wall.mcap"
    ) as session:
        session.wait_for_ticks(250)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
