"""The driver ``inverse3`` and a service beside it, in this process: messages, frames, and what none of them is."""

from __future__ import annotations

import json
import math
import os
import socket
import struct
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from websockets.frames import Frame, Opcode

from fsm_dyn.core.errors import InputError
from fsm_dyn.devices import inverse3
from fsm_dyn.devices.driver_tools import WebSocketLine, text_frame
from fsm_dyn.devices.emulators import inverse3 as emulated
from fsm_dyn.devices.emulators.inverse3 import Service

NUMBERS = some.floats(allow_nan=False, allow_infinity=False)


def unmasked(frame):
    """The first frame's opcode and text, and the rest, by RFC 6455, section 5.2, and not by the package."""
    first, second = frame[:2]
    assert first & 0xF0 == 0x80, "whole, without extensions"
    assert second & 0x80, "a client masks"
    length, at = second & 0x7F, 2
    if length == 126:
        (length,), at = struct.unpack(">H", frame[2:4]), 4
    mask, data = frame[at : at + 4], frame[at + 4 : at + 4 + length]
    return first & 0xF, bytes(b ^ mask[i % 4] for i, b in enumerate(data)), frame[at + 4 + length :]


@settings(max_examples=40)
@given(some.text(max_size=300))
def test_frames_of_text(text):
    assert unmasked(text_frame(text)) == (1, text.encode(), b"")


@settings(max_examples=40)
@given(NUMBERS, NUMBERS, NUMBERS, some.sampled_from(sorted(inverse3.FORMATS.values())))
def test_a_force_there_and_back(x, y, z, key):
    said = inverse3.parsed(inverse3.command("049D", (x, y, z), key).encode())
    device = inverse3.listed(said)["049D"]
    assert inverse3.vector(device["commands"]["set_cursor_force"][key]) == (x, y, z)


def test_the_safe_packet_is_a_force_of_zero_and_the_end():
    spec = inverse3.Driver.describe({"device_id": "049D"})
    opcode, text, rest = unmasked(spec.safe_packet)
    assert opcode == 1
    # as on docs.haply.co, "Control Commands"
    wanted = {"commands": {"set_cursor_force": {"vector": {"x": 0.0, "y": 0.0, "z": 0.0}}}, "device_id": "049D"}
    assert json.loads(text) == {"inverse3": [wanted]}
    opcode, code, rest = unmasked(rest)
    assert (opcode, code, rest) == (8, struct.pack(">H", 1001), b"")
    older = inverse3.Driver.describe({"device_id": "049D", "format": "3.1"})
    assert b'"values"' in unmasked(older.safe_packet)[1]


@pytest.mark.parametrize(
    "found", [None, [], {}, {"x": 0, "y": 0}, {"x": 0, "y": 0, "z": "0"}, {"x": 0, "y": 0, "z": float("nan")}]
)
def test_what_is_no_vector(found):
    with pytest.raises(ValueError, match="number"):
        inverse3.vector(found)


class Beside:
    """The emulated service in a thread of this process."""

    def __init__(self, **options):
        self.service = Service({"watchdog": 0.0, **options})
        self.options = self.service.driver_options
        self._end, self._ends = os.pipe()
        self._thread = threading.Thread(target=self._run)
        self._on = True
        self._thread.start()
        self.driver = None

    def _run(self):
        while self._on:
            self.service.turn(0.01, self._end)

    def drive(self, **more):
        options = {**self.options, **more}
        self.driver = inverse3.Driver(options, inverse3.Driver.open_transport(options))
        self.driver.open()
        return self.driver

    def raw(self, data):
        self.service.clients[-1].send(data)

    def force(self):
        return self.service.body.force

    def close(self):
        if self.driver is not None:
            self.driver.close()
        self._on = False
        self._thread.join()
        for each in (self._end, self._ends):
            os.close(each)
        for client in self.service.clients:
            client.socket.close()
        self.service.listening.close()


