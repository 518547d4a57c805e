"""Options of a run, each declared once: for Python, the command line, studies, exports and saved runs."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Concatenate, Final, NamedTuple, ParamSpec, TypeAlias, TypeVar, get_type_hints

from fsm_dyn.core.arguments import check_arguments, types_of
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.core.records import dataclass

if TYPE_CHECKING:
    from fsm_dyn.core.arrays import Floats
    from fsm_dyn.language.values import Parameters
    from fsm_dyn.run.input_signals import InputValue
    from fsm_dyn.run.tolerances import Numerics, Tolerances

# This module loads neither NumPy nor the runtime: the command line reads the declarations when it starts.

STRATEGIES: Final = ("auto", "compiled", "online")
FORMULATIONS: Final = ("embedding", "multipliers")
TIME_STEPPING: Final = "moreau_jean"
MOST_STEPS: Final = 10_000_000
REACTIONS: Final = ("raise", "return")

Allowance: TypeAlias = (
    float | Mapping[str, float] | None
)  # evaluations after which modes are derived, or by their names
StoredInput: TypeAlias = float | str | list[list[float]] | dict[str, str | float | list[list[float]]]


def _option(default: Any, text: str, unit: str = "", flag: str = "", metavar: str = "", stored: Any = None) -> Any:
    """Declare an option: default, a line of documentation, unit, flag of the command line, type in a saved run."""
    about = {"text": text, "unit": unit, "flag": flag, "metavar": metavar, "stored": stored}
    return dataclasses.field(default=default, metadata=about)


@dataclass(frozen=True)
class RunOptions:
    """Options of a run, checked when they are made; the same for Python, studies, exports and the command line.

    Parameters
    ----------
    until : float or str, optional
        End of the run, s, or with a unit, ``"20 ms"``; by default the end of the model's schedule, 5 s at least.
    method : str
        ``dopri5`` (adaptive, the default), ``rk4 heun euler`` (fixed ``step``), ``radau bdf`` (stiff models),
        ``moreau_jean`` (time stepping with a fixed ``step``: no event is located).
    strategy : "auto", "compiled" or "online"
        How modes are evaluated.  ``auto``: by their own kernels if the graph has them; others are embedded
        online from the unconstrained terms at once, and derived in the run when they have been evaluated often.
        ``compiled``: by their own kernels, derived when first reached.  ``online``: all embedded online.
    derive_after : float or mapping, optional
        For ``auto``, after how many evaluations in the run a mode embedded online is derived: by default when they
        have cost about as much as deriving it will; ``inf``: never.  Or this by the names of modes; no other is
        derived then.
    formulation : "embedding" or "multipliers"
        How modes with active rows are solved: by their independent speeds, or by all speeds together with the
        multipliers, for comparison.  ``multipliers`` derives every mode when it is first reached.
    tolerances : Tolerances or mapping, optional
        Tolerances of zero, and the accuracy of the integration; missing ones are the model's own (``numerics`` in its
        file) or follow from the mechanism's own units.
    atol : float or sequence of float, optional
        Absolute tolerance of a step's error, that of the tolerances; or one per coordinate and speed.
    step : float or str, optional
        Length of the fixed steps, s, or with a unit; with it ``dopri5``, the default method, becomes ``rk4``.
    max_step : float or str
        Longest step, s, or with a unit.
    scenario : str, optional
        One of the model's ``scenarios``: named schedules that replace those of some inputs.
    inputs : mapping, optional
        Inputs that replace the schedule's: a number, an expression of ``t``, rows of (time, value), a mapping with
        ``linear``, ``steps`` or ``expression``, or a Python callable of the time.
    parameters : mapping, optional
        Parameters for this run (SI numbers, or text with units); nothing is compiled again.
    initial : mapping, optional
        Values that replace those under ``initial``: coordinates, speeds, memory, ``mode``.
    rtol : float, optional
        Relative tolerance of a step's error, that of the tolerances.
    max_steps : int
        Bound on the number of steps.
    on_failure : "raise" or "return"
        Whether a run that fails raises, or returns its rows with its ``outcome``.
    progress : callable, optional
        Called a few times a second with the time reached, s.

    Raises
    ------
    InputError
        A value is not allowed.
    """

    # in the order in which a saved run stores them
    until: float | None = _option(None, "End of the run", "s", "--until")
    _: KW_ONLY
    method: str = _option(
        "dopri5", "dopri5, radau or bdf; with --step: rk4, heun, euler or moreau_jean.", flag="--method", stored=str
    )
    strategy: str = _option("auto", "How modes are evaluated: auto, compiled or online.", flag="--strategy", stored=str)
    derive_after: Allowance = _option(
        None, "Evaluations after which a mode embedded online is derived.", stored=float | dict[str, float] | None
    )
    formulation: str = _option(
        "embedding", "How active rows are solved: embedding or multipliers.", flag="--formulation", stored=str
    )
    tolerances: Tolerances | Mapping[str, float | str] | None = _option(
        None, "What counts as zero, e.g. gap='1 um'; `check` lists them; repeat.", flag="--tolerance",
        metavar="NAME=VALUE", stored=dict[str, float],
    )  # fmt: skip
    atol: float | Sequence[float] | Floats | None = _option(
        None, "Absolute tolerance of the integration.", flag="--atol", stored=float | tuple[float, ...] | None
    )
    step: float | None = _option(
        None, "Fixed step, s; the method is then rk4, if no other is given.", flag="--step", stored=float
    )
    max_step: float = _option(math.inf, "Longest step", "s", stored=float | None)
    scenario: str | None = _option(None, "One of the model's scenarios.", flag="--scenario", stored=str | None)
    inputs: Mapping[str, InputValue] | None = _option(
        None, "An input over time, e.g. push='30 N*sin(2*t)'; repeat.", flag="--input", metavar="NAME=EXPR",
        stored=dict[str, StoredInput],
    )  # fmt: skip
    parameters: Parameters | None = _option(
        None, "A parameter's value, e.g. mB='25 kg'; repeat.", flag="--set", metavar="NAME=VALUE"
    )
    initial: Mapping[str, float | str] | None = _option(
        None, "An initial value, or mode=NAME; repeat.", flag="--initial", metavar="NAME=VALUE"
    )
    rtol: float | None = _option(None, "Relative tolerance of the integration.", flag="--rtol")
    max_steps: int = _option(MOST_STEPS, "Bound on the number of steps.")
    on_failure: str = _option("raise", "Whether a failed run raises, or returns its rows.")
    progress: Callable[[float], None] | None = _option(None, "Called with the time reached", "s")

    def __post_init__(self) -> None:
        for name in ("until", "step", "max_step"):
            if isinstance(getattr(self, name), str):
                from fsm_dyn.language.values import seconds  # with the expressions

                object.__setattr__(self, name, seconds(getattr(self, name), f"'{name}'"))
        steps: Any = self.max_steps
        if isinstance(steps, float) and steps.is_integer():  # such as 1e6
            object.__setattr__(self, "max_steps", int(steps))
        chosen = {item.name: value for item in fields(self) if (value := getattr(self, item.name)) is not item.default}
        check_arguments("options of a run", chosen, _types() if chosen else {})
        if self.step is not None and not self.step > 0.0:
            raise InputError("the step is not positive", found=f"{self.step:g} s", allowed="more than 0 s, or no step")
        strategy = _checked_strategy(self.strategy, self.method, self.derive_after)
        _check_formulation(self.formulation, strategy, self.derive_after)
        known = all_methods()
        if self.method not in known:
            remedy = did_you_mean(self.method, known)
            raise InputError(f"there is no method '{self.method}'", allowed=", ".join(known), remedy=remedy)
        if self.on_failure not in REACTIONS:
            raise InputError("on_failure", found=repr(self.on_failure), allowed="'raise' or 'return'")
        if strategy != self.strategy:
            object.__setattr__(self, "strategy", strategy)
        if self.step:
            object.__setattr__(self, "method", _method_with(self.method, self.step))

    @property
    def evaluation(self) -> str:
        """The strategy, or the formulation where this is not embedding."""
        return self.strategy if self.formulation == FORMULATIONS[0] else self.formulation

    @cached_property
    def specified(self) -> Mapping[str, float]:
        """Tolerances given, ``rtol`` and a common ``atol`` among them, by name.

        Raises
        ------
        InputError
            There is no such tolerance, or its value is not allowed.
        """
        common = self.atol if isinstance(self.atol, float | int) else None
        if self.tolerances is None and self.rtol is None and common is None:
            return {}
        from fsm_dyn.run.tolerances import Tolerances  # with NumPy

        given = self.tolerances or {}
        wanted = given if isinstance(given, Tolerances) else Tolerances.of(given)
        return Tolerances(rtol=self.rtol, atol=common).or_else(wanted).specified_entries()

    def resolved(self, numerics: Numerics) -> RunOptions:
        """Return the options with the tolerances of a run's numerics in the place of missing ones."""
        found = object.__new__(RunOptions)  # these values are checked: `replace` would check them again
        atol = numerics.atol if self.atol is None else self.atol
        found.__dict__.update(self.__dict__, rtol=numerics.rtol, atol=atol)
        return found

    @cached_property
    def unstored(self) -> str:
        """The first input without a form in a saved run, a Python function, by name; empty without one."""
        return next((name for name, value in (self.inputs or {}).items() if _storable(value) is None), "")

    def stored(self) -> Any:
        """Return the options on which the steps of a run depend, as a saved run holds them (:func:`stored_type`)."""
        inputs = {name: _storable(value) for name, value in (self.inputs or {}).items()}
        after, atol = self.derive_after, self.atol
        values = {
            "derive_after": dict(sorted((name, float(n)) for name, n in after.items())) if isinstance(after, Mapping)
            else None if after is None else -1.0 if after == math.inf else float(after),
            "tolerances": self.specified,
            "atol": atol if atol is None else float(atol) if isinstance(atol, float | int) else tuple(map(float, atol)),
            "step": float(self.step or 0.0),
            "max_step": None if math.isinf(self.max_step) else float(self.max_step),
            "inputs": {name: value for name, value in inputs.items() if value is not None},
        }  # fmt: skip
        kind = stored_type()
        return kind(**{name: values.get(name, getattr(self, name)) for name in kind.__struct_fields__})

    @classmethod
    def of_stored(cls, stored: Any) -> RunOptions:
        """Return the options of a saved run, from :meth:`stored`.

        Raises
        ------
        InputError
            A value is not allowed.
        """
        values = {name: getattr(stored, name) for name in stored.__struct_fields__}
        after, longest = values["derive_after"], values["max_step"]
        values["derive_after"] = math.inf if isinstance(after, float) and after < 0 else after
        values["max_step"] = math.inf if longest is None else longest
        values["step"] = values["step"] or None  # 0: none
        return cls(**values)


