"""Motions in closed form by pieces, with states of contacts and times of events, and a monitor of requirements on them.

Nothing of the package is used: the monitor is written from the table in docs/language.md, "requirements".
"""

import math
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Piece:
    """Polynomials in the time since ``begin``, highest power first, and the states of contacts."""

    begin: float
    end: float
    quantities: dict[str, list[float]]
    states: dict[str, str] = field(default_factory=dict)

    def largest(self, name, sign, until=math.inf):
        """Return the largest value of ``sign`` times a quantity up to a time."""
        end = min(self.end, until) - self.begin
        polynomial = np.poly1d(self.quantities[name])
        turns = [root.real for root in polynomial.deriv().roots if abs(root.imag) < 1e-14 and 0.0 < root.real < end]
        return max(sign * float(polynomial(time)) for time in (0.0, end, *turns))

    def last(self, name):
        return float(np.polyval(self.quantities[name], self.end - self.begin))


@dataclass
class Motion:
    pieces: list[Piece]
    events: dict[str, list[float]]

    @property
    def end(self):
        return self.pieces[-1].end

    def largest(self, name, sign, until=math.inf, during=()):
        """Return the largest value of ``sign`` times a quantity, while contacts are in states; -inf if never."""
        if name.startswith("abs("):
            assert sign > 0
            inner = name[4:-1]
            return max(self.largest(inner, 1.0, until, during), self.largest(inner, -1.0, until, during))
        pieces = (piece for piece in self.pieces if piece.begin <= until and piece.end > piece.begin)
        return max(
            (piece.largest(name, sign, until) for piece in pieces if all(piece.states[c] == s for c, s in during)),
            default=-math.inf,
        )

    def time_in(self, contact, state):
        return sum(piece.end - piece.begin for piece in self.pieces if piece.states[contact] == state)


def judge(motion, claim):
    """Return verdict and margin of a claim: a tuple of its kind, what it is about, and its constants."""
    match claim:
        case ("always below", name, bound, *during):
            return decided(bound - motion.largest(name, 1.0, during=during))
        case ("always above", name, bound, *during):
            return decided(-motion.largest(name, -1.0, during=during) - bound)
        case ("reaches", name, bound, deadline):
            margin = motion.largest(name, 1.0, deadline) - bound
            return undecided(margin) if margin <= 0.0 and motion.end < deadline else decided(margin)
        case ("peak above", name, bound):
            return decided(motion.largest(name, 1.0) - bound)
        case ("final below", name, bound):
            return decided(bound - motion.pieces[-1].last(name))
        case ("always in", contact, state):
            inside = motion.time_in(contact, state)
            outside = motion.end - inside
            return ("violated", -outside) if outside > 0.0 else ("met", inside)
        case ("never twice", event, within):
            return decided(min(np.diff(motion.events[event]), default=math.inf) - within)
        case ("happens", event, deadline):
            times = motion.events[event]
            return (
                undecided() if not times and motion.end < deadline else decided(deadline - (times or [motion.end])[0])
            )
        case ("happens", event):
            times = motion.events[event]
            return decided(motion.end - times[0]) if times else undecided()
        case ("enters", contact, state, deadline):
            times = [piece.begin for piece in motion.pieces if piece.states[contact] == state]
            return (
                undecided() if not times and motion.end < deadline else decided(deadline - (times or [motion.end])[0])
            )
        case ("at most", event, bound):
            return decided(bound - len(motion.events[event]), equal="met")
        case ("more than", event, bound):
            return decided(len(motion.events[event]) - bound)
    raise AssertionError(claim)


def decided(margin, equal="violated"):
    return ("met" if margin > 0.0 else equal if margin == 0.0 else "violated"), margin


def undecided(margin=math.nan):
    return "undecided", margin


def ball(random):
    """Return a ball thrown onto the ground: parameters, initial values, inputs, motion."""
    g, e = random.uniform(2.0, 20.0), random.uniform(0.6, 0.95)
    y, v = random.uniform(0.1, 5.0), random.uniform(-4.0, 4.0)
    initial = {"y": y, "y_dot": v}
    bounces = int(random.integers(0, 9))
    pieces, times, time = [], [], 0.0
    for k in range(bounces + 1):
        flight = (v + math.sqrt(v * v + 2.0 * g * y)) / g
        duration = flight if k < bounces else random.uniform(0.05, 0.95) * flight
        height = [-g / 2.0, v, y]
        pieces.append(
            Piece(time, time + duration, {"y": height, "y_dot": [-g, v], "square": list(np.polymul(height, height))},
                  {"ground": "open"})
        )  # fmt: skip
        time += duration
        if k < bounces:
            times.append(time)
            y, v = 0.0, e * (g * flight - v)
    return {"g": g, "e": e}, initial, {}, Motion(pieces, {"ground closes": times})


