"""Intermittent demand: a Bayesian average of negative binomial and empirical distributions.

Values with many zeros are forecast by a whole distribution, the same for all steps ahead: levels are
exponentially smoothed, and members are weighted by the probability that they gave to the past.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from taylorformer_forecast.defaults import (
    CLOSED_RUN,
    DEMAND_DECAYS,
    DEMAND_PRIOR_COUNT,
    DEMAND_PRIOR_MEAN,
    DEMAND_SIZES,
    FEW_ZEROS,
    FEWEST_NIGHTS,
    FEWEST_STEPS,
    INTERMITTENT_ZEROS,
    LEAST_ELASTICITY,
    MOST_BINS,
    MOST_LEADING_ZEROS,
    SMOOTHING_COUNT,
    SMOOTHING_SIZE,
)


@dataclass(frozen=True)
class Intermittent:
    """Distributions of the next values.

    Parameters
    ----------
    support : Tensor of shape (B, K)
        Values, ascending.
    cdf : Tensor of shape (B, K)
        Cumulative probabilities at the last origin.
    mean, deviation : Tensor of shape (B, n)
        Of the distribution at every origin.
    """

    support: Float[Tensor, "B K"]
    cdf: Float[Tensor, "B K"]
    mean: Float[Tensor, "B n"]
    deviation: Float[Tensor, "B n"]


def is_intermittent(y: Float[Tensor, "B n"]) -> Bool[Tensor, "B n"]:
    """Whether the values up to each point are not negative and a quarter of them is zero.

    Of the zeros before the first other value four count: a series may only have begun late. A long run of
    zeros that is over does not count where there are few others: something was closed. Nor do zeros count
    that alternate with other values in long runs, as nights do with days.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.intermittent import is_intermittent
    >>> is_intermittent(torch.tensor([[3.0, 2.0, 4.0, 0.0, 1.0]])).tolist()
    [[False, False, False, True, False]]
    """
    leading = ~((y != 0) & ~y.isnan()).cummax(1).values
    zeros = ((y == 0) & ~leading).cumsum(1) + ((y == 0) & leading).cumsum(1).clamp_max(MOST_LEADING_ZEROS)
    seen = (~y.isnan() & ~leading).cumsum(1) + (~y.isnan() & leading).cumsum(1).clamp_max(MOST_LEADING_ZEROS)
    ended = torch.where((y != 0) & ~y.isnan(), zeros, 0).cummax(1).values  # zeros up to the last other value
    run = ended.diff(dim=1, prepend=ended[:, :1]).cummax(1).values  # the longest one that is over
    closed = (run >= CLOSED_RUN) & (zeros - run < FEW_ZEROS * (seen - run))
    over = F.pad((ended.diff(dim=1) > 0).cumsum(1), (1, 0))  # number of runs that are
    nights = (over >= FEWEST_NIGHTS) & (torch.minimum(zeros, seen - zeros) >= CLOSED_RUN * over)
    return (zeros >= INTERMITTENT_ZEROS * seen.clamp_min(1)) & ((y < 0).cumsum(1) == 0) & ~closed & ~nights


def never_negative(y: Float[Tensor, "B n"]) -> Bool[Tensor, "B n"]:
    """Whether the values up to each point leave it open that none can be negative.

    Zero is no bound of numbers that are not whole where one of them is zero, as in a series that was scaled
    to its range, or where steps are as large at low levels as at high ones, as those of degrees are.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.intermittent import never_negative
    >>> y = torch.tensor([[4.0, 2.0, 3.0, 0.0], [4.5, 2.5, 3.5, 0.0], [4.5, 2.5, 3.5, 0.5]])
    >>> never_negative(y)[:, -1].tolist()
    [True, False, True]
    """
    seen = ~y.isnan()
    both, value = seen[:, 1:] & seen[:, :-1], torch.nan_to_num(y)
    of_one = value / value.abs().amax(1, keepdim=True).clamp_min(1e-300)  # squares of tiny ones vanish
    step, level = of_one.diff(dim=1).abs(), (of_one[:, 1:] + of_one[:, :-1]) / 2
    count = both.cumsum(1).clamp_min(1)
    size, high, joint, square = (
        torch.where(both, part, 0.0).cumsum(1) / count for part in (step, level, step * level, level**2)
    )
    # Their elasticity at the mean level is 1 if steps are in proportion to it, and 0 if all are alike.
    smaller = (joint - size * high) * high > LEAST_ELASTICITY * (square - high**2) * size
    smaller |= count < FEWEST_STEPS
    zeros = (seen & (y == 0)).cumsum(1)
    bounded = (zeros > 1) | ((zeros == 0) & F.pad(smaller, (1, 0), value=True))
    whole = (value != value.round()).cumsum(1) == 0
    return (bounded | whole) & ((y < 0).cumsum(1) == 0)


def _bins(
    y: Float[Tensor, "B n"],
) -> tuple[Float[Tensor, "B K"], Bool[Tensor, "B K"], Int[Tensor, "B n"], Bool[Tensor, " B"]]:
    """Support of every series, its own part, the bin of every value, and whether values are small counts.

    What is beyond the own part is there for other series of the batch.
    """
    values = torch.nan_to_num(y)
    largest = values.amax(1)
    counts = (values == values.round()).all(1) & (largest <= MOST_BINS)
    n_own = torch.where(counts, 2 * largest + 8, MOST_BINS)[:, None]
    n_bins = int(n_own.max())
    whole = torch.arange(n_bins, dtype=y.dtype, device=y.device)
    level = torch.linspace(0, 1, MOST_BINS - 1, dtype=y.dtype, device=y.device)
    positive = torch.where(values > 0, values, torch.nan)
    other = torch.nan_to_num(torch.nanquantile(positive, level, dim=1, interpolation="higher").mT)
    other = F.pad(other, (1, 0))
    other = (
        torch.cat([other, other[:, -1:].expand(-1, n_bins - MOST_BINS)], 1) if n_bins >= MOST_BINS else other
    )
    support = torch.where(counts[:, None], whole, other[:, :n_bins])
    index = torch.searchsorted(support.contiguous(), values).clamp_max(n_bins - 1)
    return support, whole < n_own, index, counts


def _log_negative_binomial(
    x: Float[Tensor, "*a"], mean: Float[Tensor, "*b"], size: Float[Tensor, "*c"]
) -> Tensor:
    """Logarithm of the probability of ``x``; the shapes broadcast."""
    combinations = torch.lgamma(x + size) - torch.lgamma(size) - torch.lgamma(x + 1)
    return combinations + size * (size / (size + mean)).log() + x * (mean / (size + mean)).log()


def fit_intermittent(y: Float[Tensor, "B n"]) -> Intermittent:
    """Fit distributions of the next values to every series, at every origin.

    Members are negative binomial distributions with exponentially smoothed mean, and exponentially weighted
    empirical distributions, for several decays each. Their weights are posterior probabilities: products of
    what they gave to each value before it was seen. Series that are not small counts have empirical members
    only.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Values, none negative; NaN where nothing was observed.

    Returns
    -------
    Intermittent
        Distributions.

    References
    ----------
    Snyder, Ord and Beaumont, "Forecasting the intermittent demand for slow-moving inventories", 2012.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.intermittent import fit_intermittent
    >>> y = torch.tensor([0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0, 0.0]).repeat(9)[None].double()
    >>> found = fit_intermittent(y)
    >>> at = torch.searchsorted(found.cdf, torch.tensor([[0.5, 0.9]]).double())
    >>> found.support.gather(1, at).tolist()
    [[0.0, 2.0]]
    """
    support, own, index, counts = _bins(y)
    observed = ~y.isnan()
    # Small counts are units themselves; other values are seen in units of their mean where positive.
    size = torch.where(y > 0, y, torch.nan).nanmean(1, keepdim=True).nan_to_num(1.0)
    unit = torch.where(counts[:, None], 1.0, size)
    past = _past(support / unit, index, observed)
    score = torch.where(observed[..., None], _scores(past, support.gather(1, index), counts), 0.0).cumsum(1)
    parametric = torch.arange(score.shape[2], device=y.device) < len(DEMAND_DECAYS) * len(DEMAND_SIZES)
    score = torch.where(counts[:, None, None] | ~parametric, score, -torch.inf)
    weights = torch.softmax(score, 2)
    mean, square = _moments(past)
    location = (weights * mean).sum(2)
    deviation = ((weights * square).sum(2) - location**2).clamp_min(0.0).sqrt()
    probability = (weights[:, -1, :, None] * _last(past, support / unit, counts)).sum(1) * own
    cdf = probability.cumsum(1) / probability.sum(1, keepdim=True)
    return Intermittent(support, cdf, location * unit, deviation * unit)


@dataclass(frozen=True)
class _Past:
    """Decayed sums, for D decays: before every value and, in the last row, after all."""

    total: Float[Tensor, "B n1 D"]
    first: Float[Tensor, "B n1 D"]
    second: Float[Tensor, "B n1 D"]
    same: Float[Tensor, "B n D"]  # weight of earlier values in the bin of each value
    histogram: Float[Tensor, "B D K"]  # at the end

    @property
    def mean(self) -> Float[Tensor, "B n1 D"]:
        """Smoothed means, with the prior."""
        return (self.first + DEMAND_PRIOR_COUNT * DEMAND_PRIOR_MEAN) / (self.total + DEMAND_PRIOR_COUNT)

    @property
    def size(self) -> Float[Tensor, " R"]:
        """Sizes of the negative binomial distributions."""
        return self.total.new_tensor(DEMAND_SIZES)


def _past(support: Float[Tensor, "B K"], index: Int[Tensor, "B n"], observed: Bool[Tensor, "B n"]) -> _Past:
    """Run through every series once."""
    decay = support.new_tensor(DEMAND_DECAYS)[:, None]
    histogram = support.new_zeros(len(support), len(DEMAND_DECAYS), support.shape[1])
    one_hot = torch.nn.functional.one_hot(index, support.shape[1]).to(support)
    rows, same = [], []
    moments = torch.stack([torch.ones_like(support), support, support**2], -1)
    for t in range(index.shape[1]):
        rows.append(histogram @ moments)
        same.append((histogram * one_hot[:, t, None]).sum(-1))
        now = observed[:, t, None, None]
        histogram = torch.where(now, decay * histogram + one_hot[:, t, None], histogram)
    rows.append(histogram @ moments)
    total, first, second = torch.stack(rows, 1).unbind(-1)
    return _Past(total, first, second, torch.stack(same, 1), histogram)


def _scores(past: _Past, value: Float[Tensor, "B n"], counts: Bool[Tensor, " B"]) -> Float[Tensor, "B n M"]:
    """Logarithms of the probabilities of every value by all members before it."""
    logs = _log_negative_binomial(value[..., None, None], past.mean[:, :-1, :, None], past.size)
    smoothing = _smoothing(logs[..., SMOOTHING_SIZE], past.mean[:, :-1], value[..., None] == 0, counts)
    empirical = (past.same + SMOOTHING_COUNT * smoothing) / (past.total[:, :-1] + SMOOTHING_COUNT)
    return torch.cat([logs.flatten(2), empirical.log()], 2)


def _smoothing(logs: Tensor, mean: Tensor, zero: Tensor, counts: Tensor) -> Tensor:
    """Probabilities of bins: those of counts; else zero is as likely as for counts, and others are alike."""
    size = DEMAND_SIZES[SMOOTHING_SIZE]
    none = (size / (size + mean)) ** size
    other = torch.where(zero, none, (1 - none) / (MOST_BINS - 1))
    return torch.where(counts[:, None, None], logs.exp(), other)


def _moments(past: _Past) -> tuple[Float[Tensor, "B n M"], Float[Tensor, "B n M"]]:
    """Means and mean squares of all members after every value."""
    mean = past.mean[:, 1:, :, None].expand(-1, -1, -1, len(DEMAND_SIZES))
    square = mean + mean**2 / past.size + mean**2
    total = past.total[:, 1:] + SMOOTHING_COUNT
    first = (past.first[:, 1:] + SMOOTHING_COUNT * mean[..., SMOOTHING_SIZE]) / total
    second = (past.second[:, 1:] + SMOOTHING_COUNT * square[..., SMOOTHING_SIZE]) / total
    return torch.cat([mean.flatten(2), first], 2), torch.cat([square.flatten(2), second], 2)


def _last(past: _Past, support: Float[Tensor, "B K"], counts: Bool[Tensor, " B"]) -> Float[Tensor, "B M K"]:
    """Probabilities of the support by all members, after the last value."""
    mean, at = past.mean[:, -1, :, None], support[:, None]
    logs = _log_negative_binomial(at[:, None], mean[..., None], past.size[:, None])
    smoothing = _smoothing(logs[:, :, SMOOTHING_SIZE], mean, at == 0, counts)
    total = past.total[:, -1, :, None] + SMOOTHING_COUNT
    empirical = (past.histogram + SMOOTHING_COUNT * smoothing) / total
    return torch.cat([logs.exp().flatten(1, 2), empirical], 1)
