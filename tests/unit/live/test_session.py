"""Live runs in their processes: behaviour, causes of their end, leftovers.

Nothing here depends on the speed of the machine: ticks are unpaced if time does not matter, and the tests check the
order of events.
"""

import os
import signal
import time

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError, RunError
from fsm_dyn.live import tick as tick_data
from fsm_dyn.live.device_map import DeviceMap, Limits
from fsm_dyn.live.launch import coupled_graph as held_graph
from fsm_dyn.live.launch import merge_parameters
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.recording import read_recording
from fsm_dyn.live.replay import off_line, replay
from fsm_dyn.live.session import LiveSession
from fsm_dyn.live.tick import ADVANCED, INCOMPLETE_COLUMN
from tests.test_architecture import deriving
from tests.unit.live.conftest import MOTIONS

PATIENT = 60.0  # s for short actions on a machine under load


def settings(**changes):
    """Unpaced, without privileges, and with a patient watchdog process unless tested."""
    return LiveSettings(
        **{"paced": False, "realtime_privileges": False, "watchdog_timeout": 20.0, "stall_ticks": 10**6, **changes}
    )


@pytest.fixture
def own_driver(tmp_path, monkeypatch):
    """Return a function to make a driver of its source, in a named module, returning its name for a start."""

    def write(name, source):
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
        monkeypatch.setenv("PYTHONPATH", path)
        return f"{name}:Driver"

    return write


@pytest.fixture
def start(held, motions):
    """Return a function to start a live run; its remaining processes are ended at the end."""
    sessions = []

    def begin(name="virtual_wall", *, motion=None, record=None, options=None, parameters=None, **changes):
        usual, scale = motions[name]
        motion = usual if motion is None else motion
        given = {"axes": 1 + max(item[0] for item in motion), "motion": motion, **(options or {})}
        given.setdefault("stop", "safe_frame" if "wire" in given else "watchdog")
        changes.setdefault("device_map", DeviceMap(scale=scale))
        session = LiveSession.start(
            held(name), "scripted", given, settings=settings(**changes), parameters=parameters, record=record
        )
        sessions.append(session)
        return session

    yield begin
    for session in sessions:
        session.close()
        for pid in (session.watchdog_pid, session.tick_pid):
            assert not exists(pid), "a process was left behind"


