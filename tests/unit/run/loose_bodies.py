"""Random scenes of loose bodies in an arena, every pair of which may touch."""

import math

import numpy as np

import fsm_dyn


def scene(kind, seed, n=3):
    """Return a scene of some kind: ``discs boxes mixed soft`` in the plane, ``balls bricks`` in space."""
    rng = np.random.default_rng(seed)
    m = fsm_dyn.Model(f"{kind}_{seed}").parameter("r", "0.1 m")
    return (_in_space if kind in ("balls", "bricks") else _in_the_plane)(m, kind, rng, n)


def _in_the_plane(m, kind, rng, n):
    n = 2 if kind == "boxes" else n
    side = math.ceil(math.sqrt(n))
    for i in range(n):
        m.coordinate(f"x{i}", "m").coordinate(f"y{i}", "m").coordinate(f"q{i}", "rad").frame(
            f"B{i}", rotate={"z": f"q{i}"}
        )
        m.point(f"P{i}", from_="O", at=f"x{i}*N.x + y{i}*N.y")
        m.body(f"d{i}", frame=f"B{i}", center=f"P{i}", mass="1 kg", inertia={"zz": "0.006 kg*m^2"})
        if kind == "boxes" or (kind == "mixed" and i == 0):
            corners = [["-r", "-0.8*r"], ["r", "-0.8*r"], ["r", "0.8*r"], ["-r", "0.8*r"]]
            m.shape(f"s{i}", polygon={"frame": f"B{i}", "points": corners})
        else:
            m.shape(f"s{i}", circle={"frame": f"B{i}", "center": f"P{i}", "radius": "r"})
        row, column = divmod(i, side)
        place, speed = (np.array([column, row]) + 0.5) * 0.36, rng.normal(size=3)
        m.initial(
            **{f"x{i}": f"{place[0]} m", f"y{i}": f"{place[1]} m", f"q{i}": f"{rng.uniform(0, 1.5)} rad"},
            **{f"x{i}_dot": f"{speed[0]} m/s", f"y{i}_dot": f"{speed[1]} m/s", f"q{i}_dot": f"{2 * speed[2]} rad/s"},
        )
    width = 0.36 * side
    m.point("R", from_="O", at=f"{width} m*N.x").point("T", from_="O", at=f"{width} m*N.y")
    m.shape("ground", line={"along": "N.x"}, side="N.y").shape("left", line={"along": "N.y"}, side="N.x")
    m.shape("right", line={"from": "R", "along": "N.y"}, side="-N.x")
    m.shape("top", line={"from": "T", "along": "N.x"}, side="-N.y")
    if kind == "mixed":
        m.shape("shelf", segment={"points": [["0.5 m", "0.02 m"], ["0.8 m", "0.03 m"]]}, side="N.y")
    m.load(gravity="-9.81 m/s^2*N.y")
    if kind == "soft":
        return m.contact("touch", between="all", compliant={"stiffness": "2e4 N/m", "dissipation": "0.5 s/m"})
    return m.contact("touch", between="all", friction=0.3, restitution=0.4)


def _in_space(m, kind, rng, n):
    n = 3 if kind == "bricks" else n
    for i in range(n):
        m.coordinate(f"x{i}", "m").coordinate(f"y{i}", "m").coordinate(f"z{i}", "m")
        m.point(f"P{i}", from_="O", at=f"x{i}*N.x + y{i}*N.y + z{i}*N.z")
        if kind == "bricks" and i == 0:
            m.coordinate("a", "rad").frame("A", rotate={"z": "a"}).coordinate("b", "rad")
            m.frame("B", parent="A", rotate={"x": "b"})
            inertia = {"xx": "0.006 kg*m^2", "yy": "0.006 kg*m^2", "zz": "0.006 kg*m^2"}
            m.body("d0", frame="B", center="P0", mass="1 kg", inertia=inertia).initial(a="0.3 rad", b="0.4 rad")
            m.shape("s0", box={"frame": "B", "center": "P0", "size": ["2*r", "2*r", "r"]})
        else:
            m.body(f"d{i}", center=f"P{i}", mass="1 kg")
            m.shape(f"s{i}", sphere={"center": f"P{i}", "radius": "r"})
        speed = rng.normal(size=3)
        m.initial(
            **{f"x{i}": f"{0.2 + 0.3 * i} m", f"y{i}": f"{0.3 + 0.02 * i} m", f"z{i}": f"{0.4 + 0.1 * (i % 2)} m"},
            **{f"x{i}_dot": f"{speed[0]} m/s", f"y{i}_dot": f"{0.3 * speed[1]} m/s", f"z{i}_dot": f"{speed[2]} m/s"},
        )
    m.point("R", from_="O", at=f"{0.3 * n + 0.1} m*N.x").point("D", from_="O", at="0.7 m*N.y")
    m.shape("ground", plane={"from": "O"}, side="N.z").shape("left", plane={"from": "O"}, side="N.x")
    m.shape("right", plane={"from": "R"}, side="-N.x")
    m.shape("near", plane={"from": "O"}, side="N.y").shape("far", plane={"from": "D"}, side="-N.y")
    m.load(gravity="-9.81 m/s^2*N.z")
    walls = ["ground", "left", "right", "near", "far"]
    if kind == "bricks":
        balls = [f"s{i}" for i in range(1, n)]
        m.contact("block", between=[["s0"], walls], restitution=0.3)
        return m.contact("touch", between=[*balls, walls], restitution=0.5)
    return m.contact("touch", between="all", friction=0.2, restitution=0.5)
