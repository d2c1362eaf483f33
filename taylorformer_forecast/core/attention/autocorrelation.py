"""Auto-correlation, the Autoformer's.

Source: Wu et al., "Autoformer: Decomposition Transformers with Auto-Correlation for Long-Term Series
Forecasting", section 3.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from taylorformer_forecast.core.attention.kernels import Kernel, Keys, Mask, Queries, Rows, Values


@dataclass(frozen=True)
class AutoCorrelation(Kernel):
    """Auto-correlation: values, moved by the delays at which queries and keys are most alike, averaged.

    The score of a delay is the mean of ``q[t] * k[t - delay]`` over the width of a head and over all times,
    which go round in a circle. The ``floor(factor * ln n)`` largest scores of each head pass a softmax. They
    weigh the values ``v[t + delay]``. Fourier transforms need n log n operations for it. It is not causal:
    delays follow from all points.

    Parameters
    ----------
    factor : int or float, default=3
        Factor on the number of delays; 1 to 3 in the paper.

    Raises
    ------
    ValueError
        If ``factor`` is not positive.

    References
    ----------
    Wu et al., "Autoformer: Decomposition Transformers with Auto-Correlation for Long-Term Series
    Forecasting".

    Examples
    --------
    A series of period 12 is most like itself after 12, 24 and 36 points:

    >>> import torch
    >>> from taylorformer_forecast.core.attention.autocorrelation import AutoCorrelation
    >>> season = (torch.arange(48.0) * 2 * torch.pi / 12).sin().view(1, 1, 48, 1)
    >>> AutoCorrelation().scores(season, season)[0, 0].topk(4).indices.sort().values.tolist()
    [0, 12, 24, 36]
    """

    factor: int | float = 3

    def __post_init__(self) -> None:
        """Refuse factors at which there is no delay."""
        if not self.factor > 0:
            raise ValueError(f"factor={self.factor} must be positive")

    def __call__(self, q: Queries, k: Keys, v: Values, mask: Mask = None, scale: float | None = None) -> Rows:
        """Average moved values; see :class:`~taylorformer_forecast.core.attention.kernels.Kernel`.

        Hidden keys and their values count as zero. ``scale`` changes nothing: scores are means.

        Raises
        ------
        ValueError
            If there are not as many queries as keys, or the mask has a row for every query.
        """
        rows, n = q.shape[2], k.shape[2]
        if rows != n:
            raise ValueError(f"auto-correlation needs as many queries as keys, not {rows} and {n}")
        if mask is not None:
            if mask.shape[1] > 1:
                raise ValueError(
                    "auto-correlation compares whole sequences: a mask can hide keys from all queries, "
                    "not from some"
                )
            hidden = ~mask[:, :, :, None]
            k, v = k.masked_fill(hidden, 0.0), v.masked_fill(hidden, 0.0)
        scores = self.scores(q, k)
        best, delays = scores.topk(max(1, min(n, math.floor(self.factor * math.log(n)))), -1)
        weights = torch.zeros_like(scores).scatter(-1, delays, best.softmax(-1))
        return _lagged_products(v, weights[..., None]).to(v.dtype)

    def scores(self, q: Queries, k: Keys) -> Float[Tensor, "B H N"]:
        """Mean of the products of queries and keys that are 0, 1, ..., N - 1 points earlier."""
        return _lagged_products(q, k).mean(-1) / k.shape[2]


def _lagged_products(a: Tensor, b: Tensor) -> Float[Tensor, "B H N E"]:
    """Sum of ``a[t + delay] * b[t]`` over all t modulo N, for delays 0 to N - 1."""
    with torch.autocast(a.device.type, enabled=False):  # transforms have no half precision on CPUs
        x, y = (torch.fft.rfft(z.to(torch.promote_types(z.dtype, torch.float32)), dim=2) for z in (a, b))
        return torch.fft.irfft(x * y.conj(), n=a.shape[2], dim=2)
