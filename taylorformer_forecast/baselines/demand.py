"""Distributions of intermittent demand: a Bayesian average of negative binomial, hurdle and empirical ones.

Values with many zeros are forecast by a whole distribution, the same for all steps ahead: levels are
exponentially smoothed, and members are weighted by the probability that they gave to the past.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.distributions import NegativeBinomial

from taylorformer_forecast.baselines.smoothing import points_since_first
from taylorformer_forecast.baselines.zeros import may_be_broken, may_have_ended
from taylorformer_forecast.defaults import (
    DEMAND_CLASSES,
    DEMAND_DECAYS,
    DEMAND_PRIOR_COUNT,
    DEMAND_PRIOR_MEAN,
    DEMAND_PRIOR_REST,
    DEMAND_SIZES,
    ENDED_DECAY,
    FARTHEST_JUDGED,
    HURDLE_SIZES,
    MOST_BINS,
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
    return NegativeBinomial(size, mean / (size + mean), validate_args=False).log_prob(x)


def _log_hurdle(
    x: Float[Tensor, "*a"], share: Float[Tensor, "*b"], rest: Float[Tensor, "*b"], size: Float[Tensor, "*c"]
) -> Tensor:
    """Logarithm of the probability of ``x``: 1 and a negative binomial count, where there is demand."""
    some = share.log() + _log_negative_binomial((x - 1).clamp_min(0), rest, size)
    return torch.where(x == 0, torch.log1p(-share), some)


def fit_intermittent(y: Float[Tensor, "B n"], horizon: int = 1) -> Intermittent:
    """Fit distributions of the next values to every series, at every origin.

    Members are negative binomial distributions with exponentially smoothed mean, the same behind a hurdle
    (there is demand or not, and its size less 1 is negative binomial), and exponentially weighted empirical
    distributions, for several decays each. Their weights are posterior probabilities: products of what they
    gave to each value half a horizon before it was seen. A member with a short memory knows the next value of
    a burst, and not those after it. Series that are not small counts have empirical members only. They are
    judged by zeros and four classes of other values. Where demand may have ended, only members with a short
    memory count, and where something may be broken, only that of ten values.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Values, none negative; NaN where nothing was observed.
    horizon : int, default=1
        Number of steps ahead.

    Returns
    -------
    Intermittent
        Distributions.

    References
    ----------
    Snyder, Ord and Beaumont, "Forecasting the intermittent demand for slow-moving inventories", International
    Journal of Forecasting, 2012, with a hurdle in section 3.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.demand import fit_intermittent
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
    before = min(-(-horizon // 2), FARTHEST_JUDGED)
    past = _past(support / unit, index, observed, _classes(support.shape[1], counts), before)
    judged = observed & (points_since_first(y) >= before)
    score = torch.where(judged[..., None], _scores(past, support.gather(1, index), counts), 0.0).cumsum(1)
    n_parametric = len(DEMAND_DECAYS) * (len(DEMAND_SIZES) + len(HURDLE_SIZES))
    parametric = torch.arange(score.shape[2], device=y.device) < n_parametric
    score = torch.where(counts[:, None, None] | ~parametric, score, -torch.inf)
    decays = y.new_tensor(DEMAND_DECAYS)
    decay = torch.cat([decays.repeat_interleave(k) for k in (len(DEMAND_SIZES), len(HURDLE_SIZES), 1)])
    ended, broken = may_have_ended(y)[..., None], may_be_broken(y)[..., None]
    unlikely = (ended & (decay > ENDED_DECAY)) | (broken & (decay != ENDED_DECAY))
    score = torch.where(unlikely, -torch.inf, score)
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
    some: Float[Tensor, "B n1 D"]  # of values that are not zero
    same: Float[Tensor, "B n D"]  # weight of values some steps before in the class of each value
    histogram: Float[Tensor, "B D K"]  # at the end
    before: Int[Tensor, " n"]  # the row from which each value is judged

    @property
    def mean(self) -> Float[Tensor, "B n1 D"]:
        """Smoothed means, with the prior."""
        return (self.first + DEMAND_PRIOR_COUNT * DEMAND_PRIOR_MEAN) / (self.total + DEMAND_PRIOR_COUNT)

    @property
    def share(self) -> Float[Tensor, "B n1 D"]:
        """Smoothed probabilities that there is demand, with the prior."""
        return (self.some + DEMAND_PRIOR_COUNT * DEMAND_PRIOR_MEAN) / (self.total + DEMAND_PRIOR_COUNT)

    @property
    def rest(self) -> Float[Tensor, "B n1 D"]:
        """Smoothed means of what a demand has beyond 1, with the prior."""
        beyond = (self.first - self.some).clamp_min(0.0)  # demand that is no count may be below 1
        return (beyond + DEMAND_PRIOR_COUNT * DEMAND_PRIOR_REST) / (self.some + DEMAND_PRIOR_COUNT)

    @property
    def size(self) -> Float[Tensor, " R"]:
        """Sizes of the negative binomial distributions."""
        return self.total.new_tensor(DEMAND_SIZES)

    @property
    def hurdle_size(self) -> Float[Tensor, " Q"]:
        """The same behind a hurdle."""
        return self.total.new_tensor(HURDLE_SIZES)


def _classes(n_bins: int, counts: Bool[Tensor, " B"]) -> Int[Tensor, "B K"]:
    """Class of every bin, by which members are judged: small counts themselves, parts of other values.

    A value that is no count is hardly ever seen twice. Judged by single bins, the member with the shortest
    memory would win, as it is the most ready for what it has not seen.
    """
    bins = torch.arange(n_bins, device=counts.device)
    parts = ((bins - 1) * DEMAND_CLASSES).div(MOST_BINS - 1, rounding_mode="floor") + 1
    return torch.where(counts[:, None], bins, parts.clamp_max(DEMAND_CLASSES) * (bins > 0))


def _past(
    support: Float[Tensor, "B K"],
    index: Int[Tensor, "B n"],
    observed: Bool[Tensor, "B n"],
    classes: Int[Tensor, "B K"],
    before: int,
) -> _Past:
    """Run through every series once; values are judged from so many steps before."""
    decay = support.new_tensor(DEMAND_DECAYS)[:, None]
    histogram = support.new_zeros(len(support), len(DEMAND_DECAYS), support.shape[1])
    one_hot = torch.nn.functional.one_hot(index, support.shape[1]).to(support)
    alike = (classes[:, None] == classes.gather(1, index)[..., None]).to(support)
    rows, same = [], []
    last: deque[Tensor] = deque(maxlen=before)
    moments = torch.stack([torch.ones_like(support), support, support**2, (support > 0).to(support)], -1)
    for t in range(index.shape[1]):
        rows.append(histogram @ moments)
        last.append(histogram)
        same.append((last[0] * alike[:, t, None]).sum(-1))
        now = observed[:, t, None, None]
        histogram = torch.where(now, decay * histogram + one_hot[:, t, None], histogram)
    rows.append(histogram @ moments)
    total, first, second, some = torch.stack(rows, 1).unbind(-1)
    number = (torch.arange(index.shape[1], device=index.device) + 1 - before).clamp_min(0)
    return _Past(total, first, second, some, torch.stack(same, 1), histogram, number)


def _scores(past: _Past, value: Float[Tensor, "B n"], counts: Bool[Tensor, " B"]) -> Float[Tensor, "B n M"]:
    """Logarithms of the probabilities of every value by all members some steps before it."""
    parts = (part[:, past.before] for part in (past.mean, past.share, past.rest))
    x, mean, share, rest = (part[..., None] for part in (value[..., None], *parts))
    logs = _log_negative_binomial(x, mean, past.size)
    hurdle = _log_hurdle(x, share, rest, past.hurdle_size)
    zero = value[..., None] == 0
    smoothing = _smoothing(logs[..., SMOOTHING_SIZE], mean[..., 0], zero, counts, DEMAND_CLASSES)
    empirical = (past.same + SMOOTHING_COUNT * smoothing) / (past.total[:, past.before] + SMOOTHING_COUNT)
    return torch.cat([logs.flatten(2), hurdle.flatten(2), empirical.log()], 2)


def _smoothing(logs: Tensor, mean: Tensor, zero: Tensor, counts: Tensor, n_others: int) -> Tensor:
    """Probabilities of bins: those of counts; else zero is as likely as for counts, and others are alike."""
    size = DEMAND_SIZES[SMOOTHING_SIZE]
    none = (size / (size + mean)) ** size
    other = torch.where(zero, none, (1 - none) / n_others)
    return torch.where(counts[:, None, None], logs.exp(), other)


def _moments(past: _Past) -> tuple[Float[Tensor, "B n M"], Float[Tensor, "B n M"]]:
    """Means and mean squares of all members after every value."""
    mean = past.mean[:, 1:, :, None].expand(-1, -1, -1, len(DEMAND_SIZES))
    square = mean + mean**2 / past.size + mean**2
    share, rest = (
        part[:, 1:, :, None].expand(-1, -1, -1, len(HURDLE_SIZES)) for part in (past.share, past.rest)
    )
    with_hurdle = share * (1 + rest)
    square_with = share * ((1 + rest) ** 2 + rest + rest**2 / past.hurdle_size)
    total = past.total[:, 1:] + SMOOTHING_COUNT
    first = (past.first[:, 1:] + SMOOTHING_COUNT * mean[..., SMOOTHING_SIZE]) / total
    second = (past.second[:, 1:] + SMOOTHING_COUNT * square[..., SMOOTHING_SIZE]) / total
    mean, with_hurdle, square, square_with = (v.flatten(2) for v in (mean, with_hurdle, square, square_with))
    return torch.cat([mean, with_hurdle, first], 2), torch.cat([square, square_with, second], 2)


def _last(past: _Past, support: Float[Tensor, "B K"], counts: Bool[Tensor, " B"]) -> Float[Tensor, "B M K"]:
    """Probabilities of the support by all members, after the last value."""
    mean, share, rest = (part[:, -1, :, None] for part in (past.mean, past.share, past.rest))
    at = support[:, None]
    logs = _log_negative_binomial(at[:, None], mean[..., None], past.size[:, None])
    hurdle = _log_hurdle(at[:, None], share[..., None], rest[..., None], past.hurdle_size[:, None])
    smoothing = _smoothing(logs[:, :, SMOOTHING_SIZE], mean, at == 0, counts, MOST_BINS - 1)
    total = past.total[:, -1, :, None] + SMOOTHING_COUNT
    empirical = (past.histogram + SMOOTHING_COUNT * smoothing) / total
    return torch.cat([logs.exp().flatten(1, 2), hurdle.exp().flatten(1, 2), empirical], 1)