@functools.cache
def stored_type() -> type[Any]:
    """Return the structure of the options in a saved run: the fields of :class:`RunOptions` with a type."""
    import msgspec

    declared = [(item.name, item.metadata["stored"]) for item in fields(RunOptions) if item.metadata["stored"]]
    # of a saved run: `drive` is the scenario
    return msgspec.defstruct("StoredOptions", declared, frozen=True, rename={"scenario": "drive"})


_OF_INTEGRATION: Final = ("method", "step", "max_step", "rtol", "atol")
_NUMBERS_AND_TEXTS: Final = (float, int, str, bool, type(None))  # options of these are checked once for many calls
_OF_CALLS: Final = ("until", "max_steps", "on_failure", "progress")


def continued(options: RunOptions, changes: Mapping[str, Any]) -> RunOptions:
    """Return the options of a run's continuation; a method without fixed steps takes no step over from the run.

    Raises InputError: an option cannot be changed.
    """
    for name in changes:
        if name not in (*_OF_INTEGRATION, *_OF_CALLS):
            raise InputError(
                f"a run is continued with its own '{name}'", found=name, allowed=", ".join(_OF_INTEGRATION),
                remedy=did_you_mean(name, _OF_INTEGRATION) or "start a new run",
            )  # fmt: skip
    given = dict(changes)
    if "method" in given and "step" not in given and not _has_fixed_steps(given["method"]):
        given["step"] = None
    return dataclasses.replace(options, **given)


