r"""Attention in continuous time: keys and values that move, queries that are averaged over the way.

Reference point i has a key and a value that start at its time t_i and follow a field. A query at time T sees

    score_i = 1 / (T - t_i) * int_{t_i}^{T} <q(t), k_i(t)> dt,
    value_i = 1 / (T - t_i) * int_{t_i}^{T} v_i(t) dt,

and at T = t_i their limits, the inner product of query and key and the value itself. Without movement and
with a constant query this is ordinary attention.

Source: "ContiFormer: Continuous-Time Transformer for Irregular Time Series Modeling" (Chen et al., NeurIPS
2023).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from taylorformer_forecast.core.attention.kernels import softmax_weights
from taylorformer_forecast.core.attention.layer import MultiHeadAttention
from taylorformer_forecast.core.attention.local import log_window
from taylorformer_forecast.core.attention.registry import Attention
from taylorformer_forecast.core.continuous.closed_form import LinearField, Relaxation, mean_decay
from taylorformer_forecast.core.continuous.interpolation import INTERPOLATIONS, Interpolation
from taylorformer_forecast.core.continuous.merging import between_all, to_last
from taylorformer_forecast.core.continuous.problem import Problem, differences, few_windows
from taylorformer_forecast.core.continuous.solvers import MLPField, integrate_all
from taylorformer_forecast.core.window import holds_everywhere

DYNAMICS = {  # solvers of each, the default first
    "linear": ("closed", "midpoint", "rk4"),
    "mlp": ("midpoint", "rk4"),
    "none": ("closed",),
}
WINDOWS: dict[str, Callable[[int], int] | None] = {"full": None, "local": log_window}  # by kind of attention


class ContinuousAttention(nn.Module):
    """Multi-head attention over reference points in continuous time.

    Attention is causal: a query sees reference points at its own time and before.

    Parameters
    ----------
    dim : int
        Width I of reference points and of the output.
    n_heads, head_dim : int
        Number of heads H and width E of each.
    dynamics : {"linear", "mlp", "none"}, default="linear"
        Field that keys and values follow: relaxation with learnt rates and resting points, which has a closed
        form; a layer of tanh units over all heads, different for keys and values; or none, so that only
        queries are averaged.
    solver : str, optional
        "closed" (default of "linear" and "none"); "midpoint" (default of "mlp") or "rk4", which follow every
        key once through all times, in one step from point to point. With linear dynamics, whose rates may be
        large, they are only right where points are close: to a hundredth of the output over a tenth of a
        context with "midpoint", and over three tenths with "rk4".
    interpolation : {"linear", "hermite", "hold"}, default="linear"
        Queries between reference times
        (:meth:`~taylorformer_forecast.core.continuous.interpolation.Interpolation.through`).
    value_average : {"mean", "last"}, default="mean"
        Whether values are averaged over the way or taken at its end.
    both_sides : bool, default=False
        Whether queries see later reference points too: these move backwards in time, by the same field.
    window : int, optional
        Reference points back that a reference point sees, its own included; all by default. Queries at other
        times see all.
    fastest : float, default=8.0
        Largest rate of relaxation, per unit of time.
    attention : {"full", "local"}, default="full"
        "local" stands for a window that follows from the number n of reference points, ``4 * ceil(ln n)``,
        where no other is given. Kernels do not apply: they compute scores from one query and one key, and
        here a score is an average over the way between two points.

    Raises
    ------
    ValueError
        If an option is unknown, the solver does not serve the dynamics, or ``attention`` is a kernel.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.continuous.attention import ContinuousAttention
    >>> layer = ContinuousAttention(16, n_heads=4, head_dim=4)
    >>> x, t = torch.randn(2, 5, 16), torch.rand(2, 5).sort(1).values
    >>> layer(x, t).shape
    torch.Size([2, 5, 16])
    >>> later = torch.full((2, 3), 1.5)
    >>> layer(x, t, at=later, x_at=torch.randn(2, 3, 16)).shape
    torch.Size([2, 3, 16])
    """

    def __init__(
        self,
        dim: int,
        n_heads: int,
        head_dim: int,
        dynamics: str = "linear",
        solver: str | None = None,
        interpolation: str = "linear",
        value_average: str = "mean",
        both_sides: bool = False,
        window: int | None = None,
        fastest: float = 8.0,
        attention: Attention = "full",
    ) -> None:
        super().__init__()
        if dynamics not in DYNAMICS:
            raise ValueError(f"dynamics={dynamics!r} is not one of {sorted(DYNAMICS)}")
        self.solver = DYNAMICS[dynamics][0] if solver is None else solver
        if self.solver not in DYNAMICS[dynamics]:
            raise ValueError(f"solver={solver!r} with dynamics={dynamics!r}: one of {DYNAMICS[dynamics]}")
        if interpolation not in INTERPOLATIONS:
            raise ValueError(f"interpolation={interpolation!r} is not one of {list(INTERPOLATIONS)}")
        if value_average not in ("mean", "last"):
            raise ValueError(f"value_average={value_average!r} is neither 'mean' nor 'last'")
        if window is not None and window < 1:
            raise ValueError(f"window={window} must be at least 1")
        if not isinstance(attention, str) or attention not in WINDOWS:
            raise ValueError(
                f"attention={attention!r}: in continuous time a score is an average over the way between two "
                "points, which no kernel computes: take 'full', or 'local' for a window"
            )
        self.heads = MultiHeadAttention(dim, dim, n_heads, head_dim)
        self.interpolation, self.last = interpolation, value_average == "last"
        self.both_sides = both_sides
        self.window = WINDOWS[attention] if window is None else window
        self.key_field: nn.Module
        self.value_field: nn.Module
        if dynamics == "mlp":
            width = n_heads * head_dim
            self.key_field, self.value_field = MLPField(width), MLPField(width)
        else:
            fastest = 0.0 if dynamics == "none" else fastest
            self.key_field = LinearField(n_heads, head_dim, fastest)
            self.value_field = LinearField(n_heads, head_dim, fastest, shared_rate=True)

    def forward(
        self,
        x: Float[Tensor, "B N I"],
        t: Float[Tensor, "B N"],
        mask: Bool[Tensor, "#B #M N"] | None = None,
        at: Float[Tensor, "B M"] | None = None,
        x_at: Float[Tensor, "B M I"] | None = None,
        shift: Float[Tensor, "B M I"] | None = None,
        first: int = 0,
    ) -> Float[Tensor, "B M I"]:
        """Attend from some times to the reference points.

        Parameters
        ----------
        x, t : Tensor of shape (B, N, I) and (B, N)
            Reference points in order of time. Points may share a time; where windows are of different
            lengths, fill them with copies of their last point and hide these by the mask.
        mask : bool Tensor of shape (B or 1, M or 1, N), optional
            True where a query may see a reference point, apart from the times.
        at : Tensor of shape (B, M), optional
            Query times, in any order; by default those of the reference points.
        x_at : Tensor of shape (B, M, I), optional
            States there, for queries at the end of the way; by default those of the reference points, between
            them interpolated.
        shift : Tensor of shape (B, M, I), optional
            What is added to the states that queries come from, all the way from the reference point to the
            query time: it distinguishes targets.
        first : int, default=0
            Where query times are those of the reference points: number of the first one that queries, so
            that M is N less this number. Later than 0 it needs the closed form, and no ``both_sides``.

        Returns
        -------
        Tensor
            Output of the layer, (B, M, I). Queries that see nothing get zeros and the bias of the output.
        """
        if first and (at is not None or self.both_sides or self.solver != "closed"):
            raise ValueError(f"first={first} needs the closed form, and neither times at nor both_sides")
        times = t[:, first:] if at is None else at
        if self.solver == "closed":
            n_scores = self.heads.n_heads * t.shape[1] * times.shape[1]
            if len(pieces := few_windows((x, t, mask, at, x_at, shift), n_scores)) > 1:
                return torch.cat([self(*piece, first) for piece in pieces])
        heads, t, times = self.heads, t.detach(), times.detach()
        # Scores are linear in the queries: it is these that are scaled, not the tables.
        query = Interpolation.through(t, heads.scale * heads.query(x), self.interpolation)
        offset = None if shift is None else heads.scale * (shift @ heads.query.weight.mT)
        if x_at is not None:
            row = heads.scale * heads.query(x_at)
        else:
            row = query.coefficients[0][:, first:] if at is None else query(times)
            row = row if offset is None else row + offset
        problem = Problem(query, heads.key(x), heads.value(x), times, row, offset, at is None)

        elapsed = differences(times, t)
        late = elapsed < 0
        scores, values = self.averages(problem)
        if self.both_sides:
            back_scores, back_values = self.averages(problem.mirrored(self.interpolation))
            turn = (2, 3) if at is None else (3,)
            scores = torch.where(late[:, None], back_scores.flip(turn), scores)
            if values is not None and back_values is not None:
                back_values = back_values.flip([dim - 1 for dim in turn])
                values = torch.where(late[..., None], back_values, values)
        else:
            mask = ~late if mask is None else mask & ~late
        window = self.window_among(t.shape[1])
        if window is not None and at is None:
            place = torch.arange(t.shape[1], device=t.device)
            near = (place[first:, None] - place).abs() < window
            mask = near[None] if mask is None else mask & near
        weights = softmax_weights(scores, mask)
        return heads.merge(self.mix(weights, heads.split(problem.value), values, elapsed.abs()))

    def window_among(self, n: int) -> int | None:
        """Window among ``n`` reference points, at least 1; None if there is none."""
        return max(self.window(n), 1) if callable(self.window) else self.window

    def averages(self, p: Problem) -> tuple[Float[Tensor, "B H M N"], Float[Tensor, "B M N F"] | None]:
        """Scores of reference points that are not later than the query, and the values that it sees.

        Values are None where :meth:`mix` has a closed form for them.
        """
        fields, options = (self.key_field, self.value_field), (self.heads.n_heads, self.solver)
        elapsed = differences(p.at, p.query.t).clamp_min(0.0)
        moved = elapsed > 0
        share, values = torch.where(moved, 1 / torch.where(moved, elapsed, 1.0), 0.0), None
        if self.solver == "closed":
            integrals = self.integrals(p)
        else:
            every, rows, columns = (p, None, None) if p.at_knots else p.at_all_times()
            window = self.window_among(every.key.shape[1]) if p.at_knots else None
            parts = (every.query, every.key, every.value)
            integrals, values = integrate_all(*parts, *fields, *options, window, every.offset, self.last)
            if rows is not None and columns is not None:
                integrals = pick(integrals, rows, columns)
                values = pick(values.movedim(3, 1), rows, columns).movedim(1, 3)
        limit = self.heads.split(p.row) @ self.heads.split(p.key).mT
        scores = torch.addcmul(limit * ~moved[:, None], integrals, share[:, None])
        if values is not None:
            values = values if self.last else values * share[..., None]
            values = torch.where(moved[..., None], values, p.value[:, None])
        return scores, values

    def integrals(self, p: Problem) -> Float[Tensor, "B H M N"]:
        """Integrals of the inner products in closed form, rows without meaning where the key is later."""
        assert isinstance(self.key_field, LinearField)
        split = self.heads.split
        relax = Relaxation(p.query.t, self.key_field.rate, self.key_field.rest)
        key, pieces = relax.keys(split(p.key)), relax.integrals(p.query)
        offset = None if p.offset is None else relax.queries(split(p.offset))
        if p.at_knots:
            unit = None if offset is None else relax.elapsed(relax.gap)
            return between_all(pieces, relax.decay, key, unit, offset, p.key.shape[1] - p.at.shape[1])
        end = p.query.t[:, -1:]
        if not holds_everywhere(p.at >= end, wait=True):  # the other way takes several times as long
            every, rows, columns = p.at_all_times()
            return pick(self.integrals(every), rows, columns)
        # From the last reference point on the query is constant: what came before is one number for each key.
        left, since = end - p.query.t, p.at - end
        to_end = to_last(pieces, relax.decay)
        row = relax.elapsed(since) * relax.queries(split(p.query.coefficients[0][:, -1:]))
        column = key * relax.exponent(left).exp()
        if offset is not None:
            row = torch.cat([row + relax.elapsed(since) * offset, offset], -1)
            column = torch.cat([column, key * relax.elapsed(left)], -1)
        return row @ column.mT + (key * to_end).sum(-1)[:, :, None]

    def mix(
        self,
        weights: Float[Tensor, "B H M N"],
        value: Float[Tensor, "B H N E"],
        values: Float[Tensor, "B M N F"] | None,
        elapsed: Float[Tensor, "#B M N"],
    ) -> Float[Tensor, "B H M E"]:
        """Weighted sum of the values that every query sees, which are those at the start, moved on."""
        if values is not None:
            each = values.unflatten(-1, (self.heads.n_heads, -1))
            return torch.einsum("bhmn,bmnhe->bhme", weights, each)
        field = self.value_field
        assert isinstance(field, LinearField)
        elapsed, rate, rest = elapsed[:, None], field.rate[..., None], field.rest[:, None]
        moved = weights * ((elapsed * rate).exp() if self.last else mean_decay(elapsed, rate))
        return moved @ (value - rest) + weights.sum(-1, keepdim=True) * rest


def pick(
    table: Float[Tensor, "B H R R2"], rows: Int[Tensor, "B M"], columns: Int[Tensor, "B N"]
) -> Float[Tensor, "B H M N"]:
    """Some rows and columns of a table for every window."""
    return table.take_along_dim(rows[:, None, :, None], 2).take_along_dim(columns[:, None, None], 3)
