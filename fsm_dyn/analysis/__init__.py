"""Sensitivities, limit cycles, equilibria, linearisation, verification and parameter studies."""
