"""A mechanism's equations by SymPy's KanesMethod and ``lambdify(cse=True)``, which kernels are timed against.

The model's own text is read into frames and points of ``sympy.physics.mechanics``; all its speeds are independent ones
for KanesMethod, and rows are taken as derivatives, so that u̇ and the multipliers come from one numeric solution of the
whole system.  That is the quickest way to use it for mechanisms with loops.
"""

import operator

import numpy as np
import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.physics import mechanics as me

from fsm_dyn.language.elements import ForceLoad, GravityLoad, LawLoad, TorqueLoad
from fsm_dyn.language.expression_tree import fold
from fsm_dyn.language.expressions import parse
from fsm_dyn.language.memory import speed_definitions
from fsm_dyn.language.values import flat_parameters

TIME = me.dynamicsymbols._t
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow}


class KaneModel:
    """A mechanism as SymPy sees it, and its accelerations as a function of numbers.

    Attributes
    ----------
    q, u : list
        Functions of time, in the order of the package's own state (speeds of kinematic rows follow).
    """

    def __init__(self, mechanism, layout):
        self.mechanism = mechanism
        self.frames, self.points = {"N": me.ReferenceFrame("N")}, {"O": me.Point("O")}
        self.N = self.frames["N"]
        self.points["O"].set_vel(self.N, 0)
        self.q = list(me.dynamicsymbols(list(layout.q)))
        self.given = [sp.Symbol(name) for name in (*flat_parameters(mechanism), *layout.w)]
        self.names = dict(zip(layout.q, self.q, strict=True)) | {"t": TIME, "pi": sp.pi}
        self.names |= {symbol.name: symbol for symbol in self.given}
        self.turned = []  # Euler parameters, the symbols of their frame's spin, the frame and its parent
        self._build_frames()
        self._build_points()
        self._define_speeds(layout)
        self.kane = self._equations()
        self.function = self._lambdified()

    # -- the algebra of expressions, for ``fold`` -----------------------------------------------------------

    def read(self, text):
        return fold(parse(text), self)

    def number(self, node):
        return sp.Float(node.value) if node.value != int(node.value) else sp.Integer(int(node.value))

    def name(self, name):
        return self.names[name]

    def index(self, name, index):
        return self.names[f"{name}[{index}]"]

    def axis(self, frame, axis):
        return getattr(self.frame(frame), axis)

    def frame(self, name):
        body = self.mechanism.bodies.get(name)
        return self.frames[body.frame if body and body.frame else name]

    def unary(self, op, operand):
        return -operand if op == "-" else operand

    def binary(self, op, left, right):
        if op == "/" and isinstance(left, me.Vector):
            return left * (1 / right)
        return OPERATIONS[op](left, right)

    def call(self, function, arguments):
        named = [getattr(argument, "id", None) for argument in arguments]
        if function in ("dot", "cross"):
            return getattr(me, function)(*arguments)
        if function == "norm":
            return sp.sqrt(me.dot(arguments[0], arguments[0]))
        if function == "pos":
            return self.points[named[0]].pos_from(self.points[named[1] if len(named) > 1 else "O"])
        if function == "rate":
            return self.names[named[0]].diff(TIME)
        if function == "omega":
            return self.frame(named[0]).ang_vel_in(self.N)
        if function == "vel":
            return self.velocity(*named)
        return getattr(sp, function)(*arguments)

    def velocity(self, point, frame="N"):
        """Of a point, or of the point fixed in a frame that coincides with it."""
        if frame == "N" and point is not None:
            return self.points[point].pos_from(self.points["O"]).dt(self.N)
        frame = self.frame(frame)
        center = next(b.center for b in self.mechanism.bodies.values() if b.frame and self.frames[b.frame] == frame)
        arm = self.points[point].pos_from(self.points[center])
        return self.velocity(center) + me.cross(frame.ang_vel_in(self.N), arm)

    # -- geometry ------------------------------------------------------------------------------------------

    def _build_frames(self):
        for name, frame in self.mechanism.frames.items():
            here = self.frames[name] = me.ReferenceFrame(name)
            parent = self.frames[frame.parent]
            if frame.euler_names:
                group = [self.names[name] for name in frame.euler_names]
                spins = me.dynamicsymbols([f"{name}_spin_{axis}" for axis in "xyz"])
                here.orient_quaternion(parent, group)
                here.set_ang_vel(parent, spins[0] * here.x + spins[1] * here.y + spins[2] * here.z)
                self.turned.append((group, spins, (here, parent)))
                continue
            turns = frame.about_body_axes(frame.rotations)
            for k, (axis, angle) in enumerate(turns):
                last = k == len(turns) - 1
                after = here if last else me.ReferenceFrame(f"{name}_{k}")
                after.orient_axis(parent, getattr(parent, axis), self.read(angle))
                parent = after

    def _build_points(self):
        for name, point in self.mechanism.points.items():
            self.points[name] = self.points[point.origin].locatenew(name, self.read(point.at))

    # -- speeds and equations ------------------------------------------------------------------------------

    def _define_speeds(self, layout):
        kinematic = [c for c in self.mechanism.constraints.values() if c.kinematic]
        texts = [*speed_definitions(self.mechanism).values(), *(c.expression for c in kinematic)]
        self.u = list(me.dynamicsymbols([*layout.u, *(f"speed_{c.name}" for c in kinematic)]))
        self.held = list(range(len(layout.u), len(self.u)))
        euler = {e for group, _, _ in self.turned for e in group}
        plain = [q.diff(TIME) for q in self.q if q not in euler]
        unknowns = [*plain, *(spin for _, spins, _ in self.turned for spin in spins)]
        definitions = []
        for u, text in zip(self.u, texts, strict=True):
            value = self.names[u.func.__name__] = self.read(text)
            definitions.append(value - u)
        definitions = sp.Matrix(definitions)
        Y = definitions.jacobian(unknowns)
        values = Y.LUsolve(-me.msubs(definitions, dict.fromkeys(unknowns, 0)))
        self.rates = dict(zip(unknowns, values, strict=True))
        for (e0, e1, e2, e3), spins, place in self.turned:
            x, y, z = (self.rates[spin] for spin in spins)
            changes = [
                -e1 * x - e2 * y - e3 * z,
                e0 * x - e3 * y + e2 * z,
                e3 * x + e0 * y - e1 * z,
                e1 * y - e2 * x + e0 * z,
            ]
            self.rates |= {e.diff(TIME): change / 2 for e, change in zip((e0, e1, e2, e3), changes, strict=True)}
            place[0].set_ang_vel(place[1], x * place[0].x + y * place[0].y + z * place[0].z)

    def _equations(self):
        bodies, loads = [], []
        gravity = sum(
            (self.read(load.value) for load in self.mechanism.loads if isinstance(load, GravityLoad)), me.Vector(0)
        )
        for name, body in self.mechanism.bodies.items():
            center, mass = self.points[body.center], self.read(body.mass)
            center.set_vel(self.N, self._in_speeds(self.velocity(body.center)))
            loads.append((center, mass * gravity))
            if body.frame is None or not body.inertia:
                bodies.append(me.Particle(name, center, mass))
                continue
            entries = [
                self.read(body.inertia[key]) if key in body.inertia else 0
                for key in ("xx", "yy", "zz", "xy", "yz", "xz")
            ]
            frame = self.frames[body.frame]
            about = self.points[body.about] if body.about else center
            bodies.append(me.RigidBody(name, center, frame, mass, (me.inertia(frame, *entries), about)))
        self.along = []  # (coordinate, force): forces along coordinates, which KanesMethod has no word for
        for load in self.mechanism.loads:
            loads += self._load(load)
        kane = me.KanesMethod(self.N, self.q, self.u, [q.diff(TIME) - self.rates[q.diff(TIME)] for q in self.q])
        kane.kanes_equations(bodies, loads)
        return kane

    def _in_speeds(self, vector):
        return me.msubs(vector, self.rates)

    def _load(self, load):
        if isinstance(load, ForceLoad):
            point = self.points[load.at]
            point.set_vel(self.N, self._in_speeds(self.velocity(load.at)))
            return [(point, self.read(load.value))]
        if isinstance(load, TorqueLoad):
            torque = self.read(load.value)
            back = [] if load.reaction in (None, "N") else [(self.frame(load.reaction), -torque)]
            return [(self.frame(load.on), torque), *back]
        if isinstance(load, GravityLoad):
            return []
        if load.points:
            first, second = (self.points[name] for name in load.points)
            for name in load.points:
                self.points[name].set_vel(self.N, self._in_speeds(self.velocity(name)))
            arm = first.pos_from(second)
            length = sp.sqrt(me.dot(arm, arm))
            force = self._along(load, length, me.dot(arm, arm.dt(self.N)) / length)
            return [(first, force / length * arm), (second, -force / length * arm)]
        value = self.read(load.coordinate)
        force = self._along(load, value, value.diff(TIME))
        self.along.append((value, force))
        return []

    def _along(self, load, value, rate):
        if isinstance(load, LawLoad):
            return self.read(load.value)
        number = {"stiffness": 0, "free length": 0, "damping": 0}
        number |= {word: self.read(text) for word, text in load.coefficients}
        return -number["stiffness"] * (value - number["free length"]) - number["damping"] * rate

    def _lambdified(self):
        """Return a function of t, q, u, given numbers: M, f, the rows' A and gamma."""
        u_dot = [u.diff(TIME) for u in self.u]
        forcing = self.kane.forcing
        for value, force in self.along:
            partials = sp.Matrix([me.msubs(value.diff(TIME), self.rates)]).jacobian(self.u).T
            forcing += partials * force
        rows = [c for c in self.mechanism.constraints.values() if not c.kinematic and not self._idle(c)]
        residuals = [self.read(c.expression) for c in rows]
        speeds = [r.diff(TIME) if c.kind == "position" else r for c, r in zip(rows, residuals, strict=True)]
        speeds += [self.u[k] for k in self.held]
        speeds = me.msubs(sp.Matrix(speeds), self.rates) if speeds else sp.zeros(0, 1)
        A = speeds.jacobian(self.u) if speeds else sp.zeros(0, len(self.u))
        gamma = me.msubs(speeds.diff(TIME), dict.fromkeys(u_dot, 0)) if speeds else sp.zeros(0, 1)
        outputs = [me.msubs(m, self.rates) for m in (self.kane.mass_matrix, forcing, A, gamma)]
        plain = {x: sp.Dummy() for x in (*self.q, *self.u)}
        outputs = [me.msubs(m, plain) for m in outputs]
        return sp.lambdify([TIME, *plain.values(), *self.given], outputs, cse=True)

    def _idle(self, constraint):
        """Whether a joint's row holds in a plane mechanism whatever moves."""
        return bool(constraint.joint) and not sp.simplify(self.read(constraint.expression)).atoms(AppliedUndef)

    def accelerations(self, t, q, u, given):
        """u̇ of all speeds, from one solution of the whole system."""
        M, f, A, gamma = self.function(t, *q, *u, *np.zeros(len(self.held)), *given)
        n, m = len(M), len(A)
        if not m:
            return np.linalg.solve(M, f[:, 0])
        whole = np.zeros((n + m, n + m))
        whole[:n, :n], whole[:n, n:], whole[n:, :n] = M, -A.T, A
        return np.linalg.solve(whole, np.concatenate([f[:, 0], -gamma[:, 0]]))[:n]
