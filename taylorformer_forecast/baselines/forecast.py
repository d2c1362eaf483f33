"""The baseline of short series: a robust combination of statistical forecasts, with its distribution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from taylorformer_forecast.baselines.bounds import largest_rise, near_ends, range_of_quantiles
from taylorformer_forecast.baselines.combination import CombinationFit, fit_combination
from taylorformer_forecast.baselines.demand import Intermittent, fit_intermittent
from taylorformer_forecast.baselines.dependence import dependence, walk_memory
from taylorformer_forecast.baselines.errors import asymmetry, at_shape
from taylorformer_forecast.baselines.few_values import widened
from taylorformer_forecast.baselines.seasonal import zero_places
from taylorformer_forecast.baselines.tails import reach_and_tails, with_tails
from taylorformer_forecast.baselines.zeros import is_intermittent

POINTS_AT_ONCE = 35_000  # of all streams of members in one pass: more would leave the processor's cache
Generators: TypeAlias = torch.Generator | Sequence[torch.Generator] | None  # of all series, or of each


@dataclass(frozen=True)
class Correction:
    """What a network adds to the combination at the end of B series.

    Parameters
    ----------
    shift : Tensor of shape (B, H)
        Of the location, in scales of the step.
    below, above : Tensor of shape (B, H)
        Factors of the distances of quantiles below and above the location.
    """

    shift: Float[Tensor, "B H"]
    below: Float[Tensor, "B H"]
    above: Float[Tensor, "B H"]

    def partly(self, shift: float, width: float) -> Correction:
        """Return parts of the shift and of the logarithms of the factors."""
        return Correction(shift * self.shift, self.below**width, self.above**width)


@dataclass(frozen=True)
class Forecast:
    """Forecasts of the next H values of B series, and what was forecast from every earlier origin.

    Parameters
    ----------
    loc, scale : Tensor of shape (B, n, H)
        Forecast and mean absolute error (of intermittent demand, standard deviation) from every origin, by
        the past of that origin; but wrong values are left out before by what followed, and whether the last
        value is an outlier is decided by the next. Those of the end of the series are the last. Before the
        first observed value both are 0.
    error_quantiles : Tensor of shape (B, J)
        Quantiles of absolute errors in units of the scale; a normal distribution would have ``BASE`` times
        its deviation.
    shift : Tensor of shape (B, H)
        Of the median of the future from the location, in scales.
    below, above : Tensor of shape (B, H)
        Factors of the distances of quantiles below and above that median.
    reach, tails : Tensor of shape (B, 2)
        Factors of these distances at the levels .1 and .9, and at .01 and .99, see ``baselines.tails``.
    positive : bool Tensor of shape (B,)
        Series whose quantiles below the median are positive: the distances are those of logarithms.
    low, high : Tensor of shape (B, H)
        Bounds of all quantiles.
    shared, memory, power : Tensor of shape (B,)
        How errors along a path depend on each other, see ``baselines.dependence``.
    intermittent : bool Tensor of shape (B,)
        Which series are intermittent; their distributions are on ``support``.
    support, cdf : Tensor of shape (B, K)
        Values and cumulative probabilities of intermittent series, the same for every step.
    """

    loc: Float[Tensor, "B n H"]
    scale: Float[Tensor, "B n H"]
    error_quantiles: Float[Tensor, "B J"]
    shift: Float[Tensor, "B H"]
    below: Float[Tensor, "B H"]
    above: Float[Tensor, "B H"]
    reach: Float[Tensor, "B 2"]
    tails: Float[Tensor, "B 2"]
    positive: Bool[Tensor, " B"]
    low: Float[Tensor, "B H"]
    high: Float[Tensor, "B H"]
    shared: Float[Tensor, " B"]
    memory: Float[Tensor, " B"]
    power: Float[Tensor, " B"]
    intermittent: Bool[Tensor, " B"]
    support: Float[Tensor, "B K"]
    cdf: Float[Tensor, "B K"]

    def standard(self, z: Float[Tensor, "B S H"]) -> Float[Tensor, "B S H"]:
        """Errors in units of their scale, at the quantiles of a standard normal distribution."""
        usual = at_shape(self.error_quantiles, z.flatten(1)).view(z.shape)
        return with_tails(usual, z, self.reach, self.tails)

    def at_normal(self, z: Float[Tensor, "B S H"]) -> Float[Tensor, "B S H"]:
        """Values at the quantiles of a standard normal distribution, any number S for each step."""
        width = torch.where(z < 0, self.below[:, None], self.above[:, None])
        scale = self.scale[:, None, -1]
        loc, change = self.loc[:, None, -1], scale * self.shift[:, None]
        positive = self.positive[:, None, None] & (loc > 0)
        # Below half of the mean of positive values, the shift of the median goes on in logarithms.
        half = torch.where(positive, loc / 2, 1.0)
        less = half * (change / half + 1).clamp_max(0.0).exp()  # bounded: gradients of what is not taken
        median = torch.where(positive & (change < -half), less, loc + change)
        distance = scale * width * self.standard(z)
        # Below the median of positive values, distances are those of logarithms.
        unit = torch.where(positive, median, 1.0)
        less = median * (distance / unit).clamp_max(0.0).exp()
        smooth = torch.where(positive & (distance < 0), less, median + distance)
        smooth = near_ends(smooth, self.low[:, None], self.high[:, None])
        if not self.intermittent.any():
            return smooth
        level = torch.special.ndtr(z).flatten(1)
        at = torch.searchsorted(self.cdf, level).clamp_max(self.cdf.shape[1] - 1)
        return torch.where(self.intermittent[:, None, None], self.support.gather(1, at).view(z.shape), smooth)

    def quantiles(self, levels: Sequence[float]) -> Float[Tensor, "B H Q"]:
        """Quantiles of every step at the given levels, above 0 and below 1."""
        z = torch.special.ndtri(self.loc.new_tensor(list(levels)))
        return self.at_normal(z[None, :, None].expand(len(self.loc), -1, self.loc.shape[2])).mT

    def sample(self, n_paths: int, generator: Generators = None) -> Float[Tensor, "B S H"]:
        """Joint paths, whose errors at each step depend on those before (:mod:`.dependence`).

        At every step one path is in each of S intervals of equal probability, at a place that follows another
        such draw: their mean and quantiles match those of the step better than independent draws. With a
        generator for each series, what is drawn for one depends on no other.
        """
        drawn, within = (self._scores(n_paths, generator) for _ in range(2))
        rank = drawn.argsort(1).argsort(1)
        return self.at_normal(torch.special.ndtri((rank + torch.special.ndtr(within)) / n_paths))

    def _scores(self, n_paths: int, generator: Generators) -> Float[Tensor, "B S H"]:
        """Normal scores of joint paths."""
        size, kind = (n_paths, self.loc.shape[2]), self.loc.dtype
        each = generator if isinstance(generator, Sequence) else [generator] * len(self.loc)
        drawn = ([torch.randn(size, generator=one, dtype=kind) for one in each] for _ in range(2))
        noise, walk = map(torch.stack, drawn)
        of_walk = walk_memory(self.scale[:, -1] ** self.power[:, None])
        for step in range(1, size[1]):
            rho = of_walk[:, step - 1, None]
            for scores, part in ((walk, rho), (noise, rho * self.memory[:, None])):
                scores[..., step].mul_((1 - part**2).sqrt()).add_(part * scores[..., step - 1])
        shared = self.shared[:, None, None]
        return shared.sqrt() * walk + (1 - shared).sqrt() * noise


def forecast_clean(
    y: Float[Tensor, "B n"],
    horizon: int,
    seasons: tuple[int, ...],
    correct: Callable[[CombinationFit], Correction] | None = None,
) -> Forecast:
    """Forecast series by a robust combination of statistical forecasts.

    Nothing is estimated by optimisation: members on a grid are weighted by their errors from all earlier
    origins, and the distribution is that of the errors of the combination. Series of which a quarter is zero
    are forecast as intermittent demand, unless a season says when. Forecasts follow a change of units, but
    that whole numbers may be counts, which have a bound at zero. Those of series with values that are not
    positive also follow a shift.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Series that end at the same time, those that are shorter with NaN in front; NaN where nothing was
        observed. ``engine.statistics.forecast.prepared`` has taken off what is no part of them.
    horizon : int
        Number of steps ahead H.
    seasons : tuple of int
        Steps of the seasons. Whether they are used is decided by the errors.
    correct : callable, optional
        Corrects the combination, all but that of intermittent demand.

    Returns
    -------
    Forecast
        Location, scale, quantiles, paths; locations and scales from all earlier origins.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.forecast import forecast_clean
    >>> y = torch.tensor([[5.0, 7.0, 9.0, 11.0, 13.0, 15.0, 17.0, 19.0], [2.0, 8.0] * 4]).double()
    >>> found = forecast_clean(y, 2, (2,))
    >>> found.loc[:, -1].round().tolist()
    [[20.0, 21.0], [2.0, 8.0]]
    >>> found.quantiles([0.1, 0.5, 0.9]).shape, found.sample(100).shape
    (torch.Size([2, 2, 3]), torch.Size([2, 100, 2]))
    """
    at_once = max(POINTS_AT_ONCE // (y.shape[1] * (1 + 2 * len(seasons))), 1)
    if len(y) > at_once:
        return _join([forecast_clean(part, horizon, seasons, correct) for part in y.split(at_once)])
    fit = fit_combination(y, horizon, seasons)
    # Of what was seen up to each origin; but whether a season says when is judged by all of it.
    intermittent = is_intermittent(y) & ~fit.closed[:, None]
    demand = _demand(torch.where(y < 0, torch.nan, y), intermittent.any(1), horizon)
    loc = torch.where(intermittent[..., None], demand.mean[..., None], fit.loc * fit.unit[..., None])
    scale = torch.where(intermittent[..., None], demand.deviation[..., None], fit.scale * fit.unit[..., None])
    shift, below, above = asymmetry(fit.standard[..., 0], fit.scale[:, -1], fit.steady)
    reach, tails = reach_and_tails(fit, shift, (below, above))
    if correct is not None:
        added = correct(fit)
        most = largest_rise(fit.clean, fit.loc[:, -1]) / fit.scale[:, -1]
        shift = shift + torch.minimum(added.shift, most)
        below, above = below * added.below, above * added.above
    low, high = fit.members.low[:, -1] * fit.unit, fit.members.high[:, -1] * fit.unit
    low, high = range_of_quantiles(y, low, high)
    if bool(fit.closed.any()):
        rest = ~(fit.closed[:, None] & zero_places(y, y.shape[1] + torch.arange(horizon), seasons))
        loc[:, -1], scale[:, -1], low, high = (part * rest for part in (loc[:, -1], scale[:, -1], low, high))
    count, smooth = (~y.isnan()).sum(1, keepdim=True), ~intermittent[:, -1:]
    if int(count.min()) <= 2:  # which say little of errors
        scale[:, -1], low, high = widened(y, smooth[:, 0], scale[:, -1], low, high)
    single = (count == 1) & smooth
    known = ((~y.isnan()).cumsum(1) > 0)[..., None]
    shared, memory, power = dependence(fit.standard, fit.scale[:, -1])
    return Forecast(
        loc=torch.where(known, loc, 0.0),
        scale=torch.where(known, scale, 0.0),
        error_quantiles=fit.error_quantiles,
        shift=torch.where(single, 0.0, shift),
        below=torch.where(single, 1.0, below),
        above=torch.where(single, 1.0, above),
        reach=reach,
        tails=tails,
        positive=fit.positive,
        low=low,
        high=high,
        shared=shared,
        memory=memory,
        power=power,
        intermittent=intermittent[:, -1],
        support=demand.support,
        cdf=demand.cdf,
    )


def _join(found: Sequence[Forecast]) -> Forecast:
    """Series of all parts; the last column goes on where a part has fewer columns."""
    joined = {}
    for name in (f.name for f in fields(Forecast)):
        parts = [getattr(one, name) for one in found]
        width = max(p.shape[-1] for p in parts)
        if parts[0].ndim == 2:
            parts = [torch.cat([p, p[:, -1:].expand(-1, width - p.shape[1])], 1) for p in parts]
        joined[name] = torch.cat(parts)
    return Forecast(**joined)


def _demand(y: Float[Tensor, "B n"], rows: Bool[Tensor, " B"], horizon: int) -> Intermittent:
    """Distributions of intermittent demand of some rows; zero for the others."""
    found = fit_intermittent(y[rows], horizon) if rows.any() else None
    width = 1 if found is None else found.support.shape[1]
    every = Intermittent(y.new_zeros(len(y), width), y.new_ones(len(y), width), *y.new_zeros(2, *y.shape))
    for field in fields(Intermittent) if found else ():
        getattr(every, field.name)[rows] = getattr(found, field.name)
    return every
