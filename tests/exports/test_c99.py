"""Exports to C99 against the runs of Python: the same bits; names, folders, memory, and what is refused."""

import ctypes
import math
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.exports.c_model import source, start_parameters, tunable_parameters, with_spare_modes
from fsm_dyn.exports.export import _c99, _write, prepared
from fsm_dyn.exports.exported_machine import identifiers, mode_identifiers, prefix_of
from fsm_dyn.exports.fmi import tangents_source
from fsm_dyn.programs.sources import share_angles
from fsm_dyn.run.loop import run_automaton
from fsm_dyn.run.online import OnlineExecutable
from fsm_dyn.run.run_options import RunOptions
from fsm_dyn.runtime.abi import Status
from tests.exports.building import FLAGS, LONG, SANITIZE, Machine, built, exported, machine_object, printed
from tests.runtime.building import COMPILER, sanitizers_work

STIFFER = {"k_door": "90 N/m"}
QUICK = ["latch", "shopping_cart", "cart_on_ramp", "piano_action_simple"]
ALL = [pytest.param(name, marks=() if name in QUICK else LONG) for name in fsm_dyn.language.models.names()]


def check_same(graph, program, **options):
    """Check an example's output against a run by kernels, bit for bit."""
    run = fsm_dyn.Simulator(graph).run(strategy="compiled", on_failure="return", **options)
    transitions, end, values = printed(program)
    assert [(time, text.split(" [")[0]) for time, text in transitions] == [
        (x.time, f"{x.source} -> {x.target}") for x in run.transitions
    ]
    assert end.startswith(f"{run.outcome.name} at {run.t[-1]:.17g} s")
    names = [*run.model.layout.q, *run.model.layout.u]
    assert {name: values[name] for name in names} == dict(zip(names, [*run.q[-1], *run.u[-1]], strict=True))
    assert {name for name in values if name.startswith("output ")} == {f"output {name}" for name in run.model.outputs}
    for name in run.model.outputs:
        assert values[f"output {name}"] == run[name][-1]


@pytest.mark.parametrize("name", ALL)
def test_the_same_bits_as_in_python(name, tmp_path):
    graph, folder = exported(name, tmp_path)
    check_same(graph, built(folder, name))


@pytest.mark.parametrize("optimised", ["-O0", pytest.param("-O2", marks=pytest.mark.long)])
@pytest.mark.parametrize("real", ["double", pytest.param("float", marks=pytest.mark.long)])
@pytest.mark.parametrize("name", ALL)
def test_no_more_stack_than_stated(name, real, optimised, tmp_path):
    try:
        _, folder = exported(name, tmp_path, real=real)
    except InputError:
        assert real == "float", "a model whose tolerances floats do not resolve"
        return
    program = folder / "stack_used"
    own = [f'-DNAMES="{name}.h"', f"-DMODEL={name}_model", optimised, "-pthread"]
    sources = [str(Path(__file__).with_name("stack_used.c")), f"{name}.c", str(machine_object(folder, optimised))]
    subprocess.run([COMPILER, *FLAGS, *own, *sources, "-o", str(program), "-lm"], cwd=folder, check=True)
    used = int(subprocess.run([program], capture_output=True, text=True, check=True).stdout)
    stated = re.search(r"up to ([\d,]+) bytes of stack", (folder / "README.md").read_text())[1]
    assert 1000 < used < int(stated.replace(",", ""))


@pytest.mark.long  # the runtime itself is sanitized by `make test-runtime`
@pytest.mark.parametrize("name", ["latch", "piano_action"])
def test_nothing_outside_its_memory(name, tmp_path):
    if reason := sanitizers_work():
        pytest.skip(reason)
    graph, folder = exported(name, tmp_path)
    check_same(graph, built(folder, name, *SANITIZE, "-O0"))


