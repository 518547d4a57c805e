"""Records a revision and this checkout, and compares them: ``python -m tests.oracle.against REVISION``.

The revision is installed from a temporary worktree in a separate environment, which reads libraries from the present
one; with ``--own-libraries`` these are installed too, in the same versions, if the revision needs others.  Both are
recorded by the oracle of this checkout and answer the same malformed files.  The recording of a revision is kept under
``build/oracle`` and used again while the oracle is the same.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from contextlib import contextmanager
from pathlib import Path

from tests.oracle.comparing import differences, report

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
KEPT = ROOT / "build" / "oracle"


def run(*command, **options):
    """Run a program; raise SystemExit with its name if it fails."""
    done = subprocess.run([*map(str, command)], check=False, **options)
    if done.returncode:
        raise SystemExit(f"error: {' '.join(map(str, command))[:200]} failed")
    return done


def git(*arguments):
    """Return what git prints."""
    return run("git", "-C", ROOT, *arguments, capture_output=True, text=True).stdout.strip()


@contextmanager
def installed(commit, own_libraries):
    """Install a commit in a separate environment, gone afterwards; yield its Python."""
    with tempfile.TemporaryDirectory() as made:
        sources, environment, versions = (Path(made) / name for name in ("sources", "environment", "versions.txt"))
        git("worktree", "add", "--quiet", "--detach", sources, commit)
        try:
            run(sys.executable, "-m", "venv", environment)
            pip = ("-m", "pip", "--disable-pip-version-check")
            python = environment / "bin" / "python"
            if own_libraries:
                frozen = run(sys.executable, *pip, "freeze", "--exclude", "fsm-dyn", capture_output=True, text=True)
                versions.write_text(frozen.stdout)
                run(python, *pip, "install", "--quiet", "--constraint", versions, f"{sources}[test]")
            else:
                run(python, *pip, "install", "--quiet", "--no-deps", sources)
                (site,) = environment.glob("lib/python*/site-packages")
                # read after the environment's own packages; hooks of the present one, its editable install, are not
                (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
            yield python
        finally:
            git("worktree", "remove", "--force", sources)


def record(python, folder, options):
    """Record the package of a Python, by the oracle of this checkout, in a folder without the package."""
    with tempfile.TemporaryDirectory() as made:
        shutil.copytree(HERE, Path(made) / "tests" / "oracle", ignore=shutil.ignore_patterns("__pycache__"))
        variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        command = (python, "-m", "tests.oracle", "record", folder, "--root", ROOT, *options)
        run(*command, cwd=made, env=variables | {"PYTHONPATH": made})


def digest_of_oracle():
    """Return a digest of the inputs of a recording, except the package and its libraries."""
    found = hashlib.sha256(sys.version.encode())
    folders = HERE.glob("*.py"), (ROOT / "tests/bad_input/files").glob("*.yaml"), (ROOT / "yaml_models").glob("*.yaml")
    for path in sorted(path for folder in folders for path in folder):
        found.update(path.read_bytes())
    return found.hexdigest()[:10]


def main():
    """Run the command line."""
    parser = argparse.ArgumentParser(description="record a revision and this checkout, and compare them")
    parser.add_argument("revision")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--models", nargs="+")
    parser.add_argument("--part", nargs="+")
    parser.add_argument("--own-libraries", action="store_true", help="install libraries for the revision too")
    given = parser.parse_args()
    commit = git("rev-parse", "--verify", f"{given.revision}^{{commit}}")
    options = ["--quick"] * given.quick
    for name, values in (("--models", given.models), ("--part", given.part)):
        options += [name, *values] if values else []
    name = "_".join([commit[:12], digest_of_oracle(), *options]).replace("/", "_")
    base, unfinished = KEPT / name, KEPT / f"{name}.unfinished"
    if not base.exists():
        shutil.rmtree(unfinished, ignore_errors=True)
        with installed(commit, given.own_libraries) as python:
            record(python, unfinished, options)
        unfinished.rename(base)
    with tempfile.TemporaryDirectory() as made:
        now = Path(made) / "now"
        record(sys.executable, now, options)
        found = differences(base, now)
    print(f"from {commit[:12]} to this checkout:\n\n{report(found)}")  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
