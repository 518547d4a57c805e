"""The seven-body mechanism in motion: listing 6.1 of the M.A.K.E. thesis, and a converged solution by another route."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import fsm_dyn

UNTIL = 0.03


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile("seven_body_mechanism")


@pytest.fixture(scope="module")
def data(reference):
    return reference("seven_body_mechanism")


def test_listing(graph, data):
    """To 1.5e-3: it begins at beta = -0.0620, the other angles being those of -0.0617, with loops open by as much."""
    run = fsm_dyn.simulate(graph, UNTIL, rtol=1e-10, atol=1e-12)
    for row in data["listing_6_1"]["rows"]:
        beta, gamma, delta = run.at(row["t"]).q[[0, 2, 4]]
        found = [np.mod(beta, 2 * np.pi), gamma, delta]
        np.testing.assert_allclose(found, [row["beta"], row["gamma"], row["delta"]], rtol=0, atol=1.5e-3)


class OneFreedom:
    """Newton's and Euler's equations reduced by hand to the crank: ``I(beta) beta'' + ½ I' beta'² = M - V'``.

    The other angles come from the loops by Newton's method, ratios of speeds from the loops' derivatives; slopes of
    inertia and potential by complex steps.  Nothing is shared with the package but the data.
    """

    def __init__(self, data):
        self.p, self.start = data["parameters"], np.array(data["start"]["q"])

    def places(self, q):
        """The closing errors (6,), the centres (14,) and the vector of the stretched spring (2,)."""
        p = {key: value for key, value in self.p.items() if not isinstance(value, list)}
        beta, theta, gamma, phi, delta, omega, epsilon = q
        turn = lambda a, x, y: np.array([np.cos(a) * x - np.sin(a) * y, np.sin(a) * x + np.cos(a) * y])  # noqa: E731
        A, B, C = (np.array([p["x" + k], p["y" + k]]) for k in "abc")
        crank = turn(beta, p["rr"], 0)
        upper, lower = A + turn(delta, p["zt"], 0), A + turn(epsilon, 0, -p["u"])
        end = crank - turn(beta + theta, p["d"], 0)
        loops = [
            B + turn(gamma, 0, -p["ss"]) - end,
            upper + turn(phi + delta, 0, -p["e"]) - end,
            lower + turn(omega + epsilon, p["zf"], 0) - end,
        ]
        centres = [
            turn(beta, p["ra"], 0), crank - turn(beta + theta, p["da"], 0), B + turn(gamma, p["sb"], -p["sa"]),
            upper + turn(phi + delta, 0, p["ea"] - p["e"]), A + turn(delta, p["ta"], p["tb"]),
            lower + turn(omega + epsilon, p["zf"] - p["fa"], 0), A + turn(epsilon, -p["ub"], -p["ua"]),
        ]  # fmt: skip
        return np.concatenate(loops), np.concatenate(centres), B + turn(gamma, p["sd"], -p["sc"]) - C

    def slopes(self, function, q):
        """Jacobian by complex steps, exact to rounding."""
        return np.column_stack([function(q + 1e-30j * unit).imag / 1e-30 for unit in np.eye(7)])

    def closed(self, beta, guess):
        q = guess.copy()
        q[0] = beta
        for _ in range(30):
            jacobian = self.slopes(lambda q: self.places(q)[0], q)
            step = np.linalg.solve(jacobian[:, 1:], self.places(q)[0])
            q[1:] -= step
            if np.abs(step).max() < 1e-13:
                break
        return q, np.concatenate([[1.0], -np.linalg.solve(jacobian[:, 1:], jacobian[:, 0])])

    def inertia(self, q, ratios):
        rates = self.slopes(lambda q: self.places(q)[1], q) @ ratios
        spins = np.array([ratios[0], ratios[0] + ratios[1], ratios[2], ratios[3] + ratios[4], ratios[4],
                          ratios[5] + ratios[6], ratios[6]])  # fmt: skip
        return np.repeat(self.p["m"], 2) @ rates**2 + np.array(self.p["I"]) @ spins**2

    def force(self, q, ratios):
        arm = self.places(q)[2]
        length = np.sqrt(arm @ arm)
        pull = self.slopes(lambda q: self.places(q)[2], q) @ ratios
        return self.p["mom"] - self.p["c0"] * (length - self.p["l0"]) * (arm @ pull) / length


@pytest.fixture(scope="module")
def converged(data):
    """Angles at the end by the independent derivation: periodic in the crank, so interpolated by Fourier's series."""
    own = OneFreedom(data)
    count = 300  # enough for coefficients to fall below 1e-12
    betas = own.start[0] + 2.0 * np.pi * np.arange(count) / count
    q, rows = own.start, []
    for beta in betas:
        q, ratios = own.closed(beta, q)
        rows.append([own.inertia(q, ratios), own.force(q, ratios)])
    inertia, force = (np.fft.rfft(column) / count for column in np.array(rows).T)
    orders = np.arange(len(inertia))
    assert np.abs(inertia[-50:]).max() < 1e-12 * abs(inertia[0])

    def series(coefficients, beta):
        waves = np.exp(1j * orders * (beta - own.start[0]))
        return coefficients[0].real + 2.0 * float(np.real(coefficients[1:] @ waves[1:]))

    def slope(_t, y):
        beta, rate = y
        bend = series(1j * orders * inertia, beta)
        return [rate, (series(force, beta) - 0.5 * bend * rate**2) / series(inertia, beta)]

    run = solve_ivp(slope, (0.0, UNTIL), [own.start[0], 0.0], method="DOP853", rtol=1e-12, atol=1e-13)
    beta = run.y[0, -1]
    for at in np.linspace(own.start[0], beta, 120):  # the other angles along the way, so that no turn is lost
        q, _ = own.closed(at, own.start if at == own.start[0] else q)
    return q


def test_a_run_in_fixed_steps_meets_the_converged_end(graph, converged):
    """1e-6 in all angles at t = 0.03 s, with the step that `tests/benchmarks/test_seven_body.py` times."""
    run = fsm_dyn.simulate(graph, UNTIL, method="rk4", step=5e-5)
    np.testing.assert_allclose(run.q[-1], converged, rtol=0, atol=1e-6)


def test_what_drives_it_is_all_that_is_gained(graph, converged):
    """Energy: the moment's work in kinetic and the spring's; and the accurate run's end, to 1e-9."""
    run = fsm_dyn.simulate(graph, UNTIL, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(run.q[-1], converged, rtol=0, atol=1e-7)
    report = graph.automaton.report.evaluate(run.t[[0, -1]], run.rows.x[[0, -1]], run.rows.context[[0, -1]])
    gained = np.diff(report["kinetic_energy"] + report["potential_energy"])[0]
    work = 0.033 * (run.q[-1, 0] - run.q[0, 0])
    assert gained == pytest.approx(work, rel=1e-8)
