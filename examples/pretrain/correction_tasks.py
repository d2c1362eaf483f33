"""Tasks from synthetic series on which the correction of the statistical combination is trained.

A task is an origin of a series: what the combination found there, and the values that followed.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor

from taylorformer_forecast.baselines.bounds import range_of_quantiles
from taylorformer_forecast.baselines.combination import CombinationFit, fit_combination
from taylorformer_forecast.baselines.dependence import least_units
from taylorformer_forecast.baselines.errors import asymmetry
from taylorformer_forecast.baselines.forecast import Correction, Forecast
from taylorformer_forecast.baselines.tails import reach_and_tails
from taylorformer_forecast.baselines.zeros import is_intermittent
from taylorformer_forecast.core.families.quantile import pinball_loss
from taylorformer_forecast.models.correction import CorrectionFeatures, correction_features
from taylorformer_forecast.synthetic import SyntheticGenerator
from taylorformer_forecast.synthetic.frame import log_uniform

__all__ = ["LEVELS", "CorrectionTasks", "deciles", "make_correction_tasks", "nothing", "pinball"]

LEVELS = torch.arange(1, 10) / 10
SHORTEST, LONGEST = 10, 300  # points of the histories
NEAREST, FARTHEST = 3, 60  # steps ahead
PER_SERIES = 3  # origins of one series: the last, and random ones after the first third
FEWEST = 5  # values before an origin
SEASON_HIDDEN = 0.05  # of the series
FAR = 25.0  # scales from the forecast, beyond which nothing could have been known


@dataclass(frozen=True)
class CorrectionTasks:
    """N origins with H steps each, and the forecast of the combination from every one.

    Parameters
    ----------
    values, seen, steps, families : Tensor
        See :class:`~taylorformer_forecast.models.correction.CorrectionFeatures`.
    loc, scale, shift, below, above, low, high : Tensor of shape (N, H)
        See :class:`~taylorformer_forecast.baselines.forecast.Forecast`; in the units of the combination.
    reach : Tensor of shape (N, 2)
        The same.
    error_quantiles : Tensor of shape (N, J)
        The same.
    positive : bool Tensor of shape (N,)
        The same.
    truth : Tensor of shape (N, H)
        What was observed; the forecast where nothing was.
    weight : Tensor of shape (N, H)
        Of the loss of each step; 0 where nothing was observed.
    """

    values: Tensor
    seen: Tensor
    steps: Tensor
    families: Tensor
    loc: Tensor
    scale: Tensor
    shift: Tensor
    below: Tensor
    above: Tensor
    low: Tensor
    high: Tensor
    reach: Tensor
    error_quantiles: Tensor
    positive: Tensor
    truth: Tensor
    weight: Tensor

    @property
    def features(self) -> CorrectionFeatures:
        """What the network sees."""
        return CorrectionFeatures(self.values, self.seen, self.steps, self.families)

    def rows(self, index: Tensor) -> CorrectionTasks:
        """Some of the tasks."""
        return CorrectionTasks(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    def to(self, device: str) -> CorrectionTasks:
        """The same on a device."""
        return CorrectionTasks(**{f.name: getattr(self, f.name).to(device) for f in fields(self)})

    def __len__(self) -> int:
        return len(self.truth)


def make_correction_tasks(n_series: int, seed: int | tuple[int, ...]) -> CorrectionTasks:
    """Draw series of one length, and make tasks of one horizon from them.

    Parameters
    ----------
    n_series : int
        How many series; origins without enough values before them give no task.
    seed : int or tuple of int
        Seed of everything.
    """
    rng = np.random.default_rng(seed)
    length = round(float(log_uniform(rng, SHORTEST, LONGEST, 1)[0]))
    most = min(FARTHEST, max(2 * NEAREST, 0.6 * length))
    horizon = round(float(log_uniform(rng, NEAREST, most, 1)[0]))
    generator = SyntheticGenerator(int(rng.integers(2**31)), n_series, processes={"irregular_times": 0.0})
    batch = generator.batch(0, length + horizon, horizon)
    season = np.round(batch.periods[:, 0]).astype(int)
    unknown = (rng.random(n_series) < SEASON_HIDDEN) | (season < 2) | (season > length)
    season = np.where(unknown, 1, season)
    parts = []
    for period in np.unique(season):
        y = torch.as_tensor(batch.values[season == period])
        origins = np.sort(rng.integers(max(FEWEST, length // 3), length, (len(y), PER_SERIES)), 1)
        origins[:, -1] = length - 1
        parts.append(_tasks(y, torch.as_tensor(origins), horizon, int(period)))
    tasks = CorrectionTasks(
        **{f.name: torch.cat([getattr(p, f.name) for p in parts]) for f in fields(CorrectionTasks)}
    )
    return tasks.rows((tasks.weight.sum(1) > 0).nonzero()[:, 0])


def _tasks(y: Tensor, origins: Tensor, horizon: int, season: int) -> CorrectionTasks:
    """Tasks of series with one season."""
    past = y[:, : y.shape[1] - horizon]
    fit = fit_combination(past, horizon, (season,) if season > 1 else ())
    features, at = correction_features(fit, origins), fit.at(origins)
    ahead = (origins[..., None] + torch.arange(1, horizon + 1)).flatten(1)
    truth = (y / fit.unit).gather(1, ahead).view(at.loc.shape)
    observed = ~past.isnan()
    usable = (observed.cumsum(1) >= FEWEST) & observed & ~is_intermittent(past)
    known = ~truth.isnan() & usable.gather(1, origins)[..., None]
    # The loss of a task is that of its series, in mean scales.
    weight = known / at.scale.mean(-1, keepdim=True) / known.sum(-1, keepdim=True).clamp_min(1)
    far = truth.clamp(at.loc - FAR * at.scale, at.loc + FAR * at.scale)
    sides = [_sides(fit, origins[:, k], at.scale[:, k]) for k in range(origins.shape[1])]
    shift, below, above, reach = (torch.stack(part, 1).flatten(0, 1) for part in zip(*sides, strict=True))
    largest = torch.nan_to_num(past / fit.unit).cummax(1).values.gather(1, origins)
    every = [part.repeat_interleave(origins.shape[1], 0) for part in (fit.error_quantiles, fit.positive)]
    return CorrectionTasks(
        features.values,
        features.seen,
        features.steps,
        features.families,
        at.loc.flatten(0, 1),
        at.scale.flatten(0, 1),
        shift,
        below,
        above,
        *range_of_quantiles(largest.flatten()[:, None], at.low.flatten(0, 1), at.high.flatten(0, 1)),
        reach,
        *every,
        torch.where(known, far, at.loc).flatten(0, 1),
        weight.flatten(0, 1),
    )


def _sides(fit: CombinationFit, origin: Tensor, scale: Tensor) -> tuple[Tensor, ...]:
    """Asymmetry (B, H) and reach (B, 2) by the errors that are known at an origin of every series."""
    at = torch.arange(fit.clean.shape[1])
    before = (at < origin[:, None])[..., None]
    of_end, of_origin = fit.relative[:, -1:], fit.relative[torch.arange(len(origin)), origin][:, None]
    standard = fit.standard * least_units(fit.relative, of_end) / least_units(fit.relative, of_origin)
    known = replace(fit, standard=torch.where(before, standard, torch.nan))
    steady = fit.steady | (origin < len(at) - 1)[:, None]
    shift, *sides = asymmetry(known.standard[..., 0], scale, steady)
    return shift, *sides, reach_and_tails(known, shift, (sides[0], sides[1]))[0]


def nothing(tasks: CorrectionTasks) -> Correction:
    """The correction that changes nothing."""
    one = torch.ones_like(tasks.loc)
    return Correction(torch.zeros_like(one), one, one)


def deciles(found: Correction, tasks: CorrectionTasks) -> Tensor:
    """Deciles (N, H, 9) after a correction."""
    none = tasks.loc.new_zeros(len(tasks))
    shift, below, above = tasks.shift + found.shift, tasks.below * found.below, tasks.above * found.above
    forecast = Forecast(
        loc=tasks.loc[:, None],
        scale=tasks.scale[:, None],
        error_quantiles=tasks.error_quantiles,
        shift=shift,
        below=below,
        above=above,
        reach=tasks.reach,
        tails=torch.ones_like(tasks.reach),  # deciles have none
        positive=tasks.positive,
        low=tasks.low,
        high=tasks.high,
        shared=none,
        memory=none,
        power=none,
        intermittent=none > 0,
        support=none[:, None],
        cdf=none[:, None],
    )
    return forecast.quantiles(LEVELS.tolist())


def pinball(found: Tensor, tasks: CorrectionTasks) -> Tensor:
    """Twice the pinball loss over deciles (N, H, 9) of every task, the mean over its steps."""
    levels = LEVELS.to(found)
    return (pinball_loss(tasks.truth[..., None] - found, levels).mean(-1) * tasks.weight).sum(1)
