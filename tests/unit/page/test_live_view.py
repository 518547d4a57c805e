"""What the page is shown of a run: forces where they act, handles where ports are, guards that do not lie."""

import math
import time

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.automaton.initial_values import initial_state
from fsm_dyn.language import models
from fsm_dyn.language.contacts import FeatureContact
from fsm_dyn.language.values import parameter_values
from fsm_dyn.language.yaml import compose, plain_data
from fsm_dyn.live.device_map import add_couplers
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.live.tick import TickColumns
from fsm_dyn.live.tick_process import columns_of
from fsm_dyn.page.frames import HEAD, FrameEncoder
from fsm_dyn.page.live_view import LiveOptions, LiveView, coupled_for_page
from fsm_dyn.page.ports import default_coupler_parameters, with_default_ports
from fsm_dyn.page.scene_drawing import Picture, RowEvaluator, find_grounds
from fsm_dyn.programs.kernels import compile_programs
from fsm_dyn.run.contact_forces import WIDTH, Forces, contact_at, direction, partial_of
from tests.shipped import mechanism
from tests.unit.live.test_hand_contacts import SCENE as DISC_ON_BLOCK

WHOLE = [name for name in models.names() if not mechanism(name).name.endswith("_finger")]


class Still:
    """A model at its start, without a run."""

    def __init__(self, name):
        self.graph = fsm_dyn.compile(add_couplers(with_default_ports(mechanism(name))))
        automaton, layout = self.graph.automaton, self.graph.automaton.terms.layout
        start = initial_state(automaton, self.graph.values, self.graph.parameters)
        self.x, self.c, self.states = start.x, start.context, start.states
        self.evaluator = RowEvaluator(self.graph, TickColumns(layout.w, layout.x, 2, ()))
        self.picture = Picture.of(self.graph, self.evaluator, self.x, self.c)
        self.located = Forces(self.evaluator, self.picture.scene, self.picture.flat, self.x, self.c)
        self.places = self.located.locations
        self.contacts = [automaton.contacts[place.contact].name for place in self.places]

    def forces(self, states=None, multipliers=None):
        """By contact: place, normal, tangent and limit, flat on the picture."""
        states = self.states if states is None else states
        if multipliers is None:
            multipliers = self.evaluator.full(states, self.x, self.c)[1]["multipliers"]
        drawn = self.located.drawn(self.x, self.c, states, multipliers)
        rows = drawn.reshape(-1, WIDTH)
        return {name: row[1:].reshape(4, 2) for name, row in zip(self.contacts, rows, strict=True) if row[0]}

    def moved(self, **values):
        for name, value in values.items():
            self.x[self.evaluator.layout.x.index(name)] = value
        return self


@pytest.mark.parametrize("name", WHOLE)
def test_every_shipped_model_can_be_dragged_and_drawn(name, tmp_path):
    still = Still(name)
    assert still.graph.automaton.mechanism.ports
    payload = still.picture.payload()
    assert payload["shapes"] or payload["symbols"]
    mechanism = still.graph.automaton.mechanism
    level = all(axis == "z" for frame in mechanism.frames.values() for axis, _ in getattr(frame, "rotations", ()))
    level &= not any(frame.euler_names for frame in mechanism.frames.values())
    assert payload["planar"] == (level and not any(".z" in point.at.text for point in mechanism.points.values()))
    points, frames = still.evaluator.points(still.x, still.c)
    assert np.isfinite(still.picture.placed(points, frames)).all()
    still.graph.save(tmp_path / "held.json")  # as the tick process gets it
    assert list(fsm_dyn.open_graph(tmp_path / "held.json")) == list(still.graph)


