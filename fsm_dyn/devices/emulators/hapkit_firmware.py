"""State machine of the paddle's firmware: the force shown, and the packets sent.

The same as ``hapkit_board`` in ``firmware/hapkit/hapkit_protocol.h``; a test compares them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from fsm_dyn.devices import hapkit_packets as hf

WORD: Final = 1 << 32  # its clock begins anew after so many microseconds
HALF_WORD: Final = 1 << 16


@dataclass
class Board:
    """State of the firmware; units as in the packets: µm, nm, µN, µs.

    After its start, and after its watchdog has removed the force, it shows no force before it has received one of zero.
    """

    radius: int
    resolution: int
    most: int
    watchdog: int
    force: int = 0
    let_go: bool = True
    limited: bool = False
    talks: bool = False
    wants_zero: bool = False
    echo: int = 0
    sequence: int = 0
    last: int = 0
    reader: hf.PacketReader = field(default_factory=hf.PacketReader)

    def take(self, data: bytes, now: int) -> bytes:
        """Carry out the packets that end in these bytes; return the answers."""
        answers = b""
        for body in self.reader.feed(data):
            answers += self._obey(body, now)
        return answers

    def _obey(self, body: hf.Body, now: int) -> bytes:
        match body:
            case hf.HelloBody():
                self.talks = True
                return hf.encode_packet(
                    hf.IdentityBody(hf.VERSION, self.radius, self.resolution, self.most, self.watchdog)
                )
            case hf.ZeroBody():
                self.wants_zero = True
            case hf.ForceBody():
                self.echo, self.last = body.sequence, now
                force = max(-self.most, min(self.most, body.force))
                self.limited = force != body.force
                self.let_go = self.let_go and force != 0
                self.force = 0 if self.let_go else force
        return b""

    def watch(self, now: int) -> None:
        """Remove the force when none was received in time; called in every cycle, after the packets received."""
        if self.watchdog and not self.let_go and (now - self.last) % WORD > self.watchdog:
            self.force, self.let_go = 0, True

    def sample(self, now: int, counts: int, velocity: int) -> bytes:
        """Return a sample as a packet."""
        self.sequence = (self.sequence + 1) % HALF_WORD
        state = hf.LET_GO * self.let_go | hf.LIMITED * self.limited
        return hf.encode_packet(
            hf.SampleBody(
                self.sequence, now % WORD, counts, velocity, self.echo, self.force, state, self.reader.dropped % 256
            )
        )
