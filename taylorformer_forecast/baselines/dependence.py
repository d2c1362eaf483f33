"""What errors are divided by, and how those along one path of a forecast depend on each other."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from taylorformer_forecast.defaults import (
    CORRELATION_COUNT,
    LARGEST_CORRELATION,
    LARGEST_ERROR,
    LARGEST_PAST_SCALE,
    SHARED_COUNT,
)


def dependence(
    standard: Float[Tensor, "B n H"], scale: Float[Tensor, "B H"]
) -> tuple[Float[Tensor, " B"], Float[Tensor, " B"], Float[Tensor, " B"]]:
    """How the errors along one path depend on each other: a part that is shared, and memory of the rest.

    Normal scores are ``sqrt(shared) u + sqrt(1 - shared) v``. What was an error at one step still is one at
    the next, where errors are larger as another has come to it: u are the scores of a random walk whose
    deviation is the scale, and correlations of two steps the ratio of their scales. Of v a part is forgotten
    from each step to the next. Where all scales are alike u is the same at all steps, and v an autoregression
    of order one. Errors of a trend grow faster, and together: of their scales a power counts. The numbers
    give neighbouring errors the correlation that they had, and sums over all steps the variance. They are
    drawn towards those of a random walk, and of no shared part.

    Parameters
    ----------
    standard : Tensor of shape (B, n, H)
        Errors over their scale, NaN where unknown.
    scale : Tensor of shape (B, H)
        Mean absolute errors of every step.

    Returns
    -------
    shared, memory, power : Tensor of shape (B,)
        Between 0 and 1.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.dependence import dependence
    >>> g = torch.Generator().manual_seed(0)
    >>> level = torch.randn(1, 5000, 1, generator=g, dtype=torch.float64)
    >>> noise = torch.randn(1, 5000, 8, generator=g, dtype=torch.float64)
    >>> alike = torch.ones(1, 8).double()
    >>> [part.round(decimals=1).item() for part in dependence(0.6 * level + 0.8 * noise, alike)]
    [0.4, 0.0, 1.0]
    >>> root = torch.arange(1, 9).double().sqrt()
    >>> [part.round(decimals=1).item() for part in dependence(noise.cumsum(2) / root, root[None])]
    [1.0, 0.0, 0.9]
    """
    size = standard.clamp(-LARGEST_ERROR, LARGEST_ERROR)
    horizon = size.shape[2]
    left, right = size[..., :-1], size[..., 1:]
    known = ~(left.isnan() | right.isnan())
    product = torch.where(known, left * right, 0.0).sum((1, 2))
    square = torch.where(known, (left**2 + right**2) / 2, 0.0).sum((1, 2))
    count = known.sum((1, 2)) / max(horizon - 1, 1)
    lags = torch.arange(1, max(horizon, 2), dtype=size.dtype, device=size.device)
    usual = (lags / (lags + 1)).sqrt().mean()  # of neighbouring sums of 1, 2, ... equal steps
    own = torch.where(square > 0, product / square.clamp_min(1e-300), usual)
    near = (count * own + CORRELATION_COUNT * usual) / (count + CORRELATION_COUNT)
    near = near.clamp(0.0, LARGEST_CORRELATION)
    if horizon < 3:
        return torch.zeros_like(near), near, torch.zeros_like(near)
    pairs = (horizon - lags) / (horizon - lags).sum()  # of all pairs of steps, those of each lag
    of_steps = walk_memory(scale)
    together = of_steps.log().mean(1)
    power = torch.where(together < 0, near.log() / together.clamp_max(-1e-9), 1.0).clamp(0.0, 1.0)
    of_walk = _of_walk(of_steps ** power[:, None])

    def of_pairs(memory: Tensor) -> Tensor:
        """Mean correlation of all pairs of steps, if a part is remembered from each to the next."""
        return (memory[..., None] ** lags * of_walk[:, None]) @ pairs

    whole = ~size.isnan().any(2)
    square = torch.where(whole, (size**2).sum(2), 0.0).sum(1)
    product = torch.where(whole, size.sum(2) ** 2, 0.0).sum(1) - square
    own = product / (square * (horizon - 1)).clamp_min(1e-300)
    count = whole.sum(1) / horizon  # errors of origins that are neighbours overlap
    near = (near / of_walk[:, 0]).clamp_max(LARGEST_CORRELATION)[:, None]  # what is remembered in all
    mean = (count * own + SHARED_COUNT * of_pairs(near)[:, 0]) / (count + SHARED_COUNT)
    shared = torch.linspace(0, 1, 41, dtype=size.dtype, device=size.device) * near
    rest = (near - shared) / (1 - shared)
    of_all = shared * (of_walk @ pairs)[:, None] + (1 - shared) * of_pairs(rest)
    best = (of_all - mean[:, None]).abs().argmin(1, keepdim=True)
    return shared.gather(1, best)[:, 0], rest.gather(1, best)[:, 0], power


def walk_memory(scale: Float[Tensor, "B H"]) -> Float[Tensor, "B H1"]:
    """Correlation of each step of a random walk with the next, by the deviations of steps, which grow."""
    growing = scale.cummax(1).values
    return torch.where(growing[:, :-1] > 0, growing[:, :-1] / growing[:, 1:].clamp_min(1e-300), 1.0)


def _of_walk(memory: Float[Tensor, "B H1"]) -> Float[Tensor, "B H1"]:
    """Mean correlation of steps that are 1, 2, ... steps apart, from that of each step with the next."""
    horizon = memory.shape[1] + 1
    with_first = torch.cat([torch.ones_like(memory[:, :1]), memory], 1).cumprod(1).clamp_min(1e-9)
    before, after = torch.fft.rfft(1 / with_first, 2 * horizon), torch.fft.rfft(with_first, 2 * horizon)
    sums = torch.fft.irfft(before.conj() * after, 2 * horizon)[:, 1:horizon]
    return sums / torch.arange(horizon - 1, 0, -1, dtype=memory.dtype, device=memory.device)


def least_units(relative: Float[Tensor, "B n H"], latest: Float[Tensor, "B 1 H"]) -> Float[Tensor, "B n H"]:
    """What errors are divided by: the latest scale, or that of their origin where it was much larger.

    So it was before a trend was known.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.dependence import least_units
    >>> least_units(torch.tensor([[[9.0], [1.5], [1.0]]]), torch.ones(1, 1, 1)).flatten().tolist()
    [4.5, 1.0, 1.0]
    """
    return torch.maximum(relative / LARGEST_PAST_SCALE, latest).clamp_min(1e-300)
