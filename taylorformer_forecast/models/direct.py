"""A Taylorformer that predicts all targets from the context, in one pass, and forecasts that it corrects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from taylorformer_forecast.baselines.linear import LinearForecast
from taylorformer_forecast.baselines.residuals import Residuals
from taylorformer_forecast.core.families import center_of
from taylorformer_forecast.core.protocol import OneShotNet
from taylorformer_forecast.core.window import Window, holds_everywhere
from taylorformer_forecast.models.taylorformer import Taylorformer

__all__ = ["CorrectedForecast", "DirectTaylorformer"]


class DirectTaylorformer(OneShotNet):
    """The layers of a Taylorformer without a path: no target sees another.

    It is trained by the score of its forecasts themselves, while a network that sees earlier targets is
    trained to predict one step after true values. Trained on many series it is the better forecaster for
    that; trained on one it is not. The steps of a path go together as the errors of the linear forecast do.

    Parameters
    ----------
    forecast : LinearForecast
        What targets are predicted around. The network sees it, and the unit of its errors: what a linear
        forecast is worth differs between series. :meth:`start` fits it.
    n_phases : int, optional
        Of the covariates of a window, the network sees the first so many, of these no more than its
        ``dim_covariates``, and zeros in the place of those that are missing. By default the first
        ``dim_covariates``.
    **options
        Arguments of :class:`~taylorformer_forecast.models.taylorformer.Taylorformer`, with full attention.

    Raises
    ------
    ValueError
        If the attention is not full: it would not reach from far targets to the context.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.linear import LinearForecast
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.models.direct import DirectTaylorformer
    >>> net = DirectTaylorformer(LinearForecast(8, 4), d_model=8, n_heads=2, n_layers=2)
    >>> w = Window(torch.arange(-7.0, 5.0).expand(3, -1) / 8, torch.randn(3, 12, 1), n_context=8)
    >>> net(w).mean.shape
    torch.Size([3, 4, 1])
    """

    def __init__(self, forecast: LinearForecast, n_phases: int | None = None, **options: Any) -> None:
        if options.get("attention", "full") != "full":
            raise ValueError(f"attention={options['attention']!r} does not reach the context: take 'full'")
        super().__init__()
        self.forecast = forecast
        self.dim_covariates = options.get("dim_covariates", 0)
        self.n_phases = self.dim_covariates if n_phases is None else n_phases
        self.layers = Taylorformer(**options, sees_anchor=True)
        self.head = self.layers.head
        nn.init.zeros_(self.layers.to_params.weight)  # training starts from the linear forecast

    def parts(
        self, window: Window
    ) -> tuple[Float[Tensor, "B T D P"], Float[Tensor, "B T D"], Float[Tensor, "B T 1"]]:
        """Unconstrained parameters, linear forecasts and units of their errors, for all targets."""
        seen = window.y[..., :0] if window.covariates is None else window.covariates[..., : self.n_phases]
        seen = F.pad(seen, (0, self.dim_covariates - seen.shape[-1]))  # crops what is too wide
        window = replace(window, covariates=seen)
        is_context = torch.arange(window.y.shape[1], device=window.y.device) < window.n_context
        _, x, xy = self.layers.streams(window, window.attention_mask() & is_context)
        center, unit = self.forecast(window), self.forecast.unit(window)
        return self.forecast.beyond(self.layers.raw(x, xy, center, unit)), center, unit

    def noise(
        self, window: Window, n_paths: int, generator: torch.Generator | None = None
    ) -> Float[Tensor, "B S T D"]:
        """Noise that goes along a path as the errors of the linear forecast do.

        Parameters
        ----------
        window, n_paths, generator
            See :meth:`~taylorformer_forecast.baselines.linear.LinearForecast.noise`.
        """
        return self.forecast.noise(window, n_paths, generator)

    def start(self, window: Window, overlap: int = 0, age: Float[Tensor, " B"] | None = None) -> None:
        """Fit the linear forecast in closed form.

        Parameters
        ----------
        window, overlap
            See :meth:`~taylorformer_forecast.baselines.linear.LinearForecast.start`.
        age : Tensor, optional
            Ignored: how wide forecasts are to be of late is seen when the network is adapted to a series.
        """
        self.forecast.start_alone(window, overlap)


class CorrectedForecast(LinearForecast):
    """A linear forecast that is corrected, after training, by a network that was trained on other series.

    It stands where linear forecasts stand. Another network, trained on the series at hand, learns what the
    linear forecast leaves, with no word of the corrections: these say how such forecasts err on what they
    were not fitted to, and on training windows, to which this one was fitted, it would learn to undo them.
    The network inside stays as it is.

    Parameters
    ----------
    direct : DirectTaylorformer
        The network, and the linear forecast that it corrects. :meth:`start` fits the latter.
    trust : float
        How much of what another network adds is taken, after training.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.linear import LinearForecast
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.models.direct import CorrectedForecast, DirectTaylorformer
    >>> direct = DirectTaylorformer(LinearForecast(8, 4), d_model=8, n_heads=2, n_layers=2)
    >>> forecast = CorrectedForecast(direct, trust=0.5)
    >>> w = Window(torch.arange(-7.0, 5.0).expand(3, -1) / 8, torch.randn(3, 12, 1), n_context=8)
    >>> forecast(w).shape, forecast.unit(w).shape
    (torch.Size([3, 4, 1]), torch.Size([3, 4, 1]))
    """

    def __init__(self, direct: DirectTaylorformer, trust: float) -> None:
        own = direct.forecast
        super().__init__(own.n_context, own.horizon, own.shift, trust)
        self.direct = direct.requires_grad_(False).eval()
        self.map = own.map

    def train(self, mode: bool = True) -> CorrectedForecast:
        """Set the mode of all but the network inside, which is not trained."""
        super().train(mode)
        self.direct.eval()
        return self

    @torch.no_grad()
    def forward(self, window: Window) -> Float[Tensor, "B T D"]:
        """Forecasts at the times of the targets, corrected after training."""
        if self.training or holds_everywhere(self.direct.forecast.trust == 0):
            return self.direct.forecast(window)
        raw, center, unit = self.direct.parts(window)
        return center_of(self.direct.head(raw, center, unit.expand_as(center)))

    @torch.no_grad()
    def start(
        self, window: Window, overlap: int = 0, age: Float[Tensor, " B"] | None = None
    ) -> tuple[Residuals, Residuals] | None:
        """Fit the linear forecast; see :meth:`LinearForecast.start`.

        Returns
        -------
        (Residuals, Residuals) or None
            See :meth:`LinearForecast.start`.
        """
        residuals = self.direct.forecast.start(window, overlap, age)
        if residuals is not None:  # the network inside sees a unit that does not follow the age of errors
            self.direct.forecast.start_scale(*residuals, growth=1.0)
        return residuals
