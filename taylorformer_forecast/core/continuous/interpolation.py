"""Functions of time through values at reference times: piecewise polynomials with exact pieces."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

INTERPOLATIONS = ("linear", "hermite", "hold")


@dataclass(frozen=True)
class Interpolation:
    """Piecewise polynomial through values at knots, constant before the first knot and after the last.

    Parameters
    ----------
    t : Tensor of shape (B, N)
        Times of the knots, in order. Knots may share a time: the function jumps there.
    coefficients : tuple of Tensor of shape (B, N, F)
        Coefficients of the powers 0, 1, ... of the position within each interval, which runs from 0 to 1;
        the last interval, which begins at the last knot, is constant.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.continuous.interpolation import Interpolation
    >>> t, values = torch.tensor([[0.0, 1.0, 3.0]]), torch.tensor([[[0.0], [2.0], [4.0]]])
    >>> Interpolation.through(t, values)(torch.tensor([[-1.0, 0.5, 2.0, 9.0]])).flatten().tolist()
    [0.0, 1.0, 3.0, 4.0]
    >>> Interpolation.through(t, values, "hold")(torch.tensor([[0.5, 2.0]])).flatten().tolist()
    [0.0, 2.0]
    """

    t: Float[Tensor, "B N"]
    coefficients: tuple[Float[Tensor, "B N F"], ...]

    @classmethod
    def through(
        cls, t: Float[Tensor, "B N"], values: Float[Tensor, "B N F"], kind: str = "linear"
    ) -> Interpolation:
        """Interpolate values.

        Parameters
        ----------
        t, values : Tensor of shape (B, N) and (B, N, F)
            Knots, in order of time.
        kind : {"linear", "hermite", "hold"}, default="linear"
            "hermite" is a cubic whose slope at a knot is that of the interval before it, so that a piece
            depends on no knot after its own end; "hold" keeps the value of the knot before.

        Returns
        -------
        Interpolation
            The function.

        Raises
        ------
        ValueError
            If the kind is unknown.
        """
        if kind not in INTERPOLATIONS:
            raise ValueError(f"interpolation={kind!r} is not one of {list(INTERPOLATIONS)}")
        if kind == "hold":
            return cls(t, (values,))
        rise = torch.cat([values.diff(dim=1), torch.zeros_like(values[:, :1])], 1)
        if kind == "linear":
            return cls(t, (values, rise))
        gap = t.diff(dim=1)
        before = torch.where(gap[:, :-1] > 0, gap[:, 1:] / gap[:, :-1].clamp_min(1e-12), 0.0)
        # Slopes times the length of the interval that begins at the knot; the first is that of its own chord.
        slope = torch.cat([rise[:, :1], before[..., None] * rise[:, :-2], rise[:, -1:]], 1)[:, : t.shape[1]]
        return cls(t, (values, slope, 2 * (rise - slope), slope - rise))

    def find(self, at: Float[Tensor, "B M"]) -> tuple[Int[Tensor, "B M"], Float[Tensor, "B M"]]:
        """Interval that each time lies in (the first for earlier times), and the position in it."""
        # The last knot at or before: where knots share a time, the last of them.
        index = (torch.searchsorted(self.t.contiguous(), at.contiguous(), right=True) - 1).clamp_min(0)
        start, length = self.t.gather(1, index), self.lengths.gather(1, index)
        inside = (at > start) & (length > 0)
        return index, torch.where(inside, (at - start) / torch.where(inside, length, 1.0), 0.0)

    @property
    def lengths(self) -> Float[Tensor, "B N"]:
        """Lengths of the intervals; that of the last, which has no end, is zero."""
        return torch.cat([self.t.diff(dim=1), torch.zeros_like(self.t[:, :1])], 1)

    def __call__(self, at: Float[Tensor, "B M"]) -> Float[Tensor, "B M F"]:
        """Values at any times."""
        index, x = self.find(at)
        pieces = [take(c, index) for c in self.coefficients]
        value = pieces[-1]
        for piece in reversed(pieces[:-1]):
            value = piece + x[..., None] * value
        return value

    def refine(self, knots: Float[Tensor, "B R"]) -> Interpolation:
        """Return the same function with more knots, which must contain the present ones, in order."""
        index, start = self.find(knots)
        length = self.lengths.gather(1, index)
        inside = (knots >= self.t[:, :1]) & (length > 0)
        width = torch.cat([knots.diff(dim=1), torch.zeros_like(knots[:, :1])], 1)
        share = torch.where(inside, width / torch.where(inside, length, 1.0), 0.0)
        pieces, start, share = [take(c, index) for c in self.coefficients], start[..., None], share[..., None]
        shifted = []  # Taylor's formula: exact for polynomials
        for k in range(len(pieces)):
            terms = (math.comb(n, k) * start ** (n - k) * pieces[n] for n in range(k, len(pieces)))
            shifted.append(share**k * torch.stack(list(terms)).sum(0))
        return Interpolation(knots, tuple(shifted))


def take(values: Shaped[Tensor, "B N F"], index: Int[Tensor, "B M"]) -> Shaped[Tensor, "B M F"]:
    """Rows of every window by their numbers."""
    return values.gather(1, index[..., None].expand(values.shape[0], -1, values.shape[2]))