@pytest.fixture
def beside():
    made = []

    def make(**options):
        made.append(Beside(**options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def until(condition):
    end = time.monotonic() + 10.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def told(text, opcode=Opcode.TEXT, fin=True):
    """A frame of the service: not masked."""
    return Frame(opcode, text.encode(), fin).serialize(mask=False)


def state(x, **more):
    position = {"cursor_position": {"x": x, "y": 0, "z": 0}, **more}
    return json.dumps({"inverse3": [{"device_id": "0E00", "state": position}]})


def test_forces_go_and_states_come_one_to_one(beside):
    it = beside()
    driver = it.drive()
    before = driver.read().sequence
    for k in range(5):
        driver.write((0.0, 0.1 * k, -1.0))
        until(lambda k=k: driver.read().sequence == before + k + 1)
    assert it.force() == pytest.approx([0.0, 0.4, -1.0])
    assert not driver.dropped


@pytest.mark.parametrize(("form", "velocity"), [("3.5", True), ("3.1", False)])
def test_older_services_and_velocity_by_the_filter(beside, form, velocity):
    it = beside(velocity=velocity, damping=0.0, service=form)
    driver = it.drive(format=form, bandwidth=20.0)
    driver.write((0.4, 0.0, 0.0))  # 2 m/s^2
    begin = driver.read().sequence
    until(lambda: driver.write((0.4, 0.0, 0.0)) and driver.read().position[0] > 1e-3)
    sample = driver.read()
    assert sample.sequence > begin
    # v^2 = 2 a x; what the filter makes of it lags, and of states in a heap it makes more
    assert 0.2 < sample.velocity[0] / (2.0 * 2.0 * sample.position[0]) ** 0.5 < 3.0


@pytest.mark.parametrize("version", sorted(inverse3.FORMATS))
def test_the_format_is_found_out_by_a_force_that_nobody_feels(beside, version):
    it = beside(service=version)
    assert inverse3.Driver.complete(it.options)["format"] == version
    log = it.service.body.commands()["log"]()["log"]
    assert max(abs(x) for entry in log for x in entry["force"]) == max(inverse3.PROBE)
    assert not any(it.force()), "and it ends with none"
    it.service.ignore()
    with pytest.raises(InputError, match=r"(?s)shows no force.*vector or as values"):
        inverse3.Driver.complete(it.options)


def written_until_it_raises(driver, force):
    """Write forces as the loop does; the longest that this may take is the tests' patience."""
    end = time.monotonic() + 10.0
    while time.monotonic() < end:
        driver.write(force)
        time.sleep(0.001)
        driver.read()


@pytest.mark.parametrize(("form", "version"), [("3.5", "3.1"), ("3.1", "3.5"), ("3.5", "3.5")])
def test_a_force_that_is_not_shown_is_a_fault(beside, form, version):
    """Under a key that the service ignores, or refused in the middle of a run; a weak force is none."""
    it = beside(service=version)
    driver = it.drive(format=form)
    if form == version:
        driver.write((0.0, 0.4, 0.0))
        until(lambda: driver.read() and it.force()[1] == 0.4)
        it.service.ignore()
    begin = time.monotonic()
    while time.monotonic() - begin < 3.0 * inverse3.UNSHOWN:
        driver.write((0.0, 0.9 * inverse3.LEAST, 0.0))
        driver.read()
        time.sleep(0.001)
    with pytest.raises(ConnectionError, match="does not show the force"):
        written_until_it_raises(driver, (0.0, 0.4, 0.0))


def test_forces_that_are_attenuated_or_shown_late_are_no_fault(monkeypatch):
    now = 0.0
    monkeypatch.setattr(inverse3.time, "monotonic", lambda: now)
    check, waiting = inverse3.ForceCheck(), [(0.0, 0.0, 0.0)] * 5
    for k in range(2000):
        now = 1e-3 * k
        waiting.append((math.sin(0.02 * k), 0.3 * (-1) ** k, 0.0))
        check.sent(waiting[-1])
        check.shown([0.3 * x for x in waiting.pop(0)])
    check.sent((0.0, 4.0, 0.0))
    for k in range(2000, 2100):
        now = 1e-3 * k
        check.sent((0.0, 0.06, 0.0))
        check.shown((0.0, 0.05, 0.0))
    check.sent((0.0, 0.0, 0.0))
    check.sent((0.0, 0.3, 0.0))
    for _ in range(inverse3.ANSWERS):
        check.shown((0.0, 0.0, 0.0))
    now += inverse3.UNSHOWN + 1e-6
    with pytest.raises(ConnectionError, match=r"0 N where 0\.3 N and more were sent for 0\.05 s"):
        check.shown((0.0, 0.0, 0.0))


def test_a_device_that_is_not_calibrated_is_refused_and_a_fault(beside):
    it = beside()
    driver = it.drive()
    it.service.calibrate(False)
    with pytest.raises(InputError, match="not calibrated"):
        inverse3.Driver.complete(it.options)
    with pytest.raises(ConnectionError, match="not calibrated any more"):
        written_until_it_raises(driver, (0.0, 0.0, 0.0))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, {"force gate, %": 30}),
        ({"gravity_compensation": False, "service": "3.1"}, {"gravity compensation off": 1}),
        ({"torque_scaling": False}, {"torque scaling off": 1, "force gate, %": 30}),
    ],
)
def test_profile_and_configuration(beside, options, told):
    it = beside(**options)
    driver = it.drive(format=options.get("service", "3.5"), profile="lab:wall")
    until(lambda: driver.read().sequence)
    assert driver.diagnostics() == told
    assert it.service.profile == ("" if "service" in options else "lab:wall")
    it.raw(told_config({"filters": {"force_gate": {"gain": 0.5}}}))
    until(lambda: driver.read() and driver.diagnostics() == {"force gate, %": 50, "without the force shown": 1})


