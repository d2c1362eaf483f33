"""Tails of the errors: what lies beyond the central nine tenths, on each side by itself."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from taylorformer_forecast.baselines.errors import BASE, ByOrigin, at_shape
from taylorformer_forecast.defaults import (
    LARGEST_ERROR,
    LARGEST_TAIL,
    NORMAL_SHAPE_COUNT,
    TAIL_LEVEL,
)


def tails(
    standard: ByOrigin,
    shift: Float[Tensor, "B H"],
    sides: tuple[Float[Tensor, "B H"], Float[Tensor, "B H"]],
    shape: Float[Tensor, "B J"],
) -> Float[Tensor, "B 2"]:
    """How many times as far as the shape says one error in a hundred lies, below and above.

    Shape and asymmetry are measured by the bulk of the errors, of both sides together. Demand that is skewed
    to the right has its large errors on one side. Factors are drawn towards 1, which is the least.

    Parameters
    ----------
    standard : Tensor of shape (B, n, H)
        Errors over their scale, NaN where unknown.
    shift : Tensor of shape (B, H)
        Median less mean, in scales.
    sides : tuple of two Tensors of shape (B, H)
        Factors of the distances of quantiles below and above the median.
    shape : Tensor of shape (B, J)
        Quantiles of absolute errors, see :func:`~taylorformer_forecast.baselines.errors.shape`.

    Returns
    -------
    Tensor of shape (B, 2)
        Factors of distances below and above.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.errors import shape
    >>> from taylorformer_forecast.baselines.tails import tails
    >>> z = torch.randn(1, 2000, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> none, one = torch.zeros(1, 1).double(), torch.ones(1, 1).double()
    >>> below, above = tails(z.exp() - 1.6, none, (one, one), shape(z.exp() - 1.6))[0].tolist()
    >>> below, above > 1.5
    (1.0, True)
    """
    known = standard[:, :, : standard.shape[1]] - shift[:, None, : standard.shape[1]]
    below, above = (side[:, None, : standard.shape[1]] for side in sides)
    distance = (known / torch.where(known < 0, below, above)).clamp(-LARGEST_ERROR, LARGEST_ERROR)
    levels = distance.new_tensor([1 - TAIL_LEVEL, TAIL_LEVEL])
    found = torch.nan_to_num(torch.nanquantile(distance.flatten(1), levels, dim=1).mT).abs()
    usual = at_shape(shape, torch.special.ndtri(levels[1:]).expand(len(shape), 1))
    count = (~standard[:, :, 0].isnan()).sum(1, keepdim=True).to(distance)
    ratio = (found / usual.clamp_min(1e-300)).clamp(1.0, LARGEST_TAIL)
    return ratio ** (count / (count + NORMAL_SHAPE_COUNT))


def with_tails(
    error: Float[Tensor, "B S H"], z: Float[Tensor, "B S H"], tails: Float[Tensor, "B 2"]
) -> Float[Tensor, "B S H"]:
    """Errors at normal scores ``z``, farther out in the tails: factors are reached at .99.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.tails import with_tails
    >>> z = torch.tensor([-3.0, 1.0, 2.3263]).double().view(1, 3, 1)
    >>> with_tails(z, z, torch.tensor([[1.0, 1.5]])).flatten().round(decimals=2).tolist()
    [-3.0, 1.0, 3.49]
    """
    end = torch.special.ndtri(z.new_tensor(TAIL_LEVEL))
    part = ((z.abs() - BASE[-1]) / (end - BASE[-1])).clamp_min(0.0)  # beyond the last quantile of the shape
    more = torch.where(z < 0, tails[:, None, :1], tails[:, None, 1:]) - 1
    return error * (1 + more * part)
