"""One mechanism in FMPy, next to our own run: the latch as a Functional Mock-up Unit.

``python mechanisms/unit_in_fmpy.py FOLDER`` writes the picture of docs/how_to/export.md.  It needs FMPy and a C
compiler.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
from matplotlib.figure import Figure

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.draw import svg as palette
from fsm_dyn.plot import style

MODEL, END = "latch", 4.0  # s
STATES = {"x": "door", "b": "bolt"}


def rows(path: Path, kind: str, **options: Any) -> np.ndarray:
    """Simulate a unit in FMPy and return what it recorded, times among them."""
    recorded: np.ndarray = fmpy.simulate_fmu(
        str(path), fmi_type=kind, stop_time=END, output=[*STATES, "mode"], output_interval=0.05, **options
    )
    return recorded


def recorded() -> tuple[Any, list[str], dict[str, np.ndarray]]:
    """Return our run, the items of the units' enumeration of modes, and what FMPy makes of the units."""
    graph = fsm_dyn.compile(MODEL)
    run = fsm_dyn.Simulator(graph).run(END, strategy="compiled")
    with tempfile.TemporaryDirectory() as folder:
        units = {target: fsm_dyn.export(graph, Path(folder) / target, target) for target in ("fmu2", "fmu3")}
        path = {target: unit / f"{MODEL}.fmu" for target, unit in units.items()}
        items = fmpy.read_model_description(str(path["fmu3"])).typeDefinitions[0].items
        return run, [item.name for item in items], {
            "FMI 3.0, co-simulation": rows(
                path["fmu3"], "CoSimulation", use_event_mode=True, early_return_allowed=True
            ),
            "FMI 2.0, model exchange": rows(path["fmu2"], "ModelExchange", relative_tolerance=1e-8),
        }  # fmt: skip


def picture(run: Any, modes: list[str], found: dict[str, np.ndarray]) -> Figure:
    """Draw positions over time, and the modes below."""
    with style.settings():
        drawn = style.new_figure(8.6, 4.4)
        upper, lower = drawn.subplots(2, 1, sharex=True, height_ratios=(2.2, 1.0))
        for k, (name, label) in enumerate(STATES.items()):
            upper.plot(run.t, 1e3 * run[name], color=palette.LINES[k], lw=1.2, label=f"{label}, our run")
            for marker, (kind, table) in zip("+o", found.items(), strict=True):
                text = f"FMPy, {kind}" if k == 0 else None
                upper.plot(
                    table["time"], 1e3 * table[name], marker, color=palette.INK, ms=5, mfc="none", lw=0, label=text
                )
        order = list(dict.fromkeys(run.modes))
        lower.step(run.t, [order.index(mode) for mode in run.modes], where="post", color=palette.LINES[0], lw=1.2)
        for marker, table in zip("+o", found.values(), strict=True):
            at = [order.index(modes[int(mode)]) for mode in table["mode"]]
            lower.plot(table["time"], at, marker, color=palette.INK, ms=5, mfc="none", lw=0)
        lower.set_yticks(range(len(order)), order)
        lower.set_xlabel("time, s")
        upper.set_ylabel("position, mm")
        upper.legend(loc="upper right")
        for axes in (upper, lower):
            axes.grid(color="#EEEEEE", lw=0.8)
        drawn.suptitle("A latch in FMPy, next to our run", x=0.06, ha="left", fontweight="bold", fontsize=10)
        drawn.tight_layout()
    return drawn


def main(folder: str = ".") -> None:
    """Write the picture, and how far the units are from our run."""
    run, modes, found = recorded()
    for kind, table in found.items():
        ours = np.array([run.at(float(time)).q for time in table["time"]])
        apart = np.abs(np.column_stack([table[name] for name in STATES]) - ours).max()
        print(f"{kind}: {len(table)} rows, positions within {apart:.2g} m of ours")
    plot.save(picture(run, modes, found), Path(folder) / "unit_in_fmpy.png")


if __name__ == "__main__":
    main(*sys.argv[1:])
