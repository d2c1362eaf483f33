"""LocalTaylor features: nearest earlier neighbours, differences to them, derivatives.

Where the neighbours of a point are is a matter of times alone (:class:`Neighbours`, found once for a
window); differences and derivatives follow as values become known.
"""

from __future__ import annotations

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from taylorformer_forecast.core.neighbours import TIE, Neighbours, gather_points, nearest
from taylorformer_forecast.core.window import holds_everywhere


class DerivativeNorm(nn.Module):
    """Normalise derivatives by their mean and variance over all points.

    Parameters
    ----------
    n_channels : int
        Channels, each with its own statistics, gain and offset.
    use_batch : bool, default=False
        In training, normalise with the statistics of the batch, as the published code does: every derivative
        then depends weakly on all points of the batch, later targets included. By default the running
        statistics serve in training too, which keeps the likelihood of a target free of later values.
    """

    mean: Tensor
    variance: Tensor
    updates: Tensor

    def __init__(self, n_channels: int, use_batch: bool = False) -> None:
        super().__init__()
        self.use_batch = use_batch
        self.gain = nn.Parameter(torch.ones(n_channels))
        self.offset = nn.Parameter(torch.zeros(n_channels))
        self.register_buffer("mean", torch.zeros(n_channels))
        self.register_buffer("variance", torch.ones(n_channels))
        self.register_buffer("updates", torch.zeros((), dtype=torch.long))

    def forward(
        self, d: Float[Tensor, "*b X D"], observed: Bool[Tensor, "*b D"] | None = None
    ) -> Float[Tensor, "*b X D"]:
        """Normalise; ``observed`` marks the entries that count in the statistics (all, if None)."""
        mean, variance = self.mean, self.variance
        if self.training:
            batch_mean, batch_variance = self.statistics(d, observed)
            if self.use_batch:
                mean, variance = batch_mean, batch_variance
            else:  # as they stood before this batch: no value of it has a say in its own likelihood
                mean, variance = mean.clone(), variance.clone()
            # A plain average over the first updates, then momentum 0.99: right after one step already.
            momentum = (1.0 / (self.updates.to(d.dtype) + 1.0)).clamp(0.01, 0.01 if self.use_batch else 1.0)
            some = self.updates.new_ones(()) if observed is None else observed.any()  # else nothing changes
            with torch.no_grad():
                self.mean.lerp_(batch_mean, momentum * some)
                self.variance.lerp_(batch_variance, momentum * some)
                self.updates += some
        flat = self.gain * (d.flatten(-2) - mean) / (variance + 1e-3).sqrt() + self.offset
        return flat.view(d.shape)

    def statistics(
        self, d: Float[Tensor, "*b X D"], observed: Bool[Tensor, "*b D"] | None
    ) -> tuple[Tensor, Tensor]:
        """Mean and biased variance of every channel over the entries that count; 0 and 1 where none do."""
        flat = d.flatten(-2).flatten(0, -2)
        if observed is None:
            return flat.mean(0), flat.var(0, unbiased=False)
        weight = observed.unsqueeze(-2).expand(d.shape).flatten(-2).flatten(0, -2).to(d.dtype)
        count = weight.sum(0)
        mean = (flat * weight).sum(0) / count.clamp_min(1.0)
        variance = ((flat - mean).square() * weight).sum(0) / count.clamp_min(1.0)
        return mean, torch.where(count > 0, variance, 1.0)