def check_change(before: str, method: str) -> None:
    """Refuse a continuation by a method that cannot begin at the state of the one before.

    Raises InputError: one of them is time stepping, or a stiff method follows fixed steps.
    """
    from fsm_dyn.run.integrators import STIFF_METHODS  # with NumPy

    stepping = before != method and TIME_STEPPING in (before, method)
    if stepping or (method in STIFF_METHODS and _has_fixed_steps(before)):
        raise InputError(
            f"a run by {before} is not continued by {method}", found=method,
            remedy=f"continue it by {before}" if stepping else f"continue it by dopri5, and from there by {method}",
        )  # fmt: skip


def all_methods() -> tuple[str, ...]:
    """Return the names of all methods, those added to ``METHODS`` among them."""
    from fsm_dyn.run.integrators import METHODS, STIFF_METHODS  # with NumPy

    return (*METHODS, *STIFF_METHODS, TIME_STEPPING)


def _checked_strategy(strategy: str, method: str, derive_after: Allowance) -> str:
    """Return the strategy of a run by this method."""
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
    # time stepping evaluates no mode, so no reached mode has to be derived
    return "auto" if method == TIME_STEPPING and strategy == "compiled" else strategy


def _check_formulation(formulation: str, strategy: str, derive_after: Allowance) -> None:
    """Refuse an unknown formulation, and one that the other options contradict."""
    if formulation not in FORMULATIONS:
        raise InputError(
            f"there is no formulation '{formulation}'", allowed=", ".join(FORMULATIONS),
            remedy=did_you_mean(formulation, FORMULATIONS),
        )  # fmt: skip
    if formulation != FORMULATIONS[0] and (strategy == "online" or derive_after is not None):
        raise InputError(
            f"the formulation '{formulation}' derives every mode", found=f"strategy '{strategy}'",
            remedy="leave out strategy and derive_after",
        )  # fmt: skip


