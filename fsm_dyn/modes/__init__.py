"""Modes of a mechanism: active sets, enumeration, embedding of constraints, multipliers and guards."""
