"""Record all output of the package that users see, and compare two recordings.

``python -m tests.oracle record DIR [--quick] [--models NAME ...] [--part PART ...]``
    Writes a recording of the package that is imported: a JSON file per model and part, and contents by their digests.
``python -m tests.oracle compare DIR [DIR]``
    Prints how the second recording, or one made now of the same models and parts, differs from the first; exits 1.
``make oracle BASE=REVISION``
    Records that revision and this checkout, and compares them.

Only the command line and public names are used, so that a recording of a revision with other modules can be compared.
Two recordings of the same sources are equal, for any processes, caches and order of the work.  They are no
files of the repository: the versions of libraries and compilers are a part of them, and a test against the package's
own earlier output would judge nothing.  Each difference is a decision: meant, or a defect.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.oracle.comparing import differences, report
from tests.oracle.recorder import GENERAL, PARTS, record_all, shipped_models
from tests.oracle.recording import read
from tests.oracle.spans import QUICK

ROOT = Path(__file__).parents[2]
JOBS = 2


def record(given):
    """Carry out ``record``."""
    folder = given.folder.resolve()
    if folder.exists() and any(folder.iterdir()):
        raise SystemExit(f"error: {folder} is not empty: name a new folder")
    models = given.models or [GENERAL, *(QUICK if given.quick else shipped_models())]
    tell = (lambda text: None) if given.silent else (lambda text: print(text, file=sys.stderr, flush=True))  # noqa: T201
    began = time.monotonic()
    record_all(folder, given.root.resolve(), models, given.part or PARTS, given.jobs, tell)
    tell(f"recorded {len(models)} models in {folder}, {time.monotonic() - began:.0f} s")


def compare(given):
    """Carry out ``compare``; return the exit code."""
    with tempfile.TemporaryDirectory() as made:
        second = given.second
        if second is None:
            second = Path(made) / "now"
            models, parts = (sorted({key[k] for key in read(given.first)}) for k in (0, 1))
            record_all(second, given.root.resolve(), models, parts, given.jobs, lambda text: None)
        found = differences(given.first, second)
    print(report(found))  # noqa: T201
    return 1 if found else 0


def main():
    """Run the command line of the oracle."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description="freeze what users see, and compare")
    commands = parser.add_subparsers(required=True)
    recording = commands.add_parser("record", help="record the package that is imported")
    recording.add_argument("folder", type=Path)
    recording.add_argument("--models", nargs="+", help=f"names; '{GENERAL}': what needs no model")
    recording.add_argument("--part", nargs="+", choices=PARTS)
    recording.add_argument("--quick", action="store_true", help=f"of {len(QUICK)} models")
    recording.add_argument("--silent", action="store_true", help="no progress")
    recording.set_defaults(carry_out=record)
    comparing = commands.add_parser("compare", help="say what differs")
    comparing.add_argument("first", type=Path)
    comparing.add_argument("second", type=Path, nargs="?")
    comparing.set_defaults(carry_out=compare)
    for command in (recording, comparing):
        command.add_argument("--root", type=Path, default=ROOT, help="checkout with the models and malformed files")
        command.add_argument("--jobs", type=int, default=JOBS, help="processes")
    given = parser.parse_args()
    return given.carry_out(given)


if __name__ == "__main__":
    sys.exit(main())
