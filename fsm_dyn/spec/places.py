"""A place for what goes wrong where no line of the file is at hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from fsm_dyn.errors import InputError, ModelError
from fsm_dyn.spec.model import Mechanism


@contextmanager
def placed(mechanism: Mechanism) -> Iterator[None]:
    """Let an error of a model leave with a place: that of ``initial``, else that of the model, if it has none.

    Parameters
    ----------
    mechanism : Mechanism
        Gives the places.

    Yields
    ------
    None

    Raises
    ------
    ModelError
        Also where arithmetic fails inside, as it does with numbers that overflow or are divided by zero.
    """
    where = mechanism.initial.where if mechanism.initial.where.file else mechanism.where
    try:
        with np.errstate(all="ignore"):  # what is no number is looked for in what comes out
            yield
    except InputError as error:
        if not error.where.file:
            error.where = where
        raise
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        raise ModelError(
            "the numbers of this model cannot be calculated with",
            where,
            found=str(error),
            remedy="look for a division by zero and for numbers beyond all measure",
        ) from error
