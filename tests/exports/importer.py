"""An importer of units for model exchange: it integrates by DOP853 and locates the zeros of event indicators."""

import ctypes
import itertools

import fmpy
import numpy as np
from fmpy.fmi2 import FMU2Model, FMU2Slave, defaultCallbacks, fmi2CallbackFunctions, fmi2CallbackLoggerTYPE
from fmpy.fmi3 import FMU3Model, FMU3Slave
from scipy.integrate import DOP853

RTOL, ATOL = 1e-12, 1e-14
FIRST = 1e-8  # s, of the steps after an event, as a flight may be short
PARTS = 8  # of a step, in each of which an indicator may change its sign


def pointer(values):
    """Return what FMPy passes for an array."""
    return values.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


#: FMPy's own logger calls that of the last simulation, which no longer exists.
QUIET = fmi2CallbackFunctions(
    fmi2CallbackLoggerTYPE(lambda *_: None), defaultCallbacks.allocateMemory, defaultCallbacks.freeMemory
)


def named_as_in_3(it):
    """Give a unit for FMI 2.0 the names of FMI 3.0, and start it."""
    it.updateDiscreteStates, it.getContinuousStateDerivatives = it.newDiscreteStates, it.getDerivatives
    it.getInt64, it.getFloat64 = it.getInteger, it.getReal
    it.instantiate(callbacks=QUIET)
    it.setupExperiment(startTime=0.0)


def opened(path, folder, part, kinds):
    """Return an instance of a unit by the class of its version, its description, and whether it is of FMI 3.0."""
    description = fmpy.read_model_description(str(path))
    is_3 = description.fmiVersion.startswith("3")
    it = kinds[is_3](
        guid=description.guid, unzipDirectory=fmpy.extract(str(path), unzipdir=str(folder)),
        modelIdentifier=getattr(description, part).modelIdentifier, instanceName="one",
    )  # fmt: skip
    return it, description, is_3


def instance(path, folder):
    """Return a unit for model exchange, and the value references of its variables."""
    it, description, is_3 = opened(path, folder, "modelExchange", (FMU2Model, FMU3Model))
    if is_3:
        it.instantiate()
    else:
        named_as_in_3(it)
    return it, {v.name: v.valueReference for v in description.modelVariables}, description


def co_simulation(path, folder):
    """Return a unit for co-simulation that is not initialised, with the names of FMI 2.0, and its variables by name."""
    it, description, is_3 = opened(path, folder, "coSimulation", (FMU2Slave, FMU3Slave))
    if is_3:
        it.instantiate()
        it.getReal, it.setReal = it.getFloat64, it.setFloat64
    else:
        it.instantiate(callbacks=QUIET)
        it.setupExperiment(startTime=0.0)
    return it, {v.name: v for v in description.modelVariables}


