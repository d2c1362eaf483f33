"""Random functions of the papers: kernels with random parameters, drawn online, and what can be reached.

Source: "Taylorformer: Probabilistic Modelling for Random Processes including Time Series", appendix A.1.
Every sequence has its own kernel parameters; its times are uniform on [-2, 2], the first are the context
and the rest targets, in random order. All is drawn in float64, so that the noise may be small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from taylorformer_forecast.core.window import Window

__all__ = [
    "KERNELS",
    "Sequences",
    "by_context",
    "ceiling",
    "context_size",
    "draw",
    "draw_test",
    "floor",
    "windows_of",
]

SMALLEST = 3  # fewest context points, and fewest targets
CHUNK = 100  # covariances at a time

Parameters = dict[str, np.ndarray]


def rbf(d: np.ndarray, p: Parameters) -> np.ndarray:
    """Squared exponential with a random variance."""
    return p["scale"] ** 2 * np.exp(-0.5 * (d / p["length"]) ** 2)


def matern(d: np.ndarray, p: Parameters) -> np.ndarray:
    """Matérn 5/2 of variance one."""
    r = np.sqrt(5) * d / p["length"]
    return (1 + r + r**2 / 3) * np.exp(-r)


def periodic(d: np.ndarray, p: Parameters) -> np.ndarray:
    """Periodic of variance one."""
    return np.exp(-2 * (np.sin(np.pi * d / p["period"]) / p["length"]) ** 2)


# The covariance at distances, and the ranges of its parameters.
KERNELS: dict[str, tuple[Callable[..., np.ndarray], dict[str, tuple[float, float]]]] = {
    "rbf": (rbf, {"scale": (0.1, 1.0), "length": (0.1, 0.6)}),
    "matern": (matern, {"length": (0.3, 1.0)}),
    "periodic": (periodic, {"length": (0.1, 0.6), "period": (0.5, 1.0)}),
}


@dataclass(frozen=True)
class Sequences:
    """Random functions at random times.

    Parameters
    ----------
    x, y : np.ndarray of shape (n, N)
        Times and values.
    root : np.ndarray of shape (n, N, N)
        Cholesky factors of the covariances, noise included.
    n_context : np.ndarray of shape (n,)
        Points of each sequence that are context.
    """

    x: np.ndarray
    y: np.ndarray
    root: np.ndarray
    n_context: np.ndarray

    @property
    def is_target(self) -> np.ndarray:
        """Which points are targets, (n, N) bool."""
        return np.arange(self.x.shape[1]) >= self.n_context[:, None]


def context_size(n_points: int, rng: np.random.Generator) -> int:
    """A number of context points, uniform between 3 and all but 3."""
    return int(rng.integers(SMALLEST, n_points - SMALLEST, endpoint=True))


def draw(kernel: str, n: int, n_points: int, noise: float, rng: np.random.Generator) -> Sequences:
    """Draw sequences that share their number of context points.

    The papers draw 200 points and pick 100 of them at random, which are distributed as 100 drawn at once.

    Parameters
    ----------
    kernel : str
        A key of :data:`KERNELS`.
    n : int
        Sequences.
    n_points : int
        Points of each.
    noise : float
        Variance of independent noise on every value ("jitter").
    rng : np.random.Generator
        Source of randomness.

    Returns
    -------
    Sequences
        In float64.
    """
    covariance, ranges = KERNELS[kernel]
    parameters = {name: rng.uniform(*ends, size=(n, 1, 1)) for name, ends in ranges.items()}
    x = rng.uniform(-2, 2, size=(n, n_points))
    root = np.linalg.cholesky(
        covariance(np.abs(x[:, :, None] - x[:, None]), parameters) + noise * np.eye(n_points)
    )
    y = (root @ rng.standard_normal((n, n_points, 1)))[..., 0]
    return Sequences(x, y, root, np.full(n, context_size(n_points, rng)))


def draw_test(kernel: str, n: int, n_points: int, noise: float, seed: int = 0) -> Sequences:
    """Sequences for testing, the same for every network; each has its own number of context points."""
    rng = np.random.default_rng([seed, list(KERNELS).index(kernel), n_points])
    parts = [draw(kernel, min(CHUNK, n - i), n_points, noise, rng) for i in range(0, n, CHUNK)]
    x, y, root = (np.concatenate([getattr(part, name) for part in parts]) for name in ("x", "y", "root"))
    return Sequences(x, y, root, np.array([context_size(n_points, rng) for _ in range(n)]))


def windows_of(sequences: Sequences, n_context: int, dtype: torch.dtype = torch.float32) -> Window:
    """Sequences as windows with one number of context points."""
    x, y = (torch.from_numpy(v).to(dtype) for v in (sequences.x, sequences.y))
    return Window(x, y[..., None], n_context=n_context)


def by_context(sequences: Sequences, dtype: torch.dtype = torch.float32) -> list[tuple[np.ndarray, Window]]:
    """Rows of the sequences that share a number of context points, and their windows."""
    groups = [(int(n), np.flatnonzero(sequences.n_context == n)) for n in np.unique(sequences.n_context)]
    return [(rows, windows_of(sequences, n, dtype).rows(torch.from_numpy(rows))) for n, rows in groups]


def ceiling(sequences: Sequences) -> np.ndarray:
    """Log-density of every value given the earlier ones, its kernel known.

    No network can do better on average. The sum over targets does not depend on their order.

    Parameters
    ----------
    sequences : Sequences
        The sequences.

    Returns
    -------
    np.ndarray of shape (n, N)
        In nats.
    """
    z = np.linalg.solve(sequences.root, sequences.y[..., None])[..., 0]
    diagonal = np.diagonal(sequences.root, axis1=1, axis2=2)
    return -0.5 * z**2 - np.log(diagonal) - 0.5 * np.log(2 * np.pi)


def lines(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Every value but the first, interpolated between the earlier ones next to it in time."""
    out = np.zeros_like(y)
    for i in range(1, len(y)):
        order = np.argsort(x[:i])
        out[i] = np.interp(x[i], x[:i][order], y[:i][order])
    return out


def floor(sequences: Sequences, fitted_on: Sequences) -> np.ndarray:
    """Log-density under a Gaussian around the line between earlier values, of one deviation for all.

    Parameters
    ----------
    sequences : Sequences
        What is scored.
    fitted_on : Sequences
        Others, whose targets say how large the deviation is.

    Returns
    -------
    np.ndarray of shape (n, N)
        In nats.
    """

    def errors(s: Sequences) -> np.ndarray:
        return s.y - np.stack([lines(*pair) for pair in zip(s.x, s.y, strict=True)])

    deviation = np.sqrt((errors(fitted_on)[fitted_on.is_target] ** 2).mean())
    return -0.5 * (errors(sequences) / deviation) ** 2 - np.log(deviation) - 0.5 * np.log(2 * np.pi)
