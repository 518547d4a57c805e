"""The rules of the runtime: layers, sizes of files, one number for one thing in C and Python, no hidden state."""

import ast
import importlib
import re
import shutil
import subprocess
import sysconfig
from functools import cache
from pathlib import Path

import pytest

import fsm_dyn.runtime
from fsm_dyn.runtime import library
from fsm_dyn.simulation import outcomes

FOLDER = Path(fsm_dyn.runtime.__file__).parent
LONGEST_FILE, LONGEST_FUNCTION = 800, 90

#: A header includes headers of lower layers only, or of its own further up this list.
LAYERS = [
    ["types.h", "atomic.h"], ["elementary.h", "elementary_tables.h", "enclosure.h"], ["arena.h", "codes.h"],
    ["tables.h"], ["run.h"], ["algebra.h"], ["contacts.h"],
    ["stepping.h"], ["time_stepping.h", "online_mode.h", "online.h", "saved_state.h", "tick.h", "live.h"], ["pacing.h"],
]  # fmt: skip


def code(path):
    """Return a source without its comments."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.S)


def included(path):
    return re.findall(r'^#include "([\w.]+)"', path.read_text(), re.M)


def test_headers_include_downwards_only():
    order = [name for layer in LAYERS for name in layer]
    assert sorted(order) == sorted(path.name for path in FOLDER.glob("*.h"))
    for name in order:
        assert all(order.index(other) < order.index(name) for other in included(FOLDER / name)), name


def test_the_whole_has_every_file_and_files_include_headers_only():
    whole = included(FOLDER / "fsm_runtime.c")
    assert sorted(whole) == sorted(path.name for path in FOLDER.glob("*.c") if path.name != "fsm_runtime.c")
    for name in whole:
        assert all(other.endswith(".h") for other in included(FOLDER / name)), name


#: Constants that have a unit: what a clock counts in.
WITH_UNIT = {"SECONDS", "NANOJOULES", "FSM_NANOSECOND", "FSM_UDP_NANOSECOND"}


def test_thresholds_are_tolerances_or_have_a_name_and_no_unit():
    """No bare small number in the code; a named one is relative, and says to what."""
    number = re.compile(r"(?<![\w.])\d+(?:\.\d*)?e[-+]?\d+")
    for path in sorted(FOLDER.glob("*.[ch]")):
        joined = path.read_text().replace("\\\n", "")
        bare = re.sub(r"^#define[^\n]*", "", re.sub(r"/\*.*?\*/|//[^\n]*", "", joined, flags=re.S), flags=re.M)
        assert not number.findall(bare), path.name
        for line in re.findall(r"^#define[^\n]*", joined, re.M):
            name = line.split()[1]
            if not number.search(line.split("//")[0]) or name in WITH_UNIT:
                continue
            assert "//" in line, f"{path.name}: {name} does not say what it is a part of"
            assert not re.search(r"\b(m/s|m/s²|m|N|kg|J)\b", line.split("//")[1]), f"{path.name}: {name} has a unit"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.[ch]")), ids=lambda path: path.name)
def test_sizes(path):
    lines = path.read_text().splitlines()
    assert len(lines) <= LONGEST_FILE
    start = 0
    for number, line in enumerate(lines):
        start = number if line == "{" else start
        assert line != "}" or number - start <= LONGEST_FUNCTION, lines[start - 1]


# -- the same numbers in both languages ------------------------------------------------------------------


def header_numbers():
    """All constants of the runtime by name without FSM_: from #define, enums and the list of statuses."""
    found = {}
    for path in sorted(FOLDER.glob("*.[ch]")):
        text = code(path)
        for name, value in re.findall(r"#define FSM_(\w+)[ \t]+(?:\\\n\s*)?(-?[\d.]+(?:e-?\d+)?)[ \t]*$", text, re.M):
            found[name] = float(value)
        for body in re.findall(r"\benum(?: \w+)? \{([^}]*)\}", text):
            number = 0
            for item in filter(None, (part.strip() for part in body.split(","))):
                name, _, value = (part.strip() for part in item.partition("="))
                number = int(value) if re.fullmatch(r"-?\d+", value) else number
                found[name.removeprefix("FSM_")] = float(number)
                number += 1
    statuses = re.findall(r"\bX\((\w+), (\d+),", code(FOLDER / "codes.h"))
    return {**found, **{name: float(number) for name, number in statuses}}


