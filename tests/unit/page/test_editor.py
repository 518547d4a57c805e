"""The editor of a model file: errors by line, words for completion, and that only its page may save."""

import asyncio
import json

import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException

import fsm_dyn
from fsm_dyn.page.editor import Editor, completions, editor_routes

TEXT = fsm_dyn.load("bouncing_ball").text


def asked(app, path, body=None, origin=""):
    """Status and text of the answer to a request; with a body it is a POST."""
    sent = []
    headers = [(b"host", b"here"), *([(b"origin", origin.encode())] if origin else [])]
    scope = {
        "type": "http", "method": "GET" if body is None else "POST", "path": path, "raw_path": path.encode(),
        "query_string": b"", "headers": headers, "scheme": "http", "server": ("here", 80), "root_path": "",
    }  # fmt: skip

    async def receive():
        return {"type": "http.request", "body": (body or "").encode(), "more_body": False}

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], b"".join(part.get("body", b"") for part in sent).decode()


@pytest.fixture
def editor(tmp_path):
    path = tmp_path / "ball.yaml"
    path.write_text(TEXT, encoding="utf-8")
    return Editor(path)


def test_an_error_has_the_line_of_its_cause(editor):
    assert editor.check(TEXT) is None
    lines = TEXT.splitlines()
    wrong = next(k for k, line in enumerate(lines) if "gap: y" in line)
    found = editor.check(
        "\n".join(line.replace("gap: y", "gap: yy") if k == wrong else line for k, line in enumerate(lines))
    )
    assert found["line"] == wrong + 1
    assert "yy" in f"{found['message']} {found['notes']}"


def test_completion_offers_the_keys_of_the_section():
    words = completions()
    assert {"bodies", "contacts", "phases"} <= set(words[""])
    assert {"gap", "between", "friction", "restitution"} <= set(words["contacts"])
    assert {"mass", "center", "inertia"} <= set(words["bodies"])
    assert "mass" not in words["contacts"]


def test_only_the_page_saves(editor):
    def check(token):
        if token != "secret":
            raise HTTPException(404)

    app, own = Starlette(routes=editor_routes(editor, check)), "http://here"
    assert json.loads(asked(app, "/secret/source")[1])["text"] == TEXT
    assert asked(app, "/other/source")[0] == 404
    changed = TEXT.replace("0.8", "0.5", 1)
    for origin, path in ((own, "/other/save"), ("http://elsewhere", "/secret/save"), ("", "/secret/save")):
        assert asked(app, path, changed, origin)[0] in (403, 404)
    assert asked(app, "/secret/check", changed, own) == (200, "null")
    assert asked(app, "/secret/save", "a" * 1_000_001, own)[0] == 413
    assert editor.path.read_text(encoding="utf-8") == TEXT
    assert asked(app, "/secret/save", changed, own) == (200, "null")
    assert editor.path.read_text(encoding="utf-8") == changed
    assert asked(Starlette(routes=editor_routes(None, check)), "/secret/source")[0] == 404
