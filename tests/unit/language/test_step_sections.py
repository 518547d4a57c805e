"""Sections of solids in STEP files, against the solids of Open CASCADE they are written from."""

import math

import pytest

import fsm_dyn
from fsm_dyn.core.errors import Location, ModelError
from fsm_dyn.language.drawings import plane_of, read_outline
from fsm_dyn.language.values import parameter_values

WHERE = Location("model.yaml", 1, 1)


@pytest.mark.parametrize(
    ("text", "plane"), [("z = 2.5 mm", (2, 2.5e-3)), ("x=-1e-2m", (0, -0.01)), ("y = 3 cm", (1, 0.03))]
)
def test_a_plane_is_an_axis_and_a_length(text, plane):
    assert plane_of(text) == (plane[0], pytest.approx(plane[1]))


@pytest.mark.parametrize("text", ["z", "z = 3", "w = 1 mm", "z = 1 kg", "z = 1 mm + 2 mm", ""])
def test_no_plane_is_refused_by_name(text):
    with pytest.raises(ValueError, match="an axis and a length"):
        plane_of(text)


def test_planes_and_layers_belong_to_their_formats(tmp_path):
    where = Location(str(tmp_path / "model.yaml"), 1, 1)
    for name, layer, plane in (("a.dxf", "", "z = 1 mm"), ("a.step", "", ""), ("a.step", "outline", "z = 1 mm")):
        with pytest.raises(ModelError, match="a plane cuts a solid, and drawings have layers"):
            read_outline(name, layer, "", 0.0, where, plane)


# -- With Open CASCADE ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def occ():
    return pytest.importorskip("OCP.STEPControl", reason="the extra `step` is not installed")


def solid(*shapes, cut=()):
    """Join shapes and cut others from them."""
    from OCP.BRepAlgoAPI import BRepAlgoAPI_Cut, BRepAlgoAPI_Fuse

    whole = shapes[0]
    for shape in shapes[1:]:
        whole = BRepAlgoAPI_Fuse(whole, shape).Shape()
    for shape in cut:
        whole = BRepAlgoAPI_Cut(whole, shape).Shape()
    return whole


def box(x, y, z, a, b, c):
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeBox
    from OCP.gp import gp_Pnt

    return BRepPrimAPI_MakeBox(gp_Pnt(x, y, z), a, b, c).Shape()


def round_bar(x, y, z, radius, height, along=(0, 0, 1)):
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeCylinder
    from OCP.gp import gp_Ax2, gp_Dir, gp_Pnt

    return BRepPrimAPI_MakeCylinder(gp_Ax2(gp_Pnt(x, y, z), gp_Dir(*along)), radius, height).Shape()


def write(path, *shapes):
    from OCP.STEPControl import STEPControl_AsIs, STEPControl_Writer

    writer = STEPControl_Writer()
    for shape in shapes:
        writer.Transfer(shape, STEPControl_AsIs)
    writer.Write(str(path))


def pawl():
    """A plate of 5 mm with a round end and a bore, mm."""
    return solid(box(0, 0, 0, 40, 20, 5), round_bar(40, 10, 0, 10, 5), cut=[round_bar(10, 10, -1, 4, 10)])


def properties(shape):
    from OCP.BRepGProp import BRepGProp
    from OCP.GProp import GProp_GProps

    found = GProp_GProps()
    volume = getattr(BRepGProp, "VolumeProperties_s", None) or BRepGProp.VolumeProperties
    volume(shape, found)
    return found


