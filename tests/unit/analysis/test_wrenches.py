"""Forces in joints against Newton's and Euler's laws of single bodies, and against the multipliers of the run."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.run.pin_loads import wrench

LIMIT = 1e-8  # relative: rows of a run hold to about 1e-10


@pytest.fixture(scope="module")
def slider_crank():
    graph = fsm_dyn.compile("slider_crank")
    return graph, fsm_dyn.simulate(graph, 0.3, rtol=1e-10, atol=1e-12)


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=LIMIT * max(1.0, float(np.abs(wanted).max())))


def accelerations(graph, run):
    (mode,) = graph.modes.values()
    push = run.inputs["pressure"]
    return np.array([mode.derivatives(t, q, u, [w])[1] for t, q, u, w in zip(run.t, run.q, run.u, push, strict=True)])


def test_joint_in_a_loop_has_the_force_of_its_multipliers(slider_crank):
    graph, run = slider_crank
    found = wrench(graph, run, "small_end")
    close(found.force[:, 0], run.multipliers["small_end_x"][:, 0])
    close(found.force[:, 1], run.multipliers["small_end_y"][:, 0])
    other = wrench(graph, run, "small_end", on="connecting_rod", about="B")
    close(other.force, -found.force)
    close(other.torque, np.zeros_like(other.torque))


def test_the_guide_bears_what_the_rod_presses_and_the_weight(slider_crank):
    """Saha and Angeles (38)-(39) for the slider: nothing moves across the guide, and the slider does not turn."""
    graph, run = slider_crank
    p = dict(zip(run.model.layout.p, run.model.parameters, strict=True))
    guide, rod = wrench(graph, run, "guide"), wrench(graph, run, "small_end")
    close(guide.force[:, 0], np.zeros(len(run)))
    close(guide.force[:, 1], p["m3"] * p["g"] - rod.force[:, 1])
    close(guide.torque[:, 2], np.zeros(len(run)))  # about the pin


def test_the_shaft_bears_all_that_is_accelerated(slider_crank):
    """Newton for the whole: shaft + guide + weight + pressure = sum of m a, the accelerations from the closed form."""
    graph, run = slider_crank
    p = dict(zip(run.model.layout.p, run.model.parameters, strict=True))
    a = accelerations(graph, run)
    psi, w, al = run.q[:, 0], run.u[:, 0], a[:, 0]
    th, v, be = run.q[:, 0] + run.q[:, 1], run.u[:, 0] + run.u[:, 1], a[:, 0] + a[:, 1]

    def circle(r, angle, rate, onward):
        return r * np.stack([-np.sin(angle) * onward - np.cos(angle) * rate**2,
                             np.cos(angle) * onward - np.sin(angle) * rate**2], axis=1)  # fmt: skip

    crank = circle(p["a1"], psi, w, al)
    change = p["m1"] * crank / 2 + p["m2"] * (crank + circle(p["a2"] / 3, th, v, be))
    change[:, 0] += p["m3"] * a[:, 2]
    outside = np.stack([run.inputs["pressure"], -np.full(len(run), p["g"] * (p["m1"] + p["m2"] + p["m3"]))], axis=1)
    shaft, guide = wrench(graph, run, "crank_pin"), wrench(graph, run, "guide")
    close(shaft.force[:, :2] + guide.force[:, :2] + outside, change)


def test_components_in_the_axes_of_a_body_and_about_another_point(slider_crank):
    graph, run = slider_crank
    plain = wrench(graph, run, "big_end")
    turned = wrench(graph, run, "big_end", frame="crank", about="O")
    c, s = np.cos(run.q[:, 0]), np.sin(run.q[:, 0])
    close(turned.force[:, 0], c * plain.force[:, 0] + s * plain.force[:, 1])
    close(turned.force[:, 1], -s * plain.force[:, 0] + c * plain.force[:, 1])
    arm = 0.05 * np.stack([c, s], axis=1)
    close(turned.torque[:, 2], arm[:, 0] * plain.force[:, 1] - arm[:, 1] * plain.force[:, 0])


def test_robot_in_space():
    """Newton along the freely sliding column: the load of the arm's guide lifts arm and hand."""
    graph = fsm_dyn.compile("spatial_robot")
    run = fsm_dyn.simulate(graph, 0.2, rtol=1e-10, atol=1e-12)
    p_wrist = wrench(graph, run, "wrist", about="C3")
    reach = wrench(graph, run, "reach")
    column = wrench(graph, run, "column")
    (mode,) = graph.modes.values()
    names = run.model.layout.u
    lift = []
    for k in range(len(run)):
        w = {name: float(run.inputs[name][k]) for name in run.model.layout.w}
        lift.append(mode.derivatives(run.t[k], run.q[k], run.u[k], w)[1][names.index("column_slide_dot")])
    # along N.z the column slides freely; body 2's centre moves up with it, so the reach bears body 2 and the wrist
    close(column.force[:, 2], np.zeros(len(run)))
    close(reach.force[:, 2] - p_wrist.force[:, 2], 150.0 * (9.81 + np.array(lift)))


