"""The form of a whole file, with components, variants and requirements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final, Literal, Self

from fsm_dyn.core.errors import Location, ModelError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.body_forms import (
    COORDINATES,
    PARAMETERS,
    VIEW,
    ConstraintForm,
    FrameForm,
    GeometryForm,
    LoadForm,
)
from fsm_dyn.language.contact_forms import (
    INPUTS,
    MEMORY,
    SCHEDULE,
    ContactForm,
    Modes,
    TransitionForm,
)
from fsm_dyn.language.elements import Input, Schedule
from fsm_dyn.language.expression_tree import MadeText, Text, fold
from fsm_dyn.language.expressions import FloatAlgebra, parse
from fsm_dyn.language.form import as_section, contact_key, expression, name, one_or_more_expressions
from fsm_dyn.language.form import key as new_key
from fsm_dyn.language.impositions import MOST_AT_ONCE, Imposition
from fsm_dyn.language.interfaces import Controller, PinEntry, Port
from fsm_dyn.language.joint_forms import JointForm
from fsm_dyn.language.keyed import KeyedMapping, exactly_one, in_place_of, keys_of, mapping
from fsm_dyn.language.keys import (
    EXPRESSION,
    POSITIVE,
    TEXT,
    VALUE,
    Kind,
    key,
    leaf,
    list_of,
    listing,
    one_of,
    part,
    reference,
    reference_to,
    section,
    whole,
    whole_number,
)
from fsm_dyn.language.keys import expression as expression_key
from fsm_dyn.language.model import (
    Body,
    Coordinate,
    DiscreteVariable,
    InertiaTensor,
    Initial,
    ModelSettings,
    Parameter,
    Point,
)
from fsm_dyn.language.requirement import NAMES, PHASES, PartName, Requirement, RunPhase, read_formula
from fsm_dyn.language.shapes import DrawnOutline
from fsm_dyn.language.units import ACCELERATION, DIMENSIONLESS, LENGTH, MASS, SPEED, TIME, Dimension
from fsm_dyn.language.yaml import LocatedMapping, LocatedStr, Scalar, Tree, describe

# -- Tolerances of a model's runs ------------------------------------------------------------------------------


_tolerance = partial(expression_key, default=None, unit=DIMENSIONLESS, bounds=POSITIVE, noun="the tolerance {key!r}")


@dataclass(frozen=True, kw_only=True)
class ModelTolerances(KeyedMapping):
    """Tolerances of the model's runs that differ from the usual ones.

    The usual values are in the mechanism's own units of length, mass and time.
    """

    what: ClassVar[str] = "numerics"
    example: ClassVar[str] = "numerics: {gap: 1e-8 m}"
    unknown: ClassVar[str] = "there is no tolerance {key!r}"
    hints: ClassVar[Mapping[str, str]] = {
        **in_place_of(rtol="tolerance tol reltol", atol="abstol"),
        **dict.fromkeys(("method", "solver", "integrator"), "an option of runs: --method radau"),
        **dict.fromkeys(("timestep", "step", "dt", "max_step"), "an option of runs: --step '1 ms'"),
    }
    #: Units of those that have no unit of their own.
    varying: ClassVar[Mapping[str, str]] = {"atol": "unit of the state", "graze": "unit of the guard"}

    rtol: Text | None = _tolerance("relative error of a step", usual="1e-9")
    atol: Text | None = _tolerance("absolute error of a step", usual="1e-11")
    gap: Text | None = _tolerance(
        "a contact whose gap is within this is closed; Zeno sequences end", unit=LENGTH, usual="1e-9"
    )
    speed: Text | None = _tolerance("a normal or slip speed within this is zero", unit=SPEED, usual="1e-9")
    acceleration: Text | None = _tolerance("a contact law on accelerations violated by less is kept", usual="1e-9")
    multiplier: Text | None = _tolerance("a force within this fraction of the largest one is zero", usual="1e-9")
    energy: Text | None = _tolerance("fraction of its work by which an impact may raise the energy", usual="1e-15")
    pivot: Text | None = _tolerance("smallest scaled pivot before other independent speeds are taken", usual="1e-6")
    hysteresis: Text | None = _tolerance("they are left when it falls so many times below its best", usual="10")
    time: Text | None = _tolerance("accuracy to which the instant of an event is located", unit=TIME, usual="1e-14")
    coincidence: Text | None = _tolerance(
        "guards that reach zero within this are resolved together", unit=TIME, usual="1e-11"
    )
    graze: Text | None = _tolerance("a guard that falls below zero by less has not fired", usual="1e-12")
    projection: Text | None = _tolerance(
        "residual of configuration rows that asks for a projection", unit=LENGTH, usual="1e-12"
    )
    drift: Text | None = _tolerance("residual after a projection that is a failure", unit=LENGTH, usual="1e-5")
    impact: Text | None = _tolerance("a contact law of an impact violated by less is kept", usual="1e-9")
    slip: Text | None = _tolerance(
        "slip speed in space from which friction follows its direction", unit=SPEED, usual="1e-6"
    )
    least_acceleration: Text | None = _tolerance(
        "acceleration distinguished from rounding", unit=ACCELERATION, usual="1e-3"
    )
    redundancy: Text | None = _tolerance("independent fraction below which a row is redundant", usual="1e-6")
    length_scale: Text | None = _tolerance("the mechanism's own unit of length", unit=LENGTH, usual="1")
    mass_scale: Text | None = _tolerance("the mechanism's own unit of mass", unit=MASS, usual="1")
    time_scale: Text | None = _tolerance("the mechanism's own unit of time", unit=TIME, usual="1")


#: Dimension of each tolerance. Their meaning: ``fsm_dyn.Tolerances``.
NUMERICS: Final[Mapping[str, Dimension]] = {
    name: key.unit for name, (_, key) in keys_of(ModelTolerances).items() if isinstance(key.unit, tuple)
}


# -- The whole file --------------------------------------------------------------------------------------------


# -- Forms of the sections with other texts: ``use`` and ``variants`` ----------------------------------------

MOST_VARIANTS = 30


@mapping
class PlaceForm(KeyedMapping):
    """Place of attachment of a component."""

    what: ClassVar[str] = "a place to attach to"
    example: ClassVar[str] = "attach: {frame: B, point: P}"

    frame: str = reference("a frame", "frame in place of its `N`", "N")
    point: str = reference("a point", "point in place of its `O`", "O")


def _given(tree: Tree) -> dict[str, tuple[Text, ...]]:
    """Return the given parameters of a component; a list is a vector."""
    return {name(word): one_or_more_expressions(value) for word, value in as_section(tree, "with").items()}


def _place(tree: Tree) -> PlaceForm | str:
    return PlaceForm.read(tree) if isinstance(tree, LocatedMapping) else name(tree)


def _model(tree: Tree) -> LocatedMapping:
    if isinstance(tree, LocatedMapping):
        return tree
    raise ModelError("a whole model is wanted", tree.where, found=describe(tree), allowed="a mapping, as in a file")


_GIVEN: Final = leaf(
    _given, {"type": "object", "additionalProperties": {"anyOf": [VALUE, list_of(VALUE, 0)]}}, "values by parameter",
    example={"length": "40 mm"},
)  # fmt: skip
_ATTACH: Final = leaf(
    _place, {"anyOf": [{"type": "string", "description": "a body"}, reference_to(PlaceForm)]},
    "body, or `{frame, point}`", mappings=(PlaceForm,), example="box",
)  # fmt: skip
_INLINE: Final = leaf(_model, {"type": "object"}, "a whole model", holds="words",
                     example={"fsm_dyn": 1, "bodies": {"ball": {"center": "O", "mass": "1 kg"}}})  # fmt: skip


@mapping
class UseForm(KeyedMapping):
    """A component: another model, as a part of this one."""

    what: ClassVar[str] = "a component"
    example: ClassVar[str] = "lever: {file: lever.yaml}"

    file: str | None = key(
        TEXT,
        "name of a shipped model, or of a `.yaml` file in the same folder; a variant follows after a colon",
        None,
        example="lever.yaml",
    )
    model: LocatedMapping | None = key(_INLINE, "instead of `file`: the component itself, written out", None)
    values: dict[str, tuple[Text, ...]] = key(
        _GIVEN, "values of its parameters, from the parameters of this model", factory=dict, name="with"
    )
    attach: PlaceForm | str = key(
        _ATTACH, "frame and point for its `N` and `O`: a body (its frame and centre), or both", "N"
    )

    def check(self) -> None:
        """Refuse a component without a model, or with two.

        Raises ModelError: neither or both of ``file`` and ``model`` are written.
        """
        exactly_one(self, ("file", "model"))


def _variants(tree: Tree) -> dict[str, LocatedMapping]:
    found: dict[str, LocatedMapping] = {}
    section = as_section(tree, "variants")
    for word, value in section.items():
        overlay = as_section(value, f"variant {str(word)!r}")
        for inner in overlay:
            if inner in ("fsm_dyn", "variants"):
                raise ModelError(f"a variant cannot change {str(inner)!r}", inner.where)
        found[new_key(word)] = overlay
    if len(found) > MOST_VARIANTS:
        raise ModelError("too many variants", section.where, found=str(len(found)), allowed=str(MOST_VARIANTS))
    return found


_VARIANTS: Final = leaf(
    _variants, {"type": "object", "additionalProperties": {"type": "object"}}, "differing sections by name",
    holds="words", line="variants: {long: {parameters: {l: 0.6 m}}}",
)  # fmt: skip

# -- Form of the requirements: a formula, or ``{formula:, text:}`` -------------------------------------------

_FORMULA: Final = {
    "type": "string",
    "description": "never ..., always ..., eventually ..., peak(...) < ..., count(...) <= ...",
}
_REQUIREMENTS_LINE: Final = "requirements: {rests: eventually x >= 0.3 m before 2 s}"


@mapping
class RequirementForm(KeyedMapping):
    """A requirement with a text for people to read."""

    what: ClassVar[str] = "a requirement"
    example: ClassVar[str] = "rests: {formula: eventually x >= 0.3 m before 2 s, text: It arrives.}"

    formula: Text = expression_key("on a run", example="eventually x >= 0.3 m before 2 s")
    text: str = key(TEXT, "for people to read", "")


def _requirements(tree: Tree) -> dict[str, Requirement]:
    found: dict[str, Requirement] = {}
    for word, entry in as_section(tree, "requirements", _REQUIREMENTS_LINE).items():
        summary = ""
        if isinstance(entry, LocatedMapping):
            form = RequirementForm.read(entry, word)
            formula, summary = form.formula, form.text
        else:
            formula = expression(entry)
        name = new_key(word)
        written = " ".join(formula.text.split())
        found[name] = Requirement(name, written, read_formula(formula), summary, formula.where)
    return found


_REQUIREMENTS: Final = leaf(
    _requirements,
    {"type": "object", "additionalProperties": {"anyOf": [_FORMULA, reference_to(RequirementForm)]}},
    "formula by name", mappings=(RequirementForm,), line=_REQUIREMENTS_LINE,
)  # fmt: skip


# -- The form of a whole file, and the way from a composed tree to it ----------------------------------------

FORMAT = 1


def _format(tree: Tree) -> Literal[1]:
    if isinstance(tree, Scalar) and tree.value == FORMAT and not isinstance(tree.value, bool):
        return 1
    raise ModelError(
        "this format of model files is not known here",
        tree.where,
        found=describe(tree),
        allowed=str(FORMAT),
        remedy="a newer file needs a newer fsm_dyn",
    )


def _title(tree: Tree) -> str:
    if isinstance(tree, Scalar) and isinstance(tree.value, str) and len(tree.text) <= 64:
        words = tree.text.replace("-", "_")
        if words.isascii() and words.isidentifier() and words[0] != "_":
            return tree.text
    raise ModelError(
        "the name of a model is one word",
        tree.where,
        found=describe(tree),
        allowed="letters, digits, _ and -, beginning with a letter; the summary may say more",
    )


_FORMAT: Final = leaf(_format, {"const": FORMAT}, "`1`", example=FORMAT)
_TITLE: Final = leaf(
    _title, {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_-]*$"}, "word", holds="words", example="box"
)


def _named(cls: Any, what: str, line: str, name: Callable[[Tree | LocatedStr], LocatedStr] = new_key) -> Kind:
    return section(whole(cls), what, line, name)


_SCHEDULES: Final = section(SCHEDULE, "schedule", "schedule: {push: 3 N}", name)
_SCENARIO: Final = section(SCHEDULE, "a scenario", "schedule: {push: 3 N}", name)
_IMPOSED: Final = _named(Imposition, "imposed", "imposed: {catch: {pin: [P, ground]}}")
CONSTRAINTS: Final = "constraints"


_NOT_OF_SCENARIOS: Final = {
    **dict.fromkeys(("inputs", "schedule"), "name the inputs themselves: `nudge: {push: 3 N}`"),
    **dict.fromkeys(
        ("parameters", "initial", "memory"), "a variant changes it: `variants: {high: {initial: {y: 2 m}}}`"
    ),
}


def _scenario(tree: Tree, at: LocatedStr) -> dict[str, Any]:
    """Return the schedules of a scenario, and its impositions under ``constraints``."""
    for word in tree if isinstance(tree, LocatedMapping) else ():
        if word in _NOT_OF_SCENARIOS:
            raise ModelError(
                f"a scenario holds schedules of inputs, not {str(word)!r}", word.where, found=word,
                remedy=_NOT_OF_SCENARIOS[word],
            )  # fmt: skip
    if not isinstance(tree, LocatedMapping) or CONSTRAINTS not in tree:
        schedules: dict[str, Any] = _SCENARIO.read(tree, at)
        return schedules
    inputs = LocatedMapping({word: value for word, value in tree.items() if word != CONSTRAINTS}, tree.where)
    word = next(word for word in tree if word == CONSTRAINTS)
    return {**_SCENARIO.read(inputs, at), CONSTRAINTS: _IMPOSED.read(tree[word], word)}


def _scenario_schema() -> Any:
    schema = dict(_SCENARIO.schema())
    return {**schema, "properties": {CONSTRAINTS: _IMPOSED.schema()}}


_ANY_SCENARIO: Final = replace(
    _SCENARIO, read=_scenario, schema=_scenario_schema, mappings=(*_SCENARIO.mappings, Imposition)
)


@mapping
class MechanismForm(ModelSettings):
    """A mechanism for fsm_dyn, format 1."""

    what: ClassVar[str] = "a model"
    first: ClassVar[tuple[str, ...]] = (
        "fsm_dyn", "name", "summary", "source", "parameters", "coordinates", "frames", "points", "bodies", "joints",
        "joint_coordinates", "speeds", "constraints", "shapes", "contacts", "imposed", "imposable", "inputs",
        "schedule", "scenarios", "loads", "modes", "memory", "controllers", "transitions", "impacts", "on_inconsistent",
        "on_nonunique", "numerics", "ports", "port_coupling", "initial", "outputs", "pins", "requirements", "names",
        "phases", "view", "use", "variants",
    )  # fmt: skip
    hints: ClassVar[Mapping[str, str]] = {
        **in_place_of(
            parameters="constants",
            coordinates="dof dofs q generalized_coordinates state variables",
            points="markers sites",
            bodies="links parts",
            joints="hinges",
            shapes="geometry geom geoms outlines",
            contacts="collisions",
            inputs="actuators actuator controls",
            use="include import components",
            initial="initial_conditions initial_state start x0",
            outputs="sensors measurements requests probes",
            view="drawing graphics visual",
            scenarios="drives",
            numerics="solver tolerances option options",
            name="title",
            summary="description",
            transitions="events guards",
        ),
        "units": "units stand with the numbers: `4 kg`",
        "version": "begin the file with `fsm_dyn: 1`",
        "forces": "forces and torques are items of 'loads'",
        "springs": "springs are items of 'loads'",
        "dampers": "dampers are items of 'loads'",
        "gravity": "gravity is an item of 'loads'",
        "only_listed": "`only_listed: true` stands inside `modes`",
        "mode": "the initial mode stands inside `initial`, the list of modes in `modes`",
    }

    fsm_dyn: Literal[1] = key(_FORMAT, "format of the file")
    name: str | None = key(_TITLE, "of the model", None, usual="that of the file")
    parameters: Mapping[str, Parameter] = key(PARAMETERS, "constants", factory=dict)
    coordinates: Mapping[str, Coordinate] = key(COORDINATES, "variables of the configuration", factory=dict)
    frames: dict[str, FrameForm] = key(
        _named(FrameForm, "frames", "frames: {B: {rotate: {z: q}}}"), "what turns", factory=dict
    )
    points: dict[str, Point] = key(_named(Point, "points", "points: {P: {from: O, at: x*N.x}}"), "places", factory=dict)
    bodies: dict[str, Body] = key(_named(Body, "bodies", "bodies: {ball: {center: P, mass: 1 kg}}"), "what has mass")
    joints: dict[str, JointForm] = key(
        _named(JointForm, "joints", "joints: {hinge: {revolute: {child: B, at: [O, P], axis: N.z}}}"),
        "connections of frames", factory=dict,
    )  # fmt: skip
    joint_coordinates: Literal["relative", "absolute", "centers"] = key(
        one_of("relative", "absolute", "centers"),
        "coordinates of joints, or of their children, moving freely, by their origins or by their mass centres",
        "relative",
    )
    speeds: dict[str, Text] = key(
        section(EXPRESSION, "speeds", "speeds: {v: rate(x)}"), "generalized speeds", factory=dict,
        usual="the rates of all coordinates",
    )  # fmt: skip
    constraints: dict[str, ConstraintForm] = key(
        _named(ConstraintForm, "constraints", "constraints: {wheel: {velocity: rate(x) - r*rate(q)}}"),
        "always active rows", factory=dict,
    )  # fmt: skip
    shapes: dict[str, GeometryForm] = key(
        _named(GeometryForm, "shapes", "shapes: {ground: {line: {along: N.x}, side: N.y}}"), "outlines for contacts",
        factory=dict,
    )  # fmt: skip
    contacts: dict[str, ContactForm] = key(
        section(whole(ContactForm), "contacts", "contacts: {stop: {gap: 0.3 m - x}}", contact_key),
        "constraints and forces that come and go", factory=dict,
    )  # fmt: skip
    imposed: dict[str, Imposition] = key(_IMPOSED, "constraints to impose and to release in a run", factory=dict)
    imposable: int = key(
        whole_number(0, MOST_AT_ONCE, "the number of constraints that a hand imposes at once"),
        "constraints that a person may impose at once, between any points of bodies", 0,
    )  # fmt: skip
    inputs: Mapping[str, Input] = key(INPUTS, "quantities given from outside", factory=dict)
    schedule: dict[str, Schedule] = key(_SCHEDULES, "values of inputs over time", factory=dict)
    scenarios: dict[str, dict[str, Any]] = key(
        section(_ANY_SCENARIO, "scenarios", "scenarios: {nudge: {push: 3 N}}"), "named schedules of some inputs",
        factory=dict,
    )  # fmt: skip
    loads: tuple[LoadForm, ...] = key(
        listing(whole(LoadForm), "loads"), "forces and torques besides those of contacts and constraints", ()
    )
    modes: Modes = part(Modes, "names for patterns of contact states", Modes())
    memory: Mapping[str, DiscreteVariable] = key(MEMORY, "values changed by transitions alone", factory=dict)
    controllers: dict[str, Controller] = key(
        _named(
            Controller, "controllers",
            "controllers: {servo: {period: 1 ms, outputs: {push: {unit: N, value: -k*x}}}}",
        ), "sampled controllers", factory=dict,
    )  # fmt: skip
    transitions: tuple[TransitionForm, ...] = key(
        listing(whole(TransitionForm), "transitions"), "in addition to those of contacts", ()
    )
    numerics: ModelTolerances = key(whole(ModelTolerances), "tolerances of its runs", ModelTolerances())
    ports: dict[str, Port] = key(_named(Port, "ports", "ports: {hand: {coordinate: x}}"), "places for devices",
                                 factory=dict)  # fmt: skip
    port_coupling: Literal["none", "impedance", "admittance"] = key(
        one_of("none", "impedance", "admittance"), "couplers of ports as parts of the model", "none"
    )
    initial: Initial = part(Initial, "start of a run", Initial())
    outputs: dict[str, Text] = key(
        section(EXPRESSION, "outputs", "outputs: {height: x + 0.1 m}"), "extra columns of a run", factory=dict
    )
    pins: dict[str, PinEntry] = key(
        _named(PinEntry, "pins", "pins: {knee: {between: [thigh, shank], outputs: force}}", contact_key), "connections",
        factory=dict,
    )  # fmt: skip
    requirements: Mapping[str, Requirement] = key(_REQUIREMENTS, "on runs", factory=dict)
    names: Mapping[str, PartName] = key(NAMES, "words for contacts, shapes and bodies", factory=dict)
    phases: Mapping[str, RunPhase] = key(PHASES, "of runs: the first true one applies", factory=dict)
    view: Mapping[str, tuple[DrawnOutline, ...]] = key(VIEW, "drawings of bodies", factory=dict)
    use: dict[str, UseForm] = key(_named(UseForm, "use", "use: {lever: {file: lever.yaml}}"), "components",
                                  factory=dict)  # fmt: skip
    variants: dict[str, LocatedMapping] = key(_VARIANTS, "of the model, by their differences", factory=dict)

    def checked(self) -> Self:
        """Return the form with drawn outlines as points, moments of outlines as parameters, and plates as bodies."""
        drawn = {word: shape for word, shape in self.shapes.items() if shape.polygon and shape.polygon.file}
        plates = [body for body in self.bodies.values() if body.outline is not None and not body.center]
        if not drawn and not plates:
            return self
        has_units = not self.coordinates or any(item.unit for item in self.coordinates.values())
        shapes = dict(self.shapes)
        parameters: dict[str, Parameter] = {}
        for word, shape in drawn.items():
            shapes[word], found = _with_points(word, shape, has_units)
            parameters |= found
        parameters |= self.parameters
        points, bodies = dict(self.points), dict(self.bodies)
        for body in plates:
            shape = _outline_of(body, shapes)
            if str(body.outline) not in drawn:
                parameters |= _moments_of(str(body.outline), shape, body.key("outline"))
            point, bodies[body.name] = _as_plate(body, shape)
            points[point.name] = point
        return replace(self, shapes=shapes, parameters=parameters, points=points, bodies=bodies)


# -- Plates: mass, centre and inertia of a body from an outline, its thickness and density -------------------


def _outline_of(body: Body, shapes: Mapping[str, GeometryForm]) -> GeometryForm:
    """Return the shape that is the outline of a body.

    Raises ModelError: there is none of that name, or none with an area and a place.
    """
    name, where = str(body.outline), body.key("outline")
    shape = shapes.get(name)
    if shape is None:
        raise ModelError(
            f"there is no shape {name!r} for the outline of body {str(body.name)!r}", where, found=name,
            allowed=", ".join(shapes), remedy=did_you_mean(name, shapes),
        )  # fmt: skip
    outline = shape.polygon or shape.circle
    if outline is None or shape.repeat is not None:
        raise ModelError(
            f"the shape {name!r} is no outline of a plate", where, found=name, allowed="a polygon or a circle, once"
        )
    place = "center" if shape.circle is not None else "from"
    missing = next((word for word in ("frame", place) if word not in outline.written_keys()), "")
    if missing:
        raise ModelError(
            f"the outline {name!r} of body {str(body.name)!r} lacks the key {missing!r}", outline.key(""),
            remedy=f"add `{missing}`: the outline determines the body's frame and centre",
        )  # fmt: skip
    return shape


def _moments_of(name: str, shape: GeometryForm, where: Location) -> dict[str, Parameter]:
    """Return area, centre and second moments of a polygon of points or a circle, as parameters."""
    if shape.circle is not None:
        r = f"({shape.circle.radius})"
        quarter = f"pi*{r}**4/4"
        texts = {"area": f"pi*{r}**2", "x": f"0*{r}", "y": f"0*{r}", "xx": quarter, "yy": quarter, "xy": f"0*{r}**4"}
    else:
        assert shape.polygon is not None
        texts = _moments_of_corners(name, [(f"({x})", f"({y})") for x, y in shape.polygon.points])
    words = {moment: new_key(LocatedStr(f"{name}_{moment}", where)) for moment in texts}
    return {words[m]: Parameter(words[m], (MadeText(text, where),), where=where) for m, text in texts.items()}


def _moments_of_corners(name: str, corners: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return area, centre and second moments about it by Green's formula; the sense of the corners has no influence."""
    sides = list(zip(corners, [*corners[1:], corners[0]], strict=True))
    turns = [f"({ax}*{by} - {bx}*{ay})" for (ax, ay), (bx, by) in sides]

    def total(factor: Callable[[str, str, str, str], str], divisor: int) -> str:
        terms = [f"{turn}*({factor(*a, *b)})" for turn, (a, b) in zip(turns, sides, strict=True)]
        return f"({' + '.join(terms)})/{divisor}"

    twice = f"({' + '.join(turns)})"
    area, x, y = f"{name}_area", f"{name}_x", f"{name}_y"
    return {
        "area": f"abs({twice})/2",
        "x": total(lambda ax, ay, bx, by: f"{ax} + {bx}", 3) + f"/{twice}",
        "y": total(lambda ax, ay, bx, by: f"{ay} + {by}", 3) + f"/{twice}",
        "xx": f"abs({total(lambda ax, ay, bx, by: f'{ay}**2 + {ay}*{by} + {by}**2', 12)}) - {area}*{y}**2",
        "yy": f"abs({total(lambda ax, ay, bx, by: f'{ax}**2 + {ax}*{bx} + {bx}**2', 12)}) - {area}*{x}**2",
        "xy": total(lambda ax, ay, bx, by: f"{ax}*{by} + 2*{ax}*{ay} + 2*{bx}*{by} + {bx}*{ay}", 12)
        + f"*{area}/{twice} - {area}*{x}*{y}",
    }


