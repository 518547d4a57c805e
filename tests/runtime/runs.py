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
    from fsm_dyn.live.live_stepper import LiveStepper
    from fsm_dyn.live.port_coupling import add_couplers, coupled_ports
    from fsm_dyn.live.run_controller import RunController

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


if __name__ == "__main__":
    main(*sys.argv[1:])
