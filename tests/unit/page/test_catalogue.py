"""The page of all shipped models: what it lists, and who may start one."""

import http.client
import json

import pytest
from typer.testing import CliRunner

from fsm_dyn.cli.console import app
from fsm_dyn.language import models
from fsm_dyn.page.broadcast import LiveBroadcast
from fsm_dyn.page.live_view import LiveOptions
from fsm_dyn.page.server import LOOPBACK, Catalogue, configured
from tests.unit.page.conftest import TOKEN, served


class Recorded(Catalogue):
    """Nothing is compiled; what is to start is kept."""

    def __init__(self):
        super().__init__(LiveBroadcast(LiveOptions()), lambda name: None)
        self.started = []

    async def _start(self, name):
        self.started.append(name)


@pytest.fixture
def catalogue():
    return Recorded()


@pytest.fixture
def ask(catalogue):
    """Return a function that sends a request and gives status and body."""
    with served(lambda port: configured(LiveBroadcast(LiveOptions()), TOKEN, port, catalogue)) as port:

        def send(method, path, **headers):
            line = http.client.HTTPConnection(LOOPBACK, port, timeout=10)
            line.request(method, path, headers={"Host": f"{LOOPBACK}:{port}", **headers})
            answer = line.getresponse()
            body = answer.read()
            line.close()
            return answer.status, body

        send.origin = f"http://{LOOPBACK}:{port}"
        yield send


def test_every_shipped_model_is_listed_with_summary_and_picture(ask):
    status, body = ask("GET", f"/{TOKEN}/catalogue")
    found = json.loads(body)
    assert status == 200
    assert [model["name"] for model in found] == [name for own in models.by_theme().values() for name in own]
    assert sorted(model["name"] for model in found) == models.names()
    assert found[0]["name"] == "latch_door"
    assert len({model["theme"] for model in found}) >= 5
    assert all(model["summary"] and model["picture"] for model in found)
    status, picture = ask("GET", f"/{TOKEN}/pictures/latch")
    assert (status, picture[:4]) == (200, b"\x89PNG")


@pytest.mark.parametrize("path", ["catalogue", "pictures/latch"])
def test_nothing_is_listed_without_the_secret(ask, path):
    assert ask("GET", f"/another/{path}")[0] == 404


def test_only_the_page_itself_starts_a_model(ask, catalogue):
    path = f"/{TOKEN}/start/latch"
    assert ask("POST", path)[0] == 403
    assert ask("POST", path, Origin="http://elsewhere.example")[0] == 403
    assert ask("POST", "/another/start/latch", Origin=ask.origin)[0] == 404
    assert ask("POST", f"/{TOKEN}/start/..%2flatch", Origin=ask.origin)[0] in (404, 405)
    assert ask("POST", f"/{TOKEN}/start/nope", Origin=ask.origin)[0] == 404
    assert ask("GET", path, Origin=ask.origin)[0] in (404, 405)
    assert catalogue.started == []
    assert ask("POST", path, Origin=ask.origin)[0] == 204
    ask("GET", f"/{TOKEN}/catalogue")  # the start is a task of the server's loop, which has passed by then
    assert catalogue.started == ["latch"]


@pytest.mark.parametrize("option", [["--watch"], ["--set", "m=1"], ["--scenario", "forte"], ["--initial", "x=1"]])
def test_options_of_a_model_need_one(option):
    result = CliRunner().invoke(app, ["view", *option])
    assert result.exit_code == 2
    assert "this option needs a model" in result.output
