"""Sample paths: encode the context once, then query, draw and observe, one target after another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributions import Distribution

from taylorformer_forecast.core.families import Components, components, draw, family_of
from taylorformer_forecast.core.protocol import ForecastNet
from taylorformer_forecast.core.scaling import Scale
from taylorformer_forecast.core.window import Window, join_columns

POINTS_AT_ONCE = 2**17  # windows times points that a one-shot network processes at once
PAIRS_AT_ONCE = 2**24  # windows times pairs of points, whose weights an autoregressive network may keep
CACHED_AT_ONCE = 2**20  # windows times paths times targets in the caches at once: half a gigabyte or so


def windows_at_once(net: ForecastNet, n_points: int) -> int:
    """Windows that a network may process at once, so that memory stays bounded.

    Parameters
    ----------
    net : ForecastNet
        The network.
    n_points : int
        Points of a window.

    Returns
    -------
    int
        At least 1.
    """
    return max(1, POINTS_AT_ONCE // n_points if net.one_shot else PAIRS_AT_ONCE // n_points**2)


@dataclass(frozen=True)
class PathSamples:
    """Joint sample paths and the conditional distribution that each of their points was drawn from.

    The average of the conditional distributions over the paths is the marginal predictive distribution: it
    has a density and is smoother than the order statistics of the paths.

    Parameters
    ----------
    paths : Tensor of shape (B, S, T, D)
        Drawn values.
    conditionals : Components
        Components with arrays of shape (B, S, T, D, K), or (B, 1, T, D, K) where all paths share them.
    """

    paths: Tensor
    conditionals: Components

    def map(self, function: Callable[[Tensor], Tensor]) -> PathSamples:
        """Apply a function to every tensor."""
        return PathSamples(function(self.paths), self.conditionals.map(function))

    def to_data(self, scale: Scale) -> PathSamples:
        """Return from scaled values to the units of the data, in float64."""
        return self.affine(scale.loc.double()[:, :, None], scale.scale.double()[:, :, None])  # (B, 1, 1, D)

    def affine(self, loc: Tensor, factor: Tensor) -> PathSamples:
        """Samples of ``loc + factor * y`` for a positive factor; shapes broadcast to (B, S, T, D)."""
        conditionals = self.conditionals.affine(loc[..., None], factor[..., None])
        return PathSamples(self.paths * factor + loc, conditionals)

    def reordered(self, order: Tensor) -> PathSamples:
        """Samples with the targets of every window in another order (B, T)."""
        return self.map(lambda v: v.take_along_dim(order.view(len(order), 1, -1, *[1] * (v.ndim - 3)), 2))


def join_samples(parts: list[PathSamples], dim: int) -> PathSamples:
    """Join samples along one axis; conditionals that all paths share are repeated only beside others."""

    def join(tensors: list[Tensor]) -> Tensor:
        shape = [max(sizes) for sizes in zip(*(tensor.shape for tensor in tensors), strict=True)]
        shape[dim] = -1
        return torch.cat([tensor.expand(shape) for tensor in tensors], dim)

    conditionals = Components.combine([part.conditionals for part in parts], join)
    return PathSamples(torch.cat([part.paths for part in parts], dim), conditionals)


def draw_paths(
    conditional: Distribution,
    n_paths: int,
    generator: torch.Generator | None = None,
    noise: Tensor | None = None,
) -> PathSamples:
    """Draw paths, all from the same distributions.

    Parameters
    ----------
    conditional : Distribution
        Batch shape (B, T, D).
    n_paths : int
        Paths S of each window.
    generator : torch.Generator, optional
        Source of randomness; the global one by default.
    noise : Tensor of shape (B, S, T, D), optional
        Standard Gaussian noise that the draws of a path follow. Without, its steps are independent.

    Returns
    -------
    PathSamples
        With conditionals that are stored once, (B, 1, T, D, K).

    Examples
    --------
    >>> import torch
    >>> from torch.distributions import Normal
    >>> from taylorformer_forecast.core.sampling import draw_paths
    >>> samples = draw_paths(Normal(torch.zeros(2, 7, 1), torch.ones(2, 7, 1)), n_paths=5)
    >>> samples.paths.shape, samples.conditionals.loc.shape
    (torch.Size([2, 5, 7, 1]), torch.Size([2, 1, 7, 1, 1]))
    """
    family = family_of(conditional)
    shared = family.components(conditional).map(lambda value: value.unsqueeze(1))
    return PathSamples(family.sample_paths(conditional, n_paths, generator, noise), shared)


@torch.no_grad()
def sample_paths(
    net: ForecastNet,
    window: Window,
    n_paths: int,
    generator: torch.Generator | None = None,
    max_rows: int = 8192,
    keep_observed: bool = False,
    pick: Callable[[Distribution, torch.Generator | None], Tensor] = draw,
) -> PathSamples:
    """Draw joint paths of the targets of every window.

    Nothing computed for a point changes later, so each step costs one query against cached keys and values;
    the context is encoded once and shared by all paths.

    Networks that predict all targets at once (``one_shot``) give every path the same distributions, and the
    conditionals are stored once. Steps of a path follow the network's own ``noise``, or are drawn
    independently of each other where it has none.

    Networks that join columns (``joins_columns``) draw those of a target one after another.

    Parameters
    ----------
    net : ForecastNet
        The network, in evaluation mode.
    window : Window
        Scaled windows; the values of the targets are ignored.
    n_paths : int
        Paths S of each window.
    generator : torch.Generator, optional
        Source of randomness, on the window's device; the global one by default.
    max_rows : int, default=8192
        Upper bound on windows times paths that a network which predicts one target after another processes
        at once; long horizons lower it further. Other networks process windows, whatever the paths.
    keep_observed : bool, default=False
        Whether targets that were observed keep their values: those after them are drawn conditional on them.
        Put them first, so that all others are. By default the values of all targets are ignored.
    pick : callable, default=draw
        What takes a value from a conditional distribution, with the generator.

    Returns
    -------
    PathSamples
        Scaled paths and their conditional distributions.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.sampling import sample_paths
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.models.taylorformer import Taylorformer
    >>> net = Taylorformer(d_model=8, n_heads=2, n_layers=2).eval()
    >>> w = Window(torch.linspace(-1, 1, 10)[None], torch.randn(1, 10, 1), n_context=6)
    >>> sample_paths(net, w, n_paths=5).paths.shape
    torch.Size([1, 5, 4, 1])
    """
    options = (n_paths, generator, max_rows, keep_observed, pick)
    if net.joins_columns and window.series is None:
        n_columns = window.y.shape[2]
        points = sample_paths(net, join_columns(window), *options)
        return points.map(lambda value: value.unflatten(2, (-1, n_columns)).squeeze(4))
    n_windows, one_shot = window.y.shape[0], net.one_shot
    rows = max(1, min(max_rows, CACHED_AT_ONCE // max(1, window.n_targets)))
    per_call = windows_at_once(net, window.y.shape[1])
    if not one_shot:  # it sees paths, not windows
        per_call = max(1, min(per_call, rows // n_paths))
    if n_windows > per_call:
        pieces = [
            sample_paths(net, window.rows(slice(start, start + per_call)), *options)
            for start in range(0, n_windows, per_call)
        ]
        return join_samples(pieces, 0)
    if one_shot:
        noise = net.noise(window, n_paths, generator)
        return draw_paths(net(window), n_paths, generator, noise)
    if n_paths > rows:  # one window: its paths in groups
        sizes = [min(rows, n_paths - start) for start in range(0, n_paths, rows)]
        groups = [sample_paths(net, window, size, *options[1:]) for size in sizes]
        return join_samples(groups, 1)
    values, known = window.targets
    steps = []
    with torch.inference_mode():  # a tenth faster than no_grad where steps are small
        state = net.encode(window, n_paths)
        for step in range(window.n_targets):
            conditional = net.query(state, step)
            y = pick(conditional, generator)
            if keep_observed:
                y = torch.where(known[:, None, step], values[:, None, step], y)
            state = net.observe(state, step, y)
            steps.append(PathSamples(y, components(conditional)).map(lambda value: value.unsqueeze(2)))
    return join_samples(steps, 2)  # copies, which are ordinary tensors again