def test_switches_over_time(tmp_path):
    """9,000 of them, more than a run in Python has in one table."""
    pulsed = {
        "fsm_dyn": 1,
        "name": "pulsed",
        "coordinates": {"x": "m"},
        "points": {"C": {"from": "O", "at": "x*N.x"}},
        "bodies": {"block": {"center": "C", "mass": "2 kg"}},
        "inputs": {"push": "N"},
        "schedule": {"push": {"steps": [["0 s", "0 N"], ["4.5 s", "1 N"]]}},
        "loads": [{"force": "where(mod(t, 1 ms) < 0.3 ms, 1 N, push)*N.x", "at": "C"}],
    }
    graph = fsm_dyn.compile(pulsed)
    folder = fsm_dyn.export(graph, tmp_path / "out")
    check_same(graph, built(folder, "pulsed"))


def test_kinks_of_held_rows(tmp_path):
    yoyo = {
        "fsm_dyn": 1,
        "name": "yoyo",
        "coordinates": {"y": "m", "q": "rad"},
        "frames": {"B": {"parent": "N", "rotate": {"z": "q"}}},
        "points": {"P": {"from": "O", "at": "-y*N.y"}},
        "bodies": {"yoyo": {"frame": "B", "center": "P", "mass": "50 g", "inertia": {"zz": "2e-5 kg*m^2"}}},
        "constraints": {"string": {"position": "y - 0.8 m + (5 mm)*abs(q)"}},
        "loads": [{"gravity": "-9.81 m/s^2*N.y"}],
        "initial": {"q": "-160 rad"},
    }
    graph = fsm_dyn.compile(yoyo)
    folder = fsm_dyn.export(graph, tmp_path / "out")
    program = built(folder, "yoyo")
    check_same(graph, program)
    assert printed(program)[0][0][0] == pytest.approx(1.66513691, abs=1e-7)


def test_an_impulse(tmp_path):
    struck = {
        "fsm_dyn": 1,
        "name": "struck",
        "coordinates": {"x": "m", "y": "m"},
        "points": {"C": {"from": "O", "at": "x*N.x + y*N.y"}},
        "bodies": {"block": {"center": "C", "mass": "2 kg"}},
        "loads": [{"gravity": "-9.81 m/s^2*N.y"}],
        "contacts": {"table": {"gap": "y", "slip": "rate(x)", "friction": {"static": 0.5, "kinetic": 0.4}}},
        "initial": {"x": "0 m", "y": "0 m"},
        "transitions": [
            {"from": "*", "when": "t - 0.1 s", "impulse": [{"linear": "3 N*s*N.x - 2 N*s*N.y", "at": "C"}]}
        ],
    }
    graph = fsm_dyn.compile(struck)
    folder = fsm_dyn.export(graph, tmp_path / "out")
    assert len(fsm_dyn.simulate(graph).transitions) == 2  # struck, and at rest again
    check_same(graph, built(folder, "struck"))


@pytest.mark.parametrize(
    "options",
    [
        {"parameters": STIFFER, "method": "rk4", "step": 1e-3},
        {"inputs": {"push": "6 N*sin(3 rad/s*t)"}},
        {"inputs": {"push": {"linear": [[0.0, 0.0], [0.5, 8.0]]}}},
    ],
)
def test_parameters_inputs_and_method(options, tmp_path):
    graph = fsm_dyn.compile("latch")
    folder = fsm_dyn.export(graph, tmp_path / "out", **options)
    check_same(graph, built(folder, "latch"), **options)


@pytest.mark.parametrize("compiler", ["clang", "arm-none-eabi-gcc"])
def test_other_compilers_have_no_warning(compiler, tmp_path):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    _, folder = exported("latch", tmp_path)
    target = ["-mthumb", "-mcpu=cortex-m7", "-mfpu=fpv5-d16", "-mfloat-abi=hard"] if "arm" in compiler else []
    for name in ("latch.c", "fsm_machine.c", "main.c"):
        subprocess.run([compiler, *FLAGS, *target, "-fsyntax-only", name], cwd=folder, check=True)


def test_a_missing_compiler_is_named(tmp_path):
    if not shutil.which("make"):
        pytest.skip("no make")
    _, folder = exported("latch", tmp_path)
    done = subprocess.run(["make", "CC=not-there-gcc"], cwd=folder, capture_output=True, text=True)
    assert done.returncode != 0
    assert "there is no not-there-gcc; on Debian: apt-get install gcc" in done.stderr