@pytest.mark.parametrize("name", WHOLE)
def test_every_contact_that_is_drawn_does_the_work_of_its_row(name):
    """Force times velocity of where it is drawn is what the row says; velocities by differences along the motion."""
    still = Still(name)
    automaton, layout = still.graph.automaton, still.evaluator.layout
    assert len(still.places) == len(automaton.mechanism.contacts)
    random = np.random.default_rng(7)
    x, h = still.x.copy(), 1e-5
    x[: len(layout.q)] += 0.15 * random.uniform(-1.0, 1.0, len(layout.q))
    for first in automaton.quaternions:
        x[first : first + 4] /= np.linalg.norm(x[first : first + 4])
    x[layout.u_slice] = random.uniform(-1.0, 1.0, len(layout.u))
    at = still.evaluator.configuration(x, still.c)
    step = np.zeros_like(x)
    step[: len(layout.q)] = h * at.terms["q_dot"]
    (points, frames), (before, turned), (after, turning) = (
        still.evaluator.points(there, still.c) for there in (x, x - step, x + step)
    )
    velocity = (after - before) / (2.0 * h)
    spin = np.einsum("fij,fkj->fik", (turning - turned) / (2.0 * h), frames)
    omega = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=-1)
    for place in still.places:
        contact = automaton.contacts[place.contact]
        if isinstance(automaton.mechanism.contacts[contact.name], FeatureContact):  # a gap and a slip in metres
            rows = [row for row in (contact.normal_row, *contact.tangent_rows) if row >= 0]
            _, directions = contact_at(place, at, rows)
            assert place.kind == "force"
            np.testing.assert_allclose(directions @ directions.T, np.eye(len(rows)), atol=1e-6, err_msg=contact.name)
        for row in (contact.normal_row, *contact.tangent_rows):
            if row < 0:
                continue
            expected = at.rows[row] @ x[layout.u_slice]
            if place.kind == "torque":
                turn = at.angular[place.one] - (0.0 if place.other is None else at.angular[place.other])
                torque = direction(turn, at.rows[row])
                power = torque @ (omega[place.one] - (0.0 if place.other is None else omega[place.other]))
            else:
                wrench = direction(partial_of(place, at), at.rows[row])
                under = np.zeros(3) if place.other is None else velocity[place.other]
                if place.on is not None:  # the point of the other body there
                    under = velocity[place.on[0]] + np.cross(
                        omega[place.on[1]], points[place.one] - points[place.on[0]]
                    )
                power = wrench[:3] @ (velocity[place.one] - under)
                for sign, frame, moment in zip(
                    (1.0, -1.0), place.spins or (), (wrench[3:6], wrench[6:9]), strict=False
                ):
                    power += 0.0 if frame is None else sign * moment @ omega[frame]
            # differences over 1e-5 with positions of about 1 m: 1e-10 / 1e-5 at worst
            assert power == pytest.approx(expected, abs=2e-5), (contact.name, place)


def test_a_box_stands_on_its_corners():
    found = Still("box_on_table").forces()
    weight = 9.81
    assert set(found) == {"c1", "c2"}
    for name, x in (("c1", -0.1), ("c2", 0.1)):
        place, normal, _tangent, limit = found[name]
        assert place == pytest.approx([x, 0.0], abs=1e-9)
        assert normal[0] == pytest.approx(0.0, abs=1e-9)
        assert abs(limit[0]) == pytest.approx(0.3 * normal[1], rel=1e-9)
    assert found["c1"][1][1] + found["c2"][1][1] == pytest.approx(weight, rel=1e-9)


def test_a_cam_presses_where_its_disk_is_highest():
    still = Still("cam_flat_follower")
    phi = 0.7
    still.moved(phi=phi, y=0.04 + 0.01 * math.sin(phi))
    multipliers = np.zeros(len(still.graph.automaton.rows))
    multipliers[still.graph.automaton.contacts[0].normal_row] = 5.0
    place, normal, _, _ = still.forces((1,), multipliers)["face"]
    # partial velocities by differences of 1e-6 are good to 1e-9
    assert place == pytest.approx([0.01 * math.cos(phi), 0.04 + 0.01 * math.sin(phi)], abs=1e-7)
    assert np.abs(normal) == pytest.approx([0.0, 5.0], abs=1e-6)


