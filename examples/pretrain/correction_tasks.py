"""Tasks from synthetic series on which the correction of the statistical combination is trained.

A task is an origin of a series: what the combination found there, and the values that followed.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from taylorformer_forecast.baselines.combination import fit_combination
from taylorformer_forecast.baselines.errors import at_shape
from taylorformer_forecast.baselines.forecast import Correction
from taylorformer_forecast.baselines.intermittent import is_intermittent
from taylorformer_forecast.models.correction import CorrectionFeatures, correction_features
from taylorformer_forecast.synthetic import SyntheticGenerator
from taylorformer_forecast.synthetic.frame import log_uniform

__all__ = ["LEVELS", "CorrectionTasks", "deciles", "make_correction_tasks", "pinball"]

LEVELS = torch.arange(1, 10) / 10
SHORTEST, LONGEST = 10, 300  # points of the histories
NEAREST, FARTHEST = 3, 60  # steps ahead
PER_SERIES = 3  # origins of one series: the last, and random ones after the first third
FEWEST = 5  # values before an origin
SEASON_HIDDEN = 0.05  # of the series
FAR = 25.0  # scales beyond which nothing could have been known


@dataclass(frozen=True)
class CorrectionTasks:
    """N origins with H steps each, in scales of the steps around the combination.

    Parameters
    ----------
    values, seen, steps, families : Tensor
        See :class:`~taylorformer_forecast.models.correction.CorrectionFeatures`.
    truth : Tensor of shape (N, H)
        What was observed; 0 where nothing was.
    weight : Tensor of shape (N, H)
        Of the loss of each step: its scale relative to that of all; 0 where nothing was observed.
    standard : Tensor of shape (N, 9)
        Deciles of the errors in scales.
    """

    values: Tensor
    seen: Tensor
    steps: Tensor
    families: Tensor
    truth: Tensor
    weight: Tensor
    standard: Tensor

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
    # The loss of a task is that of its series in its own units.
    weight = at.scale / at.scale.mean(-1, keepdim=True) * known / known.sum(-1, keepdim=True).clamp_min(1)
    error = torch.where(known, (truth - at.loc) / at.scale, 0.0).clamp(-FAR, FAR)
    quantiles = fit.error_quantiles
    standard = at_shape(quantiles, torch.special.ndtri(LEVELS.to(quantiles)).expand(len(y), -1))
    return CorrectionTasks(
        features.values,
        features.seen,
        features.steps,
        features.families,
        error.flatten(0, 1).float(),
        weight.flatten(0, 1).float(),
        standard[:, None].expand(-1, origins.shape[1], -1).flatten(0, 1).float(),
    )


def deciles(found: Correction, tasks: CorrectionTasks) -> Tensor:
    """Deciles (N, H, 9) after a correction, in scales of the steps around the combination."""
    standard = tasks.standard[:, None]
    width = torch.where(standard < 0, found.below[..., None], found.above[..., None])
    return found.shift[..., None] + standard * width


def pinball(found: Tensor, tasks: CorrectionTasks) -> Tensor:
    """Twice the pinball loss over deciles (N, H, 9) of every task, the mean over its steps."""
    levels = LEVELS.to(found)
    error = tasks.truth[..., None] - found
    return (2 * torch.maximum(levels * error, (levels - 1) * error).mean(-1) * tasks.weight).sum(1)
