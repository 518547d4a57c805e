"""Whatever ends a live run, and when: no process, no file and no memory is left behind."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid

import pytest

from fsm_dyn.live.session import LiveSession, Settings

PATIENT = 90.0  # s
HANDS = {
    "latch": {"axes": 1, "motion": [[0, 0.09, 0.6, 0.0]], "stop": "watchdog"},
    "virtual_wall": {"axes": 2, "motion": [[1, 0.03, 1.1, 3.0]], "stop": "watchdog"},
    "bouncing_ball": {"axes": 1, "stop": "watchdog"},
}
OWNER = """
import os, signal, sys, time, fsm_dyn
from fsm_dyn.live.session import LiveSession, Settings
session = LiveSession.start(fsm_dyn.compile("virtual_wall"), "scripted", {"axes": 2, "stop": "watchdog"},
    settings=Settings(privileges=False, guard_timeout=20.0))
session.wait_for_ticks(100)
print(session.guard_pid, session.tick_pid, flush=True)
time.sleep(3600)
"""


class Marked:
    """Runs programs whose processes, and theirs, carry a mark and have a folder for temporary files of their own."""

    def __init__(self, folder):
        self.mark, self.folder = f"FSM_DYN_TEST={uuid.uuid4()}", folder
        name, value = self.mark.split("=")
        self.environment = {**os.environ, name: value, "TMPDIR": str(folder)}
        self.started = []

    def start(self, *command):
        process = subprocess.Popen(
            [sys.executable, *command], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.started.append(process)
        return process

    def alive(self):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    marked = self.mark.encode() in file.read()
                with open(f"/proc/{pid}/stat") as file:
                    marked = marked and file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
            except OSError:
                continue
            if marked:
                found.append(int(pid))
        return found

    def all_gone(self):
        until = time.monotonic() + PATIENT
        while self.alive():
            assert time.monotonic() < until, f"processes {self.alive()} are left"
            time.sleep(0.02)
        return True


@pytest.fixture
def marked(tmp_path):
    folder = tmp_path / "temporary"
    folder.mkdir()
    runs = Marked(folder)
    yield runs
    for pid in runs.alive():
        os.kill(pid, signal.SIGKILL)
    for process in runs.started:
        process.communicate()


def test_several_live_runs_at_once_do_not_know_of_each_other(held):
    settings = Settings(paced=False, privileges=False, guard_timeout=20.0)
    sessions = {
        name: LiveSession.start(held(name), "scripted", hand, settings=settings) for name, hand in HANDS.items()
    }
    try:
        for name, session in sessions.items():
            session.wait_for_ticks(300)
            assert tuple(session.snapshot()["state"]) == held(name).automaton.terms.layout.x
        sessions["latch"].send("pause")
        until = time.monotonic() + PATIENT
        while sessions["latch"].snapshot()["phase"] != "paused":
            assert time.monotonic() < until
            time.sleep(0.01)
        assert sessions["virtual_wall"].snapshot()["phase"] == "running"
        os.kill(sessions["latch"].tick_pid, signal.SIGKILL)
        assert sessions["latch"].wait(PATIENT)
        at = sessions["virtual_wall"].snapshot()["tick"]
        sessions["virtual_wall"].wait_for_ticks(at + 100)
        assert len({session.tick_pid for session in sessions.values()}) == 3
    finally:
        reports = {name: session.close() for name, session in sessions.items()}
    assert reports["latch"]["guard"] == "found the tick process dead"
    assert reports["virtual_wall"]["fault"] == reports["bouncing_ball"]["fault"] == ""


def test_ctrl_c_at_any_time_leaves_nothing(marked):
    """Also while the package is imported, processes start, or the run ends; a second time right after the first."""
    delays = (0.2, 0.7, 1.2, 2.0, 3.5, 5.0)
    command = ("-m", "fsm_dyn.cli", "live", "latch", "--unpaced")
    begun = [(marked.start(*command), time.monotonic() + delay) for delay in delays]
    for process, at in begun:
        time.sleep(max(0.0, at - time.monotonic()))
        process.send_signal(signal.SIGINT)
        if at == begun[-1][1]:
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
    assert marked.all_gone()
    assert os.listdir(marked.folder) == []


def test_killed_outright_all_three_leave_nothing(marked):
    """Memory is anonymous and the saved automaton was removed when it had been read."""
    owner = marked.start("-c", OWNER)
    line = owner.stdout.readline()
    assert line, owner.stderr.read()
    for pid in [owner.pid, *map(int, line.split())]:
        os.kill(pid, signal.SIGKILL)
    assert marked.all_gone()
    assert os.listdir(marked.folder) == []


def test_killed_while_it_starts_the_rest_ends_by_itself(marked):
    """The owner dies as soon as the guard is there, the tick process perhaps not yet."""
    owner = marked.start("-c", OWNER.replace("session.wait_for_ticks(100)", ""))
    assert owner.stdout.readline(), owner.stderr.read()
    owner.kill()
    assert marked.all_gone()
    assert os.listdir(marked.folder) == []


UNWILLING = """
from fsm_dyn.live.device import Spec

class Driver:
    def __init__(self, options, transport=None):
        raise OSError("not today")

    describe = classmethod(lambda cls, options: Spec("unwilling", 1))
    open_transport = classmethod(lambda cls, options: None)
"""


def test_a_tick_process_that_cannot_start_is_told(marked, held, monkeypatch, tmp_path):
    """Its folder goes, and the owner learns why."""
    (tmp_path / "unwilling.py").write_text(UNWILLING)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setattr(tempfile, "tempdir", str(marked.folder))
    session = LiveSession.start(
        held("latch"), "unwilling:Driver", settings=Settings(privileges=False, guard_timeout=20.0)
    )
    assert session.wait(PATIENT)
    report = session.close()
    assert report["ticks"] == 0
    assert "not today" in report["log"]
    assert os.listdir(marked.folder) == []
