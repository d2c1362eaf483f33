"""Ridge regression from contexts to steps ahead, for many penalties at once, and its cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from taylorformer_forecast.defaults import MIN_RIDGE_WINDOWS, N_RIDGE_BLOCKS, RIDGE_PENALTIES

__all__ = ["ShrunkFit", "fit_shrunk", "held_out_errors", "ridge"]


def held_out_errors(
    past: Float[Tensor, "n L"],
    y: Float[Tensor, "n T"],
    observed: Bool[Tensor, "n T"],
    embargo: int,
    intercept: bool,
) -> list[Float[Tensor, "n T"]]:
    """Errors for every penalty on blocks of windows that the map was not fitted to.

    Windows that share targets with those of a block are left out of its fit too, while enough remain.

    Parameters
    ----------
    past, y, observed : Tensor
        Contexts, targets, and which of these are known; windows one after another as they were cut.
    embargo : int
        How many windows after a window share targets with it.
    intercept : bool
        See :func:`ridge`.

    Returns
    -------
    list of Tensor
        Errors of all windows, for each of :data:`~taylorformer_forecast.defaults.RIDGE_PENALTIES`.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.ridge import held_out_errors
    >>> from taylorformer_forecast.defaults import RIDGE_PENALTIES
    >>> x, y = torch.randn(40, 3), torch.randn(40, 2)
    >>> errors = held_out_errors(x, y, torch.ones(40, 2, dtype=torch.bool), embargo=2, intercept=False)
    >>> len(errors) == len(RIDGE_PENALTIES), errors[0].shape
    (True, torch.Size([40, 2]))
    """
    errors: list[list[Tensor]] = [[] for _ in RIDGE_PENALTIES]
    for low, high in pairwise(round(k * len(y) / N_RIDGE_BLOCKS) for k in range(N_RIDGE_BLOCKS + 1)):
        others = torch.ones(len(y), dtype=torch.bool)
        margin = max(0, min(embargo, (len(y) - (high - low) - MIN_RIDGE_WINDOWS) // 2))
        others[max(0, low - margin) : high + margin] = False
        fits = ridge(past[others], y[others], observed[others], intercept)
        for parts, (weight, bias) in zip(errors, fits, strict=True):
            parts.append(y[low:high] - past[low:high] @ weight - bias)
    return [torch.cat(parts) for parts in errors]


def ridge(
    x: Float[Tensor, "n L"], y: Float[Tensor, "n T"], observed: Bool[Tensor, "n T"], intercept: bool
) -> list[tuple[Float[Tensor, "L T"], Float[Tensor, " T"]]]:
    """Weights and biases for every penalty; moments of each step are over the windows that observed it.

    Parameters
    ----------
    x, y, observed : Tensor
        Contexts, targets, and which of these are known.
    intercept : bool
        Whether there are biases. Without, a series turned upside down has its forecast turned upside down.

    Returns
    -------
    list of (Tensor, Tensor)
        Weights and biases, for each of :data:`~taylorformer_forecast.defaults.RIDGE_PENALTIES`.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.ridge import ridge
    >>> x = torch.randn(200, 1, dtype=torch.float64)
    >>> weight, bias = ridge(x, 2 * x + 1, torch.ones(200, 1, dtype=torch.bool), intercept=True)[0]
    >>> weight.round(decimals=2).tolist(), bias.round(decimals=2).tolist()
    ([[2.0]], [1.0])
    """
    seen = observed.to(y.dtype)
    share = seen.mean(0).clamp_min(1.0 / len(y))
    mean_x, mean_y = intercept * x.mean(0), intercept * (y * seen).mean(0) / share
    x, y = x - mean_x, (y - mean_y) * seen / share
    tall = len(x) >= x.shape[1]
    values, vectors = torch.linalg.eigh((x.mT @ x if tall else x @ x.mT) / len(x))
    values = values.clamp_min(0.0)
    turned = vectors.mT @ (x.mT @ y if tall else y) / len(x)
    out = []
    for penalty in RIDGE_PENALTIES:
        weight = vectors @ (turned / (values + penalty)[:, None])
        weight = weight if tall else x.mT @ weight
        out.append((weight, mean_y - mean_x @ weight))
    return out


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
    past: Float[Tensor, "n L"],
    y: Float[Tensor, "n T"],
    observed: Bool[Tensor, "n T"],
    targets: Sequence[Float[Tensor, "L T"]],
    embargo: int,
    intercepts: Sequence[bool],
) -> ShrunkFit:
    """Ridge regression with the penalty, shrinkage target and intercept of least held-out squared error.

    Parameters
    ----------
    past, y, observed : Tensor
        Contexts, targets, and which of these are known.
    targets : sequence of Tensor
        Maps that the fit may be shrunk to.
    embargo : int
        See :func:`held_out_errors`.
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

    def held_out(intercept: bool) -> tuple[float, int, Tensor]:
        """Least mean squared error, what has it, and its errors."""
        errors = [
            part
            for parts in held_out_errors(past, rest, known, embargo, intercept)
            for part in parts.chunk(len(targets), 1)
        ]
        squares = [error[observed].square().mean().item() for error in errors]
        best = min(range(len(errors)), key=squares.__getitem__)
        return squares[best], best, errors[best]

    found = {intercept: held_out(intercept) for intercept in intercepts}
    intercept = min(found, key=lambda choice: found[choice][0])
    _, best, errors = found[intercept]
    penalty, target = divmod(best, len(targets))
    weight, bias = (v.chunk(len(targets), -1)[target] for v in ridge(past, rest, known, intercept)[penalty])
    return ShrunkFit(weight + targets[target], bias, errors)
