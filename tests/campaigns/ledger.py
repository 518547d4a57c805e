"""The trials and how they went: a file of JSON lines that is only ever appended to.

A case is known by a digest of its campaign, its seed and the version of everything its result follows from, so that a
campaign goes on where it was left, and begins anew where a source has changed.
"""

import hashlib
import json
import os
import re
from functools import cache
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
SOURCES = (
    "fsm_dyn/**/*.py",
    "fsm_dyn/runtime/*.[ch]",
    "yaml_models/*.yaml",
    "docs/cookbook/*.yaml",
    "tests/unit/language/models/*.yaml",
    "tests/campaigns/*.py",
    "tests/physics/*.py",
)
OF_RUNS = ("ramps", "laws", "agreement")  # first words of the campaigns whose cases are runs and nothing else
NOT_OF_RUNS = (  # what such a case does not load
    *("analysis", "cli", "devices", "exports", "live", "passivity", "plot", "viewer", "__main__.py"),
    "tests/campaigns/test_", "tests/physics/test_",
)  # fmt: skip
DIGITS = 16


def version(campaign=""):
    """A digest of the sources that cases of a campaign follow from: of the package, the models and the cases."""
    return _version(re.split("[ ,]", campaign)[0] in OF_RUNS)


@cache
def _version(of_runs):
    digest = hashlib.sha256(np.__version__.encode())
    for path in sorted(path for pattern in SOURCES for path in ROOT.glob(pattern)):
        name = path.relative_to(ROOT).as_posix()
        if of_runs and name.removeprefix("fsm_dyn/").startswith(NOT_OF_RUNS):
            continue
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:DIGITS]


def key(campaign, seed, sources=None):
    """The name of a case."""
    return hashlib.sha256(f"{campaign} {seed} {sources or version(campaign)}".encode()).hexdigest()[:DIGITS]


class Ledger:
    """The results in one file.

    Parameters
    ----------
    path : Path
        Made with the first entry.
    """

    def __init__(self, path):
        self.path = Path(path)
        self.entries = list(self._read())
        self._known = {entry["key"] for entry in self.entries}

    def _read(self):
        if not self.path.exists():
            return
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:  # the line that was being written when the machine stopped
                continue
            if isinstance(entry, dict) and {"key", "campaign", "seed", "version", "ok"} <= set(entry):
                yield entry

    def __contains__(self, case):
        return case in self._known

    def add(self, campaign, seed, result):
        """Append the result of a case, on disk before this returns."""
        entry = {"key": key(campaign, seed), "campaign": campaign, "seed": seed, "version": version(campaign), **result}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - 1, 0))
            torn = file.read(1) not in (b"", b"\n")
            file.write(b"\n" * torn + json.dumps(entry).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.entries.append(entry)
        self._known.add(entry["key"])

    def of(self, campaign, sources=None):
        """The entries of a campaign that hold for these sources, by default the present ones."""
        return [e for e in self.entries if e["campaign"] == campaign and e["version"] == (sources or version(campaign))]
