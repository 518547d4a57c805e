"""Greatest common divisors of polynomials, by sympy."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from fsm_dyn.symbolic.trig_reduction import Polynomial

COARSEST = 10**6  # largest denominator of a coefficient that is taken as an exact fraction
LARGEST = 10**15  # and largest numerator: divisors are found by calculating with whole numbers of all their digits


def cancelled(numerators: Sequence[Polynomial], denominator: Polynomial) -> tuple[list[Polynomial], Polynomial]:
    """Divide a denominator and several numerators by their greatest common divisor.

    Polynomials with coefficients that are no simple fractions are returned as they are.

    Returns
    -------
    tuple
        Numerators and denominator without their common divisor.
    """
    from sympy.polys.domains import QQ  # half a second to import: only where it is needed
    from sympy.polys.rings import ring

    everything = [*numerators, denominator]
    fractions = [Fraction(c) for polynomial in everything for c in polynomial.values()]
    if any(c.denominator > COARSEST or abs(c.numerator) > LARGEST for c in fractions):
        return list(numerators), denominator
    lowest = _lowest_exponents(everything)
    atoms = sorted(lowest)
    polynomials = ring([f"a{atom}" for atom in atoms], QQ)[0]
    elements = [
        polynomials.from_dict(
            {
                tuple(dict(monomial).get(atom, 0) - lowest[atom] for atom in atoms): QQ(*Fraction(c).as_integer_ratio())
                for monomial, c in polynomial.items()
            }
        )
        for polynomial in everything
    ]
    common = elements[-1]
    for element in elements[:-1]:
        if element:
            common = common.gcd(element)
    quotients = []
    for element in elements:
        quotients.append(
            {
                tuple((atom, exponent) for atom, exponent in zip(atoms, key, strict=True) if exponent): float(c)
                for key, c in element.exquo(common).terms()
                if c
            }
        )
    return quotients[:-1], quotients[-1]


def _lowest_exponents(polynomials: Sequence[Polynomial]) -> dict[int, int]:
    """Return each atom's smallest exponent, 0 where it has no negative one."""
    lowest: dict[int, int] = {}
    for polynomial in polynomials:
        for monomial in polynomial:
            for atom, exponent in monomial:
                lowest[atom] = min(lowest.get(atom, 0), exponent)
    return lowest
