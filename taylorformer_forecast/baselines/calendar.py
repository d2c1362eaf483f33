"""What the calendar adds to values, estimated from all of their past.

Days of the month and holidays for daily series, the number of working days for monthly ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from taylorformer_forecast.defaults import (
    CALENDAR_DOUBT,
    CALENDAR_ERROR,
    CALENDAR_MIN_VALUES,
    CALENDAR_OCCURRENCES,
    CALENDAR_ONCE,
    CALENDAR_WEEKS,
    MEAN_MONTH,
    WORKING_DAYS_CHANCE,
    WORKING_DAYS_MIN_CHANGES,
    WORKING_DAYS_MOST,
)

WEEK, LONGEST_MONTH, YEAR = 7, 31, 12


def calendar_effects(
    y: Float[Tensor, "B n"],
    month: Int[Tensor, "B N"],
    holidays: Sequence[tuple[Int[Tensor, "B N"], int]] = (),
    seasons: Sequence[int] = (),
) -> Float[Tensor, "B N"]:
    """What the calendar adds to the values of each day, of the past and of the future.

    A value is compared with the same weekday of weeks before and after it. Such differences, in units of the
    level of series without negative values, are averaged for every day of the month or around a holiday, and
    shrunk: effects count by how far they are beyond the differences of as many other days in a row. Series
    which wander, or which no holiday moves, keep their forecasts. The last week is not used, as the values
    after it are unknown.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Daily series that end together; NaN where nothing was observed.
    month : int Tensor of shape (B, N)
        Number of each day in its month, from 0, for N >= n days.
    holidays : sequence of (int Tensor of shape (B, N), int)
        For each holiday the number of each day among those around it, from 0, -1 for other days; and how many
        there are. They have no effect of the day of the month.
    seasons : sequence of int
        Steps of the seasons. A month holds nearly whole cycles of 6 or 10 days. So beside such a season days
        of the month have no effect if those of its whole cycles of about a month explain more.

    Returns
    -------
    Tensor of shape (B, N)
        Effects in units of ``y``. Zero for series with few values.

    References
    ----------
    Efron and Morris, "Data analysis using Stein's estimator", 1975.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.calendar import calendar_effects
    >>> month = torch.arange(720)[None] % 30
    >>> y = 100 + 20.0 * (month == 3) + torch.arange(720).sin() * 8  # 23 months, and the third one after
    >>> calendar_effects(y[:, :690].double(), month)[0, 692:696].round(decimals=-1).int().tolist()
    [0, 20, 0, 0]
    """
    level = _level(y)
    error = _differences(y) / torch.where(level > 0, level, torch.nan)
    usual = 1.4826 * error.abs().nanmedian(1, keepdim=True).values  # the standard deviation of normal ones
    error = error - _of_weeks(error, usual)
    n = y.shape[1]
    level = F.pad(level, (0, month.shape[1] - n), mode="replicate")
    special = torch.zeros_like(month, dtype=torch.bool)
    for days, _ in holidays:
        special |= days >= 0
    effects = torch.zeros_like(level)
    for days, size in holidays:
        effects += _shrunk_means(error - effects[:, :n], usual, days, size, special[:, :n])
    ordinary, rest = torch.where(special, -1, month), error - effects[:, :n]
    cycles = [s * round(MEAN_MONTH / s) for s in seasons if s % WEEK and s < 4 * WEEK]
    rivals = [cycle + off for cycle in cycles for off in (-0.5, 0.0, 0.5)]  # seasons are rounded
    effects += _shrunk_means(rest, usual, ordinary, LONGEST_MONTH, special[:, :n], rivals)
    few = (~y.isnan()).sum(1, keepdim=True) < CALENDAR_MIN_VALUES
    return torch.where(few, 0.0, effects * level)


def working_day_effects(y: Float[Tensor, "B n"], surplus: Float[Tensor, "B N"]) -> Float[Tensor, "B N"]:
    """What the number of working days adds to the values of each month, of the past and of the future.

    Changes from one month to the next, less those of the year before, are regressed on those of the surplus
    of working days: of logarithms of positive series, else of values. The slope is shrunk by what its F
    statistic has beyond chance, so that series without such effects keep their forecasts.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Monthly series that end together; NaN where nothing was observed.
    surplus : Tensor of shape (B, N)
        Working days of each month less what is usual, for N >= n months.

    Returns
    -------
    Tensor of shape (B, N)
        Effects in units of ``y``. Zero for series with few values.

    References
    ----------
    Bell and Hillmer, "Modeling time series with calendar variation", Journal of the American Statistical
    Association, 1983.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.calendar import working_day_effects
    >>> surplus = torch.arange(84).double().mul(2.4).sin()[None].mul(3).round()
    >>> y = 100 * (0.01 * surplus[:, :72]).exp()  # 1 % for each
    >>> working_day_effects(y, surplus)[0, 73:75].round(decimals=1).tolist(), surplus[0, 73:75].tolist()
    ([-2.0, 3.0], [-2.0, 3.0])
    """
    n = y.shape[1]
    if n < YEAR + 2:
        return torch.zeros_like(surplus)
    positive = ~(y <= 0).any(1, keepdim=True)
    values = torch.where(positive, torch.where(positive, y, 1.0).log(), y)
    error, more = (v[:, YEAR:] - v[:, :-YEAR] for v in (values.diff(dim=1), surplus[:, :n].diff(dim=1)))
    usual = 1.4826 * error.abs().nanmedian(1, keepdim=True).values
    known = ~error.isnan()
    error = torch.where(known, error.clamp(-CALENDAR_ERROR * usual, CALENDAR_ERROR * usual), 0.0)
    more, count = more * known, known.sum(1, keepdim=True)
    square = more.square().sum(1, keepdim=True).clamp_min(1e-300)
    slope = (more * error).sum(1, keepdim=True) / square
    rest = ((error - slope * more) * known).square().sum(1, keepdim=True) / (count - 1).clamp_min(1)
    beyond_chance = 1 - WORKING_DAYS_CHANCE * rest / (slope.square() * square).clamp_min(1e-300)
    slope = torch.where(count < WORKING_DAYS_MIN_CHANGES, 0.0, slope * beyond_chance.clamp_min(0))
    added = slope * surplus
    added = torch.where(positive, added.clamp(-WORKING_DAYS_MOST, WORKING_DAYS_MOST), added)
    rest = torch.where(positive, y / added[:, :n].exp(), y - added[:, :n])
    rest = torch.where(rest.isnan(), rest.nanmedian(1, keepdim=True).values.nan_to_num(0.0), rest)
    ahead = n - YEAR + torch.arange(surplus.shape[1] - n, device=y.device) % YEAR
    # The level of a month ahead is that of three years, one of which may be an outlier.
    years = torch.stack([rest[:, (ahead - back * YEAR).clamp_min(0)] for back in range(3)])
    level = torch.cat([rest, years.median(0).values], 1)
    return torch.where(positive, level * added.expm1(), added)


def _level(y: Float[Tensor, "B n"]) -> Float[Tensor, "B n"]:
    """Mean of the values of some weeks around each; 1 for series with negative values."""
    reach, (total, count) = CALENDAR_WEEKS * WEEK, _sums(y)
    at = torch.arange(y.shape[1], device=y.device)
    first, end = (at - reach).clamp_min(0), (at + reach + 1).clamp_max(y.shape[1])
    mean = (total[:, end] - total[:, first]) / (count[:, end] - count[:, first]).clamp_min(1)
    return torch.where((y < 0).any(1, keepdim=True), 1.0, mean)


def _differences(y: Float[Tensor, "B n"]) -> Float[Tensor, "B n"]:
    """Values less the median of the same weekday in some weeks around them; NaN in the last week.

    Values of weeks before and after are moved along the median slope between those as far apart, so that a
    trend makes no difference.
    """
    padded = F.pad(y, (CALENDAR_WEEKS * WEEK,) * 2, value=torch.nan)
    around = padded.unfold(1, 2 * CALENDAR_WEEKS * WEEK + 1, 1)[..., ::WEEK]
    before, after = around[..., :CALENDAR_WEEKS], around[..., CALENDAR_WEEKS + 1 :]
    weeks = torch.arange(1, CALENDAR_WEEKS + 1, dtype=y.dtype, device=y.device)
    slope = ((after - before.flip(-1)) / (2 * weeks)).nanquantile(0.5, -1)
    usual = slope.nanquantile(0.5, 1, keepdim=True).nan_to_num(0.0)
    slope = torch.where(slope.isnan(), usual, slope)[..., None]
    others = torch.cat([before + weeks.flip(0) * slope, after - weeks * slope], -1)
    error = y - others.nanquantile(0.5, -1)
    error[:, -WEEK:] = torch.nan
    return error


def _of_weeks(error: Float[Tensor, "B n"], usual: Float[Tensor, "B 1"]) -> Float[Tensor, "B n"]:
    """What the median of some weeks has beyond usual errors: growth that is no line, no effect of days."""
    reach, n = CALENDAR_WEEKS * WEEK, error.shape[1]
    # One median for each week, from the last one back: those of every day would take seven times the memory.
    padded = F.pad(error.flip(1), (reach, reach + WEEK), value=torch.nan)
    weekly = padded.unfold(1, 2 * reach + WEEK, WEEK).nanmedian(-1).values
    median = weekly.repeat_interleave(WEEK, 1)[:, :n].flip(1)
    return median - median.clamp(-usual, usual)


def _shrunk_means(
    error: Float[Tensor, "B n"],
    usual: Float[Tensor, "B 1"],
    days: Int[Tensor, "B N"],
    n_kinds: int,
    special: Bool[Tensor, "B n"],
    rivals: Sequence[float] = (),
) -> Float[Tensor, "B N"]:
    """Mean error of each kind of day, shrunk to 0 by the errors of other days; 0 where there is no kind.

    They have no effect if a rival, a cycle of about as many days, explains more.
    """
    n = error.shape[1]
    cut = error.clamp(-CALENDAR_ERROR * usual, CALENDAR_ERROR * usual)
    used = ~error.isnan() & (days[:, :n] >= 0)
    kind = days.clamp_min(0)
    at, chosen = kind[:, :n], torch.where(used, cut, torch.nan)
    variance, deviation = _of_runs(torch.where(special, torch.nan, cut), n_kinds)
    mean, count, share, beyond = _means(chosen, at, n_kinds, variance, deviation)
    beyond = beyond.clamp_min(0)
    for cycle in rivals:
        other = (torch.arange(n, device=error.device) % cycle).long().expand_as(at)
        *_, rival = _means(chosen, other, math.ceil(cycle), variance, deviation)
        beyond = torch.where(rival > CALENDAR_DOUBT * beyond, 0.0, beyond)
    between = beyond / (count > 0).sum(1, keepdim=True).clamp_min(1)
    zero = torch.zeros_like(mean)
    # What all of several occurrences exceed is no outlier, and not cut.
    least, most = (
        torch.full_like(zero, bound).scatter_reduce(1, at, torch.where(used, error, bound), how)
        for bound, how in ((torch.inf, "amin"), (-torch.inf, "amax"))
    )
    agreed = torch.where(count > 1, least.clamp_min(0) + most.clamp_max(0), 0.0)
    mean = torch.where(agreed.abs() > mean.abs(), agreed, mean)
    shrunk = mean * between / (between + share * variance).clamp_min(1e-300)
    shrunk *= torch.where(count == 1, CALENDAR_ONCE, 1.0)
    return torch.where(days >= 0, shrunk.gather(1, kind), 0.0)


def _means(
    error: Float[Tensor, "B n"],
    kind: Int[Tensor, "B n"],
    n_kinds: int,
    variance: Float[Tensor, "B 1"],
    deviation: Float[Tensor, "B 1"],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Mean, number and its inverse of known errors of each kind; what squares of means have beyond chance."""
    known, zero = ~error.isnan(), error.new_zeros(len(error), n_kinds)
    count = zero.scatter_add(1, kind, known.to(error))
    mean = zero.scatter_add(1, kind, torch.where(known, error, 0.0)) / count.clamp_min(1)
    share = torch.where(count > 0, 1 / count.clamp_min(1), 0.0)
    strict = (CALENDAR_OCCURRENCES * share).clamp_min(1)
    beyond = (mean.square() - share * (variance + strict * deviation)).sum(1, keepdim=True)
    return mean, count, share, beyond


def _of_runs(error: Float[Tensor, "B n"], size: int) -> tuple[Tensor, Tensor]:
    """Mean of squared errors, and the standard deviation of their means over some days in a row."""
    square, count = _sums(F.pad(error, (size, size), value=torch.nan).square())
    mean = square[:, -1:] / count[:, -1:].clamp_min(1)
    square, count = square[:, size:] - square[:, :-size], count[:, size:] - count[:, :-size]
    full = count >= size / 2
    apart = torch.where(full, square / count.clamp_min(1) - mean, 0.0).square().sum(1, keepdim=True)
    return mean, (apart / full.sum(1, keepdim=True).clamp_min(1)).sqrt()


def _sums(y: Float[Tensor, "B n"]) -> tuple[Tensor, Tensor]:
    """Sum and number of the observed values before each point, and of all: (B, n + 1)."""
    known = ~y.isnan()
    total, count = (F.pad(v.cumsum(1), (1, 0)) for v in (torch.where(known, y, 0.0), known.to(y)))
    return total, count
