"""Program of the emulated device behind the library of a maker: memory shared with ``mailbox.h``.

Options are those of :class:`~fsm_dyn.devices.emulators.emulated_device.EmulatedDevice` and ``file``, the memory;
``has_watchdog`` (true), ``uncalibrated``, ``version``, ``error`` fill the fields of that name.
"""

from __future__ import annotations

import math
import mmap
import select
from pathlib import Path

from fsm_dyn.devices.emulators.emulated_device import STEP, CommandChannel, EmulatedDevice, given_options
from fsm_dyn.live.pacing import ask_for_privileges

WORDS = 19  # of 8 bytes
SAMPLES, POSITION, VELOCITY, STATE, FORCES, FORCE, ENABLED, WATCHDOG = 0, 1, 4, 7, 13, 14, 17, 18  # indices of words
WATCHDOG_STEP = 125e-6  # s
BUTTONS = 2  # pressed all the time


class Mailbox:
    """The device's side of the memory; a word is written at once, which ``struct.pack_into`` does not do."""

    def __init__(self, file: str) -> None:
        path = Path(file)
        if not path.exists():
            path.write_bytes(bytes(8 * WORDS))
        with path.open("r+b") as opened:
            memory = memoryview(mmap.mmap(opened.fileno(), 8 * WORDS))
        self._counts, self._numbers = memory.cast("Q"), memory.cast("d")

    def send(self, position, velocity, state) -> None:
        self._counts[SAMPLES] |= 1
        for i in range(3):
            self._numbers[POSITION + i], self._numbers[VELOCITY + i] = position[i], velocity[i]
        for i, value in enumerate(state):
            self._counts[STATE + i] = int(value)
        self._counts[SAMPLES] += 1

    def receive(self):
        """Return the counter of forces, the force, whether it is enabled, and the watchdog in steps."""
        while True:
            count = self._counts[FORCES]
            force = tuple(self._numbers[FORCE : FORCE + 3])
            if count % 2 == 0 and self._counts[FORCES] == count:
                return count, force, bool(self._counts[ENABLED]), self._counts[WATCHDOG]


def main() -> None:
    options = given_options()
    body, memory = EmulatedDevice(options), Mailbox(options["file"])
    fixed = (
        int(options.get("has_watchdog", True)), int(options.get("uncalibrated", False)),
        int(options.get("version", 0)), int(options.get("error", 0)),
    )  # fmt: skip
    commands = {name: do for name, do in body.commands().items() if name != "half"}  # numbers come whole or not at all
    lines = CommandChannel(commands)
    ask_for_privileges()
    taken = memory.receive()[0]
    memory.send(body.position, body.velocity, (BUTTONS, body.plugged, *fixed))
    lines.ready({}, [name for name in commands if name not in ("state", "log")])
    while lines.serve():
        select.select([lines.descriptor], [], [], STEP)
        if body.frozen:  # reads nothing, sends nothing; its watchdog runs
            body.advance()
            continue
        count, force, enabled, watchdog = memory.receive()
        body._watchdog_time, body._watchdog_on = watchdog * WATCHDOG_STEP, watchdog > 0
        if count != taken:
            taken = count
            body.apply_force(force if enabled else (0.0,) * 3)
        elif not enabled and any(body.force):
            body.release("host")
        body.advance()
        if not body.stalled:
            position = (math.nan,) * 3 if body.spoiling.how == "garbage" else body.position
            memory.send(position, body.velocity, (BUTTONS, body.plugged, *fixed))


if __name__ == "__main__":
    main()