def exists(pid):
    """Whether a process runs; a dead one waiting to be collected does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition, what):
    until = time.monotonic() + PATIENT
    while not condition():
        assert time.monotonic() < until, f"{what} did not come"
        time.sleep(0.005)


def frames(wire):
    return [line.split() for line in wire.read_text().splitlines()]


LITTLE = {"piano_action": 10, "latch_door": 3}  # work per tick, for models with frequent unfinished ticks
TICKS = {"piano_action": 1200, "toggle_switch": 1200}


@pytest.mark.parametrize("name", MOTIONS)
def test_ticks_are_the_same_live_offline_and_replayed(start, tmp_path, name):
    """At 1 kHz: live, offline with the recorded inputs, replayed: the same transitions bit for bit.

    All shipped models with a port; modes are embedded on the way, and ticks continue unfinished ones.
    """
    path, ticks = tmp_path / "run.mcap", TICKS.get(name, 3000)
    options = {"turns": [0]} if name == "toggle_switch" else {}
    more = {"work_per_tick": LITTLE[name]} if name in LITTLE else {}
    session = start(name, ticks=ticks, record=path, options=options, **more)
    assert session.wait(PATIENT), session.log()
    told = [event["event"] for event in session.events()]
    report = session.close()
    assert report["ticks"] == ticks, report
    assert report["fault"] == report["failure"] == ""
    recorded = read_recording(path)
    assert recorded.complete
    assert len(recorded.rows) == ticks
    advanced = recorded.rows[recorded.rows[:, ADVANCED] != 0.0]  # a paused tick keeps what the last one left incomplete
    assert report["lagging_ticks"] == (advanced[:, INCOMPLETE_COLUMN] != 0.0).sum()
    assert ("lagging" in told) == (report["lagging_ticks"] > 0)
    assert report["lagging_ticks"] > 0 or name not in LITTLE
    assert ("mode_added" in told) == (name in ("latch_door", "piano_action", "piano_action_simple"))
    again, stepper = replay(recorded)
    assert np.array_equal(again, recorded.records, equal_nan=True)
    state = recorded.columns.places["state"]
    assert np.array_equal(recorded.rows[-1, state], stepper.loop.state.x)

    trajectory = off_line(recorded)
    finished = recorded.rows[recorded.rows[:, INCOMPLETE_COLUMN] == 0.0][-1]
    made = recorded.records[recorded.records[:, 0] <= finished[0]]
    assert [x.time for x in trajectory.transitions] == made[:, 1].tolist()
    assert len(trajectory.transitions) >= 2
    assert np.array_equal(trajectory.rows.x[-1], finished[state])


def test_a_paced_run_keeps_the_time(start):
    """1 kHz by the clock; the benchmark measures the accuracy: here it must never run ahead."""
    session = start("shopping_cart", paced=True, ticks=500)
    assert session.wait(PATIENT), session.log()
    rows, _ = session.rows()
    assert len(rows) == 500
    wall = rows[:, 2]
    assert (wall >= np.arange(500) * 1e-3).all()
    report = session.close()
    assert report["wakeup_latency"]["p50"] <= report["wakeup_latency"]["worst"]
    assert 0.0 < report["execution_time"]["p50"] <= report["execution_time"]["p99.9"]


def test_snapshot_and_transitions_by_name(start):
    session = start(ticks=2000)
    assert session.wait(PATIENT), session.log()
    snapshot = session.snapshot()
    assert snapshot["tick"] == 2000
    assert snapshot["phase"] == "paused"
    assert snapshot["engagement"] == 0.0
    assert snapshot["mode"] in session.modes
    assert set(snapshot["state"]) == {"x", "y", "z", "vx", "vy", "vz"}
    assert set(snapshot["ports"]) == {"handle_1", "handle_2"}
    transitions, following = session.transitions()
    assert following == len(transitions) == snapshot["transitions"]
    assert {x["source"] for x in transitions} <= set(session.modes)


def test_commands_in_their_order(start):
    session = start(limits=Limits(ramp=0.05))
    session.wait_for_ticks(100)
    told = []

    def heard(kind, **wanted):
        told.extend(session.events())
        return any(e["event"] == kind and all(e.get(k) == v for k, v in wanted.items()) for e in told)

    session.send("pause")
    wait_for(lambda: heard("phase", phase="paused"), "the pause")
    wait_for(lambda: session.snapshot()["phase"] == "paused", "the row of it")
    snapshot = session.snapshot()
    assert snapshot["engagement"] == 0.0
    t = snapshot["t"]
    session.send("step", ticks=7)
    wait_for(lambda: session.snapshot()["t"] > t + 6.5e-3, "the steps")
    time.sleep(0.05)
    assert session.snapshot()["t"] == pytest.approx(t + 7e-3, abs=1e-12)
    session.send("set", values={"k": 1e4, "m": 0.3})
    wait_for(lambda: heard("pending_reset", parameters=["m"]), "the word on what waits")
    session.send("speed", value=0.5)
    session.send("input", values={"push": -1.0})
    session.send("fly")
    session.send("speed", value=50.0)
    wait_for(lambda: heard("command_rejected", command={"do": "fly"}), "the refusal")
    wait_for(lambda: heard("command_rejected", command={"do": "speed", "value": 50.0}), "the refusal of the speed")
    done = [e["command"]["do"] for e in told if e["event"] == "command_done"]
    assert done[:3] == ["pause", "step", "set"]
    session.send("reset")
    session.send("run", until="transition")
    wait_for(lambda: heard("phase", phase="running"), "the run")

    def pauses():
        told.extend(session.events())
        return [e.get("phase") for e in told].count("paused")

    wait_for(lambda: pauses() == 2, "the pause after a transition")  # the first was by command
    assert session.snapshot()["transitions"] >= 1
    assert session.snapshot()["inputs"]["push"] == -1.0


def test_a_full_mailbox_is_reported(start):
    session = start(motion=[[0, 0.01, 1.0, 0.0], [1, 0.0, 1.0, 0.0]], options={"fault": "hang", "fault_at": 0.05})
    session.wait_for_ticks(50)

    def send_many():
        for _ in range(100):
            session.send("step")

    with pytest.raises(RunError, match="mailbox"):
        send_many()
    os.kill(session.tick_pid, signal.SIGKILL)


def test_replay_with_commands(start, tmp_path):
    """Parameters, speed, a reset and going back on the way: replayed in their ticks, bit for bit."""
    path = tmp_path / "run.mcap"
    session = start(record=path, limits=Limits(ramp=0.02))
    session.wait_for_ticks(300)
    session.send("set", values={"k": 1e4, "m": 0.3})
    session.send("speed", value=0.25)
    session.wait_for_ticks(900)
    session.send("reset")
    resets = []

    def was_reset():
        resets.extend(e for e in session.events() if e["event"] == "command_done" and e["command"]["do"] == "reset")
        return resets

    wait_for(was_reset, "the reset")  # by its event: unpaced ticks soon leave t = 0 behind
    session.wait_for_ticks(resets[0]["tick"] + 1000)  # of 0.25 ms each
    session.send("scrub", t=0.1)
    session.wait_for_ticks(session.snapshot()["tick"] + 700)
    session.close()
    recorded = read_recording(path)
    again, stepper = replay(recorded)
    assert np.array_equal(again, recorded.records, equal_nan=True)
    assert np.array_equal(recorded.rows[-1, recorded.columns.places["state"]], stepper.loop.state.x)
    back = recorded.rows[1:, 1][np.diff(recorded.rows[:, 1]) < 0.0]
    assert len(back) == 2
    assert back[1] == pytest.approx(0.1, abs=0.011)  # to a mark, of which there is one in ten ticks


@pytest.mark.parametrize(
    ("fault", "words"),
    [("raise", "raised"), ("stall", "no new sample"), ("nan", "not a number")],
)
def test_a_driver_that_fails_is_released(start, tmp_path, fault, words):
    """The force is zero from the faulty tick on, and stays so."""
    wire = tmp_path / "wire"
    session = start(options={"fault": fault, "fault_at": 0.6, "wire": str(wire)}, ticks=900, stall_ticks=20)
    assert session.wait(PATIENT), session.log()
    told = session.events()
    (found,) = [e for e in told if e["event"] == "fault"]
    assert words in found["reason"]
    sent = frames(wire)
    moved = [i for i, frame in enumerate(sent) if frame[0] == "tick" and any(float(f) for f in frame[1:])]
    assert moved, "the hand felt something before"
    assert all(float(f) == 0.0 for frame in sent[moved[-1] + 1 :] if frame[0] == "tick" for f in frame[1:])
    assert sent[-2][0] == "tick"
    assert sent[-1] == ["close"]
    assert moved[-1] < found["tick"] + 1
    if fault != "raise":
        assert session.snapshot()["phase"] == "fault"
        assert session.snapshot()["force"] == [0.0, 0.0]
    report = session.close()
    assert words in report["fault"]
    assert report["phase"] == "fault"


def test_a_run_that_is_ended_opens_the_grip_first(start, tmp_path):
    wire = tmp_path / "wire"
    session = start(options={"wire": str(wire)}, limits=Limits(ramp=0.1))
    session.wait_for_ticks(700)
    report = session.close()
    assert report["phase"] == "paused"
    assert frames(wire)[-1] == ["close"]
    forces = np.array([[float(f) for f in frame[1:]] for frame in frames(wire) if frame[0] == "tick"])
    assert np.abs(forces).max() > 0.5
    assert not forces[-1].any()
    # 2,000 N/s at the most, in ticks of a millisecond: nothing was dropped at once
    assert np.linalg.norm(np.diff(forces, axis=0), axis=1).max() <= 2.0 + 1e-6


def test_a_run_of_so_many_ticks_opens_the_grip_in_the_last_of_them(start, tmp_path):
    wire = tmp_path / "wire"
    session = start(options={"wire": str(wire)}, limits=Limits(ramp=0.1), ticks=800)
    assert session.wait(PATIENT), session.log()
    rows, _ = session.rows()
    grip = rows[:, 12]
    assert len(rows) == 800
    assert (grip[200:-120] == 1.0).all(), "not longer before the end than it takes"
    assert grip[-1] == 0.0
    assert np.abs(np.diff(grip)).max() <= 0.01 + 1e-12
    forces = np.array([[float(f) for f in frame[1:]] for frame in frames(wire) if frame[0] == "tick"])
    assert not forces[-1].any()
    assert np.abs(forces[-130]).max() > 0.1
    assert np.linalg.norm(np.diff(forces, axis=0), axis=1).max() <= 2.0 + 1e-6


def test_a_fault_stays_until_the_operator_clears_it(start):
    session = start(limits=Limits(velocity=0.05))
    wait_for(lambda: (session.snapshot() or {}).get("phase") == "fault", "the fault")
    session.send("run")
    session.send("reset")
    ticks = session.snapshot()["tick"]
    session.wait_for_ticks(ticks + 200)
    assert session.snapshot()["phase"] == "fault"
    session.send("clear")
    wait_for(lambda: session.snapshot()["phase"] == "paused", "the pause")


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL, "hang"])
def test_the_guard_ends_a_tick_process_that_does_not_tick(start, tmp_path, how):
    """In this order: forces of the tick process, its end, the safe packet of the guard, nothing more."""
    wire = tmp_path / "wire"
    options = {"wire": str(wire)} | ({"fault": "hang", "fault_at": 0.5} if how == "hang" else {})
    session = start(options=options, watchdog_timeout=1.0, paced=True, period=2e-3)
    session.wait_for_ticks(200)
    tick_pid = session.tick_pid
    if how != "hang":
        os.kill(tick_pid, how)
    assert session.wait(PATIENT), session.log()
    assert not exists(tick_pid)
    sent = frames(wire)
    assert sent[-1] == ["guard", "0", "0"]
    assert {frame[0] for frame in sent[:-1]} == {"tick"}
    report = session.close()
    assert report["watchdog_action"] == (
        "found the tick process dead" if how == signal.SIGKILL else "ended the tick process"
    )


SLOW = """
import time
from fsm_dyn.devices import scripted

