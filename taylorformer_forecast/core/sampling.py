"""Sample paths: encode the context once, then query, draw and observe, one target after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from taylorformer_forecast.core.heads import Components, components, draw
from taylorformer_forecast.core.scaling import Scale
from taylorformer_forecast.core.window import Window

if TYPE_CHECKING:
    from taylorformer_forecast.models.base import ForecastNet

__all__ = ["PathSamples", "sample_paths"]


@dataclass(frozen=True)
class PathSamples:
    """Joint sample paths and the conditional distribution that each of their points was drawn from.

    The average of the conditional distributions over the paths is the marginal predictive distribution: it
    has a density and is smoother than the order statistics of the paths.

    Parameters
    ----------
    paths : Tensor of shape (B, S, T, D)
        Drawn values.
    conditionals : Components
        Components with arrays of shape (B, S, T, D, K).
    """

    paths: Tensor
    conditionals: Components

    def to_data(self, scale: Scale) -> PathSamples:
        """Return from scaled values to the units of the data, in float64."""
        c = self.conditionals
        loc = scale.loc.double()[:, :, None]  # (B, 1, 1, D)
        factor = scale.scale.double()[:, :, None]
        moved = Components(
            c.loc * factor[..., None] + loc[..., None], c.scale * factor[..., None], c.weights, c.df
        )
        return PathSamples(self.paths * factor + loc, moved)


def _cat(parts: list[PathSamples], dim: int) -> PathSamples:
    """Join samples along one axis."""
    if len(parts) == 1:
        return parts[0]

    def join(name: str) -> Tensor | None:
        values = [getattr(part.conditionals, name) for part in parts]
        return None if values[0] is None else torch.cat(values, dim)

    fields = (join(name) for name in ("loc", "scale", "weights", "df"))
    return PathSamples(torch.cat([part.paths for part in parts], dim), Components(*fields))  # type: ignore[arg-type]


@torch.no_grad()
def sample_paths(
    net: ForecastNet,
    window: Window,
    n_paths: int,
    generator: torch.Generator | None = None,
    max_rows: int = 8192,
) -> PathSamples:
    """Draw joint paths of the targets of every window.

    Nothing computed for a point changes later, so each step costs one query against cached keys and values;
    the context is encoded once and shared by all paths.

    Parameters
    ----------
    net : ForecastNet
        The network, in evaluation mode.
    window : Window
        Scaled windows; the values of the targets are ignored.
    n_paths : int
        Paths S of each window.
    generator : torch.Generator, optional
        Source of randomness, on the window's device; the global one by default.
    max_rows : int, default=8192
        Upper bound on windows times paths in memory at once.

    Returns
    -------
    PathSamples
        Scaled paths and their conditional distributions.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.sampling import sample_paths
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.models.taylorformer import Taylorformer
    >>> net = Taylorformer(d_model=8, n_heads=2, n_layers=2).eval()
    >>> w = Window(torch.linspace(-1, 1, 10)[None], torch.randn(1, 10, 1), n_context=6)
    >>> sample_paths(net, w, n_paths=5).paths.shape
    torch.Size([1, 5, 4, 1])
    """
    n_windows = window.y.shape[0]
    per_call = max(1, max_rows // n_paths)
    if n_windows > per_call:
        pieces = [
            sample_paths(net, window.rows(slice(start, start + per_call)), n_paths, generator, max_rows)
            for start in range(0, n_windows, per_call)
        ]
        return _cat(pieces, 0)
    state = net.encode(window, n_paths)
    drawn: list[Tensor] = []
    conditionals: list[Components] = []
    for step in range(window.n_targets):
        conditional = net.query(state, step)
        y = draw(conditional, generator)
        state = net.observe(state, step, y)
        drawn.append(y)
        conditionals.append(components(conditional))

    def stack(name: str) -> Tensor | None:
        values = [getattr(c, name) for c in conditionals]
        return None if values[0] is None else torch.stack(values, 2)

    fields = (stack(name) for name in ("loc", "scale", "weights", "df"))
    return PathSamples(torch.stack(drawn, 2), Components(*fields))  # type: ignore[arg-type]
