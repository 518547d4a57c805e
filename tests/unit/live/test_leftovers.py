"""Whatever ends a live run, and when: no process, no file and no memory is left behind."""

import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pytest

from fsm_dyn.live.launch import prepare
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.session import LiveSession
from tests.marked import PATIENT, Marked

HANDS = {
    "latch": {"axes": 1, "motion": [[0, 0.09, 0.6, 0.0]], "stop": "watchdog"},
    "virtual_wall": {"axes": 2, "motion": [[1, 0.03, 1.1, 3.0]], "stop": "watchdog"},
    "bouncing_ball": {"axes": 1, "stop": "watchdog"},
}
OWNER = """
import os, signal, sys, time, fsm_dyn
from fsm_dyn.live.session import LiveSession, LiveSettings
session = LiveSession.start(fsm_dyn.compile("MODEL"), "scripted", {"axes": AXES, "stop": "watchdog"},
    settings=LiveSettings(realtime_privileges=False, watchdog_timeout=20.0))
session.wait_for_ticks(100)
print(session.watchdog_pid, session.tick_pid, flush=True)
time.sleep(3600)
"""


MODELS = [("virtual_wall", "2"), ("latch_door", "1")]  # the latter with a deriver


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
    settings = LiveSettings(paced=False, realtime_privileges=False, watchdog_timeout=20.0)
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
    assert reports["latch"]["watchdog_action"] == "found the tick process dead"
    assert reports["virtual_wall"]["fault"] == reports["bouncing_ball"]["fault"] == ""


def children(pid):
    found = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found += file.read().split()
    return found


def interrupt(process, starts, waits):
    """Send Ctrl-C after each of the waits, the first counted from the start of the program, or of its guard."""
    while starts == "guard" and not children(process.pid) and process.poll() is None:
        time.sleep(0.001)
    for wait in waits:
        time.sleep(wait)
        process.send_signal(signal.SIGINT)


# when: after the start of the program, or of its guard; the second and third times right after the one before
INSTANTS = [
    ("program", 0.2), ("program", 1.1, 0.02), ("program", 2.5, 0.1), ("program", 4.5),
    ("guard", 0.0, 0.0), ("guard", 0.03, 0.2, 0.01), ("guard", 0.8, 0.05), ("guard", 2.5, 0.001, 0.3),
]  # fmt: skip


OTHERS = {
    "view": ("latch", "--no-browser"),
    "device": ("virtual_wall", "--driver", "hapkit", "--emulate", "--no-browser"),
    "study": ("latch", "--vary", "preload=5..15mm:4000", "--until", "60", "--jobs", "2"),
    "compile": ("piano_action", "--jobs", "2"),
}


