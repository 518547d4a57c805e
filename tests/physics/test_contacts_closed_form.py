"""Models with contacts against their closed forms.

Tolerances: runs are made with rtol 1e-11; an instant is located to 1e-13 s and inherits the error of the state, some
1e-10, so 1e-9 relative is asked of times and speeds unless a test says why not.
"""

import numpy as np
import pytest

import fsm_dyn
from mechanisms import cam_flat_follower, newtons_cradle, rocking_block, sliding_rod, stick_slip_belt

TIGHT = {"rtol": 1e-11, "atol": 1e-13}


@pytest.fixture(scope="module")
def compiled():
    """Graphs by name, each compiled once."""
    known = {}

    def get(name):
        return known.setdefault(name, fsm_dyn.compile(name)) if name not in known else known[name]

    return get


class TestBelt:
    def test_limit_cycle(self, compiled, reference):
        given = reference("closed_forms")["belt_stick_slip"]
        parameters = {name: given[name] for name in ("m", "k", "press", "mu_s", "mu_k")}
        run = fsm_dyn.simulate(
            compiled("stick_slip_belt"), until=40.0, inputs={"v_belt": given["v_b"]}, parameters=parameters, **TIGHT
        )
        slides = np.array([x.time for x in run.transitions if x.target == "slipping"])
        caught = np.array([x.time for x in run.transitions if x.target == "carried"])
        forces = (given["mu_s"] * given["press"], given["mu_k"] * given["press"])
        n = len(caught)
        slip = stick_slip_belt.slip_time(given["m"], given["k"], *forces, given["v_b"])
        stick = stick_slip_belt.stick_time(given["k"], *forces, given["v_b"])
        assert n >= 3
        np.testing.assert_allclose(caught - slides[:n], slip, rtol=1e-9)
        np.testing.assert_allclose(slides[1:n] - caught[: n - 1], stick, rtol=1e-9)
        np.testing.assert_allclose(np.diff(slides), given["period"], rtol=1e-9)
        np.testing.assert_allclose(slip + stick, given["period"], rtol=1e-14)
        ends = run.sample(caught).q[:, 0]
        np.testing.assert_allclose(ends, stick_slip_belt.caught_at(given["k"], *forces), atol=1e-9)


class TestRockingBlock:
    @pytest.mark.parametrize("alpha", [0.1, 0.2, 0.25])
    def test_housners_restitution(self, compiled, reference, alpha):
        expected = reference("closed_forms")["rocking_block_housner"]["restitution_omega"][alpha]
        run = fsm_dyn.simulate(
            compiled("rocking_block"), until=3.0, parameters={"b": 0.5 * np.tan(alpha), "tilt": 0.6 * alpha}, **TIGHT
        )
        ratios = [x.u_after[2] / x.u_before[2] for x in run.transitions if x.target in ("on_left", "on_right")]
        assert len(ratios) >= 2
        # an impact is algebra on the current state: rounding only
        np.testing.assert_allclose(ratios, expected, rtol=1e-12)
        assert rocking_block.restitution(alpha) == pytest.approx(expected, rel=1e-14)

    @pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
    def test_time_to_the_impact(self, compiled, share):
        alpha = np.arctan2(0.1, 0.5)
        run = fsm_dyn.simulate(compiled("rocking_block"), until=2.0, parameters={"tilt": share * alpha}, **TIGHT)
        expected = rocking_block.fall_time(share * alpha, alpha, rocking_block.rate(0.1, 0.5))
        np.testing.assert_allclose(run.transitions[0].time, expected, rtol=1e-9)

    @pytest.mark.parametrize("share", [0.3, 0.8])
    def test_time_to_stand(self, compiled, share):
        """The train of impacts of two corners ends where the swings add up to, not where they become too small to see.

        It is summed once the corners rise less than 1e-9 m: of swings of some 1e-4 s, known to 1e-5 of themselves.
        """
        alpha = np.arctan2(0.1, 0.5)
        run = fsm_dyn.simulate(compiled("rocking_block"), until=12.0, parameters={"tilt": share * alpha}, **TIGHT)
        last = run.transitions[-1]
        assert last.target == run.modes[-1] == "standing"
        expected = rocking_block.standing_time(share * alpha, alpha, rocking_block.rate(0.1, 0.5))
        assert last.time == pytest.approx(expected, abs=1e-8)
        assert not run.u[-1].any()

    def test_period_of_a_slender_block(self, compiled):
        """Housner's formula replaces the sine by the angle: right to the order alpha²."""
        alpha, h = 0.02, 0.5
        b = h * np.tan(alpha)
        run = fsm_dyn.simulate(compiled("rocking_block"), until=1.0, parameters={"b": b, "tilt": 0.5 * alpha}, **TIGHT)
        period = rocking_block.linear_period(0.5 * alpha, alpha, rocking_block.rate(b, h))
        np.testing.assert_allclose(4.0 * run.transitions[0].time, period, rtol=alpha**2)


