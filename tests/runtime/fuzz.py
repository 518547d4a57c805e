"""Random and impossible numbers for the runtime's inner functions: ``python -m tests.runtime.fuzz --seconds 60``.

Built with sanitizers (``FSM_DYN_TEST_FLAGS``) the process ends at the first access outside an array and at undefined
arithmetic; one call that takes half a minute ends it too.  What a case is follows from its seed and number alone: the
file given with ``--note`` holds the current one, and ``--only TARGET --case NUMBER`` repeats it.
"""

import argparse
import faulthandler
import itertools
import time
from functools import cache
from pathlib import Path

import numpy as np

from fsm_dyn.runtime.abi import LOG_LENGTH, Counters
from tests.runtime.internals import Arena, internals

SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324, -5e-324, 2.2e-308, 1.7e308, -1.7e308, 1.0, -1.0])
SMALL = np.array([0, 1, 2, 3, 5, 17, 64, 2**31, 2**63, 2**64 - 1], np.uint64)
LONGEST = 30.0  # s, of one call
BATCHED = ["bouncing_ball", "ball_in_corner", "shopping_cart", "four_bar"]


class Numbers:
    """Arrays of one case; ``plain``: numbers for which the result can be judged."""

    def __init__(self, *seed):
        self.random = np.random.default_rng(seed)
        self.style = self.random.choice(["plain", "scales", "grid", "special", "bits"])
        self.plain = self.style == "plain"

    def array(self, *shape):
        random = self.random
        if self.style == "plain":
            return random.normal(size=shape)
        if self.style == "scales":
            return random.normal(size=shape) * 10.0 ** random.uniform(-300, 300, shape)
        if self.style == "grid":  # ties, repeated rows, zeros
            return random.integers(-2, 3, shape).astype(float)
        if self.style == "bits":
            return random.integers(0, 2**64, shape, dtype=np.uint64).view(np.float64).reshape(shape)
        return np.where(random.random(shape) < 0.2, random.choice(SPECIAL, shape), random.normal(size=shape))

    def size(self, most):
        return int(self.random.integers(0, most + 1))

    def number(self):
        return float(self.array(1)[0])


def quintic_roots(runtime, arena, numbers):
    work = np.full(1000, 7.0)
    values = numbers.array(6)
    step = abs(numbers.number())
    size, sixth = runtime.quintic(*values.tolist(), step, work)
    tolerance = abs(numbers.number()) * float(numbers.random.choice([0.0, 1e-12, 1.0]))
    runtime.surely_positive(work, tolerance, sixth)
    waiting = bool(numbers.size(1))
    root = runtime.first_crossing(work, tolerance, waiting)
    assert not 0.0 <= root <= 1.0 or np.isfinite(runtime.back_to_zero(work, tolerance, root)) or not numbers.plain
    if numbers.plain and not waiting and values[0] > 0.0:
        s = np.linspace(0.0, 1.0, 201)
        bernstein = (
            [1.0, 5.0, 10.0, 10.0, 5.0, 1.0] * s[:, None] ** np.arange(6) * (1 - s[:, None]) ** np.arange(5, -1, -1)
        )
        below = s[bernstein @ work[:6] < -tolerance - 1e-9 * size]
        assert not len(below) or root <= below[0] + 1e-9, (root, below[0])


def solve_lcp(runtime, arena, numbers):
    n = numbers.size(12)
    P, q, z = numbers.array(n, n), numbers.array(n), np.zeros(n)
    definite = numbers.plain and n > 0
    if definite:
        P = P @ P.T + 0.1 * np.eye(n)
    solved = runtime.solve_lcp(arena.struct, np.ascontiguousarray(P), q, z)
    if definite:
        assert solved
        w = P @ z + q
        allowed = 1e-7 * np.abs(P).sum() * max(1.0, np.abs(z).max())
        assert z.min() >= -allowed
        assert w.min() >= -allowed
        assert np.abs(z * w).max() <= allowed * max(1.0, np.abs(z).max())


def maximise_margin(runtime, arena, numbers):
    rows, columns = numbers.size(12), numbers.size(5)
    g, slack = numbers.array(rows, columns), numbers.array(rows)
    cap = abs(numbers.number())
    tau, s = runtime.maximise_margin(arena.struct, g, slack, cap)
    assert len(s) == columns
    if numbers.plain and rows and columns:
        assert tau <= cap + 1e-9


def dense_lu(runtime, arena, numbers):
    n = numbers.size(10)
    matrix, right = numbers.array(n, n), numbers.array(n)
    given, solution = matrix.copy(), np.zeros(n)
    lu = runtime.factor(arena.struct, matrix, 1e-10)
    assert 0 <= lu.rank <= n
    assert sorted(lu.get("rows")) == sorted(lu.get("columns")) == list(range(n))
    remainder = runtime.solve(lu, right, solution)
    if numbers.plain and lu.rank == n:
        assert remainder == 0.0
        assert np.abs(given @ solution - right).max(initial=0.0) <= 1e-8 * (1.0 + np.abs(solution).max(initial=0.0))


