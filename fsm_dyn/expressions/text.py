"""A piece of text from a model, with its place."""

from __future__ import annotations

from dataclasses import dataclass

from fsm_dyn.errors import NOWHERE, Location


@dataclass(frozen=True, slots=True)
class Text:
    """An expression as written, with its place; numbers are kept as text too (``"20 kg"``, ``"0.4"``)."""

    text: str
    where: Location = NOWHERE

    def __str__(self) -> str:
        return self.text
