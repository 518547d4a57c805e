"""State of scipy's ``Radau`` and ``BDF`` between two steps, as plain numbers and arrays.

A solver with the same state takes the same steps, whatever object it is: factors are kept as they are, because they may
be those of another length of step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.errors import InputError

Floats = NDArray[np.float64]

_NUMBERS: Final = ("t", "t_old", "h_abs", "h_abs_old", "error_norm_old")  # or None
_OWN: Final = {"radau": ("y", "f", "y_old"), "bdf": ("y",)}  # arrays (n,)
_FACTORS: Final = {"radau": ("LU_real", "LU_complex"), "bdf": ("LU",)}
_COLLOCATION: Final = 3  # polynomials of Radau's dense output


def capture(solver: Any) -> dict[str, Any]:
    """Return the state of a solver as copies: numbers, None and float arrays by name."""
    kind = "bdf" if hasattr(solver, "D") else "radau"
    state: dict[str, Any] = {"kind": kind}
    state |= {name: _number(getattr(solver, name)) for name in _NUMBERS}
    state |= {name: _copy(getattr(solver, name)) for name in _OWN[kind]}
    state["J"] = _copy(solver.J)
    for name in _FACTORS[kind]:
        factors = getattr(solver, name)
        matrix, pivots = (None, None) if factors is None else factors
        state[name] = None if matrix is None else np.stack([matrix.real, matrix.imag]).astype(np.float64)
        state[f"{name}_pivots"] = None if pivots is None else np.asarray(pivots, np.float64)
    if kind == "bdf":
        differences = solver.D.copy()
        differences[solver.order + 3 :] = 0.0  # never filled
        state |= {"D": differences, "order": int(solver.order), "n_equal_steps": int(solver.n_equal_steps)}
    else:
        sol = solver.sol
        state["current_jac"] = bool(solver.current_jac)
        state["Q"] = None if sol is None else sol.Q.copy()
        state["sol_times"] = None if sol is None else np.array([sol.t_old, sol.t], np.float64)
        state["sol_y_old"] = None if sol is None else sol.y_old.copy()
    return state


def restore(solver: Any, state: Mapping[str, Any]) -> None:
    """Give a solver that is about to start, of the same class, a state.

    Raises
    ------
    InputError
        A number or array is missing, or has another shape.
    """
    n = len(solver.y)
    kind = "bdf" if hasattr(solver, "D") else "radau"
    for name in _NUMBERS:
        setattr(solver, name, number(state, name))
    for name in _OWN[kind]:
        setattr(solver, name, array(state, name, (n,), optional=name == "y_old"))
    solver.J = array(state, "J", (n, n))
    for name in _FACTORS[kind]:
        setattr(solver, name, _factors(state, name, n))
    if kind == "bdf":
        solver.D = array(state, "D", solver.D.shape)
        solver.order = integer(state, "order", 1, len(solver.D) - 3)
        solver.n_equal_steps = integer(state, "n_equal_steps", 0, 10**9)
        return
    solver.current_jac = bool(state.get("current_jac"))
    solver.sol = None
    coefficients = array(state, "Q", (n, _COLLOCATION), optional=True)
    if coefficients is not None:
        from scipy.integrate._ivp.radau import RadauDenseOutput

        times = array(state, "sol_times", (2,))
        solver.sol = RadauDenseOutput(
            float(times[0]), float(times[1]), array(state, "sol_y_old", (n,)), coefficients
        )  # fmt: skip


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _copy(value: Any) -> Floats | None:
    return None if value is None else np.array(value, np.float64)


def refused(name: str) -> InputError:
    """Return the error for a state that is damaged."""
    return InputError("the run cannot be continued", found=f"the solver's '{name}' is damaged", remedy="run it again")


def number(state: Mapping[str, Any], name: str) -> float | None:
    """Return a finite number or None; raise InputError where it is neither."""
    value = state.get(name)
    if value is not None and not (isinstance(value, int | float) and np.isfinite(value)):
        raise refused(name)
    if value is None and name in ("t", "h_abs"):
        raise refused(name)
    return value


def integer(state: Mapping[str, Any], name: str, least: int, most: int) -> int:
    """Return an integer within bounds; raise InputError where it is none."""
    value = state.get(name)
    if not isinstance(value, int) or not least <= value <= most:
        raise refused(name)
    return value


def array(state: Mapping[str, Any], name: str, shape: tuple[int, ...], *, optional: bool = False) -> Any:
    """Return an array of finite numbers, or None if that is allowed; raise InputError where it is none."""
    value = state.get(name)
    if value is None and optional:
        return None
    try:
        found = np.array(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise refused(name) from None
    if found.shape != shape or not np.all(np.isfinite(found)):
        raise refused(name)
    return found


def _factors(state: Mapping[str, Any], name: str, n: int) -> tuple[NDArray[Any], NDArray[np.int32]] | None:
    parts = array(state, name, (2, n, n), optional=True)
    if parts is None:
        return None
    pivots = array(state, f"{name}_pivots", (n,))
    if not np.all((pivots >= 0) & (pivots < n) & (pivots == np.floor(pivots))):
        raise refused(name)
    matrix = parts[0] + 1j * parts[1] if name == "LU_complex" else parts[0]
    return np.asfortranarray(matrix), pivots.astype(np.int32)
