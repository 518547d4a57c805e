"""Whatever happens to a process of a run, or to the disk beneath it: nothing stays, and what was recorded can be read.

A case is a program, one of its processes and an event, at a moment at random.  Whatever it was: the program ends with
an exit code that is named, all processes are gone, no file is left where temporary files are, no shared memory is left,
a recording holds at least what could be read of it before the event, and the next start works.
"""

import contextlib
import ctypes
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.live.recording import read_recording
from fsm_dyn.programs.kernels import cache_directory
from tests.campaigns.ledger import ROOT
from tests.marked import PATIENT, Marked

CLI = ("-m", "fsm_dyn")
PROGRAMS = {  # words of the command line; {} is the folder of the case
    "run": ("run", "piano_action", "--scenario", "forte", "--until", "2", "--save-run", "--out", "{}"),
    "compile": ("compile", "gripper", "--save", "{}/gripper.json"),
    "study": ("study", "piano_action", "--scenario", "forte", "--vary", "let_off=0.5..3mm:9", "--until", "0.3",
              "--jobs", "2", "--out", "{}"),
    "live": ("live", "latch", "--duration", "3", "--record", "{}/x.mcap"),
    "view": ("view", "latch", "--no-browser", "--record", "{}/x.mcap"),
    "device": ("device", "virtual_wall", "--driver", "hapkit", "--emulate", "--duration", "3", "--record", "{}/x.mcap"),
}  # fmt: skip
WORDS = {  # by which the processes of a program are known
    "guard": "live/watchdog.py", "tick process": "fsm_dyn.live.tick_process", "emulator": "fsm_dyn.devices.emulators",
    "worker": "multiprocessing.spawn", "page": "tests.campaigns.faults",
}  # fmt: skip
LIVE = ("command", "guard", "tick process")
PROCESSES = {
    "run": ("command",), "compile": ("command",), "study": ("command", "worker"), "live": LIVE,
    "view": (*LIVE, "page"), "device": (*LIVE, "emulator"),
}  # fmt: skip
SIGNALS = {"killed": signal.SIGKILL, "asked to end": signal.SIGTERM, "Ctrl-C": signal.SIGINT}
STOPPED, FULL, REMOVED, LOCKED, HOMELESS = "stopped", "disk full", "cache removed", "cache read-only", "no home"
ROWS = [
    *((program, process, event) for program, those in PROCESSES.items() for process in those
      for event in (*SIGNALS, STOPPED)),
    *((program, "command", event) for program in PROCESSES for event in (FULL, REMOVED, LOCKED)),
    *((program, "command", HOMELESS) for program in ("run", "live")),
]  # fmt: skip
WITHIN = {"run": 8.0, "compile": 4.0, "study": 15.0, "live": 8.0, "view": 8.0, "device": 8.0}  # s from a start
AFTER = 1.5  # s in which something happens to a process that was just seen
COLD = 300.0  # s of a program that has no cache
WRITABLE = (1, 2)  # capabilities by which the administrator reads and writes whatever a mode says


def case(seed):
    """One event of one process of one program, at a moment that follows from the seed."""
    return fault(*ROWS[37 * seed % len(ROWS)], random.Random(f"fault {seed}"))


def fault(program, process, event, chance):
    """Let it happen, and say what is wrong afterwards."""
    with tempfile.TemporaryDirectory(prefix="fault_") as folder:
        folder = Path(folder)
        for name in ("temporary", "out"):
            (folder / name).mkdir()
        marked, shared = Marked(folder / "temporary"), shared_memory()
        marked.environment["PYTHONPATH"] = str(ROOT)
        if program == "compile" and event != REMOVED:
            marked.environment["FSM_DYN_CACHE"] = str(folder / "cache")  # a cold one: there is more to break off
        try:
            code, happened, complaints = broken_off(marked, folder, program, process, event, chance)
            complaints += [f"processes stay: {left}" for left in [patiently(marked.alive)] if left]
            complaints += [f"files stay: {left}" for left in [os.listdir(folder / "temporary")] if left]
            complaints += [f"memory stays: {left}" for left in [patiently(lambda: orphaned(shared))] if left]
            if event != HOMELESS:
                complaints += next_start(marked, folder)
        finally:
            for pid in marked.alive():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            for path in (folder / "cache", *(folder / "cache").rglob("*")):
                if path.is_dir():
                    path.chmod(0o700)
    return {
        "ok": not complaints, "reason": "; ".join(complaints) or f"exit code {code}", "program": program,
        "process": process, "event": event, "code": code,
        "happened": happened,
    }  # fmt: skip


