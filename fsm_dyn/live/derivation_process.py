"""Derivation process: makes kernels for modes reached by a live run and missing in its graph.

The watchdog process starts it as ``python -m fsm_dyn.live.derivation_process``, at a lower priority.  It reads the
modes reached by the run from shared memory and sends their machine code through a pipe. When idle, it prepares the
modes one guard away from the present one.  It ends when its standard input closes, with the watchdog process.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from fsm_dyn.automaton import storage
from fsm_dyn.automaton.hybrid_automaton import Automaton, successors
from fsm_dyn.automaton.initial_values import model_start
from fsm_dyn.core.arrays import Floats
from fsm_dyn.live import tick as tick_data
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.tick import FIXED
from fsm_dyn.programs.kernels import machine_code
from fsm_dyn.run.executable import compiled_together
from fsm_dyn.run.online import own_programs
from fsm_dyn.runtime.abi import LiveHeader, TickState

INTERVAL: Final = 0.02  # s between polls of the events
MOST_AHEAD: Final = 256  # modes prepared but not reached
_MODE: Final = FIXED.index("mode")

States = tuple[int, ...]


def message(automaton: Automaton, states: States, home: tuple[Floats, Floats]) -> bytes | None:
    """Return the message with a mode's machine code: a line of JSON, object code; None if it stays online."""
    programs = own_programs(automaton, states, home)
    if programs is None:
        return None
    parts = [machine_code(part, level) for part, level in compiled_together(programs)]
    head = {"states": list(states), "parts": [[len(code), names] for code, names in parts]}
    return b"".join([json.dumps(head).encode(), b"\n", *(code for code, _ in parts)])


class Deriver:
    """Derivation of modes reached by a live run and missing in its graph.

    ``states``: contact states of the modes at the start of the run, by their numbers; ``pipe``: descriptor to write
    machine code to.
    """

    def __init__(self, automaton: Automaton, block: tick_data.SharedBlock, states: list[States], pipe: int) -> None:
        self._automaton, self._block, self._pipe = automaton, block, pipe
        begin = model_start(automaton)
        self._home = begin.x, begin.context
        self._numbered = list(states)
        self._events_at = 0
        self._made: dict[States, bytes | None] = {}
        self._explored: set[States] = set()  # modes with all successors made
        self._wanted: deque[States] = deque()
        self._met: set[States] = {mode.states for mode in automaton.modes}
        self._meet(states)

    def run(self) -> None:
        """Derive the requested modes one after the other, until the process is ended."""
        while True:
            self._listen()
            if self._wanted:
                self._send(self._make(self._wanted.popleft()))
            elif (ahead := next(self._ahead(), None)) is not None:
                self._make(ahead)
            else:
                time.sleep(INTERVAL)

    def _meet(self, found: list[States]) -> None:
        for states in found:
            if states not in self._met:
                self._met.add(states)
                self._wanted.append(states)

    def _listen(self) -> None:
        """Read from the events which modes were reached, and their numbers."""
        block = self._block
        found, self._events_at = tick_data.take_texts(block.events, block.header, LiveHeader.EVENTS, self._events_at)
        for event in found:
            if event.get("event") == "mode_added":
                more = [tuple(states) for states in event["states"]]
                self._numbered += more
                self._meet(more)
            elif event.get("event") == "command_done" and event["command"]["do"] == "reset":
                self._numbered = list(dict.fromkeys(self._numbered))

    def _make(self, states: States) -> bytes | None:
        if states not in self._made:
            self._made[states] = message(self._automaton, states, self._home)
        return self._made[states]

    def _send(self, data: bytes | None) -> None:
        while data:
            data = data[os.write(self._pipe, data) :]

    def _ahead(self) -> Iterator[States]:
        """Yield underived modes one guard away from the present one."""
        at = max(0, int(self._block.header[LiveHeader.ROWS]) - 1)
        rows, _, _ = tick_data.take_rows(self._block.rows, self._block.header, LiveHeader.ROWS, at)
        number = int(rows[-1, _MODE]) if len(rows) else -1
        if not 0 <= number < len(self._numbered) or len(self._made) >= MOST_AHEAD + len(self._met):
            return
        present = self._numbered[number]
        if present in self._explored:
            return
        for states in successors(self._automaton, present):
            if states not in self._made and self._automaton.find(states) < 0:
                yield states
        self._explored.add(present)


def end_with_owner() -> None:
    """End this process at once when its standard input closes."""
    with contextlib.suppress(OSError):
        while os.read(0, 1):
            pass
    os._exit(0)


def main() -> None:
    """Run the derivation process; its argument is the length of settings and automaton on standard input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the session handles Ctrl-C and ends all processes in order
    given: dict[str, Any] = json.loads(sys.stdin.buffer.read(int(sys.argv[1])))
    threading.Thread(target=end_with_owner, daemon=True).start()
    settings = LiveSettings.of_data(given["settings"])
    theirs, ours = settings.kernels
    os.close(theirs)
    block = tick_data.SharedBlock.open(tick_data.BlockLayout(settings.row, settings.record), settings.memory)
    while block.header[LiveHeader.TICK_STATE] == TickState.STARTING:  # the tick process needs the processor
        time.sleep(INTERVAL)
    automaton = storage.from_data(given["graph"])
    with contextlib.suppress(BrokenPipeError):  # the tick process has ended
        Deriver(automaton, block, list(settings.states), ours).run()


if __name__ == "__main__":
    main()