def positions(struct):
    """Places of a structure's fields in words of eight bytes, by name; those of structures within count."""
    for path in sorted(FOLDER.glob("*.[ch]")):
        body = re.search(rf"struct fsm_{struct} \{{(.*?)\}};", code(path), re.S)
        if body:
            break
    found, at = {}, 0
    for line in filter(None, (part.strip() for part in body[1].split(";"))):
        within = re.fullmatch(r"struct fsm_(\w+) \w+", line)
        if within:
            inner = positions(within[1])
            found |= {name: at + place for name, place in inner.items()}
            at += len(inner)
            continue
        names = re.sub(r"^((?:const |struct )*\w+)[\s*]+", "", line)
        for name, count in re.findall(r"(\w+)(?:\[(\d+)\])?", names):
            found[name], at = at, at + int(count or 1)
    return found


@cache
def numbers_of(module):
    """All public numbers that a module itself names, in the order of the source."""
    loaded = importlib.import_module(f"fsm_dyn.{module}")
    tree = ast.parse(Path(loaded.__file__).read_text())
    names = [node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)]
    values = {name: getattr(loaded, name) for name in names if name.isupper() and not name.startswith("_")}
    return {name: value for name, value in values.items() if isinstance(value, int | float)}


def constants(module, first, last):
    """Numbers that a module names, from one to another."""
    found = numbers_of(module)
    names = list(found)
    return {name: found[name] for name in names[names.index(first) : names.index(last) + 1]}


#: structure, module, first and last constant, the name that a count has, what Python puts in front
STRUCTS = [
    ("sizes", "simulation.tables", "N_Q", "SIZE_COUNT", ""),
    ("tolerances", "simulation.tolerances", "GAP", "TOLERANCE_COUNT", ""),
    ("clock", "simulation.state", "TIME", "CLOCK_COUNT", ""),
    ("counters", "simulation.state", "MODE", "COUNTER_COUNT", ""),
    ("rank", "simulation.state", "SIZED", "RANK_COUNT", ""),
    ("option_numbers", "simulation.state", "UNTIL", "NUMBER_COUNT", ""),
    ("option_counts", "simulation.state", "CHUNK", "COUNT_COUNT", ""),
    ("far", "simulation.state", "FAR_ACTIVE", "FAR_COUNT", "FAR_"),
    ("arena_top", "simulation.state", "OVERFLOWN", "TOP_COUNT", ""),
    ("method_counts", "simulation.integrators", "STAGES", "DEGREE", ""),
    ("impact_energy", "simulation.event_resolution", "ENERGY_BEFORE", "ENERGY_COUNT", "ENERGY_"),
    ("notes", "simulation.event_resolution", "CHANGED", "NOTE_COUNT", ""),
    ("online_limits", "online.context", "FLOOR", "LIMIT_COUNT", ""),
    ("tick_numbers", "live.tick_data", "ENGAGEMENT", "NUMBER_COUNT", ""),
    ("tick_counts", "live.tick_data", "STEPS", "COUNT_COUNT", ""),
    ("tick_places", "live.tick_data", "TABLES", "PLACE_COUNT", ""),
    ("live_header", "live.shared_memory", "BEATS", "SAMPLE_INTERVAL", ""),
    ("checkpoint_counts", "live.checkpoints", "SAVED", "COUNT_COUNT", ""),
    ("pace_numbers", "live.paced_loop", "READ", "NUMBER_COUNT", ""),
    ("udp_numbers", "devices.wire.compiled_udp", "DESCRIPTOR", "NUMBER_COUNT", ""),
    ("hand_numbers", "devices.scripted_compiled", "MASS", "NUMBER_COUNT", ""),
]