def told_config(config):
    """A full state, as the service sends one when its configuration is asked for."""
    found = json.loads(state(0.0))
    found["inverse3"][0]["config"] = config
    return told(json.dumps(found))


@pytest.mark.parametrize("config", [None, [], {"filters": 3}, {"gravity_compensation": "on", "torque_scaling": None}])
def test_a_configuration_of_another_form_says_nothing(config):
    assert inverse3.configured(config) == {}


def test_buttons_of_a_grip(beside):
    it = beside()
    driver = it.drive()
    grip = {"wireless_verse_grip": [{"state": {"buttons": {"a": True, "b": False, "c": True}}}]}
    it.raw(told(json.dumps({**json.loads(state(0.5)), **grip})))
    until(lambda: driver.read().position[0] == 0.5)
    assert driver.read().buttons == 0b101


def test_frames_in_parts_and_pings(beside):
    it = beside()
    driver = it.drive()
    text = state(0.25)
    whole = told(text[:20], fin=False) + told("ping!", Opcode.PING) + told(text[20:], Opcode.CONT)
    for byte in whole:
        it.raw(bytes([byte]))
        driver.read()
    until(lambda: driver.read().position[0] == 0.25)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "no JSON"),
        ("[1]", "no JSON"),
        ('{"inverse3": 5}', "no list of devices"),
        ('{"inverse3": [5]}', "no list of devices"),
        ('{"inverse3": []}', "without the device"),
        ('{"inverse3": [{"device_id": "0E00"}]}', "without a state"),
        ('{"inverse3": [{"device_id": "0E00", "state": {}}]}', "number"),
        (state(float("nan")), "number"),
        (state(float("inf")), "number"),
        (state(0.5, cursor_velocity={"x": 0}), "number"),
        (state(0.5, current_cursor_force={"x": 0}), "number"),
    ],
)
def test_messages_of_no_use_are_counted_and_move_nothing(beside, text, why):
    it = beside()
    driver = it.drive()
    sample = driver.read()
    it.raw(told(text))
    until(lambda: driver.read() is not sample or driver.dropped)
    assert driver.dropped == {why: 1}
    assert driver.read() is sample


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xff" * 20, "speaks no WebSocket any more"),
        (Frame(Opcode.TEXT, b"{}").serialize(mask=True), "speaks no WebSocket any more"),  # a server does not mask
        (b"\x81\x7f" + struct.pack(">Q", 2**40), "speaks no WebSocket any more"),
        (told("", Opcode.CLOSE), "has closed the connection"),
        (None, "has closed the connection"),
    ],
    ids=["garbage", "masked", "long", "close", "end"],
)
def test_a_line_that_fails_is_named_and_zero_still_goes(beside, data, words):
    """What the tick process does then: a force of zero, and the end."""
    it = beside()
    driver = it.drive()
    driver.write((0.0, 2.0, 0.0))
    until(lambda: it.force()[1] == 2.0)
    shown = it.service.body
    if data is None:
        it.service.clients[-1].socket.shutdown(socket.SHUT_WR)
    else:
        it.raw(data)

    def use():
        end = time.monotonic() + 10.0
        while time.monotonic() < end:
            driver.read()

    with pytest.raises(ConnectionError, match=words):
        use()
    driver.write((0.0, 0.0, 0.0))
    driver.close()
    until(lambda: not any(it.force()))
    assert shown._log[-1]["why"] == "host"


