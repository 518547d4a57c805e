"""Files of the caches with bytes that were tampered with: what is read is what was kept, or nothing."""

import random
import tempfile
from functools import cache
from pathlib import Path
from unittest import mock

import fsm_dyn
from fsm_dyn.programs import cache as kernels_cache
from fsm_dyn.programs.cache import ObjectCache
from fsm_dyn.simulation.compiled import entry
from tests.campaigns.artefacts import tampered_bytes
from tests.campaigns.judging import batch

KERNELS, STEPPER = 500, 100  # trials of a batch
KEY = "5" * 64


class WrongAnswer(Exception):
    """What was tampered with was believed."""


@cache
def payload():
    """Code as the cache keeps it: here the automaton of a small model, of which every byte counts."""
    from fsm_dyn.automaton import storage

    return storage.to_bytes(fsm_dyn.compile("bouncing_ball").automaton)


def kernels(seed, trials=KERNELS):
    """Files of machine code and automata: a key gives what was kept under it, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        store = ObjectCache(Path(folder) / "kernels")
        if not store.store(KEY, payload()):
            raise OSError("nothing can be kept here")
        path = next(store.directory.iterdir())
        whole = path.read_bytes()

        def trial(number):
            chance = random.Random(f"kernels {seed} {number}")
            content = tampered_bytes(whole[:200], chance) + whole[200:] if number % 2 else tampered_bytes(whole, chance)

            def work():
                path.write_bytes(content)
                if store.load(KEY) not in (None, payload()):
                    raise WrongAnswer

            return work, "", False, f"{number}"

        return batch(seed, map(trial, range(trials)))


def half(x):
    """The function that is compiled, kept and read back."""
    return 0.5 * x


def stepper(seed, trials=STEPPER):
    """Files of the stepper's compiled functions: a call gives the right number, whatever the files hold."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict("os.environ", {kernels_cache.ENVIRONMENT: folder}):
        first = entry(half)
        first(1.0)
        files = {path: path.read_bytes() for path in (Path(folder) / "stepper").rglob("*") if path.is_file()}
        if len(files) < 2:
            raise OSError("nothing can be kept here")
        signature = first.signatures[0]

        def trial(number):
            chance = random.Random(f"stepper {seed} {number}")
            damaged = chance.choice(sorted(files))
            content = tampered_bytes(files[damaged], chance)

            def work():
                for path, data in files.items():
                    path.write_bytes(content if path == damaged else data)
                again = entry(half)
                found = again._cache.load_overload(signature, again.targetctx)
                if found is not None and found.entry_point(3.0) != 1.5:
                    raise WrongAnswer

            return work, "", False, f"{number} {damaged.suffix}"

        return batch(seed, map(trial, range(trials)))
