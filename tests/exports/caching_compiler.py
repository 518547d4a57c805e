#!/usr/bin/env python3
"""A compiler for units under test: objects of equal preprocessed sources are compiled once for all processes.

A unit is five sources; one of them includes the runtime, takes nearly all of the time and is equal for all models.
It is called like the compiler, with flags, sources and ``-o``; everything else goes to the compiler as it is.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

BUILT = Path(__file__).parents[2] / "build" / "tests" / "objects"
COMPILER = (sysconfig.get_config_var("CC") or "cc").split()[0]


def compiled(flags, source):
    """Return the object of a source; raise CalledProcessError, with the compiler's message printed, if it has none."""
    text = subprocess.run([COMPILER, *flags, "-E", source], stdout=subprocess.PIPE, check=True).stdout
    made = BUILT / f"{hashlib.sha256(repr((COMPILER, flags)).encode() + text).hexdigest()[:24]}.o"
    BUILT.mkdir(parents=True, exist_ok=True)
    with made.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process compiles the same: wait for it
        if not made.exists():
            unfinished = made.with_suffix(f".{os.getpid()}")
            subprocess.run([COMPILER, *flags, "-c", source, "-o", str(unfinished)], check=True)
            unfinished.replace(made)
    return str(made)


def main(arguments):
    """Compile and link; return the exit code."""
    if "-shared" not in arguments or "-o" not in arguments:
        return subprocess.run([COMPILER, *arguments], check=False).returncode
    at = arguments.index("-o")
    output, rest = arguments[at : at + 2], arguments[:at] + arguments[at + 2 :]
    sources = [word for word in rest if word.endswith(".c")]
    libraries = [word for word in rest if word.startswith("-l")]
    flags = [word for word in rest if word not in {*sources, *libraries}]
    try:
        objects = [compiled([flag for flag in flags if flag != "-shared"], source) for source in sources]
    except subprocess.CalledProcessError as failed:
        return failed.returncode
    return subprocess.run([COMPILER, *flags, *objects, *output, *libraries], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
