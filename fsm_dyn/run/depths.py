"""How deep shapes are in one another at an instant, or behind a face that does not act from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.core.arrays import FloatArray
from fsm_dyn.derive.unconstrained_system import ContactInfo
from fsm_dyn.language.contacts import Contact, FeatureContact
from fsm_dyn.language.shapes import Feature, SegmentShape


def depths(
    contacts: Sequence[ContactInfo], written: Mapping[str, Contact], residual: FloatArray
) -> list[tuple[float, str]]:
    """Return how deep rigid contacts penetrate, m, with their names; the deepest first.

    What is outside one face of a polygon is outside the polygon, so of all its faces the nearest one counts.

    Parameters
    ----------
    contacts : sequence of ContactInfo
    written : mapping
        The contacts of the model by name.
    residual : ndarray, shape (n_rows,)
        Residuals of the rows; of a contact's normal row, the gap, m.
    """
    nearest: dict[object, tuple[float, str]] = {}
    for contact in contacts:
        if not contact.contact_law.rigid:
            continue
        gap = float(residual[contact.normal_row])
        key = _pair(written.get(contact.name)) or contact.name
        if key not in nearest or gap > -nearest[key][0]:
            nearest[key] = -gap, contact.name
    return sorted(nearest.values(), reverse=True)


def _pair(contact: Contact | None) -> object:
    """Return the same for a feature with each face of one shape; None without a face."""
    if not isinstance(contact, FeatureContact):
        return None
    faces = [feature for feature in contact.features if feature.part == "face"]
    others = [feature for feature in contact.features if feature.part != "face"]
    if len(faces) != 1:
        return None
    return contact.entry, faces[0].shape, faces[0].copy, others[0]


def starts_behind(
    automaton: Automaton, states: Sequence[int], t: float, x: FloatArray, c: FloatArray, least: float
) -> tuple[str, ...]:
    """Return a sentence for each shape that is wholly behind a segment, before or behind no end of it.

    Parameters
    ----------
    automaton : Automaton
    states : sequence of int
        Of the contacts, by which some may touch.
    t : float
        Time, s.
    x, c : ndarray, shapes (n_x,), (n_c,)
        State and context.
    least : float
        Depth that counts, m.
    """
    if not any(isinstance(shape, SegmentShape) for shape in automaton.mechanism.shapes.values()):
        return ()
    pairs: dict[tuple[str, Feature, str], list[int]] = {}
    written = automaton.mechanism.contacts
    for index, info in enumerate(automaton.contacts):
        contact = written.get(info.name)
        if not isinstance(contact, FeatureContact):
            continue
        for face, other in (contact.features, contact.features[::-1]):
            if face.part == "face" and isinstance(automaton.mechanism.shapes.get(face.shape), SegmentShape):
                pairs.setdefault((contact.entry, face, other.shape), []).append(index)
    if not pairs:
        return ()
    every = sorted({index for indices in pairs.values() for index in indices})
    rows = [automaton.contacts[index].normal_row for index in every]
    values = automaton.terms.evaluate(t, x, c, only={"residual": rows, "reach": every})
    gap, reach = (dict(zip(every, values[name].tolist(), strict=True)) for name in ("residual", "reach"))
    return tuple(
        f"at the start '{other}' is {-max(gap[i] for i in indices):.6g} m behind '{face.shape}', "
        "which touches it from its side alone: move the start, or turn the side"
        for (_, face, other), indices in pairs.items()
        if not any(states[i] for i in indices)
        and max(gap[i] for i in indices) < -least
        and max(reach[i] for i in indices) > 0.0
    )