def eigenvalues(runtime, arena, numbers):
    n = numbers.size(8)
    H = numbers.array(n, n)
    trace, real, imaginary = np.trace(H), np.zeros(n), np.zeros(n)
    if runtime.eigenvalues(H, real, imaginary) and numbers.plain:
        assert abs(real.sum() - trace) <= 1e-8 * max(1.0, np.abs(real).max(initial=0.0)), (real, trace)


def solve_contact_problem(runtime, arena, numbers):
    random = numbers.random
    count = int(random.choice([0, 1, 2, 3, 5, 8], p=[0.05, 0.25, 0.3, 0.25, 0.1, 0.05]))
    m = runtime.allocate_problem(arena.struct, count)
    n, friction = 0, count <= 3
    for k in range(count):
        kind = random.choice(["gap", "frictional", "spatial", "slot", "dry"]) if friction else "gap"
        normal, tangent = -1, -1
        if kind != "dry":
            normal, n = n, n + 1
        if kind != "gap":
            tangent, n = n, n + (2 if kind == "spatial" else 1)
        slips = kind != "gap" and bool(random.integers(2))
        m.get("normal")[k], m.get("tangent")[k] = normal, tangent
        kinetic = abs(numbers.number())
        m.get("kinetic_friction")[k], m.get("static_friction")[k] = kinetic, kinetic * random.choice([1.0, 1.3])
        m.get("infinite")[k], m.get("bilateral")[k] = random.random() < 0.1, kind == "slot"
        m.get("slipping")[k], m.get("spatial")[k] = slips, kind == "spatial"
        m.get("excluded")[k] = random.choice([-1, -1, 0, 1])
        m.get("lasting")[k] = random.integers(2)
        if slips:
            angle = random.uniform(0.0, 7.0)
            m.get("slip_direction")[k] = np.cos(angle), np.sin(angle)
        choices = ([] if normal < 0 or kind == "slot" else [0]) + (
            [1] if tangent < 0 else [2] if kind == "spatial" and slips else [1, 2] if kind == "spatial"
            else [int(random.choice([2, 3]))] if slips else [1, 2, 3])  # fmt: skip
        for choice in choices:
            m.get("allowed")[k, choice] = 1
            m.get("cost")[k, choice] = random.integers(0, 3)
    J = numbers.array(n, n + 1)
    with np.errstate(all="ignore"):
        K = np.ascontiguousarray(J @ J.T) if random.random() < 0.9 else numbers.array(n, n)
    m.put("contact", np.arange(count))
    m.put("target", numbers.array(n) * random.integers(0, 2, n))
    m.put("floor", np.zeros(n))
    base = numbers.array(n)
    problem = runtime.scale_problem(arena.struct, m, K, base, np.diag(K).copy(), 0.0)
    best, forces, answers = np.zeros(count, np.int64), np.zeros(n), np.zeros(n)
    solution = runtime.struct("contact_solution", choices=best, forces=forces, motions=answers)
    log = runtime.struct("candidate_log", entries=np.zeros(LOG_LENGTH))
    status, verdict = runtime.solve_contact_problem(arena.struct, problem, 1e-9, solution, log)
    assert 0 <= verdict.consistent <= verdict.tried or verdict.tried == 0
    if numbers.plain and status == 0 and verdict.consistent:
        K_forces = K @ forces + base
        assert np.allclose(K_forces, answers, rtol=1e-6, atol=1e-6 * (1.0 + np.abs(K).max(initial=0.0)))


@cache
def saved_states(library):
    """The module that stops runs; the package uses the library under test then."""
    from tests.runtime.runs import use

    use(library)
    from tests.runtime import saved_states

    return saved_states


def restore_state(runtime, arena, numbers):
    """A saved state that was tampered with is refused, or the run goes on from it: neither reads what is not there."""
    saved, random = saved_states(runtime.library._name), numbers.random
    model = str(random.choice(list(saved.MODELS)))
    run = saved.stopped(model, int(random.choice(saved.AFTER_STEPS)))
    words = run.words.copy()
    sealed = random.random() < 0.9
    for _ in range(1 + numbers.size(4)):
        at = int(random.integers(saved.HEADER if sealed else 0, len(words)))
        if random.random() < 0.1:
            cut = int(random.integers(0, 9))
            again = at if random.random() < 0.5 else at + cut
            words = np.concatenate([words[:again], words[2 * at + cut - again :]])
        elif random.random() < 0.5:
            words[at : at + 1] = random.choice(SMALL)
        elif random.random() < 0.5:
            words[at : at + 1] ^= np.uint64(1) << np.uint64(random.integers(64))
        else:
            words[at : at + 1] = numbers.array(1).view(np.uint64)
    words = saved.sealed(words) if sealed and len(words) >= saved.HEADER else words[: random.integers(len(words) + 1)]
    if saved.library.restore(run.handle(), run.executable.online_modes(), saved.DIGEST, words) == 0:
        run.loop.state.counters[Counters.STEPS] = 0
        for _ in range(5):
            if not saved.turn(run.loop, run.handle, None):  # huge numbers are nothing to derive a chart for
                break
    assert saved.library.restore(run.handle(), run.executable.online_modes(), saved.DIGEST, run.words) == 0


