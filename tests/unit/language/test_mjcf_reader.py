"""Models of MuJoCo as model files: MuJoCo's mass matrices, and its names for what it refuses."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.language import loader
from fsm_dyn.language.urdf import model_from_mjcf

#: Angles in degrees, defaults, turned bodies, anchors off the origin, two joints in a body, tilted axes and inertias.
CRANE = """
<mujoco model="crane">
  <option gravity="0 0 -9.8"/>
  <default><joint damping="0.3"/><geom type="box" size=".1 .05 .02"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1"/>
    <body name="mast" pos="0.1 0 0.4" euler="10 20 30">
      <joint name="swing" axis="0 0 1" pos="0.02 -0.01 0.1" range="-90 120" limited="true"/>
      <joint name="lift" type="slide" axis="0 1 2" stiffness="40" springref="0.05" damping="0"/>
      <geom name="trunk" mass="2" pos="0.05 0 0.2" euler="0 0 40"/>
      <body name="boom" pos="0 0.3 0.1" quat="0.9 0.1 0.3 -0.2">
        <joint name="luff" axis="1 1 0" frictionloss="0.1"/>
        <geom name="hull" mass="0.7"/>
        <body name="hook" pos="0.4 0 0"><geom name="ball" type="sphere" size="0.03" mass="0.4"/></body>
        <geom type="capsule" size="0.01 0.2" mass="0.1"/>
      </body>
    </body>
  </worldbody>
  <equality><joint name="tie" joint1="luff" joint2="swing" polycoef="0.1 0.5 0 0 0" active="true"/></equality>
  <actuator><motor joint="swing"/></actuator>
</mujoco>
"""


@pytest.fixture
def crane(tmp_path):
    path = tmp_path / "crane.xml"
    path.write_text(CRANE)
    return path


def test_without_mujoco_the_extra_is_named(crane, monkeypatch):
    def refuse(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr("importlib.import_module", refuse)
    with pytest.raises(InputError, match=r"which is not installed(.|\n)*fsm-dyn\[mujoco\]"):
        model_from_mjcf(crane)


def test_a_file_that_is_too_large_is_not_given_to_mujoco(tmp_path, monkeypatch):
    monkeypatch.setattr("fsm_dyn.language.urdf.MAX_BYTES", 100)
    (tmp_path / "large.xml").write_text("<mujoco/>" + 100 * " ")
    with pytest.raises(InputError, match="a model of MuJoCo"):
        model_from_mjcf(tmp_path / "large.xml")


def compared(path, text, seeds=3):
    """Compare mass matrices and gravity at random places."""
    import mujoco

    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    graph = fsm_dyn.compile(loader.load(text=text))
    layout = graph.automaton.terms.layout
    context = np.zeros(layout.n_c)
    context[layout.p_slice] = graph.parameters
    names = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, k) for k in range(model.njnt)]
    order, n, rng = [layout.q.index(name) for name in names], len(names), np.random.default_rng(2)
    for _ in range(seeds):
        q = rng.uniform(-1.0, 1.0, n)
        data.qpos[:] = model.qpos0 + q[order]
        mujoco.mj_forward(model, data)
        terms = graph.automaton.terms.evaluate(0.0, np.concatenate([q, np.zeros(n)]), context)
        found = np.zeros((n, n))
        mujoco.mj_fullM(model, data, found)
        np.testing.assert_allclose(terms["M"][:n, :n][np.ix_(order, order)], found, atol=1e-12)
        # at rest only gravity and springs act
        np.testing.assert_allclose(terms["f"][:n][order], data.qfrc_passive - data.qfrc_bias, atol=1e-9)
    return graph


@pytest.mark.long
def test_a_model_of_mujoco(crane):
    text, dropped = model_from_mjcf(crane)
    assert dropped == {"geom capsule": 1, "actuator": 1}
    graph = compared(crane, text)
    mechanism = graph.automaton.mechanism
    assert list(mechanism.coordinates) == ["swing", "lift", "luff"]
    assert {shape.kind for shape in mechanism.shapes.values()} == {"plane", "box", "sphere"}
    assert {"swing_stop_lower", "swing_stop_upper", "luff_friction"} <= set(mechanism.contacts)
    assert "tie" in mechanism.constraints


@pytest.mark.long
@pytest.mark.parametrize("name", ["double_pendulum_with_stop", "spatial_robot", "planetary_gear", "chain"])
def test_what_is_exported_is_read_again(name, tmp_path):
    path = fsm_dyn.export(fsm_dyn.compile(name), tmp_path / "model.xml", "mjcf")
    text, _ = model_from_mjcf(path)
    compared(path, text, 2)


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<mujoco><worldbody>", "cannot be read as MJCF: .*"),
        ("<html/>", "cannot be read as MJCF"),
        ("<mujoco/>", "has 0 bodies"),
        ('<mujoco><include file="bad.xml"/></mujoco>', "cannot be read as MJCF"),
        ("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>", "mass and inertia"),
        ('<mujoco><worldbody><body pos="1 x 3"/></worldbody></mujoco>', "cannot be read as MJCF"),
    ],
)
def test_files_that_mujoco_refuses(tmp_path, text, words):
    (tmp_path / "bad.xml").write_text(text)
    with pytest.raises(InputError, match=words):
        model_from_mjcf(tmp_path / "bad.xml")