class Driver(scripted.Driver):
    def read(self):
        if self._readings == 150:
            time.sleep(0.06)
        return super().read()
"""


@pytest.mark.parametrize("overrun", ["slow", "stop"])
def test_a_late_tick_slows_down_or_stops(held, motions, own_driver, overrun):
    """Time lost is lost: no two ticks closer than their period, and the device is released, or a fault is reported."""
    hand = {"axes": 1, "motion": motions["latch"][0], "stop": "watchdog", "period": 2e-3}
    how = settings(paced=True, period=2e-3, ticks=300, overrun=overrun)
    with LiveSession.start(held("latch"), own_driver("slow_hand", SLOW), hand, settings=how) as session:
        assert session.wait(PATIENT), session.log()
        rows, _ = session.rows()
    report = session.close()
    assert report["overruns"] >= 1
    wall, began = rows[:, 2], rows[:, 2] - rows[:, 4]  # a row has the time of its wake-up, and its latency
    assert np.diff(wall).max() >= 0.06
    assert np.diff(began).min() >= 2e-3 - 1e-6, "a deadline was caught up with"
    if overrun == "stop":
        assert report["fault"] == "a tick took too long"
        assert not rows[-1, session.columns.places["force"]].any()
    else:
        assert report["fault"] == ""
        late = int(np.diff(wall).argmax()) + 1
        assert rows[late : late + 3, 12].min() < rows[late - 1, 12], "it takes hold anew"


LISTING = """
import sys
from pathlib import Path
from fsm_dyn.devices import scripted

