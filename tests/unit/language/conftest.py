"""A small model, changed by tests in one place."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fsm_dyn.language import loader
from fsm_dyn.language.model import Mechanism

MODELS = Path(__file__).parent / "models"

Load = Callable[..., Mechanism]


@pytest.fixture
def block() -> Load:
    """Return a function that loads a block in a plane, with units, sections replaced by keyword."""

    def load(**sections: Any) -> Mechanism:
        model: dict[str, Any] = {
            "fsm_dyn": 1,
            "parameters": {"m": "2 kg", "k": "50 N/m", "mu": "0.4", "r": "0.1 m", "lip": ["10 mm", "20 mm"]},
            "coordinates": {"x": "m", "y": "m", "q": "rad"},
            "frames": {"B": {"rotate": {"z": "q"}}},
            "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}, "K": {"from": "P", "at": "-r*B.y"}},
            "bodies": {"box": {"frame": "B", "center": "P", "mass": "m", "inertia": {"zz": "m*r**2"}}},
            "inputs": {"push": "N"},
            **sections,
        }
        return loader.load({key: value for key, value in model.items() if value is not None})

    return load


@pytest.fixture
def everything() -> Mechanism:
    """Return the model with every section."""
    return loader.load(MODELS / "everything.yaml")


@pytest.fixture
def cart() -> Mechanism:
    """Return the cart of the reference of the language."""
    return loader.load(MODELS / "language_cart.yaml")
