"""Exports: an automaton as sources that run without Python."""

from fsm_dyn.exports.export import TARGETS, export

__all__ = ["TARGETS", "export"]
