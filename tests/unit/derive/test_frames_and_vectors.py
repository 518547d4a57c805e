"""Rotations between frames, and products of vectors."""

import numpy as np
import pytest

from fsm_dyn.core.errors import ModelError
from fsm_dyn.derive.kinematics import Frames, Points, Space
from fsm_dyn.derive.reduction import Reducer
from fsm_dyn.derive.symbols import NodeAlgebra
from fsm_dyn.language.elements import BodyFrame, SimpleFrame, SpaceFrame
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.model import Point
from fsm_dyn.programs.graph import ExpressionGraph
from fsm_dyn.programs.traversal import evaluate, reachable

ANGLES = {name: float(value) for name, value in zip("abcd", (0.3, -1.1, 2.0, 0.7), strict=True)}


def frame(name, parent, *rotations, kind="simple"):
    made = {"simple": SimpleFrame, "body": BodyFrame, "space": SpaceFrame}[kind]
    return made(name=name, parent=parent, rotations=tuple((axis, Text(angle)) for axis, angle in rotations))


@pytest.fixture
def space():
    graph = ExpressionGraph()
    names = {name: graph.symbol(name) for name in (*ANGLES, "k")}
    algebra = NodeAlgebra(graph, names)
    given = [
        frame("D", "C", ("z", "-d")),  # children may stand before parents
        frame("A", "N", ("z", "a")),
        frame("B", "A", ("z", "b")),
        frame("C", "B", ("x", "c")),
        frame("E", "A", ("y", "pi/2")),
        frame("F", "N", ("z", "a + b")),
        frame("S", "N", ("x", "a"), ("y", "b"), ("z", "c"), kind="space"),
        frame("R", "N", ("x", "a"), ("y", "b"), ("z", "c"), kind="body"),
    ]
    reducer = Reducer(graph)
    frames = Frames(graph, reducer, {item.name: item for item in given}, algebra.scalar)
    return Space(graph, frames, reducer)


def numbers(nodes):
    return np.array([float(value) for value in evaluate(list(nodes), {**ANGLES, "k": 2.0})])


def matrix(space, a, b):
    return numbers(node for row in space.frames.rotation(a, b) for node in row).reshape(3, 3)


def simple(axis, angle):
    c, s = np.cos(angle), np.sin(angle)
    i, j, k = axis, (axis + 1) % 3, (axis + 2) % 3
    result = np.zeros((3, 3))
    result[i, i] = 1
    result[j, j] = result[k, k] = c
    result[j, k], result[k, j] = -s, s
    return result


def test_all_rotations_are_those_of_the_angles(space):
    a, b, c, d = ANGLES.values()
    to_n = {
        "N": np.eye(3),
        "A": simple(2, a),
        "B": simple(2, a + b),
        "C": simple(2, a + b) @ simple(0, c),
        "D": simple(2, a + b) @ simple(0, c) @ simple(2, -d),
        "E": simple(2, a) @ simple(1, np.pi / 2),
        "F": simple(2, a + b),
        "S": simple(2, c) @ simple(1, b) @ simple(0, a),
        "R": simple(0, a) @ simple(1, b) @ simple(2, c),
    }
    assert set(space.frames.names) == set(to_n)
    for one, left in to_n.items():
        for other, right in to_n.items():
            np.testing.assert_allclose(matrix(space, one, other), left.T @ right, atol=1e-14)


def test_turns_about_one_axis_are_merged(space):
    def sines(one, other):
        rows = space.frames.rotation(one, other)
        return {node for node in reachable(n for row in rows for n in row) if node.op in ("sin", "cos")}

    assert len(sines("N", "B")) == 2
    assert sines("N", "B") == sines("N", "F")
    assert not sines("B", "F")  # forth by a, b and back by a + b: nothing is left
    assert space.frames.rotation("B", "F")[0][0].is_one
    assert not sines("A", "E")  # a right angle has no sine to be computed
    assert space.frames.rotation("A", "E")[0][2].is_one


def test_products(space):
    rng = np.random.default_rng(3)
    vectors, plain = [], []
    for parts in (("A",), ("C", "N"), ("D", "S", "B")):
        total, value = [], np.zeros(3)
        for name in parts:
            x, y, z = rng.uniform(-1, 1, 3)
            triple = tuple(space.graph.constant(entry) for entry in (x, y, z))
            total.append(space.vector(name, triple))
            value += matrix(space, "N", name) @ [x, y, z]
        vectors.append(space.sum(total))
        plain.append(value)
    for a, x in zip(vectors, plain, strict=True):
        np.testing.assert_allclose(numbers(space.resolve(a, "N")), x, atol=1e-14)
        np.testing.assert_allclose(numbers([space.norm(a)])[0], np.linalg.norm(x), rtol=1e-13)
        for b, y in zip(vectors, plain, strict=True):
            np.testing.assert_allclose(numbers([space.dot(a, b)])[0], x @ y, atol=1e-13)
            np.testing.assert_allclose(numbers(space.resolve(space.cross(a, b), "N")), np.cross(x, y), atol=1e-13)


def test_frames_in_a_circle():
    graph = ExpressionGraph()
    given = {name: frame(name, parent, ("z", "1")) for name, parent in (("A", "B"), ("B", "A"))}
    with pytest.raises(ModelError, match="A, B hang on each other in a circle"):
        Frames(graph, Reducer(graph), given, NodeAlgebra(graph, {}).scalar)
    with pytest.raises(ModelError, match="unknown parent"):
        Frames(graph, Reducer(graph), {"A": frame("A", "Q", ("z", "1"))}, NodeAlgebra(graph, {}).scalar)


def test_positions_go_through_the_common_ancestor(space):
    algebra = NodeAlgebra(space.graph, {"k": space.graph.symbol("k")}, space)
    given = {
        "P": Point(name="P", origin="O", at=Text("k*A.x")),
        "Q": Point(name="Q", origin="P", at=Text("2*B.y")),
        "R": Point(name="R", origin="P", at=Text("3*C.z + B.y")),
    }
    points = Points(space, given, lambda point: algebra.vector(point.at))
    assert {part for part, _ in points.position("R", "Q")} == {"B", "C"}
    assert points.position("Q", "Q").is_zero
    with pytest.raises(ModelError, match="no point 'X'"):
        points.position("X")
    circle = {"P": Point(name="P", origin="Q", at=Text("A.x")), "Q": Point(name="Q", origin="P", at=Text("A.x"))}
    with pytest.raises(ModelError, match="in a circle"):
        Points(space, circle, lambda point: algebra.vector(point.at)).chain("P")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A.x*B.x", "no meaning for vectors"),
        ("A.x + 1", "no meaning for vectors"),
        ("1/A.x", "no meaning for vectors"),
        ("sin(A.x)", "vector stands where a scalar must"),
        ("dot(A.x, 1)", "dot takes vectors"),
        ("nothing + 1", "'nothing' has no value here"),
        ("dot(Q.x, A.x)", "no frame 'Q'"),
        ("vel(P)", "has no meaning here"),
        ("A.x", "is a vector where a scalar must stand"),
    ],
)
def test_expressions_without_meaning(space, text, words):
    algebra = NodeAlgebra(space.graph, {"k": space.graph.symbol("k")}, space)
    with pytest.raises(ModelError, match=words) as caught:
        algebra.scalar(Text(text))
    assert text in str(caught.value)
