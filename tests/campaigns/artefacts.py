"""Saved automata, recorded runs and recordings of live runs that were tampered with, by bytes and by values."""

import io
import json
import random
import tempfile
import warnings
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from unittest import mock

import mcap.writer
import numpy as np

import fsm_dyn
from fsm_dyn.automaton import storage
from fsm_dyn.core.errors import InputError
from fsm_dyn.devices.scripted import Driver
from fsm_dyn.live import tick as tick_data
from fsm_dyn.live.controller import RunController
from fsm_dyn.live.device_map import Limits, add_couplers
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.recording import read_recording
from fsm_dyn.live.replay import input_tables
from fsm_dyn.live.tick_process import columns_of, new_stepper, ring_of
from fsm_dyn.page.playback import PlaybackFrames, open_recorded_run
from fsm_dyn.programs.kernels import ObjectCache
from fsm_dyn.runtime.abi import LiveHeader
from tests.campaigns.files import LEAVES, places
from tests.campaigns.judging import batch
from tests.continued import METHODS

AUTOMATA = (
    "bouncing_ball",
    "shopping_cart",
    "latch",
    "sliding_rod",
    "four_bar",
    "chain",
    "billiard_ball",
    "box_on_table",
)
RUNS = ("bouncing_ball", "shopping_cart", "latch")
LIVE = ("virtual_wall", "latch")
TRIALS = 50  # of a batch
RUN_EVERY = 5  # of those that are accepted, how many are run
TICKS = 1200
DEEP = "nested deeper than any reader goes"  # stands for that in values until they are written
DEEPEST = 20_000  # levels
NUMBERS = (-1, -2, 0, 1, 2, 3, 7, 64, 255, 1000, 2**31, 2**62, -(2**40), 10**30, 0.5, -0.0, 1e-320, 1e308, 1.5)


def tampered_bytes(data, chance):
    """Bytes flipped, cut out, doubled, or the end missing."""
    data = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(data))
        match chance.randrange(5):
            case 0 | 1:
                data[at] = chance.randrange(256)
            case 2:
                data[at] ^= 1 << chance.randrange(8)
            case 3:
                del data[at : at + chance.choice((1, 8, 100))]
            case _:
                data[at:at] = data[at : at + chance.choice((1, 8, 100))]
        data = data or bytearray(b"x")
    return bytes(data[: chance.randrange(len(data))] if chance.random() < 0.1 else data)


def tampered_values(data, chance):
    """Values of nested data replaced, taken away, doubled or exchanged."""
    data = json.loads(json.dumps(data))
    where = list(places(data))
    for _ in range(chance.randint(1, 2)):
        holder, key = chance.choice(where)
        other, another = chance.choice(where)
        if key not in holder if isinstance(holder, dict) else key >= len(holder):
            continue  # gone with the tampering before
        match chance.randrange(7):
            case 0:
                del holder[key]
            case 1:
                holder[key] = chance.choice(LEAVES)
            case 2 | 3 if isinstance(holder[key], int | float):
                value = holder[key]
                holder[key] = chance.choice(
                    (*NUMBERS, value + 1, value - 1, -value, value * 10, float(value), str(value))
                )
            case 4 if another in (other if isinstance(other, dict) else range(len(other))):
                holder[key] = json.loads(json.dumps(other[another]))
            case 5 if isinstance(holder, list):
                holder.insert(key, holder[key])
            case _ if isinstance(holder[key], str):
                holder[key] = chance.choice(
                    ("", "x", holder[key] * 2, holder[key][:-1], "\x00", "é", holder[key].upper())
                )
            case _:
                holder[key] = chance.choice((*NUMBERS, *LEAVES, DEEP))
    return data


def as_json(data):
    """Values as text."""
    return json.dumps(data).replace(json.dumps(DEEP), "[" * DEEPEST + "]" * DEEPEST)