@pytest.mark.parametrize("program", OTHERS)
def test_ctrl_c_ends_all_that_other_commands_have_started(marked, program):
    """Servers, emulators, the processes of a study or of a derivation: right after the first is there, and later."""
    if program == "compile":
        marked.environment["FSM_DYN_CACHE"] = str(marked.folder.parent / "cache")
    runs = [(marked.start("-m", "fsm_dyn", program, *OTHERS[program]), waits) for waits in ((0.0,), (1.5, 0.05))]
    threads = [threading.Thread(target=interrupt, args=(process, "guard", waits)) for process, waits in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for process, waits in runs:
        _, complaints = process.communicate(timeout=PATIENT)
        late = (-signal.SIGINT,) * (len(waits) > 1)  # the last may come when the interpreter itself ends
        assert process.returncode in (0, 130, *late), complaints
        assert "Traceback" not in complaints
        assert "Exception ignored" not in complaints
    assert marked.all_gone()
    assert os.listdir(marked.folder) == []


STUDY = """
import itertools, multiprocessing, signal, sys, fsm_dyn
from fsm_dyn.analysis.study import study
from fsm_dyn.core.interrupts import asked_to_end

sys.unraisablehook = lambda _: None  # where Python cannot pass an exception on, the flag does

def calls(at):
    count, number, interrupted, raised = itertools.count(1), 0, False, False
    def called(frame, event, argument):
        nonlocal number, raised
        number = next(count)
        if not raised and (number in at or event == "return" and frame.f_code.co_name in at):
            raised = True
            signal.raise_signal(signal.SIGINT)
    sys.setprofile(called)
    try:
        with asked_to_end() as asked, asked.at_once():
            study(graph, {"e": [0.1 + 0.05 * k for k in range(15)]}, until=0.5, jobs=2)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        sys.setprofile(None)
    assert interrupted == raised, at  # how often results are looked for differs from run to run
    for process in multiprocessing.active_children():
        process.join(20.0)
    assert not multiprocessing.active_children(), at
    return number, raised

if __name__ == "__main__":
    graph = fsm_dyn.compile("bouncing_ball")
    calls(set())
    total, _ = calls(set())
    assert sum(calls({int(part * total)})[1] for part in (0.3, 0.5, 0.8)) > 0
    assert all(calls({name})[1] for name in ("submit", "result"))
    print("ended")
"""


def test_ctrl_c_between_any_two_calls_of_a_study_leaves_no_process(marked):
    process = marked.start("-c", STUDY)
    told, complaints = process.communicate(timeout=PATIENT)
    assert told == "ended\n", complaints
    assert marked.all_gone()
    assert os.listdir(marked.folder) == []


def test_a_study_whose_process_is_killed_fails_by_name_and_one_that_is_killed_ends_its_processes(marked):
    command = ("-m", "fsm_dyn", "study", *OTHERS["study"])
    for victims, code in ((slice(0, 1), 1), (slice(0, 0), -signal.SIGKILL)):
        process = marked.start(*command)
        until = time.monotonic() + PATIENT
        while len(workers := marked.running("multiprocessing.spawn")) < 2:
            assert time.monotonic() < until
            time.sleep(0.05)
        for pid in workers[victims] or [process.pid]:
            os.kill(pid, signal.SIGKILL)
        _, complaints = process.communicate(timeout=PATIENT)
        assert process.returncode == code
        assert code < 0 or "failed: a process of the study was ended" in complaints
        assert marked.all_gone()


@pytest.mark.parametrize(("cache", "model"), [("kept", "latch"), ("cold", "latch"), ("kept", "latch_door")])
def test_ctrl_c_at_any_time_leaves_nothing(marked, cache, model):
    """While the package is imported or machine code is made, processes start, run or end; also time and again.

    All programs at once overload the processors, which spreads the instants too.
    """
    instants = INSTANTS if cache == "kept" else INSTANTS[1:4]
    if cache == "cold":
        marked.environment["FSM_DYN_CACHE"] = str(marked.folder.parent / "cache")
    command = ("-m", "fsm_dyn", "live", model, "--no-pacing")
    runs = [(marked.start(*command), starts, waits) for starts, *waits in instants]
    threads = [threading.Thread(target=interrupt, args=run) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for process, starts, _ in runs:
        told, complaints = process.communicate(timeout=PATIENT)
        assert "Exception ignored" not in complaints
        assert starts == "program" or "ticks, " in told, complaints  # it ended in order, however often it was asked
    assert marked.all_gone()
    assert os.listdir(marked.folder) == []


def test_ctrl_c_between_any_two_calls_of_a_start_leaves_nothing(marked, held, monkeypatch):
    """If Ctrl-C raises an exception, as in a script: nothing was started, or it has ended when caught."""
    monkeypatch.setattr(tempfile, "tempdir", str(marked.folder))
    monkeypatch.setenv(*marked.mark.split("="))
    ready = prepare(
        held("latch"),
        "scripted",
        HANDS["latch"],
        settings=LiveSettings(realtime_privileges=False, watchdog_timeout=20.0),
    )
    counted = 0
    chosen = random.Random(1)
    for part in [None, 0.02, 0.1, 0.3, 0.45, 0.7]:
        at = set() if part is None else {int(part * counted), int(part * counted) + chosen.randrange(1, 300)}
        count = itertools.count(1)

        def called(frame, event, argument, at=at, count=count):
            nonlocal number
            number = next(count)
            if number in at:
                signal.raise_signal(signal.SIGINT)

        number = 0
        interrupted = False
        sys.setprofile(called)
        try:
            LiveSession(ready).close()  # no other process holds it
        except KeyboardInterrupt:
            interrupted = True
        finally:
            sys.setprofile(None)
        counted = counted or number
        assert interrupted == (part is not None)
        assert marked.all_gone()
        assert os.listdir(marked.folder) == []


@pytest.mark.parametrize(("model", "axes"), MODELS)
def test_killed_outright_all_three_leave_nothing(marked, model, axes):
    """Memory is anonymous, the automaton went through a pipe, and a deriver ends when its own closes."""
    owner = marked.start("-c", OWNER.replace("MODEL", model).replace("AXES", axes))
    line = owner.stdout.readline()
    assert line, owner.stderr.read()
    for pid in [owner.pid, *map(int, line.split())]:
        os.kill(pid, signal.SIGKILL)
    assert marked.all_gone()
    assert os.listdir(marked.folder) == []


@pytest.mark.parametrize(("model", "axes"), MODELS)
def test_killed_while_it_starts_the_rest_ends_by_itself(marked, model, axes):
    """The owner dies as soon as the guard is there, the tick process perhaps not yet."""
    program = OWNER.replace("MODEL", model).replace("AXES", axes)
    owner = marked.start("-c", program.replace("session.wait_for_ticks(100)", ""))
    assert owner.stdout.readline(), owner.stderr.read()
    owner.kill()
    assert marked.all_gone()
    assert os.listdir(marked.folder) == []


UNWILLING = """
from fsm_dyn.live.driver_protocol import DeviceSpec

class Driver:
    def __init__(self, options, transport=None):
        raise OSError("not today")

    describe = classmethod(lambda cls, options: DeviceSpec("unwilling", 1))
    open_transport = classmethod(lambda cls, options: None)
"""


def test_a_tick_process_that_cannot_start_is_reported(marked, held, monkeypatch, tmp_path):
    """Nothing of it stays, and the owner learns why."""
    (tmp_path / "unwilling.py").write_text(UNWILLING)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setattr(tempfile, "tempdir", str(marked.folder))
    session = LiveSession.start(
        held("latch"), "unwilling:Driver", settings=LiveSettings(realtime_privileges=False, watchdog_timeout=20.0)
    )
    assert session.wait(PATIENT)
    report = session.close()
    assert report["ticks"] == 0
    assert "not today" in report["log"]
    assert os.listdir(marked.folder) == []


@pytest.mark.skipif(os.name != "posix", reason="signals are blocked on POSIX only")
def test_ctrl_c_at_the_guard_before_it_can_ignore_it_changes_nothing(held):
    """At once after its process is there, while its interpreter starts: it ended with a traceback."""
    hand = {"axes": 2, "stop": "watchdog"}
    begun = subprocess.Popen

    def interrupted(*arguments, **options):
        process = begun(*arguments, **options)
        os.kill(process.pid, signal.SIGINT)
        return process

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fsm_dyn.live.launch.subprocess.Popen", interrupted)
        session = LiveSession.start(held("virtual_wall"), "scripted", hand)
    with session:
        session.wait_for_ticks(20)
    assert session.close()["watchdog_action"] == ""
