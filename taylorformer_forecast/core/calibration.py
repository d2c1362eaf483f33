"""How much of what a network adds to its baseline is taken, and how wide its forecasts are."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributions import Distribution

from taylorformer_forecast.core.families import Family, point_forecast
from taylorformer_forecast.core.window import holds_everywhere


class Calibration(nn.Module):
    """Weight of the network and inflation of the scale, applied after training.

    A network that learns from the windows that its baseline was fitted to learns some of their noise. A part
    of what it adds is the safer forecast (shrinkage), and intervals that cover too little are inflated. In
    training nothing is applied. The weight of a network that is trained is a number of its model; that of a
    pretrained network is chosen on held-out windows, and that of an imputer on hidden points. The inflation
    is found there too; for a trained network it is found on windows of the training, from its own paths. At
    irregular times both are found on windows that a network is not trained on at first. See
    :mod:`taylorformer_forecast.engine.calibration`.

    Parameters
    ----------
    weight : float, default=1.0
        Factor on all unconstrained parameters of the network, from 0 (the baseline alone) to 1.
    inflation : float, default=1.0
        Factor on the width of the distribution, around its mean.
    mean_weight : float, default=1.0
        Further factor on what the network adds to the mean alone.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.calibration import Calibration
    >>> from taylorformer_forecast.core.families import find_family
    >>> calibrated = Calibration(weight=0.5, inflation=2.0).eval()
    >>> d = calibrated(find_family("normal"), torch.tensor([[[1.0, 0.0]]]), torch.zeros(1, 1), 1.0)
    >>> round(d.mean.item(), 3), round(d.stddev.item(), 3)
    (0.5, 2.002)
    """

    weight: Tensor
    inflation: Tensor
    mean_weight: Tensor

    def __init__(self, weight: float = 1.0, inflation: float = 1.0, mean_weight: float = 1.0) -> None:
        super().__init__()
        for name in ("weight", "inflation", "mean_weight"):
            self.register_buffer(name, torch.ones(()))
        self.set(weight, inflation, mean_weight)

    def set(
        self,
        weight: float | None = None,
        inflation: float | None = None,
        mean_weight: float | None = None,
    ) -> None:
        """Change some of the numbers."""
        given = {"weight": weight, "inflation": inflation, "mean_weight": mean_weight}
        for name, value in given.items():
            if value is not None:
                getattr(self, name).fill_(value)
        self._read()

    def set_weight(self, weight: float, head: Family) -> None:
        """Change the part of what a network adds that is taken: of a distribution with modes, of its mean."""
        self.set(**{"mean_weight" if head.has_modes else "weight": weight})

    def _read(self) -> None:
        # Read once, not at every step: on a GPU a step would wait for it.
        self._keeps_shape = holds_everywhere((self.inflation == 1) & (self.mean_weight == 1), wait=True)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self._read()

    def forward(
        self,
        head: Family,
        raw: Float[Tensor, "*b D P"],
        loc: Float[Tensor, "*b D"],
        scale: Tensor | float = 1.0,
    ) -> Distribution:
        """Predictive distribution, calibrated outside training.

        Parameters
        ----------
        head : Family
            Family of the distribution.
        raw : Tensor of shape (..., D, P)
            Unconstrained parameters.
        loc : Tensor of shape (..., D)
            Location of the baseline.
        scale : Tensor or float, default=1.0
            Scale of the baseline.

        Returns
        -------
        Distribution
            Batch shape (..., D).
        """
        if isinstance(scale, Tensor):
            scale = scale.expand(*loc.shape[:-1], -1)
        if self.training:
            return head(raw, loc, scale)
        raw = self.weight * raw
        if self._keeps_shape:
            return head(raw, loc, scale)
        shift = (self.mean_weight - self.inflation) * point_forecast(head(raw, torch.zeros_like(loc), 1.0))
        return head(raw, loc + scale * shift, self.inflation * scale * torch.ones_like(loc))

    def added(
        self, head: Family, raw: Float[Tensor, "*b D P"], scale: Tensor | float
    ) -> Float[Tensor, "*b D"]:
        """What the network adds to the location of the baseline."""
        raw = raw if self.training else self.weight * raw
        nothing = raw.new_zeros(raw.shape[:-1])
        scale = scale.expand(*nothing.shape[:-1], -1) if isinstance(scale, Tensor) else scale
        added = point_forecast(head(raw, nothing, scale))
        return added if self.training else self.mean_weight * added