def test_solids_stand_where_the_model_puts_them():
    """The ball on its table: a sphere about its centre; seen from anywhere, what is up on the page is up."""
    graph, _ = coupled_for_page(fsm_dyn.compile("billiard_ball"), {})
    start = initial_state(graph.automaton, graph.values, graph.parameters)
    layout = graph.automaton.terms.layout
    encoder = FrameEncoder(graph, TickColumns(layout.w, layout.x, 0, ()), start.x, start.context, coupled=False)
    ball, table = encoder.solids
    assert (ball.kind, table.kind) == ("sphere", "plane")
    assert ball.radius == graph.values["r"]
    assert table.axis == (0.0, 0.0, 1.0)
    encoder.picture.look(1.0, 0.5)
    frame = encoder.frame((1, 0, 0.0, 1, 0, 0), start.states, start.x, start.context)
    space = frame[len(frame) - 6 - 12 * (len(encoder.picture.scene.shapes) + 2) :]
    towards = [np.cos(0.5) * np.cos(1.0), np.cos(0.5) * np.sin(1.0), np.sin(0.5)]
    assert np.cross(space[:3], space[3:6]) == pytest.approx(towards)
    assert space[-24:-12] == pytest.approx([*np.eye(3).ravel(), *start.x[:2], graph.values["r"]])


def test_a_floor_is_found_under_what_rolls_on_it():
    """The ramp of the rolling disk is inclined by 12 degrees and goes through the origin."""
    disk = Still("rolling_disk")
    (ramp,) = find_grounds(disk.evaluator, disk.picture, disk.places, disk.x, disk.c)
    slope = math.radians(12.0)
    assert ramp.normal == pytest.approx([-math.sin(slope), math.cos(slope)], abs=1e-6)
    assert ramp.at == pytest.approx([0.0, 0.0], abs=1e-6)


def test_a_fixed_circle_is_no_floor_and_a_rail_under_a_lever_is():
    door = Still("latch_door")
    stops = [place for place in door.places if place.features is None]
    assert len(stops) == 3
    (frame,) = find_grounds(door.evaluator, door.picture, door.places, door.x, door.c)
    assert frame.normal == pytest.approx([-1.0, 0.0])
    assert frame.half > 0.0, "the stops of the bolt are in the door, not in N"
    action = Still("piano_action")
    assert not find_grounds(action.evaluator, action.picture, action.places, action.x, action.c)  # all are symbols
    scene = action.picture.scene
    grounds = [symbol for symbol in scene.symbols if symbol.kind == "ground"]
    ends = [[scene.anchors[k].offset[:2] for k in symbol.anchors] for symbol in grounds]
    assert {(0.23, 0.0), (-0.22, -0.01)} <= {(*np.round(np.mean(pair, 0), 3).tolist(),) for pair in ends}  # of the key


@pytest.mark.parametrize("name", WHOLE)
def test_no_part_of_a_mechanism_is_drawn_inside_its_ground(name):
    """Faces that end are no planes (the teeth of a reel), and a stop inside a drawer is as short as a stop."""
    still = Still(name)
    parts = still.picture.moving_corners(still.evaluator, still.x, still.c)
    size = np.ptp(parts, axis=0).max()
    for ground in find_grounds(still.evaluator, still.picture, still.places, still.x, still.c):
        if not ground.half:
            assert ((parts - ground.at) @ ground.normal).min() >= -0.03 * size
        assert ground.half < size


def test_a_disk_touches_its_slope_at_its_rim():
    still = Still("rolling_disk")
    points, _ = still.evaluator.points(still.x, still.c)
    place, normal, tangent, _ = still.forces()["ramp"]
    centre = points[still.picture.scene.points.index("Bo")][:2]
    assert np.linalg.norm(place - centre) == pytest.approx(0.1, abs=1e-6)
    assert (place - centre) @ normal == pytest.approx(-0.1 * np.linalg.norm(normal), rel=1e-6)
    assert abs(normal @ tangent) < 1e-6 * np.linalg.norm(normal) * max(np.linalg.norm(tangent), 1.0)


