"""The YAML language: text to a frozen, typed, checked mechanism whose expressions are still text."""

from fsm_dyn.spec import values
from fsm_dyn.spec.loader import heading, load
from fsm_dyn.spec.model import Mechanism
from fsm_dyn.spec.schema import json_schema
from fsm_dyn.spec.starter_template import starter

__all__ = ["Mechanism", "heading", "json_schema", "load", "starter", "values"]
