"""Which series are intermittent demand, which are never negative, and which zeros stand for no value."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from taylorformer_forecast.defaults import (
    AWAKE_RUN,
    BROKEN_RUN,
    FEW_ZEROS,
    FEWEST_BEFORE_BROKEN,
    FEWEST_OF_NEW,
    FEWEST_RUNS,
    FEWEST_STEPS,
    INTERMITTENT_ZEROS,
    LEAST_ELASTICITY,
    LEAST_OF_NEW,
    MIN_CHECKED_VALUES,
    MOST_LEADING_ZEROS,
    OUTAGE_EDGE,
    OUTAGE_RUN,
    WHOLE_IN_SINGLE_PRECISION,
    ZEROS_CHANCE,
)


def is_intermittent(y: Float[Tensor, "B n"]) -> Bool[Tensor, "B n"]:
    """Whether the values up to each point are not negative and a quarter of them is zero.

    Of the zeros before the first other value four count: a series may only have begun late. It has where no
    zero follows, and the first three values or more are alike and no small counts. A long run of
    zeros that is over does not count where there are few others: it was an outage. Nor do zeros count
    that alternate with other values in long runs, as nights do with days. Where values have not been zero for
    longer than ever, and than chance would have it, as in an outbreak, those before are another time. Where
    there are far more zeros in a row at the end than ever before, a quarter is not needed, and three are
    enough where all was far from zero.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.zeros import is_intermittent
    >>> is_intermittent(torch.tensor([[3.0, 2.0, 4.0, 0.0, 1.0]])).tolist()
    [[False, False, False, True, False]]
    """
    if not bool((y == 0).any()):
        return torch.zeros_like(y, dtype=torch.bool)
    value = (y != 0) & ~y.isnan()
    leading = ~value.cummax(1).values
    zeros = ((y == 0) & ~leading).cumsum(1) + ((y == 0) & leading).cumsum(1).clamp_max(MOST_LEADING_ZEROS)
    seen = (~y.isnan() & ~leading).cumsum(1) + (~y.isnan() & leading).cumsum(1).clamp_max(MOST_LEADING_ZEROS)
    ended, run = _over(zeros, value)
    outage = (run >= OUTAGE_RUN) & (zeros - run < FEW_ZEROS * (seen - run))
    over = F.pad((ended.diff(dim=1) > 0).cumsum(1), (1, 0))  # number of runs that are
    nights = (over >= FEWEST_RUNS) & (torch.minimum(ended, seen - zeros) >= OUTAGE_RUN * over)
    many = (zeros >= INTERMITTENT_ZEROS * seen.clamp_min(1)) & ~outage & ~_awake(y) & ~_has_begun(y)
    return (many | may_have_ended(y) | may_be_broken(y)) & ~nights & ((y < 0).cumsum(1) == 0)


def may_have_ended(y: Float[Tensor, "B n"]) -> Bool[Tensor, "B n"]:
    """Whether the values up to each point end with ten zeros or more, twice as many as in any run before.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.zeros import may_have_ended
    >>> y = torch.tensor([[5.0] * 30 + [0.0] * 10])
    >>> may_have_ended(y)[0, -2:].tolist()
    [False, True]
    """
    return _ends_with(y, OUTAGE_RUN)


def may_be_broken(y: Float[Tensor, "B n"]) -> Bool[Tensor, "B n"]:
    """Whether the values up to each point end with three to nine zeros, and are far from zero before.

    Hardly any is less than a quarter of their mean. So it is no season that ends.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.zeros import may_be_broken
    >>> y = torch.tensor([[50.0] * 30 + [0.0] * 3, [50.0, 1.0, 40.0] * 10 + [0.0] * 3])
    >>> may_be_broken(y)[:, -1].tolist()
    [True, False]
    """
    value = (y != 0) & ~y.isnan()
    count = value.cumsum(1)
    mean = torch.where(value, y, 0.0).cumsum(1) / count.clamp_min(1)
    small = (~y.isnan() & (y < OUTAGE_EDGE * mean) & (count > 0)).cumsum(1)
    before = torch.where(value, small, 0).cummax(1).values  # of the zeros at the end
    far = (count >= FEWEST_BEFORE_BROKEN) & (before < FEW_ZEROS * count)
    begun = torch.where(value.cummax(1).values, y, torch.nan)  # zeros before are those of a late start
    return _ends_with(begun, BROKEN_RUN) & ~may_have_ended(y) & far


def _ends_with(y: Float[Tensor, "B n"], least: int) -> Bool[Tensor, "B n"]:
    """Whether there are so many zeros after the last other value, twice as many as in any run before."""
    zeros, value = (y == 0).cumsum(1), (y != 0) & ~y.isnan()
    ended, longest = _over(zeros, value)
    since = zeros - ended
    return (since >= least) & (since >= 2 * longest) & (value.cumsum(1) > 0)


def _over(zeros: Int[Tensor, "B n"], value: Bool[Tensor, "B n"]) -> tuple[Tensor, Tensor]:
    """Zeros up to the last other value, of numbers of zeros so far, and the longest run that is over."""
    ended = torch.where(value, zeros, 0).cummax(1).values
    return ended, ended.diff(dim=1, prepend=ended[:, :1]).cummax(1).values


def _awake(y: Float[Tensor, "B n"]) -> Bool[Tensor, "B n"]:
    """Whether values have not been zero for longer than ever, and than chance would have it."""
    observed = ~y.isnan()
    count, zeros = observed.cumsum(1), (y == 0).cumsum(1)
    before = torch.where(y == 0, count, 0).cummax(1).values  # observed values up to the last zero
    run = count - before
    longest = torch.where(y == 0, F.pad(run, (1, 0))[:, :-1], 0).cummax(1).values  # of those that are over
    chance = (1 - zeros / before.clamp_min(1)).clamp_min(1e-12) ** run
    return (run >= AWAKE_RUN) & (run > longest) & (chance < ZEROS_CHANCE)


def _has_begun(y: Float[Tensor, "B n"]) -> Bool[Tensor, "B n"]:
    """Whether values are alike, not equal, and no small counts since the first one: of a new product."""
    value = (y != 0) & ~y.isnan()
    count, smallest = value.cumsum(1), torch.where(value, y, torch.inf).cummin(1).values
    largest = torch.where(value, y, -torch.inf).cummax(1).values  # orders may be of one size
    mean = torch.where(value, y, 0.0).cumsum(1) / count.clamp_min(1)
    alike = ((y == 0) & (count > 0)).cumsum(1).eq(0) & (smallest >= OUTAGE_EDGE * mean)
    small = (smallest < LEAST_OF_NEW) & ((value & (y != y.round())).cumsum(1) == 0)
    return (count >= FEWEST_OF_NEW) & (largest > smallest) & alike & ~small


def never_negative(y: Float[Tensor, "B n"]) -> Bool[Tensor, "B n"]:
    """Whether the values up to each point leave it open that none can be negative.

    Zero is no bound of numbers that are not whole where steps are as large at low levels as at high ones, as
    those of degrees are, or where these are few and one number is zero, as in a series that was scaled to its
    range.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.zeros import never_negative
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
    zeros = (seen & (y == 0)).cumsum(1)
    few = count < FEWEST_STEPS
    bounded = (zeros > 1) | F.pad(smaller & ~few, (1, 0)) | ((zeros == 0) & F.pad(few, (1, 0), value=True))
    # In single precision large numbers have no fractions: by themselves they show nothing.
    size = value.abs()
    large, small = size >= WHOLE_IN_SINGLE_PRECISION, (size > 0) & (size < WHOLE_IN_SINGLE_PRECISION)
    unclear = (large.cumsum(1) > 0) & (small.cumsum(1) == 0) & ((value != value.float()).cumsum(1) == 0)
    whole = ((value != value.round()).cumsum(1) == 0) & ~unclear
    return (bounded | whole) & ((y < 0).cumsum(1) == 0)


