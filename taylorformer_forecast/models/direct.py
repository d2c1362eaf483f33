"""A Taylorformer that predicts all targets from the context, in one pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from taylorformer_forecast.baselines.base import Baseline
from taylorformer_forecast.core.attention.kernels import Full
from taylorformer_forecast.core.families import Family, find_family
from taylorformer_forecast.core.protocol import OneShotNet
from taylorformer_forecast.core.window import Window
from taylorformer_forecast.defaults import FINETUNE_LR_FACTOR, USUAL_WEIGHT
from taylorformer_forecast.models.stepwise import start_at_baseline
from taylorformer_forecast.models.streams import Streams


class DirectTaylorformer(OneShotNet):
    """The layers of a Taylorformer without a path: no target sees another.

    It is trained by the score of its forecasts themselves, while a network that sees earlier targets is
    trained to predict one step after true values. Trained on many series it is the better forecaster for
    that; trained on one it is not. The steps of a path go together as the errors of the baseline do.

    Parameters
    ----------
    baseline : Baseline
        What targets are predicted around. The network sees its location and scale: what a baseline is worth
        differs between series. :meth:`fit_closed_form` fits it.
    dim_y, dim_t, dim_covariates : int
        Columns of y, time coordinates (1 or 2) and covariates.
    n_phases : int, optional
        Of the covariates of a window, the network sees the first so many, of these no more than its
        ``dim_covariates``, and zeros in the place of those that are missing. By default the first
        ``dim_covariates``.
    distribution : str or Family, default="normal"
        Predictive distribution of a target.
    scale : {"exp", "bounded", "softplus"}, default="exp"
        How scales become positive.
    weight : float, default=0.5
        Part of what the network adds to the baseline that is taken after training.
    **options
        Sizes: see :class:`~taylorformer_forecast.models.streams.Streams`.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.baselines.linear import LinearBaseline
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.models.direct import DirectTaylorformer
    >>> net = DirectTaylorformer(LinearBaseline(8, 4), d_model=8, n_heads=2, n_layers=2)
    >>> w = Window(torch.arange(-7.0, 5.0).expand(3, -1) / 8, torch.randn(3, 12, 1), n_context=8)
    >>> net(w).mean.shape
    torch.Size([3, 4, 1])
    """

    lr_factor = FINETUNE_LR_FACTOR
    shared: dict[str, Any] | None = None  # what a file of its weights says of it

    def __init__(
        self,
        baseline: Baseline,
        dim_y: int = 1,
        dim_t: int = 1,
        dim_covariates: int = 0,
        n_phases: int | None = None,
        distribution: str | Family = "normal",
        scale: str = "exp",
        weight: float = USUAL_WEIGHT,
        **options: Any,
    ) -> None:
        super().__init__(find_family(distribution, scale), baseline, weight)
        self.dim_covariates = dim_covariates
        self.n_phases = dim_covariates if n_phases is None else n_phases
        self.layers = Streams(
            dim_y, dim_t, dim_covariates, self.head.n_params, Full(), shows_baseline=True, **options
        )
        start_at_baseline(self.layers.to_params)

    def parts(
        self, window: Window
    ) -> tuple[Float[Tensor, "B T D P"], Float[Tensor, "B T D"], Float[Tensor, "B T 1"]]:
        """Unconstrained parameters, and location and scale of the baseline, for all targets."""
        seen = window.y[..., :0] if window.covariates is None else window.covariates[..., : self.n_phases]
        seen = F.pad(seen, (0, self.dim_covariates - seen.shape[-1]))  # crops what is too wide
        window = replace(window, covariates=seen)
        is_context = torch.arange(window.y.shape[1], device=window.y.device) < window.n_context
        _, x, xy = self.layers(window, window.attention_mask() & is_context)
        loc, scale = self.baseline.direct(window)
        return self.layers.unconstrained(x, xy, loc, scale), loc, scale
