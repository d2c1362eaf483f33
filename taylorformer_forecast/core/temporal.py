"""Linear maps over time and interpolation: what several baselines and networks read windows with."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from taylorformer_forecast.core.window import Window, holds_everywhere
from taylorformer_forecast.defaults import LARGEST_FULL_MAP, LOW_RANK

TOLERANCE = 1e-3  # of times, in steps


def last_seen(seen: Bool[Tensor, "B N *D"], otherwise: int = -1) -> Int[Tensor, "B N *D"]:
    """Number of the last point that is seen up to each, another number before the first.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.temporal import last_seen
    >>> last_seen(torch.tensor([[False, True, False, True]])).tolist()
    [[-1, 1, 1, 3]]
    """
    place = torch.arange(seen.shape[1], device=seen.device).view(-1, *[1] * (seen.ndim - 2))
    return torch.where(seen, place, otherwise).cummax(1).values


def on_grid(window: Window, n_steps: int, seasonal: tuple[int, int] = (1, 1)) -> Float[Tensor, "B L D"]:
    """Values of the context on the regular grid that ends at time 0, on the lines between observed points.

    With a season, what is missing in long gaps is what was there a season before, and the difference between
    both is on the lines.

    Parameters
    ----------
    window : Window
        Scaled windows, one time coordinate, context in order of time.
    n_steps : int
        Grid points L, at times ``(1 - L) / L, ..., -1 / L, 0``.
    seasonal : (int, int), default=(1, 1)
        Steps of a season, 1 for none, and of the gaps that are filled by it.

    Returns
    -------
    Tensor
        Shape (B, L, D). Before the first and after the last observed point their values go on; without any
        observed point all is zero.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.temporal import on_grid
    >>> from taylorformer_forecast.core.window import Window
    >>> y = torch.tensor([0.0, float("nan"), 2.0, 4.0, 9.0])
    >>> w = Window(torch.arange(-3.0, 2.0)[None] / 4, y[None, :, None], n_context=4)
    >>> on_grid(w, 4).flatten().tolist()
    [0.0, 1.0, 2.0, 4.0]
    """
    n = window.n_context
    y, observed, t = window.y[:, :n], window.observed[:, :n], window.times[:, :n, 0]
    grid = torch.arange(1 - n_steps, 1, device=t.device, dtype=t.dtype) / n_steps
    if n == n_steps and holds_everywhere(observed) and holds_everywhere((t - grid).abs() < TOLERANCE / n):
        return y
    values, distance = interpolate(t, y, observed, grid, TOLERANCE / n_steps)
    return values if seasonal[0] == 1 else _by_season(values, distance < 0.5 / n_steps, grid, *seasonal)


def _by_season(
    values: Float[Tensor, "B L D"],
    known: Bool[Tensor, "B L D"],
    grid: Float[Tensor, " L"],
    season: int,
    gap: int,
) -> Float[Tensor, "B L D"]:
    """Values of long gaps replaced by those of a season before, plus the lines between differences."""
    both = F.pad(known[:, season:] & known[:, :-season], (0, 0, season, 0))
    change = F.pad(values[:, season:] - values[:, :-season], (0, 0, season, 0))
    change, _ = interpolate(grid.expand(len(values), -1), change, both, grid, TOLERANCE / len(grid))
    after = len(grid) - 1 - last_seen(known.flip(1)).flip(1)
    kept = (after - last_seen(known) <= gap) | ~both.any(1, keepdim=True)
    found = values
    for start in range(season, len(grid), season):
        now = slice(start, start + season)
        before = found[:, start - season : start][:, : values[:, now].shape[1]]
        filled = torch.where(kept[:, now], values[:, now], before + change[:, now])
        found = torch.cat([found[:, :start], filled, found[:, start + season :]], 1)
    # Where the season before is missing too, the end of a gap shows how far it is off.
    off = F.pad(values[:, season:] - found[:, :-season] - change[:, season:], (0, 0, season, 0))
    off, _ = interpolate(grid.expand(len(values), -1), off, kept, grid, TOLERANCE / len(grid))
    return _begun_earlier(torch.where(kept, values, found + off), known, season)


def _begun_earlier(
    values: Float[Tensor, "B L D"], known: Bool[Tensor, "B L D"], season: int
) -> Float[Tensor, "B L D"]:
    """Values before the first known one replaced by those of the first season, where there is a whole one."""
    place = torch.arange(values.shape[1], device=values.device)[:, None].expand_as(values)
    first = known.int().argmax(1, keepdim=True)
    late = (place < first) & (first <= values.shape[1] - season)
    return values.gather(1, torch.where(late, first + (place - first) % season, place))


def interpolate(
    t: Float[Tensor, "B N"],
    y: Float[Tensor, "B N D"],
    observed: Bool[Tensor, "B N D"],
    grid: Float[Tensor, " M"],
    tolerance: float,
) -> tuple[Float[Tensor, "B M D"], Float[Tensor, "B M D"]]:
    """Values at the times of a grid, on the lines between observed points, and the time to the nearest."""
    n, n_columns = y.shape[1:]
    y, observed = (v.mT.flatten(0, 1) for v in (y, observed))  # columns may miss different points
    t = t.repeat_interleave(n_columns, 0)
    position = torch.arange(n, device=t.device)
    before = F.pad(last_seen(observed), (1, 0), value=-1)
    after = F.pad(torch.where(observed, position, n).flip(1).cummin(1).values.flip(1), (0, 1), value=n)
    seen = torch.where(observed, t, -torch.inf).cummax(1).values
    passed = torch.searchsorted(seen, (grid + tolerance).repeat(t.shape[0], 1))  # points up to each grid time
    left, right = before.gather(1, passed), after.gather(1, passed)
    left, right = torch.where(left < 0, right, left), torch.where(right == n, left, right)
    left, right = left.clamp(0, n - 1), right.clamp(0, n - 1)
    start, end = t.gather(1, left), t.gather(1, right)
    weight = ((grid - start) / (end - start).clamp_min(tolerance)).clamp(0.0, 1.0)
    values = torch.lerp(y.gather(1, left), y.gather(1, right), weight)
    distance = torch.minimum((grid - start).abs(), (grid - end).abs())
    values, distance = (v.unflatten(0, (-1, n_columns)).mT for v in (values, distance))
    return values, distance


class TemporalMap(nn.Module):
    """Linear map over time, from n points to the first T of m steps, the same for every feature.

    A full matrix for a day of minutes has two million numbers, for four days 33 million, and so have its
    gradient and both moments of the optimiser. Beyond ``2**20`` numbers the map is the product of two of rank
    256.

    Parameters
    ----------
    n_in, n_out : int
        Points n and steps m.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.temporal import TemporalMap
    >>> TemporalMap(24, 12)(torch.randn(2, 24, 3), 5).shape
    torch.Size([2, 5, 3])
    """

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        rank = min(LOW_RANK, n_in, n_out)
        self.reduce = nn.Linear(n_in, rank, bias=False) if n_in * n_out > LARGEST_FULL_MAP else nn.Identity()
        self.steps = nn.Linear(rank if n_in * n_out > LARGEST_FULL_MAP else n_in, n_out)

    def forward(self, x: Float[Tensor, "B N F"], n_steps: int) -> Float[Tensor, "B T F"]:
        """Apply the first ``n_steps`` rows of the map."""
        return F.linear(self.reduce(x.mT), self.steps.weight[:n_steps], self.steps.bias[:n_steps]).mT