@pytest.mark.parametrize(("struct", "module", "first", "last", "prefix"), STRUCTS, ids=[item[0] for item in STRUCTS])
def test_fields(struct, module, first, last, prefix):
    fields = positions(struct)
    for name, place in constants(module, first, last).items():
        if name == last and name.endswith("_COUNT"):
            assert place == max(fields.values()) + 1
            continue
        field = name.removeprefix(prefix).lower()
        assert fields[field] == place, name


#: module, first and last constant, what C puts in front, other names there
CODES = [
    ("simulation.tables", "CLOSES", "LEAVES", "EVENT_", {}),
    ("simulation.tables", "FREE", "SLIDING_UNDER", "CONTACT_", {}),
    ("simulation.tables", "PROJECTS", "WATCHES_GATES", "MODE_", {}),
    ("simulation.tables", "TRANSITION_STOP", "TRANSITION_WIDTH", "", {}),
    ("simulation.tables", "FRICTION", "GROUP", "FLAG_", {}),
    ("simulation.tables", "TURNING", "TURNING", "", {}),
    ("simulation.tables", "KINEMATIC", "CONTACT_ROW", "ROLE_", {"CONTACT_ROW": "CONTACT"}),
    ("simulation.outcomes", "CONTINUE", "UNSOLVED", "", {"LAST_INTERNAL": "NEED_CHART"}),
    ("simulation.state", "NEAR", "TURNED", "", {}),
    ("simulation.state", "WORK_OF_TRANSITION", "ROWS_PER_TURN", "", {}),
    ("simulation.state", "STEPPING", "RESOLVING", "PHASE_", {}),
    ("simulation.state", "WAITING", "ARMED", "GUARD_", {}),
    ("simulation.state", "CONDITION_WIDTH", "CONDITION_WIDTH", "", {}),
    ("simulation.state", "RING", "RING_WIDTH", "", {"RING": "RING_LENGTH"}),
    ("simulation.state", "RECORD_TIME", "PASSAGE_ROWS", "", {}),
    ("simulation.state", "ROOT_ROOM", "FEW", "", {}),
    ("simulation.event_resolution", "START", "SAMPLE", "REASON_", {"CONTRADICTION": "INCONSISTENT_ROWS"}),
    ("simulation.event_resolution", "LOG_LENGTH", "LOG_LENGTH", "", {}),
    ("simulation.candidate_codes", "OPEN", "CHOICE_COUNT", "CHOICE_", {"CHOICE_COUNT": "COUNT"}),
    ("simulation.candidate_codes", "KEPT", "EXCLUDED", "LAW_", {}),
    ("simulation.candidate_codes", "NO_CANDIDATES", "PAST_LIMIT", "CHOSEN_", {}),
    ("simulation.candidate_codes", "LOG_WIDTH", "LOG_WIDTH", "", {}),
    ("simulation.dense_output", "END", "COEFFICIENTS", "DENSE_", {}),
    ("simulation.dense_output", "HIGHEST_DEGREE", "HIGHEST_DEGREE", "", {}),
    ("online.context", "RHS", "LISTS", "ONLINE_", {}),
    ("live.tick_data", "OK", "SUPPLY_NEEDED", "TICK_", {}),
    ("live.tick_data", "OFF", "CONTROL", "PASSIVITY_", {}),
    ("live.tick_data", "OCCASION", "CAUGHT_UP_MOST", "", {}),
    ("live.tick_data", "APPLIED", "APPLIED", "", {}),
    ("live.tick_data", "NONE", "OUTRUN", "FAULT_", {}),
    ("live.tick_data", "NO_SAMPLE", "LOOP_ABSENT", "RELEASED_", {}),
    ("live.tick_data", "RUNNING", "STOPPED", "LIVE_", {}),
    ("live.shared_memory", "BINS", "BINS", "", {}),
    ("live.checkpoints", "EVERY", "MOST", "", {"EVERY": "CHECKPOINT_EVERY", "MOST": "CHECKPOINTS_MOST"}),
    ("live.paced_loop", "CHECK_END", "RECORDER_CHECK", "BACK_", {}),
]  # fmt: skip
#: What Python alone knows: arrays' lengths that it hands over, states of the tick process, layout of what it writes.
PYTHON_ONLY = {
    "simulation.tables": {"NEVER"},  # the largest integer there is
    "simulation.state": {"DRIFT_COUNT"},
    "simulation.candidate_codes": {"PARTED_FORWARD", "LOG_SIZE"},
    "live.shared_memory": {"HEADER", "STARTING", "RUNNING", "BUSY", "ENDED", "ROW_SLOTS", "RECORD_SLOTS", "EVENT_SLOTS",
                    "COMMAND_SLOTS", "TEXT_BYTES", "PART_BYTES", "MAX_EVENT_SLOTS", "POINTER_SLOTS", "POINTER_WIDTH"},
}  # fmt: skip