class Driver(scripted.Driver):
    def close(self):
        (Path(__file__).parent / "loaded").write_text(" ".join(sys.modules))
        super().close()
"""


def test_the_tick_process_never_loads_the_derivation(held, motions, own_driver, tmp_path):
    """Measured in it at the end of a run that reached modes, missing ones of the graph among them."""
    hand = {"axes": 1, "motion": motions["piano_action"][0], "stop": "watchdog"}
    with LiveSession.start(
        held("piano_action"), own_driver("listing", LISTING), hand, settings=settings(ticks=1500)
    ) as session:
        assert session.wait(PATIENT), session.log()
        assert session.transitions(0)[0]
    loaded = (tmp_path / "loaded").read_text().split()
    assert "fsm_dyn.live.stepper" in loaded
    assert deriving(loaded) == []


def test_a_report_asked_for_at_once_tells_who_was_killed(start):
    """The end of a process is reported a tenth of a second after it, when its memory is freed."""
    session = start(paced=True)
    session.wait_for_ticks(100)
    os.kill(session.tick_pid, signal.SIGKILL)
    time.sleep(0.01)  # the kernel has begun to end it
    assert session.report()["watchdog_action"] == "found the tick process dead"
    session = start(paced=True, watchdog_timeout=1.0)
    session.wait_for_ticks(100)
    os.kill(session.watchdog_pid, signal.SIGKILL)
    assert session.wait(PATIENT)
    assert session.report()["watchdog_action"] == "was ended itself, by signal 9"
    wait_for(lambda: not exists(session.tick_pid), "the end of the tick process")


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_a_lost_guard_ends_the_run_in_order(start, tmp_path, how):
    """The tick process notices, writes a force of zero, closes the device and ends."""
    wire = tmp_path / "wire"
    session = start(options={"wire": str(wire)}, watchdog_timeout=1.0, paced=True)
    session.wait_for_ticks(200)
    tick_pid = session.tick_pid
    os.kill(session.watchdog_pid, how)
    wait_for(lambda: not exists(tick_pid), "the end of the tick process")
    told = [e for e in session.events() if e["event"] == "fault"]
    assert [e["reason"] for e in told] == ["the watchdog process is gone"]
    if how == signal.SIGSTOP:
        os.kill(session.watchdog_pid, signal.SIGCONT)
    assert session.wait(PATIENT)
    sent = frames(wire)
    assert sent[-2:] == [["tick", "0", "0"], ["close"]]


def test_when_the_owner_dies_the_run_ends_in_order(tmp_path, motions):
    """A session killed outright: guard and tick process end by themselves, and the recording can be read."""
    import subprocess
    import sys

    wire, path = tmp_path / "wire", tmp_path / "run.mcap"
    code = f"""
