"""The part ``live``: ticks of runs that are not paced, with a scripted hand, and the passivity of their coupling."""

import json

import numpy as np

from tests.oracle.command_line import call, record_call

DURATION = "0.25"  # s
#: The machine may be busy: no clock is to end a run.
PATIENT = (
    "--no-pacing", "--no-derive", "--duration", DURATION, "--watchdog-timeout", "60", "--owner-timeout", "0",
    "--release-after", "0", "--lag-limit", "0",
)  # fmt: skip
MEASURED = ("wall", "execution_time", "wakeup_latency")  # columns and fields
OF_THE_MACHINE = {*MEASURED, "memory", "transport", "realtime_privileges", "kernels"}
OF_THE_RUN = ("transitions", "ticks", "phase", "fault", "excess_energy", "dissipated_energy", "saturations", "releases")


def record_live(items, model, folder):
    """Add the recordings of two live runs of a model: moved by the hand alone, and with its schedules."""
    for name, options in (("hand", ()), ("schedule", ("--schedule", "--passivity", "observe"))):
        file = folder / f"{name}.mcap"
        answered = folder / f"{name}.json"
        live = ("live", model, *PATIENT, *options, "--record", file, "--json")
        _record_answer(items, name, live, answered)
        if file.exists():
            _record_ticks(items, name, file)
    record_call(items, "passivity", "passivity", model, "--damping", "1", "--json")


def _record_answer(items, name, arguments, file):
    code, out, err = call("--quiet", *arguments)
    items.value(f"{name} exit code", code)
    items.text(f"{name} stderr", err)
    try:
        report = json.loads(out)
    except ValueError:
        items.text(f"{name} stdout", out)
        return
    items.data(f"{name} fields of the report", list(report))
    items.data(f"{name} report", {key: report.get(key, "absent") for key in OF_THE_RUN})


def _record_ticks(items, name, file):
    """Add rows, transitions and events of a recording; what a clock measured is left out."""
    from mcap.reader import make_reader  # of an extra

    parts = {"rows": [], "transitions": [], "events": []}
    with file.open("rb") as opened:
        reader = make_reader(opened)
        head = {key: json.loads(text) for part in reader.iter_metadata() for key, text in part.metadata.items()}
        for _, channel, message in reader.iter_messages():
            if channel.topic in parts:
                parts[channel.topic].append(message.data)
        attached = {item.name: item.data for item in reader.iter_attachments()}
    names = head["columns"]["names"]
    rows = np.frombuffer(b"".join(parts["rows"]), "<f8").reshape(-1, len(names))
    kept = [k for k, column in enumerate(names) if column not in MEASURED]
    items.numbers(f"{name} ticks", rows[:, kept], [names[k] for k in kept])
    records = np.frombuffer(b"".join(parts["transitions"]), "<f8").reshape(-1, head["settings"]["record"])
    items.numbers(f"{name} transitions", records)
    items.data(f"{name} events", [_settled(json.loads(event)) for event in parts["events"]])
    items.data(f"{name} head", {key: _settled(value) for key, value in head.items()})
    for key, data in attached.items():
        items.data(f"{name} {key}", json.loads(data))


def _settled(value):
    """Return data without what depends on the machine or a clock."""
    if isinstance(value, dict):
        return {key: _settled(each) for key, each in value.items() if key not in OF_THE_MACHINE}
    return value
