"""Linkages that line up or close with a row too many, and motions of theirs that are worked out another way.

A02 and A04 are problems of the IFToMM library of multibody benchmarks (M. Gonzalez, D. Dopico, U. Lugris, J. Cuadrado,
*A benchmarking system for MBS simulation software*, Multibody System Dynamics 16, 2006).
"""

import numpy as np
from scipy.integrate import solve_ivp

G = 9.81


def parallelograms(n, **initial):
    """A02: n + 1 upright bars on a ground line, joined by n bars, all of 1 m and 1 kg: n loops, one freedom."""
    start = {"r0": np.pi / 2, "r0_dot": -1.0, **initial}
    guess = {f"r{i}": np.pi / 2 for i in range(1, n + 1)} | {f"c{i}": 0.0 for i in range(1, n + 1)}
    frames, points, bodies, rows = {}, {}, {}, {}
    for i in range(n + 1):
        frames[f"R{i}"] = {"parent": "N", "rotate": {"z": f"r{i}"}}
        points |= {f"A{i}": {"from": "O", "at": f"{i}*l*N.x"}, f"B{i}": {"from": f"A{i}", "at": f"l*R{i}.x"}}
        points[f"Rc{i}"] = {"from": f"A{i}", "at": f"0.5*l*R{i}.x"}
        bodies[f"rocker{i}"] = {"frame": f"R{i}", "center": f"Rc{i}", "mass": "m", "inertia": {"zz": "m*l**2/12"}}
    for i in range(1, n + 1):
        frames[f"C{i}"] = {"parent": "N", "rotate": {"z": f"c{i}"}}
        points |= {
            f"E{i}": {"from": f"B{i - 1}", "at": f"l*C{i}.x"},
            f"Cc{i}": {"from": f"B{i - 1}", "at": f"0.5*l*C{i}.x"},
        }
        bodies[f"bar{i}"] = {"frame": f"C{i}", "center": f"Cc{i}", "mass": "m", "inertia": {"zz": "m*l**2/12"}}
        rows |= {f"loop{i}_{a}": {"position": f"dot(pos(E{i}, B{i}), N.{a})"} for a in "xy"}
    return {
        "fsm_dyn": 1,
        "name": f"parallelograms_{n}",
        "parameters": {"l": 1.0, "m": 1.0, "g": G},
        "coordinates": [*(f"r{i}" for i in range(n + 1)), *(f"c{i}" for i in range(1, n + 1))],
        "frames": frames,
        "points": points,
        "bodies": bodies,
        "constraints": rows,
        "loads": [{"gravity": "-g*N.y"}],
        "initial": {**start, "guess": {k: v for k, v in guess.items() if k not in start}},
    }


def parallelogram_angle(n, times, r0=np.pi / 2, r0_dot=-1.0):
    """The angle of all rockers: the joining bars only move along circles, so that it is that of one pendulum."""
    inertia, moment = (n + 1) / 3 + n, (n + 1) / 2 + n

    def rates(_, y):
        return [y[1], -G * moment / inertia * np.cos(y[0])]

    return solve_ivp(rates, (0.0, times[-1]), [r0, r0_dot], "DOP853", times, rtol=1e-13, atol=1e-13).y[0]


def four_bar(a=1.0, b=2.0, c=1.5, d=1.5, g=0.0, m=1.0, **initial):
    """A crank, a coupler and a rocker over a ground bar d; by default a + b = c + d, so that all line up."""
    start = {"q1": np.pi / 2, "q1_dot": 4.0, **initial}
    return {
        "fsm_dyn": 1,
        "name": "four_bar_in_line",
        "parameters": {"a": a, "b": b, "c": c, "d": d, "m": m, "g": g},
        "coordinates": ["q1", "q2", "q3"],
        "frames": {
            name: {"parent": "N", "rotate": {"z": q}} for name, q in zip("ABC", ("q1", "q2", "q3"), strict=True)
        },
        "points": {
            "P": {"from": "O", "at": "a*A.x"},
            "Q": {"from": "P", "at": "b*B.x"},
            "D": {"from": "O", "at": "d*N.x"},
            "R": {"from": "D", "at": "c*C.x"},
            "Ao": {"from": "O", "at": "0.5*a*A.x"},
            "Bo": {"from": "P", "at": "0.5*b*B.x"},
            "Co": {"from": "D", "at": "0.5*c*C.x"},
        },
        "bodies": {
            "crank": {"frame": "A", "center": "Ao", "mass": "m", "inertia": {"zz": "m*a**2/12"}},
            "coupler": {"frame": "B", "center": "Bo", "mass": "m", "inertia": {"zz": "m*b**2/12"}},
            "rocker": {"frame": "C", "center": "Co", "mass": "m", "inertia": {"zz": "m*c**2/12"}},
        },
        "constraints": {
            "loop_x": {"position": "dot(pos(Q, R), N.x)"},
            "loop_y": {"position": "dot(pos(Q, R), N.y)"},
        },
        "loads": [{"gravity": "-g*N.y"}],
        "initial": {**start, "guess": {"q2": 0.3, "q3": 1.2}},
    }


