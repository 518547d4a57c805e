"""Turn each line ``::: fsm_dyn.NAME`` of a page into the signature and the docstring of the public name.

mkdocstrings does not read packages whose folders have no ``__init__.py``, as those of fsm_dyn.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import fsm_dyn

_ENTRY = re.compile(r"^::: fsm_dyn\.(\w+)$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace every entry; MkDocs calls this with each page's Markdown."""
    return _ENTRY.sub(lambda found: _entry(found[1], getattr(fsm_dyn, found[1])), markdown)


def _entry(name: str, value: Any) -> str:
    kind = "class" if inspect.isclass(value) else "def"
    text = f"{kind} {name}{_signature(value)}\n\n{inspect.getdoc(value) or ''}"
    return f"### {name}\n\n```text\n{text}\n```\n"


def _signature(value: Any) -> str:
    if inspect.isclass(value) and issubclass(value, Exception):
        return ""
    signature = inspect.signature(value)
    text = str(signature)
    if len(text) < 80:
        return text
    parameters = [str(x) for x in signature.parameters.values()]
    kinds = [x.kind for x in signature.parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in kinds:
        parameters.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    returned = signature.return_annotation
    result = "" if returned is inspect.Signature.empty else f" -> {returned}"
    return "(\n" + "".join(f"    {parameter},\n" for parameter in parameters) + f"){result}"
