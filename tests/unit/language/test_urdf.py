"""Models from robot descriptions: places and kinetic energy against products of homogeneous transforms."""

import numpy as np
import pytest
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.cli.console import app
from fsm_dyn.core.errors import InputError
from fsm_dyn.language import loader
from fsm_dyn.language.urdf import angles_of, model_from_urdf, rotation


def turned(axis, angle):
    """Return a rotation about an axis, by Rodrigues' formula."""
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross


def robot(seed, links=5):
    """Return a random tree as URDF, and a function from joint values to frames (4, 4) by link."""
    random = np.random.default_rng(seed)
    lines, joints, masses = ['<link name="base"/>'], [], {}
    text = lambda values: " ".join(repr(float(v)) for v in values)  # noqa: E731
    for k in range(links):
        parent = "base" if k == 0 else f"link-{random.integers(k)}"
        kind = ("revolute", "prismatic", "continuous", "fixed")[0 if k == 0 else random.integers(4)]
        axis = np.eye(3)[random.integers(3)] * random.choice([-1, 1]) if k % 2 else random.normal(size=3)
        xyz, rpy = random.normal(size=3), random.uniform(-3.0, 3.0, 3) * (k % 3 > 0)
        com, turn = random.normal(size=3), random.uniform(-3.0, 3.0, 3)
        half = random.normal(size=(3, 3))
        tensor, mass = half @ half.T + np.eye(3), float(random.uniform(0.5, 2.0))
        masses[f"link-{k}"] = (mass, com, rotation(turn) @ tensor @ rotation(turn).T)
        joints.append((f"joint {k}", kind, parent, f"link-{k}", xyz, rpy, axis / np.linalg.norm(axis)))
        six = " ".join(
            f'i{a}{b}="{float(tensor["xyz".index(a), "xyz".index(b)])!r}"'
            for a, b in ("xx", "yy", "zz", "xy", "xz", "yz")
        )
        lines.append(
            f'<link name="link-{k}"><inertial><origin xyz="{text(com)}" rpy="{text(turn)}"/><mass value="{mass!r}"/>'
            f"<inertia {six}/></inertial></link>"
        )
        lines.append(
            f'<joint name="joint {k}" type="{kind}"><origin xyz="{text(xyz)}" rpy="{text(rpy)}"/>'
            f'<parent link="{parent}"/>'
            f'<child link="link-{k}"/><axis xyz="{text(axis)}"/></joint>'
        )

    def frames(values):
        found = {"base": np.eye(4)}
        for name, kind, parent, child, xyz, rpy, axis in joints:
            step, own = np.eye(4), np.eye(4)
            step[:3, :3], step[:3, 3] = rotation(rpy), xyz
            value = values.get(name, 0.0)
            if kind == "prismatic":
                own[:3, 3] = value * axis
            elif kind != "fixed":
                own[:3, :3] = turned(axis, value)
            found[child] = found[parent] @ step @ own
        return found

    moving = [name for name, kind, *_ in joints if kind != "fixed"]
    return f'<robot name="tree">{"".join(lines)}</robot>', frames, moving, masses


