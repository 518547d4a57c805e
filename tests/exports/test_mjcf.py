"""MJCF of mechanisms: MuJoCo has the mass matrices, accelerations and motions of the models."""

from pathlib import Path
from xml.etree.ElementTree import fromstring

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.language import loader

MODELS = sorted(path.stem for path in (Path(__file__).parents[2] / "yaml_models").glob("*.yaml"))
#: Models that no tree of hinges and slides moves, with what the refusal names.
REFUSED = {
    "ball_in_corner": "no frame above", "compass_gait": "no frame above", "seven_body_mechanism": "no frame above",
    "newtons_cradle": "not linear", "rattleback": "angles between frames",
}  # fmt: skip

#: A ball joint, a hinge on a turned axis with spring and damper, a slide on it, a spring between points.
ARM = """
fsm_dyn: 1
name: arm
parameters: {k: 3 N/m, tilt: 0.4 rad}
coordinates: {q: rad, s: m}
frames:
  T: {parent: N, rotate: {x: tilt}}
  B: {parent: T, rotate: {z: q + 0.2 rad}}
points:
  P: {from: O, at: 0.1 m*N.z + 0.3 m*B.x}
  Q: {from: P, at: -s*B.y}
  far: {from: O, at: 0.9 m*N.x - 0.2 m*N.z}
bodies:
  arm:
    frame: B
    center: P
    mass: 1.2 kg
    inertia: {xx: 0.02 kg*m^2, yy: 0.03 kg*m^2, zz: 0.04 kg*m^2, xz: 0.01 kg*m^2}
  bob: {frame: B, center: Q, mass: 0.7 kg, inertia: {xx: 0.01 kg*m^2, yy: 0.01 kg*m^2, zz: 0.01 kg*m^2}}
contacts: {stop: {joint_stop: {coordinate: s, upper: 0.5 m}}}
loads:
  - {gravity: -9.81 m/s^2*N.z}
  - {spring: {coordinate: q, stiffness: 2 N*m, free: 0.1 rad, damping: 0.05 N*m*s}}
  - {spring: {between: [Q, far], stiffness: k, free: 0.3 m}}
  - {damper: {coordinate: s, damping: 0.4 N*s/m}}
initial: {q: 0.3 rad, s: 0.1 m, q_dot: 1 rad/s}
"""


def document(model, folder, **options):
    graph = fsm_dyn.compile(model if isinstance(model, str) else loader.load(text=model[0]))
    return graph, fsm_dyn.export(graph, folder / "model.xml", "mjcf", **options).read_text()


def test_the_tree_of_an_arm(tmp_path):
    _, text = document([ARM], tmp_path)
    root = fromstring(text)
    joints = {joint.get("name"): joint.attrib for joint in root.iter("joint")}
    assert joints["q"]["axis"] == "0.0 0.0 1.0"
    assert (joints["q"]["stiffness"], joints["q"]["springref"], joints["q"]["damping"]) == ("2.0", "0.1", "0.05")
    assert joints["s"]["axis"] == "0.0 -1.0 0.0"
    assert joints["s"]["range"].split()[1] == "0.5"
    assert [body.get("name") for body in root.iter("body") if body.find("inertial") is not None] == ["arm", "bob"]
    assert root.find("keyframe/key").get("qpos") == "0.3 0.1"
    assert root.find("tendon/spatial").get("stiffness") == "3.0"
    assert "the stop stop exactly" in text
    _, stiffer = document([ARM], tmp_path, parameters={"k": 8.0})
    assert fromstring(stiffer).find("tendon/spatial").get("stiffness") == "8.0"


@pytest.mark.parametrize("name", REFUSED)
def test_motions_without_joints_are_refused(name, tmp_path):
    with pytest.raises(InputError, match=REFUSED[name]):
        document(name, tmp_path)
    assert not (tmp_path / "model.xml").exists()


def test_what_mujoco_cannot_say_is_listed(tmp_path):
    _, text = document("latch", tmp_path)
    told = text[text.index("<!--") : text.index("-->")]
    for line in ("the input push", "the contact ramp (gap)", "the contact catch (lock)"):
        assert f"* {line}" in told
    with pytest.raises(InputError, match="no outputs to choose"):
        document("latch", tmp_path, outputs="all")
    with pytest.raises(InputError, match="has no spare modes"):
        document("latch", tmp_path, spare_modes=3)


def places(graph, mujoco, model):
    """Return the numbers of the model's coordinates among the positions of MuJoCo; None if it has others."""
    names = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, k) for k in range(model.njnt)]
    layout = graph.automaton.terms.layout
    return [layout.q.index(name) for name in names] if set(names) == set(layout.q) else None


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in MODELS if name not in REFUSED])
def test_mujoco_has_the_mass_matrix(name, tmp_path):
    """At random places, for coordinates that are joints of MuJoCo, and speeds that are their rates."""
    import mujoco

    graph, text = document(name, tmp_path)
    model = mujoco.MjModel.from_xml_string(text)
    order, layout = places(graph, mujoco, model), graph.automaton.terms.layout
    if order is None or len(layout.u) != len(layout.q):
        assert name in {"ball_chain", "billiard_ball", "chaplygin_sleigh", "escapement_anchor", "escapement_deadbeat",
                        "shopping_cart", "spatial_two_body"}  # fmt: skip
        return
    context = fsm_dyn.simulate(graph, until=0.0).rows.context[0]
    data, rng, n = mujoco.MjData(model), np.random.default_rng(1), len(layout.q)
    for _ in range(3):
        q = rng.uniform(-1.0, 1.0, n)
        terms = graph.automaton.terms.evaluate(0.0, np.concatenate([q, np.zeros(n)]), context)
        rates = np.linalg.inv(terms["W"][:n, :n])
        expected = (rates.T @ terms["M"][:n, :n] @ rates)[np.ix_(order, order)]
        data.qpos[:] = q[order]
        mujoco.mj_forward(model, data)
        found = np.zeros((n, n))
        mujoco.mj_fullM(model, data, found)
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-9 * np.abs(expected).max())


@pytest.mark.long
def test_mujoco_moves_the_arm_as_we_do(tmp_path):
    import mujoco

    graph, text = document([ARM], tmp_path)
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.timestep, model.opt.integrator = 1e-4, mujoco.mjtIntegrator.mjINT_RK4
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    data.qvel[:] = [1.0, 0.0]
    run = fsm_dyn.simulate(graph, until=0.4)
    for _ in range(4000):
        mujoco.mj_step(model, data)
    np.testing.assert_allclose(data.qpos, [run["q"][-1], run["s"][-1]], rtol=1e-7)
    np.testing.assert_allclose(data.qvel, [run["q_dot"][-1], run["s_dot"][-1]], rtol=1e-6)


@pytest.mark.long
def test_loops_are_closed_at_the_start(tmp_path):
    import mujoco

    _, text = document("four_bar", tmp_path)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    assert data.ne == 3
    np.testing.assert_allclose(data.efc_pos[:3], 0.0, atol=1e-9)
