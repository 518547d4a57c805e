"""Names of methods and strategies, and the settings of a run from the arguments of :func:`fsm_dyn.simulate`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from fsm_dyn.errors import InputError, did_you_mean
from fsm_dyn.renamed import warn_renamed
from fsm_dyn.results.continuation import RunSettings, StoredInput
from fsm_dyn.simulation.integrators import METHODS
from fsm_dyn.simulation.run_loop import STIFF_METHODS
from fsm_dyn.simulation.tolerances import Tolerances

STRATEGIES: Final = ("auto", "compiled", "online")
OLD_STRATEGIES: Final = {"graph": "compiled", "mixed": "auto"}
TIME_STEPPING: Final = "moreau_jean"
ALL_METHODS: Final = (*METHODS, *STIFF_METHODS, TIME_STEPPING)
_DEFAULTS: Final = Tolerances()

Allowance = float | Mapping[str, float] | None  # evaluations online after which modes are derived, or these by name


def strategy_named(name: str, method: str = "", derive_after: Allowance = None) -> str:
    """Return the strategy of this name, which may be an old one, for a run by this method.

    Raises
    ------
    InputError
        There is no such strategy, or ``derive_after`` does not go with it.
    """
    if name in OLD_STRATEGIES:
        warn_renamed("strategy", name, OLD_STRATEGIES[name])
    strategy = OLD_STRATEGIES.get(name, name)
    if strategy not in STRATEGIES:
        raise InputError(
            f"there is no strategy '{strategy}'",
            allowed=", ".join(STRATEGIES),
            remedy=did_you_mean(strategy, STRATEGIES),
        )
    given = derive_after.values() if isinstance(derive_after, Mapping) else (derive_after,)
    if derive_after is not None and not (
        strategy == "auto" and all(value is not None and value >= 0 for value in given)
    ):
        raise InputError(
            "derive_after", found=f"{derive_after!r} with strategy '{strategy}'",
            allowed="a number of evaluations, 0 to inf, or one for each mode by name, with strategy 'auto'",
        )  # fmt: skip
    # time stepping evaluates no mode, so none that it meets has to be derived
    return "auto" if method == TIME_STEPPING and strategy == "compiled" else strategy


def check_names(method: str, on_failure: str) -> None:
    """Refuse a method or a reaction to failure that does not exist.

    Raises
    ------
    InputError
    """
    if method not in ALL_METHODS:
        raise InputError(
            f"there is no method '{method}'", allowed=", ".join(ALL_METHODS), remedy=did_you_mean(method, ALL_METHODS)
        )
    if on_failure not in ("raise", "return"):
        raise InputError("on_failure", found=repr(on_failure), allowed="'raise' or 'return'")


def method_with(method: str, step: float | None) -> str:
    """Return the method of a run: with the length of fixed steps (s) ``dopri5``, the default, becomes ``rk4``.

    Raises
    ------
    InputError
        There is a length of steps and the method chooses its own.
    """
    if not step or (method in METHODS and not METHODS[method].adaptive) or method == TIME_STEPPING:
        return method
    if method == "dopri5":
        return "rk4"
    fixed = [*(name for name, known in METHODS.items() if not known.adaptive), TIME_STEPPING]
    raise InputError(
        f"method '{method}' chooses the length of its steps",
        found=f"step = {step:g}",
        allowed=f"step with {', '.join(fixed)}",
        remedy="leave step out; max_step bounds the steps",
    )


def settings_of(
    *,
    method: str,
    strategy: str,
    derive_after: Allowance,
    tolerances: Tolerances | Mapping[str, float | str] | None,
    rtol: float | None,
    atol: float | Sequence[float] | None,
    step: float | None,
    max_step: float,
    scenario: str | None,
    inputs: Mapping[str, StoredInput | None],
) -> RunSettings:
    """Return the settings of a run as a saved run keeps them; arguments are those of :func:`fsm_dyn.simulate`.

    Parameters
    ----------
    strategy : str
        One of :data:`STRATEGIES`.
    inputs : mapping
        By name, None for those that cannot be stored.
    """
    wanted = _DEFAULTS
    if tolerances is not None:
        wanted = tolerances if isinstance(tolerances, Tolerances) else Tolerances.of(tolerances)
    if rtol is not None or isinstance(atol, float | int):
        wanted = Tolerances(rtol=rtol, atol=atol if isinstance(atol, float | int) else None).or_else(wanted)
    return RunSettings(
        method=method_with(method, step),
        strategy=strategy,
        derive_after=_stored_allowance(derive_after),
        tolerances={} if wanted is _DEFAULTS else wanted.specified_entries(),
        atol=atol if atol is None else _listed(atol),
        step=float(step or 0.0),
        max_step=None if math.isinf(max_step) else float(max_step),
        drive=scenario,
        inputs={name: value for name, value in inputs.items() if value is not None},
    )


def allowance_of(settings: RunSettings) -> Allowance:
    """Return ``derive_after`` of the settings of a run."""
    after = settings.derive_after
    return np.inf if isinstance(after, float | int) and after < 0 else after


def _listed(atol: float | Sequence[float]) -> float | tuple[float, ...]:
    return float(atol) if isinstance(atol, float | int) else tuple(float(value) for value in atol)


def _stored_allowance(derive_after: Allowance) -> float | dict[str, float] | None:
    """Return ``derive_after`` as settings of a run hold it: -1 for never."""
    if isinstance(derive_after, Mapping):
        return {name: float(value) for name, value in sorted(derive_after.items())}
    return None if derive_after is None else -1.0 if derive_after == np.inf else float(derive_after)