class TestSlidingRod:
    @pytest.mark.parametrize("mu", [0.0, 0.5, 1.0, 1.3])
    @pytest.mark.parametrize("q", [0.4, np.arctan(2.0), 1.5])
    def test_force_on_the_foot(self, compiled, q, mu):
        start = {"mode": "sliding", "q": q, "vx": -2.0, "w": 0.5}
        run = fsm_dyn.simulate(compiled("sliding_rod"), until=1e-4, initial=start, parameters={"mu": mu}, **TIGHT)
        assert run.modes[0] == "sliding"
        expected = sliding_rod.normal_force(q, 0.5, mu, -1.0, 1.0, 0.5)
        # near the critical friction the force is a small difference magnified: 1/compliance is at most 40 here
        np.testing.assert_allclose(run.multipliers["foot"][0, 0], expected, rtol=1e-12)

    def test_critical_friction(self, reference):
        given = reference("closed_forms")["painleve_rod"]
        q = np.deg2rad(given["critical_angle_deg"])
        assert sliding_rod.foot_compliance(q, given["critical_mu"], -1.0) == pytest.approx(0.0, abs=1e-14)
        nearby = [sliding_rod.foot_compliance(q + d, given["critical_mu"], -1.0) for d in (-0.1, 0.1)]
        assert min(nearby) > 0.0

    @pytest.mark.parametrize(("share", "end"), [(1 - 1e-4, "done"), (1 + 1e-4, "inconsistent contact state")])
    def test_jamming_boundary(self, compiled, reference, share, end):
        """On either side of the critical friction: a clean run, and a named failure where no mode agrees."""
        given = reference("closed_forms")["painleve_rod"]
        run = fsm_dyn.simulate(
            compiled("sliding_rod"), until=0.05, on_failure="return", parameters={"mu": share * given["critical_mu"]},
            initial={"mode": "sliding", "q": np.deg2rad(given["critical_angle_deg"]), "vx": -2.0, "w": 0.0}, **TIGHT,
        )  # fmt: skip
        assert run.outcome.name == end

    @pytest.mark.parametrize(("share", "mode"), [(1 - 1e-6, "sliding"), (1 + 1e-6, "in_air")])
    def test_lift_off_boundary(self, compiled, share, mode):
        """To a part in a million on either side of the rate at which the foot lifts."""
        q = 1.2
        w = share * sliding_rod.lift_off_rate(q, 0.5)
        # the foot's own vertical speed is zero: it is held by the mode the run is asked to start in
        start = {"mode": "sliding", "q": q, "vx": -2.0 - w * 0.5 * np.sin(q), "w": w}
        run = fsm_dyn.simulate(compiled("sliding_rod"), until=1e-7, initial=start, parameters={"mu": 0.5}, **TIGHT)
        assert run.modes[-1] == mode


