"""Four-bars in a row: what ``yaml_models/four_bar_row.yaml`` is one of, for measuring how time grows with the loops."""

from __future__ import annotations

from typing import Any


def four_bar_row(n: int) -> dict[str, Any]:
    """Return the model of n loops: n + 1 equal rods hinged to the ground, neighbours joined by couplers; one freedom.

    All bars are as long as the hinges are apart, so that the rods stay parallel: the row is one pendulum.
    """
    joints, points, bodies = {}, {}, {}
    for i in range(n + 1):
        points[f"D{i}"] = {"from": "O", "at": f"{i}*l*N.x"}
        joints[f"rod{i}"] = {"revolute": {"parent": "N", "child": f"R{i}", "at": f"D{i}", "axis": "N.z"}}
        points[f"T{i}"] = {"from": f"D{i}", "at": f"l*R{i}.y"}
        points[f"G{i}"] = {"from": f"D{i}", "at": f"l/2*R{i}.y"}
        bodies[f"rod{i}_body"] = _bar(f"R{i}", f"G{i}")
    for i in range(1, n + 1):
        before = f"R{i - 1}"
        hinge = {"parent": before, "child": f"C{i}", "at": f"T{i - 1}", "axis": f"{before}.z"}
        joints[f"coupler{i}"] = {"revolute": hinge}
        points[f"E{i}"] = {"from": f"T{i - 1}", "at": f"l*C{i}.x"}
        points[f"H{i}"] = {"from": f"T{i - 1}", "at": f"l/2*C{i}.x"}
        bodies[f"coupler{i}_body"] = _bar(f"C{i}", f"H{i}")
        close = {"parent": f"C{i}", "child": f"R{i}", "at": [f"E{i}", f"T{i}"], "axis": f"C{i}.z"}
        joints[f"loop{i}"] = {"revolute": close}
    guess = {f"rod{i}": "0.5 rad" for i in range(1, n + 1)}
    guess |= {f"coupler{i}": "-0.5 rad" for i in range(1, n + 1)}
    return {
        "fsm_dyn": 1,
        "name": "four_bar_row",
        "summary": f"{n} four-bars in a row, with one freedom.",
        "parameters": {"m": "1 kg", "l": "1 m", "g": "9.81 m/s^2"},
        "joints": joints,
        "points": points,
        "bodies": bodies,
        "loads": [{"gravity": "-g*N.y"}],
        "initial": {"rod0": "0.5 rad", "rod0_dot": "1 rad/s", "guess": guess},
    }


def _bar(frame: str, center: str) -> dict[str, Any]:
    return {"frame": frame, "center": center, "mass": "m", "inertia": {"zz": "m*l**2/12"}}


def pendulum(n: int, m: float, length: float, g: float) -> tuple[float, float]:
    """Return inertia and restoring moment of the row as a pendulum: ``I q'' = K sin(q)``, q from upright."""
    inertia = (n + 1) * m * length**2 / 3.0 + n * m * length**2
    return inertia, (n + 1) * m * g * length / 2.0 + n * m * g * length


def main() -> None:
    """Print the operations of longer and longer rows, and how well they keep the pendulum's energy."""
    import fsm_dyn

    for n in (1, 2, 5, 10, 20):
        graph = fsm_dyn.compile(four_bar_row(n))
        run = fsm_dyn.simulate(graph, until=1.0)
        count = graph.automaton.modes[0].programs.rhs.counts().total
        print(f"{n:3d} loops: {count} operations, energy kept to {run.energy.relative_residual:.1e}")


if __name__ == "__main__":
    main()
