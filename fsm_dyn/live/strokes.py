"""Strokes and rhythms: target positions of an emulated hand over time."""

from __future__ import annotations

import math
from typing import Final

from fsm_dyn.core.records import dataclass

FINGER_STIFFNESS: Final = 300.0  # N/m, of a fingertip pressing some newtons (Hajian and Howe 1997)
FINGER_DAMPING: Final = 3.0  # N s/m
NOTES: Final = 8  # played by an emulated hand on request from the page
REPETITION: Final = 6.7  # a second


@dataclass(frozen=True)
class Stroke:
    """A way from one place to another along half a cosine, at rest at both ends."""

    # begin, end: m or rad
    begin: float
    end: float
    speed: float  # the largest, half-way, m/s or rad/s; above 0

    @property
    def duration(self) -> float:
        """How long it takes, s."""
        return 0.5 * math.pi * abs(self.end - self.begin) / self.speed

    def at(self, t: float) -> tuple[float, float]:
        """Return place and velocity at a time after its beginning (s)."""
        if t >= self.duration:
            return self.end, 0.0
        phase, way = math.pi * max(t, 0.0) / self.duration, self.end - self.begin
        return self.begin + 0.5 * way * (1.0 - math.cos(phase)), 0.5 * way * math.pi / self.duration * math.sin(phase)


@dataclass(frozen=True)
class Rhythm:
    """Notes played by a hand: it presses in the first half of each and lets up in the second."""

    rate: float
    notes: int
    # pressed, lifted: target of the hand at the end of the two halves, m
    pressed: float
    lifted: float
    share: float = 0.35  # share of a note for each of the two strokes, up to a half

    def __post_init__(self) -> None:
        numbers = (self.rate, self.pressed, self.lifted)
        if not all(map(math.isfinite, numbers)) or self.rate <= 0.0 or self.notes < 1 or not 0.0 < self.share <= 0.5:
            raise ValueError("a rhythm has a rate above 0, a note at least, places, and a share of up to 0.5")

    @property
    def duration(self) -> float:
        """How long it takes, s."""
        return self.notes / self.rate

    def at(self, t: float) -> tuple[float, float]:
        """Return place and velocity at a time after its beginning (s)."""
        if not 0.0 <= t < self.duration:
            return self.lifted, 0.0
        phase = (t * self.rate) % 1.0
        down = phase < 0.5
        begin, end = (self.lifted, self.pressed) if down else (self.pressed, self.lifted)
        if begin == end:
            return end, 0.0
        lasts = self.share / self.rate
        stroke = Stroke(begin, end, 0.5 * math.pi * abs(end - begin) / lasts)
        return stroke.at((phase if down else phase - 0.5) / self.rate)
