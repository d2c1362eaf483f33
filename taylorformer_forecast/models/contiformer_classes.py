"""ContiFormer for classes of whole series: attention in continuous time over all that was observed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Categorical

from taylorformer_forecast.core.temporal import last_seen
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.models.contiformer import ContinuousLayers
from taylorformer_forecast.models.stepwise import start_at_baseline


def slopes(window: Window) -> Float[Tensor, "B N D"]:
    """Change of every value since the observation before it in its column, divided by the time between.

    Zero where nothing was observed, or nothing before.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.models.contiformer_classes import slopes
    >>> y = torch.tensor([1.0, float("nan"), 3.0])
    >>> slopes(Window(torch.arange(3.0)[None], y[None, :, None], n_context=3)).flatten().tolist()
    [0.0, 0.0, 1.0]
    """
    before = F.pad(last_seen(window.observed)[:, :-1], (0, 0, 1, 0), value=-1)
    known = window.observed & (before >= 0)
    before = before.clamp_min(0)
    times = window.times.expand_as(window.y)
    rise, gap = window.y - window.y.gather(1, before), times - times.gather(1, before)
    return torch.where(known & (gap > 0), rise / torch.where(gap > 0, gap, 1.0), 0.0)


class ContiFormerClasses(ContinuousLayers):
    """Probabilities of classes from everything that was observed of a series.

    Every observed point is a reference point of all layers and looks to both sides in time. The mean and the
    largest value of what the last layer returns give the logits. Times may be irregular, values missing, and
    series of different lengths.

    The covariates of the only target of a window are scores of the classes by a baseline, which the network
    corrects; without covariates there is none. In training the first value of the target is the class.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    dim_y, d_model, n_heads, n_layers, dropout, **options
        See :class:`~taylorformer_forecast.models.contiformer.ContiFormer`. Times are between 0 and 1.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.models.contiformer_classes import ContiFormerClasses
    >>> net = ContiFormerClasses(3, d_model=8, n_heads=2)
    >>> w = Window(torch.rand(5, 12).sort().values, torch.randn(5, 12, 1), n_context=12)
    >>> net(w).probs.shape
    torch.Size([5, 3])
    """

    def __init__(self, n_classes: int, dim_y: int = 1, d_model: int = 32, **options: Any) -> None:
        options = {"both_sides": True, "time_min": 0.02, **options}
        super().__init__(dim_y, dim_y, d_model, distribution="mse", **options)
        del self.target, self.to_params  # no times are asked for, and no values predicted
        self.norm = nn.LayerNorm(2 * d_model)
        self.to_logits = nn.Linear(2 * d_model, n_classes)
        start_at_baseline(self.to_logits)
        self.steepness = nn.Parameter(torch.tensor(5.0))  # scores are about 1 for the class, 0 for others

    def forward(self, window: Window) -> Categorical:
        """Distribution of the class of every window, batch shape (B,).

        Parameters
        ----------
        window : Window
            Series as contexts; scores of the classes as covariates of the target.
        """
        scores = 0.0 if window.covariates is None else window.covariates[:, -1]
        window = replace(window, covariates=slopes(window))
        r = self.references(window, self.features(window))
        x = self.states(r, r.visible[:, None], self.layers)
        seen, count = r.visible[..., None], r.visible.sum(1, keepdim=True)
        mean = (x * seen).sum(1) / count.clamp_min(1)
        largest = torch.where(seen, x, -torch.inf).amax(1).where(count > 0, 0.0)
        logits = self.steepness * scores + self.to_logits(self.norm(torch.cat([mean, largest], -1)))
        return Categorical(logits=logits, validate_args=False)

    def loss(self, window: Window) -> Float[Tensor, ""]:
        """Mean negative log-probability of the classes."""
        return -self(window).log_prob(window.targets[0][:, 0, 0]).mean()
