"""Ledgers: a killed study continues to the same bytes, a finished one runs nothing, two do not mix."""

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.analysis import study_runs
from fsm_dyn.analysis.study_runs import Ledger, study_settings
from fsm_dyn.core.errors import InputError, RunError
from fsm_dyn.language.loader import load
from fsm_dyn.language.models import find
from fsm_dyn.runtime import library

ROOT = Path(__file__).parents[3]

VARY = {"e": np.linspace(0.2, 0.9, 40).tolist(), "m": ["1 kg", "2 kg"]}


@pytest.fixture(scope="module")
def ball():
    return bouncing_ball()


def bouncing_ball():
    """Return a ball with requirements to bounce and not to rise far."""
    text = find("bouncing_ball").read_text(encoding="utf-8")
    claims = "requirements:\n  bounces: count(ground closes) >= 1\n  low: final(y) < 10 cm\n"
    return fsm_dyn.compile(load("bouncing_ball", text=text + claims))


def rows(found):
    """Return all results of a study, bit for bit."""
    return [
        (row.values, row.outcome, row.end.hex(), row.modes, row.transitions, row.final, row.verdicts, row.margins,
         {name: curve.tobytes() for name, curve in row.curves.items()})
        for row in found.rows
    ]  # fmt: skip


def runs_made(monkeypatch):
    made = []
    batch = study_runs.run_batch
    monkeypatch.setattr(study_runs, "run_batch", lambda shared, cases: made.append(len(cases)) or batch(shared, cases))
    return made


KILLED = """
import os, signal, sys
import numpy as np
import fsm_dyn
from tests.unit.analysis.test_ledger import bouncing_ball
vary = {"e": np.linspace(0.2, 0.9, 40).tolist(), "m": ["1 kg", "2 kg"]}
def at(done, of):
    if done == 30:
        os.kill(os.getpid(), signal.SIGKILL)
fsm_dyn.study(bouncing_ball(), vary, until=0.5, jobs=1, ledger=sys.argv[1], progress=at)
"""


def test_a_killed_study_continues_to_the_same_bytes(ball, tmp_path, monkeypatch):
    path = tmp_path / "study.sqlite"
    killed = subprocess.run([sys.executable, "-c", KILLED, path], timeout=120, cwd=ROOT)
    assert killed.returncode == -signal.SIGKILL
    made = runs_made(monkeypatch)
    found = fsm_dyn.study(ball, VARY, until=0.5, jobs=1, ledger=path)
    assert 30 <= 80 - sum(made) < 80  # all reported results, and less than everything
    whole = fsm_dyn.study(ball, VARY, until=0.5, jobs=1)
    assert rows(found) == rows(whole)
    made.clear()
    again = fsm_dyn.study(ball, VARY, until=0.5, jobs=1, ledger=path)
    assert made == []
    assert rows(again) == rows(whole)


@pytest.mark.parametrize("other", [{"until": 0.6}, {"initial": {"y": 0.5}}, {"max_step": 0.01}])
def test_another_study_is_refused(ball, tmp_path, other):
    path = tmp_path / "study.sqlite"
    fsm_dyn.study(ball, {"e": [0.5]}, until=0.5, jobs=1, ledger=path)
    with pytest.raises(InputError, match="ledger of another study"):
        fsm_dyn.study(ball, {"e": [0.5]}, **{"until": 0.5, **other}, jobs=1, ledger=path)
    with pytest.raises(InputError, match="ledger of another study"):
        fsm_dyn.study(ball, {"e": [0.6]}, until=0.5, jobs=1, ledger=path)


def test_a_study_does_not_continue_with_another_runtime(ball, tmp_path, monkeypatch):
    path = tmp_path / "study.sqlite"
    fsm_dyn.study(ball, {"e": [0.5]}, until=0.5, jobs=1, ledger=path)
    assert library.SOURCES in study_settings("model", [], {})
    monkeypatch.setattr("fsm_dyn.analysis.study_runs.SOURCES", "0" * 64)
    with pytest.raises(InputError, match=r"ledger of another study[\s\S]*found: other sources of the runtime\n"):
        fsm_dyn.study(ball, {"e": [0.5]}, until=0.5, jobs=1, ledger=path)
    with pytest.raises(InputError, match=r"found: other options, sources of the runtime\n"):
        fsm_dyn.study(ball, {"e": [0.5]}, until=0.6, jobs=1, ledger=path)


def test_what_has_no_digest_and_what_is_no_ledger_is_refused(ball, tmp_path):
    with pytest.raises(InputError, match="options that can be stored"):
        study_settings("model", [], {"inputs": {"push": lambda t: t}})
    (tmp_path / "text").write_text("no database at all, but a text that is longer than the header of one" * 20)
    with pytest.raises(RunError, match="not a database"):
        fsm_dyn.study(ball, {"e": [0.5]}, until=0.5, jobs=1, ledger=tmp_path / "text")
    with sqlite3.connect(tmp_path / "other") as file:
        file.execute("CREATE TABLE study (name TEXT)")
    with pytest.raises(InputError, match="no ledger"):
        fsm_dyn.study(ball, {"e": [0.5]}, until=0.5, jobs=1, ledger=tmp_path / "other")


def test_a_full_disk_keeps_what_was_stored(tmp_path):
    """SQLite is given a largest number of pages; it reports the same as on a full disk."""
    path = tmp_path / "study.sqlite"
    ledger = Ledger(path, "settings", bytes, bytes)
    ledger.add(0, [b"first"])
    ledger._file.execute("PRAGMA max_page_count = 4")
    with pytest.raises(RunError, match=r"full[\s\S]*what was stored stays"):
        ledger.add(1, [b"x" * 4096] * 8)
    ledger.close()
    again = Ledger(path, "settings", bytes, bytes)
    assert list(again.results()) == [b"first"]
    again.close()


def test_two_writers_do_not_mix(tmp_path):
    first, second = (Ledger(tmp_path / "study.sqlite", "settings", bytes, bytes) for _ in range(2))
    first.add(0, [b"one"])
    with pytest.raises(RunError, match="another process"):
        second.add(0, [b"two"])
    assert list(Ledger(tmp_path / "study.sqlite", "settings", bytes, bytes).results()) == [b"one"]
    first.close()
    second.close()


def test_above_ten_thousand_runs_no_curves_are_kept(ball, monkeypatch):
    monkeypatch.setattr("fsm_dyn.analysis.study.MOST_CURVES", 3)
    found = fsm_dyn.study(ball, {"e": [0.5, 0.6, 0.7, 1.5]}, until=0.5, jobs=1)
    assert [dict(row.curves) for row in found.rows] == [{}] * 4
    assert [row.values["e"] for row in found.rows] == [0.5, 0.6, 0.7, 1.5]
    assert found.rows[3].outcome.startswith("failed: these parameters are impossible")