def bricard():
    """A04: five bars of 1 m and 1 kg along the edges of a cube, six hinges across them; gravity along -y."""
    corners = np.array([[0, 0, 0], [1, 0, 0], [1, -1, 0], [1, -1, 1], [0, -1, 1], [0, 0, 1]], float)
    # each hinge is at right angles to both bars that meet there
    axes = ("y", "z", "x", "y", "z", "x")
    points, joints, bodies, parent = {}, {}, {}, "N"
    before = "O"
    for k in range(5):
        step = corners[k + 1] - corners[k]
        axis = "xyz"[int(np.argmax(np.abs(step)))]
        sign = "" if step.sum() > 0 else "-"
        joints[f"q{k}"] = {
            "revolute": {"parent": parent, "child": f"L{k}", "at": before, "axis": f"{parent}.{axes[k]}"}
        }
        points |= {f"P{k + 1}": {"from": before, "at": f"{sign}l*L{k}.{axis}"}}
        points |= {f"M{k + 1}": {"from": before, "at": f"{sign}0.5*l*L{k}.{axis}"}}
        inertia = {2 * name: "m*l**2/12" for name in "xyz" if name != axis} | {2 * axis: 0.0}
        bodies[f"bar{k + 1}"] = {"frame": f"L{k}", "center": f"M{k + 1}", "mass": "m", "inertia": inertia}
        parent, before = f"L{k}", f"P{k + 1}"
    rows = {f"last_{a}": {"position": f"dot(pos(P5, E), N.{a})"} for a in "xyz"}
    rows |= {f"axis_{a}": {"position": f"dot(L4.x, N.{a})"} for a in "yz"}
    points["E"] = {"from": "O", "at": "l*N.z"}
    return {
        "fsm_dyn": 1,
        "name": "bricard",
        "parameters": {"l": 1.0, "m": 1.0, "g": G},
        "points": points,
        "joints": joints,
        "bodies": bodies,
        "constraints": rows,
        "loads": [{"gravity": "-g*N.y"}],
        "initial": {},
    }


def four_bar_crank(times, a=1.0, b=2.0, c=1.5, d=1.5, m=1.0, q1=np.pi / 2, q1_dot=4.0, other=False):
    """Angles (q1, q2, q3) of the four-bar without gravity on the branch through its start, by quadrature.

    The closure is solved for the half angle of the rocker, whose square root is taken with the sign that is smooth
    through the lines in which all bars lie: there one factor of the discriminant vanishes as a square.
    """
    x0, y0 = q1, q1_dot

    def angles(q):
        # P - D = (a cos q - d, a sin q); |P + b e - D| = c;  r: distance from P to D, its angle, cosine rule
        x, y = a * np.cos(q) - d, a * np.sin(q)
        r2 = x * x + y * y
        # area: 16 S^2 = (r+b+c)(b+c-r)(r+b-c)(r-b+c); r grows from d - a on, where b - c = d - a: sign by sin(q/2)
        root = np.sqrt(np.maximum((r2 - (b - c) ** 2) * ((b + c) ** 2 - r2), 0.0))
        # r2 - (d - a)^2 = 4 a d sin(q/2)^2 since b - c = +-(d - a)
        root = 2.0 * np.sqrt(a * d) * np.sin(q / 2) * np.sqrt((b + c) ** 2 - r2)
        cos_rocker = (r2 + c * c - b * b) / (2.0 * c)  # r times the cosine of the angle at D
        sin_rocker = root / (2.0 * c)
        # turn from D towards P by the angle at D, clockwise
        rocker = np.arctan2(y * cos_rocker - x * sin_rocker, x * cos_rocker + y * sin_rocker)
        coupler = np.arctan2(c * np.sin(rocker) - y, d - a * np.cos(q) + c * np.cos(rocker))
        return coupler, rocker

    def ratios(q):
        coupler, rocker = angles(q)
        s = np.sin(rocker - coupler)
        return a * np.sin(q - rocker) / (b * s), a * np.sin(q - coupler) / (c * s)

    def inertia(q):
        k2, k3 = ratios(q)
        coupler, _ = angles(q)
        # crank and rocker about their pivots; the coupler's centre moves with the crank's end and turns
        return m * (a * a / 3 + a * a + b * b * k2 * k2 / 3 + a * b * k2 * np.cos(q - coupler) + c * c * k3 * k3 / 3)

    energy = inertia(x0) * y0 * y0

    def rate(_, q):
        return np.sqrt(energy / inertia(q))

    q = solve_ivp(rate, (0.0, times[-1]), [x0], "DOP853", times, rtol=1e-13, atol=1e-13, max_step=0.02).y[0]
    return np.stack([q, *angles(q)], axis=1)
