"""A chain of n links, of which ``yaml_models/chain.yaml`` is one: for measuring how time grows with the bodies."""

from __future__ import annotations

from typing import Any


def chain(n: int, start: str = "1.2 rad") -> dict[str, Any]:
    """Return the model of n equal rods, each hinged to the end of the one before it, the first to the ground."""
    joints, points, bodies = {}, {}, {}
    parent, hinge = "N", "O"
    for i in range(1, n + 1):
        joints[f"q{i}"] = {"revolute": {"parent": parent, "child": f"B{i}", "at": hinge, "axis": f"{parent}.z"}}
        points[f"G{i}"] = {"from": hinge, "at": f"-l/2*B{i}.y"}
        points[f"P{i}"] = {"from": hinge, "at": f"-l*B{i}.y"}
        bodies[f"rod{i}"] = {"frame": f"B{i}", "center": f"G{i}", "mass": "m", "inertia": {"zz": "m*l**2/12"}}
        parent, hinge = f"B{i}", f"P{i}"
    return {
        "fsm_dyn": 1,
        "name": "chain",
        "summary": f"A chain of {n} rods that hangs from its first hinge.",
        "parameters": {"m": "0.1 kg", "l": "0.1 m", "g": "9.81 m/s^2"},
        "joints": joints,
        "points": points,
        "bodies": bodies,
        "loads": [{"gravity": "-g*N.y"}],
        "initial": {"q1": start},
    }


def chain_with_backlash(n: int) -> dict[str, Any]:
    """Return the chain with 2 degrees of play at every hinge, the first included, its end pushed back and forth."""
    model = chain(n)
    for joint in model["joints"].values():
        joint["revolute"]["backlash"] = {"value": "play", "restitution": "e"}
    model["parameters"] |= {"play": "2 deg", "e": 0.3, "F": "0.5 N"}
    model["inputs"] = {"push": {"expression": "F*sin(60 Hz*t)"}}
    model["loads"].append({"force": "push*N.x", "at": f"P{n}"})
    model["initial"] = {}
    return model


def main() -> None:
    """Print how many operations a step's derivative takes in longer and longer chains."""
    import fsm_dyn

    for n in (2, 5, 10, 20, 40):
        counts = fsm_dyn.compile(chain(n)).automaton.modes[0].programs.rhs.counts()
        print(f"{n:3d} rods: {counts.total} operations")


if __name__ == "__main__":
    main()
