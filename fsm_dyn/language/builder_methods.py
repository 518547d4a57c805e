"""Methods of `Model` for the sections with declared keys.

Written by ``python -m fsm_dyn.language.describe_keys`` (``make language``); do not edit it.
"""

# fmt: off

from __future__ import annotations

from typing import Self

from fsm_dyn.language.written_model import Value, WrittenModel, given_keys


class SectionMethods(WrittenModel):
    """Methods that add entries to sections, with the keys of their entries."""

    def settings(
            self, /, *, summary: Value = None, source: Value = None, impacts: Value = None,
            on_inconsistent: Value = None, on_nonunique: Value = None, **others: Value,
    ) -> Self:
        """Set keys of the top level with one value.

        Parameters
        ----------
        summary : Value, optional
            What it is.
        source : Value, optional
            Where it comes from.
        impacts : Value, optional
            Order of impacts in one instant (default `simultaneous`).
        on_inconsistent : Value, optional
            What follows if no motion satisfies all contact laws (default `stop`).
        on_nonunique : Value, optional
            What follows if several motions satisfy all contact laws (default `stop`).
        """
        return self._set_all(given_keys({
            "summary": summary, "source": source, "impacts": impacts, "on_inconsistent": on_inconsistent,
            "on_nonunique": on_nonunique,
        } | others))

    def parameter(
            self, name: str, short: Value = None, /, *, value: Value = None, tolerance: Value = None,
            normal: Value = None, sigma: Value = None, uniform: Value = None, **others: Value,
    ) -> Self:
        """Add a parameter: ``"4 kg"``, an expression, or its keys.

        A parameter with its tolerance.

        Parameters
        ----------
        name : str
            Of the entry.
        short : Value, optional
            A number, a text with a unit or an expression, or a list of them.
        value : Value, optional
            The value, with `tolerance`.
        tolerance : Value, optional
            Limits of the deviation, uniform between them.
        normal : Value, optional
            The value, with `sigma`.
        sigma : Value, optional
            Standard deviation of a normal distribution.
        uniform : Value, optional
            Limits of the value, which is their middle.
        """
        return self._add("parameters", name, short, given_keys({
            "value": value, "tolerance": tolerance, "normal": normal, "sigma": sigma, "uniform": uniform,
        } | others))

    def coordinate(
            self, name: str, short: Value = None, /, *, unit: Value = None, meaning: Value = None,
            range: Value = None, **others: Value,
    ) -> Self:
        """Add a coordinate with its unit, or with keys.

        A configuration variable.

        Parameters
        ----------
        name : str
            Of the entry.
        short : Value, optional
            Its unit; without it and keys in a model without units.
        unit : Value, optional
            An SI unit.
        meaning : Value, optional
            A word for the quantity, in figures and exported columns.
        range : Value, optional
            Stated bounds, where runs end.
        """
        return self._declare("coordinates", name, short, given_keys({
            "unit": unit, "meaning": meaning, "range": range,
        } | others))

    def frame(
            self, name: str, /, *, parent: Value = None, rotate: Value = None, body: Value = None,
            space: Value = None, angles: Value = None, euler_parameters: Value = None, **others: Value,
    ) -> Self:
        """Add a frame.

        A frame: one rotation, a sequence of rotations, or Euler parameters.

        Parameters
        ----------
        name : str
            Of the entry.
        parent : Value, optional
            Frame that it turns against (default `N`).
        rotate : Value, optional
            One rotation, about an axis of the parent.
        body : Value, optional
            Rotations about axes of the frame itself, one after the other.
        space : Value, optional
            Rotations about axes of the parent, one after the other.
        angles : Value, optional
            Of the rotations of `body` or `space`.
        euler_parameters : Value, optional
            Name of four Euler parameters.
        """
        return self._add("frames", name, None, given_keys({
            "parent": parent, "rotate": rotate, "body": body, "space": space, "angles": angles,
            "euler_parameters": euler_parameters,
        } | others))

    def point(
            self, name: str, /, *, from_: Value = None, at: Value = None, **others: Value,
    ) -> Self:
        """Add a point.

        A point: its position from another point or the Newtonian origin ``O``.

        Parameters
        ----------
        name : str
            Of the entry.
        from_ : Value, optional
            Point that it is given from (required).
        at : Value, optional
            Vector from there (required).
        """
        return self._add("points", name, None, given_keys({
            "from_": from_, "at": at,
        } | others))

    def body(
            self, name: str, /, *, frame: Value = None, center: Value = None, mass: Value = None,
            inertia: Value = None, outline: Value = None, thickness: Value = None, density: Value = None,
            **others: Value,
    ) -> Self:
        """Add a body.

        A rigid body, or a particle when ``frame`` is None.

        Parameters
        ----------
        name : str
            Of the entry.
        frame : Value, optional
            Frame that it turns with; without one it is a particle.
        center : Value, optional
            Its mass centre, required without `outline`.
        mass : Value, optional
            Its mass, required without `outline` (0 or more).
        inertia : Value, optional
            Of a body with a frame.
        outline : Value, optional
            Polygon or circle of a plate: mass, centre, inertia and frame are those of the plate.
        thickness : Value, optional
            Of the plate (more than 0).
        density : Value, optional
            Of the plate (more than 0).
        """
        return self._add("bodies", name, None, given_keys({
            "frame": frame, "center": center, "mass": mass, "inertia": inertia, "outline": outline,
            "thickness": thickness, "density": density,
        } | others))

    def joint(
            self, name: str, /, *, revolute: Value = None, prismatic: Value = None, helical: Value = None,
            cylindrical: Value = None, universal: Value = None, ball: Value = None, free: Value = None,
            planar: Value = None, weld: Value = None, pin_slider: Value = None, gear: Value = None,
            rolling: Value = None, **others: Value,
    ) -> Self:
        """Add a joint.

        A joint; the given key is its kind.

        Parameters
        ----------
        name : str
            Of the entry.
        revolute : Value, optional
            A hinge.
        prismatic : Value, optional
            A guide.
        helical : Value, optional
            A screw.
        cylindrical : Value, optional
            A guide and a hinge on one axis.
        universal : Value, optional
            Two hinges at right angles.
        ball : Value, optional
            A ball in its socket.
        free : Value, optional
            A body that moves freely.
        planar : Value, optional
            A body on a plane.
        weld : Value, optional
            No motion.
        pin_slider : Value, optional
            A pin in a slot.
        gear : Value, optional
            Turns in a ratio.
        rolling : Value, optional
            No slip at a point.
        """
        return self._add("joints", name, None, given_keys({
            "revolute": revolute, "prismatic": prismatic, "helical": helical, "cylindrical": cylindrical,
            "universal": universal, "ball": ball, "free": free, "planar": planar, "weld": weld,
            "pin_slider": pin_slider, "gear": gear, "rolling": rolling,
        } | others))

    def constraint(
            self, name: str, short: Value = None, /, *, velocity: Value = None, position: Value = None,
            acceleration: Value = None, of: Value = None, kinematic: Value = None, **others: Value,
    ) -> Self:
        """Add a constraint.

        An always active row.

        Parameters
        ----------
        name : str
            Of the entry.
        short : Value, optional
            Its keys as a mapping.
        velocity : Value, optional
            Expression of speeds that stays zero.
        position : Value, optional
            Expression of coordinates that stays zero.
        acceleration : Value, optional
            Rate of the speed `of`.
        of : Value, optional
            Speed whose rate is given.
        kinematic : Value, optional
            Whether the row completes the definition of the speeds (default `false`).
        """
        return self._add("constraints", name, short, given_keys({
            "velocity": velocity, "position": position, "acceleration": acceleration, "of": of,
            "kinematic": kinematic,
        } | others))

    def shape(
            self, name: str, /, *, line: Value = None, segment: Value = None, circle: Value = None,
            arc: Value = None, polygon: Value = None, curve: Value = None, sphere: Value = None,
            plane: Value = None, disk: Value = None, box: Value = None, polyhedron: Value = None,
            side: Value = None, repeat: Value = None, features: Value = None, **others: Value,
    ) -> Self:
        """Add a shape.

        A shape: one outline, its free side, its copies.

        Parameters
        ----------
        name : str
            Of the entry.
        line : Value, optional
            A line without ends.
        segment : Value, optional
            A straight face with two ends.
        circle : Value, optional
            A whole circle.
        arc : Value, optional
            A part of a circle.
        polygon : Value, optional
            A closed chain of faces.
        curve : Value, optional
            A smooth closed outline.
        sphere : Value, optional
            A sphere.
        plane : Value, optional
            A plane without ends.
        disk : Value, optional
            A thin disk.
        box : Value, optional
            A box.
        polyhedron : Value, optional
            A convex polyhedron.
        side : Value, optional
            Free side: a vector, of round outlines and polygons `inside` or `outside`.
        repeat : Value, optional
            Copies turned about a point, or along a vector.
        features : Value, optional
            Names of its faces, corners and ends.
        """
        return self._add("shapes", name, None, given_keys({
            "line": line, "segment": segment, "circle": circle, "arc": arc, "polygon": polygon, "curve": curve,
            "sphere": sphere, "plane": plane, "disk": disk, "box": box, "polyhedron": polyhedron, "side": side,
            "repeat": repeat, "features": features,
        } | others))

    def contact(
            self, name: str, /, *, between: Value = None, point: Value = None, on: Value = None, gap: Value = None,
            slip: Value = None, friction: Value = None, restitution: Value = None, restitution_law: Value = None,
            tangential_restitution: Value = None, closes_if: Value = None, sound_frequency: Value = None,
            bilateral: Value = None, compliant: Value = None, joint_stop: Value = None, dry_friction: Value = None,
            lock: Value = None, one_way: Value = None, **others: Value,
    ) -> Self:
        """Add a contact.

        A contact: between shapes, by its gap, a joint stop, or a law with its own entry.

        Parameters
        ----------
        name : str
            Of the entry.
        between : Value, optional
            Two shapes, more of them, groups of them, or `all`.
        point : Value, optional
            That touches the shape `on`.
        on : Value, optional
            Touched by `point`.
        gap : Value, optional
            Distance, positive while the contact is open.
        slip : Value, optional
            Sliding speed; in space two, across each other.
        friction : Value, optional
            Of the surfaces.
        restitution : Value, optional
            Share of the approach speed, or of the impulse, returned by an impact (default 0; 0 to 1).
        restitution_law : Value, optional
            Restitution of the speed, or of the impulse (default `newton`).
        tangential_restitution : Value, optional
            Share of the slip that an impact returns, as far as friction can (default 0; 0 to 1).
        closes_if : Value, optional
            Condition for closing; a closed contact stays closed until its force vanishes.
        sound_frequency : Value, optional
            Of the tone of its impacts on the page (20 to 20000 Hz).
        bilateral : Value, optional
            A slot: it never opens, and its force may have either sign (default `false`).
        compliant : Value, optional
            It yields, with this force, in place of restitution.
        joint_stop : Value, optional
            Limits of a coordinate, a contact each.
        dry_friction : Value, optional
            Dry friction on a speed, of given forces or in proportion to a normal force..
        lock : Value, optional
            A row that transitions engage and release, or that lets go at a force..
        one_way : Value, optional
            A speed that cannot become negative..
        """
        return self._add("contacts", name, None, given_keys({
            "between": between, "point": point, "on": on, "gap": gap, "slip": slip, "friction": friction,
            "restitution": restitution, "restitution_law": restitution_law,
            "tangential_restitution": tangential_restitution, "closes_if": closes_if,
            "sound_frequency": sound_frequency, "bilateral": bilateral, "compliant": compliant,
            "joint_stop": joint_stop, "dry_friction": dry_friction, "lock": lock, "one_way": one_way,
        } | others))

    def impose(
            self, name: str, /, *, pin: Value = None, weld: Value = None, angle: Value = None,
            distance: Value = None, line: Value = None, along: Value = None, coordinate: Value = None,
            contact: Value = None, friction: Value = None, restitution: Value = None, at: Value = None,
            until: Value = None, holds_to: Value = None, within: Value = None, draw_in: Value = None,
            **others: Value,
    ) -> Self:
        """Add a constraint to impose.

        A constraint that holds while the boolean input of its name is true.

        Parameters
        ----------
        name : str
            Of the entry.
        pin : Value, optional
            A point stays on a point, or at its coordinates in a body.
        weld : Value, optional
            Two bodies move as one.
        angle : Value, optional
            The angle between two bodies in the plane stays.
        distance : Value, optional
            The distance of two points stays.
        line : Value, optional
            The first point stays on a line through the second.
        along : Value, optional
            Axis of a frame, the direction of `line`.
        coordinate : Value, optional
            It stays at its value.
        contact : Value, optional
            Two shapes touch that pass through each other otherwise.
        friction : Value, optional
            Of a `contact`.
        restitution : Value, optional
            Of a `contact` (default 0).
        at : Value, optional
            From this time on.
        until : Value, optional
            Up to this time (default the end).
        holds_to : Value, optional
            Largest force of each of its rows.
        within : Value, optional
            Largest distance, held as it is, of what a `pin` or a `line` joins (default 1 mm; more than 0).
        draw_in : Value, optional
            Time in which a distance goes to zero, however large, instead of being refused (more than 0).
        """
        return self._add("imposed", name, None, given_keys({
            "pin": pin, "weld": weld, "angle": angle, "distance": distance, "line": line, "along": along,
            "coordinate": coordinate, "contact": contact, "friction": friction, "restitution": restitution,
            "at": at, "until": until, "holds_to": holds_to, "within": within, "draw_in": draw_in,
        } | others))

    def input(
            self, name: str, short: Value = None, /, *, unit: Value = None, linear: Value = None,
            steps: Value = None, expression: Value = None, constant: Value = None, **others: Value,
    ) -> Self:
        """Add an input with its unit, or with keys.

        An input: its unit, alone or with a schedule.

        Parameters
        ----------
        name : str
            Of the entry.
        short : Value, optional
            Its unit; without it and keys in a model without units.
        unit : Value, optional
            Of its values, or `boolean`.
        linear : Value, optional
            Points to be joined by lines.
        steps : Value, optional
            Values, each until the next time.
        expression : Value, optional
            Of `t` and parameters.
        constant : Value, optional
            The same at all times.
        """
        return self._declare("inputs", name, short, given_keys({
            "unit": unit, "linear": linear, "steps": steps, "expression": expression, "constant": constant,
        } | others))

    def schedule(
            self, name: str, short: Value = None, /, *, linear: Value = None, steps: Value = None,
            expression: Value = None, constant: Value = None, **others: Value,
    ) -> Self:
        """Add the schedule of an input.

        Values of an input over time, by one key; a constant may stand alone.

        Parameters
        ----------
        name : str
            Of the input.
        short : Value, optional
            A constant, with the unit of the input.
        linear : Value, optional
            Points to be joined by lines.
        steps : Value, optional
            Values, each until the next time.
        expression : Value, optional
            Of `t` and parameters.
        constant : Value, optional
            The same at all times.
        """
        return self._add("schedule", name, short, given_keys({
            "linear": linear, "steps": steps, "expression": expression, "constant": constant,
        } | others))

    def load(
            self, /, *, name: Value = None, force: Value = None, at: Value = None, torque: Value = None,
            on: Value = None, reaction: Value = None, gravity: Value = None, gravity_gradient: Value = None,
            spring: Value = None, damper: Value = None, torsion_spring: Value = None, law: Value = None,
            between: Value = None, coordinate: Value = None, **others: Value,
    ) -> Self:
        """Add a load, at the end of the list.

        A load; the given key is its kind.

        Parameters
        ----------
        name : Value, optional
            For its work in the energy balance.
        force : Value, optional
            Vector, N, at the point `at`.
        at : Value, optional
            Of application of `force`; of the mass of `gravity_gradient`.
        torque : Value, optional
            Vector, N m, on the body `on`.
        on : Value, optional
            Acted on by `torque` or `gravity_gradient`, or alone by `gravity`.
        reaction : Value, optional
            That gets the opposite of `torque`.
        gravity : Value, optional
            Vector, acceleration of all bodies or of `on`.
        gravity_gradient : Value, optional
            Of a distant mass at the point `at`: G times it, m^3/s^2; the torque on `on`.
        spring : Value, optional
            Between points or on a coordinate.
        damper : Value, optional
            Between points or on a coordinate.
        torsion_spring : Value, optional
            On an angle.
        law : Value, optional
            Force along `between` or on `coordinate`; positive enlarges it.
        between : Value, optional
            Along the line between two points.
        coordinate : Value, optional
            On an expression of coordinates.
        """
        return self._append("loads", given_keys({
            "name": name, "force": force, "at": at, "torque": torque, "on": on, "reaction": reaction,
            "gravity": gravity, "gravity_gradient": gravity_gradient, "spring": spring, "damper": damper,
            "torsion_spring": torsion_spring, "law": law, "between": between, "coordinate": coordinate,
        } | others))

    def transition(
            self, /, *, name: Value = None, from_: Value = None, to: Value = None, when: Value = None,
            crossing: Value = None, on: Value = None, reset: Value = None, set: Value = None, impulse: Value = None,
            stop: Value = None, because: Value = None, **others: Value,
    ) -> Self:
        """Add a user-defined transition, at the end of the list.

        A user-defined transition.

        Parameters
        ----------
        name : Value, optional
            For the log.
        from_ : Value, optional
            Mode or pattern of modes that it leaves (required).
        to : Value, optional
            Mode or pattern of modes that it enters.
        when : Value, optional
            Condition, or expression that crosses zero.
        crossing : Value, optional
            Direction of the expression `when` (default `rising`).
        on : Value, optional
            What happens to a contact.
        reset : Value, optional
            New values of coordinates and speeds.
        set : Value, optional
            New values of memory.
        impulse : Value, optional
            Impulses, at once.
        stop : Value, optional
            Whether it ends the run (default `false`).
        because : Value, optional
            Reason reported by a run.
        """
        return self._append("transitions", given_keys({
            "name": name, "from_": from_, "to": to, "when": when, "crossing": crossing, "on": on, "reset": reset,
            "set": set, "impulse": impulse, "stop": stop, "because": because,
        } | others))

    def mode(
            self, name: str, /, *, independent: Value = None, **others: Value,
    ) -> Self:
        """Add a name for a pattern of contact states.

        A name for a pattern of contact states; a contact not mentioned may be in any state.

        Parameters
        ----------
        name : str
            Of the entry.
        independent : Value, optional
            Speeds to be independent in the first chart of its modes, as far as they are named.
        **others
            By the name of a contact: its state.
        """
        return self._add("modes", name, None, given_keys({
            "independent": independent,
        } | others))

    def initial(
            self, /, *, mode: Value = None, settle: Value = None, guess: Value = None, **others: Value,
    ) -> Self:
        """Set values of the start, and its keys.

        Start of a run: values of coordinates and speeds, by name, and keys.

        Parameters
        ----------
        mode : Value, optional
            Of the start (default deduced from the values).
        settle : Value, optional
            Whether the start is a rest found from the values (default `false`).
        guess : Value, optional
            Coordinates that may move for loops to close.
        **others
            By the name of a coordinate or speed: its initial value.
        """
        return self._add_all("initial", given_keys({
            "mode": mode, "settle": settle, "guess": guess,
        } | others))

    def words(
            self, name: str, short: Value = None, /, *, is_: Value = None, subject: Value = None,
            object: Value = None, **others: Value,
    ) -> Self:
        """Add words for a contact, a shape or a body.

        Words for a contact, with the subject and the object of sentences about it.

        Parameters
        ----------
        name : str
            Of the entry.
        short : Value, optional
            The words, as a text.
        is_ : Value, optional
            The part, in labels.
        subject : Value, optional
            What touches, in sentences.
        object : Value, optional
            What is touched.
        """
        return self._add("names", name, short, given_keys({
            "is_": is_, "subject": subject, "object": object,
        } | others))

    def phase(
            self, name: str, /, *, when: Value = None, after: Value = None, until: Value = None,
            shortest: Value = None, colour: Value = None, text: Value = None, focus: Value = None, **others: Value,
    ) -> Self:
        """Add a phase of runs, after those before it.

        A phase of runs.

        Parameters
        ----------
        name : str
            Of the entry.
        when : Value, optional
            Conditions for the phase (required).
        after : Value, optional
            It begins only directly after this phase, or one of a list.
        until : Value, optional
            Once begun, the phase applies until this is true, if no earlier phase does.
        shortest : Value, optional
            A visit of less time is merged into the one before (default the larger of 2 ms and a thousandth of the time
            up to the last change of mode).
        colour : Value, optional
            Of its spans in the score.
        text : Value, optional
            Next to its name in the score, at most 32 characters.
        focus : Value, optional
            Bodies in the close-ups of the score.
        """
        return self._add("phases", name, None, given_keys({
            "when": when, "after": after, "until": until, "shortest": shortest, "colour": colour, "text": text,
            "focus": focus,
        } | others))

    def pin(
            self, name: str, /, *, between: Value = None, at: Value = None, owns: Value = None,
            outputs: Value = None, limits: Value = None, wear: Value = None, **others: Value,
    ) -> Self:
        """Add an entry for a connection.

        A connection: that of its name, or that between two segments, which gets this name.

        Parameters
        ----------
        name : str
            Of the entry.
        between : Value, optional
            Parent and child, by their frames or bodies.
        at : Value, optional
            Place of the connection.
        owns : Value, optional
            Points of the child, where several bodies meet.
        outputs : Value, optional
            Columns of runs, and outputs of exports.
        limits : Value, optional
            Largest loads.
        wear : Value, optional
            By Archard's law.
        """
        return self._add("pins", name, None, given_keys({
            "between": between, "at": at, "owns": owns, "outputs": outputs, "limits": limits, "wear": wear,
        } | others))

    def numerics(
            self, /, *, rtol: Value = None, atol: Value = None, gap: Value = None, speed: Value = None,
            acceleration: Value = None, multiplier: Value = None, energy: Value = None, pivot: Value = None,
            hysteresis: Value = None, time: Value = None, coincidence: Value = None, graze: Value = None,
            projection: Value = None, drift: Value = None, impact: Value = None, slip: Value = None,
            least_acceleration: Value = None, redundancy: Value = None, length_scale: Value = None,
            mass_scale: Value = None, time_scale: Value = None, **others: Value,
    ) -> Self:
        """Set tolerances of the model's runs.

        Tolerances of the model's runs that differ from the usual ones.

        Parameters
        ----------
        rtol : Value, optional
            Relative error of a step (default 1e-9; more than 0).
        atol : Value, optional
            Absolute error of a step (default 1e-11; more than 0).
        gap : Value, optional
            A contact whose gap is within this is closed; Zeno sequences end (default 1e-9; more than 0).
        speed : Value, optional
            A normal or slip speed within this is zero (default 1e-9; more than 0).
        acceleration : Value, optional
            A contact law on accelerations violated by less is kept (default 1e-9; more than 0).
        multiplier : Value, optional
            A force within this fraction of the largest one is zero (default 1e-9; more than 0).
        energy : Value, optional
            Fraction of its work by which an impact may raise the energy (default 1e-15; more than 0).
        pivot : Value, optional
            Smallest scaled pivot before other independent speeds are taken (default 1e-6; more than 0).
        hysteresis : Value, optional
            They are left when it falls so many times below its best (default 10; more than 0).
        time : Value, optional
            Accuracy to which the instant of an event is located (default 1e-14; more than 0).
        coincidence : Value, optional
            Guards that reach zero within this are resolved together (default 1e-11; more than 0).
        graze : Value, optional
            A guard that falls below zero by less has not fired (default 1e-12; more than 0).
        projection : Value, optional
            Residual of configuration rows that asks for a projection (default 1e-12; more than 0).
        drift : Value, optional
            Residual after a projection that is a failure (default 1e-5; more than 0).
        impact : Value, optional
            A contact law of an impact violated by less is kept (default 1e-9; more than 0).
        slip : Value, optional
            Slip speed in space from which friction follows its direction (default 1e-6; more than 0).
        least_acceleration : Value, optional
            Acceleration distinguished from rounding (default 1e-3; more than 0).
        redundancy : Value, optional
            Independent fraction below which a row is redundant (default 1e-6; more than 0).
        length_scale : Value, optional
            The mechanism's own unit of length (default 1; more than 0).
        mass_scale : Value, optional
            The mechanism's own unit of mass (default 1; more than 0).
        time_scale : Value, optional
            The mechanism's own unit of time (default 1; more than 0).
        """
        return self._add_all("numerics", given_keys({
            "rtol": rtol, "atol": atol, "gap": gap, "speed": speed, "acceleration": acceleration,
            "multiplier": multiplier, "energy": energy, "pivot": pivot, "hysteresis": hysteresis, "time": time,
            "coincidence": coincidence, "graze": graze, "projection": projection, "drift": drift, "impact": impact,
            "slip": slip, "least_acceleration": least_acceleration, "redundancy": redundancy,
            "length_scale": length_scale, "mass_scale": mass_scale, "time_scale": time_scale,
        } | others))

    def port(
            self, name: str, /, *, point: Value = None, body: Value = None, axes: Value = None,
            rotation: Value = None, coordinate: Value = None, kinematic: Value = None, stiffness: Value = None,
            damping: Value = None, press: Value = None, step: Value = None, **others: Value,
    ) -> Self:
        """Add a port.

        A coupling point for a device: a point of a body along axes, with or without rotation, or a coordinate.

        Parameters
        ----------
        name : str
            Of the entry.
        point : Value, optional
            Where the device holds the model.
        body : Value, optional
            Of the point.
        axes : Value, optional
            One to three unit vectors along which the point is held; they may turn with a body.
        rotation : Value, optional
            Unit vector about which the body is held too.
        coordinate : Value, optional
            Held by the device, instead of a point.
        kinematic : Value, optional
            The device prescribes the coordinate: bandwidth of the filter of its motion.
        stiffness : Value, optional
            Of the coupler along each axis or of the coordinate, not of the rotation (default 200 N/m or 4 N*m/rad).
        damping : Value, optional
            Likewise (default 2 N*s/m or 0.04 N*m*s).
        press : Value, optional
            Two places of the hand along the first axis, from the model's start: with the key up, and pressed.
        step : Value, optional
            Longest step of a run coupled to a device (more than 0).
        """
        return self._add("ports", name, None, given_keys({
            "point": point, "body": body, "axes": axes, "rotation": rotation, "coordinate": coordinate,
            "kinematic": kinematic, "stiffness": stiffness, "damping": damping, "press": press, "step": step,
        } | others))

    def controller(
            self, name: str, /, *, period: Value = None, delay: Value = None, inputs: Value = None,
            memory: Value = None, outputs: Value = None, **others: Value,
    ) -> Self:
        """Add a sampled controller.

        A sampled controller: every period it reads inputs, updates memory and computes outputs, constant between.

        Parameters
        ----------
        name : str
            Of the entry.
        period : Value, optional
            Between two samples (required; more than 0).
        delay : Value, optional
            Number of samples before an output takes its computed value (default `0`).
        inputs : Value, optional
            Sampled quantities.
        memory : Value, optional
            Numbers kept from sample to sample.
        outputs : Value, optional
            Quantities for loads and conditions (required).
        """
        return self._add("controllers", name, None, given_keys({
            "period": period, "delay": delay, "inputs": inputs, "memory": memory, "outputs": outputs,
        } | others))

    def requirement(
            self, name: str, short: Value = None, /, *, formula: Value = None, text: Value = None, **others: Value,
    ) -> Self:
        """Add a requirement on a run.

        A requirement with a text for people to read.

        Parameters
        ----------
        name : str
            Of the entry.
        short : Value, optional
            A formula, as a text.
        formula : Value, optional
            On a run (required).
        text : Value, optional
            For people to read.
        """
        return self._add("requirements", name, short, given_keys({
            "formula": formula, "text": text,
        } | others))

    def use(
            self, name: str, /, *, file: Value = None, model: Value = None, with_: Value = None,
            attach: Value = None, **others: Value,
    ) -> Self:
        """Add a component.

        A component: another model, as a part of this one.

        Parameters
        ----------
        name : str
            Of the entry.
        file : Value, optional
            Name of a shipped model, or of a `.yaml` file in the same folder; a variant follows after a colon.
        model : Value, optional
            Instead of `file`: the component itself, written out.
        with_ : Value, optional
            Values of its parameters, from the parameters of this model.
        attach : Value, optional
            Frame and point for its `N` and `O`: a body (its frame and centre), or both (default `N`).
        """
        return self._add("use", name, None, given_keys({
            "file": file, "model": model, "with_": with_, "attach": attach,
        } | others))
