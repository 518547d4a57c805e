"""How much of the restitution an impact may keep: the largest fraction that does not raise the energy."""

import numpy as np
import pytest


class Impact:
    """Plastic and full impulses of some rows, as the runtime takes them."""

    def __init__(self, runtime, plastic, full, before, work, base_work, response):
        self.runtime, self.base_work = runtime, base_work
        self.plastic, self.full, self.before, self.work = (
            np.array(each, float) for each in (plastic, full, before, work)
        )
        self.motions = {name: before + response @ forces for name, forces in (("0", plastic), ("1", full))}
        self.balance = runtime.struct(
            "impact_balance", before=self.before, base_work=base_work, work=self.work, tolerance=1e-12
        )

    def fraction(self):
        """The fraction that the runtime keeps."""
        return self.runtime.energy_consistent_fraction(
            self.balance, self.plastic, self.motions["0"], self.full, self.motions["1"]
        )

    def gain(self, part):
        """Twice the gain of energy at a part of the restitution, J."""
        forces = self.plastic + part * (self.full - self.plastic)
        motions = self.motions["0"] + part * (self.motions["1"] - self.motions["0"])
        return self.base_work + forces @ (motions + self.before + self.work)


@pytest.mark.parametrize("seed", range(200))
def test_the_fraction_is_the_largest_that_does_not_gain(runtime, seed):
    """Against the gain itself on a fine grid; of impulses that have no such fraction none is kept."""
    rng = np.random.default_rng([7, seed])
    n = int(rng.integers(1, 4))
    root = rng.normal(size=(n, n))
    impact = Impact(
        runtime, *rng.normal(size=(2, n)), rng.normal(size=n), rng.normal(size=n) * (seed % 2), -rng.uniform(0.0, 2.0),
        root @ root.T,
    )  # fmt: skip
    found = impact.fraction()
    gains = np.array([impact.gain(part) for part in np.linspace(0.0, 1.0, 2001)])
    if gains[-1] <= 0.0:
        assert found == 1.0
    elif gains[0] >= 0.0:
        assert found == 0.0
    else:
        assert 0.0 <= found <= 1.0
        assert abs(impact.gain(found)) <= 1e-9 * np.abs(gains).max()  # a root, to rounding
        assert np.all(gains[np.linspace(0.0, 1.0, 2001) > found + 1e-6] > 0.0)  # the last one: it is a parabola


def test_one_ball_keeps_its_restitution_up_to_one(runtime):
    """A ball at 1 m/s: with restitution e the impulse is (1 + e) m v, which gains energy from e = 1 on."""
    one = np.eye(1)
    for e, kept in ((0.0, 1.0), (0.5, 1.0), (1.0, 1.0), (1.25, 0.8), (4.0, 0.25)):
        impact = Impact(runtime, np.array([1.0]), np.array([1.0 + e]), np.array([-1.0]), np.zeros(1), 0.0, one)
        assert impact.fraction() == pytest.approx(kept, rel=1e-14)
