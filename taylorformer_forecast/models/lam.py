"""LAM transformer: all steps of a horizon at once, from a context on a regular grid, by local attention.

Source: "Local Attention Mechanism: Boosting the Transformer Architecture for Long-Sequence Time Series
Forecasting" (Aguilera-Martos, Herrera-Poyatos, Luengo, Herrera). With attention to the last ``4 ceil(ln n)``
points only, time and memory of a layer grow as n log n.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from taylorformer_forecast.baselines.base import Baseline
from taylorformer_forecast.core.attention.registry import Attention
from taylorformer_forecast.core.families import Family, find_family
from taylorformer_forecast.core.protocol import OneShotNet, PathNoise
from taylorformer_forecast.core.window import Window, holds_everywhere
from taylorformer_forecast.models.lam_trunks import FaithfulTrunk, ModernTrunk


class LAMTransformer(OneShotNet):
    """Direct multi-horizon transformer with local attention.

    Points must lie on a regular grid, as many as ``context_length`` before the targets: shorter contexts are
    padded with points that were not observed (:mod:`~taylorformer_forecast.engine.windows` does it). Times
    themselves are not looked at. Values that were not observed are never attended and count as zero, the mean
    of a scaled window; the network knows them by a flag.

    The targets are predicted at once: given the context, every step has a distribution of its own. Steps of a
    path go together as the errors of the baseline do, where there is one (:meth:`noise`).

    Parameters
    ----------
    context_length, horizon : int
        Points of the context, and most targets of a window.
    dim_y, dim_covariates : int
        Columns D of y and covariates C. Covariates of targets reach their predictions.
    d_model, n_heads : int
        Width and attention heads of ``preset="modern"``. The faithful network is as wide as it has variables
        (columns and covariates), with a head for each.
    n_layers : int, default=2
        Encoder layers; the faithful network has as many decoder layers.
    dropout : float, default=0.1
        Dropout.
    distribution : str or Family, default="studentt"
        Name in :data:`~taylorformer_forecast.core.families.FAMILIES`, or a family. The paper's own is "mse".
    scale : {"exp", "bounded", "softplus"}, default="exp"
        How the unconstrained scale becomes positive.
    preset : {"modern", "faithful"}, default="modern"
        "modern": linear embedding, pre-norm encoder with GELU, a map over time shared by all features.
        "faithful": the paper's encoder and decoder, post-norm with LeakyReLU.
    attention : str or callable, default="local"
        Name in :data:`~taylorformer_forecast.core.attention.registry.KERNELS`, or a kernel: a callable of
        ``(q, k, v, mask=None, scale=None)``.
    baseline : Baseline, optional
        Modern: what locations are measured from (:mod:`taylorformer_forecast.baselines`); zero by default,
        the mean of a scaled window. :meth:`fit_closed_form` fits it.
    weight : float, default=1.0
        Part of what the network adds to the baseline that is taken after training.
    cross : {"standard", "paper"}, default="standard"
        Faithful: whether decoders take queries from the decoder and keys and values from the encoder, or, as
        in the paper's text, queries and keys from the encoder and values from the decoder.
    double_residual : bool, default=False
        Faithful: whether the input of a feed-forward part is added twice, as in the published experiments.
    scale_input : bool, default=True
        Faithful: whether inputs are multiplied by the square root of their number.

    Attributes
    ----------
    one_shot : bool
        True: sampling needs one call for all targets.

    Raises
    ------
    ValueError
        If an option is unknown or widths do not fit.

    Notes
    -----
    ``preset="faithful"`` follows the definition of local attention in the paper and the encoding over time.
    With a single variable it has no layer normalisation, which would leave nothing of it.

    Examples
    --------
    >>> import torch
    >>> from taylorformer_forecast.core.window import Window
    >>> from taylorformer_forecast.models.lam import LAMTransformer
    >>> net = LAMTransformer(context_length=24, horizon=12, d_model=16)
    >>> w = Window(torch.arange(36.0).expand(2, 36), torch.randn(2, 36, 1), n_context=24)
    >>> net(w).mean.shape
    torch.Size([2, 12, 1])
    """

    def __init__(
        self,
        context_length: int,
        horizon: int,
        dim_y: int = 1,
        dim_covariates: int = 0,
        d_model: int = 64,
        n_heads: int = 4,
        n_layers: int = 2,
        dropout: float = 0.1,
        distribution: str | Family = "studentt",
        scale: str = "exp",
        preset: str = "modern",
        attention: Attention = "local",
        baseline: Baseline | None = None,
        weight: float = 1.0,
        cross: str = "standard",
        double_residual: bool = False,
        scale_input: bool = True,
    ) -> None:
        if preset not in ("modern", "faithful"):
            raise ValueError(f"preset={preset!r} is neither 'modern' nor 'faithful'")
        if preset == "modern" and (d_model % n_heads or d_model % 2):
            raise ValueError(f"d_model={d_model} must be even and a multiple of n_heads={n_heads}")
        if baseline is not None and preset == "faithful":
            raise ValueError("preset='faithful' is the published network: it takes no baseline")
        super().__init__(find_family(distribution, scale), baseline, weight)
        self.context_length, self.horizon, self.dim_y = context_length, horizon, dim_y
        sizes = (context_length, horizon, dim_y, dim_covariates, self.head.n_params)
        self.trunk: nn.Module
        if preset == "modern":
            self.trunk = ModernTrunk(*sizes, d_model, n_heads, n_layers, dropout, attention)
        else:
            self.trunk = FaithfulTrunk(
                *sizes, n_layers, dropout, attention, cross, double_residual, scale_input
            )

    def parts(
        self, window: Window
    ) -> tuple[Float[Tensor, "B T D P"], Float[Tensor, "B T D"], Float[Tensor, "B T 1"]]:
        """Unconstrained parameters, locations and scales of all targets.

        Raises
        ------
        ValueError
            If the window does not have ``context_length`` points of context and at most ``horizon`` targets.
        """
        if window.n_context != self.context_length or window.n_targets > self.horizon:
            raise ValueError(
                f"the window has {window.n_context} context points and {window.n_targets} targets, but the "
                f"network was built for {self.context_length} and at most {self.horizon}"
            )
        context = slice(0, window.n_context)
        visible = window.visible[:, context]
        # PyTorch's fused attention within a window has no masks.
        mask = None if holds_everywhere(visible, wait=True) else visible[:, None]
        y, observed = window.y[:, context], window.observed[:, context]
        raw = self.trunk(y, observed, mask, window.covariates, window.n_targets)
        raw = rearrange(raw, "b t (p d) -> b t d p", d=self.dim_y)
        if self.baseline is None:
            return raw, torch.zeros_like(raw[..., 0]), torch.ones_like(raw[:, :, :1, 0])
        return raw, *self.baseline.direct(self._on_grid(window))

    def _on_grid(self, window: Window) -> Window:
        """The window with times that follow from positions alone."""
        position = torch.arange(window.y.shape[1], dtype=window.y.dtype, device=window.y.device)
        t = (position + 1 - window.n_context) / self.context_length
        return replace(window, t=t.expand(window.y.shape[0], -1))

    def fit_closed_form(self, window: Window, embargo: int = 0) -> None:
        """Fit the baseline; see :class:`~taylorformer_forecast.core.protocol.ForecastNet`."""
        super().fit_closed_form(self._on_grid(window), embargo)

    def noise(self, window: Window, n_paths: int, generator: torch.Generator | None = None) -> PathNoise:
        """Noise of the baseline; see :class:`~taylorformer_forecast.core.protocol.ForecastNet`."""
        return super().noise(self._on_grid(window), n_paths, generator)
