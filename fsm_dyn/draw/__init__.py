"""Diagrams, layouts and timelines as SVG text, without Matplotlib and the rest of the package."""
