"""What a mechanism consists of, as nodes: symbols, frames, points.  The ground on which everything else is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fsm_dyn.errors import ModelError
from fsm_dyn.expressions import Text
from fsm_dyn.programs import ExpressionGraph, Layout, Node, support
from fsm_dyn.spec.layout import layout_of, parameters_of_contacts
from fsm_dyn.spec.model import Mechanism, Point
from fsm_dyn.symbolic.algebra import NodeAlgebra
from fsm_dyn.symbolic.carried_points import check_freed_bodies, with_carried_points
from fsm_dyn.symbolic.frames import Frames
from fsm_dyn.symbolic.partial_velocities import Motion, Rates
from fsm_dyn.symbolic.points import Points
from fsm_dyn.symbolic.trig_reduction import Reducer
from fsm_dyn.symbolic.vectors import Space, Vector

TIME = "t"


@dataclass(frozen=True)
class MechanismSymbols:
    """Symbols and geometry of a mechanism.

    Attributes
    ----------
    coordinates : tuple of Node
        Symbols of the coordinates, Euler parameters last; without the parameters of contacts on curves.
    euler : tuple of tuple of Node
        The symbols of each set of Euler parameters.
    inputs : tuple of Node
        Symbols of the inputs.
    names : mapping of str to Node
        Everything a geometric expression may name.
    """

    mechanism: Mechanism
    layout: Layout
    graph: ExpressionGraph
    reducer: Reducer
    space: Space
    points: Points
    coordinates: tuple[Node, ...]
    euler: tuple[tuple[Node, ...], ...]
    inputs: tuple[Node, ...]
    names: Mapping[str, Node]

    @property
    def frames(self) -> Frames:
        """The tree of frames."""
        return self.space.frames

    @property
    def body_frames(self) -> dict[str, str]:
        """The frame of each body that has one."""
        return {name: body.frame for name, body in self.mechanism.bodies.items() if body.frame is not None}

    @property
    def carried(self) -> dict[str, str]:
        """For each frame on which a body sits, the centre of the first such body."""
        result: dict[str, str] = {}
        for body in self.mechanism.bodies.values():
            if body.frame is not None:
                result.setdefault(body.frame, body.center)
        return result

    @property
    def speeds(self) -> tuple[Node, ...]:
        """Symbols of the declared generalized speeds."""
        return tuple(self.graph.symbol(name) for name in self.layout.u)

    def motion(self, rates: Rates) -> Motion:
        """Return velocities for the given rates."""
        return Motion(self.space, self.points, rates, self.carried)

    def algebra(self, motion: Motion | None, names: Mapping[str, Node]) -> NodeAlgebra:
        """Return the algebra for expressions that may name `names` and those of the geometry."""
        return NodeAlgebra(self.graph, {**self.names, **names}, self.space, self.points, motion, self.body_frames)


def build_system(mechanism: Mechanism) -> MechanismSymbols:
    """Return symbols and geometry of a mechanism.

    Raises
    ------
    ModelError
        A frame or point is missing, depends on itself in a cycle, or depends on what geometry may not depend on.
    """
    if any(joint.displacement is not None for joint in mechanism.joints.values()):
        written = _symbols_of(mechanism)
        algebra = written.algebra(None, {})
        mechanism = with_carried_points(mechanism, written.points, written.space, written.euler, algebra)
    if any(joint.is_freed for joint in mechanism.joints.values()):
        written = _symbols_of(mechanism)
        check_freed_bodies(mechanism, written.points, written.space, written.euler, written.algebra(None, {}))
    return _symbols_of(mechanism)


def _symbols_of(mechanism: Mechanism) -> MechanismSymbols:
    """Return symbols and geometry of a mechanism as it is written."""
    layout = layout_of(mechanism)
    graph = ExpressionGraph()
    euler = tuple(
        tuple(graph.symbol(name) for name in frame.euler_names)
        for frame in mechanism.frames.values()
        if frame.euler_names
    )
    names = {name: graph.symbol(name) for name in (TIME, *layout.q, *layout.p, *layout.w)}
    reducer = Reducer(graph, euler)
    frames = Frames(graph, reducer, mechanism.frames, NodeAlgebra(graph, names).scalar)
    space = Space(graph, frames, reducer)
    algebra = NodeAlgebra(graph, names, space)

    def offset(point: Point) -> Vector:
        return algebra.vector(point.at)

    points = Points(space, mechanism.points, offset)
    for name, point in mechanism.points.items():
        points.chain(name, point.where)
    return MechanismSymbols(
        mechanism=mechanism,
        layout=layout,
        graph=graph,
        reducer=reducer,
        space=space,
        points=points,
        coordinates=tuple(names[q] for q in layout.q if q not in parameters_of_contacts(mechanism)),
        euler=euler,
        inputs=tuple(names[w] for w in layout.w),
        names=names,
    )


def require_independent(node: Node, forbidden: frozenset[Node], what: str, text: Text) -> None:
    """Raise if `node` depends on any of the symbols.

    Raises
    ------
    ModelError
        Naming them.
    """
    met = sorted(symbol.name for symbol in support([node]) & forbidden)
    if met:
        raise ModelError(
            f"{what} may not depend on {', '.join(met)}",
            text.where,
            found=f"'{text.text}'",
            allowed="coordinates, parameters, inputs and t",
        )
