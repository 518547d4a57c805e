"""Stored programs may come from strangers: whatever is wrong is refused by name, and nothing is executed."""

import copy
import math

import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.programs.functions import sin
from fsm_dyn.programs.graph import ExpressionGraph
from fsm_dyn.programs.program import Program


@pytest.fixture
def data(layout):
    graph = ExpressionGraph()
    q1, q2 = graph.symbol("q1"), graph.symbol("q2")
    return Program.from_nodes(layout, {"a": q1 * q2 + 1, "b": [sin(q1), 2]}).to_data()


BAD = {
    "no mapping": lambda d: [d],
    "missing key": lambda d: d.pop("constants"),
    "extra key": lambda d: d.update(code="import os"),
    "format": lambda d: d.update(format=99),
    "format of another type": lambda d: d.update(format=True),
    "layout": lambda d: d.update(layout={"q": []}),
    "layout with text": lambda d: d["layout"].update(q="q1"),
    "layout with a malformed name": lambda d: d["layout"]["q"].append('x); system("rm"'),
    "layout with a double name": lambda d: d["layout"]["q"].append("q1"),
    "layout too long": lambda d: d["layout"].update(q=[f"q{i}" for i in range(100_001)]),
    "constant text": lambda d: d["constants"].append("1.0"),
    "constant bool": lambda d: d["constants"].append(True),
    "constant nan": lambda d: d["constants"].append(math.nan),
    "constant inf": lambda d: d["constants"].append(math.inf),
    "constant huge": lambda d: d["constants"].append(10**400),
    "constants no list": lambda d: d.update(constants={}),
    "unknown operation": lambda d: d["instructions"].append(["system", 0]),
    "python name": lambda d: d["instructions"].append(["__class__", 0]),
    "constant as operation": lambda d: d["instructions"].append(["const", 0]),
    "too few operands": lambda d: d["instructions"].append(["add", 0]),
    "too many operands": lambda d: d["instructions"].append(["sin", 0, 1]),
    "forward reference": lambda d: d["instructions"].insert(0, ["neg", 10**6]),
    "itself": lambda d: d["instructions"].append(["neg", 13 + len(d["constants"]) + len(d["instructions"])]),
    "negative index": lambda d: d["instructions"].append(["neg", -1]),
    "float index": lambda d: d["instructions"].append(["neg", 1.0]),
    "bool index": lambda d: d["instructions"].append(["neg", True]),
    "instruction no list": lambda d: d["instructions"].append("neg"),
    "instruction empty": lambda d: d["instructions"].append([]),
    "operation no text": lambda d: d["instructions"].append([["neg"], 0]),
    "output index": lambda d: d["outputs"].append(["c", [], [10**9]]),
    "output shape": lambda d: d["outputs"].append(["c", [2, 2], [0]]),
    "output shape of text": lambda d: d["outputs"].append(["c", ["1"], [0]]),
    "output negative shape": lambda d: d["outputs"].append(["c", [-1, -1], [0]]),
    "output shape of many axes": lambda d: d["outputs"].append(["c", [1] * 9, [0]]),
    "output shape that is huge": lambda d: d["outputs"].append(["c", [10**9], []]),
    "output twice": lambda d: d["outputs"].append(["a", [], [0]]),
    "output name": lambda d: d["outputs"].append([1, [], [0]]),
    "output name too long": lambda d: d["outputs"].append(["c" * 201, [], [0]]),
    "output no list": lambda d: d["outputs"].append("c"),
}


@pytest.mark.parametrize("case", BAD)
def test_refused(data, case):
    assert Program.from_data(copy.deepcopy(data)).to_data() == data
    changed = BAD[case](data)
    with pytest.raises(InputError):
        Program.from_data(changed if case == "no mapping" else data)


@pytest.mark.parametrize("value", [None, 1, "text", {}, [], {1: 2}, {"format": 1}])
def test_something_else_altogether(value):
    with pytest.raises(InputError, match="program"):
        Program.from_data(value)


def test_messages_stay_short(data):
    data["instructions"].append(["x" * 10_000_000, 0])
    with pytest.raises(InputError) as caught:
        Program.from_data(data)
    assert len(str(caught.value)) < 1000


def test_unknown_operations_get_a_hint(data):
    data["instructions"].append(["sine", 0])
    with pytest.raises(InputError, match="did you mean 'sin"):
        Program.from_data(data)
