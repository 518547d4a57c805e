"""Exports of floats: how a source is rewritten, which tolerances hold, and runs against those of doubles."""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import fsm_dyn
import fsm_dyn.runtime
from fsm_dyn.core.errors import InputError
from fsm_dyn.exports.export import (
    DOUBLE_EPS,
    FLOAT_EPS,
    LEFT_OUT,
    ROUNDINGS,
    in_floats,
    of_floats,
    prepared,
    runtime_in_floats,
    single_tolerances,
)
from fsm_dyn.language.scales import SI, Scales
from fsm_dyn.run.tolerances import Tolerances
from tests.exports.building import FLAGS, SANITIZE, built, exported, printed
from tests.runtime.building import COMPILER, sanitizers_work

LONG = ["virtual_wall", "latch", "piano_action_simple"]
MODELS = ["shopping_cart", *(pytest.param(name, marks=pytest.mark.long) for name in LONG)]


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("double x = 1.5e3 * sqrt(y);", "float x = 1.5e3f * sqrtf(y);"),
        ("int n = 15, m = 0x1e5; double a = 0x1p-3;", "int n = 15, m = 0x1e5; float a = 0x1p-3f;"),
        ("/* double 1.0 */ // fabs(2.0)", "/* double 1.0 */ // fabs(2.0)"),
        ('char *s = "double 1.0\\" 2.0", c = \'"\'; x = 2.;', 'char *s = "double 1.0\\" 2.0", c = \'"\'; x = 2.f;'),
        ("double_x = sqrts + x1.fabs;", "double_x = sqrts + x1.fabs;"),
        ("1.0f + 2u + 3LL + 1.0L", "1.0f + 2u + 3LL + 1.0L"),
        ("#define EPS 2.220446049250313e-16\n", f"#define EPS {FLOAT_EPS:.8g}f\n"),
        ("#define TINY 1e-300 // nothing", "#define TINY 1e-30f // nothing"),
        ("#define PART \\\n    1e-8 // a root", f"#define PART \\\n    {of_floats(1e-8)!r}f // a root"),
        ("#define FRACTION 1e-3", "#define FRACTION 1e-3f"),
        ("double x = 1e-9;", "float x = 1e-9f;"),  # data, and no threshold
        ("double x = 1e-200;", f"float x = {2.0**-126!r}f;"),
    ],
)
def test_a_source_is_rewritten(source, wanted):
    assert in_floats(source) == wanted


def test_what_floats_cannot_hold_is_refused():
    with pytest.raises(InputError, match="too large for floats"):
        in_floats("double x = 4e38;")


@pytest.mark.parametrize("power", [1.0, 2 / 3, 0.5, 1 / 3])
def test_thresholds_keep_their_share_of_the_digits(power):
    assert of_floats(DOUBLE_EPS**power) == pytest.approx(FLOAT_EPS**power, rel=1e-7)


def test_the_runtime_has_no_doubles_left():
    files = {path.name: path.read_text() for path in Path(fsm_dyn.runtime.__file__).parent.glob("*.[ch]")}
    assert files.keys() >= LEFT_OUT
    found = runtime_in_floats(files)
    assert found.keys() == files.keys() - LEFT_OUT | {"elementary.c"}
    code = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
    assert not [name for name, text in found.items() if re.search(r"\bdouble\b", code.sub("", text))]
    small = re.compile(r"(\w+)\s+(?:\\\n)?\s*([0-9.]+e-[0-9]+)f")
    numbers = {name: float(value) for text in found.values() for name, value in small.findall(text)}
    assert {name for name, value in numbers.items() if value < FLOAT_EPS / 2} == {"FSM_TINIEST", "FSM_NARROWEST"}


