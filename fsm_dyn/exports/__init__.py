"""Exports: an automaton as sources independent of Python."""
