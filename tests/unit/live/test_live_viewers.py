"""Live runs in viewers: messages of the Foxglove protocol and recordings of Rerun show rows of the run, bit for bit."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection

import numpy as np
import pytest
from typer.testing import CliRunner
from websockets.exceptions import ConnectionClosedOK
from websockets.sync.client import connect

import fsm_dyn
from fsm_dyn.cli.console import app
from fsm_dyn.core.errors import InputError
from fsm_dyn.core.processes import NICENESS
from fsm_dyn.live.launch import coupled_graph
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.recording import read_recording
from fsm_dyn.live.replay import off_line
from fsm_dyn.live.session import LiveSession
from fsm_dyn.live.viewers import (
    MOST_WAITING,
    PROTOCOLS,
    Foxglove,
    FoxgloveServer,
    LiveViewers,
    Rerun,
    rerun_address,
)
from fsm_dyn.page.live_view import LiveOptions, LiveView
from fsm_dyn.run.run_timeline import place_scene
from fsm_dyn.run.viewer_scene import LOG, SCENE, moving_scene
from fsm_dyn.runtime.abi import RecordColumn
from tests.unit.live.conftest import MOTIONS
from tests.unit.run.results.test_viewers import entities
from tests.unit.run.test_run_mcap import fits

STATE = {"title": "state", "type": "object", "properties": {"x": {"type": "number"}}}


class Client:
    """Viewer that subscribes to all channels; contents by topic with their times in ns, checked by the schemas."""

    def __init__(self, address, protocol=PROTOCOLS[1]):
        connection = connect(address, subprotocols=[protocol], compression=None, max_size=None)
        self.socket = ExitStack().enter_context(connection)
        self.info = json.loads(self.socket.recv(30.0))
        self.channels, self.found, self.told, self.clock = {}, {}, [], []

    def read(self, timeout=0.5):
        """Read until nothing comes for a while."""
        while True:
            try:
                message = self.socket.recv(timeout)
            except (TimeoutError, ConnectionClosedOK):
                return self.found
            self.take(message)

    def read_until(self, topic, count):
        """Read until so many messages of a topic came: a running session is never quiet."""
        while len(self.found.get(topic, ())) < count:
            self.take(self.socket.recv(30.0))

    def take(self, message):
        if isinstance(message, str):
            content = json.loads(message)
            self.told.append(content)
            if content["op"] == "advertise":
                new = {channel["id"]: channel for channel in content["channels"]}
                self.channels |= new
                asked = [{"id": 1000 + number, "channelId": number} for number in new]
                self.socket.send(json.dumps({"op": "subscribe", "subscriptions": asked}))
        elif message[0] == 2:
            self.clock.append(struct.unpack("<BQ", message)[1])
        else:
            _, subscription, at = struct.unpack_from("<BIQ", message)
            channel, content = self.channels[subscription - 1000], json.loads(message[13:])
            fits(content, json.loads(channel["schema"]), channel["topic"])
            self.found.setdefault(channel["topic"], []).append((at, content))


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def rerun_program(path):
    """The program Rerun, which saves what it receives; yields its address when it listens."""
    port = free_port()
    command = [sys.executable, "-m", "rerun_cli", "--bind", "127.0.0.1", "--port", str(port), "--save", str(path)]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **silent, start_new_session=True) as program:  # it starts another one
        try:
            patience = time.monotonic() + 60.0
            while True:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
                    break
                assert time.monotonic() < patience
                time.sleep(0.1)
            yield str(port)
        finally:
            os.killpg(program.pid, signal.SIGTERM)


@contextmanager
def serving(name="model"):
    server = FoxgloveServer(name)
    try:
        yield server
    finally:
        server.close()


def session(held, name, record, ticks=12_000):
    motion = MOTIONS[name]
    options = {"axes": 1 + max(item[0] for item in motion), "motion": motion, "stop": "watchdog"}
    settings = LiveSettings(
        paced=False, realtime_privileges=False, watchdog_timeout=20.0, stall_ticks=10**6, ticks=ticks
    )
    return LiveSession.start(coupled_graph(held(name)), "scripted", options, settings=settings, record=record)


def shown(run, *viewers):
    """Show a run to its end; return the report of its viewers."""
    with run:
        following = LiveViewers(run, viewers)
        assert run.wait(120.0)
        return following.close()


@pytest.fixture(scope="module")
def watched(held, tmp_path_factory):
    """A run with a viewer: messages by topic, the report, and the run as its recording has it."""
    path = tmp_path_factory.mktemp("watched") / "run.mcap"
    viewer = Foxglove("latch_door")
    client = Client(viewer.address)
    run = session(held, "latch_door", path)
    with run:
        following = LiveViewers(run, [viewer])
        while not run.wait(0.0):
            client.read(0.05)
        client.read(0.2)
        told = following.close()
    found = client.read()
    viewer.close()
    return found, told, off_line(read_recording(path)), read_recording(path)


def test_rows_are_those_of_the_run(watched):
    found, told, run, recorded = watched
    ticks = {row[1]: row for row in recorded.rows}
    assert told == {"rows": len(found["/state"]), "dropped": 0, "transitions_lost": 0, "failure": ""}
    assert len(found["/state"]) > 1
    names = recorded.columns.state
    for at, content in found["/state"]:
        assert at == round(content["t"] * 1e9)
        row = ticks[content["t"]]
        assert [content[name] for name in names] == row[recorded.columns.places["state"]].tolist()
    assert found["/state"][-1][1]["t"] == recorded.rows[-1, 1]  # the last tick
    for at, content in found["/energy"]:
        expected = run.sample([min(at * 1e-9, run.t[-1])])["energy.kinetic"][0]
        np.testing.assert_allclose(content["kinetic"], expected, rtol=1e-2, atol=1e-6)  # dense output of steps


def test_transitions_are_those_of_the_run(watched):
    found, _, run, recorded = watched
    times = recorded.records[:, 1 + RecordColumn.TIME].tolist()
    seen = [content["time"] for _, content in found["/transitions"]]
    assert len(seen) > 1
    missed = times.index(seen[0])  # before the viewer had subscribed
    assert seen == times[missed:]
    complete = [str(one) for one in run.transitions][missed:]  # those of the last tick may be missing
    assert [content["message"] for _, content in found["/log"]][: len(complete)] == complete


def test_frames_are_where_the_bodies_are(watched):
    found, _, run, _ = watched
    outlines = found["/scene"][0][1]["entities"]
    written = moving_scene(run.rows, run.sample).outline_message()[3]["entities"]  # as files have them
    fields = ("id", "frame_id", "metadata", "spheres", "texts")
    assert [[item[key] for key in fields] for item in outlines] == [[item[key] for key in fields] for item in written]
    frames = {item["frame_id"] for item in outlines}
    times = np.minimum([at * 1e-9 for at, _ in found["/tf"]], run.t[-1])
    placed = place_scene(run.model.scene, run.sample(times))
    for k, (_, content) in enumerate(found["/tf"]):
        assert {one["child_frame_id"] for one in content["transforms"]} == frames
        for one in content["transforms"]:
            place = placed.point(one["child_frame_id"].split(" at ")[1])[k]
            np.testing.assert_allclose([one["translation"][axis] for axis in "xyz"], place, atol=1e-7)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_late_viewers_get_the_latest_messages(protocol):
    with serving() as server:
        server.publish([(0.5, "/state", STATE, {"x": 1.0}), (0.75, "/state", STATE, {"x": 2.0})])
        client = Client(server.address, protocol)
        server.publish([(1.0, "/other", STATE, {"x": 3.0})])
        found = client.read()
        assert client.socket.subprotocol == protocol
        assert (client.info["op"], client.info["capabilities"]) == ("serverInfo", ["time"])
        assert found == {"/state": [(750_000_000, {"x": 2.0})], "/other": [(1_000_000_000, {"x": 3.0})]}
        assert client.clock == [1_000_000_000]
        client.socket.send(json.dumps({"op": "unsubscribe", "subscriptionIds": [1001]}))
        client.read(0.1)
        server.publish([(2.0, "/state", STATE, {"x": 4.0})])
        assert client.read()["/state"] == [(750_000_000, {"x": 2.0})]


def test_a_viewer_that_breaks_off_is_forgotten(caplog):
    with serving() as server:
        client = Client(server.address)
        client.read(0.1)
        client.socket.socket.shutdown(socket.SHUT_RDWR)
        time.sleep(0.2)
        server.publish([(1.0, "/state", STATE, {"x": 1.0})])
        assert Client(server.address).read() == {"/state": [(1_000_000_000, {"x": 1.0})]}
    assert not caplog.records


@pytest.mark.parametrize(
    "request_",
    [
        "nonsense", "[]", '{"op": "advertise", "channels": []}', '{"op": "subscribe", "subscriptions": 3}', b"\x01abc",
        '{"op": "subscribe", "subscriptions": [{"id": 1, "channelId": 99}]}', "[" * 30_000,
    ],
)  # fmt: skip
def test_other_requests_are_answered_by_a_warning(request_):
    with serving() as server:
        client = Client(server.address)
        client.socket.send(request_)
        client.read()
        assert [item["op"] for item in client.told] == ["advertise", "status"]
        assert client.told[1]["level"] == 1
        server.publish([(1.0, "/state", STATE, {"x": 1.0})])
        assert client.read() == {"/state": [(1_000_000_000, {"x": 1.0})]}


def test_only_the_address_with_its_secret_on_this_machine_is_answered():
    with serving() as server:
        place = server.address.removeprefix("ws://").split("/")
        for path, host, status in ((place[1], "evil.example:80", 421), ("", place[0], 404), ("x" * 32, place[0], 404)):
            connection = HTTPConnection(place[0], timeout=10.0)
            headers = {
                "Host": host, "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
                "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
            }  # fmt: skip
            connection.request("GET", f"/{path}", headers=headers)
            assert connection.getresponse().status == status
            connection.close()
        local = socket.socket()
        local.connect((place[0].split(":")[0], int(place[0].split(":")[1])))  # on the loopback interface
        local.close()
        with pytest.raises(InputError, match="cannot be used"):
            FoxgloveServer("other", int(place[0].split(":")[1]))


def test_a_viewer_that_does_not_read_loses_the_oldest_messages():
    """It gets the latest one in the end, and the publisher has not waited for it."""
    size, count = 200_000, 3 * MOST_WAITING
    with serving() as server:
        server.publish([(0.0, "/state", STATE, {"x": 0.0})])
        client = Client(server.address)
        client.take(client.socket.recv(30.0))
        client.take(client.socket.recv(30.0))
        begin = time.process_time()
        for k in range(count):
            server.publish([(float(k), "/state", STATE, {"x": float(k), "text": "-" * size})])
        assert time.process_time() - begin < 20.0
        patience = time.monotonic() + 60.0
        while server.dropped < count - MOST_WAITING and time.monotonic() < patience:
            time.sleep(0.01)
        found = client.read(2.0)["/state"]
        lost = count + 1 - len(found)
        assert 0 < lost <= server.dropped
        assert found[-1][1]["x"] == count - 1
        assert [at for at, _ in found] == sorted(at for at, _ in found)


@pytest.mark.skipif(sys.platform != "linux", reason="a thread has a priority of its own on Linux alone")
def test_viewers_give_way_to_ticks(held):
    """The threads of viewers, and only they, have a lower priority than the session."""
    with serving() as server:
        own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        run, seen = session(held, "latch_door", None, ticks=200), []

        class Viewer:
            dropped = 0

            def show(self, row, moving, transitions, *, first):
                seen.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

        shown(run, Viewer())
        run.close()
        seen.append(os.getpriority(os.PRIO_PROCESS, server._thread.native_id))
        assert len(seen) > 1
        assert {*seen} == {NICENESS}
        assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == own


def test_the_run_continues_without_a_viewer_that_failed(held, tmp_path):
    class Broken:
        dropped = 0

        def show(self, row, moving, transitions, *, first):
            raise OSError("gone")

    run = session(held, "latch_door", None, ticks=200)
    told = shown(run, Broken())
    assert told["failure"] == "OSError: gone"
    assert run.close()["ticks"] == 200


@pytest.mark.parametrize(
    "text", ["0", "70000", "9876x", "http://127.0.0.1:9876/proxy", "rerun+http://10.0.0.1:9876/proxy", "rerun+http://a"]
)
def test_addresses_of_other_machines_are_refused(text):
    with pytest.raises(InputError, match="not the address of a viewer on this machine"):
        rerun_address(text)


def test_commands_name_their_faults(monkeypatch):
    done = CliRunner().invoke(app, ["live", "bouncing_ball", "--rerun", "10.0.0.1:9"])
    assert "not the address of a viewer on this machine" in done.output
    monkeypatch.setattr("importlib.import_module", _refuse)
    for extra, begin in (("view", lambda: FoxgloveServer("model")), ("rerun", lambda: Rerun("model"))):
        with pytest.raises(InputError, match=rf"not installed(.|\n)*fsm-dyn\[{extra}\]"):
            begin()


def _refuse(name):
    raise ModuleNotFoundError(name)


@pytest.mark.long
def test_rerun_receives_the_run(held, tmp_path):
    """Rerun's own program saves the stream, its own reader opens the file."""
    port = free_port()
    with pytest.raises(InputError, match=rf"no viewer listens(.|\n)*--port {port}"):
        Rerun("latch_door", str(port))
    with rerun_program(tmp_path / "stream.rrd") as address:
        viewer = Rerun("latch_door", address)
        told = shown(session(held, "latch_door", tmp_path / "run.mcap", ticks=30_000), viewer)
        viewer.close()
        time.sleep(1.0)
    recorded = read_recording(tmp_path / "run.mcap")
    run = off_line(recorded)
    found = entities(tmp_path / "stream.rrd")
    for k, name in enumerate(recorded.columns.state):
        scalars = found[f"/run/{name}"]
        assert len(scalars["time"]) == told["rows"] > 1
        values = recorded.rows[:, recorded.columns.places["state"]][:, k]
        assert {value[0] for value in scalars["Scalars:scalars"]} <= {*values.tolist()}
    assert len(found["/transitions"]["time"]) == len(recorded.records)
    shape = run.model.scene.shapes[0]
    entity = f"/scene/{shape.frame}\\ at\\ {shape.origin}"
    places = np.array([values[0] for values in found[entity]["Transform3D:translation"]])
    times = np.minimum([value.total_seconds() for value in found[entity]["time"]], run.t[-1])
    expected = place_scene(run.model.scene, run.sample(times)).point(shape.origin)
    np.testing.assert_allclose(places, expected, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("schema", [LOG, SCENE], ids=lambda schema: schema["title"])
def test_messages_have_the_form_of_the_makers_server(schema):
    """The same channel and message by the server of the makers of the protocol, to the same client."""
    import foxglove

    context = foxglove.Context()
    given = foxglove.Schema(name=schema["title"], encoding="jsonschema", data=json.dumps(schema).encode())
    theirs = foxglove.start_server(name="theirs", port=0, context=context)
    channel = foxglove.Channel("/topic", schema=given, message_encoding="json", context=context)
    with serving() as ours:
        ours.publish([(0.0, "/topic", schema, {})])
        clients = [Client(f"ws://127.0.0.1:{theirs.port}", PROTOCOLS[0]), Client(ours.address, PROTOCOLS[0])]
        for client in clients:
            client.read()
        channel.log(b"{}", log_time=1_250_000_000)
        ours.publish([(1.25, "/topic", schema, {})])
        found = [client.read()["/topic"][-1] for client in clients]
        assert found[0] == found[1] == (1_250_000_000, {})
        advertised = [next(iter(client.channels.values())) for client in clients]
        for key in ("topic", "encoding", "schemaName", "schemaEncoding"):
            assert advertised[0][key] == advertised[1][key], key
        assert json.loads(advertised[0]["schema"]) == json.loads(advertised[1]["schema"])
        assert {"op", "name", "capabilities", "sessionId"} <= {*clients[0].info} & {*clients[1].info}
    theirs.stop()


def test_a_restarted_run_replaces_the_scene():
    """Two runs of a page in one server: the outlines come again, after the removal of those before."""
    graph, viewer = fsm_dyn.compile("latch"), Foxglove("latch")
    client = Client(viewer.address)
    try:
        for number in range(2):
            view = LiveView(graph, number, LiveOptions(follow=lambda session: LiveViewers(session, [viewer])))
            client.read_until("/scene", number + 1)
            view.close()
        found = client.read()
    finally:
        viewer.close()
    assert len(found["/scene"]) == 2
    assert [[item["type"] for item in content["deletions"]] for _, content in found["/scene"]] == [[1], [1]]
    names = [{item["id"] for item in content["entities"]} for _, content in found["/scene"]]
    assert names[0] == names[1] != set()