def without_outages(y: Float[Tensor, "B n"], seasons: Sequence[float | int] = ()) -> Float[Tensor, "B n"]:
    """Series whose zeros are missing where something was closed or broken for a time.

    That is a long run of zeros which begins and ends at once and is over, in a series that has few other
    zeros. It may be short where no other value is less than a quarter of the median, and values are no small
    counts. Several such runs, or two at the same place in a season, are a part of the series.

    Parameters
    ----------
    y : Tensor of shape (B, n)
        Values, NaN where nothing was observed.
    seasons : sequence of float or int, optional
        Lengths of seasons, in steps.

    Returns
    -------
    Tensor of shape (B, n)
        ``y`` itself if there is no such run.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.zeros import without_outages
    >>> y = torch.tensor([[4.0, 5.0] * 30])
    >>> y[0, 20:30] = 0.0
    >>> without_outages(y).isnan().sum().item(), without_outages(y[:, :30]).isnan().sum().item()
    (10, 0)
    """
    began = ((y != 0) & ~y.isnan()).cummax(1).values
    zeros, seen = ((y == 0) & began).sum(1), (~y.isnan() & began).sum(1)
    most = (INTERMITTENT_ZEROS + FEW_ZEROS) * seen  # in runs, and others
    rows = ((zeros > 0) & (zeros < most)).nonzero()[:, 0].tolist()
    outages = {row: _outages(y[row], seasons) for row in rows}
    if not any(bool(own.any()) for own in outages.values()):
        return y
    y = y.clone()
    for row, own in outages.items():
        y[row, own] = torch.nan
    return y