ELEMENTARY = """
#include "runtime/elementary.h"
#define ONE(n) void all_##n(const float *x, const float *y, float *out, long count)                                    \
    { (void)y; for (long i = 0; i < count; i++) { out[i] = fsm_##n(x[i]); } }
#define TWO(n) void all_##n(const float *x, const float *y, float *out, long count)                                    \
    { for (long i = 0; i < count; i++) { out[i] = fsm_##n(x[i], y[i]); } }
ONE(sin) ONE(cos) ONE(tan) ONE(asin) ONE(acos) ONE(atan) ONE(exp) ONE(expm1) ONE(log) ONE(sinh) ONE(cosh) ONE(tanh)
TWO(atan2) TWO(pow) TWO(hypot)
"""
EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, -3.0, 1e-40, -1e-40, 1e3, 1e38]
RANGES = {
    "sin": (-20.0, 20.0), "cos": (-20.0, 20.0), "tan": (-20.0, 20.0), "asin": (-1.0, 1.0), "acos": (-1.0, 1.0),
    "atan": (-20.0, 20.0), "exp": (-100.0, 88.7), "expm1": (-2.0, 20.0), "log": (0.0, 30.0), "sinh": (-20.0, 20.0),
    "cosh": (-20.0, 20.0), "tanh": (-9.0, 9.0), "atan2": (-5.0, 5.0), "pow": (0.0, 20.0), "hypot": (-5.0, 5.0),
}  # fmt: skip


@pytest.fixture(scope="module")
def elementary(tmp_path_factory):
    folder = fsm_dyn.export(fsm_dyn.compile("latch"), tmp_path_factory.mktemp("elementary") / "out", real="float")
    (folder / "all.c").write_text(ELEMENTARY)
    command = [COMPILER, *FLAGS, "-O1", "-fPIC", "-shared", "all.c", "runtime/elementary.c", "-o", "all.so", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "all.so"))


def called(library, name, *arguments):
    """Return a function of float32 arrays, and the same of NumPy in doubles."""
    arrays = [np.ascontiguousarray(values, np.float32) for values in arguments]
    out = np.empty_like(arrays[0])
    at = [ctypes.c_void_p(array.ctypes.data) for array in (arrays[0], arrays[-1], out)]
    getattr(library, f"all_{name}")(*at, ctypes.c_long(len(out)))
    names = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "pow": "power"}
    with np.errstate(all="ignore"):
        wanted = getattr(np, names.get(name, name))(*(array.astype(np.float64) for array in arrays))
    return out, wanted


@pytest.mark.parametrize("name", RANGES)
def test_elementary_functions_of_floats(name, elementary):
    random = np.random.default_rng(5)
    two = name in ("atan2", "pow", "hypot")
    given = [random.uniform(*RANGES[name], 50_000) for _ in range(1 + two)]
    given[0][:1000] *= 10.0 ** random.uniform(-20.0, 0.0, 1000)
    got, wanted = called(elementary, name, *given)
    unit = np.spacing(np.abs(wanted.astype(np.float32))).astype(np.float64)
    normal = (np.abs(wanted) > 1e-37) & (np.abs(wanted) < 1e38)
    assert np.max((np.abs(got - wanted) / unit)[normal]) < 4.0

    edges = np.array(EDGES)
    got, wanted = called(elementary, name, *map(np.ravel, np.meshgrid(edges, edges)) if two else [edges])
    plain = np.abs(edges) < 1e4 if name in ("sin", "cos", "tan") else ~np.isnan(wanted)
    with np.errstate(over="ignore"):
        wanted = wanted.astype(np.float32)
    assert np.array_equal(np.isnan(got), np.isnan(wanted))
    np.testing.assert_allclose(got[plain], wanted[plain], rtol=1e-6, atol=1e-37)
    zero = (wanted == 0.0) & ~np.isnan(wanted)
    assert np.array_equal(np.signbit(got[zero]), np.signbit(wanted[zero]))


def test_large_angles(elementary):
    x = np.concatenate([np.random.default_rng(6).uniform(-8000.0, 8000.0, 50_000), [1e30]]).astype(np.float32)
    for name in ("sin", "cos"):
        got, wanted = called(elementary, name, x)
        assert np.abs(got - wanted)[:-1].max() < 1e-7
        assert abs(got[-1]) <= 1.0


