"""Layout of kernel arguments: positions of names in the arrays ``x`` and ``c``."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import cached_property

from fsm_dyn.core.errors import InputError, did_you_mean

TIME = "t"
LONGEST_NAME = 200
_NAME = re.compile(r"[^\W\d][\w.\-\[\]]*")


@dataclass(frozen=True)
class Layout:
    """The arguments of the kernels of one model: ``void kernel(double t, const double *x, const double *c, ...)``.

    ``x = [q | u]`` is the state, ``c = [p | w | w' | w'' | sigma | memory | w''']`` the context: parameters, inputs,
    their rates (the third for the rates of forces), a slip direction per contact, memory values.  SI units.

    Parameters
    ----------
    q, u : tuple of str
        Coordinates and generalized speeds.
    p : tuple of str
        Parameters; vectors are flattened (``lip[0]``).
    w : tuple of str
        Inputs; their rates are the symbols ``<w>.rate``, ``<w>.rate2`` and ``<w>.rate3``.
    contacts : tuple of str
        Contacts; their slip directions are the symbols ``<contact>.sigma``.
    memory : tuple of str
        Discrete variables of user-defined transitions.

    Raises
    ------
    InputError
        A name is malformed or stands for two arguments.
    """

    q: tuple[str, ...] = ()
    u: tuple[str, ...] = ()
    p: tuple[str, ...] = ()
    w: tuple[str, ...] = ()
    contacts: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            names = tuple(getattr(self, field.name))
            object.__setattr__(self, field.name, names)
            for name in names:
                if not isinstance(name, str) or len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
                    raise InputError(f"malformed name in '{field.name}' of a layout", found=repr(name)[:LONGEST_NAME])
        seen: set[str] = set()
        for name in self.arguments:
            if name in seen:
                raise InputError(f"the name '{name}' stands for two arguments", remedy="rename one of them")
            seen.add(name)

    @cached_property
    def x(self) -> tuple[str, ...]:
        """Names of the entries of the state ``x``."""
        return self.q + self.u

    @cached_property
    def c(self) -> tuple[str, ...]:
        """Names of the entries of the context ``c``."""
        rates = tuple(f"{name}.rate" for name in self.w) + tuple(f"{name}.rate2" for name in self.w)
        third = tuple(f"{name}.rate3" for name in self.w)
        return self.p + self.w + rates + tuple(f"{name}.sigma" for name in self.contacts) + self.memory + third

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """All symbol names in order: ``t``, then ``x``, then ``c``."""
        return (TIME, *self.x, *self.c)

    @cached_property
    def positions(self) -> dict[str, int]:
        """Symbol name to its position in :attr:`arguments`."""
        return {name: i for i, name in enumerate(self.arguments)}

    @property
    def n_x(self) -> int:
        """Length of the state."""
        return len(self.q) + len(self.u)

    @property
    def n_c(self) -> int:
        """Length of the context."""
        return len(self.p) + 4 * len(self.w) + len(self.contacts) + len(self.memory)

    @property
    def q_slice(self) -> slice:
        """Coordinates in ``x``."""
        return slice(0, len(self.q))

    @property
    def u_slice(self) -> slice:
        """Generalized speeds in ``x``."""
        return slice(len(self.q), self.n_x)

    @property
    def p_slice(self) -> slice:
        """Parameters in ``c``."""
        return slice(0, len(self.p))

    @property
    def w_slice(self) -> slice:
        """Inputs in ``c``."""
        return slice(len(self.p), len(self.p) + len(self.w))

    @property
    def w_rate_slice(self) -> slice:
        """First rates of the inputs in ``c``."""
        return slice(self.w_slice.stop, self.w_slice.stop + len(self.w))

    @property
    def w_rate2_slice(self) -> slice:
        """Second rates of the inputs in ``c``."""
        return slice(self.w_rate_slice.stop, self.w_rate_slice.stop + len(self.w))

    @property
    def sigma_slice(self) -> slice:
        """Slip directions in ``c``."""
        return slice(self.w_rate2_slice.stop, self.w_rate2_slice.stop + len(self.contacts))

    @property
    def memory_slice(self) -> slice:
        """Memory values in ``c``."""
        return slice(self.sigma_slice.stop, self.sigma_slice.stop + len(self.memory))

    @property
    def w_rate3_slice(self) -> slice:
        """Third rates of the inputs in ``c``."""
        return slice(self.memory_slice.stop, self.n_c)

    def position(self, name: str) -> int:
        """Return the position of a symbol in :attr:`arguments`.

        Raises
        ------
        InputError
            There is no such argument.
        """
        place = self.positions.get(name)
        if place is None:
            raise InputError(f"'{name}' is not an argument of the kernels", remedy=did_you_mean(name, self.arguments))
        return place

    def to_data(self) -> dict[str, list[str]]:
        """Return plain lists by field name."""
        return {field.name: list(getattr(self, field.name)) for field in fields(self)}
