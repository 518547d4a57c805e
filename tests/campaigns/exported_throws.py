"""Aimed throws by exports, as a machine in C99 and as a unit for FMI: the first touch against its closed form.

A machine in C99 has the starts of the campaign in Python.  The start of a unit is fixed: it is aimed by a constant
acceleration, two inputs.
"""

import re
import tempfile
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import fsm_dyn
from tests.campaigns.throw_scenes import PARAMETERS, TARGETS, Motion, Scene
from tests.campaigns.throw_truth import first_touch
from tests.campaigns.throws import ON, SCENES, verdict

BATCH = 10
C99 = [scene for scene in SCENES if scene.law == "rigid" and scene.moves != "used"]
THROWN = Scene("ball", "", "fixed", "rigid")
SHAPES = ("circle", "segment", "arc", "polygon")
START = np.array([0.7, 1.1])  # m
SPEED = np.array([0.4, 2.0])  # m/s


def wrong_of(scene, motion, until, times):
    """What is wrong with the first of the times at which an export has transitions, or None."""
    numbers = motion.numbers

    def distance(t):
        return scene.distance(motion(t), numbers)

    time, _ = first_touch(distance, 0.0, until, scene.rate(motion, until), scene.size(numbers))
    if time < np.inf and not scene.counts(motion(np.array([time])), numbers):
        return None
    end = times[0] if len(times) else until
    return verdict(time, end, len(times) > 0, float(distance(np.array([end]))[0]), False, ON)


def c99_case(seed, count=BATCH):
    """A batch of throws of one scene by a machine in C99."""
    from tests.exports.random_starts import in_c, in_python, library  # which takes the list of campaigns itself

    scene = C99[seed % len(C99)]
    simulator = fsm_dyn.Simulator(fsm_dyn.compile(scene.model()))
    executable, found = simulator.take("compiled"), []
    throws = [scene.throw(number) for number in range(seed * BATCH, seed * BATCH + count)]
    with tempfile.TemporaryDirectory() as folder:
        starts = [SimpleNamespace(inputs={}, parameters=a.numbers, initial=a.initial, until=a.until) for a in throws]
        for start in starts:  # to reach modes
            in_python(simulator, executable, start)
        lib, model = library(simulator.graph, executable, Path(folder))
        for one, start in zip(throws, starts, strict=True):
            given, run = in_python(simulator, executable, start)
            _, _, rows = in_c(lib, model, given, one.until, run.transitions.u_after.shape[1])
            q = np.array([*list(one.initial.values())[: scene.moving], one.initial.get("q", 0.0)])
            u = np.array([one.initial[f"{name}_dot"] for name in "xypzq" if f"{name}_dot" in one.initial])
            if scene.moving == 4:
                u[[2, 3]] = u[[3, 2]]
            if wrong := wrong_of(scene, Motion(scene, one.numbers, 0.0, q, u), one.until, rows[:, 0]):
                found.append(f"{wrong[0]}: {wrong[1]} [{scene.name}, {one}]")
    return result(scene.name, count, found)


@cache
def unit(shape, target="fmu2"):
    """The unpacked unit of a ball that is thrown at a shape, once a process."""
    import fmpy

    model = THROWN._replace(target=shape).model()
    model |= {"inputs": ["ax", "ay"], "initial": dict(zip(("x", "y"), START.tolist(), strict=True))}
    model["initial"] |= dict(zip(("x_dot", "y_dot"), SPEED.tolist(), strict=True))
    model["loads"] = [{"force": "0.5*ax*N.x + 0.5*ay*N.y", "at": "P"}]
    folder = Path(tempfile.mkdtemp(prefix="throws"))
    fsm_dyn.export(fsm_dyn.compile(model), folder, target)
    return fmpy.extract(str(next(folder.glob("*.fmu"))), unzipdir=str(folder / "unpacked"))


class Thrown:
    """Motion with constant acceleration: columns x, y, p and the angle of the target, which is 0."""

    def __init__(self, acceleration):
        self.begin, self.numbers = 0.0, PARAMETERS | {"g": float(np.abs(acceleration).sum())}
        self.u = np.array([*SPEED, 0.0])
        self.acceleration = acceleration

    def __call__(self, t):
        s = np.asarray(t)[:, None]
        places = START + SPEED * s + 0.5 * self.acceleration * s**2
        return np.hstack([places, np.zeros((len(s), 2))])


class Aimed(Scene):
    """A scene whose thing is accelerated in both directions."""

    def rate(self, motion, end):
        """The greatest rate of the distance up to an instant, m/s."""
        return float(np.abs(SPEED).sum() + np.abs(motion.acceleration).sum() * end)


def fmu_trial(shape, seed, target="fmu2"):
    """Throw by a unit in one communication step; return what is wrong, or None."""
    import fmpy

    rng = np.random.default_rng([seed, 73])
    scene, strikes = Aimed("ball", shape, "fixed", "rigid"), 10 ** rng.uniform(-1.0, 0.5)
    aim = rng.uniform(-1.0, 1.0, 2) * 0.8 * TARGETS[shape].extent * PARAMETERS["R"]
    motion = Thrown(2.0 * (aim - START - SPEED * strikes) / strikes**2)
    until, logged = float(strikes * 10 ** rng.uniform(0.3, 1.3)), []
    fmpy.simulate_fmu(
        unit(shape, target), fmi_type="CoSimulation", stop_time=until, output_interval=until, debug_logging=True,
        start_values=dict(zip(("ax", "ay"), motion.acceleration.tolist(), strict=True)),
        logger=lambda *call: logged.append(call[-1].decode()),
    )  # fmt: skip
    times = [float(found.group(1)) for line in logged if (found := re.match(r"(\S+) s: .* -> ", line))]
    return wrong_of(scene, motion, until, times)


def fmu_case(seed, count=BATCH):
    """A batch of throws at one shape by a unit."""
    shape, target = SHAPES[seed % len(SHAPES)], ("fmu2", "fmu3")[seed // len(SHAPES) % 2]
    found = []
    for number in range(seed * BATCH, seed * BATCH + count):
        if wrong := fmu_trial(shape, number, target):
            found.append(f"{wrong[0]}: {wrong[1]} [{shape}, {target}, throw {number}]")
    return result(f"{shape}, {target}", count, found)


def result(name, count, found):
    """What a ledger keeps of a batch."""
    return {
        "ok": not found, "reason": "; ".join(found[:2]) or "as in closed form", "model": name, "tried": count,
        "wrong": len(found), "answers": {"as in closed form": count - len(found), "wrong": len(found)},
    }  # fmt: skip
