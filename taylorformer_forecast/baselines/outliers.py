"""Outliers in view of the values on both sides of them, in large steps of a series."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from taylorformer_forecast.baselines.seasonal import carry
from taylorformer_forecast.baselines.zeros import is_intermittent
from taylorformer_forecast.defaults import (
    FEWEST_RUNS,
    FEWEST_SHIFTS,
    FIRST_CHECKED_VALUE,
    LARGE_STEP,
    LAST_OUTLIER_SIZE,
    LONG_SERIES,
    LONGEST_RUN,
    MIN_CHECKED_VALUES,
    MOST_EXCEPTIONS,
    MOST_OUTLIERS,
    SPIKE_SIZES,
    STEP_BLOCK,
)


def without_outliers(
    t: Float[Tensor, " n"], y: Float[Tensor, " n"], seasons: Sequence[float | int] = ()
) -> Float[Tensor, " n"]:
    """Take outliers out of a series, in view of the values on both sides of them.

    A value is compared with the range of the levels before and after it (medians of three values) and of the
    values one season before and after it. What lies further from this range than four large steps (the 0.9
    quantile of the steps around it; in a long series six of them) is an outlier and becomes missing. So do up
    to twelve such values in a row that the series jumps to and back from: more are a shift of the level. What
    leaves a constant and comes back to it is an outlier of any size, if it is a twentieth of the series at
    most. At the ends, where both look alike, two values are moved to two large steps from the range, unless
    earlier ones were shifts. Intermittent series, and those with many outliers, stay as they are.

    Parameters
    ----------
    t, y : Tensor of shape (n,)
        Times, increasing, and values; NaN where nothing was observed.
    seasons : sequence of float, optional
        Lengths of seasons, in units of the times.

    Returns
    -------
    Tensor of shape (n,)
        Values; ``y`` itself if nothing is an outlier.

    References
    ----------
    Tukey, "Exploratory data analysis", 1977, on running medians.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.outliers import without_outliers
    >>> y = torch.tensor([1.0, 2.0, 1.5, 1.0, 2.0, 1.0, 2.0] * 6)
    >>> y[[10, -1]] = 1e6
    >>> without_outliers(torch.arange(42.0), y)[[9, 10, 11, -2, -1]].tolist()
    [1.5, nan, 2.0, 1.0, 3.0]
    """
    seen = ~y.isnan()
    values = y[seen]
    if len(values) < MIN_CHECKED_VALUES or bool(is_intermittent(values[None])[0, -1]):
        return y
    clean = cleaned(t[seen], values, seasons)[0]
    return y if bool((clean == values).all()) else y.masked_scatter(seen, clean)


def cleaned(t: Tensor, y: Tensor, seasons: Sequence[float | int]) -> tuple[Tensor, Tensor]:
    """Observed values without outliers, and those of them that values before them do not show."""
    unit, size = usual_steps(y), SPIKE_SIZES[len(y) > LONG_SERIES]
    if bool(y.diff().abs().max() <= size / 2 * unit.min()):  # two steps lead to the median of three values
        return y, torch.zeros_like(y, dtype=torch.bool)
    around = seasonal_values(t, y, seasons)
    runs, spikes = _in_runs(y, around, size * unit), _spikes(y, around, size * unit)
    exceptions = (unit == 0) & (runs | spikes)
    rest = y[~exceptions]
    if float(exceptions.float().mean()) > MOST_EXCEPTIONS or bool(rest.max() > rest.min()):
        runs, spikes = runs & ~exceptions, spikes & ~exceptions
    runs |= spikes & (unit == 0)  # the values before them do not vary, and show no outliers
    clean, ahead = torch.where(runs | spikes, torch.nan, y), y
    for _ in range(2):  # both ends
        ahead, around, unit = ahead.flip(0), around.flip(1), unit.flip(0)
        clean = _with_near_end(clean.flip(0), ahead, around, unit, size)
    changed = clean != y  # NaN too
    first = changed & (torch.arange(len(y), device=y.device) < FIRST_CHECKED_VALUE - 1)
    return (y, first) if are_many(changed) else (clean, runs | first)


def are_many(changed: Tensor) -> bool:
    """Whether outliers, or runs of them, are so many that they are a part of the series."""
    n_runs = int((changed & ~torch.nn.functional.pad(changed, (1, 0))[:-1]).sum())
    return n_runs >= FEWEST_RUNS and float(changed.float().mean()) > MOST_OUTLIERS


def _in_runs(y: Tensor, around: Float[Tensor, "K n"], most: Tensor) -> Tensor:
    """Which values are in runs of two to twelve outliers that the series jumps to and back from, (n,)."""
    n, found = len(y), torch.zeros_like(y, dtype=torch.bool)
    low, high = (torch.where(around.isnan(), end, around) for end in (torch.inf, -torch.inf))
    before = y.unfold(0, 3, 1).median(1).values  # of the three values from each one on
    after = torch.nn.functional.pad(y, (0, 2), value=torch.nan).unfold(0, 3, 1).nanmedian(1).values
    step = y.diff().abs()
    jumps_to, jumps_back = step > most[1:] / 2, step > most[:-1] / 2  # far enough for a run's first and last
    for length in range(2, min(LONGEST_RUN, n - 4) + 1):
        to, back = slice(2, n - length - 1), slice(2 + length, None)  # steps to the first, and from the last
        if not bool((jumps_to[to] & jumps_back[back]).any()):
            continue
        first = slice(3, n - length)  # of the run; the next value follows it
        level = torch.stack([before[: n - length - 3], after[3 + length :]])
        inside, unit = (part.unfold(0, length, 1)[first] for part in (y, most))
        bottom = torch.minimum(level.amin(0)[:, None], low.amin(0).unfold(0, length, 1)[first])
        top = torch.maximum(level.amax(0)[:, None], high.amax(0).unfold(0, length, 1)[first])
        jump, same = torch.minimum(step[to], step[back]), (level[0] == level[1])[:, None]
        for away in (inside - top, bottom - inside):
            far = ((away > unit) & ((unit > 0) | same)).all(1) & (jump >= away.amax(1) / 2)
            for start in (3 + far.nonzero()[:, 0]).tolist():
                found[start : start + length] = True
    return found


def step_sizes(y: Float[Tensor, "B n"]) -> Float[Tensor, "B n"]:
    """Absolute differences of values from the last one observed before; NaN where there is none of either.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.outliers import step_sizes
    >>> step_sizes(torch.tensor([[1.0, float("nan"), 4.0, 2.0]]))[0].tolist()
    [nan, nan, 3.0, 2.0]
    """
    return (y - torch.nn.functional.pad(carry(y)[:, :-1], (1, 0), value=torch.nan)).abs()


def large_step(steps: Float[Tensor, "B n"]) -> Float[Tensor, " B"]:
    """The 0.9 quantile of sizes of steps that are not NaN, in a tenth of the time of ``Tensor.nanquantile``.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.outliers import large_step
    >>> steps = torch.tensor([[1.0, 3.0, 0.0, 2.0, float("nan")]])
    >>> large_step(steps).item() == steps.nanquantile(0.9).item()
    True
    """
    ordered = steps.sort(dim=1).values  # NaN are the last
    at = LARGE_STEP * ((~steps.isnan()).sum(1, keepdim=True) - 1).clamp_min(0).to(steps)
    low, high = (ordered.gather(1, end.long()) for end in (at.floor(), at.ceil()))
    return torch.lerp(low, high, at % 1)[:, 0]


def usual_steps(y: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """Size of a large step around every value: that of its block, or of one beside it."""
    steps = y.diff().abs()
    blocks = steps.tensor_split(max(1, len(steps) // STEP_BLOCK))
    size = large_step(torch.nn.utils.rnn.pad_sequence(list(blocks), True, torch.nan))
    size = torch.nn.functional.max_pool1d(size[None], 3, stride=1, padding=1)[0]
    every = torch.cat([one.expand(len(block)) for one, block in zip(size, blocks, strict=True)])
    return torch.cat([every[:1], every])


def seasonal_values(t: Tensor, y: Tensor, seasons: Sequence[float | int]) -> Float[Tensor, "K n"]:
    """Values one season before and after each; NaN where there is none."""
    found = [torch.full_like(y, torch.nan)]
    for season in seasons:
        for apart in (-season, season):
            near = torch.searchsorted(t, t + apart - 0.5).clamp_max(len(t) - 1)
            found.append(torch.where((t[near] - t - apart).abs() <= 0.5, y[near], torch.nan))
    return torch.stack(found)


def beyond(y: Tensor, around: Float[Tensor, "K n"]) -> Float[Tensor, " n"]:
    """How far values lie above (or, negative, below) the range of what is around them."""
    low = torch.where(around.isnan(), torch.inf, around).amin(0)
    high = torch.where(around.isnan(), -torch.inf, around).amax(0)
    return (y - high).clamp_min(0.0) + (y - low).clamp_max(0.0)


def _spikes(y: Tensor, around: Tensor, most: Tensor) -> Bool[Tensor, " n"]:
    """Which values leave the levels on both sides, never the first or last."""
    n = len(y)
    padded = torch.nn.functional.pad(y, (3, 3), value=torch.nan).unfold(0, 3, 1)  # three in a row
    before, after = padded[:n], padded[4:]
    level = torch.stack([before.median(1).values, after.median(1).values])
    for row, side, other in ((level[0], before, 1), (level[1], after, 0)):  # with fewer: nearest to the other
        few = row.isnan() & ~level[other].isnan()
        apart = (side - level[other][:, None]).abs().nan_to_num(torch.inf)
        nearest = side.gather(1, apart.argmin(1, keepdim=True))[:, 0]
        row[few] = nearest[few]
    away = beyond(y, torch.cat([level, around]))
    far = (away.abs() > most) & ((most > 0) | (level[0] == level[1]))
    far[[0, -1]] = False
    return far


def _with_near_end(
    clean: Tensor, y: Tensor, around: Tensor, unit: Tensor, size: float
) -> Float[Tensor, " n"]:
    """The last one or two values moved, where they alone lie far from the values before them."""
    if not bool((y[-3:].diff().abs() > (size - 2) * unit[-2:]).any()):
        return clean  # no step is large enough to lead so far from one of the three values before it
    if _shifts_often(clean, y, around, unit, size):
        return clean
    for count in (1, 2):
        first = len(y) - count
        step = torch.maximum(unit[first:], y[first - 3 : first].diff().abs().max())
        level = y[first - 3 : first].median().expand(1, count)
        away = beyond(y[first:], torch.cat([level, around[:, first:]]))
        if bool((away.abs() > size * step).all() & (step > 0).all() & (away.sign().diff() == 0).all()):
            moved = y[first:] - away + LAST_OUTLIER_SIZE * step * away.sign()
            return torch.cat([clean[:first], moved])
    return clean


def _shifts_often(clean: Tensor, y: Tensor, around: Tensor, unit: Tensor, size: float) -> bool:
    """Whether values far from those before were shifts twice, and twice more for each that was an outlier."""
    before = y.unfold(0, 3, 1)[:-2]  # the three values before each but the last
    step = torch.maximum(unit[3:-1], before.diff(dim=1).abs().amax(1))
    away = beyond(y[3:-1], torch.cat([before.median(1).values[None], around[:, 3:-1]]))
    far, outlier = away.abs() > size * step, clean[3:-1].isnan()
    far[1:] &= ~far[:-1]
    return int((far & ~outlier).sum()) >= FEWEST_SHIFTS * (1 + int((far & outlier).sum()))
