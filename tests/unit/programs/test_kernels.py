import platform
import subprocess
import sys
import threading

import numpy as np
import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.programs import kernels, llvm
from fsm_dyn.programs import llvm as program_splitting
from fsm_dyn.programs.functions import atan, compare, cos, exp, log, sin, tan, where
from fsm_dyn.programs.graph import ExpressionGraph
from fsm_dyn.programs.kernels import ObjectCache, compile_programs
from fsm_dyn.programs.program import Layout, Program
from fsm_dyn.runtime.library import ELEMENTARY


@pytest.fixture
def chain():
    """Return a function that makes a long program: each value depends on the one before and on a far one."""

    def make(length, wide=0):
        graph = ExpressionGraph()
        names = tuple(f"q{i}" for i in range(7))
        symbols = [graph.symbol(name) for name in names]
        values = list(symbols)
        for i in range(length // 2):
            values.append(values[-1] * 0.5 + values[-(i % 50) - 1] * symbols[i % 7])
            if i % 97 == 0:
                values.append(sin(values[-1]))
        truth = compare("<", values[20], values[21])
        outputs = {"few": values[8::101], "last": values[-1], "argument": symbols[3]}
        outputs |= {"where": where(truth, values[-2], values[-3]), "constant": 2.5}
        if wide:
            outputs["matrix"] = [symbols[3], 0.0, 1.0] * wide
        return Program.from_nodes(Layout(q=names), outputs)

    return make


def test_several_programs_in_one_call(layout):
    graph = ExpressionGraph()
    q1, m = graph.symbol("q1"), graph.symbol("m")
    programs = [Program.from_nodes(layout, {"a": [[q1 * i, m]], "b": sin(q1)}) for i in (1, 2, 3, 2)]
    compiled = compile_programs(programs)
    assert len(compiled) == len(compiled.addresses) == 4
    assert compiled[1].address == compiled[3].address != compiled[0].address
    assert list(compiled.addresses) == [kernel.address for kernel in compiled]
    x, c = [0.5, 0, 0, 0], [9.0, 0, 0, 0, 0, 0, 0, 0]
    np.testing.assert_array_equal(compiled[2](0.0, x, c), [1.5, 9.0, np.sin(0.5)])
    outputs = compiled[2].outputs(0.0, x, c)
    assert outputs["a"].shape == (1, 2)
    assert outputs["b"] == np.sin(0.5)


def test_shapes_are_checked(layout):
    kernel = compile_programs([Program.from_nodes(layout, {"a": 1.0})])[0]
    with pytest.raises(InputError, match=r"\(4,\)"):
        kernel(0.0, np.zeros(5), np.zeros(8))
    with pytest.raises(InputError, match=r"\(8,\)"):
        kernel(0.0, np.zeros(4), np.zeros((1, 8)))


def test_arguments_of_any_kind(layout):
    graph = ExpressionGraph()
    kernel = compile_programs([Program.from_nodes(layout, {"a": graph.symbol("u2") + graph.symbol("hits")})])[0]
    assert kernel(0, [0, 0, 0, 1], range(8)) == 7.0
    assert kernel(0, np.arange(8.0)[::2], np.zeros(8, dtype=np.float32)) == 6.0


def test_products_and_sums_are_fused():
    graph = ExpressionGraph()
    a, b, c = (graph.symbol(name) for name in "abc")
    program = Program.from_nodes(Layout(q=("a", "b", "c")), {"value": a * b - c})
    x = [1 + 2**-30, 1 + 2**-30, 1 + 2**-29]
    assert program.evaluate(0.0, x, [])["value"] == 0.0
    value = compile_programs([program])[0](0.0, x, [])
    assert value in (0.0, 2**-60)  # the latter where the processor fuses


def test_kernels_outlive_what_made_them(layout):
    graph = ExpressionGraph()
    calls = [compile_programs([Program.from_nodes(layout, {"a": graph.symbol("q1") + i})])[0] for i in range(20)]
    del calls[::2]
    assert [call(0, np.zeros(4), np.zeros(8))[0] for call in calls] == list(range(1, 20, 2))


def test_long_programs_are_compiled_in_parts(chain, monkeypatch):
    program = chain(3000)
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (5, 7))
    expected = [compile_programs([program])[0](0.0, row, []) for row in x]
    numpy = program.evaluate(0.0, x, [])
    monkeypatch.setattr(llvm, "LONGEST_FUNCTION", 100)
    for length in (1, 7, 600):
        monkeypatch.setattr(llvm, "PART_LENGTH", length)
        cut = compile_programs([program], ObjectCache(None))[0]
        for i, row in enumerate(x):
            np.testing.assert_allclose(cut(0.0, row, []), expected[i], rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(cut.outputs(0.0, row, [])["few"], numpy["few"][i], rtol=1e-9, atol=1e-12)


def test_parts_cover_the_program_and_reuse_places(chain):
    program = chain(3000)
    pieces, slots = program_splitting.divide(program, 200)
    assert [piece.start for piece in pieces[1:]] == [piece.stop for piece in pieces[:-1]]
    assert pieces[0].start == 0
    assert pieces[-1].stop == len(program.instructions)
    assert sum(len(piece.outputs) for piece in pieces) == program.size
    assert slots < 150
    for piece in pieces:
        assert len(set(piece.received.values())) == len(piece.received)


def test_what_is_written_is_shared_out_among_the_parts(chain):
    """A large matrix is mostly constants: written by one part, they made a function that grows with the program."""
    program = chain(3000, wide=2000)
    pieces, _ = program_splitting.divide(program, 200)
    assert max(len(piece.outputs) for piece in pieces) <= 1.5 * program.size / len(pieces)
    x = np.linspace(-1.0, 1.0, 7)
    matrix = compile_programs([program], ObjectCache(None))[0].outputs(0.0, x, [])["matrix"]
    np.testing.assert_array_equal(matrix, [x[3], 0.0, 1.0] * 2000)


def test_threads_compile_at_once(layout):
    graph = ExpressionGraph()
    q1 = graph.symbol("q1")
    programs = [Program.from_nodes(layout, {"a": sin(q1 * i) + i}) for i in range(1, 17)]
    results = {}

    def work(start):
        for i in range(start, 16, 4):
            results[i] = compile_programs([programs[i]], ObjectCache(None))[0](0, [1.0, 0, 0, 0], np.zeros(8))[0]

    threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {i: pytest.approx(np.sin(i + 1) + i + 1, rel=1e-15) for i in range(16)}


OF_PARAMETERS = {"sin": sin, "cos": cos, "tan": tan, "atan": atan, "exp": exp, "log": log}


def program_of_parameters(layout):
    """Return a program of functions of a parameter, of the memory, of the state and of an input."""
    graph = ExpressionGraph()
    m, hits, q1, push = (graph.symbol(name) for name in ("m", "hits", "q1", "push"))
    kept = [function(m) for function in OF_PARAMETERS.values()] + [sin(hits * m)]
    return Program.from_nodes(layout, {"kept": kept, "not kept": [sin(q1), sin(push)]})


def context_of(m, hits=1.0):
    return [m, 0.0, 0.7, 0.0, 0.0, 0.0, hits, 0.0]


def test_functions_of_parameters_alone_keep_their_last_value(layout):
    """Bits are those of the functions for parameters in any order, special values among them."""
    program = program_of_parameters(layout)
    text = llvm.module_text([program], ["kernel"], kernels.target().triple)
    assert text.count("call double @fsm_kept_") == len(OF_PARAMETERS) + 1
    kernel = compile_programs([program])[0]
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e300]
    rng = np.random.default_rng(3)
    for m in rng.choice([*special, *rng.uniform(-2.0, 2.0, 8)], 400):
        expected = [*(ELEMENTARY[name](m) for name in OF_PARAMETERS), ELEMENTARY["sin"](2.0 * m)]
        for _ in range(2):
            found = kernel.outputs(0.0, [0.3, 0, 0, 0], context_of(m, 2.0))
            np.testing.assert_array_equal(found["kept"].view(np.int64), np.array(expected).view(np.int64), str(m))
            assert found["not kept"].tolist() == [ELEMENTARY["sin"](0.3), ELEMENTARY["sin"](0.7)]


