"""Where a wall begins to chatter: a simulated device in the live loop, and the limit of the theory.

``python mechanisms/wall_chatter.py FOLDER`` writes the picture of docs/how_to/passivity.md.

The device moves exactly between two ticks while the force is held.  The wall is the coupler of a model that does not
give way: the latched door of ``latch`` both ways, the resting ball of ``bouncing_ball`` one way, pressed by a weight.
Everything passes through the compiled tick of a live run, without processes and clocks.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.linalg import expm

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.devices.emulators.emulated_device import EmulatedHandle
from fsm_dyn.draw import svg as palette
from fsm_dyn.live.controller import RunController
from fsm_dyn.live.device_map import Limits, add_couplers
from fsm_dyn.live.driver_protocol import Sample
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.plot import style

PERIOD = 1e-3  # s
MASS = 0.1  # kg
KICK = 0.02  # m/s
PRESS = 2.0  # N, on the wall that holds one way only
TICKS = 2400
STILL = 300  # ticks
MOST = 30.0
WINDOW = 300  # ticks; several swings
FREE = {"force": 1e9, "slew": 1e12, "velocity": 1e3, "ramp": 0.0}  # nothing but the wall is to act


class Wall:
    """A wall in the live loop, with a handle that is free."""

    def __init__(self, one_sided: bool = False, period: float = PERIOD) -> None:
        name, self.axis = ("bouncing_ball", "hand_1") if one_sided else ("latch", "handle_1")
        initial: dict[str, float | str] = {"mode": "resting", "y": 0.0} if one_sided else {"mode": "latched"}
        self.press = PRESS if one_sided else 0.0
        self.period = period
        graph = fsm_dyn.compile(add_couplers(fsm_dyn.load(name)))
        self.stepper = LiveStepper(graph, 1, period, limits=Limits(**FREE), initial=initial)

    def swing(
        self, stiffness: float, damping: float, device: float, mass: float = MASS, ticks: int = TICKS, hand: float = 0.0
    ) -> np.ndarray:
        """Energy (J) of a swing in the wall at each tick, up to where it is much more than at first.

        The rate of the position is its backward difference; ``hand`` is a spring that holds the device, N/m.
        """
        stepper, T = self.stepper, self.period
        stepper.set_parameters({f"{self.axis}_stiffness": stiffness, f"{self.axis}_damping": damping})
        stepper.reset()
        controller = RunController(stepper, lambda event: None)
        rest = -self.press / stiffness
        handle = EmulatedHandle(mass, device, hand_stiffness=hand, target=rest)
        # still until jumps since the last swing are forgotten; a jump without a velocity is that of a device that fails
        steps = math.ceil(-rest / (KICK * T))
        path = [*STILL * [(0.0, 0.0)], *((rest * k / steps, rest / steps / T) for k in range(1, steps + 1))]
        for k, (x, velocity) in enumerate(path):
            controller.tick(Sample(0.0, k, (x,), (velocity,)))
        handle.position, handle.velocity = rest, KICK
        if hand:  # a swing at half the rate that begins in the middle would be seen there ever after
            handle.position, handle.velocity = rest + KICK * (mass / hand) ** 0.5, 0.0
        before, energies = rest, np.zeros(ticks)
        for i in range(ticks):
            x = handle.position
            controller.tick(Sample(0.0, len(path) + i, (x,), ((x - before) / T,)))
            before = x
            handle.force = float(stepper.tick_data.force[0]) - self.press
            energies[i] = 0.5 * mass * handle.velocity**2 + 0.5 * (stiffness + hand) * (x - rest) ** 2
            if energies[i] > MOST * energies[0]:
                return energies[: i + 1]
            handle.advance(T)
        return energies

    def buzzes(self, stiffness: float, damping: float, device: float, mass: float = MASS, hand: float = 0.0) -> bool:
        """Whether a swing grows."""
        energies = self.swing(stiffness, damping, device, mass, hand=hand)
        return len(energies) < TICKS or bool(energies[-WINDOW:].max() > energies[WINDOW : 2 * WINDOW].max())

    def boundary(self, damping: float, device: float, mass: float = MASS, hand: float = 0.0, steps: int = 9) -> float:
        """Stiffness (N/m) at which swings begin to grow, to a part in 2^steps of what is expected."""
        low, high = 0.0, 2.0 * expected(device, damping, mass, self.period, hand)
        for _ in range(steps):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.buzzes(middle, damping, device, mass, hand) else (middle, high)
        return 0.5 * (low + high)


def worst_spring(mass: float = MASS, T: float = PERIOD) -> float:
    """Stiffness (N/m) of a hand that swings with the device at half the rate, where damping by differences adds."""
    return float(mass * (np.pi / T) ** 2)


def expected(device: float, damping: float, mass: float = MASS, T: float = PERIOD, hand: float = 0.0) -> float:
    """The same (N/m) without the package: where the difference equation of handle and wall has a root on the circle."""
    held = expm(T * np.array([[0.0, 1.0, 0.0], [-hand / mass, -device / mass, 1.0 / mass], [0.0, 0.0, 0.0]]))
    low, high = 0.0, 20.0 * (device + damping) / T
    for _ in range(60):
        K = 0.5 * (low + high)
        now, past = K + damping / T, -damping / T  # of x_n and of x_{n-1}
        matrix = np.zeros((3, 3))
        matrix[:2, :2], matrix[2, 0] = held[:2, :2], 1.0
        matrix[:2, 0] -= now * held[:2, 2]
        matrix[:2, 2] -= past * held[:2, 2]
        stable = np.abs(np.linalg.eigvals(matrix)).max() < 1.0
        low, high = (K, high) if stable else (low, K)
    return low


def picture() -> Figure:
    """Draw the boundary against the device's damping, and against the wall's."""
    both, one = Wall(), Wall(one_sided=True)
    devices, dampings = np.array([0.25, 0.5, 1.0, 1.5, 2.0]), np.array([0.0, 0.2, 0.4, 0.6, 0.8])
    with style.settings():
        drawn = style.new_figure(8.6, 3.8)
        left, right = drawn.subplots(1, 2)
        left.plot(devices, 2e-3 * devices / PERIOD, color=palette.LINES[0], label="passive below: 2b/T")
        for k, (wall, label) in enumerate(((both, "bilateral"), (one, "unilateral, pressed"))):
            found = [wall.boundary(0.0, b) for b in devices]
            left.plot(
                devices, 1e-3 * np.array(found), "o+"[k], color=palette.INK, ms=5 + 4 * k, label=label, mfc="none"
            )
            found = [wall.boundary(B, 1.0) for B in dampings]
            right.plot(dampings, 1e-3 * np.array(found), "o+"[k], color=palette.INK, ms=5 + 4 * k, mfc="none")
        fine = np.linspace(0.0, 0.9, 40)
        right.plot(fine, 2e-3 * (1.0 - fine) / PERIOD, color=palette.LINES[0], label="passive below: 2(b - B)/T")
        curve = [1e-3 * expected(1.0, B) for B in fine]
        right.plot(fine, curve, "--", color=palette.LINES[1], label="no hand: a root on the circle")
        curve = [1e-3 * expected(1.0, B, hand=worst_spring()) for B in fine]
        right.plot(fine, curve, ":", color=palette.LINES[2], label="held by a spring, 500 Hz: likewise")
        found = [both.boundary(B, 1.0, hand=worst_spring()) for B in dampings]
        right.plot(dampings, 1e-3 * np.array(found), "s", color=palette.INK, ms=5, mfc="none")
        left.set_xlabel("damping b of the device, N s/m")
        right.set_xlabel("damping B of the wall, N s/m (b = 1 N s/m)")
        left.set_ylabel("stiffness at which it begins to buzz, N/mm")
        left.set_title("B = 0", loc="left", fontsize=9)
        for axes in (left, right):
            axes.grid(color="#EEEEEE", lw=0.8)
            axes.legend(loc="upper left")
            axes.set_ylim(0.0, 5.0)
        drawn.suptitle("A wall at 1 kHz, a device of 0.1 kg", x=0.06, ha="left", fontweight="bold", fontsize=10)
        drawn.tight_layout()
    return drawn


def main(folder: str = ".") -> None:
    """Write the picture and the figures behind it."""
    both = Wall()
    for b in (0.25, 1.0, 2.0):
        found = both.boundary(0.0, b)
        print(f"b = {b:4.2f} N s/m, B = 0: buzzes from {found:6.1f} N/m on, {found / (2 * b / PERIOD):.4f} of 2b/T")
    plot.save(picture(), Path(folder) / "wall_chatter.png")


if __name__ == "__main__":
    main(*sys.argv[1:])
