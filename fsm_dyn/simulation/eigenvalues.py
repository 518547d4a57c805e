"""Eigenvalues of small general matrices, without allocation: reduction to Hessenberg form and shifted QR steps.

G. H. Golub and C. F. Van Loan, *Matrix Computations*, 4th ed., sections 7.4 and 7.5: reduction by
elimination with pivoting, then the implicit double step of Francis with deflation.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.simulation.compiled import lean

Floats = NDArray[np.float64]

_EPS: Final = 2.220446049250313e-16
_MOST: Final = 60  # double steps per eigenvalue


@lean
def eigenvalues(H: Floats, real: Floats, imaginary: Floats) -> bool:
    """Write the eigenvalues of ``H`` (n, n), which is lost; return whether all were found."""
    n = H.shape[0]
    _to_hessenberg(H)
    high, tries = n - 1, 0
    while high >= 0:
        low = _deflated(H, high)
        if low == high:
            real[high], imaginary[high] = H[high, high], 0.0
            high, tries = high - 1, 0
        elif low == high - 1:
            _pair(H, high, real, imaginary)
            high, tries = high - 2, 0
        else:
            if tries == _MOST:
                return False
            tries += 1
            _double_step(H, low, high, tries % 10 == 0)
    return True


@lean
def _deflated(H: Floats, high: int) -> int:
    """Return where the block that ends at ``high`` begins; entries below the diagonal that do not count become zero."""
    k = high
    while k > 0:
        size = abs(H[k, k]) + abs(H[k - 1, k - 1])
        if abs(H[k, k - 1]) <= _EPS * size or abs(H[k, k - 1]) < 1e-300:
            H[k, k - 1] = 0.0
            return k
        k -= 1
    return 0


@lean
def _pair(H: Floats, high: int, real: Floats, imaginary: Floats) -> None:
    """Write the two eigenvalues of the block of two that ends at ``high``."""
    a, b, c, d = H[high - 1, high - 1], H[high - 1, high], H[high, high - 1], H[high, high]
    middle, half = 0.5 * (a + d), 0.5 * (a - d)
    inside = half * half + b * c
    root = np.sqrt(abs(inside))
    if inside >= 0.0:
        far = middle + root if middle >= 0.0 else middle - root
        real[high - 1] = far
        real[high] = (a * d - b * c) / far if far != 0.0 else 0.0
        imaginary[high - 1] = imaginary[high] = 0.0
    else:
        real[high - 1] = real[high] = middle
        imaginary[high - 1], imaginary[high] = root, -root


@lean
def _reflect(H: Floats, at: int, count: int, v0: float, v1: float, v2: float, first: int, last: int) -> None:
    """Apply the reflection that takes (v0, v1, v2) to a multiple of the first unit vector, from both sides."""
    norm = np.sqrt(v0 * v0 + v1 * v1 + v2 * v2)
    if norm == 0.0:
        return
    w0 = v0 + (norm if v0 >= 0.0 else -norm)
    factor = 2.0 / (w0 * w0 + v1 * v1 + v2 * v2)
    for j in range(first, H.shape[0]):
        total = w0 * H[at, j] + v1 * H[at + 1, j]
        if count == 3:
            total += v2 * H[at + 2, j]
        total *= factor
        H[at, j] -= total * w0
        H[at + 1, j] -= total * v1
        if count == 3:
            H[at + 2, j] -= total * v2
    for i in range(last + 1):
        total = w0 * H[i, at] + v1 * H[i, at + 1]
        if count == 3:
            total += v2 * H[i, at + 2]
        total *= factor
        H[i, at] -= total * w0
        H[i, at + 1] -= total * v1
        if count == 3:
            H[i, at + 2] -= total * v2


@lean
def _double_step(H: Floats, low: int, high: int, unusual: bool) -> None:
    """One implicit double step on the block from ``low`` to ``high``; an unusual shift breaks a circle."""
    # the first column of the shifted product over H[low + 1, low], from differences of the diagonal alone
    first = H[low, low]
    r, s = H[high, high] - first, H[high - 1, high - 1] - first
    w = H[high - 1, high] * H[high, high - 1]
    if unusual:
        size = abs(H[high, high - 1]) + abs(H[high - 1, high - 2])
        r = s = 0.75 * size
        w = -0.4375 * size * size
    x = (r * s - w) / H[low + 1, low] + H[low, low + 1]
    y = H[low + 1, low + 1] - first - r - s
    z = H[low + 2, low + 1]
    for k in range(low, high - 1):
        _reflect(H, k, 3, x, y, z, max(low, k - 1), min(high, k + 3))
        x, y = H[k + 1, k], H[k + 2, k]
        z = H[k + 3, k] if k + 3 <= high else 0.0
    _reflect(H, high - 1, 2, x, y, 0.0, max(low, high - 2), high)


@lean
def _to_hessenberg(H: Floats) -> None:
    """Bring a matrix to Hessenberg form by elimination with pivoting (a similarity)."""
    n = H.shape[0]
    for k in range(1, n - 1):
        best = k
        for i in range(k + 1, n):
            if abs(H[i, k - 1]) > abs(H[best, k - 1]):
                best = i
        if best != k:
            for j in range(k - 1, n):
                H[k, j], H[best, j] = H[best, j], H[k, j]
            for i in range(n):
                H[i, k], H[i, best] = H[i, best], H[i, k]
        if H[k, k - 1] == 0.0:
            continue
        for i in range(k + 1, n):
            factor = H[i, k - 1] / H[k, k - 1]
            if factor == 0.0:
                continue
            H[i, k - 1] = 0.0
            for j in range(k, n):
                H[i, j] -= factor * H[k, j]
            for j in range(n):
                H[j, k] += factor * H[j, i]
