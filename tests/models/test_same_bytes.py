"""The same run gives the same bytes: in any process, from any cache, after any other run, in any thread."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fsm_dyn.language import models

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).parent / "bytes_of_runs.py"
ONLINE = {"piano_action_simple", "latch_door", "escapement_anchor", "box_on_table"}  # modes that runs reach first
STRATEGIES = ("compiled", "auto", "early")
SHARES = 8  # of the models; the first is always run


def digests(cache, seed, runs, after):
    """What the script prints in a process of its own."""
    plan = json.dumps({"runs": runs, "after": after})
    done = subprocess.run(
        [sys.executable, str(SCRIPT), plan],
        env={**os.environ, "FSM_DYN_CACHE": str(cache), "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("share", [pytest.param(k, marks=pytest.mark.long if k else ()) for k in range(SHARES)])
def test_same_run_same_bytes(tmp_path, share):
    names = models.names()[share::SHARES]
    runs = [(name, strategy) for name in names for strategy in (STRATEGIES if name in ONLINE else ("compiled",))]
    first = digests(tmp_path, 1, runs, "nothing")
    again = digests(tmp_path, 2, runs[::-1], "others")
    differing = {run: (first[run], again[run]) for run in first if first[run] != again[run]}
    assert not differing
    assert all(len(found) == 1 for found in first.values())