def _has_fixed_steps(method: str) -> bool:
    from fsm_dyn.run.integrators import METHODS  # with NumPy

    return (method in METHODS and not METHODS[method].adaptive) or method == TIME_STEPPING


def check_step(method: str, step: float | None) -> None:
    """Raise InputError for a method of fixed steps without their length (s)."""
    if _has_fixed_steps(method) and not (step is not None and 0.0 < step < math.inf):
        raise InputError(
            f"method '{method}' needs the length of its steps",
            found="no step" if step is None else f"step = {step:g}",
            allowed="a positive number, s",
            remedy="give it, step='1 ms' or on the command line --step '1 ms'",
        )


def _method_with(method: str, step: float) -> str:
    """Return the method of a run with fixed steps of this length (s)."""
    from fsm_dyn.run.integrators import METHODS  # with NumPy

    if _has_fixed_steps(method):
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


def _storable(value: Any) -> StoredInput | None:
    """Return an input of a run in its stored form, None for a Python function, which cannot be stored."""
    if isinstance(value, Mapping):
        parts = {key: _rows(part) for key, part in value.items()}
        return None if any(part is None for part in parts.values()) else parts  # type: ignore[return-value]
    return _rows(value)


def _rows(value: Any) -> float | str | list[list[float]] | None:
    if isinstance(value, str):
        return value
    import numpy as np

    try:
        table = np.asarray(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    listed: float | list[list[float]] | None = table.tolist() if table.ndim in (0, 2) else None
    return listed


def declared(name: str) -> Declared:
    """Return the declaration of an option: flag of the command line, its metavar, a line of help, default."""
    item = next(item for item in fields(RunOptions) if item.name == name)
    about, unit = item.metadata, item.metadata["unit"]
    return Declared(
        about["flag"], about["metavar"] or None, f"{about['text']}, {unit}." if unit else about["text"], item.default
    )


class Declared(NamedTuple):
    """Declaration of an option, for the command line and the documentation."""

    flag: str
    metavar: str | None
    text: str
    default: Any


@functools.cache
def _types() -> Mapping[str, Any]:
    """Return the types of the options, of modules that a command line does not load when it starts."""
    from fsm_dyn.core.arrays import Floats
    from fsm_dyn.language.values import Parameters
    from fsm_dyn.run.input_signals import InputValue
    from fsm_dyn.run.tolerances import Tolerances

    aliases = {"Floats": Floats, "Parameters": Parameters, "InputValue": InputValue}
    return get_type_hints(RunOptions, localns={**aliases, "Tolerances": Tolerances})


# -- Functions with the options as arguments by their names --------------------------------------------------

P = ParamSpec("P")
First = TypeVar("First")
Result = TypeVar("Result")


def refuse_unknown(function: str, given: Mapping[str, Any], others: Sequence[str] = ()) -> None:
    """Refuse names other than options of a run, as Python refuses an argument.

    ``function``: the name of the called function; ``others``: further arguments of the function, for the hint. Raises
    TypeError: there is one.
    """
    known = [item.name for item in fields(RunOptions)]
    for name in given:
        if name not in known:
            hint = did_you_mean(name, [*known, *others])
            refused = f"{function}() got an unexpected keyword argument '{name}'"
            raise TypeError(f"{refused}; {hint}" if hint else refused)


def takes_options(
    options: Callable[P, RunOptions],
) -> Callable[[Callable[[First, RunOptions], Result]], Callable[Concatenate[First, P], Result]]:
    """Have a function of something and options take the options by their names, with their documentation.

    ``options``: :class:`RunOptions`; a type checker takes names and types of arguments from it.
    """

    def decorated(function: Callable[[First, RunOptions], Result]) -> Callable[Concatenate[First, P], Result]:
        first = next(iter(inspect.signature(function).parameters.values()))
        known = functools.lru_cache(maxsize=64, typed=True)(options)

        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> Result:
            if not args and first.name in given:
                args = (given.pop(first.name),)
            kept = all(type(value) in _NUMBERS_AND_TEXTS for value in (*args[1:], *given.values()))
            try:
                chosen = (known if kept else options)(*args[1:], **given)
            except TypeError as error:
                refuse_unknown(function.__name__, given)
                raise TypeError(str(error).replace("RunOptions.__init__", function.__name__)) from None
            check_arguments(function.__name__, {first.name: args[0]}, types_of(function))
            return function(args[0], chosen)

        signature = inspect.Signature([first, *inspect.signature(options).parameters.values()])
        call.__signature__ = signature  # type: ignore[attr-defined]
        own, _, rest = (function.__doc__ or "").partition("    options : RunOptions\n")
        if rest:  # the documentation of the options in the place of one line
            described = (inspect.getdoc(RunOptions) or "").split("----------\n")[1].split("\n\nRaises")[0]
            indented = "".join(f"    {line}\n" if line else "\n" for line in described.splitlines())
            call.__doc__ = f"{own}{indented}\n{rest.partition(chr(10) * 2)[2]}"
        return call

    return decorated