class TestCam:
    M, D, K, PRELOAD = 0.4, 0.01, 500.0, 10.0

    def run(self, graph, share):
        speed = share * cam_flat_follower.lift_off_speed(self.M, self.D, self.K, self.PRELOAD)
        return speed, fsm_dyn.simulate(
            graph, until=4.0 * np.pi / speed, inputs={"speed": speed}, parameters={"c": 0.0}, **TIGHT
        )

    def test_stays_below_the_limit(self, compiled):
        _, run = self.run(compiled("cam_flat_follower"), 1 - 1e-6)
        assert set(run.modes) == {"following"}

    @pytest.mark.parametrize("share", [1 + 1e-6, 1.05, 1.4])
    def test_lifts_above_it(self, compiled, share):
        speed, run = self.run(compiled("cam_flat_follower"), share)
        first = run.transitions[0]
        assert (first.source, first.target) == ("following", "lifted")
        angle = cam_flat_follower.lift_off_angle(speed, self.M, self.D, self.K, self.PRELOAD)
        # close to the limit the force touches zero like a parabola: the angle carries the root of the force's error
        np.testing.assert_allclose(speed * first.time, angle, rtol=1e-9 if share > 1.01 else 1e-6)


class TestKneeStop:
    """Uniform rods: energy on the flows, angular momentum about the hip and the loss of energy at the stop."""

    M1, M2, L1, L2, G = 1.0, 0.8, 0.45, 0.42, 9.81

    def mass(self, knee):
        """Mass matrix for the rates of the hip and of the knee, which bends backward."""
        couple = 0.5 * self.M2 * self.L1 * self.L2 * np.cos(knee)
        thigh = self.M1 * self.L1**2 / 3 + self.M2 * self.L1**2
        shank = self.M2 * self.L2**2 / 3
        return np.array([[thigh + shank + 2 * couple, -shank - couple], [-shank - couple, shank]])

    def test_impacts_and_energy(self, compiled):
        run = fsm_dyn.simulate(compiled("double_pendulum_with_stop"), until=1.8, **TIGHT)
        impacts = [x for x in run.transitions if x.impulse]
        assert len(impacts) >= 5
        M = self.mass(0.0)
        for x in impacts:
            np.testing.assert_allclose(x.u_after[1], -0.6 * x.u_before[1], rtol=1e-12)
            momentum = M[0] @ x.u_before
            np.testing.assert_allclose(M[0] @ x.u_after, momentum, rtol=1e-12, atol=1e-14)
            lost = 0.5 * (1 - 0.6**2) * x.u_before[1] ** 2 / np.linalg.inv(M)[1, 1]
            np.testing.assert_allclose(x.energy_lost, lost, rtol=1e-6, atol=1e-13)
        assert run.energy.relative_residual <= 1e-9

    def test_energy_by_hand(self, compiled):
        run = fsm_dyn.simulate(compiled("double_pendulum_with_stop"), until=0.17, **TIGHT)
        assert run.transitions == ()
        hip, knee = run.q.T
        kinetic = 0.5 * np.einsum("ti,tij,tj->t", run.u, np.array([self.mass(k) for k in knee]), run.u)
        height = -0.5 * self.L1 * np.cos(hip) * self.M1 - self.M2 * (
            self.L1 * np.cos(hip) + 0.5 * self.L2 * np.cos(hip - knee)
        )
        total = kinetic + self.G * height
        np.testing.assert_allclose(total, total[0], rtol=0, atol=1e-9)


def billiard(name, contacts):
    """A point that moves freely between walls that return all of it."""
    return {
        "fsm_dyn": 1, "name": name, "coordinates": ["x", "y"],
        "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}},
        "bodies": {"puck": {"center": "P", "mass": 1}},
        "speeds": {"vx": "rate(x)", "vy": "rate(y)"},
        "contacts": {key: {"gap": gap, "restitution": 1} for key, gap in contacts.items()},
        "initial": {"x": 0.1, "y": 0.2, "vx": 0.9, "vy": 0.37},
    }  # fmt: skip