class LocalTaylor(nn.Module):
    """Neighbours, differences and derivatives of the points of a window.

    In one dimension the derivative is the slope to the nearest earlier neighbour, optionally averaged over
    several; in two it is the gradient fitted to two neighbours. Neighbours in line with the point determine
    the slope along a row or a column only, and no coordinate of the gradient if the line is oblique.

    Parameters
    ----------
    dim_t, dim_y : int
        Time coordinates X (1 or 2) and columns D.
    published : bool, default=False
        Follow the published code to the bit instead of the paper: slopes divided by the absolute offset,
        ties by position, batch statistics in training, and in two dimensions neighbours jittered with
        standard deviation 0.01 on every call.
    n_derivative_neighbours : int, default=1
        Neighbours over which slopes are averaged: the paper's remedy for noisy series.
    clip : float, default=200
        Derivatives beyond this are set to zero and labelled as absent.
    both_sides : bool, default=False
        Whether the second neighbour is the nearest one on the other side of the point: for gaps that are
        filled, and targets in random order. The network sees both, and slopes are averaged over both.

    Raises
    ------
    ValueError
        If ``dim_t`` is neither 1 nor 2, or ``both_sides`` is asked for where there are no sides.
    """

    def __init__(
        self,
        dim_t: int = 1,
        dim_y: int = 1,
        published: bool = False,
        n_derivative_neighbours: int = 1,
        clip: float = 200.0,
        both_sides: bool = False,
    ) -> None:
        super().__init__()
        if dim_t not in (1, 2):
            raise ValueError(f"dim_t={dim_t}, but times have one or two coordinates")
        if both_sides and (published or dim_t != 1):
            raise ValueError("both_sides needs one time coordinate and the preset of the paper")
        if n_derivative_neighbours < 1:
            raise ValueError(f"n_derivative_neighbours={n_derivative_neighbours} must be at least 1")
        self.dim_t, self.published, self.clip = dim_t, published, clip
        self.both_sides = both_sides
        self.n_seen = 2 if both_sides else dim_t  # neighbours that the network sees
        self.n_found = max(n_derivative_neighbours, self.n_seen)
        self.norm = DerivativeNorm(dim_t * dim_y, use_batch=published)

    def neighbours(
        self,
        x: Float[Tensor, "B N X"],
        mask: Bool[Tensor, "#B N N"],
        observed: Bool[Tensor, "B N D"],
    ) -> Neighbours:
        """Find the neighbours among the points that ``mask`` lets each point attend."""
        n_windows, _, d = observed.shape
        if mask.shape[0] == 1 and holds_everywhere(x == x[:1]):  # one grid for the whole batch
            x = x[:1]
        mask = mask.expand(x.shape[0], -1, -1)
        index, valid = self.search(x, mask)
        index, valid = index.expand(n_windows, -1, -1), valid.expand(n_windows, -1, -1)
        x = x.expand(n_windows, -1, -1)
        near = gather_points(x, index[..., None])  # (B, N, K, X)
        if self.published and self.dim_t == 2:
            near = near + self.jitter(near)
        offset = (x[:, :, None] - near) * valid[..., None]
        seen = slice(0, self.n_seen)
        features = torch.cat([offset[:, :, seen].flatten(2), near[:, :, seen].flatten(2)], -1)
        if d == 1 or holds_everywhere(observed == observed[..., :1]):
            return Neighbours(index[..., None], valid[..., None], offset[..., None, :], features)
        # Columns miss different points: each looks for its own neighbours.
        by_column = mask[:, None] & rearrange(observed, "b n d -> b d 1 n")
        columns, found = self.search(x.repeat_interleave(d, 0), by_column.flatten(0, 1))
        near = gather_points(x.repeat_interleave(d, 0), columns[..., None])
        offset = (x.repeat_interleave(d, 0)[:, :, None] - near) * found[..., None]
        return Neighbours(
            rearrange(columns, "(b d) n k -> b n k d", d=d),
            rearrange(found, "(b d) n k -> b n k d", d=d),
            rearrange(offset, "(b d) n k x -> b n k d x", d=d),
            features,
        )

    def search(
        self, x: Float[Tensor, "B N X"], candidates: Bool[Tensor, "B N N"]
    ) -> tuple[Int[Tensor, "B N K"], Bool[Tensor, "B N K"]]:
        """Nearest candidates of every point; the second on the other side, if ``both_sides``."""
        prefer_earlier = not self.published
        if not self.both_sides:
            return nearest(x, candidates, self.n_found, prefer_earlier)
        first, found = nearest(x, candidates, 1)
        away = x[:, None, :, 0] - x[:, :, None, 0]  # time of a candidate minus time of a point
        second, found_second = nearest(x, candidates & (away * away.gather(-1, first) < 0), 1)
        indexes, valids = [first, second], [found, found_second]
        if self.n_found > 2:
            rest = candidates.scatter(-1, torch.cat([first, second], -1), False)
            index, valid = nearest(x, rest, self.n_found - 2)
            indexes.append(index)
            valids.append(valid)
        return torch.cat(indexes, -1), torch.cat(valids, -1)

    def jitter(self, near: Tensor) -> Tensor:
        """Noise on the neighbours' times (published code, two dimensions only)."""
        return 0.01 * torch.randn_like(near)

    def derivatives(
        self,
        difference: Float[Tensor, "B M K D"],
        found: Neighbours,
        observed: Bool[Tensor, "B M D"] | None = None,
    ) -> Float[Tensor, "B M 3 X D"]:
        """Derivatives from the differences to the neighbours.

        Parameters
        ----------
        difference : Tensor of shape (B, M, K, D)
            Value of the point minus value of each neighbour.
        found : Neighbours
            The neighbours; their axis M may have length 1 (one target of many paths).
        observed : bool Tensor of shape (B, M, D), optional
            Entries that have a value, all by default.

        Returns
        -------
        Tensor of shape (B, M, 3, X, D)
            The derivative (zero where it is absent or beyond the clip), the same normalised, and a label
            that is 1 where it is present.
        """
        estimate = self.slope if self.dim_t == 1 else self.gradient
        derivative, present = estimate(difference, found)
        present = present & (derivative.abs() <= self.clip)
        if observed is not None:
            present = present & observed.unsqueeze(2)
        derivative = torch.where(present, derivative, 0.0)
        return torch.stack([derivative, self.norm(derivative, observed), present.to(derivative.dtype)], 2)

    def slope(self, difference: Float[Tensor, "B M K D"], found: Neighbours) -> tuple[Tensor, Tensor]:
        """Slope to the neighbours in one dimension, averaged over them; and where there is one."""
        offset, valid = found.offset[..., 0], found.valid
        distance = 2e-6 + offset.abs()
        if self.published:
            slope = difference / distance
        else:
            slope, valid = difference * offset.sign() / distance, valid & (offset.abs() > TIE)
        usable = valid & (slope.abs() <= self.clip)
        count = usable.sum(2, keepdim=True)
        return (slope * usable).sum(2, keepdim=True) / count.clamp_min(1), count > 0

    def gradient(self, difference: Float[Tensor, "B M K D"], found: Neighbours) -> tuple[Tensor, Tensor]:
        """Gradient in two dimensions that explains the differences to the neighbours; where there is one."""
        valid = found.valid.all(2).unsqueeze(2)  # (B, M, 1, G)
        away = -found.offset  # from the point to the neighbour, (B, M, K, G, 2)
        change = -difference
        if self.published:
            (a1, b1), (a2, b2) = away[:, :, 0].unbind(-1), away[:, :, 1].unbind(-1)
            u1, u2 = change[:, :, 0], change[:, :, 1]
            a1, solvable = _nonzero(a1)
            determinant, regular = _nonzero(b2 - b1 * a2 / a1)
            second = (u2 - a2 * u1 / a1) / determinant
            gradient = torch.stack([(u1 - second * b1) / a1, second], 2)
            return gradient, (valid & (solvable & regular).unsqueeze(2)).expand_as(gradient)
        # Least squares, by the pseudo-inverse of a symmetric 2 x 2 matrix. Neighbours in line with the point
        # leave the direction across the line undetermined.
        gram = torch.einsum("bmkgx,bmkgz->bmgxz", away, away)
        trace = gram.diagonal(dim1=-2, dim2=-1).sum(-1)
        determinant = torch.linalg.det(gram)
        spans = determinant > 1e-4 * trace.square()  # an angle of more than about one degree
        adjugate = trace[..., None, None] * torch.eye(2, dtype=gram.dtype, device=gram.device) - gram
        full_rank = adjugate / torch.where(spans, determinant, 1.0)[..., None, None]
        rank_one = gram / torch.where(trace > 0, trace, 1.0).square()[..., None, None]
        inverse = torch.where(spans[..., None, None], full_rank, rank_one)  # (B, M, G, 2, 2)
        moment = (away * change[..., None]).sum(2)  # (B, M, D, 2)
        gradient = (inverse @ moment[..., None])[..., 0].transpose(2, 3)  # (B, M, X, D)
        # A coordinate is determined if it lies in the span of the neighbours: on a grid of pixels, where one
        # pair of neighbours in six is a row or a column, that is the one along the line.
        determined = (inverse @ gram).diagonal(dim1=-2, dim2=-1) > 1 - 1e-3  # (B, M, G, X)
        return gradient, valid & determined.transpose(2, 3)


def _nonzero(x: Tensor) -> tuple[Tensor, Tensor]:
    """A divisor that is never zero, and where it was not."""
    nonzero = x != 0
    return torch.where(nonzero, x, 1.0), nonzero