def test_a_service_that_reads_no_more_holds_nobody_up(beside):
    it = beside()
    driver = it.drive()
    it.service.body.frozen = True
    time.sleep(0.02)
    begin = time.monotonic()
    for _ in range(200_000):
        driver.write((0.0, 0.0, 0.0))
        if driver.dropped["not sent"] > 3:
            break
    assert driver.dropped["not sent"] > 3
    driver.close()
    assert time.monotonic() - begin < 60.0
    it.service.body.frozen = False


def test_which_device_is_asked_for(beside, monkeypatch):
    it = beside()
    port = it.options["port"]
    assert inverse3.Driver.complete({"port": port}) == {"port": port, "device_id": "0E00", "format": "3.5"}
    with pytest.raises(InputError, match=r"(?s)no Inverse3 'FFFF'.*0E00"):
        inverse3.Driver.complete({"port": port, "device_id": "FFFF"})
    both = json.dumps({"inverse3": [{"device_id": "0E00"}, {"device_id": "0E01"}]}).encode()
    monkeypatch.setattr(it.service, "_told", lambda first=False, full=False: both)
    with pytest.raises(InputError, match=r"(?s)which Inverse3\?.*0E00, 0E01"):
        inverse3.Driver.complete({"port": port})
    known = inverse3.Driver.complete({"port": port, "device_id": "0E01", "format": "3.1"})
    assert (known["device_id"], known["format"]) == ("0E01", "3.1")
    with pytest.raises(InputError, match="no current_cursor_force"):
        inverse3.Driver.complete({"port": port, "device_id": "0E01"})
    monkeypatch.setattr(it.service, "_told", lambda first=False, full=False: b'{"inverse3": []}')
    with pytest.raises(InputError, match="none is plugged in"):
        inverse3.Driver.complete({"port": port})


def test_no_process_and_another_one_at_the_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        line = WebSocketLine(socket.create_connection(("127.0.0.1", port)), "the Inverse service")
        other, _ = server.accept()
        other.sendall(b"220 mail.example ESMTP\r\n")
        with pytest.raises(ConnectionError, match="the Inverse service speaks no WebSocket"):
            line.open(5.0)
        line.close()
        other.close()
        line = WebSocketLine(socket.create_connection(("127.0.0.1", port)), "the Inverse service")
        with pytest.raises(TimeoutError, match="did not answer within 0"):
            line.open(0.05)
        line.close()
    with pytest.raises(InputError, match="no Inverse service at 127"):
        inverse3.Driver.complete({"port": port})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"axes": 3}, "no option 'axes'"),
        ({"format": "3.0"}, "3.5, 3.1"),
        ({"device_id": 0.0}, "quote it"),
        ({"port": 0}, "1 to 65535"),
        ({"damping": -1}, "damping"),
        ({"profile": 3}, "profile"),
    ],
)
def test_options_that_cannot_be_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        inverse3.Driver.describe(options)


@pytest.mark.parametrize(("options", "words"), [({"service": "3.0"}, "3.5, 3.1"), ({"calibrated": 1}, "true, false")])
def test_an_emulated_service_that_cannot_be_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        emulated.start(options)