@pytest.mark.parametrize("seed", range(6))
def test_places_and_kinetic_energy_of_random_trees(tmp_path, seed):
    text, frames, moving, masses = robot(seed)
    (tmp_path / "tree.urdf").write_text(text, encoding="utf-8")
    written, dropped = model_from_urdf(tmp_path / "tree.urdf")
    assert not dropped
    mechanism = loader.load(text=written)
    random = np.random.default_rng(100 + seed)
    values = {name: float(random.uniform(-1.5, 1.5)) for name in moving}
    rates = {name: float(random.normal()) for name in moving}
    plain = {name: name.replace(" ", "_") for name in moving}
    start = "".join(f", {plain[n]}: {v!r}, {plain[n]}_dot: {rates[n]!r}" for n, v in values.items())
    centers = {body.name.removesuffix("_body"): body.center for body in mechanism.bodies.values()}
    outputs = "".join(
        f'  {name}_{axis}: "dot(pos({center}), N.{axis})"\n' for name, center in centers.items() for axis in "xyz"
    )
    units = re_units(start, mechanism)
    run = fsm_dyn.simulate(
        fsm_dyn.compile(loader.load(text=f"{written}initial: {{{units[2:]}}}\noutputs:\n{outputs}")), 1e-6
    )
    at = frames(values)
    for name, (_, com, _) in masses.items():
        place = (at[name] @ [*com, 1.0])[:3]
        found = [run[f"{name.replace('-', '_')}_{axis}"][0] for axis in "xyz"]
        np.testing.assert_allclose(found, place, rtol=0, atol=1e-12)
    h, energy = 1e-5, 0.0
    ahead, behind = (frames({n: v + s * h * rates[n] for n, v in values.items()}) for s in (1.0, -1.0))
    for name, (mass, com, tensor) in masses.items():
        velocity = ((ahead[name] - behind[name]) @ [*com, 1.0])[:3] / (2.0 * h)
        spin = at[name][:3, :3].T @ (ahead[name] - behind[name])[:3, :3] / (2.0 * h)
        omega = np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
        energy += 0.5 * mass * velocity @ velocity + 0.5 * omega @ tensor @ omega
    assert run.energy.kinetic[0] == pytest.approx(energy, rel=1e-7)


def re_units(start, mechanism):
    """Return initial values with the units of the coordinates."""
    found = ""
    for part in filter(None, start.split(", ")):
        name, _, value = part.partition(": ")
        unit = mechanism.coordinates[name.removesuffix("_dot")].unit
        found += f", {name}: {value} {unit}{'/s' if name.endswith('_dot') else ''}"
    return found


def test_angles_are_those_of_the_rotation():
    random = np.random.default_rng(2)
    for angles in (*random.uniform(-3.0, 3.0, (50, 3)), [0.3, np.pi / 2, 0.4], [0.3, -np.pi / 2, 0.4]):
        np.testing.assert_allclose(
            rotation(angles_of(rotation(np.array(angles)))), rotation(np.array(angles)), atol=1e-12
        )


GRIPPER = """<robot name="2 jaws">
<link name="palm"><inertial><mass value="3"/></inertial><visual/></link>
<link name="left jaw"><inertial><mass value="0.2"/></inertial>
  <collision><origin xyz="0 0 0.05"/><geometry><sphere radius="0.01"/></geometry></collision>
  <collision><origin rpy="0 0 0.3"/><geometry><box size="0.1 0.02 0.02"/></geometry></collision>
  <collision><geometry><mesh filename="jaw.stl"/></geometry></collision></link>
<link name="right.jaw"><inertial><mass value="0.2"/></inertial></link>
<joint name="slide" type="prismatic"><parent link="palm"/><child link="left jaw"/><axis xyz="1 0 0"/>
  <limit lower="0" upper="0.04" effort="20" velocity="1"/><dynamics damping="3" friction="0.5"/></joint>
<joint name="follow" type="prismatic"><parent link="palm"/><child link="right.jaw"/><axis xyz="-1 0 0"/>
  <mimic joint="slide" multiplier="1"/></joint></robot>"""


def test_limits_friction_damping_and_mimicry(tmp_path):
    path = tmp_path / "jaws.urdf"
    path.write_text(GRIPPER, encoding="utf-8")
    result = CliRunner().invoke(app, ["new", "jaws", "--from", str(path), "--dir", str(tmp_path)])
    assert result.exit_code == 0, result.output
    for word in ("1 collision mesh", "1 visual", "1 inertia of the root", "1 limit effort", "1 limit velocity"):
        assert f"not taken over: {word}" in result.stderr
    text = (tmp_path / "jaws.yaml").read_text(encoding="utf-8")
    assert "name: jaws\n" in text
    run = fsm_dyn.simulate(
        fsm_dyn.compile(loader.load(text=text + "initial: {slide: 0.01 m, slide_dot: 0.3 m/s}\n")), 3.0
    )
    np.testing.assert_allclose(run["slide"], run["follow"], atol=1e-12)
    # 0.4 kg v' = -3 v - 0.5 N until it rests
    v, c, m, force = 0.3, 3.0, 0.4, 0.5
    rests = m / c * np.log(1.0 + c * v / force)
    assert run.transitions[0].time == pytest.approx(rests, rel=1e-8)
    assert {shape.kind for shape in loader.load(text=text).shapes.values()} == {"sphere", "box"}