class TestBilliards:
    """A hundred elastic impacts: what is conserved is to stay so to 1e-9, though errors of position spread."""

    def test_rectangle(self):
        walls = {"left": "x", "right": "1 - x", "below": "y", "above": "0.7 - y"}
        run = fsm_dyn.simulate(fsm_dyn.compile(billiard("rectangle", walls)), until=80.0, **TIGHT)
        assert len(run.transitions) >= 100
        np.testing.assert_allclose(np.abs(run.u), np.tile([0.9, 0.37], (len(run), 1)), rtol=1e-12)
        # unfolded, the path is a straight line: reflected back it gives the place
        x = np.abs(np.mod(0.1 + 0.9 * 80.0 + 1.0, 2.0) - 1.0)
        y = np.abs(np.mod(0.2 + 0.37 * 80.0 + 0.7, 1.4) - 0.7)
        np.testing.assert_allclose(run.q[-1], [x, y], atol=1e-9)

    def test_circle(self):
        run = fsm_dyn.simulate(
            fsm_dyn.compile(billiard("round", {"wall": "1 - sqrt(x**2 + y**2)"})), until=150.0, **TIGHT
        )
        times = np.array([x.time for x in run.transitions])
        assert len(times) >= 70
        speed2, turn = 0.9**2 + 0.37**2, 0.1 * 0.37 - 0.2 * 0.9
        chord = 2.0 * np.sqrt(1.0 - turn**2 / speed2) / np.sqrt(speed2)
        np.testing.assert_allclose(np.diff(times), chord, rtol=1e-9)
        np.testing.assert_allclose(run.q[:, 0] * run.u[:, 1] - run.q[:, 1] * run.u[:, 0], turn, rtol=1e-9)

    def test_ellipse(self):
        """The product of the angular momenta about the two foci is kept."""
        wall = {"wall": "1 - sqrt(x**2 + y**2/0.36)"}
        run = fsm_dyn.simulate(fsm_dyn.compile(billiard("oval", wall)), until=60.0, **TIGHT)
        assert len(run.transitions) >= 40
        (x, y), (vx, vy) = run.q.T, run.u.T
        product = ((x - 0.8) * vy - y * vx) * ((x + 0.8) * vy - y * vx)
        np.testing.assert_allclose(product, product[0], rtol=1e-9)

    def test_corner_returns_the_ball(self, compiled):
        """Without friction, gravity and loss both faces send the ball back the way it came, spin untouched."""
        run = fsm_dyn.simulate(
            compiled("ball_in_corner"), until=2.0, parameters={"g": 0, "mu": 0, "e_ground": 1, "e_wall": 1},
            initial={"mode": "flying", "x": 0.5, "y": 0.4, "vx": -1.0, "vy": -0.6, "w": 3.0}, **TIGHT,
        )  # fmt: skip
        assert [x.cause.split()[0] for x in run.transitions] == ["wall", "ground"]
        np.testing.assert_allclose([x.time for x in run.transitions], [0.4, 0.5], rtol=1e-12)
        np.testing.assert_allclose(run.u[-1], [1.0, 0.6, 3.0], rtol=1e-12)


class TestCradle:
    @pytest.mark.parametrize("e", [1.0, 0.9, 0.5])
    def test_what_passes_through(self, compiled, e):
        """One ball after the other: the last one leaves with the closed form's share of the speed."""
        run = fsm_dyn.simulate(compiled("newtons_cradle"), until=0.5, parameters={"e": e}, **TIGHT)
        first = next(x for x in run.transitions if x.impulse)
        quarter = newtons_cradle.swing_time(np.deg2rad(40.0), 0.4)
        np.testing.assert_allclose(first.time, quarter, rtol=1e-9)
        speed = first.u_before[0]
        np.testing.assert_allclose(speed, newtons_cradle.speed_at_the_bottom(np.deg2rad(40.0), 0.4), rtol=1e-9)
        share = newtons_cradle.share_of_the_last(e, 5)
        np.testing.assert_allclose(first.u_after[4] / speed, share, rtol=1e-9)

    def test_keeps_on(self, compiled):
        """Elastic: the ends take turns, half a period apart, and lose nothing."""
        run = fsm_dyn.simulate(compiled("newtons_cradle"), until=4.0, **TIGHT)
        impacts = [x for x in run.transitions if x.impulse]
        quarter = newtons_cradle.swing_time(np.deg2rad(40.0), 0.4)
        np.testing.assert_allclose([x.time for x in impacts], quarter * (1 + 2 * np.arange(len(impacts))), rtol=1e-8)
        total = run.energy.total
        np.testing.assert_allclose(total, total[0], atol=1e-9 * abs(total[0]))


