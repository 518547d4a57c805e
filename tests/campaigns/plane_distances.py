"""Distances between planar shapes, in closed form, by plain geometry: positive apart, negative within.

Points are arrays of shape (n, 2); outlines have shape (corners, 2) and run against the clock.
"""

import numpy as np


def turned(points, angle):
    """Points turned by an angle, both by instant."""
    c, s = np.cos(angle), np.sin(angle)
    x, y = points[..., 0], points[..., 1]
    return np.stack([c * x - s * y, s * x + c * y], axis=-1)


def to_segment(points, a, b):
    """Distance to a segment, without a sign."""
    a, edge = np.asarray(a), np.subtract(b, a)
    arm = points - a
    along = np.clip((arm @ edge) / (edge @ edge), 0.0, 1.0)
    return np.linalg.norm(arm - along[..., None] * edge, axis=-1)


def to_arc(points, radius, angles):
    """Distance to an arc about the origin, from the first angle to the second, without a sign."""
    middle, half = 0.5 * (angles[0] + angles[1]), 0.5 * (angles[1] - angles[0])
    off = np.abs(np.mod(np.arctan2(points[..., 1], points[..., 0]) - middle + np.pi, 2.0 * np.pi) - np.pi)
    ends = [radius * np.array([np.cos(angle), np.sin(angle)]) for angle in angles]
    to_ends = np.minimum(*(np.linalg.norm(points - end, axis=-1) for end in ends))
    return np.where(off <= half, np.abs(np.linalg.norm(points, axis=-1) - radius), to_ends)


def to_polygon(points, corners):
    """Distance to a closed outline, convex or not, negative inside."""
    ahead = np.roll(corners, -1, axis=0)
    least = np.full(points.shape[:-1], np.inf)
    inside = np.zeros(points.shape[:-1], dtype=bool)
    x, y = points[..., 0], points[..., 1]
    for (ax, ay), (bx, by) in zip(corners, ahead, strict=True):
        least = np.minimum(least, to_segment(points, (ax, ay), (bx, by)))
        if ay != by:
            inside ^= ((ay > y) != (by > y)) & (x < (bx - ax) * (y - ay) / (by - ay) + ax)
    return np.where(inside, -least, least)


def to_curve(points, radius, slope, curvature):
    """Distance to a closed curve about the origin, negative inside.

    Parameters
    ----------
    radius, slope, curvature : callable
        The radius as a function of the angle, and its first and second derivative.
    """
    phi = np.linspace(0.0, 2.0 * np.pi, 241)[:-1]
    outline = radius(phi)[:, None] * np.stack([np.cos(phi), np.sin(phi)], axis=-1)
    away = np.linalg.norm(points[:, None, :] - outline, axis=-1)
    best = phi[np.argmin(away, axis=1)]
    for _ in range(6):  # of the square of the distance, by Newton
        r, r1, r2 = radius(best), slope(best), curvature(best)
        c, s = np.cos(best), np.sin(best)
        gx, gy = r * c - points[:, 0], r * s - points[:, 1]
        tx, ty = r1 * c - r * s, r1 * s + r * c
        nx, ny = (r2 - r) * c - 2.0 * r1 * s, (r2 - r) * s + 2.0 * r1 * c
        first, second = gx * tx + gy * ty, tx * tx + ty * ty + gx * nx + gy * ny
        step = np.where(second > 0.0, first / np.where(second > 0.0, second, 1.0), 0.0)
        best = best - np.clip(step, -0.03, 0.03)
    r = radius(best)
    distance = np.hypot(r * np.cos(best) - points[:, 0], r * np.sin(best) - points[:, 1])
    within = np.linalg.norm(points, axis=-1) < radius(np.arctan2(points[:, 1], points[:, 0]))
    return np.where(within, -distance, distance)


def between_convex(first, second):
    """Distance between two convex outlines by instant, shapes (n, a, 2) and (n, b, 2); overlapping, minus the depth."""
    apart, depth = np.full(len(first), np.inf), np.full(len(first), -np.inf)
    for one, other in ((first, second), (second, first)):
        for k in range(one.shape[1]):
            a, edge = one[:, k], one[:, (k + 1) % one.shape[1]] - one[:, k]
            length = np.linalg.norm(edge, axis=-1)
            arm = other - a[:, None]
            across = (edge[:, None, 1] * arm[..., 0] - edge[:, None, 0] * arm[..., 1]) / length[:, None]
            depth = np.maximum(depth, across.min(axis=1))
            along = np.clip(np.einsum("nkj,nj->nk", arm, edge) / length[:, None] ** 2, 0.0, 1.0)
            away = np.linalg.norm(arm - along[..., None] * edge[:, None], axis=-1)
            apart = np.minimum(apart, away.min(axis=1))
    return np.where(depth < 0.0, depth, apart)
