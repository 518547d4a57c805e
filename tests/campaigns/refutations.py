"""Search for configurations that refute what the geometry calls impossible, by a separate optimiser.

Nothing of the proofs or of the search for configurations is used: what contact states ask of a configuration is
written here again, from the laws of the contacts, and many Levenberg-Marquardt searches at once minimise by how much it
is missed.
"""

import zlib
from functools import cache

import numpy as np

import fsm_dyn
from fsm_dyn.derive.embedding import ActiveSet
from fsm_dyn.language.values import coordinate_bounds
from fsm_dyn.programs.traversal import support

# all shipped models of which something is proved impossible; the clocks take minutes to assess
MODELS = (
    "box_on_table", "gripper", "magnetic_latch", "push_button", "toggle_switch", "latch_door", "twelve_contacts",
    "cart_on_ramp", "piano_action_simple", "geneva_drive", "seat_belt_reel", "piano_action", "escapement_anchor",
    "escapement_deadbeat",
)  # fmt: skip
STARTS = 48  # searches for each verdict
STEPS = 60
DIFFERENCE = 1e-7
PROVED = 1e-6  # own lengths by which a proof misses its conditions at least
SPEEDS = 100.0  # largest speeds with which searches for held contacts begin, own units


class Conditions:
    """What contacts in certain states ask of the arguments of the gaps: how much of it is missed, in own lengths."""

    def __init__(self, graph, states, held):
        automaton, self.held = graph.automaton, held
        self.automaton, self.layout = automaton, automaton.terms.layout
        layout, names = self.layout, [contact.name for contact in automaton.contacts]
        self.scale = automaton.units.scales.length * automaton.units.rows
        self.length = automaton.units.scales.length
        self.parameters = graph.parameters
        closed = {names.index(name): shut for name, shut in states.items()}
        self.zero = [r for r, row in enumerate(automaton.rows) if row.role == "position" and row.positional]
        self.low, self.high, self.within = [], [], []
        for k, contact in enumerate(automaton.contacts):
            row, law = contact.normal_row, contact.contact_law
            if row < 0 or not automaton.rows[row].positional or contact.bilateral or law.switched:
                continue
            ends = contact.bounded_face or contact.outlined or contact.ends[0] >= 0
            if closed.get(k):
                # pressed in, or touching within the ends of the face
                (self.high if law.compliant else self.zero).append(row)
                if ends and law.rigid:
                    self.within.append(k)
            # without damping, what is pressed in is not open; a rigid contact is never penetrated where it has a face
            elif not ends and not contact.gated and (law.rigid or (k in closed and not contact.lossy)):
                self.low.append(row)
        self.zero += [automaton.contacts[k].normal_row for k, shut in closed.items()
                      if shut and automaton.contacts[k].contact_law.switched]  # fmt: skip
        codes = [1 if k in closed else contact.codes[0] for k, contact in enumerate(automaton.contacts)]
        self.rows = list(ActiveSet.of(automaton.system, codes).rows) if held else []
        bounds = coordinate_bounds(automaton.mechanism, graph.values)
        self.bounded = [i for i, name in enumerate(layout.q) if name in bounds]
        self.bounds = np.array([bounds[layout.q[i]] for i in self.bounded]).reshape(-1, 2)
        self.n_q, self.n_x = len(layout.q), layout.n_x
        residuals = automaton.terms.graph()[2]["residual"][[*self.zero, *self.low, *self.high]]
        moved = {symbol.name for symbol in support(residuals)}
        moving = set() if held else {*layout.w, *layout.memory} & moved
        self.inputs = [i for i, name in enumerate(layout.c) if name in moving]
        self.timed = "t" in moved and not held
        self.units = np.concatenate([automaton.units.q, automaton.units.u if held else []])
        self.count = len(self.units) + len(self.inputs) + self.timed

    def missed(self, z):
        """Return what is missed at arguments (n, count) in own units, shape (n, conditions)."""
        x = np.zeros((len(z), self.n_x))
        states = z[:, : len(self.units)] * self.units
        x[:, : states.shape[1]] = states
        context = np.zeros((len(z), self.layout.n_c))
        context[:, : len(self.parameters)] = self.parameters
        context[:, self.inputs] = z[:, len(self.units) : len(self.units) + len(self.inputs)]
        t = np.abs(z[:, -1]) if self.timed else np.zeros(len(z))
        with np.errstate(all="ignore"):
            found = self.automaton.terms.evaluate(t, x, context)
        gaps = found["residual"] / self.scale
        q = states[:, self.bounded]
        unit = self.automaton.units.q[self.bounded]
        parts = [
            gaps[:, self.zero], np.minimum(gaps[:, self.low], 0.0), np.maximum(gaps[:, self.high], 0.0),
            np.minimum(found["reach"][:, self.within] / self.length, 0.0),
            np.minimum((q - self.bounds[:, 0]) / unit, 0.0), np.maximum((q - self.bounds[:, 1]) / unit, 0.0),
        ]  # fmt: skip
        if self.held:
            A, u = found["A"][:, self.rows, : len(self.layout.u)], x[:, self.n_q :]
            slips = np.einsum("nrk,nk->nr", A, u) + found["b"][:, self.rows]
            parts.append(slips / (self.automaton.units.speed * self.automaton.units.rows[self.rows]))
        missed = np.concatenate(parts, axis=1)
        return np.where(np.isfinite(missed), missed, 1e3)

    def starts(self, rng, known):
        """Return arguments to begin from: around what is known, and far from it."""
        n, q = STARTS, np.zeros((STARTS, self.count))
        for k in range(n):
            base = known[rng.integers(len(known))] if len(known) and k % 2 else np.zeros(self.n_q)
            q[k, : self.n_q] = base + rng.normal(size=self.n_q) * 10.0 ** rng.uniform(-3.0, 0.7)
            q[k, self.n_q :] = rng.normal(size=self.count - self.n_q) * 10.0 ** rng.uniform(-2.0, np.log10(SPEEDS))
        if len(self.bounded):
            unit = self.automaton.units.q[self.bounded, None]
            q[:, self.bounded] = np.clip(q[:, self.bounded], *(self.bounds / unit).T)
        return q


