"""Explicit Runge-Kutta methods as tableaux, which the runtime steps.

A step of length ``h`` from ``x`` with ``s`` stages, the derivative at the start given::

    k_0 = x_dot(t),   k_i = f(t + c_i h, x + h sum_j a_ij k_j),   x_1 = x + h sum_i b_i k_i,   k_s = f(t + h, x_1)

``k_s`` comes from the kernel evaluated at the end of a step anyway (guards, dependent speeds), and starts
the next step.  Error estimate and mid-point are further weights over ``k_0 .. k_s``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np

from fsm_dyn.core.records import dataclass
from fsm_dyn.run.structures import Bundle
from fsm_dyn.runtime.layouts import MethodArrays

METHOD: Final = Bundle(MethodArrays)


@dataclass(frozen=True)
class Tableau:
    """An explicit Runge-Kutta method, checked when made.

    Attributes
    ----------
    name : str
        How users call it.
    order : int
        Order of the result.
    a : tuple of tuples of Fraction
        Stage coefficients; row ``i`` has ``i`` entries.
    b : tuple of Fraction
        Weights of the result.
    error : tuple of Fraction
        Weights, over the stages and the derivative at the end, of the estimated error; empty for fixed steps.
    bump : tuple of Fraction
        Weights ``d``, over the same, of the quartic part of the dense output
        ``Hermite cubic + theta^2 (1 - theta)^2 h sum d_i k_i``; empty: the cubic alone.
    source : str
        Reference for the coefficients.
    """

    name: str
    order: int
    a: tuple[tuple[Fraction, ...], ...]
    b: tuple[Fraction, ...]
    error: tuple[Fraction, ...] = ()
    bump: tuple[Fraction, ...] = ()
    source: str = ""

    def __post_init__(self) -> None:
        stages = len(self.b)
        if len(self.a) != stages or any(len(row) != i for i, row in enumerate(self.a)):
            raise ValueError(f"{self.name}: a must be strictly lower triangular with {stages} rows")
        if sum(self.b) != 1:
            raise ValueError(f"{self.name}: the weights b add up to {sum(self.b)}, not 1")
        for label, weights in (("error", self.error), ("bump", self.bump)):
            if weights and len(weights) != stages + 1:
                raise ValueError(f"{self.name}: {label} needs {stages + 1} weights")
            if weights and sum(weights) != 0:
                raise ValueError(f"{self.name}: the weights of {label} add up to {sum(weights)}, not 0")
        for order, residual in self.order_residuals():
            if order <= self.order and residual != 0:
                raise ValueError(f"{self.name}: a condition of order {order} fails by {residual}")

    @property
    def adaptive(self) -> bool:
        """Whether the method estimates its error and so chooses its steps."""
        return bool(self.error)

    @property
    def nodes(self) -> tuple[Fraction, ...]:
        """The row sums ``c`` of ``a``."""
        return tuple(sum(row, Fraction(0)) for row in self.a)

    def order_residuals(self) -> list[tuple[int, Fraction]]:
        """Return (order, residual) of every order condition up to order 5.

        Hairer, Norsett, Wanner, *Solving Ordinary Differential Equations I*, 2nd ed., Table II.2.2.
        """
        return order_residuals(self.a, self.b)

    @property
    def middle(self) -> tuple[Fraction, ...]:
        """Weights over the stages and the end of the state at mid-step, by the dense output."""
        weights = [*(value / 2 for value in self.b), Fraction(0)]
        weights[0] += Fraction(1, 8)
        weights[-1] -= Fraction(1, 8)
        for i, value in enumerate(self.bump):
            weights[i] += value / 16
        return tuple(weights)

    def arrays(self) -> MethodArrays:
        """Return the tableau as float64 arrays."""
        stages = len(self.b)
        a = np.zeros((stages, stages))
        for i, row in enumerate(self.a):
            a[i, :i] = [float(value) for value in row]
        error = self.error or (Fraction(0),) * (stages + 1)
        weights = [float(value) for value in (*self.b, Fraction(0), *error, *self.middle)]
        nodes = np.array([float(value) for value in self.nodes])
        counts = np.array([stages, self.order, int(self.adaptive), 0], dtype=np.int64)
        return MethodArrays(a.ravel(), nodes, np.array(weights), counts, np.zeros(1))


def order_residuals(
    a: tuple[tuple[Fraction, ...], ...], b: tuple[Fraction, ...], theta: Fraction = Fraction(1)
) -> list[tuple[int, Fraction]]:
    """Return (order, residual) of the conditions up to order 5 for the state at ``t + theta h``.

    Parameters
    ----------
    a : tuple of tuple of Fraction, shape (s, s), lower triangle
        Coefficients of the stages.
    b : tuple of Fraction, shape (s,)
        Weights of the stages.
    theta : Fraction
        Fraction of the step, 0 to 1.
    """
    stages = range(len(b))
    full = [[row[j] if j < len(row) else Fraction(0) for j in stages] for row in a]
    c = [sum(row, Fraction(0)) for row in full]

    def times(values: list[Fraction]) -> list[Fraction]:
        return [sum((full[i][j] * values[j] for j in stages), Fraction(0)) for i in stages]

    def product(*lists: list[Fraction]) -> list[Fraction]:
        result = [Fraction(1)] * len(b)
        for values in lists:
            result = [x * y for x, y in zip(result, values, strict=True)]
        return result

    ac, acc, aac = times(c), times(product(c, c)), times(times(c))
    trees: list[tuple[int, list[Fraction], int]] = [
        (1, [Fraction(1)] * len(b), 1),
        (2, c, 2),
        (3, product(c, c), 3),
        (3, ac, 6),
        (4, product(c, c, c), 4),
        (4, product(c, ac), 8),
        (4, acc, 12),
        (4, aac, 24),
        (5, product(c, c, c, c), 5),
        (5, product(c, c, ac), 10),
        (5, product(c, acc), 15),
        (5, product(c, aac), 30),
        (5, product(ac, ac), 20),
        (5, times(product(c, c, c)), 20),
        (5, times(product(c, ac)), 40),
        (5, times(acc), 60),
        (5, times(aac), 120),
    ]
    return [
        (order, sum((x * y for x, y in zip(b, values, strict=True)), Fraction(0)) - theta**order / density)
        for order, values, density in trees
    ]


def _fractions(*values: str | int) -> tuple[Fraction, ...]:
    return tuple(Fraction(value) for value in values)


EULER: Final = Tableau("euler", 1, ((),), _fractions(1), source="explicit Euler")
HEUN: Final = Tableau("heun", 2, ((), _fractions(1)), _fractions("1/2", "1/2"), source="explicit trapezoidal rule")
RK4: Final = Tableau(
    "rk4",
    4,
    ((), _fractions("1/2"), _fractions(0, "1/2"), _fractions(0, 0, 1)),
    _fractions("1/6", "1/3", "1/3", "1/6"),
    source="Kutta (1901)",
)
DOPRI5: Final = Tableau(
    "dopri5",
    5,
    (
        (),
        _fractions("1/5"),
        _fractions("3/40", "9/40"),
        _fractions("44/45", "-56/15", "32/9"),
        _fractions("19372/6561", "-25360/2187", "64448/6561", "-212/729"),
        _fractions("9017/3168", "-355/33", "46732/5247", "49/176", "-5103/18656"),
    ),
    _fractions("35/384", 0, "500/1113", "125/192", "-2187/6784", "11/84"),
    error=_fractions("71/57600", 0, "-71/16695", "71/1920", "-17253/339200", "22/525", "-1/40"),
    bump=_fractions(
        "-12715105075/11282082432",
        0,
        "87487479700/32700410799",
        "-10690763975/1880347072",
        "701980252875/199316789632",
        "-1453857185/822651844",
        "69997945/29380423",
    ),
    source="Dormand and Prince (1980), J. Comput. Appl. Math. 6; dense output by Shampine (1986), Math. Comp. 46, "
    "in the form of Hairer, Norsett, Wanner (1993), section II.6",
)

METHODS: Final[dict[str, Tableau]] = {method.name: method for method in (EULER, HEUN, RK4, DOPRI5)}
STIFF_METHODS: Final = ("radau", "bdf")