def _batch(kind, seed, trial, count):
    """A batch whose trials are ``trial(chance, number)``, returning the work and a label."""
    trials = []
    for number in range(count):
        work, label = trial(random.Random(f"{kind} {seed} {number}"), number)
        trials.append((quietly(work), "", False, f"{number} {label}"))
    with mock.patch.object(ObjectCache, "store", return_value=False):  # nobody needs their code again
        return batch(seed, trials)


def quietly(work):
    """The work without warnings: of a model that makes no sense there are many."""

    def done():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            work()

    return done


def _written(content, suffix, use):
    """Use content as a file."""
    with tempfile.NamedTemporaryFile(suffix=suffix) as file:
        file.write(content)
        file.flush()
        use(Path(file.name))


# -- automata ------------------------------------------------------------------------------------------------


@cache
def automaton(name):
    """A saved automaton."""
    graph = fsm_dyn.compile(name)
    fsm_dyn.simulate(graph, 0.01)  # the stepper is there before anything is tried
    return storage.to_bytes(graph.automaton)


def automata(seed, trials=TRIALS):
    """Opening them, and running some."""

    def trial(chance, number):
        name = chance.choice(AUTOMATA)
        whole = automaton(name)
        if chance.random() < 0.25:
            content = tampered_bytes(whole, chance)
        else:
            content = as_json(tampered_values(json.loads(whole), chance)).encode()
        return (lambda: _written(content, ".json", partial(use_automaton, runs=number % RUN_EVERY == 0))), name

    return _batch("automata", seed, trial, trials)


def use_automaton(path, runs):
    """Do with a saved automaton what one is for."""
    graph = fsm_dyn.open_graph(path)
    str(graph.nx)
    if runs:
        fsm_dyn.simulate(graph, 0.02, on_failure="return", max_steps=200)


# -- runs ----------------------------------------------------------------------------------------------------


@cache
def run(name, method):
    """A recorded run; with the usual method where this one refuses the model."""
    graph = fsm_dyn.compile(name)
    try:
        trajectory = fsm_dyn.simulate(graph, 0.2, **METHODS[method])
    except InputError:
        trajectory = fsm_dyn.simulate(graph, 0.5)
    with tempfile.TemporaryDirectory() as folder:
        return trajectory.save(Path(folder) / "x.run.json").read_bytes()


def runs(seed, trials=TRIALS):
    """Reading them, with all that is asked of a run."""

    def trial(chance, number):
        name = chance.choice(RUNS)
        whole = run(name, chance.choice(tuple(METHODS)))
        if chance.random() < 0.3:
            data = json.loads(whole)
            data["continuation"] = tampered_values(data["continuation"], chance)
            content = as_json(data).encode()
        elif chance.random() < 0.25:
            content = tampered_bytes(whole, chance)
        else:
            content = as_json(tampered_values(json.loads(whole), chance)).encode()
        return (lambda: _written(content, ".run.json", use_run)), f"run {name}"

    return _batch("runs", seed, trial, trials)


def use_run(path):
    """Do with a recorded run what one is for."""
    trajectory = fsm_dyn.open_run(path)
    str(trajectory.describe_outcome())
    [str(item) for item in (*trajectory.transitions, *trajectory.change_points)]
    _ = trajectory.energy, trajectory.multipliers
    trajectory.sample(np.linspace(trajectory.t[0], trajectory.t[-1], 5))
    playback = PlaybackFrames(open_recorded_run(path))
    playback.payload()
    playback.frame(0)
    trajectory.resume(trajectory.t[-1] + 0.1, max_steps=500, on_failure="return")


# -- recordings of live runs ---------------------------------------------------------------------------------