def shuttle(random):
    """Return a body that flies back and forth between two stops."""
    length, e = random.uniform(0.1, 2.0), random.uniform(0.5, 1.0)
    x, v = random.uniform(0.05, 0.95) * length, random.choice([-1.0, 1.0]) * random.uniform(0.2, 5.0)
    initial = {"x": x, "x_dot": v}
    impacts = int(random.integers(0, 10))
    pieces, time = [], 0.0
    events = {"left closes": [], "right closes": []}
    for k in range(impacts + 1):
        target = length if v > 0.0 else 0.0
        duration = (target - x) / v * (1.0 if k < impacts else random.uniform(0.05, 0.95))
        quantities = {"x": [v, x], "x_dot": [v], "square": list(np.polymul([v, x], [v, x]))}
        pieces.append(Piece(time, time + duration, quantities, {"left": "open", "right": "open"}))
        time += duration
        if k < impacts:
            events["right closes" if v > 0.0 else "left closes"].append(time)
            x, v = target, -e * v
    return {"length": length, "e": e}, initial, {}, Motion(pieces, events)


def steps(random, force, count):
    """Return times and forces of an input by steps."""
    times = np.cumsum([0.0, *random.uniform(0.1, 0.5, count - 1)]).tolist()
    return times, random.uniform(-force, force, count).tolist()


def pushed(random):
    """Return a free body under a force by steps."""
    times, forces = steps(random, 5.0, 6)
    m, x, v = random.uniform(0.5, 2.0), random.uniform(-1.0, 1.0), random.uniform(-2.0, 2.0)
    initial = {"x": x, "x_dot": v}
    pieces = []
    for begin, end, force in zip(times, [*times[1:], times[-1] + 0.3], forces, strict=True):
        place = [force / m / 2.0, v, x]
        pieces.append(Piece(begin, end, {"x": place, "x_dot": [force / m, v], "push": [force],
                                         "square": list(np.polymul(place, place))}))  # fmt: skip
        x, v = float(np.polyval(place, end - begin)), v + force / m * (end - begin)
    return {"m": m}, initial, {"push": {"steps": list(zip(times, forces, strict=True))}}, Motion(pieces, {})


def rubbing(random):
    """Return a body with dry friction under a force by steps, which sticks and breaks away."""
    while True:
        times, forces = steps(random, 6.0, 6)
        kinetic, m = random.uniform(1.0, 2.0), random.uniform(0.5, 2.0)
        static = kinetic * random.uniform(1.1, 1.5)
        v = random.choice([-1.0, 1.0]) * random.uniform(0.2, 2.0)
        found = _rubbing(times, forces, kinetic, static, m, v)
        if found is not None:
            parameters = {"m": m, "kinetic": kinetic, "static": static}
            return parameters, {"x": 0.0, "x_dot": v}, {"push": {"steps": list(zip(times, forces, strict=True))}}, found


def _rubbing(times, forces, kinetic, static, m, v):
    """Return the motion; None if it turns round, or is too near to a bound for its event times to be exact."""
    x, state, time = 0.0, "slide", 0.0
    pieces, events = [], {"pad sticks": [], "pad slides": []}
    for end, force in zip([*times[1:], times[-1] + 0.3], forces, strict=True):
        if state == "stick" and abs(abs(force) - static) < 1e-3:
            return None
        if state == "stick" and abs(force) > static:
            state, direction = "slide", math.copysign(1.0, force)
            events["pad slides"].append(time)
        elif state == "slide":
            direction = math.copysign(1.0, v)
        if state == "slide":
            a = (force - kinetic * direction) / m
            stop = time - v / a if v * a < 0.0 else math.inf
            if abs(stop - end) < 1e-3:
                return None
            until = min(stop, end)
            place = [a / 2.0, v, x]
            pieces.append(
                Piece(time, until, {"x": place, "x_dot": [a, v], "pad.friction": [kinetic]}, {"pad": "slide"})
            )
            x, v = float(np.polyval(place, until - time)), v + a * (until - time)
            time = until
            if stop < end:
                if abs(force) > static - 1e-3:
                    return None
                v, state = 0.0, "stick"
                events["pad sticks"].append(time)
        if state == "stick":
            pieces.append(Piece(time, end, {"x": [x], "x_dot": [0.0], "pad.friction": [abs(force)]}, {"pad": "stick"}))
            time = end
    return Motion(pieces, events)
