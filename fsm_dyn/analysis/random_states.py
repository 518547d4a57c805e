"""Random states that satisfy the constraint rows of a mode, for derivations to be compared at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.errors import ModelError
from fsm_dyn.modes.assembly import PrescribedValues
from fsm_dyn.modes.embedding import ActiveSet

Array = npt.NDArray[np.float64]

SEED = 20030818
RANK = 1e-9
VANISHING = 1e-5  # a singular value between this and RANK decides nothing
WORST = 1e8  # condition of a reduced mass matrix beyond which a state is passed over
RIGHT_ANGLE = 0.5 * np.pi
SPREAD = 1.0  # rad, m: how far from the start states are looked for
MOST_TRIALS = 10


def random_states(automaton: Automaton, codes: Sequence[int], x: Array, context: Array, count: int) -> list[Array]:
    """Return states near a start, every third of right angles, brought onto the rows, speeds projected on them.

    Parameters
    ----------
    automaton : Automaton
        The compiled mechanism.
    codes : Sequence[int]
        Contact states of the mode.
    x : ndarray, shape (n_x,)
        The state about which they are drawn.
    context : ndarray, shape (n_c,)
        Parameters, inputs, discrete variables and slip directions, SI.
    count : int
        Number of states.

    Raises
    ------
    ModelError
        None of the states drawn satisfies the constraints.
    """
    layout, random = automaton.terms.layout, np.random.default_rng(SEED)
    n_q, n_u, found = len(layout.q), len(layout.u), []
    rows = list(ActiveSet.of(automaton.system, codes).rows)
    usual = float(np.abs(automaton.terms.evaluate(0.0, x, context)["A"][rows]).max(initial=0.0))
    spread = SPREAD
    for trial in range(MOST_TRIALS * count):
        guess = x[:n_q] + spread * random.uniform(-1.0, 1.0, n_q)
        if trial % 3 == 2:  # where models begin, and where a pivot is most likely to vanish
            guess = np.round(guess / RIGHT_ANGLE) * RIGHT_ANGLE
        given = PrescribedValues({}, {}, 0.0, context, dict(zip(layout.q, guess, strict=True)))
        try:
            state = automaton.assemble(codes, given)
        except ModelError:
            spread *= 0.7  # out of reach: look nearer
            continue
        terms = automaton.terms.evaluate(0.0, state, context)
        A, b = terms["A"][rows][:, :n_u], terms["b"][rows]
        u = random.uniform(-1.0, 1.0, n_u)
        state[n_q:] = u - np.linalg.pinv(A, rcond=RANK) @ (A @ u + b)
        if all(np.isfinite(value).all() for value in terms.values()) and is_regular(terms["M"][:n_u, :n_u], A, usual):
            found.append(state)
        if len(found) == count:
            break
    if not found:
        raise ModelError("no state near the start satisfies the rows", remedy="check where the motion starts")
    return found


def is_regular(M: Array, A: Array, usual: float) -> bool:
    """Whether the reduced mass matrix can be solved and no row is about to vanish, as both may at right angles."""
    null = null_space(A)
    size = np.sqrt(np.abs(np.diag(M))) + 1e-30
    if len(A):
        shares = np.linalg.svd(A / size, compute_uv=False)
        largest = max(usual / float(size.min()), float(shares.max()))
        if np.any((shares > RANK * shares.max()) & (shares < VANISHING * largest)):
            return False
    reduced = null.T @ (M / np.outer(size, size)) @ null if len(A) else M / np.outer(size, size)
    return not reduced.size or bool(np.linalg.cond(reduced) < WORST)


def null_space(A: Array) -> Array:
    """Return an orthonormal basis (n, n - rank) of what A (m, n) takes to zero."""
    if not len(A):
        return np.eye(A.shape[1])
    _, singular, right = np.linalg.svd(A)
    rank = int((singular > RANK * max(singular.max(initial=0.0), 1e-300)).sum())
    return np.array(right[rank:].T)