def test_a_contact_acts_on_the_body_that_it_touches():
    """A box slides on its corner: the floor's force is m (a - g), and its moment about the corner is none."""
    box = {
        "fsm_dyn": 1,
        "parameters": {"m": 4.0, "g": 9.81},
        "joints": {"free": {"planar": {"child": "B", "at": "O", "axis": "N.z"}}},
        "points": {"K": {"from": "B_origin", "at": "0.1*B.x - 0.2*B.y"}},
        "bodies": {"box": {"frame": "B", "center": "B_origin", "mass": "m", "inertia": {"zz": 0.2}}},
        "contacts": {
            "corner": {
                "gap": "dot(pos(K), N.y)", "slip": "dot(vel(K), N.x)", "friction": {"static": 0.3, "kinetic": 0.2},
            }
        },
        "loads": [{"gravity": "-g*N.y"}],
        "modes": {"skid": {"corner": "slide"}},
        "initial": {"mode": "skid", "free_turn": 0.2, "free_x_dot": 2.0, "free_turn_dot": 0.0,
                    "guess": {"free_y": 0.2}},
    }  # fmt: skip
    graph = fsm_dyn.compile(box)
    run = fsm_dyn.simulate(graph, 0.1, rtol=1e-10, atol=1e-12)
    found = wrench(graph, run, "corner", on="box", about="K")
    mode = graph.modes["skid"]
    a = np.array([mode.derivatives(t, q, u)[1] for t, q, u in zip(run.t, run.q, run.u, strict=True)])
    close(found.force[:, 0], 4.0 * a[:, 0])
    close(found.force[:, 1], 4.0 * (a[:, 1] + 9.81))
    close(found.force[:, 0], -0.2 * found.force[:, 1])
    close(found.torque, np.zeros_like(found.torque))


def test_what_is_not_there_is_refused(slider_crank):
    graph, run = slider_crank
    with pytest.raises(fsm_dyn.InputError, match="no joint or contact 'big'"):
        wrench(graph, run, "big")
    with pytest.raises(fsm_dyn.InputError, match="no body 'rodd'"):
        wrench(graph, run, "big_end", on="rodd")
    with pytest.raises(fsm_dyn.InputError, match="no frame 'W'"):
        wrench(graph, run, "big_end", frame="W")
    with pytest.raises(fsm_dyn.InputError, match="'big_end' does not act on 'slider'"):
        wrench(graph, run, "big_end", on="slider")


def test_a_spring_between_two_bodies_loads_neither_hinge_of_the_first():
    """Newton for the two outer bodies of `planar_three_body`: the hinge q2 carries the force to accelerate both, no
    more.
    """
    graph = fsm_dyn.compile("planar_three_body")
    run = fsm_dyn.simulate(graph, 0.5, rtol=1e-10, atol=1e-12)
    (mode,) = graph.modes.values()
    a = np.array([mode.derivatives(t, q, u)[1] for t, q, u in zip(run.t, run.q, run.u, strict=True)])
    one, two = run.q[:, 0], run.q[:, 0] + run.q[:, 1]
    rates = run.u[:, 0], run.u[:, 0] + run.u[:, 1]
    onward = a[:, 0], a[:, 0] + a[:, 1]
    h, b, c = 0.6 + 0.1j, 0.2 + 0.04j, 0.1 - 0.03j

    def turned(arm, k, slide=0.0, slide_dot=0.0, slide_onward=0.0):
        angle, w, al = (one, two)[k], rates[k], onward[k]
        arm = arm + slide
        return (slide_onward + 2j * w * slide_dot + (1j * al - w**2) * arm) * np.exp(1j * angle)

    force = 2.0 * (turned(h, 0) + turned(b, 1))
    force = force + 1.0 * (turned(h, 0) + turned(c, 1, run.q[:, 2], run.u[:, 2], a[:, 2]))
    found = wrench(graph, run, "q2")
    close(found.force[:, 0], force.real)
    close(found.force[:, 1], force.imag)


def test_a_roller_hangs_on_its_own_pin():
    """Newton for roller and stem of `cam_roller_follower`: mesh, guide, weight and spring accelerate both along y."""
    graph = fsm_dyn.compile("cam_roller_follower")
    run = fsm_dyn.simulate(graph, 0.2, rtol=1e-10, atol=1e-12)
    (mode,) = graph.modes.values()
    a = np.array([mode.derivatives(t, q, u)[1] for t, q, u in zip(run.t, run.q, run.u, strict=True)])
    lift = a[:, list(run.model.layout.u).index("guide_dot")]
    pin, guide = wrench(graph, run, "pin"), wrench(graph, run, "guide")
    spring = -300.0 * (run["guide"] - 0.03)
    close(guide.force[:, 1], spring)  # the spring on its coordinate is the one force along it
    close(-pin.force[:, 1] + spring - 0.4 * 9.81, 0.4 * lift)  # the stem: pin, spring, weight
    touch = wrench(graph, run, "touching", on="wheel")
    mesh = wrench(graph, run, "mesh", on="wheel")
    close(pin.force[:, 1] + touch.force[:, 1] + mesh.force[:, 1] - 0.1 * 9.81, 0.1 * lift)
    close(pin.force[:, 0] + touch.force[:, 0] + mesh.force[:, 0], np.zeros(len(run)))