class Importer:
    """One run of a unit from time 0 on.

    Attributes
    ----------
    events : list of (time, mode before, mode after)
        Transitions between modes, and those in which a state jumped, in s and values of the enumeration.
    times : list of float
        Ends of the steps, s.
    states : list of float64 array
    phases : list of int
        At the ends of the steps, values of the enumeration; of a unit with phases.
    """

    def __init__(self, path, folder, longest=0.02):
        self.it, self.known, description = instance(path, folder)
        self.n, self.n_z = description.numberOfContinuousStates, description.numberOfEventIndicators
        self.outputs = [v.valueReference for v in description.modelVariables
                        if v.causality == "output" and v.type in ("Float64", "Real")]  # fmt: skip
        self.longest, self.events, self.times, self.states, self.phases = longest, [], [], [], []
        self.it.enterInitializationMode()
        self.it.exitInitializationMode()
        self.update(0.0)

    @property
    def mode(self):
        return self.it.getInt64([self.known["mode"]])[0]

    def update(self, time):
        """Resolve what happens in event mode, see that one more call changes nothing, and continue."""
        again = True
        while again:
            before = self.mode
            again, self.ended, _, jumped, defined, when = self.it.updateDiscreteStates()
            if time > 0.0 and (jumped or self.mode != before):
                self.events.append((time, before, self.mode))
        found = self.values()
        assert self.it.updateDiscreteStates() == (False, self.ended, False, False, defined, when)
        assert self.values() == found
        self.next = when if defined else np.inf
        if not self.ended:
            self.it.enterContinuousTimeMode()

    def values(self):
        """Return the bytes of states, derivatives and indicators, and the outputs: integers and numbers."""
        arrays = np.empty(self.n), np.empty(self.n), np.empty(self.n_z)
        self.it.getContinuousStates(pointer(arrays[0]), self.n)
        self.it.getContinuousStateDerivatives(pointer(arrays[1]), self.n)
        self.it.getEventIndicators(pointer(arrays[2]), self.n_z)
        whole = self.it.getInt64([self.known[name] for name in self.known if name.startswith(("mode", "contact."))])
        return [x.tobytes() for x in arrays], whole, self.it.getFloat64(self.outputs)

    def place(self, time, x):
        self.it.setTime(time)
        kept = np.ascontiguousarray(x)
        self.it.setContinuousStates(pointer(kept), self.n)

    def rates(self, time, x):
        self.place(time, x)
        out = np.empty(self.n)
        self.it.getContinuousStateDerivatives(pointer(out), self.n)
        return out

    def indicators(self, time, x):
        self.place(time, x)
        out = np.empty(self.n_z)
        self.it.getEventIndicators(pointer(out), self.n_z)
        return out

    def first_zero(self, begin, end, state):
        """Return the first time in a step at which an indicator has changed its sign, or None."""
        at = np.linspace(begin, end, PARTS + 1)
        values = np.array([self.indicators(t, state(t)) for t in at])
        for k in range(PARTS):
            changed = np.flatnonzero((values[k] > 0.0) != (values[k + 1] > 0.0))
            if changed.size:
                return min(self.located(j, at[k], at[k + 1], state) for j in changed)
        return None

    def located(self, j, low, high, state):
        """Return the zero of one indicator, at the side behind it."""
        before = self.indicators(low, state(low))[j] > 0.0
        while high - low > 4e-16 * max(1.0, high):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            if (self.indicators(middle, state(middle))[j] > 0.0) == before:
                low = middle
            else:
                high = middle
        return high

    def run(self, until):
        """Run to a time, s, or to the end that the unit asks for."""
        time, x = 0.0, np.empty(self.n)
        while time < until and not self.ended:
            self.it.getContinuousStates(pointer(x), self.n)
            target = min(until, self.next)
            solver = DOP853(
                self.rates,
                time,
                x.copy(),
                target,
                rtol=RTOL,
                atol=ATOL,
                max_step=self.longest,
                first_step=min(FIRST, target - time),
            )
            zero, due = None, False
            while solver.status == "running" and zero is None:
                if (message := solver.step()) is not None:
                    raise AssertionError(message)
                state = solver.dense_output()
                zero = self.first_zero(solver.t_old, solver.t, state)
                time, x = (solver.t, solver.y) if zero is None else (zero, state(zero))
                self.place(time, x)
                self.times.append(time)
                self.states.append(np.array(x))
                due, _ = self.it.completedIntegratorStep()
                if "phase" in self.known:
                    self.phases += self.it.getInt64([self.known["phase"]])
                if due:
                    break
            if due or zero is not None or time >= self.next:
                self.it.enterEventMode()
                self.update(time)
        return self


def compare(importer, path, run, accuracy, until=np.inf):
    """Run an importer as long as our run, or until a time, s, and compare modes and event times, s.

    One call of event mode makes all transitions of an instant, so of ours those at one time are taken together.  An
    importer sees no slip that reverses: the mode stays, and no state jumps.  Contacts of a Zeno sequence close at once.
    """
    end = min(until, float(run.t[-1]))
    events = importer.run(end).events
    seen = [x for x in run.transitions if x.source != x.target or (x.u_before != x.u_after).any()]
    instants = [list(group) for time, group in itertools.groupby(seen, lambda x: x.time) if 0.0 < time < end]
    names = [item.name for item in fmpy.read_model_description(str(path)).typeDefinitions[0].items]
    own = [(str(made[0].source), str(made[-1].target)) for made in instants]
    assert [(names[a], names[b]) for _, a, b in events] == own
    for (time, _, _), made in zip(events, instants, strict=True):
        early = made[0].time - time
        is_zeno = any("Zeno" in str(x) for x in made)
        assert -accuracy <= early <= (2e-4 if is_zeno else accuracy), str(made[0])
