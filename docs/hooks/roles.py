"""Cross references of docstrings (``:func:`load```) as code, as the Python interface quotes them in Markdown."""

from __future__ import annotations

import re
from typing import Any

_ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):(?=<code>|`)")


def on_page_content(html: str, **_: Any) -> str:
    """Remove the roles; MkDocs calls this with the HTML of each page."""
    return _ROLE.sub("", html)