def test_values_are_kept_in_programs_of_many_parts(layout, monkeypatch):
    monkeypatch.setattr(llvm, "LONGEST_FUNCTION", 4)
    monkeypatch.setattr(llvm, "PART_LENGTH", 2)
    kernel = compile_programs([program_of_parameters(layout)], ObjectCache(None))[0]
    for m in (0.3, 0.3, 1.2):
        found = kernel.outputs(0.0, [0.3, 0, 0, 0], context_of(m))["kept"][:-1]
        assert found.tolist() == [ELEMENTARY[name](m) for name in OF_PARAMETERS]


def test_threads_with_other_parameters_share_a_kernel(layout):
    """Each row has another parameter than the last, and others are written by other threads between."""
    kernel, n = compile_programs([program_of_parameters(layout)])[0], 40_000
    wrong = []

    def work(seed):
        few = np.random.default_rng(seed).uniform(-1.0, 1.0, 3)
        chosen = np.random.default_rng(seed + 10).integers(3, size=n)
        contexts = np.array([context_of(m) for m in few])[chosen]
        expected = np.array([[ELEMENTARY[name](m) for name in OF_PARAMETERS] for m in few])[chosen]
        found = kernel.rows(np.zeros(n), np.zeros((n, 4)), contexts)["kept"][:, :-1]
        wrong.append(int((found.view(np.int64) != expected.view(np.int64)).sum()))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [0, 0, 0, 0]