@pytest.mark.parametrize("real", [pytest.param("double", marks=pytest.mark.long), "float"])
def test_the_library_of_cmake(real, tmp_path):
    if not shutil.which("cmake"):
        pytest.skip("no cmake")
    _, folder = exported("latch", tmp_path, real=real)
    made = folder / "made"
    subprocess.run(["cmake", "-S", folder, "-B", made, "-DCMAKE_BUILD_TYPE=Debug"], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", made], check=True, capture_output=True)
    assert (made / "liblatch_machine.a").exists()
    transitions, end, _ = printed(made / "latch")
    assert len(transitions) > 10
    assert end.startswith("done at 5 s")


@pytest.fixture(scope="module")
def cart(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cart")
    graph, exported_to = exported("shopping_cart", folder)
    return graph, exported_to, Machine(exported_to, "shopping_cart")


def test_memory_is_as_stated_and_too_little_is_refused(cart):
    _, folder, machine = cart
    stated = next(line for line in (folder / "shopping_cart.h").read_text().splitlines() if "_BYTES" in line)
    assert int(stated.split()[2]) == machine.bytes
    assert machine.create(machine.bytes - 1) is None
    assert machine.create() is not None


def test_machines_side_by_side_and_started_again_give_the_same(cart):
    graph, _, machine = cart
    n = len(graph.automaton.terms.layout.q) + len(graph.automaton.terms.layout.u)
    alone, other = machine.create(), machine.create()
    for k in range(1, 61):
        assert machine.advance(alone, 0.1 * k) == Status.DONE
    wanted = machine.state(alone, n)
    machine.lib.fsm_machine_restart(machine_pointer(alone))
    for k in range(1, 61):  # in turn
        assert machine.advance(other, 0.1 * k) == machine.advance(alone, 0.1 * k) == Status.DONE
    assert machine.state(alone, n) == machine.state(other, n) == wanted


def machine_pointer(machine):
    return ctypes.c_void_p(machine)


def test_inputs_run_linearly_to_what_is_set(cart):
    """Against a run with the same broken lines as inputs; both follow them to 1e-9."""
    graph, _, machine = cart
    layout = graph.automaton.terms.layout
    n = len(layout.q) + len(layout.u)
    begin = fsm_dyn.simulate(graph, 1e-3)
    corners = {name: [[0.0, float(begin.inputs[name][0])], [0.5, 0.0]] for name in layout.w}
    it, push = machine.create(), layout.w.index("push")
    for number in range(len(layout.w)):
        machine.lib.fsm_machine_set_input(machine_pointer(it), ctypes.c_int64(number), ctypes.c_double(0.0))
    assert machine.advance(it, 0.5) == machine.advance(it, 1.0) == Status.DONE
    machine.lib.fsm_machine_set_input(machine_pointer(it), ctypes.c_int64(push), ctypes.c_double(4.0))
    assert machine.advance(it, 2.0) == machine.advance(it, 3.0) == Status.DONE
    assert machine.lib.fsm_machine_time(machine_pointer(it)) == 3.0
    corners["push"] += [[1.0, 0.0], [2.0, 4.0], [3.0, 4.0]]
    run = fsm_dyn.simulate(graph, 3.0, inputs={name: {"linear": rows} for name, rows in corners.items()})
    assert machine.state(it, n) == pytest.approx([*run.q[-1], *run.u[-1]], abs=1e-7)
    assert abs(run.u[-1]).max() > 0.1, "it was pushed"


def online_run(graph, most=200_000):
    """Run a schedule in Python with the modes of the graph by kernels and all others embedded online."""
    simulator = fsm_dyn.Simulator(graph)
    setup = simulator.setup(RunOptions())
    start = setup.start
    executable = OnlineExecutable(graph.automaton, (start.x, start.context), derived=graph.automaton.modes)
    executable.use(simulator.numerics(setup.numbers, setup.vector))
    numerics = executable.numerics
    atol = np.array(np.broadcast_to(numerics.atol, start.x.shape))
    return run_automaton(
        executable.tables, start.x, start.context, executable.mode_index(start.states), 0.0,
        RunOptions(setup.end, rtol=numerics.rtol, atol=atol, max_steps=most), drive=setup.drive, mode_source=executable,
    ), executable  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        *("piano_action_simple", "latch_door", "tray"),
        *(pytest.param(name, marks=pytest.mark.long) for name in ("seat_belt_reel", "cart_on_ramp", "piano_action")),
    ],
)
def test_modes_that_were_not_exported_are_embedded_online(name, tmp_path):
    """The bits of Python's modes embedded online; latch_door comes to the mode in which nothing touches."""
    compare_spare_modes(fsm_dyn.compile(name), name, tmp_path)


