"""Pictures of a mode graph, and its text in DOT and Mermaid.

SVG, PNG and PDF go through a layout of our own and Matplotlib, or through Graphviz where it is asked for.
"""

from fsm_dyn.automaton.mode_groups import grouped
from fsm_dyn.graphics.diagram import Diagram
from fsm_dyn.plot.drawing.diagram import diagram
from fsm_dyn.plot.drawing.exchange import EXCHANGE, from_graphml, from_json, to_graphml, to_json, to_transitions
from fsm_dyn.plot.drawing.files import FORMATS, draw, format_of, known_format
from fsm_dyn.plot.drawing.graph_text import to_dot, to_mermaid
from fsm_dyn.plot.drawing.uppaal import to_uppaal

__all__ = [
    "EXCHANGE",
    "FORMATS",
    "Diagram",
    "diagram",
    "draw",
    "format_of",
    "from_graphml",
    "from_json",
    "grouped",
    "known_format",
    "to_dot",
    "to_graphml",
    "to_json",
    "to_mermaid",
    "to_transitions",
    "to_uppaal",
]