def _as_plate(body: Body, shape: GeometryForm) -> tuple[Point, Body]:
    """Return the mass centre of a plate, and the body with its mass and inertia; the outline is in its middle."""
    where, name = body.key("outline"), str(body.outline)
    if shape.circle is not None:
        frame, origin = shape.circle.frame, shape.circle.center
    else:
        assert shape.polygon is not None
        frame, origin = shape.polygon.frame, shape.polygon.origin
    assert origin is not None, "outlines of bodies have a place"

    def text(of: str) -> MadeText:
        return MadeText(of, where)

    center = new_key(LocatedStr(f"{body.name}_center", body.where))
    point = Point(
        name=center, origin=origin, at=text(f"{name}_x*{frame}.x + {name}_y*{frame}.y"), where=body.where
    )  # fmt: skip
    mass, high = f"({body.density})*({body.thickness})", f"({body.thickness})**2/12"
    tensor = InertiaTensor(
        xx=text(f"{mass}*({name}_xx + {name}_area*{high})"), yy=text(f"{mass}*({name}_yy + {name}_area*{high})"),
        zz=text(f"{mass}*({name}_xx + {name}_yy)"), xy=text(f"-{mass}*{name}_xy"),
    )  # fmt: skip
    return point, replace(body, center=center, frame=frame, mass=text(f"{mass}*{name}_area"), tensor=tensor)


