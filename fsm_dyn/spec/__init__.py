"""The YAML language: text to a frozen, typed, checked mechanism whose expressions are still text."""

from fsm_dyn.spec.loader import load
from fsm_dyn.spec.model import Mechanism

__all__ = ["Mechanism", "load"]
