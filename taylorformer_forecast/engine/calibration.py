"""How wide forecasts are to be: what the errors that they leave say."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from taylorformer_forecast.core.sampling import sample_paths
from taylorformer_forecast.core.window import Window, holds_everywhere
from taylorformer_forecast.models.taylorformer import Taylorformer

__all__ = ["fitting_stretch", "widen"]

N_WINDOWS = 64
N_PATHS = 19
MOST = 1.5


def fitting_stretch(paths: Float[Tensor, "B S T D"], window: Window) -> float:
    """By how much forecasts are to be stretched around their medians to cover 80 % of the targets by 80 %.

    Parameters
    ----------
    paths : Tensor of shape (B, S, T, D)
        Draws. Of 9, 19, 29 and so on, two hold the central 80 % between them.
    window : Window
        The windows. One target at least was observed.

    Returns
    -------
    float
        Above 1 where intervals cover too little.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.engine.calibration import fitting_stretch
    >>> y = torch.arange(-5.0, 6.0)[None, :, None]
    >>> w = Window(torch.arange(11.0)[None], y, n_context=0)
    >>> fitting_stretch(torch.linspace(-2.0, 2.0, 9).view(1, 9, 1, 1).expand(-1, -1, 11, 1), w)
    2.0
    """
    n_paths = paths.shape[1]
    edge = (n_paths + 1) // 10 - 1
    paths = paths.sort(1).values
    low, middle, high = paths[:, edge], paths[:, n_paths // 2], paths[:, -1 - edge]
    y, observed = window.targets
    tiny = torch.finfo(y.dtype).tiny  # points have no width
    up, down = (high - middle).clamp_min(tiny), (middle - low).clamp_min(tiny)
    beyond = torch.where(y > middle, (y - middle) / up, (middle - y) / down)
    return beyond[observed].quantile(0.8).item()


@torch.no_grad()
def widen(net: nn.Module, window: Window) -> None:
    """Widen the forecasts of a trained Taylorformer if they cover too little of what it was trained on.

    A network that sees true earlier values learns how far the next lies from its forecast; along a path of
    its own draws errors add up to more, or to less, than such steps tell. Windows that it has seen can warn
    of intervals that are too narrow, but not reassure: forecasts are widened, half-way to what would fit, and
    never narrowed.

    Parameters
    ----------
    net : nn.Module
        In evaluation mode. Others than a Taylorformer around a linear forecast, and point forecasts, stay as
        they are.
    window : Window
        Scaled training windows, one after another as they were cut.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.linear import LinearForecast
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.models.taylorformer import Taylorformer
    >>> from taylorformer_forecast.engine.calibration import widen
    >>> net = Taylorformer(d_model=8, n_heads=2, n_layers=2, linear=LinearForecast(8, 4)).eval()
    >>> w = Window(torch.arange(-7.0, 5.0).expand(30, -1) / 8, 2 * torch.randn(30, 12, 1), n_context=8)
    >>> widen(net, w)
    >>> bool(net.linear.forecast.stretch > 1)
    True
    """
    if not isinstance(net, Taylorformer) or net.linear is None:
        return
    stretch = net.linear.forecast.stretch.fill_(1.0)
    pick = torch.linspace(0, len(window.y) - 1, min(len(window.y), N_WINDOWS)).round().long()
    window = window.rows(pick.to(window.y.device))
    if not window.targets[1].any():
        return
    generator = torch.Generator(window.y.device).manual_seed(0)
    paths = sample_paths(net, window, N_PATHS, generator).paths
    if not holds_everywhere(paths[:, 0] == paths[:, -1]):
        stretch.fill_(min(math.sqrt(max(fitting_stretch(paths, window), 1.0)), MOST))
