"""Files of the caches with bytes that were tampered with: what is read is what was kept, or nothing."""

import random
import tempfile
from functools import cache
from pathlib import Path

import fsm_dyn
from fsm_dyn.programs.kernels import ObjectCache
from tests.campaigns.artefacts import tampered_bytes
from tests.campaigns.judging import batch

KERNELS = 500  # trials of a batch
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