def test_friction_about_an_axis_is_a_torque_at_that_axis():
    still = Still("shopping_cart")
    points, _ = still.evaluator.points(still.x, still.c)
    place, torque, _, limit = still.forces()["caster_axis"]
    assert place == pytest.approx(points[still.picture.scene.points.index("P2")][:2])
    assert abs(torque[0]) == pytest.approx(0.25)  # slipping: all of tau_slip
    assert limit[0] == pytest.approx(0.25)


def test_the_floor_is_where_gaps_close():
    still = Still("box_on_table")
    (ground,) = find_grounds(still.evaluator, still.picture, still.places, still.x, still.c)
    assert ground.normal == pytest.approx([0.0, 1.0], abs=1e-8)
    assert ground.normal @ ground.at == pytest.approx(0.0, abs=1e-8)
    assert ground.half == 0.0


def test_ports_are_made_up_where_there_are_none():
    assert with_default_ports(fsm_dyn.load("latch")).ports == fsm_dyn.load("latch").ports
    grips = with_default_ports(fsm_dyn.load("ratchet"))
    assert {name: port.coordinate or port.point for name, port in grips.ports.items()} == {
        "wheel_port": "q",
        "pawl_port": "K",
    }
    found = default_coupler_parameters(fsm_dyn.compile(add_couplers(with_default_ports(fsm_dyn.load("box_on_table")))))
    assert math.sqrt(found["box_port_1_stiffness"] / 1.0) / (2 * math.pi) == pytest.approx(2.0)


def test_ports_of_a_model_keep_their_couplers_under_any_name():
    data = plain_data(compose(fsm_dyn.load("box_on_table").text, "box_on_table"))
    port = {"point": "C", "body": "box", "axes": ["N.x", "N.y"], "stiffness": "123 N/m"}
    graph = fsm_dyn.compile({**data, "ports": {"box_port": port}})
    coupled, changed = coupled_for_page(graph, {})
    assert changed == {}
    assert parameter_values(coupled.automaton.mechanism)["box_port_1_stiffness"] == 123.0


@pytest.fixture
def view():
    made = []

    def start(name, **options):
        one = LiveView(fsm_dyn.compile(name), 7, LiveOptions(**options))
        made.append(one)
        one.session.wait_for_ticks(30)
        return one

    yield start
    for one in made:
        one.close()


def follow(view, until, act=lambda t: None):
    """Follow a run like a show does up to a model time; yield the frames as numbers."""
    patience, t = time.monotonic() + 60.0, 0.0
    while t < until:
        assert time.monotonic() < patience
        act(t)
        data = view.frame()
        view.event_log.new_entries(view.evaluator.automaton)
        if data is not None:
            numbers = np.frombuffer(data, "<f8")
            t = numbers[2]
            yield numbers
        time.sleep(0.01)


def test_frames_of_a_dragged_cart(view):
    cart = view("shopping_cart")
    payload = cart.payload()
    guarded, times = 0, []
    picture = payload["picture"]
    width = HEAD + 6 * len(picture["shapes"]) + 2 * picture["anchors"]
    width += 4 * len(payload["pushes"]) + 5 * len(payload["ports"]) + 9 * len(payload["forces"])

    pins = [pin["name"] for pin in cart.loads()["loads"]["pins"]]

    def drag(t):
        cart.point("handle", (0.7 * math.sin(3.0 * t), 0.0), 0.0, engaged=True)

    def suffices(frame):
        """Whether all that is judged has been seen, and this frame is one of a held cart: on a busy machine later."""
        held = frame[width - 5 - 9 + 4] == pytest.approx(1.0)
        return times[-1] > 2.0 and guarded > 20 and held and cart.event_log.visits["sticking"] >= 1

    for frame in follow(cart, math.inf, drag):
        samples, guards = int(frame[7]), int(frame[9])
        assert frame[0] == 7
        whole = width + 2 * guards + samples * (2 + len(payload["quantities"]))
        assert len(frame) == whole + 6 * len(pins)  # with the forces in connections
        values = frame[width : width + 2 * guards : 2]
        if cart.session.modes[int(frame[3])] == "rolling":
            assert values.min() > -1e-6  # a guard below zero would have fired
            guarded += 1
        times.append(frame[2])
        if suffices(frame):
            break
    assert times == sorted(times)
    ticks = cart.session.samples(0)[0]
    row = ticks.only(np.flatnonzero(ticks.t == times[-1])[:1])
    assert pins == ["B_C", "rear_axle", "front_wheel"]
    for name, shown in zip(pins, frame[whole:].reshape(3, 6), strict=True):
        pin = row.pins[name]
        assert shown == pytest.approx([*pin.at[0, :2], *pin.force[0, :2], pin.magnitude[0], 0.0], rel=1e-9, abs=1e-12)
    words = {entry["cause"]: entry["words"] for entry in cart.event_log.entries}
    assert words["caster_axis sticks (slip velocity zero)"] == "caster grips its axis"
    assert "caster slips on its axis" in {item["words"] for guards in cart.encoder.guards() for item in guards}


