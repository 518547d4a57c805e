"""Calls of the command line within this process, by the entry point of the installed package."""

import contextlib
import io
import os
import re
import sys
import tempfile
import traceback
import warnings
from importlib.metadata import entry_points
from pathlib import Path

import fsm_dyn

#: Of the process that records: the width of texts, drawings without a screen.
ENVIRONMENT = {"COLUMNS": "100", "NO_COLOR": "1", "MPLBACKEND": "Agg", "SOURCE_DATE_EPOCH": "0"}


def masks(*folders):
    """Return what is replaced in texts: folders by their position, the place of the package, times, ids and dates."""
    package = Path(fsm_dyn.__file__).resolve().parent
    placed = [
        (package / "yaml_models", "<models>"),
        (package.parent / "yaml_models", "<models>"),
        (package, "<package>"),
    ]
    placed += [(Path(folder), f"<folder {k}>") for k, folder in enumerate(folders, start=1)]
    placed += [(Path(tempfile.gettempdir()), "<tmp>"), (Path.home(), "<home>")]
    found = [(re.compile(re.escape(str(path))), word) for path, word in placed if len(str(path)) > 1]
    found += [(re.compile(pattern), word) for pattern, word in _VARYING]
    return found


_VARYING = [
    (r"<tmp>/tmp[a-z0-9_]{8}", "<tmp>/…"),
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?", "<date>"),
    (r"\b0x[0-9a-f]{8,}\b", "<address>"),
    (r"(?<=[#\"])[pm][0-9a-f]{10}\b", "<id>"),  # of Matplotlib's drawings
]


def main():
    """Return the function behind ``fsm-dyn``, wherever it is in the package."""
    (found,) = entry_points(group="console_scripts", name="fsm-dyn")
    return found.load()


def call(*arguments, folder=None):
    """Return exit code, standard output and standard error of ``fsm-dyn ARGUMENTS``, called in ``folder``."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    before, sys.argv = sys.argv, ["fsm-dyn", *map(str, arguments)]
    where = os.getcwd()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        try:
            os.chdir(folder or where)
            main()()
        except SystemExit as ended:
            code = ended.code or 0
        except BaseException:  # a defect of the package: recorded like every other answer
            code = "exception"
            err.write(traceback.format_exc(limit=0))
        finally:
            sys.argv = before
            os.chdir(where)
    return code, out.getvalue(), err.getvalue()


def record_call(items, name, *arguments, folder=None):
    """Add the answer of a call to items: exit code, both outputs; return whether it succeeded."""
    code, out, err = call("--quiet", *arguments, folder=folder)
    items.value(f"{name} exit code", code)
    items.text(f"{name} stdout", out)
    items.text(f"{name} stderr", err)
    return code == 0