@cache
def batches(library):
    """A model's executable and options for runs made by one call, by a function of its name."""
    from tests.runtime.runs import use

    use(library)
    from fsm_dyn.automaton.compilation import compile as compile_model
    from fsm_dyn.run import run as run_batch
    from fsm_dyn.run.loop_state import Workspace
    from fsm_dyn.run.run_options import RunOptions
    from fsm_dyn.run.simulator import Simulator

    class Underived(run_batch._Batch):
        """Runs with the modes that there are: huge numbers are nothing to derive a mode for."""

        def _provides_mode(self, loop):
            return False

    @cache
    def of(model):
        simulator = Simulator(compile_model(model))
        given = simulator.setup(RunOptions(1.0))
        numerics = simulator.numerics(given.numbers, given.vector)
        executable = simulator.take("compiled")
        executable.use(numerics)
        return given, numerics, executable

    def made(model, x, c, rows, steps):
        given, numerics, executable = of(model)
        run_batch.ROWS = rows
        starts = run_batch.Starts(x, c, [given.start.states] * len(x))
        shared = RunOptions(0.3, max_steps=steps).resolved(numerics)
        batch = Underived(executable, starts, given.drive, shared, Workspace())
        while batch.next < len(x):
            yield from batch.advance()

    return of, made


def advance_batch(runtime, arena, numbers):
    """Runs from impossible starts, with little room: each is made or returned once, and no row lies outside."""
    of, made = batches(runtime.library._name)
    model = str(numbers.random.choice(BATCHED))
    start, n = of(model)[0].start, 1 + numbers.size(5)
    x, c = np.tile(start.x, (n, 1)), np.tile(start.context, (n, 1))
    for array in (x, c):
        changed = numbers.random.random(array.shape) < numbers.random.choice([0.0, 0.1, 1.0])
        array[changed] = numbers.array(*array.shape)[changed]
    done = []
    with np.errstate(all="ignore"):
        for part in made(model, x, c, int(numbers.random.choice([16, 64, 4096])), 1 + numbers.size(40)):
            if not hasattr(part, "numbers"):
                done.append(part.number)
                continue
            done += part.numbers
            assert (np.diff(part.begin) >= 0).all()
            assert len(part.t) == len(part.mode) == part.begin[-1]
            assert len(part.records) == part.first_transition[-1]
    assert done == list(range(n))


TARGETS = [
    quintic_roots,
    solve_lcp,
    maximise_margin,
    dense_lu,
    eigenvalues,
    solve_contact_problem,
    restore_state,
    advance_batch,
]


def prepare(targets):
    """Compile the library and stop the runs whose states are saved: what takes long, and is no case."""
    library = internals().library._name
    if restore_state in targets:
        saved = saved_states(library)
        for model in saved.MODELS:
            for steps in saved.AFTER_STEPS:
                saved.stopped(model, steps)
    if advance_batch in targets:
        for model in BATCHED:
            batches(library)[0](model)


def run(targets, cases, seed, end, note):
    """Run cases in turn until the time ``end`` of the monotonic clock; return how many."""
    runtime, arena = internals(), Arena()
    done, watched = 0, 0.0
    with Path(note).open("w") as noted:
        for case in cases:
            for target in targets:
                now = time.monotonic()
                if now > end:
                    return done
                if now > watched + 1.0:
                    faulthandler.dump_traceback_later(LONGEST, exit=True)
                    watched = now
                noted.seek(0)
                noted.write(f"--seed {seed} --only {target.__name__} --case {case}".ljust(80))
                noted.flush()
                arena.top[:] = 0
                target(runtime, arena, Numbers(seed, TARGETS.index(target), case))
                assert not arena.top[4], "the arena was too small"
                done += 1
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", choices=["", *(target.__name__ for target in TARGETS)])
    parser.add_argument("--case", type=int, default=-1)
    parser.add_argument("--note", default="/dev/null")
    given = parser.parse_args()
    targets = [target for target in TARGETS if given.only in ("", target.__name__)]
    cases = itertools.count() if given.case < 0 else [given.case]
    prepare(targets)
    print(run(targets, cases, given.seed, time.monotonic() + given.seconds, given.note), "cases")


if __name__ == "__main__":
    main()
