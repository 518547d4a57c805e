"""Builds the sketch and the simulated board, runs them, and tells what came over the line and out of the pins."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import fsm_dyn.devices
from fsm_dyn.devices import hapkit as hf

SKETCH = Path(fsm_dyn.devices.__file__).parent / "firmware" / "hapkit"
CORE = Path("/usr/share/arduino/hardware/arduino/avr")
UNUSED = {"CDC", "IPAddress", "PluggableUSB", "Tone", "USBCore"}
FLAGS = [
    "-mmcu=atmega328p", "-Os", "-flto", "-ffunction-sections", "-fdata-sections", "-DF_CPU=16000000UL",
    "-DARDUINO=10807", "-DDECIMAL_DIG=9", f"-I{CORE}/cores/arduino", f"-I{CORE}/variants/standard", f"-I{SKETCH}",
]  # fmt: skip
CPLUSPLUS = ["-std=gnu++11", "-fpermissive", "-fno-exceptions", "-fno-threadsafe-statics"]
ZEROED = 0.01  # s, by when a host has said where zero is
MIDDLE = 22e-6  # s from where a sample's first reading begins to the middle of its four


def missing():
    """What is not there of what this needs."""
    return [name for name in ("avr-gcc", "avr-g++") if shutil.which(name) is None] + [
        str(path) for path in (CORE, Path("/usr/include/simavr/sim_avr.h")) if not path.exists()
    ]


def built_sketch(folder):
    """Compile the sketch and the Arduino core; the sketch's own warnings are errors."""
    objects = []
    for source in sorted((CORE / "cores" / "arduino").glob("*.c*")):
        if source.stem not in UNUSED:
            objects.append(folder / f"{source.name}.o")
            compiler = ["avr-gcc", "-std=gnu11"] if source.suffix == ".c" else ["avr-g++", *CPLUSPLUS]
            subprocess.run([*compiler, *FLAGS, "-w", "-c", str(source), "-o", str(objects[-1])], check=True)
    sketch = folder / "sketch.cpp"
    sketch.write_text("#include <Arduino.h>\n" + (SKETCH / "hapkit.ino").read_text())
    elf = folder / "hapkit.elf"
    strict = ["-Wall", "-Wextra", "-Werror"]
    subprocess.run(
        [
            "avr-g++",
            *CPLUSPLUS,
            *FLAGS,
            *strict,
            str(sketch),
            *map(str, objects),
            "-Wl,--gc-sections",
            "-o",
            str(elf),
            "-lm",
        ],
        check=True,
    )
    return elf


def built_board(folder):
    """Compile the simulated board."""
    program = folder / "board"
    source = Path(__file__).with_name("board.c")
    strict = ["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-O2"]
    subprocess.run(["gcc", *strict, str(source), "-o", str(program), "-lsimavr", "-lelf", "-lm"], check=True)
    return program


@dataclass
class Magnet:
    """A reading that begins at ``low``, rises over ``span`` counts, falls in ``slew`` s, and is off by ``noise``."""

    low: float = 48.0
    span: float = 923.63
    noise: float = 0.0
    slew: float = 30e-6


@dataclass
class Seen:
    """What a board did; times in s from its reset.

    Attributes
    ----------
    bodies : list
        Pairs of a time and a frame from the board.
    places : numpy.ndarray, shape (n, 2)
        Where the magnet was, in counts, when a sample was begun.
    duties, levels : numpy.ndarray, shape (n, 2)
        Of the motor's pins.
    prescaler : int
        Bits of timer 0.
    """

    bodies: list
    places: np.ndarray
    duties: np.ndarray
    levels: np.ndarray
    prescaler: int

    def samples(self):
        """Times at which samples were begun, and the samples."""
        found = [(t, body) for t, body in self.bodies if isinstance(body, hf.SampleBody)]
        begun = self.places[:, 0][np.searchsorted(self.places[:, 0], [t for t, _ in found]) - 1]
        return begun, [body for _, body in found]

    def errors(self):
        """Position less that of the magnet, in counts, but for a constant, once zero was set; and when."""
        begun, samples = self.samples()
        set_at = np.searchsorted(begun, ZEROED)
        begun, samples = begun[set_at:], samples[set_at:]
        times, places = self.places.T
        true = np.interp(begun + MIDDLE, times, places)
        off = np.array([body.counts for body in samples]) - true
        at_rest = begun < 0.05
        return off - off[at_rest].mean(), begun


def run(program, elf, seconds, said, magnet=None, seed=1, eeprom="/dev/null"):
    """Run a board; ``said`` has pairs of a time, s, and the bytes that a host sends then."""
    magnet = magnet or Magnet()
    lines = "".join(f"{1e6 * t:.1f} {data.hex()}\n" for t, data in sorted(said))
    numbers = (magnet.low, magnet.span, magnet.noise, magnet.slew, seed)
    done = subprocess.run(
        [str(program), str(elf), str(seconds), *map(str, numbers), str(eeprom)],
        input=lines, capture_output=True, text=True, check=True,
    )  # fmt: skip
    events = {letter: [] for letter in "uxpdt"}
    for line in done.stdout.splitlines():
        letter, _, rest = line.partition(" ")
        if letter in events:
            t, value = rest.split()
            events[letter].append((1e-6 * float(t), float(value)))
    reader, bodies = hf.PacketReader(), []
    for t, byte in events["u"]:
        bodies += [(t, body) for body in reader.feed(bytes((int(byte),)))]
    assert reader.dropped <= 1, "at a reset a frame may be cut short"
    table = {letter: np.array(found).reshape(-1, 2) for letter, found in events.items()}
    return Seen(bodies, table["x"], table["p"], table["d"], int(events["t"][-1][1]))