def test_a_person_lets_two_bodies_touch(view):
    """By a click on each; a body without shapes, and one with itself, have no contact to impose."""
    scene = view({**DISC_ON_BLOCK, "imposable": 1})
    assert scene.payload()["imposable"] == 1
    until = time.monotonic() + 60.0
    while scene.frame() is None:
        assert time.monotonic() < until
    owners = [shape.owner for shape in scene.encoder.picture.scene.shapes]
    ball, box = ((owners.index(name), 0.0, 0.0) for name in ("ball", "box"))
    with pytest.raises(fsm_dyn.InputError, match="no contact between box and box to impose"):
        scene.constrain("contact", [box, box])
    scene.constrain("contact", [ball, box])
    answers = []
    while not answers:
        assert time.monotonic() < until
        answers = [item for item in scene.session.events() if item["event"] in ("constraint", "command_rejected")]
        time.sleep(0.01)
    number = answers[0].get("number")
    assert number == 2 or "overlap" in answers[0]["reason"]  # on a busy machine the ball has fallen into the box


def test_a_mode_is_read_in_a_chart_that_is_good_there(view):
    """Tumbled onto its side, the box asks for other independent speeds than it stood up with."""
    box = view("box_on_table")
    at_rest = [frame for frame in follow(box, 3.5) if box.evaluator.automaton.modes[int(frame[3])].name == "lying"]
    assert at_rest, box.event_log.visits
    guards = int(at_rest[-1][9])
    payload = box.payload()
    picture = payload["picture"]
    start = HEAD + 6 * len(picture["shapes"]) + 2 * picture["anchors"] + 5 + 9 * len(payload["forces"])
    values = at_rest[-1][start : start + 2 * guards : 2]
    assert np.abs(values).max() < 100.0
    assert {item["event"] for item in payload["guards"][int(at_rest[-1][8])]} >= {"c2 opens", "c3 opens", "c1 closes"}


@pytest.mark.parametrize("name", ["shopping_cart", "piano_action"])
def test_modes_read_online_say_what_their_own_programs_say(name):
    """Two routes to the same numbers: the terms recombined at run time, and the programs derived for the mode."""
    graph, _ = coupled_for_page(fsm_dyn.compile(name), {})
    stepper = LiveStepper(graph, 3)
    evaluator = RowEvaluator(graph, columns_of(stepper))
    x, c = stepper.loop.state.x, stepper.loop.state.c
    for mode in graph.automaton.modes[:4]:
        own = compile_programs([mode.programs.full])[0].outputs(0.0, x, c)
        reader, found = evaluator.full(mode.states, x, c)
        assert reader.mode.guards == mode.guards
        assert found["guards"] == pytest.approx(own["guards"], rel=1e-9, abs=1e-12)
        assert found["multipliers"] == pytest.approx(own["multipliers"], rel=1e-9, abs=1e-12)
        assert evaluator.number(mode.states) == graph.automaton.find(mode.states)


def test_a_second_run_takes_the_next_free_name(view, tmp_path):
    path = tmp_path / "run.mcap"
    assert view("bouncing_ball", record=path).recording == path
    assert view("bouncing_ball", record=path).recording == tmp_path / "run-2.mcap"
