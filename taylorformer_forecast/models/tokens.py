"""Tokens of the Taylorformer: what each point shows, sees and hides."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from taylorformer_forecast.core.encoding import TimeEncoding
from taylorformer_forecast.core.neighbours import Neighbours, gather_points
from taylorformer_forecast.core.taylor import LocalTaylor
from taylorformer_forecast.core.window import Window, holds_everywhere


@dataclass(frozen=True)
class Features:
    """Features of all points of a window; M is N.

    Parameters
    ----------
    found : Neighbours
        Where the neighbours are.
    x : Tensor of shape (B, N, F)
        X features: encoding, offsets to and times of the neighbours, covariates.
    observed : bool Tensor of shape (B, N, D)
        What was observed.
    near, difference : Tensor of shape (B, N, K, D)
        Values at the neighbours and differences to them.
    derivatives, slopes : Tensor of shape (B, N, 3, X, D)
        Derivatives (as they are, normalised, label) at the point and at its nearest neighbour.
    """

    found: Neighbours
    x: Tensor
    observed: Tensor
    near: Tensor
    difference: Tensor
    derivatives: Tensor
    slopes: Tensor


class Tokens(nn.Module):
    """Turn windows into the features of both streams.

    A token of the XY stream is ``[hidden, seen, flag, X features]``, in the order of the published code:
    *hidden* is what only keys show of a point (its value, differences, derivatives), *seen* what a point
    knows of its neighbours before its own value is known, and *flag* is 1 where the value is hidden.

    Parameters
    ----------
    local : LocalTaylor
        Neighbours and derivatives.
    encoding : TimeEncoding
        Positional encoding of times.
    dim_encoding : int
        Its width for each time coordinate.
    dim_y, dim_t, dim_covariates : int
        Columns, time coordinates and covariates.
    neighbour_derivative : bool
        Whether a point sees the derivative at its neighbour (paper, eq. 9).
    mark_observed : bool
        Whether keys say which columns were observed; useful where columns can be missing one by one.
    """

    def __init__(
        self,
        local: LocalTaylor,
        encoding: TimeEncoding,
        dim_encoding: int,
        dim_y: int,
        dim_t: int,
        dim_covariates: int,
        neighbour_derivative: bool,
        mark_observed: bool,
    ) -> None:
        super().__init__()
        self.local, self.encoding = local, encoding
        self.dim_y, self.dim_t = dim_y, dim_t
        self.neighbour_derivative = neighbour_derivative
        self.mark_observed = mark_observed
        self.dim_x = dim_encoding * dim_t + 2 * local.n_seen * dim_t + dim_covariates
        self.dim_hidden = dim_y * (1 + local.n_seen + 2 * dim_t)
        dim_seen = dim_y * (local.n_seen + 2 * dim_t * neighbour_derivative)
        self.dim_xy = self.dim_hidden + dim_seen + 1 + dim_y * mark_observed + self.dim_x

    def forward(self, window: Window, mask: Bool[Tensor, "#B N N"]) -> Features:
        """Neighbours, X features, and what values show at every point and its neighbours."""
        observed = window.observed
        found = self.local.neighbours(window.times, mask, observed)
        near = gather_points(window.y, found.index) * found.valid
        difference = (window.y[:, :, None] - near) * (found.valid & observed[:, :, None])
        derivatives = self.local.derivatives(
            difference, found, None if holds_everywhere(observed) else observed
        )
        slopes = self.slopes_at(derivatives.flatten(2), found)
        xf = [self.encoding(window.times), found.features]
        if window.covariates is not None:
            xf.append(window.covariates)
        return Features(found, torch.cat(xf, -1), observed, near, difference, derivatives, slopes)

    def slopes_at(
        self, derivatives: Float[Tensor, "*b N F"], found: Neighbours
    ) -> Float[Tensor, "*b M 3 X D"]:
        """Derivatives at the nearest neighbour, zero where there is none."""
        index, valid = found.index[..., :1, :], found.valid[..., 0, :]
        values = gather_points(derivatives, index)[..., 0, :]
        return values.unflatten(-1, (3, self.dim_t, self.dim_y)) * valid[..., None, None, :]

    def hidden(self, y: Tensor, difference: Tensor, derivatives: Tensor) -> Float[Tensor, "B M F"]:
        """What only the key of a point shows: value, differences, normalised derivatives, labels."""
        seen = difference[:, :, : self.local.n_seen]
        return torch.cat([y, seen.flatten(2), derivatives[:, :, 1:].flatten(2)], -1)

    def seen(self, near: Tensor, slopes: Tensor) -> Float[Tensor, "B M F"]:
        """What a point sees at its neighbours before its own value is known."""
        parts = [near[:, :, : self.local.n_seen].flatten(2)]
        if self.neighbour_derivative:
            parts.append(slopes[:, :, 1:].flatten(2))
        return torch.cat(parts, -1)

    def key_token(self, hidden: Tensor, seen: Tensor, observed: Tensor, xf: Tensor) -> Float[Tensor, "B M F"]:
        """XY token that shows the point's value, in the order of the published code."""
        parts = [hidden, seen, torch.zeros_like(hidden[..., :1])]
        if self.mark_observed:
            parts.append(observed.to(hidden.dtype))
        return torch.cat([*parts, xf.expand(*hidden.shape[:2], -1)], -1)

    def query_token(self, seen: Tensor, xf: Tensor) -> Float[Tensor, "B M F"]:
        """XY token that hides the point's value; 1 marks it as hidden."""
        blank, flag = seen.new_zeros(*seen.shape[:2], self.dim_hidden), torch.ones_like(seen[..., :1])
        parts = [blank, seen, flag]
        if self.mark_observed:
            parts.append(seen.new_zeros(*seen.shape[:2], self.dim_y))
        return torch.cat([*parts, xf.expand(*seen.shape[:2], -1)], -1)