def broken_off(marked, folder, program, process, event, chance):
    """Run the program with the event; return its exit code, whether it was there yet and still, and complaints."""
    surroundings(marked, folder, event)
    errors, record = folder / "errors", folder / "out" / "x.mcap"
    with errors.open("wb") as told:
        command = marked.start(
            *CLI, *(word.format(folder / "out") for word in PROGRAMS[program]), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=told, preexec_fn=as_anybody, text=False,
        )  # fmt: skip
    if program == "view":
        page(marked, errors, command)
    if process == "command":
        time.sleep(chance.uniform(0.0, WITHIN[program]))
        victims = [command.pid]
    else:
        victims = patiently(lambda: marked.running(WORDS[process]), wanted=True, alive=command)
        time.sleep(AFTER * chance.random() ** 2)
    before = rows_of(record, folder)
    happened = (
        bool(victims)
        and command.poll() is None
        and happen(event, chance.choice(victims or [0]), folder, record, chance)
    )
    if program == "view" and not (process == "command" and event in SIGNALS):
        time.sleep(0.7)
        command.send_signal(signal.SIGINT)  # it is served until then
    try:
        code = command.wait(COLD if event in (HOMELESS, REMOVED, LOCKED) else PATIENT)
    except subprocess.TimeoutExpired:
        return None, happened, ["it does not end"]
    asked = program == "view" or (process == "command" and event in ("Ctrl-C", "asked to end"))
    sent = SIGNALS.get(event) if process == "command" and happened else None
    complaints = said(code, errors.read_text(errors="replace"), asked, sent)
    after = rows_of(record, folder)
    if before is not None and (after is None or not np.array_equal(after[: len(before)], before)):
        complaints.append("rows are lost that could be read before")
    return code, happened, complaints + artefacts(folder / "out")


def as_anybody():
    """Have the modes of files hold for the administrator too."""
    if os.getuid() == 0:
        for number in WRITABLE:
            ctypes.CDLL(None).prctl(24, number, 0, 0, 0)  # PR_CAPBSET_DROP


def surroundings(marked, folder, event):
    """Give a program the cache and the home that belong to the event."""
    if event in (REMOVED, LOCKED):
        shutil.copytree(cache_directory(), folder / "cache")
        marked.environment["FSM_DYN_CACHE"] = str(folder / "cache")
    if event == LOCKED:
        for path in (*(folder / "cache").rglob("*"), folder / "cache"):
            path.chmod(0o500 if path.is_dir() else 0o400)
    if event == HOMELESS:
        marked.environment["HOME"] = "/proc/nobody"
        for name in ("FSM_DYN_CACHE", "XDG_CACHE_HOME"):
            marked.environment.pop(name, None)


def happen(event, victim, folder, record, chance):
    """Let the event happen to a process; tell whether it was still there."""
    try:
        os.kill(victim, 0)
        if event in SIGNALS:
            os.kill(victim, SIGNALS[event])
        elif event == STOPPED:
            os.kill(victim, signal.SIGSTOP)
            time.sleep(chance.uniform(0.01, 1.5))
            os.kill(victim, signal.SIGCONT)
        elif event == FULL:
            size = record.stat().st_size if record.exists() else 0
            room = size + chance.randrange(4096, 300_000)
            resource.prlimit(victim, resource.RLIMIT_FSIZE, (room, room))
        elif event == REMOVED:
            shutil.rmtree(folder / "cache", ignore_errors=True)
    except OSError:
        return False
    return True


