"""Who is let in: the secret, the name of the server, the origin of a page, the size and the number of messages."""

import contextlib
import json
import socket
import time

import pytest
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from fsm_dyn.core.errors import Location, ModelError
from fsm_dyn.page import server
from fsm_dyn.page import server as serve
from fsm_dyn.page.broadcast import BURST, LONGEST
from tests.unit.page.conftest import TOKEN


def test_the_page_and_its_scripts_need_the_secret(client):
    assert client.get(f"/{TOKEN}/").status == 200
    script = client.get(f"/{TOKEN}/js/app.js")
    assert script.status == 200
    assert script.headers["content-type"].startswith("text/javascript")
    for path in ("/", "/other/", "/other/js/app.js", f"/{TOKEN}x/", f"/{TOKEN}/js/no.js", f"/{TOKEN}/vendor/README.md"):
        assert client.get(path).status == 404, path


@pytest.mark.parametrize(
    "path",
    [
        "../server.py",
        "..%2Fserver.py",
        "js/../../take.py",
        "%2e%2e/server.py",
        "/etc/passwd",
        "%00",
        "js/%00.js",
        "js",
        "x" * 5000,
        "%ff",
    ],
)
def test_nothing_outside_its_folder_is_served(client, path):
    assert client.get(f"/{TOKEN}/{path}").status == 404


@pytest.mark.parametrize("begun", [b"", b"GET /", b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /"])
def test_a_connection_that_asks_for_nothing_is_closed(client, monkeypatch, begun):
    """At first, with half a request, after an answer; a page's socket stays."""
    monkeypatch.setattr(serve, "HEADERS", 0.2)
    with client.socket() as page, socket.create_connection((serve.LOOPBACK, client.port), timeout=10) as line:
        line.sendall(begun)
        while line.recv(4096):
            pass
        page.send('{"do": "fly"}')
        assert json.loads(page.recv(5))["kind"] == "refused"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1:80", "localhost"])
def test_a_foreign_name_of_the_server_is_refused(client, host):
    assert client.get(f"/{TOKEN}/", host=host).status == 421
    with pytest.raises(InvalidHandshake):
        client.socket(host=host)


def test_the_name_localhost_is_known(client):
    assert client.get(f"/{TOKEN}/", host=f"localhost:{client.port}").status == 200


def test_the_policy_allows_only_the_server_itself(client):
    headers = client.get(f"/{TOKEN}/").headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://{host}", "http://127.0.0.1:1", None])
def test_a_foreign_origin_gets_no_socket(client, show, origin):
    with pytest.raises(InvalidHandshake) as caught:
        client.socket(origin=origin and origin.format(host=client.host))
    assert "403" in str(caught.value)
    assert show.pages == 0


def test_without_the_secret_there_is_no_socket(client, show):
    with pytest.raises(InvalidHandshake):
        client.socket("/other/live")
    assert show.pages == 0


def test_commands_arrive_and_bad_ones_are_reported(client, show):
    with client.socket() as socket:
        socket.send('{"do": "run"}')
        socket.send('{"do": "fly"}')
        payload = json.loads(socket.recv(5))
        assert (payload["kind"], payload["message"]) == ("refused", "unknown command")
        assert show.pages == 1
        socket.send('{"do": "step", "ticks": 2}')
        socket.send('{"do": "fly"}')
        socket.recv(5)
    assert show.asked == [{"do": "run"}, {"do": "step", "ticks": 2}]
    until = time.monotonic() + 5
    while show.pages and time.monotonic() < until:
        time.sleep(0.01)
    assert show.pages == 0


def closing_code(socket):
    """What a socket is closed with; fails if it is not closed within five seconds."""
    try:
        for _ in range(10_000):
            socket.recv(5)
    except ConnectionClosed as closed:
        return closed.rcvd.code
    raise AssertionError("still open")


def test_a_long_message_closes(client):
    with client.socket() as socket:
        socket.send("x" * (LONGEST + 1))
        assert closing_code(socket) == server.TOO_BIG


def test_binary_messages_close(client):
    with client.socket() as socket:
        socket.send(b"\0")
        assert closing_code(socket) == server.POLICY_VIOLATION


def test_too_many_messages_close(client, show):
    sent = int(BURST) + 2000
    with client.socket() as socket:
        try:
            for _ in range(sent):
                socket.send('{"do": "pause"}')
        except ConnectionClosed:
            pass
        assert closing_code(socket) == server.POLICY_VIOLATION
    assert BURST <= len(show.asked) < sent


def test_so_many_pages_and_no_more(client):
    with contextlib.ExitStack() as pages:
        sockets = [pages.enter_context(client.socket()) for _ in range(server.MOST_PAGES)]
        with client.socket() as socket:
            assert closing_code(socket) == server.TRY_LATER
        for socket in sockets:
            socket.send("{}")
            assert json.loads(socket.recv(5))["kind"] == "refused"
    with client.socket() as socket:
        socket.send("{}")
        assert json.loads(socket.recv(5))["kind"] == "refused"


def test_an_error_of_the_model_is_reported_with_its_place(client, show):
    show.failed(ModelError("no such frame 'C'", Location("cart.yaml", 12, 3), found="C", remedy="did you mean 'B'?"))
    with client.socket() as socket:
        payload = json.loads(socket.recv(5))
    assert payload == {
        "kind": "error", "where": "cart.yaml:12:3", "message": "no such frame 'C'",
        "notes": [["found", "C"], ["remedy", "did you mean 'B'?"]],
    }  # fmt: skip