FLYING = """<robot name="flying"><link name="world"/><link name="drone"><inertial><origin xyz="0.1 0 0.02"/>
<mass value="2"/><inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0.001"/></inertial></link>
<link name="puck"><inertial><mass value="0.5"/><inertia ixx="0.01" iyy="0.01" izz="0.02"/></inertial></link>
<joint name="flight" type="floating"><origin xyz="0 0 1" rpy="0.3 0 0"/><parent link="world"/><child link="drone"/>
</joint>
<joint name="table" type="planar"><parent link="world"/><child link="puck"/><axis xyz="0 0 1"/></joint></robot>"""


def test_a_floating_link_falls_and_turns_freely(tmp_path):
    (tmp_path / "flying.urdf").write_text(FLYING, encoding="utf-8")
    text, dropped = model_from_urdf(tmp_path / "flying.urdf")
    assert not dropped
    mechanism = loader.load(text=text + (
        "initial: {flight_wx: 3 rad/s, flight_wy: 1 rad/s, table_x_dot: 1 m/s, table_turn_dot: 2 rad/s}\n"
        'outputs: {height: "dot(pos(drone_center), N.z)"}\n'
    ))  # fmt: skip
    run = fsm_dyn.simulate(fsm_dyn.compile(mechanism), 0.5, rtol=1e-11, atol=1e-13)
    t, height = np.asarray(run.t), run["height"]
    rise = np.polyfit(t, height, 2)
    np.testing.assert_allclose(rise[0], -9.81 / 2, rtol=1e-7)
    np.testing.assert_allclose(height, np.polyval(rise, t), atol=1e-8)
    assert run["table_x"][-1] == pytest.approx(0.5)
    assert run["table_turn"][-1] == pytest.approx(1.0)
    assert run["energy.kinetic"][-1] + run["energy.potential"][-1] == pytest.approx(
        run["energy.kinetic"][0] + run["energy.potential"][0], abs=1e-8
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<robot><link name='a'/><link name='b'/></robot>", "2 links without a parent"),
        ("<robot/>", "0 links"),
        (GRIPPER.replace('<child link="left jaw"/>', '<child link="z"/>'), "names the link 'z', which does not exist"),
        (GRIPPER.replace('type="prismatic"', 'type="screw"'), "joint 'slide' is screw"),
        (GRIPPER.replace("<axis xyz=\"1 0 0\"/>", "<axis xyz=\"1 0\"/>"), "3 numbers are wanted"),
        (GRIPPER.replace("<axis xyz=\"1 0 0\"/>", "<axis xyz=\"0 0 0\"/>"), "axis of joint 'slide' is zero"),
        (GRIPPER.replace('value="0.2"', 'value="nan"'), "1 numbers are wanted"),
        (GRIPPER[:200], "is no XML"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><robot/>", "defines entities"),
    ],
)  # fmt: skip
def test_descriptions_that_cannot_be_read_are_refused(tmp_path, text, words):
    (tmp_path / "bad.urdf").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        model_from_urdf(tmp_path / "bad.urdf")


@pytest.mark.parametrize(
    ("inertia", "rpy"),
    [('ixx="0" iyy="1" izz="1"', "0.1 0.7 0.3"), ('ixx="-5e-20" iyy="0" izz="0"', "0 0 0")],
)
def test_moments_that_are_zero_up_to_rounding(tmp_path, inertia, rpy):
    """A thin rod that is turned, and what other programs write for a particle."""
    inertial = f'<inertial><mass value="1"/><origin rpy="{rpy}"/><inertia {inertia}/></inertial>'
    links = f'<link name="a"/><link name="b">{inertial}</link>'
    joint = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint>'
    (tmp_path / "rod.urdf").write_text(f'<robot name="rod">{links}{joint}</robot>')
    written, _ = model_from_urdf(tmp_path / "rod.urdf")
    assert loader.load(text=written).bodies["b_body"].name == "b_body"