@pytest.mark.long
def test_a_plate_has_the_mass_centre_and_inertia_of_its_solid(occ, tmp_path):
    write(tmp_path / "pawl.step", pawl())
    model = """
fsm_dyn: 1
parameters: {g: 9.81 m/s^2}
coordinates: {q: rad}
frames: {B: {parent: N, rotate: {z: q}}}
shapes: {pawl: {polygon: {frame: B, from: O, file: pawl.step, plane: z = 2.5 mm, tolerance: 10 um}}}
bodies: {lever: {outline: pawl, thickness: 5 mm, density: 7850 kg/m^3}}
loads: [{gravity: -g*N.y}]
"""
    (tmp_path / "lever.yaml").write_text(model, encoding="utf-8")
    mechanism = fsm_dyn.load(tmp_path / "lever.yaml")
    values = parameter_values(mechanism)
    theirs = properties(pawl())
    volume, centre = theirs.Mass(), theirs.CentreOfMass().Coord()
    inertia = theirs.MatrixOfInertia()  # about the centre, mm^5
    assert values["pawl_area"] * 5e-3 == pytest.approx(volume * 1e-9, rel=1e-9)
    assert [values["pawl_x"], values["pawl_y"]] == pytest.approx([c * 1e-3 for c in centre[:2]], rel=1e-9)
    assert (values["pawl_xx"] + values["pawl_yy"]) * 5e-3 == pytest.approx(inertia.Value(3, 3) * 1e-15, rel=1e-9)
    high = values["pawl_area"] * 5e-3**3 / 12
    assert values["pawl_xx"] * 5e-3 + high == pytest.approx(inertia.Value(1, 1) * 1e-15, rel=1e-9)
    graph = fsm_dyn.compile(mechanism, cache=False)
    run = fsm_dyn.simulate(graph, 0.01)
    arm = math.hypot(*centre[:2]) * 1e-3
    swing = volume * 1e-9 * centre[0] * 1e-3 * 9.81 / (inertia.Value(3, 3) * 1e-15 + volume * 1e-9 * arm**2)
    assert run.u[1][0] / run.t[1] == pytest.approx(-swing, rel=1e-3)


@pytest.mark.long
@pytest.mark.parametrize(
    ("plane", "area", "centre"),
    [
        ("z = 1 mm", 800 + 50 * math.pi - 16 * math.pi, None),
        ("x = 30 mm", 20 * 5, (10, 2.5)),  # in y and z
        ("y = 1 mm", 5 * (40 + math.sqrt(19)), (2.5, (40 + math.sqrt(19)) / 2)),  # in z and x
    ],
)
def test_sections_across_each_axis(occ, tmp_path, plane, area, centre):
    write(tmp_path / "pawl.step", pawl())
    found = read_outline("pawl.step", "", "", 1e-5, Location(str(tmp_path / "model.yaml"), 1, 1), plane).moments
    assert found.area == pytest.approx(area * 1e-6, rel=1e-9)
    if centre:
        assert [found.x, found.y] == pytest.approx([c * 1e-3 for c in centre], rel=1e-9)


@pytest.mark.long
def test_a_slanted_section_is_an_ellipse(occ, tmp_path):
    """A round bar along (1, 0, 2), cut across z: half axes r and r sqrt(5)/2."""
    write(tmp_path / "bar.stp", round_bar(-50, 0, -100, 10, 300, (1, 0, 2)))
    found = read_outline("bar.stp", "", "", 1e-5, Location(str(tmp_path / "model.yaml"), 1, 1), "z = 0 mm").moments
    half = 5 * math.sqrt(5)
    assert found.area == pytest.approx(math.pi * 10 * half * 1e-6, rel=1e-8)
    assert found.yy == pytest.approx(math.pi / 4 * 10 * half**3 * 1e-12, rel=1e-8)


@pytest.mark.long
def test_bad_solids_are_refused_by_name(occ, tmp_path):
    where = Location(str(tmp_path / "model.yaml"), 1, 1)
    write(tmp_path / "pawl.step", pawl())
    write(tmp_path / "two.step", box(0, 0, 0, 1, 1, 1), box(5, 0, 0, 1, 1, 1))
    good = (tmp_path / "pawl.step").read_text(encoding="utf-8")
    (tmp_path / "half.step").write_text(good[: len(good) // 2], encoding="utf-8")
    (tmp_path / "empty.step").write_text("", encoding="utf-8")
    (tmp_path / "noise.step").write_bytes(bytes(range(256)) * 40)
    for name, plane, words in (
        ("pawl.step", "z = 9 mm", "misses the solid"),
        ("pawl.step", "z = 9", "an axis and a length"),
        ("two.step", "z = 0.5 mm", "2 solids, where one is read"),
        ("half.step", "z = 1 mm", "damaged|solids|misses|open"),
        ("empty.step", "z = 1 mm", "damaged|0 solids"),
        ("noise.step", "z = 1 mm", "damaged|0 solids"),
        ("../pawl.step", "z = 1 mm", "out of the folder"),
        ("none.step", "z = 1 mm", "no such|not found|cannot|does not"),
    ):
        with pytest.raises(ModelError, match=words):
            read_outline(name, "", "", 1e-5, where, plane)
