"""Compiling the runtime for tests: with the warnings it must be free of, with sanitizers, for other processors."""

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import fsm_dyn.runtime

FOLDER = Path(fsm_dyn.runtime.__file__).parent
BUILT = Path(__file__).parents[2] / "build" / "tests"
COMPILER = (sysconfig.get_config_var("CC") or "cc").split()[0]
LANGUAGE = ["-std=c99", "-ffp-contract=off", f"-I{FOLDER}"]
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Werror"]
#: What stops a program at the first access outside an array, and at arithmetic that the language leaves undefined.
SANITIZE = [
    "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all",
]  # fmt: skip


def separate_sources():
    """The files of the runtime, each of which compiles by itself."""
    return sorted(path for path in FOLDER.glob("*.c") if path.name != "fsm_runtime.c")


def compile_library(sources, made, *flags, compiler=COMPILER):
    """Compile sources to one shared library; it is there whole or not at all."""
    made.parent.mkdir(parents=True, exist_ok=True)
    unfinished = made.with_suffix(f".{os.getpid()}")
    command = [compiler, *LANGUAGE, "-fPIC", "-shared", *flags, *map(str, sources), "-o", str(unfinished), "-lm"]
    subprocess.run(command, check=True)
    unfinished.replace(made)


def sanitizer_environment(compiler=COMPILER):
    """Environment variables with which Python can load a library that was compiled with gcc's sanitizers."""
    found = [
        subprocess.run([compiler, f"-print-file-name=lib{name}.so"], capture_output=True, text=True, check=True)
        for name in ("asan", "ubsan")
    ]
    return {
        **os.environ,
        "LD_PRELOAD": " ".join(done.stdout.strip() for done in found),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python keeps what it allocated until it ends
        "PYTHONMALLOC": "malloc",  # so that arrays lie between bytes that nobody may touch
    }


def sanitizers_work(compiler=COMPILER):
    """Return why a library with sanitizers cannot be compiled and loaded here; nothing where it can."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "empty.c"
            source.write_text("int nothing;\n")
            compile_library([source], Path(folder) / "empty.so", *SANITIZE, compiler=compiler)
            load = f"import ctypes; ctypes.CDLL({str(Path(folder) / 'empty.so')!r})"
            subprocess.run([sys.executable, "-c", load], env=sanitizer_environment(compiler), check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no sanitizers with {compiler}: {error}"
    return ""