def test_tolerances_follow_the_mechanism_and_those_too_small_are_refused():
    own = single_tolerances(Tolerances(gap=1e-3), Scales(length=1024.0))
    assert own.gap == 1e-3
    assert own.speed == ROUNDINGS["speed"][0] * FLOAT_EPS * 1024.0
    assert own.rtol == ROUNDINGS["rtol"][0] * FLOAT_EPS
    with pytest.raises(InputError, match="'gap' is too small for floats") as caught:
        single_tolerances(Tolerances(gap=1e-7), SI)
    assert "4.8e-07 and above" in str(caught.value)


def test_a_model_that_gives_smaller_tolerances_is_refused(tmp_path):
    model = {
        "fsm_dyn": 1, "name": "precise", "coordinates": {"x": "m"}, "points": {"C": {"from": "O", "at": "x*N.x"}},
        "bodies": {"block": {"center": "C", "mass": "2 kg"}}, "numerics": {"rtol": 1e-10},
    }  # fmt: skip
    graph = fsm_dyn.compile(model)
    with pytest.raises(InputError, match="'rtol' is too small for floats"):
        fsm_dyn.export(graph, tmp_path / "out", real="float")
    assert fsm_dyn.export(graph, tmp_path / "out").is_dir()


@pytest.mark.parametrize(
    ("options", "words"),
    [({"target": "fmu3", "real": "float"}, "is of doubles"), ({"real": "half"}, "no numbers of type 'half'")],
)
def test_other_types_and_targets_are_refused(options, words, tmp_path):
    with pytest.raises(InputError, match=words):
        fsm_dyn.export(fsm_dyn.compile("latch"), tmp_path / "out", **options)


@pytest.mark.parametrize("name", MODELS)
def test_the_motion_is_that_of_doubles_with_the_same_tolerances(name, tmp_path):
    graph, folder = exported(name, tmp_path, real="float")
    transitions, end, _ = printed(built(folder, name))
    run = prepared(graph, real="float")
    with_doubles = fsm_dyn.simulate(
        graph, strategy="compiled",
        tolerances=run.numerics.tolerances.specified_entries() | {"atol": float(run.options.atol.max())},
    )  # fmt: skip
    wanted = [(x.time, f"{x.source} -> {x.target}") for x in with_doubles.transitions]
    same = 40 if name == "piano_action_simple" else len(wanted)  # then rounding decides on plastic collisions
    assert [text.split(" [")[0] for _, text in transitions[:same]] == [text for _, text in wanted[:same]]
    assert name == "piano_action_simple" or len(transitions) == len(wanted)
    assert [time for time, _ in transitions[:same]] == pytest.approx([time for time, _ in wanted[:same]], abs=1e-4)
    assert end.startswith(f"done at {np.float32(with_doubles.t[-1]):.17g} s")


def test_memory_is_as_stated(tmp_path):
    _, folder = exported("shopping_cart", tmp_path, real="float")
    (folder / "bytes.c").write_text(
        '#include "shopping_cart.h"\n#include <stdio.h>\n'
        'int main(void) { printf("%ld", (long)fsm_machine_bytes(&shopping_cart_model)); return 0; }\n'
    )
    (folder / "bytes.c").rename(folder / "main.c")
    found = subprocess.run([built(folder, "shopping_cart")], capture_output=True, text=True, check=True).stdout
    stated = next(line for line in (folder / "shopping_cart.h").read_text().splitlines() if "_BYTES" in line)
    assert int(stated.split()[2]) == int(found)
    doubles = (exported("shopping_cart", tmp_path / "doubles")[1] / "shopping_cart.h").read_text()
    assert 0.5 < int(found) / int(doubles.split("_BYTES ")[1].split()[0]) < 0.85


