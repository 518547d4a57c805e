"""Digests of runs with one build of the runtime: ``python -m tests.runtime.runs LIBRARY MODEL...``.

``LIBRARY`` takes the place of the installed one.  A line per run: model, method, digest of rows, modes, transitions and
outcome.
"""

import hashlib
import importlib.util
import sys
import warnings
from types import SimpleNamespace

import numpy as np

METHODS = {
    "dopri5": {"derive_after": 60},  # takes kernels over in mid-mode
    "online": {"strategy": "online"},
    "rk4": {"method": "rk4", "step": 2e-3},
    "heun": {"method": "heun", "step": 2e-3},
    "euler": {"method": "euler", "step": 2e-3},
    "radau": {"method": "radau", "until": 0.3},
    "moreau_jean": {"method": "moreau_jean", "step": 2e-3},
}
RUNS = 6  # of a batch
ROOM = 100  # rows of its buffers, which grow


def use(library):
    """Let the package find this library before its own."""
    found = importlib.util.find_spec
    spec = SimpleNamespace(origin=str(library))
    importlib.util.find_spec = lambda name, *more: spec if name.endswith("._fsm_runtime") else found(name, *more)
    from fsm_dyn.runtime.library import _library

    importlib.util.find_spec = found
    assert _library._name == str(library)


def digest(graph, options):
    """Digest of one run, or what it was refused for."""
    import fsm_dyn

    try:
        run = fsm_dyn.simulate(graph, **{"until": 1.0, "max_steps": 2000, "on_failure": "return", **options})
    except fsm_dyn.FsmDynError as error:
        return f"refused: {error}".splitlines()[0]
    found = hashlib.sha256()
    for array in (run.t, run.q, run.u):
        found.update(np.ascontiguousarray(array).tobytes())
    changes = [(x.time, str(x.source), str(x.target), sorted(x.impulse.items())) for x in run.transitions]
    found.update(f"{run.outcome.name} {changes}".encode())
    return found.hexdigest()[:16]


def ticks(graph):
    """Digest of live ticks with a hand at the first port, or that there is none."""
    import fsm_dyn
    from fsm_dyn.devices.scripted import Driver, usual_motion
    from fsm_dyn.live.controller import RunController
    from fsm_dyn.live.device_map import add_couplers, coupled_ports
    from fsm_dyn.live.stepper import LiveStepper

    ports = coupled_ports(graph.automaton.mechanism)
    if not ports:
        return "no port"
    axes = len(ports[0].axes)
    stepper = LiveStepper(fsm_dyn.compile(add_couplers(graph.automaton.mechanism)), axes)
    controller = RunController(stepper, lambda event: None)
    hand = Driver({"axes": axes, "motion": usual_motion(axes)})
    found = hashlib.sha256()
    for _ in range(1000):
        controller.tick(hand.read())
        hand.write(stepper.tick_data.force)
        found.update(np.ascontiguousarray(stepper.tick_data.force).tobytes())
    return found.hexdigest()[:16]


def batch(graph):
    """Digest of runs made by one call, which have the bits that each has alone; the buffers are full on the way."""
    from fsm_dyn.run import run as run_batch
    from fsm_dyn.run.loop import run_automaton
    from fsm_dyn.run.loop_state import Workspace
    from fsm_dyn.run.run_options import RunOptions
    from fsm_dyn.run.simulator import Simulator

    simulator = Simulator(graph)
    executable = simulator.take("compiled")
    given = simulator.setup(RunOptions(0.3))
    numerics = simulator.numerics(given.numbers, given.vector)
    executable.use(numerics)
    start = given.start
    speeds = np.linspace(0.0, 0.1, RUNS)[:, None] * (np.arange(len(start.x)) >= len(graph.automaton.terms.layout.q))
    starts = run_batch.Starts(start.x + speeds, np.tile(start.context, (RUNS, 1)), [start.states] * RUNS)
    shared = RunOptions(0.3, max_steps=2000).resolved(numerics)
    run_batch.ROWS, room = ROOM, run_batch.ROWS
    found, made = hashlib.sha256(), 0
    try:
        for part in run_batch.run_batch(executable, starts, given.drive, shared, Workspace()):
            if isinstance(part, run_batch.NeedsItself):
                found.update(f"{part.number} alone".encode())
                continue
            shown = np.column_stack([part.t, part.x])  # the middle of a step is not always written
            found.update(shown.tobytes() + part.mode.tobytes() + part.statuses.tobytes())
            made += len(part.numbers)
            for k, number in enumerate(part.numbers):
                alone = run_automaton(
                    executable.tables, starts.x[number], starts.c[number], executable.mode_index(start.states), 0.0,
                    shared, drive=given.drive, mode_source=executable,
                )  # fmt: skip
                assert alone.outcome.code == part.statuses[k]
                rows = part.x[part.begin[k] : part.begin[k + 1]]
                assert rows.tobytes() == alone.x.tobytes()
    finally:
        run_batch.ROWS = room
    return f"{made} {found.hexdigest()[:16]}"


def main(library, *models):
    """Print the digests."""
    use(library)
    import fsm_dyn

    warnings.simplefilter("ignore")
    for model in models:
        graph = fsm_dyn.compile(model)
        for name, options in METHODS.items():
            print(model, name, digest(graph, options))
        print(model, "ticks", ticks(graph))
        print(model, "batch", batch(graph))


if __name__ == "__main__":
    main(*sys.argv[1:])