def said(code, text, asked, sent):
    """What is wrong with an exit code, and with what was said about it.

    Parameters
    ----------
    asked : bool
        Whether the program was asked to end.
    sent : int or None
        The signal sent to it.
    """
    trace = "Traceback" in text and not (asked and text.rstrip().endswith("KeyboardInterrupt"))
    last = (text.strip().splitlines() or [""])[-1][:120]
    if trace or "Exception ignored" in text:
        return [f"a traceback: {last}"]
    if code < 0:
        return [] if -code == sent else [f"ended by signal {-code}"]
    named = {0: True, 1: "failed: " in text, 2: "error: " in text, 130: asked}
    return [] if named.get(code) else [f"exit code {code} without a word: {last}"]


def rows_of(record, folder):
    """The rows that can be read of a recording now; None where there are none yet."""
    copied = folder / "copy.mcap"
    try:
        shutil.copyfile(record, copied)
        return read_recording(copied).rows
    except (OSError, InputError):
        return None


def artefacts(folder):
    """What was written: whole, or refused by name."""
    complaints = []
    for path in folder.glob("*.json"):
        try:
            fsm_dyn.open_run(path) if path.name.endswith(".run.json") else fsm_dyn.open_graph(path)
        except InputError:
            continue
        except Exception as error:
            complaints.append(f"{path.name} raises {type(error).__name__}")
    return complaints


def next_start(marked, folder):
    """What is wrong with a start after all that, with the same cache."""
    again = ("run", "bouncing_ball", "--until", "0.1", "--csv", "--out", str(folder / "again"))
    process = marked.start(*CLI, *again)
    _, told = process.communicate(timeout=COLD)
    return [] if process.returncode == 0 and not told.count("Traceback") else [f"the next start fails: {told[-200:]}"]


def patiently(look, wanted=False, alive=None):
    """What is found once it is there, if that is wanted, or gone; or at last, or when a process has ended."""
    until = time.monotonic() + PATIENT
    while bool(found := look()) != wanted and time.monotonic() < until:
        if alive is not None and alive.poll() is not None:
            return look()
        time.sleep(0.02)
    return found


def shared_memory():
    """The names of shared memory and semaphores."""
    return set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()


def orphaned(before):
    """Those that are new, and that no process has had for half a second; others may be making theirs just now."""
    new = without_process(shared_memory() - before)
    if new:
        time.sleep(0.5)
        new = without_process(new & shared_memory())
    return sorted(new)


def without_process(new):
    """Those of some names that no process has, by their inodes: semaphores are mapped before they get their names."""
    inodes = {}
    for name in new:
        with contextlib.suppress(OSError):
            inodes[name] = str(os.stat(f"/dev/shm/{name}").st_ino)
    for pid in filter(str.isdigit, os.listdir("/proc")) if inodes else ():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/maps") as file:
            held = {line.split()[4] for line in file if "/dev/shm/" in line}
            inodes = {name: inode for name, inode in inodes.items() if inode not in held}
    return set(inodes)


def page(marked, errors, command):
    """Open the page of a program that shows one, as a process of its own."""
    addresses = patiently(
        lambda: [word for word in errors.read_text(errors="replace").split() if word.startswith("http://")],
        wanted=True, alive=command,
    )  # fmt: skip
    if addresses:
        marked.start("-m", "tests.campaigns.faults", addresses[0], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def look_on(address):
    """Take what a page is sent until it ends."""
    from websockets.sync.client import connect  # the campaign itself has no use for it

    host, token = address.split("/")[2:4]
    with (
        contextlib.suppress(OSError),
        connect(f"ws://{host}/{token}/live", origin=f"http://{host}") as line,
    ):
        for _ in line:
            pass


def table(entries):
    """The table of programs, processes and events, as markdown; *in time* are those of a process that was there."""
    yield "\n| program | process | event | cases | in time | bad | exit codes |\n|---|---|---|--:|--:|--:|---|\n"
    for row in ROWS:
        own = [entry for entry in entries if (entry["program"], entry["process"], entry["event"]) == row]
        if own:
            codes = Counter(str(entry["code"]) for entry in own)
            listed = ", ".join(f"{code} ({count})" for code, count in sorted(codes.items()))
            counts = len(own), sum(entry["happened"] for entry in own), sum(not entry["ok"] for entry in own)
            yield f"| {' | '.join((*row, *map(str, counts)))} | {listed} |\n"


if __name__ == "__main__":
    look_on(sys.argv[1])