class TestBox:
    def test_holds_up_to_the_friction_of_both_corners(self, compiled):
        """Pushed at its centre it does not move below mu m g = 2.943 N, and slides from there on."""
        graph = compiled("box_on_table")
        run = fsm_dyn.simulate(graph, until=1.0, inputs={"push": [(0.0, 0.0), (1.0, 4.0)], "nudge": 0.0}, **TIGHT)
        limit = 0.3 * 1.0 * 9.81 / 4.0
        before = run.sample(np.linspace(0.0, limit * (1 - 1e-9), 500))
        np.testing.assert_allclose(before.u, 0.0, atol=1e-12)
        slides = next(x for x in run.transitions if x.target == "sliding")
        # a force counts as zero within 1e-9 of the largest at play (10 N); the push grows by 4 N/s
        assert slides.time == pytest.approx(limit, abs=5e-9)
        # from there on it accelerates with what the push has too much: v = 4 (t - limit)²/2 (m = 1 kg, 4 N/s)
        np.testing.assert_allclose(run.u[-1], [2.0 * (1.0 - limit) ** 2, 0.0, 0.0], rtol=1e-8, atol=1e-12)

    def test_both_corners_strike_at_once(self, compiled):
        start = {"mode": "in_air", "q": 0.0, "y": 0.15 + 0.2}
        run = fsm_dyn.simulate(
            compiled("box_on_table"), until=0.25, initial=start, inputs={"push": 0.0, "nudge": 0.0}, **TIGHT
        )
        first = run.transitions[0]
        assert first.time == pytest.approx(np.sqrt(0.4 / 9.81), rel=1e-12)
        np.testing.assert_allclose(
            [first.impulse[k][0] for k in ("c1", "c2")], 0.6 * np.sqrt(2 * 9.81 * 0.2), rtol=1e-9
        )  # half of m (1 + e) v each
        np.testing.assert_allclose(run.q[:, 2], 0.0, atol=1e-12)


class TestTwelveContacts:
    def test_derives_only_what_it_reaches(self):
        """Of 3¹² = 531,441 modes the two named ones are derived, and what else a run meets, always the same way."""
        graph = fsm_dyn.compile("twelve_contacts", cache=False)
        assert set(graph.modes) == {"falling", "rolling"}
        simulator = fsm_dyn.Simulator(graph)
        run = simulator.run(4.0, strategy="compiled")
        assert simulator.extended_graph() is graph
        assert set(graph.modes) == set(run.modes)
        slow = {"x": 0.0, "y": 0.06, "vx": 0.3, "w": 5.0}
        runs = [simulator.run(2.0, initial=slow, strategy="compiled")]
        reached = simulator.extended_graph()
        assert set(reached.modes) == {"falling", "rolling", *runs[0].modes}
        assert 3 <= len(reached.modes) <= 6
        assert len(graph.modes) == 2
        again = fsm_dyn.compile("twelve_contacts", cache=False)
        runs.append(fsm_dyn.simulate(again, until=2.0, initial=slow, strategy="compiled"))
        np.testing.assert_array_equal(runs[1].t, runs[0].t)
        np.testing.assert_array_equal(runs[1].q, runs[0].q)