SCATTERED = """
import ctypes, mmap, sys
from fsm_dyn.programs.functions import cos, sin
from fsm_dyn.programs.graph import ExpressionGraph
from fsm_dyn.programs.kernels import ObjectCache, compile_programs
from fsm_dyn.programs.program import Layout
from fsm_dyn.programs.program import Program
from fsm_dyn.programs import kernels

kernels.JIT_LINK, kernels.CODE_MODEL = sys.argv[1] == "JITLink", sys.argv[2]
system = ctypes.CDLL(None)
system.mmap.restype = ctypes.c_size_t
system.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
system.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
NOTHING, NO_RESERVE = 0, 0x4000  # protection and flag of Linux


def reserve(size):
    address = system.mmap(None, size, NOTHING, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE, -1, 0)
    assert address != 2**64 - 1
    return address


def kernel(number):
    graph = ExpressionGraph()
    q, p = graph.symbol("q"), graph.symbol("p")
    value = sin(q * (0.1 + number)) + cos(q) * 0.3 + cos(p)  # the last one keeps its value, in a section of data
    return compile_programs([Program.from_nodes(Layout(q=("q",), p=("p",)), {"a": value})], ObjectCache(None))[0]


expected = kernel(-1)(0.0, [0.0], [0.5])[0]  # LLVM is at work before room becomes scarce
barrier = reserve(2**34)
for size in (2**24, 2**20, 2**16, mmap.PAGESIZE):  # all gaps on this side of it
    while (address := reserve(size)) > barrier:
        pass
    system.munmap(address, size)
split = []
for pages in (1, 2, 3, 4, 5, 6):  # one gap, which the first section may fill; what does not fit lies beyond the barrier
    first = barrier + 2**34 - pages * mmap.PAGESIZE
    system.munmap(first, pages * mmap.PAGESIZE)
    made = kernel(pages)
    assert made(0.0, [0.0], [0.5])[0] == expected
    split.append(made.address >= first)
    while reserve(mmap.PAGESIZE) > barrier:
        pass
assert any(split), "no code was ever put into the gap"
print("done")
"""


@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="where memory is mapped is known of Linux"
)
@pytest.mark.parametrize(("linker", "model"), [("JITLink", "small"), ("RuntimeDyld", "large")])
def test_code_is_loaded_where_memory_is_scattered(linker, model):
    """RuntimeDyld with small references, as it was, ends the process: sections of one object lie 16 GiB apart."""
    run = subprocess.run([sys.executable, "-c", SCATTERED, linker, model], capture_output=True, text=True)
    assert (run.returncode, run.stdout.strip()) == (0, "done"), run.stderr


def test_the_key_depends_on_what_code_depends_on(monkeypatch):
    key = kernels._key(["a"], kernels.OPTIMISATION)
    with monkeypatch.context() as patched:
        patched.setattr(kernels, "CODE_MODEL", "other")
        assert kernels._key(["a"], kernels.OPTIMISATION) != key
    assert kernels._key(["b"], kernels.OPTIMISATION) != key
    assert kernels._key(["a"], kernels.SELDOM_RUN) != key
    monkeypatch.setattr(kernels, "sources_of", lambda *parts: "other")
    assert kernels._key(["a"], kernels.OPTIMISATION) != key


def test_sympy_is_not_needed():
    script = """
import sys
from fsm_dyn.programs.functions import sin
from fsm_dyn.programs.graph import ExpressionGraph
from fsm_dyn.programs.kernels import compile_programs
from fsm_dyn.programs.program import Layout
from fsm_dyn.programs.program import Program
x = ExpressionGraph().symbol("x")
assert compile_programs([Program.from_nodes(Layout(q=("x",)), {"a": sin(x)})])[0](0.0, [0.0], []) == 0.0
print(sorted({"sympy", "scipy"} & set(sys.modules)))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
    assert run.stderr == ""