ROD = {
    "fsm_dyn": 1,
    "name": "rod",
    "coordinates": {"q": "rad"},
    "frames": {"A": {"rotate": {"z": "q"}}},
    "points": {"C": {"from": "O", "at": "0.2 m*A.x"}, "J": {"from": "O", "at": "0.4 m*A.x"}},
    "bodies": {"bar": {"frame": "A", "center": "C", "mass": "1 kg", "inertia": {"zz": "0.01 kg*m^2"}}},
    "loads": [{"gravity": "-9.81 m/s^2*N.y"}],
    "imposed": {
        "catch": {"pin": ["J", "ground"], "at": "0.2 s", "until": "0.3 s"},
        "hold": {"coordinate": "q", "at": "0.4 s", "until": "0.45 s"},
    },
}


@pytest.mark.long
def test_imposed_constraints_have_their_modes_in_spare_ones(tmp_path):
    """Modes of constraints to impose are embedded online alone: an exported rod is caught by a spare mode."""
    compare_spare_modes(fsm_dyn.compile(ROD), "rod", tmp_path)


def compare_spare_modes(graph, name, tmp_path):
    """Compare transitions, end and last state of an export with spare modes with those of Python, to the bit."""
    run = with_spare_modes(prepared(graph, listed_modes=True), 64)
    _write(tmp_path / "out", _c99(run))
    transitions, end, values = printed(built(tmp_path / "out", name))
    wanted, executable = online_run(graph)
    assert len(executable.charts) > len(graph.modes), "modes are met that the graph has not"
    names = [name if number < len(graph.modes) else "other" for number, name in enumerate(executable.chart_names)]
    made = wanted.transitions
    assert [(time, text.split(" [")[0]) for time, text in transitions] == [
        (time, f"{names[a]} -> {names[b]}")
        for time, a, b in zip(made.time.tolist(), made.source.tolist(), made.target.tolist(), strict=True)
    ]
    assert end.startswith(f"{wanted.outcome.name} at {wanted.t[-1]:.17g} s")
    layout = graph.automaton.terms.layout
    assert [values[key] for key in layout.x] == wanted.x[-1].tolist()