@pytest.mark.long
def test_nothing_is_read_outside_its_memory(tmp_path):
    if reason := sanitizers_work():
        pytest.skip(reason)
    _, folder = exported("shopping_cart", tmp_path, real="float")
    transitions, _, _ = printed(built(folder, "shopping_cart", *SANITIZE))
    assert len(transitions) == 5


@pytest.mark.parametrize("compiler", ["clang", "arm-none-eabi-gcc"])
def test_other_compilers_have_no_warning(compiler, tmp_path):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    _, folder = exported("latch", tmp_path, real="float")
    target = ["-mthumb", "-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"] if "arm" in compiler else []
    for source in ("latch.c", "fsm_machine.c", "main.c"):
        subprocess.run([compiler, *FLAGS, *target, "-fsyntax-only", source], cwd=folder, check=True)


CLOCKS = """
#include "@name@.h"
#include <stdio.h>
static int64_t memory[2][@NAME@_BYTES / sizeof(int64_t)];
static int64_t made[2];
static void count(void *data, const struct fsm_transition *transition)
{
    (void)transition;
    ++*(int64_t *)data;
}
int main(void)
{
    const struct fsm_model *model = &@name@_model;
    struct fsm_machine *both[2];
    for (int k = 0; k < 2; k++) {
        both[k] = fsm_machine_create(model, memory[k], (int64_t)sizeof memory[k]);
        fsm_machine_listen(both[k], (struct fsm_listener){.data = &made[k], .transition = count});
    }
    bool early = fsm_machine_set_time(both[1], 0);
    for (int k = 0; k < 2; k++) {
        fsm_machine_hold_input(both[k], 0, (fsm_real)@push@);
    }
    bool set = true;
    for (int i = 1; i <= 2000; i++) {
        fsm_machine_advance(both[0], (fsm_real)i * (fsm_real)1e-3);
        fsm_machine_advance(both[1], (fsm_real)1e-3);
        set = fsm_machine_set_time(both[1], 0) && set;
    }
    printf("%d %d %ld %ld", early, set, (long)made[0], (long)made[1]);
    for (int64_t i = 0; model->state_names[i] != NULL; i++) {
        printf(" %.9g %.9g", (double)fsm_machine_state(both[0])[i], (double)fsm_machine_state(both[1])[i]);
    }
    return 0;
}
"""


def clocks(folder, name, push):
    """Run two machines with held inputs, one of which begins each tick at time 0; return what was printed."""
    text = CLOCKS.replace("@name@", name).replace("@NAME@", name.upper()).replace("@push@", push)
    (folder / "main.c").write_text(text)
    done = subprocess.run([built(folder, name)], capture_output=True, text=True, check=True)
    early, was_set, *numbers = done.stdout.split()
    return early == "1", was_set == "1", [int(x) for x in numbers[:2]], np.array(numbers[2:], float).reshape(-1, 2)


@pytest.mark.parametrize(("real", "near"), [("double", 1e-9), ("float", 1e-4)])
def test_the_clock_can_be_put_back_and_the_motion_stays(real, near, tmp_path):
    _, folder = exported("latch", tmp_path, real=real)
    early, was_set, made, states = clocks(folder, "latch", "40.0")
    assert (early, was_set) == (False, True)
    assert made[0] == made[1] > 2
    assert states[:, 0] == pytest.approx(states[:, 1], abs=near)


def test_the_clock_of_a_model_that_reads_it_stays(tmp_path):
    model = {
        "fsm_dyn": 1, "name": "timed", "coordinates": {"x": "m"}, "points": {"C": {"from": "O", "at": "x*N.x"}},
        "inputs": {"push": "N"}, "bodies": {"block": {"center": "C", "mass": "2 kg"}},
        "loads": [{"force": "(push + 1 N * sin(t * 1 rad/s))*N.x", "at": "C"}],
    }  # fmt: skip
    folder = fsm_dyn.export(fsm_dyn.compile(model), tmp_path / "out", real="float")
    early, was_set, _, _ = clocks(folder, "timed", "0.0")
    assert (early, was_set) == (False, False)