@cache
def live(name):
    """What a live run leaves: graph, settings, columns, rows, transitions, events; made in this process."""
    graph = fsm_dyn.compile(add_couplers(fsm_dyn.load(name)))
    settings = LiveSettings(limits=Limits(ramp=0.02, velocity=20.0), axes=2, driver="scripted", substeps=1, felt=False)
    stepper = new_stepper(settings, graph)
    columns = columns_of(stepper)
    settings = replace(
        settings, record=1 + stepper.loop.buffers.transitions.shape[1], modes=tuple(stepper.executable.chart_names)
    )
    stepper.prepare()
    block = tick_data.SharedBlock.create(tick_data.BlockLayout(columns.width, settings.record))
    stepper.publish_to(ring_of(block))
    events = []
    controller = RunController(stepper, events.append, 100)
    hand = Driver({"axes": 2, "motion": [[0, 0.09, 0.9, 0.0], [1, 0.03, 1.1, 3.0]], "period": stepper.period})
    parameter = next(iter(graph.values))
    for tick in range(TICKS):
        if tick == TICKS // 3:
            controller.command({"do": "set", "values": {parameter: graph.values[parameter]}})
        if tick == TICKS // 2:
            controller.command({"do": "reset"})
        controller.tick(hand.read())
    assert block.header[LiveHeader.TRANSITIONS] > 0
    rows = tick_data.take_rows(block.rows, block.header, LiveHeader.ROWS, 0)[0].copy()
    records = tick_data.take_rows(block.records, block.header, LiveHeader.TRANSITIONS, 0)[0].copy()
    described = {
        "inputs": columns.inputs, "state": columns.state, "device": columns.device, "ports": columns.ports,
        "discrete": columns.discrete, "names": columns.names, "smooth": columns.smooth,
    }  # fmt: skip
    head = {"settings": json.loads(json.dumps(settings.as_data())), "columns": described, "events": events}
    return storage.to_bytes(graph.automaton), json.dumps(head), rows, records


def recording(graph, head, rows, records):
    """The file that a recorder makes of it."""
    file = io.BytesIO()
    writer = mcap.writer.Writer(file, use_chunking=False)
    writer.start("fsm_dyn", library="fsm_dyn live")
    writer.add_attachment(0, 0, "graph.json", "application/json", graph)
    writer.add_metadata("live", {name: as_json(head.get(name)) for name in ("settings", "columns")})
    channels = {name: writer.register_channel(name, "fsm_dyn_float64", 0) for name in ("rows", "transitions", "events")}
    for part in np.array_split(rows, 3):
        writer.add_message(channels["rows"], 0, np.ascontiguousarray(part, "<f8").tobytes(), 0)
    writer.add_message(channels["transitions"], 0, np.ascontiguousarray(records, "<f8").tobytes(), 0)
    for event in head.get("events") or ():
        writer.add_message(channels["events"], 0, as_json(event).encode(), 0)
    writer.finish()
    return file.getvalue()


def recordings(seed, trials=TRIALS):
    """Reading them, playing them, and taking the inputs to run them again."""

    def trial(chance, number):
        name = chance.choice(LIVE)
        graph, head, rows, records = live(name)
        head = json.loads(head)
        way = chance.choice(("bytes", "head", "head", "events", "rows", "records", "graph"))
        if way in ("rows", "records"):
            table = (rows if way == "rows" else records).copy()
            for _ in range(chance.randint(1, 5)):
                at = chance.randrange(len(table)), chance.randrange(table.shape[1])
                table[at] = chance.choice((np.nan, np.inf, -np.inf, *map(float, NUMBERS)))
            rows, records = (table, records) if way == "rows" else (rows, table)
        elif way == "graph":
            graph = tampered_bytes(graph, chance)
        elif way == "events":
            head["events"] = _as_list(tampered_values(head["events"], chance))
        elif way == "head":
            head = tampered_values(head, chance)
            head["events"] = _as_list(head.get("events"))
        content = recording(graph, head, rows, records)
        if way == "bytes":
            content = tampered_bytes(content, chance)
        return (lambda: _written(content, ".mcap", use_recording)), f"recording {name} {way}"

    return _batch("recordings", seed, trial, trials)


def _as_list(value):
    return value if isinstance(value, list) else [value]


def use_recording(path):
    """Do with a recording what one is for."""
    playback = PlaybackFrames(open_recorded_run(path))
    payload = playback.payload()
    for number in (0, payload["playback"]["rows"] // 2):
        playback.frame(number)
    playback.transition_details(0)
    input_tables(read_recording(path))
