"""What a session needs to start: a held graph, what the device bears, the processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Final

from fsm_dyn import compiling
from fsm_dyn.automaton.graph import ModeGraph
from fsm_dyn.compiling import Parameters, graph_of
from fsm_dyn.live import guard
from fsm_dyn.live.device import CAP, NOTHING, SAFE_FRAME, Spec
from fsm_dyn.live.holding import held_ports, hold
from fsm_dyn.live.settings import Settings
from fsm_dyn.live.stepping import Limits
from fsm_dyn.spec.values import parameter_values

LEAST_RELEASE: Final = 3.0  # periods
# the libraries behind NumPy start a thread per processor, of no use here
_ALONE: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def merged(graph: ModeGraph, parameters: Parameters | None) -> dict[str, Any]:
    """Return the parameters that differ from the file: those the graph was compiled with, and those given now."""
    usual = parameter_values(graph.automaton.mechanism)
    changed = {name: value for name, value in graph.values.items() if value != usual[name]}
    return {**changed, **(parameters or {})}


def held(graph: ModeGraph, parameters: Parameters | None = None) -> ModeGraph:
    """Return a graph whose ports are held, compiled if need be, with these parameters."""
    mechanism = graph.automaton.mechanism
    ports = held_ports(mechanism)
    if not ports or any(name not in mechanism.inputs for port in ports for name in port.inputs):
        return compiling.compile(hold(mechanism), parameters)
    return graph_of(graph.automaton, parameters)


def allowed(limits: Limits, spec: Spec) -> Limits:
    """Return the limits with what the device bears, and its workspace where none is given.

    A device that nothing stops gets a fifth of force and torque.
    """
    part = CAP if spec.stop == NOTHING else 1.0
    force, torque = min(limits.force, spec.force) * part, min(limits.torque, spec.torque) * part
    return replace(limits, force=force, torque=torque, low=limits.low or spec.low, high=limits.high or spec.high)


def release_time(settings: Settings, spec: Spec) -> float:
    """Return after how long a device is released (s), 0 for one that is not felt or whose ticks follow no clock."""
    if not settings.paced or not spec.felt or settings.release_after == 0.0:
        return 0.0
    return max(settings.release_after, LEAST_RELEASE * settings.period)


def saved(graph: ModeGraph) -> str:
    """Return a graph as the text of a saved automaton."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.json"
        graph.save(path)
        return path.read_text(encoding="utf-8")


def spawn(graph: ModeGraph, plain: dict[str, Any], spec: Spec, log: IO[bytes]) -> tuple[subprocess.Popen[bytes], Path]:
    """Start the guard, which starts the tick process; return it and the folder that the latter removes."""
    folder = Path(tempfile.mkdtemp(prefix="fsm_dyn_live_"))
    graph.save(folder / "graph.json")
    (folder / "settings.json").write_text(json.dumps(plain), encoding="utf-8")
    inherited = [int(plain["memory"])] if plain["memory"].isdigit() else []
    if plain["transport"] is not None:
        inherited.append(plain["transport"])
    told = {
        "memory": plain["memory"], "descriptors": inherited, "transport": plain["transport"],
        "safe_frame": spec.safe_frame.hex() if spec.stop == SAFE_FRAME else "",
        "timeout": plain["guard_timeout"], "release": plain["release"],
        "period": min(0.002, 0.2 * plain["guard_timeout"], 0.2 * (plain["release"] or 1.0)),
        "zero_frame": spec.zero_frame.hex(), "privileges": plain["privileges"],
        "folder": str(folder), "command": [sys.executable, "-m", "fsm_dyn.live.process", str(folder)],
    }  # fmt: skip
    options: dict[str, Any] = {"pass_fds": inherited, "start_new_session": True} if os.name == "posix" else {}
    process = subprocess.Popen(
        [sys.executable, "-I", str(Path(guard.__file__)), json.dumps(told)],
        stdin=subprocess.PIPE, stdout=log, stderr=log, env={**os.environ, **_ALONE}, **options,
    )  # fmt: skip
    return process, folder