def _with_points(shape_name: str, shape: GeometryForm, has_units: bool) -> tuple[GeometryForm, dict[str, Parameter]]:
    """Return a shape with the corners of its drawing, and the moments of its area as parameters."""
    from fsm_dyn.language.drawings import read_outline  # only models with drawings wait for its readers

    polygon = shape.polygon
    assert polygon is not None
    where = polygon.key("file")
    tolerance = 0.0 if polygon.tolerance is None else fold(parse(polygon.tolerance), FloatAlgebra({}))
    outline = read_outline(polygon.file, polygon.layer, polygon.unit, tolerance, where, polygon.plane)

    def text(value: float, unit: str) -> Text:
        return Text(f"{value!r} {unit}" if has_units else repr(value), where)

    points = tuple((text(corner.real, "m"), text(corner.imag, "m")) for corner in outline.corners)
    units = {"area": "m^2", "x": "m", "y": "m", "xx": "m^4", "yy": "m^4", "xy": "m^4"}
    parameters: dict[str, Parameter] = {}
    for moment, unit in units.items():
        word = new_key(LocatedStr(f"{shape_name}_{moment}", where))
        parameters[word] = Parameter(word, (text(getattr(outline.moments, moment), unit),), where=where)
    return replace(shape, polygon=replace(polygon, points=points)), parameters


def form_of(tree: Tree) -> MechanismForm:
    """Validate the form of a composed file.

    Raises ModelError with the exact place of the first invalid key or value.
    """
    return MechanismForm.read(tree)
