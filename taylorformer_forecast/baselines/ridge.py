"""Ridge regression from contexts to steps ahead, for many penalties at once, and its cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from taylorformer_forecast.defaults import MIN_RIDGE_WINDOWS, N_RIDGE_BLOCKS, RIDGE_PENALTIES

Contexts: TypeAlias = Float[Tensor, "n L"]
Steps: TypeAlias = Float[Tensor, "n T"]  # ahead
Known: TypeAlias = Bool[Tensor, "n T"]  # of these
StepWeights: TypeAlias = Float[Tensor, "L T"]  # of a linear map from contexts to steps


@dataclass(frozen=True)
class Ridge:
    """Ridge regression for any penalty, from one factorisation.

    Parameters
    ----------
    basis : Tensor of shape (L, K)
        Principal directions of the contexts.
    values : Tensor of shape (K,)
        Mean squares along them.
    turned : Tensor of shape (K, T)
        Mean products with the targets along them.
    mean_x, mean_y : Tensor of shape (L,) and (T,)
        Means that were taken off; zero without an intercept.
    """

    basis: Float[Tensor, "L K"]
    values: Float[Tensor, " K"]
    turned: Float[Tensor, "K T"]
    mean_x: Float[Tensor, " L"]
    mean_y: Float[Tensor, " T"]

    def map(self, penalty: float) -> tuple[Float[Tensor, "L T"], Float[Tensor, " T"]]:
        """Weights and biases for one penalty."""
        weight = self.basis @ (self.turned / (self.values + penalty)[:, None])
        return weight, self.mean_y - self.mean_x @ weight


def ridge(x: Contexts, y: Steps, observed: Known, intercept: bool) -> Ridge:
    """Ridge regression; moments of each step are over the windows that observed it.

    Parameters
    ----------
    x, y, observed : Tensor
        Contexts, targets, and which of these are known.
    intercept : bool
        Whether there are biases. Without, a series turned upside down has its forecast turned upside down.

    Returns
    -------
    Ridge
        Weights and biases for every penalty.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.ridge import ridge
    >>> x = torch.randn(200, 1, dtype=torch.float64)
    >>> weight, bias = ridge(x, 2 * x + 1, torch.ones(200, 1, dtype=torch.bool), intercept=True).map(1e-5)
    >>> weight.round(decimals=2).tolist(), bias.round(decimals=2).tolist()
    ([[2.0]], [1.0])
    """
    seen = observed.to(y.dtype)
    share = seen.mean(0).clamp_min(1.0 / len(y))
    mean_x, mean_y = intercept * x.mean(0), intercept * (y * seen).mean(0) / share
    x, y = x - mean_x, (y - mean_y) * seen / share
    tall = len(x) >= x.shape[1]
    values, vectors = torch.linalg.eigh((x.mT @ x if tall else x @ x.mT) / len(x))
    turned = vectors.mT @ (x.mT @ y if tall else y) / len(x)
    return Ridge(vectors if tall else x.mT @ vectors, values.clamp_min(0.0), turned, mean_x, mean_y)


def blocks(
    past: Contexts, y: Steps, observed: Known, embargo: int, intercept: bool, offsets: Sequence[int] = ()
) -> list[tuple[Tensor, Ridge]]:
    """Blocks of windows, contiguous within each series, and for each the ridge regression on the others.

    Windows that share targets with those of a block are left out of its fit too, while enough remain.

    Parameters
    ----------
    past, y, observed : Tensor
        Contexts, targets, and which of these are known; windows one after another as they were cut.
    embargo : int
        How many windows after a window share targets with it.
    intercept : bool
        See :func:`ridge`.
    offsets : sequence of int, optional
        Where series start, and the end of the last; by default all windows are of one.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.ridge import blocks
    >>> x, y = torch.randn(40, 3), torch.randn(40, 2)
    >>> parts = blocks(x, y, torch.ones(40, 2, dtype=torch.bool), embargo=2, intercept=False)
    >>> [int(part[0]) for part, _ in parts]
    [0, 10, 20, 30]
    """
    found = []
    for k in range(N_RIDGE_BLOCKS):
        others, within = torch.ones(len(y), dtype=torch.bool), []
        for start, stop in pairwise(offsets or (0, len(y))):
            n = stop - start
            low, high = (start + round(j * n / N_RIDGE_BLOCKS) for j in (k, k + 1))
            margin = max(0, min(embargo, (n - (high - low) - MIN_RIDGE_WINDOWS) // 2))
            others[max(start, low - margin) : min(stop, high + margin)] = False
            within.append(torch.arange(low, high))
        found.append((torch.cat(within), ridge(past[others], y[others], observed[others], intercept)))
    return found


@dataclass(frozen=True)
class ShrunkFit:
    """A map, and its errors in cross-validation.

    Parameters
    ----------
    weight : Tensor of shape (L, T)
        The map.
    bias : Tensor of shape (T,)
        Its intercepts.
    held_out : Tensor of shape (n, T)
        Errors on windows that the map in question was not fitted to.
    """

    weight: Float[Tensor, "L T"]
    bias: Float[Tensor, " T"]
    held_out: Float[Tensor, "n T"]


def fit_shrunk(
    past: Contexts,
    y: Steps,
    observed: Known,
    targets: Sequence[StepWeights],
    embargo: int,
    intercepts: Sequence[bool],
    offsets: Sequence[int] = (),
) -> ShrunkFit:
    """Ridge regression with the penalty, shrinkage target and intercept of least held-out squared error.

    Parameters
    ----------
    past, y, observed : Tensor
        Contexts, targets, and which of these are known.
    targets : sequence of Tensor
        Maps that the fit may be shrunk to.
    embargo, offsets
        See :func:`blocks`.
    intercepts : sequence of bool
        Whether there may be intercepts: the choices.

    Returns
    -------
    ShrunkFit
        The map.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.ridge import fit_shrunk
    >>> x = torch.randn(200, 1, dtype=torch.float64)
    >>> known = torch.ones(200, 1, dtype=torch.bool)
    >>> fit_shrunk(x, 2 * x, known, [torch.zeros_like(x[:1])], 0, (False,)).weight.round(decimals=2).item()
    2.0
    """
    known = observed.repeat(1, len(targets))  # side by side: one factorisation serves all of them
    rest = y.repeat(1, len(targets)) - past @ torch.cat(list(targets), 1)

    def errors(part: Tensor, fit: Ridge, penalty: float) -> Tensor:
        """Errors of a block of windows, shape (rows, shrinkage target, step): no more of them are kept."""
        weight, bias = fit.map(penalty)
        missed = torch.where(known[part], rest[part] - past[part] @ weight - bias, 0.0)
        return missed.unflatten(1, (len(targets), -1))

    found = {intercept: blocks(past, rest, known, embargo, intercept, offsets) for intercept in intercepts}
    squares = {
        (intercept, penalty): torch.stack(
            [errors(*block, penalty).square().sum((0, 2)) for block in parts]
        ).sum(0)
        for intercept, parts in found.items()
        for penalty in RIDGE_PENALTIES
    }
    intercept, penalty = min(squares, key=lambda choice: float(squares[choice].min()))
    target = int(squares[intercept, penalty].argmin())
    held_out = torch.empty_like(y)
    for block in found[intercept]:
        held_out[block[0]] = errors(*block, penalty)[:, target]
    whole = ridge(past, rest, known, intercept).map(penalty)
    weight, bias = (v.chunk(len(targets), -1)[target] for v in whole)
    return ShrunkFit(weight + targets[target], bias, held_out)


def averaged(alone: ShrunkFit, shared: ShrunkFit, held_out: Steps, observed: Known) -> ShrunkFit:
    """Average of the map of one series and that of all.

    Four parts of the windows have each a weight of least held-out squared error. The least of these is taken,
    so that what is good for a while only does not count.

    Parameters
    ----------
    alone, shared : ShrunkFit
        The maps.
    held_out : Tensor of shape (n, H)
        Held-out errors of the map of all on the windows of the series.
    observed : bool Tensor of shape (n, H)
        Which of them are known.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.ridge import ShrunkFit, averaged
    >>> ones = torch.ones(4, 1)
    >>> alone, shared = (ShrunkFit(w * ones, 0 * ones[0], w * ones) for w in (1.0, 3.0))
    >>> averaged(alone, shared, -3 * ones, ones > 0).weight.flatten().tolist()
    [1.5, 1.5, 1.5, 1.5]
    """
    better = torch.where(observed, held_out - alone.held_out, 0.0)
    products, squares = (held_out * better).sum(1), better.square().sum(1)
    parts = zip(products.tensor_split(N_RIDGE_BLOCKS), squares.tensor_split(N_RIDGE_BLOCKS), strict=True)
    weight = torch.stack([p.sum() / s.sum().clamp_min(1e-12) for p, s in parts]).min().clamp(0.0, 1.0)
    return ShrunkFit(
        torch.lerp(shared.weight, alone.weight, weight),
        torch.lerp(shared.bias, alone.bias, weight),
        held_out - weight * better,
    )
