"""A page's real server on this machine, without a run behind it."""

import contextlib
import http.client
import threading
import time

import pytest
import uvicorn
from websockets.sync.client import connect

from fsm_dyn.page.broadcast import LiveBroadcast
from fsm_dyn.page.live_view import LiveOptions
from fsm_dyn.page.server import LOOPBACK, configured, listen

TOKEN = "a-secret"


class Quiet(LiveBroadcast):
    """Nothing runs; what a page asks for is kept."""

    def __init__(self):
        super().__init__(LiveOptions())
        self.asked = []

    @property
    def pages(self):
        return len(self._listeners)

    async def carry_out(self, command):
        self.asked.append(command)


class Client:
    """Asks a server as a page would, or as another client."""

    def __init__(self, port):
        self.port, self.host = port, f"{LOOPBACK}:{port}"

    def get(self, path, host=None):
        line = http.client.HTTPConnection(LOOPBACK, self.port, timeout=10)
        line.putrequest("GET", path, skip_host=True)
        line.putheader("Host", self.host if host is None else host)
        line.endheaders()
        answer = line.getresponse()
        answer.read()
        line.close()
        return answer

    def socket(self, path=f"/{TOKEN}/live", origin="", host=None):
        origin = f"http://{self.host}" if origin == "" else origin
        if host is None:
            return connect(f"ws://{self.host}{path}", origin=origin)
        line = http.client.socket.create_connection((LOOPBACK, self.port), timeout=10)
        return connect(f"ws://{host}{path}", origin=origin, sock=line)


@pytest.fixture
def show():
    return Quiet()


@contextlib.contextmanager
def served(configuration):
    """Serve until the block ends; ``configuration`` makes it for a port, which this gives."""
    listening = listen(0)
    port = listening.getsockname()[1]
    server = uvicorn.Server(configuration(port))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    until = time.monotonic() + 10
    while not server.started and time.monotonic() < until:
        time.sleep(0.01)
    yield port
    server.should_exit = True
    thread.join(10)
    listening.close()
    assert not thread.is_alive()


@pytest.fixture
def client(show):
    with served(lambda port: configured(show, TOKEN, port)) as port:
        yield Client(port)