def _outages(y: Float[Tensor, " n"], seasons: Sequence[float | int]) -> Bool[Tensor, " n"]:
    """Zeros of a series that :func:`without_outages` takes for missing."""
    zero, places = y == 0, ((y != 0) & ~y.isnan()).nonzero()[:, 0]
    count = zero.cumsum(0)[places].diff()  # zeros between two other values that follow each other
    size = y[places].abs()
    usual = size.median()
    abrupt = torch.minimum(size[1:], size[:-1]) >= OUTAGE_EDGE * usual
    counts = len(size.unique()) < MIN_CHECKED_VALUES  # small ones, next to which zero is another
    shortest = OUTAGE_RUN if counts or bool(size.min() < OUTAGE_EDGE * usual) else 1
    runs = ((count >= shortest) & abrupt).nonzero()[:, 0]
    found = torch.zeros_like(zero)
    if not 0 < len(runs) < FEWEST_RUNS:
        return found
    began = y[places[0] :]
    seen, away = int((~began.isnan()).sum()), int(count[runs].sum())
    others = int((began == 0).sum()) - away
    if away >= INTERMITTENT_ZEROS * seen or others >= FEW_ZEROS * (seen - away):
        return found
    start, stop = places[runs], places[runs + 1]
    longest = int((stop - start).max())
    if len(runs) == 2:
        apart = int(start[1] - start[0])
        if any(s >= 2 * longest and abs(apart - round(apart / s) * s) <= longest / 2 for s in seasons):
            return found
    for first, last in zip(start.tolist(), stop.tolist(), strict=True):
        found[first:last] = zero[first:last]
    return found


def leading_zeros(y: Float[Tensor, "*B n"]) -> Bool[Tensor, "*B n"]:
    """Zeros before the first other value: no values, unless one is negative or all are zero.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.zeros import leading_zeros
    >>> leading_zeros(torch.tensor([0.0, 0.0, 3.0, 0.0])).tolist()
    [True, True, False, False]
    """
    begun = (y.nan_to_num() != 0).cummax(-1).values
    counts = begun[..., -1:] & ~(y < 0).any(-1, keepdim=True)
    return (y == 0) & ~begun & counts
