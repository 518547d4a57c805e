"""The recorder: parts of models, by processes that share a new cache."""

import json
import os
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from tests.oracle.command_line import ENVIRONMENT, call, masks
from tests.oracle.exports import record_artefacts, record_exports
from tests.oracle.live import record_live
from tests.oracle.messages import record_files, record_slips
from tests.oracle.recording import Items, write
from tests.oracle.runs import record_runs
from tests.oracle.spans import QUICK
from tests.oracle.studies import record_studies
from tests.oracle.texts import record_general, record_texts

BAD_INPUT = Path("tests", "bad_input", "files")
GENERAL = "general"  # in the place of a model's name: what no model is needed for
PARTS = ("artefacts", "texts", "runs", "studies", "live", "exports", "messages")
TASKS = 12  # of a process on average, which then ends: no recording is to depend on what was done before


def record_part(folder, root, model, part):
    """Record a part of a model in this process; return the time it took, s."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as made:
        place = Path(made).resolve()
        items = Items(folder, masks(place, root))
        if model == GENERAL:
            record = {"texts": record_general, "messages": partial(_malformed, root)}[part]
            record(items, place)
        elif part == "messages":
            record_slips(items, model, (root / "yaml_models" / f"{model}.yaml").read_text(encoding="utf-8"), place)
        elif part == "exports":
            record_exports(items, model, place, runtime=model == QUICK[0])
        else:
            parts = {
                "artefacts": record_artefacts, "texts": record_texts, "runs": record_runs, "studies": record_studies,
                "live": record_live,
            }  # fmt: skip
            parts[part](items, model, place)
        write(folder, model, part, items)
    return time.monotonic() - began


def _malformed(root, items, place):
    """Add answers to copies of the malformed files."""
    copies = place / "files"
    shutil.copytree(root / BAD_INPUT, copies)
    record_files(items, copies.glob("*.yaml"))


def record_all(folder, root, models, parts, jobs, tell):
    """Record parts of models in processes that share a new cache."""
    wanted = [(GENERAL, part) for part in parts if part in ("texts", "messages") and GENERAL in models]
    wanted += [(model, part) for model in models if model != GENERAL for part in parts]
    with tempfile.TemporaryDirectory() as cache:
        os.environ.update(ENVIRONMENT, FSM_DYN_CACHE=cache)
        done = 0
        # a pool each time: with `max_tasks_per_child` the executor of Python 3.11 may wait forever
        for some in batched(wanted, jobs * TASKS):
            with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
                running = {pool.submit(record_part, folder, root, *each): each for each in some}
                for future in as_completed(running):
                    done += 1
                    tell(f"{done} of {len(wanted)}: {' '.join(running[future])}, {future.result():.1f} s")


def batched(items, count):
    """Yield lists of at most this many items."""
    for first in range(0, len(items), count):
        yield items[first : first + count]


def shipped_models():
    """Return the names of the shipped models."""
    code, out, err = call("--quiet", "models", "--json")
    if code:
        raise SystemExit(f"error: the models cannot be listed: {err}")
    return [item["name"] for item in json.loads(out)]
