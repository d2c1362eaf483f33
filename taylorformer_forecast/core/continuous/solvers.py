"""Averages over time of inner products and values, for keys and values that follow any field.

Every key is one curve that starts at its own time. :func:`integrate_all` follows each of them once through
all knots and adds up the integrals on the way. The published code solves an equation for every pair of a
reference point and a query time instead. The linear field has a closed form
(:mod:`~taylorformer_forecast.core.continuous.closed_form`), which needs neither.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from taylorformer_forecast.core.continuous.interpolation import Interpolation

Field = Callable[[Tensor, Tensor], Tensor]


class MLPField(nn.Module):
    """The field ``dx/dt = gain * tanh(W x + b + c t)``, zero at the start of training.

    Parameters
    ----------
    width : int
        Width of the states.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.continuous.solvers import MLPField
    >>> MLPField(2)(torch.zeros(3, 1), torch.ones(3, 2)).abs().max().item()
    0.0
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.time = nn.Parameter(torch.zeros(width))
        self.gain = nn.Parameter(torch.ones(()))
        nn.init.zeros_(self.inner.weight)
        nn.init.zeros_(self.inner.bias)

    def forward(self, t: Float[Tensor, "*b 1"], x: Float[Tensor, "*b F"]) -> Float[Tensor, "*b F"]:
        """Derivatives of states at times."""
        return self.gain * torch.tanh(self.inner(x) + self.time * t)


def _midpoint(field: Field, t: Tensor, h: Tensor, x: Tensor, slope: Tensor) -> Tensor:
    """State after a step of the explicit midpoint rule, from its slope at the start."""
    return x + h * field(t + h / 2, x + h / 2 * slope)


def _rk4(field: Field, t: Tensor, h: Tensor, x: Tensor, slope: Tensor) -> Tensor:
    """State after a step of the classical Runge-Kutta method, from its slope at the start."""
    second = field(t + h / 2, x + h / 2 * slope)
    third = field(t + h / 2, x + h / 2 * second)
    return x + h / 6 * (slope + 2 * second + 2 * third + field(t + h, x + h * third))


STEPS = {"midpoint": _midpoint, "rk4": _rk4}


def integrate_all(
    query: Interpolation,
    key: Float[Tensor, "B N F"],
    value: Float[Tensor, "B N F"],
    key_field: Field,
    value_field: Field,
    n_heads: int,
    method: str = "midpoint",
    window: int | None = None,
    offset: Float[Tensor, "B N F"] | None = None,
    last: bool = False,
) -> tuple[Float[Tensor, "B H N N2"], Float[Tensor, "B N N2 F"]]:
    """Follow every key and value once through the knots after its own, in one loop over lags.

    Middles of intervals come from the cubic through states and slopes at their ends, integrals from Simpson's
    rule, which is exact for a linear query and a quadratic key.

    Parameters
    ----------
    query : Interpolation
        Queries; their knots are those of keys and values.
    key, value : Tensor of shape (B, N, F)
        Keys and values at their own times.
    key_field, value_field : callable
        Derivatives of states (B, M, F) at times (B, M, 1).
    n_heads : int
        Heads H.
    method : {"midpoint", "rk4"}, default="midpoint"
        Rule of a step from knot to knot.
    window : int, optional
        Knots that a key is followed for, its own included; all by default.
    offset : Tensor of shape (B, N, F), optional
        Constants that are added to the query for each row.
    last : bool, default=False
        Whether to return values at the row's time instead of their integrals.

    Returns
    -------
    Tensor of shape (B, H, N, N)
        Row j, column i: the integral from t_i to t_j of the inner product of query and key i.
    Tensor of shape (B, N, N, F)
        Integrals of value i, or the value itself at t_j. Zero for columns after the row.
    """
    step, n, t = STEPS[method], key.shape[1], query.t
    gap = query.lengths[..., None]

    def within(x: float) -> Tensor:
        """Query at one position of every interval."""
        return torch.stack([c * x**p for p, c in enumerate(query.coefficients)]).sum(0)

    def inner(q: Tensor, k: Tensor) -> Tensor:
        return (q * k).unflatten(-1, (n_heads, -1)).sum(-1)

    def advance(field: Field, at: Tensor, h: Tensor, x: Tensor, slope: Tensor) -> tuple[Tensor, ...]:
        new = step(field, at, h, x, slope)
        new_slope = field(at + h, new)
        return (x + new) / 2 + h / 8 * (slope - new_slope), new, new_slope

    first, middle, end = within(0.0), within(0.5), within(1.0)
    k, v = key, value
    k_slope, v_slope = key_field(t[..., None], k), value_field(t[..., None], v)
    product, k_total, v_total = inner(torch.zeros_like(k), k), torch.zeros_like(k), torch.zeros_like(v)
    products, values = [product], [v if last else v_total]
    for lag in range(1, n if window is None else min(window, n)):
        # Those keys that have a knot so far ahead of them, at the knot before it.
        k, v, k_slope, v_slope, product, k_total, v_total = (
            x[:, : n - lag] for x in (k, v, k_slope, v_slope, product, k_total, v_total)
        )
        here = slice(lag - 1, n - 1)
        at, h, q0, q1, q2 = t[:, here, None], gap[:, here], first[:, here], middle[:, here], end[:, here]
        k_middle, k_new, k_slope = advance(key_field, at, h, k, k_slope)
        v_middle, v_new, v_slope = advance(value_field, at, h, v, v_slope)
        product = product + h / 6 * (inner(q0, k) + 4 * inner(q1, k_middle) + inner(q2, k_new))
        k_total = k_total + h / 6 * (k + 4 * k_middle + k_new)
        v_total = v_total + h / 6 * (v + 4 * v_middle + v_new)
        k, v = k_new, v_new
        products.append(product if offset is None else product + inner(offset[:, lag:], k_total))
        values.append(v if last else v_total)

    return _by_row(products, n).permute(0, 3, 1, 2), _by_row(values, n)


def _by_row(lags: list[Tensor], n: int) -> Tensor:
    """Tables of keys for every lag, (B, key, .) each, as one table (B, row, key, .)."""
    table = torch.stack([F.pad(x, (0, 0, 0, n - x.shape[1])) for x in lags], 2)
    # Rows one longer than the table is wide: read at its width, every row begins one further right.
    table = F.pad(table, (0, 0, 0, n + 1 - table.shape[2])).flatten(1, 2)[:, : n * n]
    return table.unflatten(1, (n, n)).transpose(1, 2)
