"""Runs the tutorials and shows what their cells print and display, as a notebook does."""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import os
import re
import tempfile
from typing import Any

_CELL = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Add its output to every cell of a tutorial or of the course; MkDocs calls this with the text of each page."""
    return with_outputs(markdown) if page.file.src_uri.startswith(("tutorials/", "course/")) else markdown


def with_outputs(markdown: str) -> str:
    """Run the cells of a page in order, in a folder that is removed, and return the page with their outputs."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    home = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return _CELL.sub(lambda cell: cell[0] + _output(cell[1], namespace), markdown)
        finally:
            os.chdir(home)


def _output(source: str, namespace: dict[str, Any]) -> str:
    """Run a cell; return what it prints, and the value of its last line, as Markdown."""
    body = ast.parse(source).body
    last = ast.Expression(body.pop().value) if body and isinstance(body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), namespace)  # noqa: S102 - the pages are ours
        if last is not None:
            value = eval(compile(last, "cell", "eval"), namespace)  # noqa: S307
    text = f"\n\n```text\n{printed.getvalue().rstrip()}\n```" if printed.getvalue() else ""
    return text + (f"\n\n{_shown(value)}" if value is not None else "")


def _shown(value: Any) -> str:
    """Return a value as HTML without empty lines, which would end it in Markdown."""
    if hasattr(value, "_repr_png_"):
        data = base64.b64encode(value._repr_png_()).decode()
        return f'<img class="output" alt="The figure that the cell draws" src="data:image/png;base64,{data}">'
    if hasattr(value, "_repr_html_"):
        html = re.sub(r"\n\s*\n", "\n", value._repr_html_())
        return f'<div class="output">\n{html}\n</div>'
    return f"```text\n{value!r}\n```"