@pytest.mark.parametrize(("module", "first", "last", "prefix", "other"), CODES, ids=lambda value: str(value)[:40])
def test_codes(module, first, last, prefix, other):
    numbers = header_numbers()
    for name, value in constants(module, first, last).items():
        if name not in PYTHON_ONLY.get(module, ()):
            assert numbers[prefix + other.get(name, name)] == value, name


@pytest.mark.parametrize("module", sorted({item[1] for item in STRUCTS} | {item[0] for item in CODES}))
def test_no_number_is_forgotten(module):
    compared = set(PYTHON_ONLY.get(module, ()))
    for _, name, first, last, _ in STRUCTS:
        compared |= set(constants(name, first, last)) if name == module else set()
    for name, first, last, _, _ in CODES:
        compared |= set(constants(name, first, last)) if name == module else set()
    assert set(numbers_of(module)) <= compared


def test_texts_of_statuses():
    for number, outcome in outcomes.OUTCOMES.items():
        texts = [library.function(f"fsm_status_{part}")(number) for part in ("text", "sentence", "remedy")]
        assert [text.decode() for text in texts] == [outcome.name, outcome.sentence, outcome.remedy]
    for part in ("text", "sentence", "remedy"):
        assert library.function(f"fsm_status_{part}")(max(outcomes.OUTCOMES) + 1) is None


# -- no state, no memory of its own ----------------------------------------------------------------------


MATHEMATICS = {
    name + kind
    for kind in ("", "f", "l")
    for name in (
        *(
            "sin",
            "cos",
            "tan",
            "sincos",
            "asin",
            "acos",
            "atan",
            "atan2",
            "sinh",
            "cosh",
            "tanh",
            "exp",
            "exp2",
            "exp10",
        ),
        *("expm1", "log", "log2", "log10", "log1p", "pow", "hypot", "cbrt", "fma"),
    )
}


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm tells what an object file holds")
def test_no_mutable_data_and_no_allocation(tmp_path):
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    made = tmp_path / "runtime.o"
    command = [compiler, "-std=c99", "-O1", "-ffp-contract=off", "-fPIC", "-c", str(FOLDER / "fsm_runtime.c")]
    subprocess.run([*command, "-o", str(made)], check=True)
    listed = subprocess.run(["nm", str(made)], check=True, capture_output=True, text=True).stdout
    symbols = re.findall(r"(\w) ([\w.]+)$", listed, re.M)
    assert {name for kind, name in symbols if kind == "T"} >= {"fsm_advance", "fsm_live_tick"}
    assert [name for kind, name in symbols if kind in "dDbBC"] == []
    undefined = {name for kind, name in symbols if kind == "U"}
    assert undefined & MATHEMATICS == set(), "these differ from platform to platform: call those of elementary.h"
    assert not undefined & {"malloc", "calloc", "realloc", "free", "alloca", "strdup"}
