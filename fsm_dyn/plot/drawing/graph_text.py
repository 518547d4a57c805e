"""The mode graph as text for other tools: Graphviz DOT and Mermaid."""

from __future__ import annotations

import html

from fsm_dyn.graphics.diagram import LABELS, Diagram, at_most, shortened
from fsm_dyn.graphics.palette import FONT, INK, SOFT, mode_colours


def dot_quoted(text: str) -> str:
    """Return ``text`` as a DOT string that shows as written.

    Backslashes are doubled, for Graphviz reads one before a letter as the name of the node or the graph.
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "").replace("\n", "\\n")
    return f'"{escaped}"'


def to_dot(diagram: Diagram) -> str:
    """Return the diagram in the DOT language, drawn from left to right."""
    colours = mode_colours([box.key for box in diagram.boxes])
    lines = [
        f"digraph {dot_quoted(diagram.name or 'modes')} {{",
        "  rankdir=LR; nodesep=0.6; ranksep=0.9; pad=0.2;",
        f'  node [shape=box, style="rounded,filled", color="{INK}", penwidth=0.8, margin="0.16,0.09",'
        f' fontname="{FONT}", fontsize=11, fontcolor="{INK}"];',
        f'  edge [color="{INK}", penwidth=0.8, arrowsize=0.7, fontname="{FONT}", fontsize=9, fontcolor="{SOFT}"];',
    ]
    for box in diagram.boxes:
        rows = [f"<b>{html.escape(box.title)}</b>"]
        rows += [f'<font point-size="9">{html.escape(line)}</font>' for line in box.lines]
        label = f"<{'<br/>'.join(rows)}>"
        extra = ", penwidth=2.2" if box.initial else ', style="rounded,dashed"' if box.dashed else ""
        lines.append(f'  {dot_quoted(box.key)} [label={label}, fillcolor="{colours[box.key]}"{extra}];')
    for arrow in diagram.arrows:
        label = "\n".join(shortened(text) for text in at_most(arrow.labels, LABELS))
        extra = ", style=dashed" if arrow.dashed else ""
        lines.append(f"  {dot_quoted(arrow.source)} -> {dot_quoted(arrow.target)} [label={dot_quoted(label)}{extra}];")
    return "\n".join([*lines, "}", ""])


def mermaid_quoted(text: str) -> str:
    """Return ``text`` as a quoted Mermaid label that shows as written; what Mermaid or HTML read becomes a code."""
    escaped = "".join(char if char.isalnum() or char in " .,:+-*/=_→" else f"#{ord(char)};" for char in text)
    return f'"{escaped}"'


def to_mermaid(diagram: Diagram) -> str:
    """Return the diagram as a Mermaid flow chart; modes get plain numbers as identifiers."""
    colours = mode_colours([box.key for box in diagram.boxes])
    numbers = {box.key: f"m{i}" for i, box in enumerate(diagram.boxes)}
    lines = ["flowchart LR"]
    for box in diagram.boxes:
        rows = [f"<b>{mermaid_quoted(box.title)[1:-1]}</b>", *(mermaid_quoted(line)[1:-1] for line in box.lines)]
        label = "<br/>".join(rows)
        lines.append(f'  {numbers[box.key]}("{label}")')
    for arrow in diagram.arrows:
        label = "<br/>".join(mermaid_quoted(shortened(text))[1:-1] for text in at_most(arrow.labels, LABELS))
        if arrow.dashed:
            joint = f'-. "{label}" .->' if label else "-.->"
        else:
            joint = f'-- "{label}" -->' if label else "-->"
        lines.append(f"  {numbers[arrow.source]} {joint} {numbers[arrow.target]}")
    for box in diagram.boxes:
        width = "2.5px" if box.initial else "1px"
        fill, dashes = ("#FFFFFF", ",stroke-dasharray:4 3") if box.dashed else (colours[box.key], "")
        style = f"fill:{fill},stroke:{INK},stroke-width:{width},color:{INK}{dashes}"
        lines.append(f"  style {numbers[box.key]} {style}")
    return "\n".join([*lines, ""])
