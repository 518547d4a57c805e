"""Check of geometric proofs, by the automaton's programs and the intervals of mpmath alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, TypeAlias

from mpmath import libmp

from fsm_dyn.automaton.geometric_proofs import (
    ExclusionProof,
    GeometricProofs,
    ProofCondition,
    Weights,
    fastest,
    held_rows,
    weighted_sum,
)
from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError
from fsm_dyn.language.values import coordinate_bounds, named_values
from fsm_dyn.programs.program import Program

# -- Interval arithmetic of mpmath ---------------------------------------------------------------------------
#
# Bounds of each operation of a program, and of its operands given its result. They have 64 bits and are rounded
# outwards by mpmath; nothing of :mod:`fsm_dyn.programs.intervals` is used. An unknown operation has no bounds.

PRECISION: Final = 64  # bits
_ROOM: Final = libmp.from_man_exp(1, -56)  # error bound of inverse functions, rad

Bound: TypeAlias = Any  # a number of mpmath.libmp
Bounds: TypeAlias = "tuple[Bound, Bound]"

NUMBERS: Final[Bounds] = (libmp.fninf, libmp.finf)
NOTHING: Final[Bounds] = (libmp.finf, libmp.fninf)
_ZERO: Final[Bounds] = (libmp.fzero, libmp.fzero)
_HALF_TURN: Final = libmp.mpf_pi(PRECISION, libmp.round_floor)
_QUARTER: Final = libmp.mpf_shift(_HALF_TURN, -1)


def bounds(low: float, high: float) -> Bounds:
    """Return an interval with two floats as its exact ends."""
    return libmp.from_float(low), libmp.from_float(high)


def floats(a: Bounds) -> tuple[float, float]:
    """Return the ends as floats, for messages."""
    return float(libmp.to_float(a[0])), float(libmp.to_float(a[1]))


def is_empty(a: Bounds) -> bool:
    """Whether there is no number in it."""
    return bool(libmp.mpf_gt(*a))


def common(a: Bounds, b: Bounds) -> Bounds:
    """Return the numbers in both."""
    low = a[0] if libmp.mpf_ge(a[0], b[0]) else b[0]
    high = a[1] if libmp.mpf_le(a[1], b[1]) else b[1]
    return low, high


def holds(a: Bounds, number: Bound) -> bool:
    """Whether a number is in it."""
    return bool(libmp.mpf_le(a[0], number) and libmp.mpf_le(number, a[1]))


def result(op: str, operands: Sequence[Bounds], same: bool) -> Bounds:
    """Return bounds of the result of an operation; ``same``: both operands are one value."""
    if same and op == "mul":
        square: Bounds = libmp.mpi_pow_int(operands[0], 2, PRECISION)
        return square
    known = _RESULTS.get(op)
    return NUMBERS if known is None else known(*operands)


def narrowed(op: str, whole: Bounds, operands: Sequence[Bounds], same: bool) -> list[Bounds]:
    """Return bounds of the operands of an operation with a result in ``whole``; wider than they were at times.

    ``same``: both operands are one value.
    """
    if same and op == "mul":
        return [_root_either_sign(whole)] * 2
    known = _OPERANDS.get(op)
    return list(operands) if known is None else known(whole, *operands)


def _low(a: Bounds, b: Bounds) -> Bound:
    return a[0] if libmp.mpf_le(a[0], b[0]) else b[0]


def _high(a: Bounds, b: Bounds) -> Bound:
    return a[1] if libmp.mpf_ge(a[1], b[1]) else b[1]


def _sum(a: Bounds, b: Bounds) -> Bounds:
    found: Bounds = libmp.mpi_add(a, b, PRECISION)
    return found


def _difference(a: Bounds, b: Bounds) -> Bounds:
    found: Bounds = libmp.mpi_sub(a, b, PRECISION)
    return found


def _product(a: Bounds, b: Bounds) -> Bounds:
    if _ZERO in (a, b):  # all values are finite
        return _ZERO
    found: Bounds = libmp.mpi_mul(a, b, PRECISION)
    return found


def _quotient(a: Bounds, b: Bounds) -> Bounds:
    found: Bounds = libmp.mpi_div(a, b, PRECISION)
    return found


def _solution(a: Bounds, b: Bounds) -> Bounds:
    """Return the numbers x with ``b x = a``."""
    if holds(b, libmp.fzero) and holds(a, libmp.fzero):
        return NUMBERS
    return NOTHING if b == _ZERO else _quotient(a, b)


def _sqrt(a: Bounds) -> Bounds:
    part = common(a, (libmp.fzero, libmp.finf))
    if is_empty(part):
        return NUMBERS  # of a branch not taken, else the operand is refused
    found: Bounds = libmp.mpi_sqrt(part, PRECISION)
    return found


def _power(a: Bounds, b: Bounds) -> Bounds:
    if b[0] != b[1] or not libmp.mpf_eq(b[0], libmp.mpf_floor(b[0])) or libmp.mpf_gt(libmp.mpf_abs(b[0]), _SMALL):
        return NUMBERS
    found: Bounds = libmp.mpi_pow_int(a, libmp.to_int(b[0]), PRECISION)
    return found


_SMALL: Final = libmp.from_int(64)


def _root_either_sign(whole: Bounds) -> Bounds:
    part = common(whole, (libmp.fzero, libmp.finf))
    if is_empty(part):
        return NOTHING
    _, high = libmp.mpi_sqrt(part, PRECISION)
    return libmp.mpf_neg(high), high


def _of_power(whole: Bounds, a: Bounds, b: Bounds) -> list[Bounds]:
    return [_root_either_sign(whole) if b == (libmp.from_int(2),) * 2 else a, b]


def _of_sqrt(whole: Bounds, a: Bounds) -> list[Bounds]:
    part = common(whole, (libmp.fzero, libmp.finf))
    return [NOTHING if is_empty(part) else libmp.mpi_pow_int(part, 2, PRECISION)]


def _inverse(function: Callable[..., Bound], least: Bound, most: Bound) -> Bounds:
    """Return bounds of the inverse of a function at two numbers, cut off at -1 and 1."""
    one, minus = libmp.fone, libmp.fnone
    ends = [minus if libmp.mpf_lt(x, minus) else one if libmp.mpf_gt(x, one) else x for x in (least, most)]
    low, high = (function(x, PRECISION, libmp.round_nearest) for x in ends)
    return (
        libmp.mpf_sub(low, _ROOM, PRECISION, libmp.round_floor),
        libmp.mpf_add(high, _ROOM, PRECISION, libmp.round_ceiling),
    )


_UNIT: Final[Bounds] = (libmp.fnone, libmp.fone)


def _of_sin(whole: Bounds, a: Bounds) -> list[Bounds]:
    """Return bounds of an angle by its sine, within the quarter turns next to zero."""
    if is_empty(common(whole, _UNIT)):
        return [NOTHING]
    inside = libmp.mpf_ge(a[0], libmp.mpf_neg(_QUARTER)) and libmp.mpf_le(a[1], _QUARTER)
    return [_inverse(libmp.mpf_asin, *whole) if inside else a]


def _of_cos(whole: Bounds, a: Bounds) -> list[Bounds]:
    """Return bounds of an angle by its cosine, within half a turn on either side of zero."""
    if is_empty(common(whole, _UNIT)):
        return [NOTHING]
    if libmp.mpf_lt(a[0], libmp.mpf_neg(_HALF_TURN)) or libmp.mpf_gt(a[1], _HALF_TURN):
        return [a]
    low, high = _inverse(libmp.mpf_acos, whole[1], whole[0])
    if libmp.mpf_ge(a[0], libmp.fzero):
        return [(low, high)]
    minus = libmp.mpf_neg(high), libmp.mpf_neg(low)
    return [minus if libmp.mpf_le(a[1], libmp.fzero) else (minus[0], high)]


def _where(c: Bounds, a: Bounds, b: Bounds) -> Bounds:
    if c == _ZERO:
        return b
    return (_low(a, b), _high(a, b)) if holds(c, libmp.fzero) else a


def _of_where(whole: Bounds, c: Bounds, a: Bounds, b: Bounds) -> list[Bounds]:
    if c == _ZERO:
        return [c, a, whole]
    return [c, a, b] if holds(c, libmp.fzero) else [c, whole, b]


def _truth(certain: bool, possible: bool) -> Bounds:
    return libmp.from_int(int(certain)), libmp.from_int(int(possible))


_RESULTS: Final[dict[str, Callable[..., Bounds]]] = {
    "neg": libmp.mpi_neg,
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "div": _quotient,
    "pow": _power,
    "sqrt": _sqrt,
    "sin": lambda a: libmp.mpi_sin(a, PRECISION),
    "cos": lambda a: libmp.mpi_cos(a, PRECISION),
    "exp": lambda a: libmp.mpi_exp(a, PRECISION),
    "atan": lambda a: libmp.mpi_atan(a, PRECISION),
    "abs": lambda a: libmp.mpi_abs(a, PRECISION),
    "min": lambda a, b: (_low(a, b), a[1] if libmp.mpf_le(a[1], b[1]) else b[1]),
    "max": lambda a, b: (a[0] if libmp.mpf_ge(a[0], b[0]) else b[0], _high(a, b)),
    "lt": lambda a, b: _truth(libmp.mpf_lt(a[1], b[0]), libmp.mpf_lt(a[0], b[1])),
    "le": lambda a, b: _truth(libmp.mpf_le(a[1], b[0]), libmp.mpf_le(a[0], b[1])),
    "where": _where,
}

_OPERANDS: Final[dict[str, Callable[..., list[Bounds]]]] = {
    "neg": lambda r, a: [libmp.mpi_neg(r)],
    "add": lambda r, a, b: [_difference(r, b), _difference(r, a)],
    "sub": lambda r, a, b: [_sum(r, b), _difference(a, r)],
    "mul": lambda r, a, b: [_solution(r, b), _solution(r, a)],
    "div": lambda r, a, b: [_product(r, b), _solution(a, r)],
    "pow": _of_power,
    "sqrt": _of_sqrt,
    "sin": _of_sin,
    "cos": _of_cos,
    "abs": lambda r, a: [(libmp.mpf_neg(r[1]), r[1])],
    "min": lambda r, a, b: [(r[0], libmp.finf)] * 2,
    "max": lambda r, a, b: [(libmp.fninf, r[1])] * 2,
    "where": _of_where,
}


# -- Check of geometric proofs, by the automaton's programs and the intervals of mpmath alone ----------------
#
# The conditions of a proof must follow from its contact states, its boxes must cover the space, and in each leaf the
# conditions must contradict each other. The check repeats all of it independently: it uses nothing of the search and
# assumes nothing from a file.

WIDER: Final = 1.0 + 1e-12  # than bounds of sums in floating point
SWEEPS: Final = 2  # of narrowing, before a box is cut
LEAF_SWEEPS: Final = 8  # of narrowing in a box before its exclusion
_PI: Final = math.nextafter(math.pi, 4.0)

Box: TypeAlias = "list[Bounds]"


def check_proofs(
    automaton: Automaton,
    parameters: Floats,
    proofs: GeometricProofs,
    progress: Callable[[int, int], None] = lambda done, all_: None,
) -> int:
    """Return the number of boxes with verified contradictions, if all proofs hold.

    ``parameters``, shape (n_p,): SI units; ``proofs``: of this model with these parameters; ``progress``: called with
    the numbers of checked and of all proofs. Raises InputError: a proof does not hold, or is of another model or other
    parameters; it names the contacts and the box.
    """
    if proofs.digest != automaton.mechanism.digest:
        raise InputError("the proofs are of another model", found=proofs.model, allowed=automaton.mechanism.name)
    for name, value in zip(automaton.terms.layout.p, parameters.tolist(), strict=True):
        if proofs.parameters.get(name) != value:
            found = f"{name} = {proofs.parameters.get(name)}"
            raise InputError("the proofs are for other parameters", found=found, allowed=f"{name} = {value}")
    if not 0.0 <= proofs.margin < math.inf:
        raise InputError("the margin of the proofs", found=f"{proofs.margin}", allowed="a number that is not negative")
    checked = 0
    for done, proof in enumerate(proofs.proofs):
        progress(done, len(proofs.proofs))
        checked += _CheckedProof(automaton, parameters, proof, proofs.margin).verify()
    return checked


class _CheckedProof:
    """One proof with the program of its conditions, over the space of all arguments."""

    def __init__(self, automaton: Automaton, parameters: Floats, proof: ExclusionProof, margin: float) -> None:
        self.automaton, self.proof = automaton, proof
        self.states = self._states()
        self.rows = (
            held_rows(automaton, list(self.states)) if proof.without_sliding and all(self.states.values()) else ()
        )
        foreign = {row for weights in proof.weights for row, _ in weights} - set(self.rows)
        if foreign:
            raise self._refused("rows that these states do not hold", found=", ".join(map(str, sorted(foreign))))
        for condition in proof.conditions:
            self._check_condition(condition)
        self.program, self.goals = self._program(margin)
        self.space = self._space(parameters)
        free = [i for i, within in enumerate(self.space) if within == NUMBERS]
        for i in free:
            if _has_period(self.program, i):
                self.space[i] = bounds(-_PI, _PI)
        arguments = automaton.terms.layout.arguments
        unknown = [name for name in proof.variables if name not in arguments]
        if unknown:
            raise self._refused("no argument of the model", found=", ".join(unknown))
        self.variables = [arguments.index(name) for name in proof.variables]
        self._choose(dict(zip(arguments, range(len(arguments)), strict=True)), frozenset(free))

    def _refused(self, what: str, found: str = "", allowed: str = "") -> InputError:
        states = zip(self.proof.contacts, self.proof.closed, strict=False)
        text = " and ".join(f"{name} {'closed' if shut else 'open'}" for name, shut in states)
        return InputError(f"the proof that excludes {text} does not hold: {what}", found=found, allowed=allowed)

    def _states(self) -> Mapping[int, bool]:
        """Return whether contacts are closed, by their numbers."""
        proof, names = self.proof, [contact.name for contact in self.automaton.contacts]
        if len(proof.contacts) != len(proof.closed) or len(set(proof.contacts)) != len(proof.contacts):
            raise self._refused("each contact needs one state")
        unknown = [name for name in proof.contacts if name not in names]
        if unknown:
            raise self._refused("no contact of the model", found=", ".join(unknown))
        return {names.index(name): shut for name, shut in zip(proof.contacts, proof.closed, strict=True)}

    def _check_condition(self, condition: ProofCondition) -> None:
        """Refuse a condition not implied by the states."""
        owners = self.automaton.rows if condition.quantity == "residual" else self.automaton.contacts
        if not 0 <= condition.number < len(owners) or owners[condition.number].name != condition.name:
            raise self._refused("a condition on nothing in the model", found=f"{condition.quantity} {condition.name}")
        follows = self._row_may if condition.quantity == "residual" else self._reach_may
        if not follows(condition.number, condition.sense):
            words = {-1: "is not positive", 0: "vanishes", 1: "is not negative"}[condition.sense]
            raise self._refused(
                "a condition that does not follow from the states",
                found=f"the {condition.quantity} of {condition.name} {words}",
            )

    def _row_may(self, row: int, sense: int) -> bool:
        """Whether a sign of the residual of a row follows: it closes a loop, or is the gap of a contact."""
        info = self.automaton.rows[row]
        if not info.positional:
            return False
        if info.contact < 0:
            return info.role == "position"
        contact = self.automaton.contacts[info.contact]
        if contact.normal_row != row or contact.bilateral:
            return False
        law, shut = contact.contact_law, self.states.get(info.contact)
        if shut:
            return not law.compliant or sense == -1
        faces_end = contact.gated or contact.bounded_face or contact.outlined or contact.ends[0] >= 0
        # with dissipation a contact opens inside, while its surface lags behind
        bounds_gap = law.rigid or (law.compliant and shut is False and not contact.lossy)
        return sense == 1 and not faces_end and bounds_gap

    def _reach_may(self, contact: int, sense: int) -> bool:
        """Whether a closed contact is known to lie within the ends of its face."""
        info = self.automaton.contacts[contact]
        ends = info.bounded_face or info.outlined or info.ends[0] >= 0
        return sense == 1 and ends and info.contact_law.rigid and self.states.get(contact) is True

    def _program(self, margin: float) -> tuple[Program, list[tuple[int, Bounds]]]:
        """Return the program of the conditions, and the required bounds of its values."""
        units, by_output = self.automaton.units, dict[str, list[ProofCondition]]()
        for condition in self.proof.conditions:
            by_output.setdefault(condition.quantity, []).append(condition)
        outputs: dict[str, Sequence[int]] = {"A": self.rows, "b": self.rows} if self.rows else {}
        outputs |= {name: [c.number for c in some] for name, some in by_output.items()}
        part = self.automaton.terms.part(outputs)
        goals = []
        for output in part.results:
            for condition, value in zip(
                by_output.get(output.name, ()), output.indices, strict=output.name in by_output
            ):
                unit = units.rows[condition.number] if output.name == "residual" else 1.0
                missed = margin * float(unit) * units.scales.length
                low, high = (
                    (-math.inf if condition.sense < 0 else -missed),
                    (math.inf if condition.sense > 0 else missed),
                )
                goals.append((value, bounds(low, high)))
        return part, goals

    def _space(self, parameters: Floats) -> Box:
        """Return the bounds of all arguments: parameters, stated ranges, time from zero on."""
        layout, mechanism = self.automaton.terms.layout, self.automaton.mechanism
        space: list[Bounds] = [NUMBERS] * len(layout.arguments)
        stated = coordinate_bounds(mechanism, named_values(mechanism, parameters.tolist()))
        for i, name in enumerate(layout.arguments):
            if name in layout.p:
                space[i] = bounds(*[float(parameters[layout.p.index(name)])] * 2)
            elif name in stated:
                space[i] = bounds(*stated[name])
            elif i == 0:
                space[i] = bounds(0.0, math.inf)
            elif name in layout.u:
                space[i] = bounds(0.0, 0.0)  # gaps do not depend on speeds
        return space

    def _choose(self, number: Mapping[str, int], free: frozenset[int]) -> None:
        """Set the first argument of each shift to zero, if shifts change no condition and move no bounded argument."""
        firsts = {shift[0][0] for shift in self.proof.shifts if shift}
        for shift in self.proof.shifts:
            moved = {number.get(name, -1): Fraction(rate) for name, rate in shift if math.isfinite(rate) and rate}
            alone = len(moved) == len(shift) > 0 and len([name for name, _ in shift if name in firsts]) == 1
            if not alone or not moved.keys() <= free or not _is_still(self.program, moved) or self.rows:
                raise self._refused("a shift that changes the conditions", found=", ".join(name for name, _ in shift))
        for name in firsts:
            self.space[number[name]] = bounds(0.0, 0.0)

    def verify(self) -> int:
        """Return the number of leaves, all excluded.

        Raises InputError: one is not, or the subdivision is not one of the whole space.
        """
        ahead: list[Box | None] = [self.space]
        leaves, weights = 0, iter(self.proof.weights)
        for cut in self.proof.cuts:
            if not ahead:
                raise self._refused("more boxes than cuts make")
            box = ahead.pop()
            if box is not None:
                box = self._narrowed(box, LEAF_SWEEPS if cut is None else SWEEPS)
            if cut is None:
                of_box = next(weights, ())
                if box is not None and not self._speeds_contradict(box, of_box):
                    raise self._refused("the conditions may be met in a box", self._text(box))
                leaves += 1
                continue
            number, at = cut
            if not 0 <= number < len(self.variables) or not math.isfinite(at):
                raise self._refused("a cut across nothing", found=str(cut))
            ahead += [self._part(box, self.variables[number], upper, at) for upper in (True, False)]
        if ahead:
            raise self._refused("boxes are missing", found=f"{len(ahead)} without an end")
        return leaves

    def _speeds_contradict(self, box: Box, weights: Weights) -> bool:
        """Whether a sum of held rows is nonzero at all speeds in a box."""
        if not self.proof.without_sliding or not weights:
            return False
        sums = weighted_sum(self.automaton, weights)
        values = _forwards(sums, box)
        found = {output.name: [floats(values[i]) for i in output.indices] for output in sums.results}
        size = sum(
            max(-low, high) * most for (low, high), most in zip(found["A"], fastest(self.automaton), strict=True)
        )
        ((low, high),) = found["b"]
        return bool(low > size * WIDER or -high > size * WIDER)

    def _part(self, box: Box | None, argument: int, upper: bool, at: float) -> Box | None:
        if box is None:
            return None
        side = common(box[argument], bounds(at, math.inf) if upper else bounds(-math.inf, at))
        if is_empty(side):
            return None
        part = box.copy()
        part[argument] = side
        return part

    def _text(self, box: Box) -> str:
        ends = {name: floats(box[i]) for name, i in zip(self.proof.variables, self.variables, strict=True)}
        return ", ".join(f"{name} from {low:.6g} to {high:.6g}" for name, (low, high) in ends.items()) or "all"

    def _narrowed(self, box: Box, sweeps: int) -> Box | None:
        """Return the part of a box that may meet the conditions; None if there is none."""
        for _ in range(sweeps):
            smaller = _sweep(self.program, self.goals, box)
            if smaller is None or smaller == box:
                return smaller
            box = smaller
        return box


def _sweep(program: Program, goals: Sequence[tuple[int, Bounds]], box: Box) -> Box | None:
    """Bound all values forwards, meet the conditions, and bound the operands of each operation from the last one on."""
    values = _forwards(program, box)
    first = program.first_instruction
    must_exist = set()
    for value, goal in goals:
        values[value] = common(values[value], goal)
        must_exist.add(value)
        if is_empty(values[value]):
            return None
    for k in range(len(program.instructions) - 1, -1, -1):
        if first + k not in must_exist:
            continue
        op, operands = program.instructions[k]
        before = [values[i] for i in operands]
        found = narrowed(op, values[first + k], before, _same(operands))
        for i, old, new in zip(operands, before, found, strict=True):
            if new is old:
                continue
            values[i] = common(values[i], new)
            must_exist.add(i)
            if is_empty(values[i]):
                return None
    return values[: len(box)]


def _forwards(program: Program, box: Box) -> list[Bounds]:
    """Return bounds of all arguments, constants and operations over a box."""
    values = [*box, *(bounds(value, value) for value in program.constants)]
    for op, operands in program.instructions:
        values.append(result(op, [values[i] for i in operands], _same(operands)))
    return values


def _is_still(program: Program, moved: Mapping[int, Fraction]) -> bool:
    """Whether no output changes while arguments move with constant rates."""
    n, rates = len(program.arguments), [moved.get(i, Fraction(0)) for i in range(program.first_instruction)]
    for op, operands in program.instructions:
        own = [rates[i] for i in operands]
        known = [program.constants[i - n] for i in operands if n <= i < program.first_instruction]
        if not any(own):
            rates.append(Fraction(0))
        elif op in ("add", "sub", "neg"):
            rates.append({"add": sum(own, Fraction(0)), "sub": own[0] - own[-1], "neg": -own[0]}[op])
        elif op == "mul" and known and math.isfinite(known[0]):
            rates.append(Fraction(known[0]) * sum(own, Fraction(0)))
        else:
            return False
    return not any(rates[i] for output in program.results for i in output.indices)


def _same(operands: Sequence[int]) -> bool:
    return len(operands) == 2 and operands[0] == operands[1]


def _has_period(program: Program, argument: int) -> bool:
    """Whether an argument enters sines, cosines and tangents alone, by sums with factors 1 and -1: 2 pi is a period."""
    first, turned = program.first_instruction, {argument}
    for k, (op, operands) in enumerate(program.instructions):
        if turned.isdisjoint(operands):
            continue
        if op in ("add", "sub", "neg"):
            turned.add(first + k)
        elif op not in ("sin", "cos", "tan"):
            return False
    return all(turned.isdisjoint(output.indices) for output in program.results)
