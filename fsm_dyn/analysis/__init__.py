"""Analyses by many runs: studies, requirements, gradients, cycles, verification."""