import os, signal, fsm_dyn
from fsm_dyn.live.session import LiveSession, LiveSettings
session = LiveSession.start(fsm_dyn.compile("virtual_wall"), "scripted",
    {{"axes": 2, "motion": {motions["virtual_wall"][0]}, "wire": {str(wire)!r}}},
    settings=LiveSettings(realtime_privileges=False, watchdog_timeout=20.0), record={str(path)!r})
session.wait_for_ticks(600)
print(session.watchdog_pid, session.tick_pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2, done.stderr
    wait_for(lambda: not any(exists(pid) for pid in pids), "the end of both processes")
    assert frames(wire)[-2:] == [["tick", "0", "0"], ["close"]]
    recorded = read_recording(path)
    assert not recorded.complete
    assert len(recorded.rows) >= 500  # at 1 kHz at most 100 ms are lost
    again, _ = replay(recorded)
    kept = recorded.records[recorded.records[:, 0] <= recorded.rows[-1, 0]]
    assert np.array_equal(again[: len(kept)], kept, equal_nan=True)


def test_a_killed_tick_process_costs_no_row(start, tmp_path):
    path = tmp_path / "run.mcap"
    session = start(record=path, paced=True)
    session.wait_for_ticks(400)
    os.kill(session.tick_pid, signal.SIGKILL)
    assert session.wait(PATIENT)
    report = session.close()
    recorded = read_recording(path)
    assert len(recorded.rows) == report["ticks"] >= 400
    assert recorded.rows[:, 0].tolist() == list(range(1, len(recorded.rows) + 1))


def test_a_recording_is_not_written_over(start, tmp_path):
    path = tmp_path / "run.mcap"
    path.write_text("precious")
    with pytest.raises(InputError, match="cannot record"):
        start(record=path)
    assert path.read_text() == "precious"


def test_the_replay_driver_moves_as_recorded(start, held, tmp_path):
    path = tmp_path / "run.mcap"
    first = start("latch", ticks=2000, record=path)
    assert first.wait(PATIENT)
    first.close()
    with LiveSession.start(held("latch"), "replay", {"file": str(path)}, settings=settings(ticks=2000)) as second:
        assert second.wait(PATIENT), second.log()
        transitions, _ = second.transitions()
    assert [x["time"] for x in transitions] == read_recording(path).records[:, 1].tolist()


def test_nothing_stops_it_so_the_force_is_a_fifth(start):
    session = start(limits=Limits(force=5.0), options={"stop": "none"}, ticks=1500)
    assert session.wait(PATIENT)
    rows, _ = session.rows()
    force = np.linalg.norm(rows[:, session.columns.places["force"]], axis=1)
    assert 0.99 < force.max() <= 1.0 + 1e-12


def test_the_tick_process_never_imports_sympy(start):
    session = start(ticks=-1)
    session.wait_for_ticks(50)
    with open(f"/proc/{session.tick_pid}/maps") as file:
        maps = file.read()
    assert "numpy" in maps
    assert "sympy" not in maps
    assert "matplotlib" not in maps


def test_what_is_no_recording_is_refused(tmp_path):
    path = tmp_path / "run.mcap"
    for content in (b"", b"not an MCAP file at all", b"\x89MCAP0\r\n"):
        path.write_bytes(content)
        with pytest.raises(InputError):
            read_recording(path)
    with pytest.raises(InputError, match="no such file"):
        read_recording(tmp_path / "nothing.mcap")


def test_a_graph_keeps_the_parameters_it_was_compiled_with():
    graph = fsm_dyn.compile("virtual_wall", {"m": 0.7})
    given = merge_parameters(graph, {"k": 3e4})
    assert given == {"m": 0.7, "k": 3e4}
    both = held_graph(graph, given).values
    assert (both["m"], both["k"]) == (0.7, 3e4)


def test_no_driver_of_that_name(held):
    with pytest.raises(InputError, match="no driver"):
        LiveSession.start(held("latch"), "telepathy")


def test_modes_keep_their_numbers_where_the_ring_lost_events(start, monkeypatch):
    """A mode whose event is lost has no name; those after it have theirs."""
    with start("latch_door", ticks=20) as run:
        assert run.wait(60.0)
        known = run.modes
        added = {"event": "mode_added", "first": len(known) + 1, "modes": ["late"], "states": [[1]]}
        monkeypatch.setattr(tick_data, "take_texts", lambda *_: ([added], run._events_at + 1))
        run._events_at -= 1
        run.events()
        assert run.modes == (*known, f"mode {len(known)}", "late")
        assert run.states[-2:] == ((), (1,))
