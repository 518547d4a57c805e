"""At length: other compilers, libFuzzer, Valgrind, the lines that runs reach, and every Python on the machine."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import fsm_dyn
from fsm_dyn.language.models import names
from tests.checkouts import environment
from tests.runtime.building import BUILT, FOLDER, LANGUAGE, compile_library

pytestmark = [pytest.mark.runtime, pytest.mark.long, pytest.mark.timeout(3600)]
ROOT = BUILT.parents[1]
TARGETS, MACHINE = (Path(__file__).with_name(name) for name in ("fuzz_targets.c", "fuzz_machine.c"))
FUZZING = 120  # s
FUZZER = ["-g", "-O1", "-fsanitize=fuzzer,address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"]


def needs(program):
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"there is no {program}")


@needs("clang")
def test_clang_gives_the_same_bits(tmp_path):
    """Every shipped model with every method, live ticks and several runs in one call, by two compilers."""
    found = []
    for compiler in ("gcc", "clang"):
        library = tmp_path / f"{compiler}.so"
        compile_library([FOLDER / "fsm_runtime.c"], library, "-O2", "-fvisibility=hidden", compiler=compiler)
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "tests.runtime.runs", str(library), *names()],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        found.append(done.stdout.splitlines())
    assert found[0] == found[1]


def fuzz(program, longest):
    """Run libFuzzer in the program's folder, with inputs up to so many bytes."""
    (program.parent / "corpus").mkdir()
    done = subprocess.run(
        [str(program), f"-max_total_time={FUZZING}", "-timeout=10", f"-max_len={longest}", "-seed=1", "corpus"],
        cwd=program.parent, capture_output=True, text=True, timeout=FUZZING + 60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stderr


@needs("clang")
def test_libfuzzer(tmp_path):
    """Roots, elimination, eigenvalues, Lemke's method and linear programs on arbitrary bytes."""
    program = tmp_path / "fuzz"
    subprocess.run(["clang", *LANGUAGE, *FUZZER, str(TARGETS), "-o", str(program), "-lm"], check=True)
    fuzz(program, 900)


@needs("clang")
@pytest.mark.parametrize("name", ["ball_in_corner", "shopping_cart", "box_on_table", "latch"])
def test_libfuzzer_on_recorded_resolutions(name, tmp_path):
    """States saved at the events of a run, tampered with: refused, or restored, resolved and continued."""
    fsm_dyn.export(fsm_dyn.compile(name), tmp_path / "machine")
    program, folder = tmp_path / "fuzz", tmp_path / "machine"
    sources = [str(MACHINE), str(folder / f"{name}.c"), f"-DFSM_FUZZED={name}_model", "-DFSM_NO_HOST"]
    subprocess.run(
        ["clang", "-std=c99", "-ffp-contract=off", f"-I{folder}", *FUZZER, *sources, "-o", str(program), "-lm"],
        check=True,
    )
    said = fuzz(program, 200)
    assert int(re.findall(r"cov: (\d+)", said)[-1]) > 1000, "hardly a state was restored"


@needs("valgrind")
def test_valgrind(tmp_path):
    """No uninitialised number decides anything, and nothing outside an array is touched."""
    program = tmp_path / "alone"
    subprocess.run(["gcc", *LANGUAGE, "-g", "-O1", "-DFSM_ALONE", str(TARGETS), "-o", str(program), "-lm"], check=True)
    done = subprocess.run(
        ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full", str(program)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]


#: Tests that call the runtime, run with a library that counts its lines.
COVERING = [
    "tests/unit/run", "tests/unit/language/laws", "tests/unit/run", "tests/unit/live/passivity", "tests/unit/live",
    "tests/unit/devices", "tests/unit/run/results", "tests/physics", "tests/models", "tests/reference",
]  # fmt: skip
LEAST_LINES = 95.0  # % of each file


@needs("gcov")
@pytest.mark.timeout(7200)  # twelve minutes on idle cores
def test_lines_that_are_run(tmp_path):
    """All models by all methods, live ticks, tests of the runtime, fuzzing: at least 95 % of the lines of each file."""
    copy = tmp_path / "copy"  # with the library of every process in it that counts
    for name in ("fsm_dyn", "tests", "yaml_models", "mechanisms", "docs"):
        shutil.copytree(ROOT / name, copy / name)
    shutil.copy(ROOT / "pyproject.toml", copy)
    counting = environment(copy, FSM_DYN_TEST_FLAGS="-O0 -g --coverage")

    def python(*arguments, check=True):
        return subprocess.run(
            [sys.executable, "-W", "ignore", *arguments],
            cwd=copy, env=counting, capture_output=True, text=True, check=check,
        )  # fmt: skip

    imported = python("-c", "import fsm_dyn; print(fsm_dyn.__file__)").stdout.strip()
    assert Path(imported).is_relative_to(copy)
    library = python("-c", "from tests.runtime.internals import internals; print(internals().library._name)")
    installed = copy / "fsm_dyn" / "runtime" / "_fsm_runtime.so"
    shutil.copy(library.stdout.strip(), installed)
    python("-m", "tests.runtime.runs", str(installed), *names())
    tests = python("-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *COVERING, check=False)
    inner = [f"tests/runtime/{name}.py" for name in ("test_saved_state", "test_elementary", "test_layers")]
    python("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *inner)
    python("-m", "tests.runtime.fuzz", "--seconds", "90")
    found = lines_run(copy / "build" / "tests")
    print(tests.stdout[-1500:], *(f"{name}: {share:.1f} %" for name, share in sorted(found.items())), sep="\n")
    assert len(found) >= len(list(FOLDER.glob("*.c"))) - 1
    assert not {name: round(share, 1) for name, share in found.items() if share < LEAST_LINES}


def lines_run(folder):
    """Share of lines run (%) of each file of the runtime, by name."""
    (notes,) = folder.glob("*.gcno")
    done = subprocess.run(
        ["gcov", "--json-format", "--stdout", notes.name], cwd=folder, capture_output=True, text=True, check=True
    )
    found = {}
    for file in json.loads(done.stdout)["files"]:
        lines = {}
        for line in file["lines"]:  # inline functions have a line in each caller
            lines[line["line_number"]] = lines.get(line["line_number"], 0) + line["count"]
        if lines and Path(file["file"]).parent.name == "runtime" and Path(file["file"]).name != "exported.c":
            found[Path(file["file"]).name] = 100.0 * sum(count > 0 for count in lines.values()) / len(lines)
    return found


def pythons():
    """Interpreters from 3.11 on, one per version: those on the path, and those of pyenv."""
    folders = [*map(Path, os.environ["PATH"].split(":")), *Path.home().glob(".pyenv/versions/*/bin")]
    found = {}
    for program in (path for folder in folders for path in folder.glob("python3.*")):
        if re.fullmatch(r"python3\.\d+", program.name):
            done = subprocess.run(
                [program, "-c", "import sys, pip; print(*sys.version_info[:2])"], capture_output=True, text=True
            )
            if done.returncode == 0 and (version := tuple(map(int, done.stdout.split()))) >= (3, 11):
                found.setdefault(version, str(program))
    return [found[version] for version in sorted(found)]


def test_a_wheel_serves_every_python(tmp_path):
    """One wheel, built once, installed with what it needs for each interpreter, runs a model to the same bits."""
    if "scikit_build_core" not in (ROOT / "pyproject.toml").read_text():
        pytest.skip("the build does not compile the runtime yet")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(tmp_path), str(ROOT)], check=True
    )
    (wheel,) = tmp_path.glob("*.whl")
    assert "py3-none" in wheel.name
    script = "import fsm_dyn; print(fsm_dyn.simulate(fsm_dyn.compile('bouncing_ball'), 6.0).t.tobytes().hex())"
    printed = set()
    for python in pythons():
        venv = tmp_path / Path(python).name
        subprocess.run([python, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(venv / "bin/pip"), "install", "--quiet", "--only-binary", ":all:", str(wheel)], check=True)
        done = subprocess.run(
            [str(venv / "bin/python"), "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        printed.add(done.stdout)
    assert len(printed) == 1


def lowest_versions():
    """The oldest release of every package that the project file allows, one requirement each."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(item for name in ("analysis", "live", "view") for item in extras[name])]
    bounds = (re.match(r"([\w.-]+)>=([\d.]+)", item) for item in wanted)
    return sorted({f"{bound[1]}=={bound[2]}" for bound in bounds if bound})


@pytest.mark.parametrize("versions", ["lowest", "newest"])
def test_dependencies(versions, tmp_path):
    """Unit tests and references with the oldest releases that the project file allows, and with the newest."""
    pinned = tmp_path / "versions.txt"
    pinned.write_text("\n".join(lowest_versions() if versions == "lowest" else []))
    subprocess.run([pythons()[0], "-m", "venv", str(tmp_path / "venv")], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--upgrade", "--constraint", str(pinned)]
    subprocess.run([*install, f"{ROOT}[test]"], check=True)
    if versions == "lowest":
        listed = subprocess.run([python, "-m", "pip", "freeze"], check=True, capture_output=True, text=True).stdout
        assert "numpy==2.1.0" in listed
    shutil.copytree(ROOT / "tests", tmp_path / "tests")
    for name in ("pyproject.toml", "docs", "mechanisms", "yaml_models"):
        (tmp_path / name).symlink_to(ROOT / name)
    folders = [
        "tests/unit/language",
        "tests/unit/derive/modes",
        "tests/unit/run",
        "tests/unit/run/results",
        "tests/reference",
    ]
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *folders],
        cwd=tmp_path, env={**os.environ, "FSM_DYN_CACHE": str(tmp_path / "cache")}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