def test_a_saved_machine_has_its_spare_modes(tmp_path):
    """A machine continues one that was saved in a mode embedded online, with its bits; and so does itself, put back."""
    folder = tmp_path / "out"
    graph = fsm_dyn.compile("latch_door")
    fsm_dyn.export(graph, folder, listed_modes=True, spare_modes=20)
    it, n, ends = Machine(folder, "latch_door"), graph.automaton.terms.layout.n_x, 0.09
    one, other = it.create(), it.create()
    it.lib.fsm_machine_saved_bytes.restype = it.lib.fsm_machine_mode_count.restype = ctypes.c_int64
    assert it.advance(one, ends) == Status.DONE
    assert it.lib.fsm_machine_mode(machine_pointer(one)) >= len(graph.modes), "a mode that was not exported"
    assert it.lib.fsm_machine_mode_count(machine_pointer(other)) == len(graph.modes)
    saved = (ctypes.c_char * it.lib.fsm_machine_saved_bytes(machine_pointer(one)))()
    it.lib.fsm_machine_save(machine_pointer(one), saved)
    it.lib.fsm_machine_restore(machine_pointer(other), saved)
    ends += 0.5
    assert it.advance(one, ends) == it.advance(other, ends) == Status.DONE
    wanted = it.state(one, n)
    assert it.state(other, n) == wanted
    it.lib.fsm_machine_restore(machine_pointer(one), saved)
    assert it.advance(one, ends) == Status.DONE
    assert it.state(one, n) == wanted


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("latch", {"spare_modes": 65}, r"out of range.*65.*0 to 64"),
        ("latch", {"spare_modes": 3, "target": "html"}, r"a page has its own room"),
        ("latch", {"spare_modes": 3}, r"lists its modes"),
    ],
)
def test_spare_modes_that_cannot_be_had(name, options, words, tmp_path):
    with pytest.raises(InputError, match=f"(?s){words}"):
        fsm_dyn.export(fsm_dyn.compile(name), tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_a_mode_that_was_not_exported_is_named(tmp_path):
    _, folder = exported("piano_action_simple", tmp_path, listed_modes=True)
    transitions, end, _ = printed(built(folder, "piano_action_simple"))
    assert end.startswith("mode not listed at ")
    assert transitions == [] or transitions[-1][0] <= 5.0


def test_identifiers():
    assert identifiers("inputs", ["push", "θ", "a b"]) == ["push", "_u3b8_", "a_u20_b"]
    with pytest.raises(InputError, match=r"(?s)two inputs have the same identifier.*'θ' and '_u3b8_'"):
        identifiers("inputs", ["θ", "_u3b8_"])
    with pytest.raises(InputError, match="two inputs have the same identifier"):
        identifiers("inputs", ["count"])
    assert mode_identifiers(["a+b", "a b", "é", "for"]) == ["a_b", "a_b_2", "none", "for"]
    assert mode_identifiers(["a b", "a-b", "a_b_2", "count", "other"]) == [
        "a_b",
        "a_b_2",
        "a_b_2_2",
        "count_2",
        "other_2",
    ]
    assert prefix_of("2 bars") == "_u32__u20_bars"


@pytest.mark.parametrize("name", ["main", "fsm_machine", "runtime", "clean"])
def test_a_model_that_would_write_over_files_of_the_export_is_refused(name, tmp_path):
    text = fsm_dyn.language.models.find("bouncing_ball").read_text(encoding="utf-8")
    graph = fsm_dyn.compile(
        fsm_dyn.language.loader.load(name, text=text.replace("name: bouncing_ball", f"name: {name}"))
    )
    with pytest.raises(InputError, match="the export has files of that name"):
        fsm_dyn.export(graph, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "c98"}, r"no export to 'c98'.*c99"),
        ({"method": "radau"}, r"'radau' cannot be exported"),
        ({"method": "rk4"}, r"needs the length of its steps"),
        ({"inputs": {"push": math.sin}}, r"input 'push' is a Python function.*an expression of t"),
        ({"inputs": {"push": math.sin}, "target": "fmu3"}, r"input 'push' is a Python function"),
        ({"inputs": {"push": math.sin}, "target": "html"}, r"input 'push' is a Python function"),
        ({"inputs": {"pull": 1.0}}, r"no input 'pull'.*push"),
        ({"scenario": "slam"}, r"no scenario 'slam'"),
    ],
)
def test_what_cannot_be_exported(options, words, tmp_path):
    with pytest.raises(InputError, match=f"(?s){words}"):
        fsm_dyn.export(fsm_dyn.compile("latch"), tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_with_a_length_of_steps_the_method_is_rk4(tmp_path):
    graph = fsm_dyn.compile("latch")
    files = [
        fsm_dyn.export(graph, tmp_path / name, step=1e-3, **method)
        for name, method in {"a": {}, "b": {"method": "rk4"}}.items()
    ]
    assert (files[0] / "latch.c").read_bytes() == (files[1] / "latch.c").read_bytes()
    assert (fsm_dyn.export(graph, tmp_path / "adaptive") / "latch.c").read_bytes() != (
        files[0] / "latch.c"
    ).read_bytes()


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("kept")
    with pytest.raises(InputError, match="holds other files"):
        fsm_dyn.export(fsm_dyn.compile("latch"), tmp_path)
    with pytest.raises(InputError, match="is a file"):
        fsm_dyn.export(fsm_dyn.compile("latch"), tmp_path / "mine.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    folder = fsm_dyn.export(fsm_dyn.compile("latch"), tmp_path / "own")
    first = (folder / "latch.c").read_bytes()
    assert (fsm_dyn.export(fsm_dyn.compile("latch"), folder) / "latch.c").read_bytes() == first


def test_a_bearing(tmp_path):
    """What decides with loads of reactions, exported: it starts at rest, slides, reverses and sticks."""
    rocker = {
        "fsm_dyn": 1,
        "name": "rocker",
        "joints": {
            "pivot": {
                "revolute": {"child": "arm", "at": "O", "axis": "N.z", "radius": "20 mm", "friction": "0.4"},
            }
        },
        "points": {"C": {"from": "arm_origin", "at": "0.1 m*arm.x"}},
        "bodies": {"weight": {"frame": "arm", "center": "C", "mass": "2 kg", "inertia": {"zz": "0.01 kg*m^2"}}},
        "loads": [{"gravity": "-9.81 m/s^2*N.y"}],
    }
    graph = fsm_dyn.compile(rocker)
    folder = fsm_dyn.export(graph, tmp_path / "out")
    assert [x.target for x in fsm_dyn.simulate(graph).transitions][-1] == "pivot_friction_stick"
    check_same(graph, built(folder, "rocker"))


def test_calls_are_checked(tmp_path):
    """Times that are past or no numbers, bytes of another machine, inputs and parameters that cannot be set, limits."""
    graph, folder = exported("bouncing_ball", tmp_path)
    machine = Machine(folder, "bouncing_ball")
    lib, it = machine.lib, machine.create()
    names = list(graph.automaton.terms.layout.p)
    set_inputs = lib.fsm_machine_set_input, lib.fsm_machine_hold_input
    for function in (lib.fsm_machine_restore, lib.fsm_machine_set_parameter, lib.fsm_machine_set_time, *set_inputs):
        function.restype = ctypes.c_bool
    lib.fsm_machine_saved_bytes.restype = ctypes.c_int64

    def set_parameter(number, value):
        return lib.fsm_machine_set_parameter(machine_pointer(it), ctypes.c_int64(number), ctypes.c_double(value))

    assert machine.advance(it, 0.3) == Status.DONE
    before = machine.state(it, 2)
    for time in (math.nan, 0.1, -1.0, math.inf):
        assert machine.advance(it, time) == 255
        assert machine.state(it, 2) == before
    n_w = len(graph.automaton.terms.layout.w)
    for set_input in set_inputs:
        for number, value in [(-1, 1.0), (n_w, 1.0), *((k, x) for k in range(n_w) for x in (math.nan, math.inf))]:
            assert not set_input(machine_pointer(it), ctypes.c_int64(number), ctypes.c_double(value)), number
    assert not lib.fsm_machine_set_time(machine_pointer(it), ctypes.c_double(math.nan))
    e, run = names.index("e"), prepared(graph)
    assert [set_parameter(e, value) for value in (0.0, 1.0, 0.5)] == [True] * 3
    assert [set_parameter(e, value) for value in (-1e-6, 1.1, math.nan, math.inf)] == [False] * 4
    assert [set_parameter(number, 1.0) for number in (-1, len(names), 10**9)] == [False] * 3
    started = {*tunable_parameters(run)} - start_parameters(run)
    assert started == {"g", "e"}, "the mass enters the inertia, the height the start alone"
    for number, name in enumerate(names):
        assert set_parameter(number, graph.values[name]) == (name in started), name
    size = lib.fsm_machine_saved_bytes(machine_pointer(it))
    saved = ctypes.create_string_buffer(size)
    lib.fsm_machine_save(machine_pointer(it), saved)
    assert machine.advance(it, 1.0) == Status.DONE
    after = machine.state(it, 2)
    for at in range(0, size, max(1, size // 40)):
        damaged = ctypes.create_string_buffer(saved.raw, size)
        damaged[at] = bytes([saved.raw[at] ^ 1])
        assert not lib.fsm_machine_restore(machine_pointer(it), damaged), at
        assert machine.state(it, 2) == after
    assert lib.fsm_machine_restore(machine_pointer(it), saved)
    assert machine.state(it, 2) == before
    assert machine.advance(it, 1.0) == Status.DONE


SLED = {
    "fsm_dyn": 1, "name": "sled", "coordinates": {"x": "m", "y": "m"},
    "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}},
    "parameters": {"mu_s": 0.5, "mu_k": 0.4, "percent": 50, "bound": "2 N"},
    "bodies": {"sled": {"center": "P", "mass": "1 kg"}},
    "contacts": {
        "ground": {"gap": "y", "slip": "x_dot", "friction": {"static": "mu_s", "kinetic": "mu_k"},
                   "restitution": "percent/100"},
        "rail": {"dry_friction": {"speed": "x_dot", "static": "bound", "kinetic": "bound - 1 N"}},
    },
    "loads": [{"gravity": "-9.81 m/s^2*N.y"}], "initial": {"y": "1 mm", "x_dot": "1 m/s"},
}  # fmt: skip


def test_laws_hold_with_parameters_that_are_set_while_it_runs(tmp_path):
    """Restitutions from 0 to 1 and kinetic friction up to the static one, also of products of parameters."""
    graph = fsm_dyn.compile(fsm_dyn.load(SLED))
    machine = Machine(fsm_dyn.export(graph, tmp_path), "sled")
    it, names = machine.create(), list(graph.automaton.terms.layout.p)
    function = machine.lib.fsm_machine_set_parameter
    function.restype = ctypes.c_bool

    def put(name, value):
        return function(machine_pointer(it), ctypes.c_int64(names.index(name)), ctypes.c_double(value))

    assert machine.advance(it, 0.01) == Status.DONE
    assert [put("percent", value) for value in (100.0, 100.1, 0.0, -0.1)] == [True, False, True, False]
    assert [put("mu_k", value) for value in (0.5, 0.51, 0.0, -0.01)] == [True, False, True, False]
    assert put("mu_k", 0.4)
    assert [put("mu_s", value) for value in (0.39, 0.4, 0.9)] == [False, True, True]
    assert put("mu_k", 0.9)
    assert [put("bound", value) for value in (0.9, 1.0, 5.0)] == [False, True, True]
    assert machine.advance(it, 0.3) == Status.DONE


def test_headers_are_for_cpp_and_floats_must_follow_the_standard(tmp_path):
    _, folder = exported("bouncing_ball", tmp_path)
    text = (folder / "bouncing_ball.h").read_text(encoding="utf-8")
    for line in ("state_y = 0, // m; 1.0 at", "state_v = 1, // m/s; 0.0 at", "parameter_g = 1, // m/s^2; 9.81 at"):
        assert f"    bouncing_ball_{line} the start\n" in text
    assert "mode_flight = 0,\n" in text
    (folder / "used.cpp").write_text(
        '#include "bouncing_ball.h"\nint main() { return fsm_machine_bytes(&bouncing_ball_model) > 0 ? 0 : 1; }\n'
    )
    if shutil.which("g++"):
        command = ["g++", "-std=c++11", "-Wall", "-Werror", "-I.", "-fsyntax-only", "used.cpp"]
        subprocess.run(command, cwd=folder, check=True)
    for flag in ("-ffast-math", "-ffinite-math-only"):
        command = [COMPILER, flag, "-I.", "-fsyntax-only", "fsm_machine.c"]
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
        assert done.returncode != 0
        assert "compile without -ffast-math" in done.stderr


@pytest.mark.parametrize("text_of", [source, tangents_source])
def test_functions_kept_from_an_earlier_export_change_no_byte(tmp_path, monkeypatch, text_of):
    """Without a cache, with an empty one, and with a full one, from which all functions come."""
    calls = []

    def counted(program):
        calls.append(program)
        return share_angles(program)

    monkeypatch.setattr("fsm_dyn.exports.c_model.share_angles", counted)
    texts, counts = [], []
    for cache in ("/proc/nowhere", str(tmp_path), str(tmp_path)):  # nothing can be kept in the first
        monkeypatch.setenv("FSM_DYN_CACHE", cache)
        texts.append(text_of(prepared(fsm_dyn.compile("latch"))))
        counts.append(len(calls))
        calls.clear()
    assert texts[0] == texts[1] == texts[2]
    assert counts[0] > 0
    assert counts[2] == 0
