"""Contacts between shapes: one for each pair of features that can touch.

=================  ==============================================  =========================================
shape              features                                        name
=================  ==============================================  =========================================
point              itself
line               its face
segment            its face, its two ends                          ``face start end``
circle             itself; with a radius written as 0 a corner
arc                its round face, its two ends                    ``face start end``
polygon            its faces, its corners that stick out           ``face1 face2 ...``, ``1 2 ...``
curve              itself, or its pieces if it has hollows         ``1 2 ...``: as its parameter grows
sphere, plane      itself
disk               its rim, the three points on which it lies      ``1 2 3``
box                its eight corners                               ``1 2 ...``: below, then above, against the clock
=================  ==============================================  =========================================

Copies of a repeated shape put their number in front.  A contact has the name given, followed by the names of those
features that must be told apart: ``wheel_floor``, ``box_floor_2``, ``wheel_step_face``.
"""

from __future__ import annotations

from collections.abc import Mapping

from fsm_dyn.errors import ModelError, did_you_mean
from fsm_dyn.spec.contact import FeatureContact
from fsm_dyn.spec.shape import BoxShape, CurveShape, Feature, RoundShape, Shape
from fsm_dyn.spec.yaml_tree import LocatedStr, where_of

MOST_PAIRS = 400


def touching(
    name: str, first: list[Feature], second: list[Feature], shapes: Mapping[str, Shape]
) -> list[FeatureContact]:
    """Return the contacts between two lists of features, named after `name`, with nothing else set.

    Raises
    ------
    ModelError
        No feature of the one can touch any of the other, or there are far too many pairs.
    """
    pairs = [(a, b) for a in first for b in second if can_touch(a, b, shapes)]
    if not pairs:
        raise ModelError(
            f"nothing of {first[0].shape!r} can touch {second[0].shape!r}",
            where_of(name),
            allowed="points against anything but points; round against round or flat; corners against faces; curves "
            "from outside, but not against curves; disks against planes; boxes by their corners against planes and the "
            "insides of spheres; shapes in space not against planar ones",
        )
    if len(pairs) > MOST_PAIRS:
        raise ModelError(
            f"contact {str(name)!r} stands for {len(pairs)} pairs of features",
            where_of(name),
            allowed=f"at most {MOST_PAIRS}",
            remedy="use fewer copies or corners",
        )
    plain = len(pairs) == 1
    return [
        FeatureContact(
            name=LocatedStr("_".join([name] if plain else [name, *(f.label for f in pair if f.label)]), where_of(name)),
            features=pair,
            limited=_limited(pair, shapes),
            entry=name,
            where=where_of(name),
        )
        for pair in pairs
    ]


def can_touch(a: Feature, b: Feature, shapes: Mapping[str, Shape]) -> bool:
    """Return whether two features are of kinds that can touch."""
    parts = {a.part, b.part}
    spatial = {shapes[f.shape].spatial for f in (a, b) if f.part != "point"}
    if len(spatial) == 2:
        return False
    if "rim" in parts:
        return parts == {"rim", "face"}
    if "vertex" in parts:
        of_box = any(f.part == "vertex" and isinstance(shapes[f.shape], BoxShape) for f in (a, b))
        inner = of_box and any(_is_hollow(f, shapes) for f in (a, b))
        return parts == {"vertex", "face"} or (parts == {"vertex", "round"} and inner)
    if "curve" in parts:
        flat_in_hollow = "face" in parts and any(_in_hollow(f, shapes) for f in (a, b))
        return a.part != b.part and not flat_in_hollow and not any(_is_hollow(f, shapes) for f in (a, b))
    if parts in ({"face"}, {"point"}, {"corner"}, {"point", "corner"}):
        return False
    hollow = [f for f in (a, b) if _is_hollow(f, shapes)]
    return not hollow or (len(hollow) == 1 and "face" not in parts)


def _is_hollow(feature: Feature, shapes: Mapping[str, Shape]) -> bool:
    """Whether a round feature is touched from inside."""
    shape = None if feature.part == "point" else shapes[feature.shape]
    return feature.part == "round" and isinstance(shape, RoundShape) and shape.inside


def _in_hollow(feature: Feature, shapes: Mapping[str, Shape]) -> bool:
    """Whether a feature is a piece of a curve that bends inwards."""
    shape = None if feature.part == "point" else shapes[feature.shape]
    return isinstance(shape, CurveShape) and bool(shape.pieces) and not shape.pieces[feature.index].bulges


def _limited(pair: tuple[Feature, Feature], shapes: Mapping[str, Shape]) -> bool:
    """Whether the contact is possible only within a bounded face, or only beyond one."""
    for feature, other in (pair, pair[::-1]):
        if feature.part in ("face", "round") and shapes[feature.shape].bounded:
            return True
        if feature.part == "corner" and other.part in ("round", "curve"):
            return True
        shape = None if feature.part == "point" else shapes[feature.shape]
        if isinstance(shape, CurveShape) and shape.pieces:
            return True
    return False


def feature_list(name: str, shapes: Mapping[str, Shape]) -> list[Feature]:
    """Return the features of the shape `name`.

    Raises
    ------
    ModelError
        There is no such shape.
    """
    shape = shapes.get(name)
    if shape is None:
        raise ModelError(
            f"there is no shape {str(name)!r}",
            where_of(name),
            found=name,
            allowed=", ".join(shapes) or "declare it under `shapes`",
            remedy=did_you_mean(name, shapes) or "a point goes with `point: P, on: shape`",
        )
    return shape.features()
