"""What is loaded and let go again, time after time, takes no more room."""

import ctypes
import gc
import sys

import pytest

import fsm_dyn
from fsm_dyn.programs import kernels

KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
INTEGER = ctypes.c_int64
ROUTINE = ctypes.CFUNCTYPE(INTEGER, INTEGER, INTEGER, ctypes.c_double, INTEGER, INTEGER, INTEGER)


def loaded(monkeypatch):
    """Count what LLVM loads into this process, which it never gives back as a whole."""
    count, real = [], kernels._link
    monkeypatch.setattr(kernels, "_link", lambda code, names: count.append(len(code)) or real(code, names))
    return count


@pytest.mark.parametrize("strategy", ["compiled", "online", "auto"])
def test_fresh_graphs_load_no_code_again(monkeypatch, strategy):
    def once():
        fsm_dyn.simulate(fsm_dyn.compile("bouncing_ball"), until=0.5, strategy=strategy)
        gc.collect()

    once()
    count = loaded(monkeypatch)
    for _ in range(2):
        once()
    assert count == []


def test_code_that_nobody_uses_is_kept_within_bounds(monkeypatch):
    monkeypatch.setattr(kernels, "KEPT_CODE", 3000)
    monkeypatch.setattr(kernels, "_linked", type(kernels._linked)())
    text = f'target triple = "{kernels.target().triple}"\n' + "define i64 @f() {{\n ret i64 {}\n}}\n"
    codes = [kernels.object_code(text.format(number)) for number in range(20)]
    held = kernels.link(codes[0], ["f"])
    for code in codes:
        assert kernels.link(code, ["f"]) is not None
    assert 0 < sum(size for _, size in kernels._linked.values()) <= 3000
    assert held["f"]


def test_closures_are_bound_again(monkeypatch):
    """One that is in use is never given to another."""
    pool = kernels._Pool(1)
    monkeypatch.setattr(kernels, "_pools", {1: pool})
    count = loaded(monkeypatch)
    held = kernels.BoundKernels(1, [(1, 2), (3, 4)])
    for _ in range(100):
        other = kernels.BoundKernels(1, [(5, 6)] * 3)
        assert not set(other.addresses) & set(held.addresses)
        assert len(set(other.addresses)) == 3
    assert len(count) == 1
    many = kernels.BoundKernels(1, [(7, 8)] * 100)
    assert len({*many.addresses, *held.addresses}) == 102
    assert len(count) == 2


def test_closures_of_each_routine_have_their_own_data_and_are_compiled_once(monkeypatch):
    monkeypatch.setattr(kernels, "_pools", {})
    made, real = [], kernels.object_code
    monkeypatch.setattr(kernels, "object_code", lambda text: made.append(text) or real(text))
    called = []
    routines = [ROUTINE(lambda *given, name=name: called.append((name, *given)) or 0) for name in "ab"]
    bound = [[(10 * k + j, -j) for j in range(40)] for k in range(2)]
    held = [
        kernels.BoundKernels(ctypes.cast(routine, ctypes.c_void_p).value, pairs)
        for routine, pairs in zip(routines, bound, strict=True)
    ]
    for one in held:
        for number, place in enumerate(one.addresses):
            KERNEL(place)(0.5 * number, 1, 2, 3)
    assert called == [
        (name, *pair, 0.5 * number, 1, 2, 3)
        for name, pairs in zip("ab", bound, strict=True)
        for number, pair in enumerate(pairs)
    ]
    assert len(made) == 1


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("fresh", [True, False])
def test_memory_is_flat_over_ten_thousand_runs(fresh):
    shared = fsm_dyn.compile("bouncing_ball")

    def resident():
        gc.collect()
        with open("/proc/self/statm") as file:
            return 4 * int(file.read().split()[1])  # kB

    def runs(count):
        for _ in range(count):
            graph = fsm_dyn.compile("bouncing_ball") if fresh else shared
            fsm_dyn.simulate(graph, until=0.5, strategy="online")

    runs(1000)
    before = resident()
    runs(10_000)
    assert resident() - before < 10_000 * 0.3
