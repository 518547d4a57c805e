"""Turn the formulas of a page into MathML while the site is built, so that no browser has to fetch a renderer.

``pymdownx.arithmatex`` marks formulas; ``\\tag{n}`` numbers an equation and gives it the anchor ``eq-n``.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

_BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)
_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
_TAG = re.compile(r"\\tag\{([^}]*)\}")


def on_page_content(page_html: str, **_: Any) -> str:
    """Replace every formula; MkDocs calls this with each page's HTML."""
    return _INLINE.sub(_inline, _BLOCK.sub(_block, page_html))


def _block(match: re.Match[str]) -> str:
    source = html.unescape(match.group(1)).strip()
    tag = _TAG.search(source)
    formula = convert(_TAG.sub("", source), display="block")
    if tag is None:
        return f'<div class="equation">{formula}</div>'
    number = html.escape(tag.group(1))
    return f'<div class="equation" id="eq-{number}">{formula}<span class="number">({number})</span></div>'


def _inline(match: re.Match[str]) -> str:
    return convert(html.unescape(match.group(1)).strip())