def nearest(conditions, z):
    """Return the least of what is missed at most, and the arguments there: damped steps from all starts."""
    n, k = z.shape
    damping = np.full(n, 1e-2)
    values = conditions.missed(z)
    for _ in range(STEPS):
        shifted = np.repeat(z[:, None], k, axis=1) + DIFFERENCE * np.eye(k)
        jacobian = (conditions.missed(shifted.reshape(-1, k)).reshape(n, k, -1) - values[:, None]) / DIFFERENCE
        square = np.einsum("nim,njm->nij", jacobian, jacobian)
        slope = np.einsum("nim,nm->ni", jacobian, values)
        size = np.trace(square, axis1=1, axis2=2) / k + 1e-12
        step = -np.linalg.solve(square + (damping * size)[:, None, None] * np.eye(k), slope[..., None])[..., 0]
        step *= np.minimum(1.0, 3.0 / np.maximum(np.abs(step).max(axis=1), 1e-300))[:, None]
        there = conditions.missed(z + step)
        better = (there**2).sum(axis=1) < (values**2).sum(axis=1)
        z = np.where(better[:, None], z + step, z)
        values = np.where(better[:, None], there, values)
        damping = np.clip(np.where(better, 0.2 * damping, 8.0 * damping), 1e-12, 1e6)
        if (np.abs(values).max(axis=1) < 0.5 * PROVED).any():
            break
    most = np.abs(values).max(axis=1)
    return float(most.min()), z[int(most.argmin())]


@cache
def assessed(name):
    """A compiled model with its verdicts, once a process."""
    graph = fsm_dyn.compile(name)
    return graph, graph.assess_geometry()


def refuted(graph, found, rng, share=1.0):
    """Return what was refuted of the impossible verdicts, as text, and how many were tried; of a share of them."""
    impossible = [item for item in (*found.verdicts, *found.held_contacts) if item.verdict == "impossible"]
    impossible += [item for item in found.modes.values() if item.verdict == "impossible"]
    chosen = [item for item in impossible if rng.random() < share] or impossible[:1]
    q_unit = graph.automaton.units.q
    known = np.array([[item[name] for name in graph.automaton.terms.layout.q] for item in found.configurations])
    known = known.reshape(-1, len(q_unit)) / q_unit
    complaints = []
    for item in chosen:
        conditions = Conditions(graph, dict(zip(item.contacts, item.closed, strict=True)), item.without_sliding)
        least, z = nearest(conditions, conditions.starts(rng, known))
        if least < 0.5 * PROVED:
            complaints.append(f"'{item.states}' is possible: missed by {least:.3g} at {z.tolist()}")
    return complaints, len(chosen)


def case(seed, share=0.2):
    """Random searches against a share of the impossible verdicts of one model."""
    name = MODELS[seed % len(MODELS)]
    graph, found = assessed(name)
    complaints, tried = refuted(graph, found, np.random.default_rng([seed, zlib.crc32(name.encode())]), share)
    return {
        "model": name, "ok": not complaints, "reason": complaints[0] if complaints else "none refuted",
        "tried": tried, "wrong": len(complaints),
    }  # fmt: skip
