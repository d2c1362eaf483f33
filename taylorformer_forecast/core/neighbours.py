"""Neighbours of points: where they are follows from times alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

TIE = 1e-6  # times closer than this count as equally far


def gather_points(
    values: Float[Tensor, "*b N D"], index: Int[Tensor, "*b M K G"]
) -> Float[Tensor, "*b M K D"]:
    """Values at the indexed points; G divides D, and is 1 where all columns share their neighbours."""
    *batch, m, k, g = index.shape
    d = values.shape[-1]
    index = index.expand(*batch, m, k, d) if g == 1 else index.repeat(*[1] * (index.ndim - 1), d // g)
    return values.gather(-2, index.reshape(*batch, m * k, d)).view(*batch, m, k, d)


def nearest(
    x: Float[Tensor, "B N X"],
    candidates: Bool[Tensor, "B N N"],
    k: int,
    prefer_earlier: bool = True,
) -> tuple[Int[Tensor, "B N K"], Bool[Tensor, "B N K"]]:
    """Find the ``k`` nearest candidates of each point, in order of distance.

    Parameters
    ----------
    x : Tensor of shape (B, N, X)
        Times.
    candidates : bool Tensor of shape (B, N, N)
        Which points (last axis) may be neighbours of each point. A point is never its own neighbour.
    k : int
        Number of neighbours.
    prefer_earlier : bool, default=True
        Ties within 1e-6 go to the earlier time, whatever the order of the points; False gives exact ties
        to the lower position, as the published code does.

    Returns
    -------
    index : int Tensor of shape (B, N, k)
        Positions; the point's own where there is no candidate left.
    valid : bool Tensor of shape (B, N, k)
        Whether there was a candidate.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.neighbours import nearest
    >>> x = torch.tensor([[[0.0], [1.0], [3.0]]])
    >>> nearest(x, torch.ones(1, 3, 3, dtype=torch.bool), k=1)[0][0, :, 0].tolist()
    [1, 0, 1]
    """
    n = x.shape[1]
    if x.shape[-1] == 1:
        distance = (x - x.transpose(1, 2)).abs()
    else:
        distance = (x[:, :, None] - x[:, None]).square().sum(-1).sqrt()
    eye = torch.eye(n, dtype=torch.bool, device=x.device)
    infinite = torch.inf
    distance = distance.masked_fill(~candidates | eye, infinite)
    position = torch.arange(n, device=x.device)
    rank = position.expand(x.shape[0], n)
    if prefer_earlier:  # order of the points in time; the first coordinate decides in two dimensions
        for coordinate in reversed(x.unbind(-1)):
            rank = rank.gather(1, torch.argsort(coordinate.gather(1, rank), dim=1, stable=True))
        rank = torch.argsort(rank, dim=1)
    tolerance = TIE if prefer_earlier else 0.0
    index, valid = [], []
    for _ in range(k):
        closest = distance.amin(-1, keepdim=True)
        tied = (distance <= closest + tolerance) & (distance < infinite)
        found = tied.any(-1)
        chosen = torch.where(tied, rank[:, None], n).argmin(-1)
        chosen = torch.where(found, chosen, position)
        distance = distance.scatter(-1, chosen[..., None], infinite)
        index.append(chosen)
        valid.append(found)
    return torch.stack(index, -1), torch.stack(valid, -1)


@dataclass(frozen=True)
class Neighbours:
    """Neighbours of points, known from times alone.

    Parameters
    ----------
    index : int Tensor of shape (B, N, K, G)
        Positions of the neighbours of each column; G is 1 where all columns share them.
    valid : bool Tensor of shape (B, N, K, G)
        Whether the neighbour exists.
    offset : Tensor of shape (B, N, K, G, X)
        Time of the point minus time of the neighbour.
    features : Tensor of shape (B, N, 2 * K' * X)
        Offsets and times of the K' neighbours that the network sees.
    """

    index: Int[Tensor, "B N K G"]
    valid: Bool[Tensor, "B N K G"]
    offset: Float[Tensor, "B N K G X"]
    features: Float[Tensor, "B N F"]

    def select(self, points: slice) -> Neighbours:
        """Neighbours of some of the points."""
        return Neighbours(*(part[:, points] for part in vars(self).values()))
