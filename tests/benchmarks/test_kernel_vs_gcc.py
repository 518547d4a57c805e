"""Kernels against ``gcc -O3`` on the same program, both called from the same compiled loop in one run.

The programs are those of the modes of shipped mechanisms, and chains of links in a plane (mass matrix from partial
velocities, then elimination) to see larger ones.
"""

import ctypes
import functools
import json
import shutil
import statistics
import subprocess
import time

import numpy as np
import pytest

from fsm_dyn.automaton import compilation
from fsm_dyn.programs.functions import cos, sin
from fsm_dyn.programs.graph import ExpressionGraph
from fsm_dyn.programs.kernels import ObjectCache, compile_programs
from fsm_dyn.programs.program import Layout, Program
from fsm_dyn.programs.sources import to_c

pytestmark = [pytest.mark.benchmark, pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")]

STATES = 2000
ROUNDS = 9
LARGEST_RATIO = 1.25
CALLER = """
#include <time.h>
typedef void (*kernel)(double, const double *, const double *, double *);
double nanoseconds(kernel k, long states, long repeats, const double *x, long n_x, const double *c, double *out)
{
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (long r = 0; r < repeats; r++)
        for (long i = 0; i < states; i++)
            k(0.001 * i, x + i * n_x, c, out);
    clock_gettime(CLOCK_MONOTONIC, &b);
    return ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / (double)(states * repeats);
}
"""


def chain(n):
    """Return the program of a hanging chain of `n` links: relative angles q, rates u, outputs q_dot and u_dot."""
    numbers = range(1, n + 1)
    layout = Layout(
        q=tuple(f"q{i}" for i in numbers),
        u=tuple(f"u{i}" for i in numbers),
        p=("g", *(f"{letter}{i}" for letter in "mlI" for i in numbers)),
    )
    graph = ExpressionGraph()
    q, u = ([graph.symbol(name) for name in names] for names in (layout.q, layout.u))
    mass, length, inertia = ([graph.symbol(f"{letter}{i}") for i in numbers] for letter in "mlI")
    zero = graph.zero
    M, f = np.full((n, n), zero), np.full(n, zero)
    tip, tip_acceleration = np.full((n, 2), zero), np.full(2, zero)
    angle, rate = zero, zero
    for i in range(n):
        angle, rate = angle + q[i], rate + u[i]
        along = np.array([length[i] * cos(angle), length[i] * sin(angle)])
        across = np.array([-along[1], along[0]])
        partial = tip.copy()
        partial[: i + 1] = partial[: i + 1] + across / 2
        acceleration = tip_acceleration - along * rate**2 / 2 + np.array([zero, graph.symbol("g")])
        M[: i + 1, : i + 1] += mass[i] * (partial @ partial.T)[: i + 1, : i + 1] + inertia[i]
        f = f - mass[i] * (partial @ acceleration)
        tip[: i + 1] = tip[: i + 1] + across
        tip_acceleration = tip_acceleration - along * rate**2
    return Program.from_nodes(layout, {"q_dot": u, "u_dot": solve(M, f)})


def solve(M, f):
    """Eliminate without pivoting; M is symmetric and positive definite."""
    M, f, n = M.copy(), f.copy(), len(f)
    for k in range(n):
        for i in range(k + 1, n):
            ratio = M[i, k] / M[k, k]
            M[i, k + 1 :] = M[i, k + 1 :] - ratio * M[k, k + 1 :]
            f[i] = f[i] - ratio * f[k]
    for k in reversed(range(n)):
        f[k] = (f[k] - sum(M[k, j] * f[j] for j in range(k + 1, n))) / M[k, k]
    return f


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Return a function from C source to a loaded library; gcc must be the compiler, whatever ``cc`` is."""
    directory = tmp_path_factory.mktemp("gcc")

    def compile_source(source, stem):
        path = directory / f"{stem}.c"
        path.write_text(source)
        flags = ["-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC"]
        start = time.perf_counter()
        subprocess.run(["gcc", *flags, path, "-o", path.with_suffix(".so"), "-lm"], check=True)
        return ctypes.CDLL(str(path.with_suffix(".so"))), time.perf_counter() - start

    return compile_source


@pytest.fixture(scope="module")
def nanoseconds(build):
    function = build(CALLER, "caller")[0].nanoseconds
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_long]
    function.argtypes += [ctypes.c_void_p, ctypes.c_void_p]
    return function


@pytest.fixture
def shipped(tmp_path):
    """Return a function from a model and the name of a program to that program of its first mode, as it is saved."""

    def load(model, name):
        compilation.compile(model, cache=False).save(tmp_path / "automaton")
        return Program.from_data(json.loads((tmp_path / "automaton").read_text())["modes"][0][name])

    return load


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(("seven_body_mechanism", "rhs"), id="seven bodies, rhs"),
        pytest.param(("seven_body_mechanism", "full"), id="seven bodies, full"),
        pytest.param(("shopping_cart", "rhs"), id="cart, rhs"),
        *(pytest.param(functools.partial(chain, n), id=f"chain of {n}") for n in (3, 6, 10)),
    ],
)
def test_kernel_vs_gcc(source, request, build, nanoseconds, shipped):
    program = source() if callable(source) else shipped(*source)
    label = request.node.callspec.id
    library, gcc_seconds = build(to_c(program, "kernel"), program.digest[:16])
    start = time.perf_counter()
    kernel = compile_programs([program], ObjectCache(None))[0]
    seconds = time.perf_counter() - start
    addresses = {"llvm": kernel.address, "gcc": ctypes.cast(library.kernel, ctypes.c_void_p).value}

    rng = np.random.default_rng(1)
    layout = program.layout
    x, c = rng.uniform(-1.0, 1.0, (STATES, layout.n_x)), rng.uniform(0.5, 1.5, layout.n_c)
    outs = {name: np.empty(program.size) for name in addresses}
    times = {name: [] for name in addresses}
    for _ in range(ROUNDS):
        for name, address in addresses.items():
            pointers = x.ctypes.data, layout.n_x, c.ctypes.data, outs[name].ctypes.data
            times[name].append(nanoseconds(address, STATES, 20, *pointers))
    np.testing.assert_allclose(outs["llvm"], outs["gcc"], rtol=1e-6)
    median = {name: statistics.median(values) for name, values in times.items()}
    # both of a round are measured side by side, so that a busy neighbour slows both
    ratio = statistics.median(a / b for a, b in zip(times["llvm"], times["gcc"], strict=True))
    print(
        f"\n{label}, {program.counts().total} operations: kernel {median['llvm']:.0f} ns,"
        f" gcc {median['gcc']:.0f} ns, ratio {ratio:.2f};"
        f" compiled in {seconds * 1e3:.0f} ms, by gcc in {gcc_seconds * 1e3:.0f} ms"
    )
    assert ratio <= LARGEST_RATIO
